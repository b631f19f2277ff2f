"""The whole-ledger search: is there any order of the calls in which every answer is right?

For a short history the question can be settled by trying (Wing and Gong, with the memory of Lowe):
take any point that may come next in real time, ask the law whether the answer fits, go on; never
visit the same set of points with the same ledger twice. If no order works, none exists, and the
history is refuted by exhaustion. If the search reaches its cap the answer is UNKNOWN.

Two things keep it small. A read that fits now is taken at once: it changes nothing, so waiting
could not help. And steps nobody recorded are taken as late as can be: a job starts unseen when a
read needs it running, ends unseen when a read, a place or a sweep needs it ended.

Time is taken out. If the clock is driven (`advance` is a call) ages are exact; if the whole history
is shorter than the TTL nothing grows old; otherwise any terminal job may or may not have.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Final, TypeAlias

from counterfoil_conformance.oracle.blame import Rejection
from counterfoil_conformance.oracle.evidence import seen_state
from counterfoil_conformance.oracle.findings import describe
from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.points import Point, points_of
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_conformance.oracle.successors import Asked, blame, may_sweep, successors, sweeps
from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Ledger, Limits, State, empty_ledger

__all__ = ["DEFAULT_CAP", "Explanation", "Found", "explain", "may_age"]

# States to visit before giving up: some seconds.
DEFAULT_CAP: Final = 200_000
# An age beyond any history.
_NEVER_MS: Final = 1 << 62

_State: TypeAlias = tuple[int, Ledger]


class Found(StrEnum):
    """How the search ended."""

    EXPLAINED = "explained"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer of the search.

    Args:
        found: EXPLAINED: `order` is an order in which all answers are right. REFUTED: no order
            works; `order` is the longest that does, and `blocked` says of every call that could
            come next which clause forbids its answer there. UNKNOWN: `why` it was not decided.
        order: the points taken, as text.
        blocked: (clause, call and why) of each.
        clause: the clause to blame first, if refuted.
        states: how many states were visited.
    """

    found: Found
    order: tuple[str, ...] = ()
    blocked: tuple[tuple[str, str], ...] = ()
    clause: str = ""
    states: int = 0
    why: str = ""


def explain(calls: Sequence[Call], setting: Setting, cap: int = DEFAULT_CAP) -> Explanation:
    """Search for an order that explains a history of a ledger that was empty at first.

    Args:
        calls: the history; every submit that was made must be in it.
        setting: must be exclusive and name `max_queue` and `max_completed`.
        cap: how many states may be visited.
    """
    lack = _lack(calls, setting)
    if lack:
        return Explanation(Found.UNKNOWN, why=lack)
    return _Search(calls, setting, cap).run()


def _lack(calls: Sequence[Call], setting: Setting) -> str:
    """Why the history cannot be searched, if it cannot."""
    used_before = setting.live_before or setting.ended_before != 0 or setting.known
    if not setting.exclusive or used_before:
        return "others may have used the ledger, or it was not empty at first"
    if setting.max_queue is None or setting.max_completed is None:
        return "the limits are not known"
    ids = [(call.reply or {}).get("job") for call in calls if call.op == "submit"]
    issued = [job for job in ids if job is not None]
    if len(issued) != len(set(issued)):
        return "an id was issued twice (A8)"
    lost = any(call.op == "submit" and not call.answered for call in calls)
    if lost and any(_tells_of(call) for call in calls if call.job not in set(issued)):
        return "an id was found that an unanswered submit may have issued"
    return ""


def _tells_of(call: Call) -> bool:
    """Whether the answer shows that the id was known."""
    reply = call.reply or {}
    absent = reply.get("unknown") is True or reply.get("status") == "not_found"
    refused = reply.get("accepted") is False
    return call.job is not None and call.answered and not absent and not refused


