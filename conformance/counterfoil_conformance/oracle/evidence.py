"""From calls to evidence: what each answer proves about its job, and when.

A *sight* is an answer about a job. Whatever the call was, it proves the same few things about the
instant, somewhere inside its interval, at which it took effect: how far along the job was at most
just before (`was`), how far along it was at least just after (`then`), whether the id was found.
So a read, an accepted finish and a refused finish are all evidence of one kind, and the rules need
not know the ops. Ranks are the order of observation of S5: 0 pending, 1 running, 2 terminal.

A `Life` is what one clock knows of one job: bounds on when it was admitted, when it ended and when
it was gone. Every bound is sound on its own; where nothing is known it is infinite. *Certainly
live* (C) is the open interval between `admitted_by` and `live_until`; *possibly live* (P) the
closed one between `admitted_from` and `ended_by`.

The traps. A wait that answers "running" took effect at an unknown instant of a long interval: it
proves the job live when the wait was *called*, no later. A 404 proves an end only if the id existed
before. A refused transition with a fence proves nothing, its lease may be stale.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from counterfoil_conformance.oracle.counting import NEVER, Span
from counterfoil_conformance.oracle.history import READS, TRANSITIONS, Call
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_spec.ledger import State

__all__ = ["Evidence", "Life", "Sight", "Story", "collect", "seen_state"]

_ENDS = TRANSITIONS - {"start"}
_STATES = {str(state): state for state in State}


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What one answer proves of its job.

    `was` is the most the job's rank can have been just before the effect, `then` the least it was
    just after; None: proves nothing. `found` is whether the id was known; None: cannot tell.
    """

    call: Call
    was: int | None = None
    then: int | None = None
    found: bool | None = None
    state: State | None = None

    @property
    def live(self) -> bool:
        """Whether the job was live at some instant of the call."""
        return self.was is not None and self.was < State.DONE.rank

    @property
    def ended(self) -> bool:
        """Whether the job was terminal, and there, at some instant of the call."""
        return self.then == State.DONE.rank


@dataclass(slots=True, eq=False)
class Story:
    """Everything a history says of one id: its submits (one, one hopes) and its sights."""

    job: str
    submits: list[Call] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    attempts: list[Call] = field(default_factory=list)
    unanswered: list[Call] = field(default_factory=list)
    known: bool = False

    def file(self, call: Call) -> None:
        """Add a call that speaks of the job."""
        if call.op in TRANSITIONS:
            self.attempts.append(call)
        if call.answered:
            self.sights.append(_sight(call))
        else:
            self.unanswered.append(call)

    @property
    def exists(self) -> bool:
        """Whether there ever was such a job: clients also ask for ids that nobody issued."""
        return bool(self.submits) or self.known or any(sight.found for sight in self.sights)

    @property
    def submit(self) -> Call | None:
        """The submit that issued the id, if it is in the history."""
        return self.submits[0] if self.submits else None


@dataclass(slots=True, eq=False)
class Life:
    """What one clock knows of one job; stamps in µs of that clock."""

    story: Story
    sights: list[Sight]
    unanswered: list[Call]
    admitted_from: float = -NEVER
    admitted_by: float = NEVER
    live_until: float = -NEVER
    ended_from: float = -NEVER
    ended_by: float = NEVER
    found_until: float = -NEVER
    asked_until: float = -NEVER
    gone_by: float = NEVER
    # The calls behind the bounds, for the proofs.
    last_live: Call | None = None
    first_end: Call | None = None
    last_found: Call | None = None
    first_gone: Call | None = None

    @property
    def certainly_live(self) -> Span:
        """C, open at both ends; empty where the start is not before the end."""
        return (self.admitted_by, self.live_until)

    @property
    def possibly_live(self) -> Span:
        """P, closed."""
        return (self.admitted_from, self.ended_by)


@dataclass(slots=True, eq=False)
class Evidence:
    """A history, sorted by what it is about."""

    setting: Setting
    stories: dict[str, Story]
    submits: list[Call]
    depths: list[Call]
    clocks: tuple[str, ...]

    def lives(self, clock: str) -> list[Life]:
        """What `clock` knows of every job that was issued, or found."""
        issued = (story for story in self.stories.values() if story.exists)
        return [_life(story, clock, self.setting) for story in issued]

    def careful(self, lives: Iterable[Life], contradicted: Collection[str]) -> list[Life]:
        """The lives, with nothing believed of the jobs that contradict themselves."""
        return [
            Life(life.story, [], [], admitted_from=life.admitted_from)
            if life.story.job in contradicted
            else life
            for life in lives
        ]

    def reads_of(self, clock: str) -> Iterator[Call]:
        """Every answered call that was stamped by `clock`, submits aside."""
        yield from (call for call in self.depths if call.clock_id == clock)
        for story in self.stories.values():
            yield from (s.call for s in story.sights if s.call.clock_id == clock)

    @property
    def lost(self) -> list[Call]:
        """Submits of which nobody knows whether they were admitted."""
        return [call for call in self.submits if not call.answered]


