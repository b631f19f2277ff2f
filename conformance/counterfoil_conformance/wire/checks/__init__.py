"""The checks, one module per theme; the run imports every module in here."""
