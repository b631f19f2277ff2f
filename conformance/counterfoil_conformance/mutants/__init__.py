"""Seeded faults of the shipped code: what the checks must be able to find again."""
