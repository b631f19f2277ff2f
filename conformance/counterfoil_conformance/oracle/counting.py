"""Counting over intervals: how many hold at once, how many lie inside, in O(n log n).

Two tools, and the only clever part of the judges. A `StepFunction` is a number that changes at
known instants (how many jobs are certainly live, say); it answers the least and the most it was
over a closed stretch of time. `count_dominating` answers many questions "how many points have x at
most this and y at least that" in one pass.

The trap is equality. Stamps are rounded, so two equal ones prove no order. An interval that
*certainly* covers an instant is open at both ends, one that *possibly* does is closed; the instants
and the gaps between them are therefore different places on the axis.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import nextafter
from operator import itemgetter
from typing import Final, TypeAlias

__all__ = ["NEVER", "Span", "StepFunction", "count_dominating", "just_after", "just_before"]

Span: TypeAlias = tuple[float, float]

NEVER: Final = float("inf")


class StepFunction:
    """How many of `spans` cover each place on the axis.

    Args:
        spans: the intervals, in any order; an end may be infinite.
        open_ends: whether a span leaves its own end points out; an open span without an inside
            covers nothing.
        base: a constant to add everywhere.
    """

    def __init__(self, spans: Iterable[Span], *, open_ends: bool, base: int = 0) -> None:
        held = [span for span in spans if span[0] < span[1] or not open_ends]
        self._stamps = sorted({end for span in held for end in span})
        changes = [0] * (2 * len(self._stamps) + 2)
        inset = 1 if open_ends else 0
        for start, end in held:
            changes[self._place(start) + inset] += 1
            changes[self._place(end) + 1 - inset] -= 1
        changes[0] += base
        values = list(accumulate(changes))[:-1]
        self._low, self._high = [values], [values]

    def _place(self, stamp: float) -> int:
        """Odd: an instant that is a stamp. Even: the gap before the stamp that follows."""
        index = bisect_left(self._stamps, stamp)
        known = index < len(self._stamps) and self._stamps[index] == stamp
        return 2 * index + (1 if known else 0)

    def at(self, stamp: float) -> int:
        """The value at one instant."""
        return self._low[0][self._place(stamp)]

    def least(self, start: float, end: float) -> int:
        """The smallest value in [start, end]."""
        first, last = self._place(start), self._place(end)
        level = (last - first + 1).bit_length() - 1
        row = _row(self._low, level, min)
        return min(row[first], row[last - (1 << level) + 1])

    def most(self, start: float, end: float) -> int:
        """The largest value in [start, end]."""
        first, last = self._place(start), self._place(end)
        level = (last - first + 1).bit_length() - 1
        row = _row(self._high, level, max)
        return max(row[first], row[last - (1 << level) + 1])

    def first_above(self, bound: int) -> Span | None:
        """The first stretch in which the value is above `bound`, or None."""
        for place, value in enumerate(self._low[0]):
            if value > bound:
                before, after = (place - 1) // 2, place // 2
                start = self._stamps[before] if before >= 0 else -NEVER
                return (start, self._stamps[after] if after < len(self._stamps) else NEVER)
        return None


def _row(rows: list[list[int]], level: int, pick: Callable[[int, int], int]) -> list[int]:
    """The row that holds the pick of every 2**level neighbours, made when first asked for."""
    while len(rows) <= level:
        last, reach = rows[-1], 1 << (len(rows) - 1)
        rows.append(list(map(pick, last, last[reach:])))
    return rows[level]


def just_before(stamp: float) -> float:
    """The largest number below `stamp`: turns `x < stamp` into `x <= just_before(stamp)`."""
    return nextafter(stamp, -NEVER)


def just_after(stamp: float) -> float:
    """The smallest number above `stamp`: turns `y > stamp` into `y >= just_after(stamp)`."""
    return nextafter(stamp, NEVER)


def count_dominating(points: Sequence[Span], questions: Sequence[Span]) -> list[int]:
    """For each question (x, y), the number of points (px, py) with px <= x and py >= y."""
    heights = sorted({height for _, height in points})
    tree = [0] * (len(heights) + 1)
    waiting = sorted(points, key=itemgetter(0))
    answers, taken = [0] * len(questions), 0
    for index in sorted(range(len(questions)), key=lambda i: questions[i][0]):
        x, y = questions[index]
        while taken < len(waiting) and waiting[taken][0] <= x:
            _add(tree, len(heights) - bisect_left(heights, waiting[taken][1]))
            taken += 1
        answers[index] = _sum(tree, len(heights) - bisect_left(heights, y))
    return answers


def _add(tree: list[int], index: int) -> None:
    while index < len(tree):
        tree[index] += 1
        index += index & -index


def _sum(tree: list[int], index: int) -> int:
    total = 0
    while index > 0:
        total += tree[index]
        index -= index & -index
    return total
