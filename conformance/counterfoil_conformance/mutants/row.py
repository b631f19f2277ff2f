"""What the layers made of one fault: a row of the kill matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

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


def examine(fault: LedgerFault, layers: Sequence[Layer]) -> Row:
    """Show one fault to some layers."""
    return Row(fault, {layer.name: look(layer, fault) for layer in layers})
