"""Lemmas: statements about the law's real functions that hold for all integers."""

from counterfoil_spec.lemmas import any_number, eviction, moves, rules
from counterfoil_spec.lemmas.table import LEMMAS, Broken, Lemma

__all__ = ["LEMMAS", "Broken", "Lemma", "any_number", "eviction", "moves", "rules"]