class _Search:
    """One depth-first search."""

    def __init__(self, calls: Sequence[Call], setting: Setting, cap: int) -> None:
        self.points = points_of(calls)
        self.required = sum(1 << i for i, p in enumerate(self.points) if not p.optional)
        self.visible = setting.visible
        self.cap = cap
        self.seen: set[_State] = set()
        driven = any(call.op == "advance" for call in calls)
        self.ages = not driven and may_age(calls, setting)
        self.wire_ages = self.ages and setting.wire
        assert setting.max_queue is not None and setting.max_completed is not None
        ttl = int(setting.job_ttl_ms or 0) if driven else _NEVER_MS
        self.start = empty_ledger(Limits(setting.max_queue, ttl, setting.max_completed))
        self.outcomes = _outcomes(self.points)
        self.best: tuple[int, Ledger, tuple[int, ...]] = (0, self.start, ())

    def run(self) -> Explanation:
        # Depth-first with a stack of its own: the recursion would be as deep as the history.
        stack: list[tuple[int, Ledger, tuple[int, ...]]] = [(0, self.start, ())]
        while stack:
            done, ledger, order = self._read_ahead(*stack.pop())
            if done & self.required == self.required:
                return Explanation(Found.EXPLAINED, self._told(order), states=len(self.seen))
            if (done, ledger) in self.seen:
                continue
            if len(self.seen) >= self.cap:
                why = f"no order was found among the first {self.cap} states"
                return Explanation(Found.UNKNOWN, states=self.cap, why=why)
            self.seen.add((done, ledger))
            if len(order) > len(self.best[2]):
                self.best = (done, ledger, order)
            stack.extend(self._next(done, ledger, order))
        return self._refuted()

    def _read_ahead(
        self, done: int, ledger: Ledger, order: tuple[int, ...]
    ) -> tuple[int, Ledger, tuple[int, ...]]:
        """Take every read that may come next and fits as things are."""
        again = True
        while again:
            again = False
            for index in self._eligible(done):
                point = self.points[index]
                if point.pure and blame(ledger, point.asked) is None:
                    done, order, again = done | 1 << index, (*order, index), True
        return done, ledger, order

    def _eligible(self, done: int) -> Iterator[int]:
        for index, point in enumerate(self.points):
            if not (done >> index & 1 or point.before & ~done):
                yield index

    def _next(
        self, done: int, ledger: Ledger, order: tuple[int, ...]
    ) -> list[tuple[int, Ledger, tuple[int, ...]]]:
        """The states one step on; the most urgent point last, so that it is tried first."""
        urgent = sorted(
            self._eligible(done), key=lambda i: self.points[i].call.until_us, reverse=True
        )
        return [
            (done | 1 << index, after, (*order, index))
            for index in urgent
            for after in self._after(ledger, self.points[index])
        ]

    def _after(self, ledger: Ledger, point: Point) -> Iterator[Ledger]:
        """Every ledger after one point, unseen steps before it included."""
        for ready in self._prepared(ledger, point):
            match point.asked.op:
                case "sweep":
                    yield from self._swept(ready, must=True)
                case "may_sweep":
                    yield from self._swept(ready, must=False)
                case "admit" if point.asked.reply is None:
                    yield from _admitted(ready, point.asked)
                case _:
                    yield from successors(ready, point.asked)

    def _swept(self, ledger: Ledger, *, must: bool) -> Iterator[Ledger]:
        if self.ages:
            keep = max(ledger.limits.max_completed, 0) if must else len(ledger.retained)
            for size in range(min(keep, len(ledger.retained)) + 1):
                for kept in combinations(ledger.retained, size):
                    yield ledger._replace(retained=kept)
        else:
            yield from sweeps(ledger) if must else may_sweep(ledger)

    # Steps that nobody recorded

    def _prepared(self, ledger: Ledger, point: Point) -> Iterator[Ledger]:
        """The ledger as it is, and as unseen starts, ends and evictions by age may have made it."""
        yield ledger
        job = ledger.find(point.asked.number_or_none)
        if self.wire_ages and job is not None and job.state.terminal and _asks_gone(point):
            kept = tuple(other for other in ledger.retained if other.id != job.id)
            yield ledger._replace(retained=kept)
        if self.visible:
            return
        if job is None:
            for count in self._unseen_ends(ledger, point.asked):
                for ending in combinations(ledger.live, count):
                    yield self._ended(ledger, ending)
        elif not job.state.terminal:
            yield from self._unseen_steps(ledger, point, job)

    @staticmethod
    def _unseen_ends(ledger: Ledger, asked: Asked) -> Iterable[int]:
        """How many jobs may have to end unseen before a point that speaks of none."""
        reply = asked.reply or {}
        match asked.op:
            case "sweep" | "may_sweep":
                return range(1, len(ledger.live) + 1)
            case "admit" if reply.get("refused") is not True:
                return range(1, min(1, len(ledger.live)) + 1)
            case "depth" if isinstance(reply.get("depth"), int):
                return [ending for ending in (ledger.depth - reply["depth"],) if ending > 0]
            case _:
                return ()

    def _unseen_steps(self, ledger: Ledger, point: Point, job: Job) -> Iterator[Ledger]:
        """The step of a live job that nobody recorded, where the answer needs one."""
        state, refused = seen_state(point.call), (point.asked.reply or {}).get("accepted") is False
        if state is State.RUNNING or (refused and point.asked.op == "start"):
            yield law.start(ledger, job.id).ledger
        if refused or (state is not None and state.terminal):
            yield self._ended(ledger, (job,))
        if self.wire_ages and _asks_gone(point):
            ended = self._ended(ledger, (job,))
            kept = tuple(other for other in ended.retained if other.id != job.id)
            yield ended._replace(retained=kept)

    def _ended(self, ledger: Ledger, jobs: Iterable[Job]) -> Ledger:
        """The ledger after these jobs have ended, each as the history shows it."""
        for job in jobs:
            state, result = self.outcomes.get(job.id, (State.DONE, None))
            if state is State.DONE:
                ledger = law.finish(ledger, job.id, "?" if result is None else result).ledger
            elif state is State.FAILED:
                ledger = law.fail(ledger, job.id).ledger
            else:
                ledger = law.time_out(ledger, job.id).ledger
        return ledger

    # The answer

    def _told(self, order: Iterable[int]) -> tuple[str, ...]:
        return tuple(
            f"{self.points[index].asked.op}: {describe(self.points[index].call)}" for index in order
        )

    def _refuted(self) -> Explanation:
        done, ledger, order = self.best
        blocked: list[tuple[str, str]] = []
        urgent = sorted(self._eligible(done), key=lambda i: self.points[i].call.until_us)
        for index in urgent:
            point = self.points[index]
            rejection: Rejection | None = blame(ledger, point.asked)
            if rejection is not None and not point.optional:
                why = f"{describe(point.call)}: {rejection.why}"
                blocked.append((_clause_of(rejection, point), why))
        clause = blocked[0][0] if blocked else ""
        return Explanation(Found.REFUTED, self._told(order), tuple(blocked), clause, len(self.seen))


