"""Seeded defects: what a lemma must be able to find before its word counts.

Each is one function of the law, or of the shipped server, with one mistake in it of the kind that
is made: an off-by-one, a lost field, a second decrement, an order taken from the wrong end. Its
docstring says what is wrong with it. Those of the server are in `shipped`, and are loaded only
where the server is installed.
"""

from counterfoil_conformance.proof.defects import admission, reads, retention, transitions

__all__ = ["admission", "reads", "retention", "transitions"]
