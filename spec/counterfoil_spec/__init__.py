"""The asynchronous job contract, executable: the clauses as data and the ledger as a pure law.

Nothing here does I/O, reads a clock or depends on anything but the standard library.
"""
