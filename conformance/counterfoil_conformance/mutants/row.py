"""What the layers made of one fault: a row of the kill matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil_conformance.mutants.layers import LAYERS, Found, Layer, look
from counterfoil_conformance.mutants.ledger import LedgerFault

__all__ = ["Row", "examine"]


@dataclass(frozen=True, slots=True)
class Row:
    """One fault, and what each layer reported of it."""

    fault: LedgerFault
    found: dict[str, Found]

    @property
    def killers(self) -> tuple[str, ...]:
        """The layers that found the fault, in order of cost."""
        return tuple(
            layer.name
            for layer in LAYERS
            if layer.name in self.found and layer.finds(self.fault, self.found[layer.name])
        )

    def as_json(self) -> dict[str, Any]:
        """The row for machines; `of_json` reads it."""
        return {
            "fault": self.fault.name,
            "sentence": self.fault.sentence,
            "clauses": list(self.fault.clauses),
            "killers": list(self.killers),
            "layers": {
                name: {
                    "clauses": sorted(found.clauses),
                    "seconds": round(found.seconds, 3),
                    "failed": found.failed,
                }
                for name, found in self.found.items()
            },
        }

    @classmethod
    def of_json(cls, fault: LedgerFault, document: Mapping[str, Any]) -> "Row":
        """The row that `as_json` wrote."""
        found = {
            name: Found(frozenset(each["clauses"]), each["seconds"], each["failed"])
            for name, each in document["layers"].items()
        }
        return cls(fault, found)


def examine(fault: LedgerFault, layers: Sequence[Layer], before: Row | None = None) -> Row:
    """Show one fault to some layers, but not to those that have seen it `before`."""
    known = before.found if before else {}
    new = {layer.name: look(layer, fault) for layer in layers if layer.name not in known}
    return Row(fault, {**known, **new})
