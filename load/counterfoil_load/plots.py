"""Small line charts as inline SVG, without script: the same live and in the report."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, TypeAlias

__all__ = ["Points", "line_chart"]

Points: TypeAlias = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 460, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 24, 22
_COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#64748b")


def line_chart(
    title: str,
    series: Mapping[str, Points],
    *,
    bound: float | None = None,
    unit: str = "",
    x_unit: str = " s",
) -> str:
    """A chart of some series, over seconds by default; `bound` is drawn as a dashed line."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    x_top = max(xs, default=1.0) or 1.0
    y_top = _round_up(max([*ys, bound or 0.0, 1e-9]))

    def place(x: float, y: float) -> str:
        across = _LEFT + (_WIDTH - _LEFT - _RIGHT) * x / x_top
        down = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - y / y_top)
        return f"{across:.1f},{down:.1f}"

    parts = [
        _axes(x_top, y_top, unit, x_unit),
        f'<text x="{_LEFT}" y="13" class="t" fill="currentColor">{escape(title)}</text>',
    ]
    if bound is not None:
        ends = f"{place(0, bound)} {place(x_top, bound)}"
        parts.append(f'<polyline points="{ends}" class="bound"/>')
    for number, (label, points) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = " ".join(place(x, y) for x, y in points)
        parts.append(
            f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        )
        parts.append(_legend(number, len(series), label, colour))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )


def _legend(number: int, count: int, label: str, colour: str) -> str:
    x = _WIDTH - _RIGHT - (count - number) * 52
    return f'<text x="{x}" y="13" fill="{colour}">{escape(label)}</text>'


def _axes(x_top: float, y_top: float, unit: str, x_unit: str) -> str:
    marks = []
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share)
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * share
        marks += [
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" class="grid"/>',
            _label(_LEFT - 4, y + 4, "end", f"{y_top * share:g}{unit}"),
            _label(x, _HEIGHT - 6, anchor, f"{x_top * share:.4g}{x_unit}"),
        ]
    return "".join(marks)


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="currentColor">{text}</text>'


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 1.0
    while power < value:
        power *= 10
    while power / 10 >= value:
        power /= 10
    return next(step * power / 10 for step in (1, 2, 5, 10) if step * power / 10 >= value)
