"""One job in detail, the others as counts of ages: deeper scopes, and what happens eventually.

A law that treats all jobs alike cannot tell which of the *others* was done and which had failed,
whose payload was taken and who was only pending. So one job is tagged (by its task id) and followed
in full; of the others remain how many are live, and how many completed how long ago before and
after it. The state graph shrinks by orders of magnitude, and 3/3/3 is in reach.

As with every reduction, this one is checked and not argued: every ledger of the full detail has the
same moves, up to this view, as the one that stands for it here (`checker.unlike`).

Liveness needs this model, too. In a graph where jobs are interchangeable, a job that is for ever
overtaken by others looks like progress; the tagged job is outside of that symmetry and cannot hide.

The waiter stands beside the ledger: it asks once, and from then on is told as soon as the law's
answer is anything but "blocked". Its budget is unlimited here, so that nothing but the end of the
job can rescue it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from counterfoil_spec.checker_liveness import Eventually, Fairness
from counterfoil_spec.ledger import Job, Ledger, Outcome, State, is_overdue, wait
from counterfoil_spec.model import LAW, Label, Law, Scope
from counterfoil_spec.model_footprints import Code, LedgerModel

__all__ = ["ALL_LIVENESS", "Tag", "TaggedModel", "TaggedState", "liveness"]

_TAG: Final = "tagged"
_OTHER: Final = "task"


class Tag(NamedTuple):
    """What is known of the tagged job: None before its admission and again once it is gone."""

    admitted: bool
    job: Job | None
    waiter: str = ""

    @property
    def live(self) -> bool:
        """Whether it is pending or running."""
        return self.job is not None and not self.job.state.terminal


class TaggedState(NamedTuple):
    """A ledger in numbers (see `model_footprints.Code`), and the tagged job in it."""

    code: Code
    tag: Tag


class TaggedModel:
    """All ledgers of a scope with one job tagged; `waiting` adds a waiter for it."""

    def __init__(self, scope: Scope, law: Law = LAW, *, waiting: bool = False) -> None:
        self.scope = scope
        self.ledgers = LedgerModel(scope, law, task_ids=(_OTHER, _TAG))
        self._waiting = waiting
        self._plain_number: dict[int, int] = {}

    def initial(self) -> Iterator[TaggedState]:
        """The empty ledger; the tagged job is still to come."""
        for code in self.ledgers.initial():
            yield TaggedState(code, Tag(admitted=False, job=None))

    def moves(self, state: TaggedState) -> Iterator[tuple[Label, TaggedState]]:
        """The moves of the ledger, without those of which this view shows nothing."""
        code, tag = state
        for label, target in self.ledgers.moves(code):
            entering = label.shown is not None and label.shown.task_id == _TAG
            if label.job is None and entering and tag.admitted:
                continue
            view = self.view(target, tag, entering=entering)
            if view != state or label.broken:
                yield self._blurred(label), view
        if self._waiting:
            yield from self._waits(state)

    def of_state(self, state: TaggedState) -> tuple[str, ...]:
        """Names of the broken properties of ledgers."""
        return self.ledgers.of_state(state.code)

    def of_label(self, label: Label) -> tuple[str, ...]:
        """Names of the broken properties of moves."""
        return label.broken

    def view(self, code: Code, tag: Tag, *, entering: bool = False) -> TaggedState:
        """The ledger with all jobs but the tagged one made alike."""
        live, retained, depth, owed = code
        kinds = self.ledgers.kinds
        job = next((kinds[n] for n in (*live, *retained) if kinds[n].task_id == _TAG), None)
        seen = tuple(sorted(map(self._alike, live))), tuple(map(self._alike, retained))
        return TaggedState((*seen, depth, owed), Tag(tag.admitted or entering, job, tag.waiter))

    def _alike(self, number: int) -> int:
        alike = self._plain_number.get(number)
        if alike is None:
            alike = self.ledgers.number(_alike(self.ledgers.kinds[number]))
            self._plain_number[number] = alike
        return alike

    def _blurred(self, label: Label) -> Label:
        job, shown = label.job, label.shown
        return label._replace(job=job and _alike(job), shown=shown and _alike(shown))

    def _waits(self, state: TaggedState) -> Iterator[tuple[Label, TaggedState]]:
        """The waiter asks while the job is recorded, and is told as soon as there is an answer."""
        tag = state.tag
        if not tag.admitted:
            return
        there = () if tag.job is None else (tag.job._replace(id=0),)
        answer = wait(Ledger(self.scope.limits, live=there), 0, 0, 1).reply
        label = Label("wait", tag.job, answer.outcome, tag.job)
        if tag.waiter == "":
            yield label, state._replace(tag=tag._replace(waiter="waiting"))
        elif tag.waiter == "waiting" and answer.outcome is not Outcome.BLOCKED:
            told = label._replace(action="told")
            yield told, state._replace(tag=tag._replace(waiter="told"))


def _alike(job: Job) -> Job:
    """Any job but the tagged one, as good as any other of its age."""
    if job.task_id == _TAG:
        return job
    if job.state.terminal:
        return job._replace(state=State.DONE, payload="payload", result="", error=None)
    return job._replace(state=State.PENDING, payload="payload", submitted_at=0)


# What happens eventually, and what has to be fair for it


def _of_tagged(*actions: str) -> Fairness[Label]:
    def takes(label: Label) -> bool:
        return label.action in actions and label.job is not None and label.job.task_id == _TAG

    return Fairness(" or ".join(actions) + " of the job", takes)


def _of_anyone(*actions: str) -> Fairness[Label]:
    return Fairness(" or ".join(actions), lambda label: label.action in actions)


_RUNNER: Final = _of_tagged("finish", "fail")
_RUNNERS: Final = _of_anyone("finish", "fail", "time_out")
_WAITER: Final = _of_anyone("told")


def liveness(scope: Scope) -> tuple[Eventually[TaggedState, Label], ...]:
    """The properties of what happens eventually; those of the budget where the scope has one."""
    limits = scope.limits

    def overdue(job: Job | None) -> bool:
        return job is not None and is_overdue(job, limits, 0)

    budget: Fairness[Label] = Fairness(
        "time_out of an overdue job",
        lambda label: label.action == "time_out" and overdue(label.job),
    )
    always: tuple[Eventually[TaggedState, Label], ...] = (
        Eventually(
            "every_admitted_job_ends_if_its_run_ends",
            ("S9", "S3"),
            when=lambda state: state.tag.live,
            then=lambda state: not state.tag.live,
            under=(_RUNNER,),
        ),
        Eventually(
            "every_waiter_is_told",
            ("W2", "W6", "W7"),
            when=lambda state: state.tag.waiter == "waiting",
            then=lambda state: state.tag.waiter == "told",
            under=(_RUNNER, _WAITER),
        ),
        Eventually(
            "a_full_queue_has_room_again",
            ("A5", "A11"),
            when=lambda state: state.code[2] >= max(scope.max_queue, 1),
            then=lambda state: state.code[2] < scope.max_queue,
            under=(_RUNNERS,),
        ),
        Eventually(
            "a_job_past_its_ttl_goes_while_submits_come",
            ("R3",),
            when=lambda state: _is_old(state.tag.job, scope),
            then=lambda state: state.tag.job is None,
            under=(_RUNNERS, _of_anyone("admit", "submit"), _of_anyone("sweep", "submit")),
        ),
    )
    if scope.timeout_ms <= 0:
        return always
    return (
        *always,
        Eventually(
            "an_overdue_job_ends_though_its_run_does_not",
            ("S9", "T1", "T6"),
            when=lambda state: overdue(state.tag.job),
            then=lambda state: not state.tag.live,
            under=(budget,),
        ),
    )


def _is_old(job: Job | None, scope: Scope) -> bool:
    return job is not None and -(job.completed_at or 0) > scope.job_ttl_ms


ALL_LIVENESS: Final = tuple(goal.name for goal in liveness(Scope(1, 1, 1, timeout_ms=1)))
