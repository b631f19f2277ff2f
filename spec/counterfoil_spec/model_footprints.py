"""The ledger model searched fast: each action is run once for all the ledgers it cannot tell apart.

A start looks at one live job; that a hundred retained jobs lie beside it is nothing to it. So the
law is run here on ledgers of which only the part an action may look at is real. The rest is
*sealed*: other jobs are there, with ids of their own, but to read anything else of them, to count
them or to compare them raises `Looked`. An answer that comes back from such a run holds for every
ledger with that part, and it says where the sealed jobs are afterwards. Most of a search is then
putting such answers together.

    call                    what is real                          what is sealed
    on a live job           the live jobs, depth                  the retained jobs, sweeps owed
    admit                   the live jobs, depth, sweeps owed     the retained jobs
    on a retained job       that job                              all other jobs, depth, sweeps
    sweep                   completion times, sweeps owed         all else of every job, depth
    advance                 the clock                             every job, depth, sweeps owed
    on an unknown id        nothing                               every job, depth, sweeps owed

Properties are decided on the same footing, once for each answer.

Nothing is assumed about the law by this. If it looks where the table says it need not, or if an
answer moves sealed jobs about in another way than dropping some or appending to them, the state in
question is searched the plain way (`KeyModel`). The tests also compare the two state by state and
move by move. What sealing cannot see is a law that *iterates* over sealed jobs only to count them;
that is what the comparison is for.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from counterfoil_spec.invariants import LEDGER, Property
from counterfoil_spec.ledger import Job, Ledger, Step
from counterfoil_spec.model import (
    JOB_CALLS,
    LAW,
    Call,
    Key,
    KeyModel,
    Label,
    Law,
    Scope,
    judged,
    representative,
    seen_from,
)

__all__ = ["Code", "LedgerModel", "Looked"]

# A key in numbers: live kinds (sorted), retained kinds (oldest first), depth, sweeps owed.
Code: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int, int]
_Turn: TypeAlias = tuple[Label, tuple[int, ...], tuple[int, ...], int]

_UNKNOWN: Final = 10**9
_ABOUT_IDS: Final = frozenset({"ids_are_unique"})  # keys have none: decided on the full model


class Looked(TypeError):
    """The law, or a property, looked at what is sealed.

    A TypeError, because Python asks for a length before it iterates, and takes that for "none".
    """


class _Sealed:
    """A value of which nothing can be read; it can be passed on, and is equal to itself."""

    def __getattr__(self, name: str) -> Any:
        raise Looked(name)

    def __eq__(self, other: object) -> bool:
        return self is other or self._look()

    def __iter__(self) -> Iterator[object]:
        return iter(self._look())

    def _look(self, *_: object) -> Any:
        raise Looked("what is sealed")

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _look
    __bool__ = __len__ = __getitem__ = __index__ = __int__ = _look


class _Someone(_Sealed):
    """A job, or several in a row, of which nothing is known but the id and what is granted."""

    def __init__(self, **granted: object) -> None:
        self.__dict__.update(granted)

    def __eq__(self, other: object) -> bool:
        return self is other  # other jobs have other ids

    __hash__ = object.__hash__


class _Unsized(_Sealed):
    """Jobs in their order, of unknown number: `parts` are those that stand for them."""

    def __init__(self, *parts: object) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[object]:
        return iter(self.parts)

    def __eq__(self, other: object) -> bool:
        return self.parts == tuple(other) if isinstance(other, Iterable) else self._look()

    __hash__ = object.__hash__


_BEFORE: Any = _Someone(id=-1)
_AFTER: Any = _Someone(id=-2)
_OTHERS: Any = _Unsized(_Someone(id=-3))
_REST: Any = _Unsized(_BEFORE)
_UNSEEN: Any = _Sealed()
_NUMBER: Any = _Sealed()


class LedgerModel:
    """All ledgers of a scope, closed over unlimited submits and unlimited time; see the module.

    `bites` counts, per property, the distinct situations in which it had something to say.
    """

    def __init__(self, scope: Scope, law: Law = LAW, task_ids: tuple[str, ...] = ("task",)) -> None:
        self.scope = scope
        self._submits = [Call("admit", task_id=task_id) for task_id in task_ids]
        self.bites: Counter[str] = Counter()
        self._law = law
        self._limits = scope.limits
        self._plain = KeyModel(scope, law)
        self.kinds: list[Job] = []
        self._known: dict[Job, int] = {}
        self._on_live: dict[tuple[tuple[int, ...], int], list[_Turn]] = {}
        self._admits: dict[tuple[tuple[int, ...], int, int], list[tuple[Any, ...]]] = {}
        self._on_retained: dict[int, list[tuple[Label, int]]] = {}
        self._sweeps: dict[tuple[tuple[int, ...], int], tuple[Label, tuple[int, ...]]] = {}
        self._older: dict[int, int] = {}
        self._age: dict[int, int] = {}
        self._time: Label | None = None
        self._ill_live: dict[tuple[tuple[int, ...], int], tuple[str, ...]] = {}
        self._well: set[tuple[int, ...]] = set()
        self._by_retained: list[Property[Ledger]] = []
        self._by_both: list[Property[Ledger]] = []
        self._sort_properties()

    # What the checker asks

    def initial(self) -> Iterator[Code]:
        """The empty ledger."""
        for key in self._plain.initial():
            yield self.encode(key)

    def moves(self, code: Code) -> list[tuple[Label, Code]]:
        """Every call that changes something, or breaks something."""
        try:
            return self._moves(code)
        except Looked:
            moves = self._plain.moves(self.decode(code))
            return [(label, self.encode(target)) for label, target in moves]

    def of_state(self, code: Code) -> tuple[str, ...]:
        """Names of the broken properties of ledgers."""
        live, retained, depth, _ = code
        ill = self._ill_live.get((live, depth))
        if ill is None:
            part = self._ledger(self._jobs(live), _UNSEEN, depth)
            ill = self._ill_live[live, depth] = self._broken(self._by_live, part)
        if retained not in self._well:
            part = self._ledger(_UNSEEN, self._jobs(retained), _NUMBER)
            broken = self._broken(self._by_retained, part)
            if broken:
                return (*ill, *broken)
            self._well.add(retained)
        if self._by_both:
            whole = representative(self._limits, self.decode(code))
            return (*ill, *self._broken(self._by_both, whole))
        return ill

    def of_label(self, label: Label) -> tuple[str, ...]:
        """Names of the broken properties of moves."""
        return label.broken

    def encode(self, key: Key) -> Code:
        """A key in numbers."""
        live = tuple(sorted(map(self.number, key.live)))
        return live, tuple(map(self.number, key.retained)), key.depth, key.sweeps_owed

    def decode(self, code: Code) -> Key:
        """The key that the numbers stand for."""
        live, retained, depth, owed = code
        jobs = sorted((self.kinds[number] for number in live), key=repr)
        return Key(tuple(jobs), tuple(self.kinds[number] for number in retained), depth, owed)

    # Putting answers together

    def _moves(self, code: Code) -> list[tuple[Label, Code]]:
        live, retained, depth, owed = code
        moves: list[tuple[Label, Code]] = [
            (label, (live2, retained + tail, depth2, owed))
            for label, live2, tail, depth2 in self._turns_of_live(live, depth)
        ]
        for label, live2, depth2, owed2 in self._admissions(live, depth, owed):
            if self.scope.submitters:
                moves.append((label, (live2, retained, depth2, owed2)))
            else:
                swept, kept = self._swept(retained, owed2)
                if swept.broken:
                    label = label._replace(broken=label.broken + swept.broken)  # noqa: PLW2901
                moves.append((label, (live2, kept, depth2, owed)))
        if owed:
            label, kept = self._swept(retained, owed)
            moves.append((label, (live, kept, depth, owed - 1)))
        for at, kind in enumerate(retained):
            for label, kind2 in self._turns_of_retained(kind):
                changed = (*retained[:at], kind2, *retained[at + 1 :])
                moves.append((label, (live, changed, depth, owed)))
        older = tuple(map(self._aged, retained))
        waited = tuple(sorted(map(self._aged, live))) if self.scope.timeout_ms else live
        label = self._passing()
        if older != retained or waited != live or label.broken:
            moves.append((label, (waited, older, depth, owed)))
        return moves

    # Answers, each found once

    def _turns_of_live(self, live: tuple[int, ...], depth: int) -> list[_Turn]:
        turns = self._on_live.get((live, depth))
        if turns is None:
            ledger = self._ledger(self._jobs(live), _REST, depth)
            answers = self._unless_idle(
                ledger,
                [call._replace(job_id=job.id) for job in ledger.live for call in JOB_CALLS]
                + [call._replace(job_id=_UNKNOWN) for call in JOB_CALLS],
            )
            turns = [self._turn(label, step.ledger) for label, step in answers]
            turns = list(dict.fromkeys(turns))
            self._on_live[live, depth] = turns
        return turns

    def _turn(self, label: Label, after: Ledger) -> _Turn:
        """Where a call on a live job leads: the live jobs, those appended, the depth."""
        _same(after.sweeps_owed is _NUMBER)
        _same(after.now == 0)
        first, *tail = after.retained
        _same(first is _BEFORE)
        return label, self._sorted(after.live), tuple(map(self._seen, tail)), after.depth

    def _admissions(self, live: tuple[int, ...], depth: int, owed: int) -> list[tuple[Any, ...]]:
        turns = self._admits.get((live, depth, owed))
        if turns is None:
            turns = []
            if owed < max(self.scope.submitters, 1):
                ledger = self._ledger(self._jobs(live), _REST, depth, owed)
                for label, step in self._unless_idle(ledger, self._submits):
                    after = step.ledger
                    _same(after.retained is _REST)
                    name = "admit" if self.scope.submitters else "submit"
                    label_ = label._replace(action=name)
                    turn = (label_, self._sorted(after.live), after.depth, after.sweeps_owed)
                    turns.append(turn)
            self._admits[live, depth, owed] = turns
        return turns

    def _turns_of_retained(self, kind: int) -> list[tuple[Label, int]]:
        turns = self._on_retained.get(kind)
        if turns is None:
            job = self.kinds[kind]._replace(id=0)
            ledger = self._ledger(_OTHERS, _Unsized(_BEFORE, job, _AFTER), _NUMBER)
            answers = self._unless_idle(ledger, [call._replace(job_id=0) for call in JOB_CALLS])
            turns = [(label, self._replaced(ledger, step)) for label, step in answers]
            self._on_retained[kind] = turns
        return turns

    def _replaced(self, before: Ledger, step: Step) -> int:
        """What has become of the one retained job that a call was about."""
        after = step.ledger
        _same(after.sweeps_owed is _NUMBER and after.depth is _NUMBER and after.now == 0)
        _same(tuple(after.live) == tuple(before.live))
        parts = tuple(after.retained)
        _same(len(parts) == 3 and parts[0] is _BEFORE and parts[2] is _AFTER)
        return self._seen(parts[1])

    def _swept(self, retained: tuple[int, ...], owed: int) -> tuple[Label, tuple[int, ...]]:
        ages = tuple(map(self._age.__getitem__, retained))
        if (ages, owed) not in self._sweeps:
            jobs = [_Someone(id=at, completed_at=age) for at, age in enumerate(ages)]
            ledger = self._ledger(_OTHERS, tuple(jobs), _NUMBER, owed)
            step = Call("sweep").apply(self._law, ledger)
            _same(tuple(step.ledger.live) == tuple(_OTHERS))
            _same(step.ledger.depth is _NUMBER and step.ledger.sweeps_owed == owed - 1)
            _same(all(job in jobs for job in step.ledger.retained))
            label = judged(ledger, Call("sweep"), step, self.bites)
            left = tuple(job.id for job in step.ledger.retained)
            self._sweeps[ages, owed] = label, left
        label, left = self._sweeps[ages, owed]
        return label, tuple(map(retained.__getitem__, left))

    def _passing(self) -> Label:
        """The label of time passing, which changes nothing but the clock."""
        if self._time is None:
            ledger = self._ledger(_OTHERS, _REST, _NUMBER)
            step = Call("advance").apply(self._law, ledger)
            _same(step.ledger == ledger._replace(now=1))
            self._time = judged(ledger, Call("advance"), step, self.bites)
        return self._time

    def _aged(self, kind: int) -> int:
        older = self._older.get(kind)
        if older is None:
            self._passing()
            older = self.number(seen_from(self.kinds[kind], self._limits, 1))
            self._older[kind] = older
        return older

    def _unless_idle(self, ledger: Ledger, calls: Iterable[Call]) -> list[tuple[Label, Step]]:
        """The calls that change something or break something, with their answers."""
        answers = []
        for call in calls:
            step = call.apply(self._law, ledger)
            label = judged(ledger, call, step, self.bites)
            if label.broken or step.ledger != ledger:
                answers.append((label, step))
        return answers

    # Jobs as numbers

    def number(self, job: Job) -> int:
        """The number of a kind of job; `kinds` leads back."""
        number = self._known.setdefault(job, len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(job)
            self._age[number] = job.completed_at or 0
        return number

    def _seen(self, job: Any) -> int:
        _same(isinstance(job, Job))
        return self.number(seen_from(job, self._limits, 0))

    def _sorted(self, jobs: Iterable[Job]) -> tuple[int, ...]:
        return tuple(sorted(map(self._seen, jobs)))

    def _jobs(self, kinds: tuple[int, ...]) -> tuple[Job, ...]:
        return tuple(self.kinds[kind]._replace(id=id_) for id_, kind in enumerate(kinds))

    def _ledger(self, live: Any, retained: Any, depth: Any, owed: Any = _NUMBER) -> Ledger:
        return Ledger(self._limits, live, retained, depth, _UNKNOWN - 1, owed, 0)

    # Which part decides a property

    def _sort_properties(self) -> None:
        """Find out, by trying, which part of a ledger each property of ledgers looks at."""
        self._by_live = []
        empty = self._ledger((), _UNSEEN, 0), self._ledger(_UNSEEN, (), _NUMBER)
        for prop in LEDGER.values():
            if prop.name in _ABOUT_IDS:
                continue
            if not _looks(prop, empty[0]):
                self._by_live.append(prop)
            elif not _looks(prop, empty[1]):
                self._by_retained.append(prop)
            else:
                self._by_both.append(prop)

    def _broken(self, properties: Iterable[Property[Ledger]], part: Ledger) -> tuple[str, ...]:
        broken = []
        for prop in properties:
            if prop.when(part):
                self.bites[prop.name] += 1
                if not prop.holds(part):
                    broken.append(prop.name)
        return tuple(broken)


def _looks(prop: Property[Ledger], part: Ledger) -> bool:
    """Whether the property looks beyond the part."""
    try:
        prop.holds(part)
        prop.when(part)
    except Looked:
        return True
    return False


def _same(as_expected: bool) -> None:
    """The answer has the shape that can be put together; if not, the state is searched plainly."""
    if not as_expected:
        raise Looked("an answer of another shape")
