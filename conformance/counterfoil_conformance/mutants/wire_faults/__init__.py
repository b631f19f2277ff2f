"""Seeded faults of the shipped server, by what they break: each module registers its own."""
