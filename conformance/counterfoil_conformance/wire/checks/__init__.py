"""The checks, one module per theme. Every module in here is imported by the run and registers its own."""
