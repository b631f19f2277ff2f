"""Benchmarks of the reference server; `python -m benchmarks` writes docs/performance.md."""