def _clause_of(rejection: Rejection, point: Point) -> str:
    """An id that was issued and is unknown was evicted: finding it breaks R7, not S8."""
    issued = point.asked.number is not None
    return "R7" if issued and rejection.clause in ("S8", "G3") else rejection.clause


def _asks_gone(point: Point) -> bool:
    reply = point.asked.reply or {}
    return reply.get("unknown") is True or reply.get("status") == "not_found"


def _admitted(ledger: Ledger, asked: Asked) -> Iterator[Ledger]:
    """An unanswered submit that is admitted: its sweep is a point of its own."""
    bound = Asked("admit", asked.number, asked.args, {"job": "?"})
    yield from successors(ledger, bound)


def _outcomes(points: Iterable[Point]) -> dict[int, tuple[State, str | None]]:
    """How each job is seen to have ended, and with which result."""
    found: dict[int, tuple[State, str | None]] = {}
    for point in points:
        state = seen_state(point.call) if point.pure else None
        if point.asked.number is not None and state is not None and state.terminal:
            found.setdefault(point.asked.number, (state, None))
    return found


def may_age(calls: Sequence[Call], setting: Setting) -> bool:
    """Whether the history lasts long enough for a terminal job to be past its TTL."""
    young = setting.surely_young_us
    if young is None or len({call.clock_id for call in calls}) > 1:
        return True
    stamps = [call.call_us for call in calls]
    stamps += [call.return_us for call in calls if call.return_us is not None]
    return not stamps or max(stamps) - min(stamps) > young
