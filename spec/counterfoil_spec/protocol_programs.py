"""The programs of the protocol's threads, its two correct forms, and its defects as tables.

A program is read from top to bottom like the code it stands for. Two correct forms of ending a job
are allowed by C5: to take the table mutex before the job's and append to the completion order
(`table_first`), or to record the completion on an atomic queue within the job's critical section
(`queued`). A variant replaces one program by another that differs in the one rule it breaks.

Scenarios are small on purpose: two to four threads about one to three jobs. Each is enough for the
properties that it names to be violated by somebody, and every property is tried by some scenario.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from counterfoil_spec.ledger import State
from counterfoil_spec.protocol import Cell, Frame, Memory, Program, ProtocolModel

__all__ = ["CORRECT", "SCENARIOS", "VARIANTS", "Programs", "Scenario", "Variant", "model_of"]

Programs: TypeAlias = Mapping[str, Program]

_ADMIT: Final = (
    "call",
    "load depth",
    "take place if unchanged",
    "lock table",
    "record job",
    "unlock table",
)

_SWEEP: Final = (
    "lock table",
    "drain",
    "lock victim",
    "erase victim",
    "unlock table",
    "return",
)

_QUEUED: Final[Programs] = MappingProxyType(
    {
        "submit": (*_ADMIT, *_SWEEP),
        "start": ("lock job", "leave unless pending", "publish running", "unlock job"),
        "end": (
            "lock job",
            "leave if terminal",
            "write payload",
            "queue completion",
            "release place",
            "publish",
            "ring",
            "unlock job",
        ),
        "read": ("lock job", "load payload", "load state", "unlock job"),
        "poll": ("poll", "poll", "load payload"),
        "wait": ("lock job", "look and register", "unlock job", "sleep"),
        "wait in budget": (
            "lock job",
            "look and register",
            "unlock job",
            "sleep or expire",
            "lock job",
            "unregister",
            "unlock job",
        ),
        "see it end, submit": (
            *("lock job", "load state", "unlock job", "leave unless ended"),
            *_ADMIT,
            *_SWEEP,
        ),
        "submit, see it": (*_ADMIT, *_SWEEP, "lock job", "load state", "unlock job"),
        "gauge": ("read depth", "call", "read depth"),
    }
)

_TABLE_FIRST: Final[Programs] = MappingProxyType(
    {
        **_QUEUED,
        "end": (
            "lock table",
            "lock job",
            "leave if terminal",
            "write payload",
            "append completion",
            "release place",
            "publish",
            "ring",
            "unlock job",
            "unlock table",
        ),
    }
)

# The two ways in which C5 lets a completion be recorded.
CORRECT: Final[Mapping[str, Programs]] = MappingProxyType(
    {"queued": _QUEUED, "table_first": _TABLE_FIRST}
)


class Variant(NamedTuple):
    """A defect: the programs it replaces, the clause it breaks, the properties that refute it.

    `seen` is what a user of the server would notice. `scenario` is where to look for its story.
    """

    name: str
    title: str
    breaks: tuple[str, ...]
    refuted_by: tuple[str, ...]
    scenario: str
    seen: str
    programs: Programs


def _without(program: Program, *names: str) -> Program:
    return tuple(name for name in program if name not in names)


def _swapped(program: Program, old: str, *new: str) -> Program:
    at = program.index(old)
    return (*program[:at], *new, *program[at + 1 :])


_END: Final = _QUEUED["end"]
_SUBMIT: Final = _QUEUED["submit"]

_VARIANTS: Final = (
    Variant(
        "D1",
        "state and payload are written under one lock and read without it",
        ("C1", "C2"),
        ("a_locked_read_is_whole",),
        "ending",
        "GET /jobs/{id} says done, yet the result is missing (or the other way round): "
        "a 409, or an empty 200, for a job that has finished.",
        {"read": ("load payload", "load state")},
    ),
    Variant(
        "D2",
        "depth is a plain integer that is read without synchronisation",
        ("C3",),
        ("a_read_depth_was_there",),
        "gauge",
        "The queue-depth gauge, and the 429 check, work with a number from the past.",
        {"gauge": ("read depth plainly", "call", "read depth plainly")},
    ),
    Variant(
        "D3",
        "the queue-full check and the increment are two steps",
        ("C3",),
        ("depth_never_passes_its_bound",),
        "admission",
        "Two clients submit at once while one place is left, and both get a 202.",
        {"submit": _swapped(_SUBMIT, "take place if unchanged", "take place")},
    ),
    Variant(
        "D4",
        "the state is published under one mutex, waiters are woken under another",
        ("C2",),
        ("a_waiter_is_woken",),
        "waiting",
        "GET /jobs/{id}/wait hangs until its budget runs out though the job has long finished.",
        {
            "end": _swapped(
                _without(_END, "unlock job"),
                "ring",
                "unlock job",
                "lock bell",
                "ring",
                "unlock bell",
            ),
            "wait": (
                "lock job",
                "look",
                "unlock job",
                "lock bell",
                "register",
                "unlock bell",
                "sleep",
            ),
        },
    ),
    Variant(
        "D5",
        "the completion order loses jobs that were running when they were the oldest",
        ("C5",),
        ("at_most_max_completed_remain",),
        "retention",
        "Finished jobs pile up: memory grows, and ids that should be gone answer for ever.",
        {
            "submit": _swapped(
                _swapped(_SUBMIT, "record job", "record job", "enter order"),
                "drain",
                "drop from order",
            ),
            "end": _without(_END, "queue completion"),
        },
    ),
    Variant(
        "reversed_lock_order",
        "an ending takes the job's mutex first and then the table's",
        ("C5",),
        ("deadlock",),
        "late_ending",
        "The whole ledger stands still: every request that needs the table hangs.",
        {
            "end": (
                "lock job",
                "lock table",
                *_without(_TABLE_FIRST["end"], "lock table", "lock job"),
            )
        },
    ),
    Variant(
        "notify_before_publish",
        "waiters are woken before the critical section that publishes the state",
        ("C2",),
        ("a_waiter_is_woken",),
        "waiting",
        "A waiter is woken, sees a running job, sleeps again, and nobody wakes it any more.",
        {"end": ("ring", *_without(_END, "ring"))},
    ),
    Variant(
        "release_before_guard",
        "the place is given back before the check that this is the first ending",
        ("C4",),
        ("a_place_is_released_once",),
        "ending",
        "A job that times out just as it finishes frees two places: the bound is passed later.",
        {"end": _swapped(_without(_END, "release place"), "lock job", "lock job", "release place")},
    ),
    Variant(
        "notify_one",
        "an ending wakes one waiter instead of all",
        ("C2",),
        ("all_waiters_are_woken",),
        "two_waiters",
        "Of two clients that wait for one job, one gets the answer, the other hangs.",
        {"end": _swapped(_END, "ring", "ring one")},
    ),
    Variant(
        "payload_after_publish",
        "the state is published before the payload is written",
        ("C1", "C2"),
        ("a_published_ending_has_its_payload",),
        "ending",
        "A poll without the mutex says done; the result it then reads is not there yet.",
        {"end": _swapped(_without(_END, "write payload"), "publish", "publish", "write payload")},
    ),
    Variant(
        "completion_after_unlock",
        "the completion is recorded after the job's mutex is released",
        ("C5",),
        ("at_most_max_completed_remain",),
        "retention",
        "A submit that begins after a job was seen done evicts one job too few.",
        {"end": (*_without(_END, "queue completion"), "queue completion")},
    ),
    Variant(
        "place_released_after_unlock",
        "the place is given back after the critical section that publishes the state",
        ("C4",),
        ("a_place_is_free_once_the_end_was_seen",),
        "place",
        "A client sees its job done, submits the next one, and is refused: the queue is full.",
        {"end": (*_without(_END, "release place"), "release place")},
    ),
    Variant(
        "status_read_without_mutex",
        "a client's status read passes by the mutex under which the place was given back",
        ("C4",),
        ("no_more_are_seen_live_than_places",),
        "overlap",
        "A client is admitted to the only place, and then still sees the job before it running.",
        {"submit, see it": (*_ADMIT, *_SWEEP, "load state")},
    ),
)
VARIANTS: Final[Mapping[str, Variant]] = MappingProxyType({v.name: v for v in _VARIANTS})


class Scenario(NamedTuple):
    """Some threads over one memory: (role, program, job, new job, outcome) each."""

    name: str
    story: str
    memory: Memory
    threads: tuple[tuple[str, str, int, int, State | None], ...]


_ABSENT, _PENDING = Cell(), Cell(State.PENDING)
_RUNNING: Final = Cell(State.RUNNING, starts=1)
_DONE: Final = Cell(
    State.DONE, State.DONE, starts=1, ends=(State.DONE,), completed=True, released=1
)


def _memory(*cells: Cell, max_queue: int = 1, max_completed: int = 0) -> Memory:
    listed = tuple(job for job, cell in enumerate(cells) if cell.state is not None)
    order = tuple(job for job in listed if cells[job].completed)
    live = len(listed) - len(order)
    return Memory(max_queue, max_completed, cells, live, listed=listed, order=order)


_RUNNER: Final = ("runner", "end", 0, 0, State.DONE)
_TIMER: Final = ("timer", "end", 0, 0, State.TIMEOUT)

_SCENARIOS: Final = (
    Scenario(
        "admission",
        "Two submitters want the last place while a runner ends the job that holds another.",
        _memory(_RUNNING, _ABSENT, _ABSENT, max_queue=2, max_completed=1),
        (
            ("submitter 1", "submit", 0, 1, None),
            ("submitter 2", "submit", 0, 2, None),
            _RUNNER,
        ),
    ),
    Scenario(
        "ending",
        "Runner and timer end the same job while one client reads it and another polls it.",
        _memory(_RUNNING),
        (_RUNNER, _TIMER, ("reader", "read", 0, 0, None), ("poller", "poll", 0, 0, None)),
    ),
    Scenario(
        "starting",
        "Two runners start the same job, and one of them ends it.",
        _memory(_PENDING),
        (
            ("starter 1", "start", 0, 0, None),
            ("starter 2", "start", 0, 0, None),
            _TIMER,
            ("poller", "poll", 0, 0, None),
        ),
    ),
    Scenario(
        "waiting",
        "One client waits for a job without limit while it starts and ends.",
        _memory(_PENDING),
        (("starter", "start", 0, 0, None), _RUNNER, ("waiter", "wait", 0, 0, None)),
    ),
    Scenario(
        "two_waiters",
        "Two clients wait for one job.",
        _memory(_RUNNING),
        (_RUNNER, ("waiter 1", "wait", 0, 0, None), ("waiter 2", "wait", 0, 0, None)),
    ),
    Scenario(
        "waiting_in_budget",
        "One client waits without limit, the other until its budget is spent.",
        _memory(_RUNNING),
        (
            _RUNNER,
            ("waiter 1", "wait", 0, 0, None),
            ("waiter 2", "wait in budget", 0, 0, None),
        ),
    ),
    Scenario(
        "place",
        "A client sees the only job end and submits the next one.",
        _memory(_RUNNING, _ABSENT),
        (_RUNNER, ("client", "see it end, submit", 0, 1, None)),
    ),
    Scenario(
        "overlap",
        "A client submits while the only job ends, and then looks at that job.",
        _memory(_RUNNING, _ABSENT, max_completed=1),
        (_RUNNER, ("visitor", "submit, see it", 0, 1, None)),
    ),
    Scenario(
        "retention",
        "Two submits while a runner ends the oldest job; nothing is to be retained.",
        _memory(_RUNNING, _DONE, _ABSENT, _ABSENT, max_queue=3)._replace(order=(1,)),
        (
            _RUNNER,
            ("submitter 1", "submit", 0, 2, None),
            ("submitter 2", "submit", 0, 3, None),
        ),
    ),
    Scenario(
        "late_ending",
        "A submit evicts a job while the timer tries, too late, to end it.",
        _memory(_DONE, _ABSENT),
        (("timer", "end", 0, 0, State.TIMEOUT), ("submitter", "submit", 0, 1, None)),
    ),
    Scenario(
        "gauge",
        "A gauge reads depth, twice, while a job is admitted.",
        _memory(_ABSENT),
        (("submitter", "submit", 0, 0, None), ("gauge", "gauge", 0, 0, None)),
    ),
)
SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType({s.name: s for s in _SCENARIOS})


def model_of(
    scenario: Scenario, programs: Programs, variant: Variant | None = None
) -> ProtocolModel:
    """The model of a scenario, with a correct form of the protocol or a defect in it.

    In D5 the order of eviction is that of submission, so it begins with all jobs.
    """
    chosen = {**programs, **(variant.programs if variant else {})}
    memory = scenario.memory
    if "enter order" in chosen["submit"]:
        memory = memory._replace(order=memory.listed)
    frames = [
        Frame(role, chosen[program], job, new, outcome)
        for role, program, job, new, outcome in scenario.threads
    ]
    return ProtocolModel(memory, frames)
