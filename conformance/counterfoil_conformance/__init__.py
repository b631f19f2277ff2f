"""The conformance kit: drives servers and ledgers and judges them against `counterfoil_spec`."""
