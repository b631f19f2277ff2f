"""The seeded faults of the shipped ledger, by family."""
