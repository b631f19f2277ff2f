"""Small races worth walking whole: two or three threads, one or two operations each.

An operation is a message of the exec protocol. `as` names the job a submit admits, `$name` stands
for its id; an operation on a job that was not admitted is left out. `setup` comes before the
threads and `after` behind them, in sequence, and all of it is judged as one history.
"""

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from counterfoil_spec.ledger import Limits

__all__ = ["SCENARIOS", "Op", "Scenario"]

Op: TypeAlias = dict[str, Any]

# A budget no scenario lives to see: its timer goes off only when nothing else can happen.
LONG_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """One race. `lazy_timers`: no budget runs out while anything else can happen."""

    name: str
    limits: Limits
    threads: tuple[tuple[Op, ...], ...]
    setup: tuple[Op, ...] = ()
    after: tuple[Op, ...] = field(default=({"op": "depth"},))
    lazy_timers: bool = True


def _submit(name: str) -> Op:
    return {"op": "submit", "task_id": f"t-{name}", "payload": f"p-{name}", "as": name}


def _do(op: str, name: str, **args: Any) -> Op:
    return {"op": op, "job": f"${name}", **args}


def _finish(name: str) -> Op:
    return _do("finish", name, result=f"r-{name}")


def _fail(name: str) -> Op:
    return _do("fail", name, error=f"e-{name}")


def _timeout(name: str) -> Op:
    return _do("timeout", name, error=f"o-{name}")


def _reads(*names: str) -> tuple[Op, ...]:
    reads = [op for name in names for op in (_do("snapshot", name), _do("result", name))]
    return (*reads, {"op": "depth"})


_ONE: Final = Limits(max_queue=1, job_ttl_ms=1000, max_completed=1)
_TWO: Final = Limits(max_queue=2, job_ttl_ms=1000, max_completed=1)
_NONE_KEPT: Final = Limits(max_queue=2, job_ttl_ms=1000, max_completed=0)

SCENARIOS: Final = (
    Scenario(
        "submit || submit at the bound",
        _TWO,
        ((_submit("b"),), (_submit("c"),)),
        setup=(_submit("a"),),
        after=(*_reads("a", "b", "c"), _submit("d"), {"op": "depth"}),
    ),
    Scenario(
        "submit || submit || finish at the bound",
        _TWO,
        ((_submit("b"),), (_submit("c"),), (_finish("a"),)),
        setup=(_submit("a"),),
        after=_reads("b", "c"),
    ),
    Scenario(
        "finish || timeout",
        _ONE,
        ((_finish("a"),), (_timeout("a"),)),
        setup=(_submit("a"), _do("start", "a")),
        after=(*_reads("a"), _submit("b"), _submit("c"), {"op": "depth"}),
    ),
    Scenario(
        "finish || fail || read",
        _ONE,
        ((_finish("a"),), (_fail("a"),), (_do("snapshot", "a"), _do("result", "a"))),
        setup=(_submit("a"),),
        after=_reads("a"),
    ),
    Scenario(
        "start || fail",
        _ONE,
        ((_do("start", "a"),), (_fail("a"),)),
        setup=(_submit("a"),),
        after=_reads("a"),
    ),
    Scenario(
        "start || start || read",
        _ONE,
        ((_do("start", "a"),), (_do("start", "a"),), (_do("snapshot", "a"),)),
        setup=(_submit("a"),),
        after=_reads("a"),
    ),
    Scenario(
        "take || take",
        _ONE,
        ((_do("take_request", "a"),), (_do("take_request", "a"),)),
        setup=(_submit("a"),),
        after=(_do("take_request", "a"), *_reads("a")),
    ),
    Scenario(
        "finish || wait",
        _ONE,
        ((_finish("a"),), (_do("wait", "a", budget_ms=LONG_MS),)),
        setup=(_submit("a"), _do("start", "a")),
        after=_reads("a"),
    ),
    Scenario(
        "fail || wait || wait",
        _ONE,
        (
            (_fail("a"),),
            (_do("wait", "a", budget_ms=LONG_MS),),
            (_do("wait", "a", budget_ms=LONG_MS),),
        ),
        setup=(_submit("a"),),
        after=_reads("a"),
    ),
    Scenario(
        "finish || wait whose budget runs out",
        _ONE,
        ((_finish("a"),), (_do("wait", "a", budget_ms=0), _do("snapshot", "a"))),
        setup=(_submit("a"),),
        after=_reads("a"),
        lazy_timers=False,
    ),
    Scenario(
        "start || wait that nobody ends",
        _ONE,
        ((_do("start", "a"),), (_do("wait", "a", budget_ms=LONG_MS),)),
        setup=(_submit("a"),),
        after=_reads("a"),
    ),
    Scenario(
        "start, timeout || wait",
        _ONE,
        ((_do("start", "a"), _timeout("a")), (_do("wait", "a", budget_ms=LONG_MS),)),
        setup=(_submit("a"),),
        after=_reads("a"),
    ),
    Scenario(
        "submit with eviction || finish || read",
        _NONE_KEPT,
        ((_submit("c"),), (_finish("b"),), (_do("snapshot", "a"),)),
        setup=(_submit("a"), _submit("b"), _finish("a")),
        after=(*_reads("a", "b", "c"), _submit("d"), *_reads("a", "b")),
    ),
    Scenario(
        "submit with eviction || wait on the evicted",
        _NONE_KEPT,
        ((_submit("b"),), (_do("wait", "a", budget_ms=LONG_MS),)),
        setup=(_submit("a"), _finish("a")),
        after=_reads("a", "b"),
    ),
    Scenario(
        "finish || submit after a read",
        _ONE,
        ((_finish("a"),), (_do("snapshot", "a"), _submit("b"))),
        setup=(_submit("a"),),
        after=(*_reads("a", "b"), _submit("c"), {"op": "depth"}),
    ),
    Scenario(
        "finish || finish, then by count",
        _TWO,
        ((_finish("a"),), (_finish("b"),)),
        setup=(_submit("a"), _submit("b")),
        after=(_submit("c"), *_reads("a", "b", "c"), _fail("c"), _submit("d"), *_reads("b", "c")),
    ),
    Scenario(
        "depth || submit || finish",
        _TWO,
        (({"op": "depth"},), (_submit("b"),), (_finish("a"),)),
        setup=(_submit("a"),),
        after=_reads("a", "b"),
    ),
)