def collect(calls: Iterable[Call], setting: Setting) -> Evidence:
    """Sort the calls of a history by job, and read each answer as evidence."""
    stories: dict[str, Story] = {}
    submits: list[Call] = []
    depths: list[Call] = []
    nameless = False
    clocks: set[str] = set()

    def story(job: str) -> Story:
        if job not in stories:
            stories[job] = Story(job, known=job in setting.known)
        return stories[job]

    for call in calls:
        clocks.add(call.clock_id)
        if call.op == "submit":
            submits.append(call)
            if issued := issued_id(call):
                story(issued).submits.append(call)
        elif call.op == "depth":
            depths.append(call)
        elif call.job is not None:
            story(call.job).file(call)
        elif call.op in TRANSITIONS:
            nameless = True
    for one in stories.values():
        one.submits.sort(key=lambda call: call.call_us)
    if nameless:
        # Somebody may have started a job, and lost it, without anybody knowing which.
        setting = replace(setting, visible=False)
    return Evidence(setting, stories, submits, depths, tuple(sorted(clocks)))


def issued_id(call: Call) -> str | None:
    """The id that a submit was answered with."""
    job = (call.reply or {}).get("job")
    return job if isinstance(job, str) else None


def seen_state(call: Call) -> State | None:
    """The state that a read names, if it names one of the five."""
    reply = call.reply or {}
    if call.op == "result" and reply.get("status") == "ready":
        return State.DONE
    return _STATES.get(str(reply.get("state")))


def _sight(call: Call) -> Sight:
    reply = call.reply or {}
    if reply.get("unknown") is True or reply.get("status") == "not_found":
        return Sight(call, found=False)
    if call.op in READS:
        state = seen_state(call)
        if state is None:
            return Sight(call, found=True)
        return Sight(call, state.rank, state.rank, found=True, state=state)
    if call.op == "take_request":
        return Sight(call, found=True)
    if call.op in TRANSITIONS:
        return _transition(call, reply.get("accepted"))
    return Sight(call)


def _transition(call: Call, accepted: object) -> Sight:
    ends = call.op in _ENDS
    if accepted is True:
        return Sight(call, int(ends), 1 + int(ends), found=True)
    if accepted is False and "fence" not in call.args:
        return Sight(call, then=1 + int(ends))
    return Sight(call)


def _life(story: Story, clock: str, setting: Setting) -> Life:
    sights = [sight for sight in story.sights if sight.call.clock_id == clock]
    silent = [call for call in story.unanswered if call.clock_id == clock]
    life = Life(story, sights, silent)
    submit = story.submit
    if submit is not None and submit.clock_id == clock:
        life.admitted_from = life.live_until = submit.call_us
        life.admitted_by = submit.until_us
        life.last_live = submit
    elif story.known:
        life.admitted_by = -NEVER
    for sight in sights:
        if sight.found:
            life.admitted_by = min(life.admitted_by, sight.call.until_us)
    for sight in sights:
        _bound(life, sight)
    life.ended_from = life.live_until
    if setting.visible and submit is not None:
        _bound_by_attempts(life, clock)
    return life


def _bound(life: Life, sight: Sight) -> None:
    """Narrow the bounds by one sight."""
    call = sight.call
    if sight.live and call.call_us >= life.live_until:
        life.live_until, life.last_live = call.call_us, call
    issued = sight.found is True or call.call_us > life.admitted_by
    gone = issued and sight.found is False
    if gone and call.until_us < life.gone_by:
        life.gone_by, life.first_gone = call.until_us, call
    if (gone or (issued and sight.ended)) and call.until_us < life.ended_by:
        life.ended_by, life.first_end = call.until_us, call
    if sight.found is not None:
        life.asked_until = max(life.asked_until, call.call_us)
    if sight.found and call.call_us > life.found_until:
        life.found_until, life.last_found = call.call_us, call


def _bound_by_attempts(life: Life, clock: str) -> None:
    """Where every transition is a call, a job lives until one that may have ended it began."""
    ends = _possible_ends(life.story.attempts)
    if any(call.clock_id != clock for call in ends):
        return
    first = min((call.call_us for call in ends), default=NEVER)
    life.live_until = max(life.live_until, first)
    life.ended_from = max(life.ended_from, first)


def _possible_ends(attempts: Sequence[Call]) -> list[Call]:
    """The terminal calls that may have been the one that took effect."""
    ends = [call for call in attempts if call.op in _ENDS]
    accepted = [call for call in ends if (call.reply or {}).get("accepted") is True]
    if accepted:
        return accepted
    return [call for call in ends if not _refused(call)]


def _refused(call: Call) -> bool:
    reply = call.reply or {}
    return reply.get("accepted") is False or reply.get("unknown") is True
