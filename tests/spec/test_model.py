"""The ledger's state graph: its counts, its reduction, the fast search against the plain one."""

import random

import pytest

from counterfoil_spec.checker import explore, unlike, wandered
from counterfoil_spec.invariants import JOB, LEDGER, MOVE
from counterfoil_spec.ledger import State
from counterfoil_spec.model import FullModel, Key, KeyModel, Scope, key, representative
from counterfoil_spec.model_footprints import LedgerModel
from counterfoil_spec.model_scopes import DEEP_FULL, FULL, GATE, pinned
from tests.spec.second_encoding import count

# What the unit tests search; the largest scopes are for `counterfoil model`.
QUICK = [scope for scope in FULL if pinned("full", scope) < 15_000]


def wander(model, walks, length):
    return wandered(model, random.Random(0), walks, length)


def name(scope):
    return f"{scope}-{scope.submitters}"


@pytest.mark.parametrize("scope", QUICK, ids=name)
def test_the_law_holds_in_every_ledger_and_their_number_is_pinned(scope):
    model = LedgerModel(scope)
    found = explore(model, judge=model)
    assert found.found == {}
    assert found.complete
    assert found.states == pinned("full", scope)


@pytest.mark.parametrize("scope", QUICK, ids=name)
def test_an_encoding_that_shares_nothing_with_the_spec_counts_the_same(scope):
    ours = pinned("full", scope)
    assert count(scope.max_queue, scope.max_completed, scope.job_ttl_ms, scope.submitters) == ours


def test_the_counts_that_the_contract_names_are_pinned():
    assert pinned("full", Scope(2, 1, 2, 0)) == 6_495
    assert pinned("full", Scope(2, 2, 2, 0)) == 70_215
    assert pinned("full", Scope(3, 2, 2, 0)) == 724_691
    assert Scope(3, 2, 2, 0) in DEEP_FULL
    assert {scope[:3] for scope in FULL} == {
        (q, c, t) for q in range(3) for c in range(3) for t in range(3)
    }
    assert all(pinned("full", scope) for scope in (*FULL, *DEEP_FULL))


def test_no_property_holds_of_nothing():
    bites = set()
    for scope in (Scope(0, 0, 0), Scope(1, 2, 1), Scope(2, 1, 0)):
        model = LedgerModel(scope)
        explore(model, judge=model)
        bites |= model.bites.keys()
    ids = FullModel(Scope(2, 1, 1))
    for ledger in explore(ids, limit=200).index:
        bites |= {prop.name for prop in LEDGER.values() if prop.when(ledger)}
    assert bites == JOB.keys() | LEDGER.keys() | MOVE.keys()


def test_nothing_about_ids_is_broken_where_there_are_ids():
    model = FullModel(Scope(2, 1, 1, 2))
    assert explore(model, judge=model, limit=600).found == {}


# The fast search against the plain one


@pytest.mark.parametrize(
    "scope",
    [Scope(1, 0, 1, 1), Scope(1, 1, 0, 0), Scope(2, 0, 1, 0), Scope(1, 0, 0, 2), Scope(2, 1, 0, 0)],
    ids=name,
)
def test_running_an_action_once_for_many_ledgers_gives_what_running_it_on_each_gives(scope):
    fast, plain = LedgerModel(scope), KeyModel(scope)
    slow = explore(plain, judge=plain)
    quick = explore(fast, judge=fast)
    assert (slow.states, slow.found) == (quick.states, quick.found)
    assert {fast.decode(code) for code in quick.index} == set(slow.index)
    for code in quick.index:
        moves = {(label, fast.decode(target)) for label, target in fast.moves(code)}
        assert moves == set(plain.moves(fast.decode(code)))


# The gate of the reduction


@pytest.mark.parametrize("scope", GATE, ids=name)
def test_all_full_ledgers_of_one_key_have_the_same_calls_replies_and_successors(scope):
    model = FullModel(scope, reads=True, judge=False)
    states = [*explore(model, limit=120).index, *wander(FullModel(scope, judge=False), 5, 25)]
    assert unlike(model, states, key, lambda k: representative(scope.limits, k)) is None


def blunt(drop):
    """The key with something dropped from every job, or from the whole."""

    def blunted(ledger):
        return drop(key(ledger))

    return blunted


def each_job(**fields):
    def drop(full: Key) -> Key:
        live = tuple(sorted((job._replace(**fields) for job in full.live), key=repr))
        return full._replace(live=live, retained=tuple(j._replace(**fields) for j in full.retained))

    return drop


def without_age(full: Key) -> Key:
    return full._replace(retained=tuple(job._replace(completed_at=0) for job in full.retained))


def without_order(full: Key) -> Key:
    return full._replace(retained=tuple(sorted(full.retained, key=repr)))


def all_pending(full: Key) -> Key:
    return full._replace(live=tuple(job._replace(state=State.PENDING) for job in full.live))


DROPPED = {
    "the age": without_age,
    "the completion order": without_order,
    "whether the payload was taken": each_job(payload="payload"),
    "whether a live job has started": all_pending,
    "how a job ended": lambda full: full._replace(
        retained=tuple(
            job._replace(state=State.DONE, result="", error=None) for job in full.retained
        )
    ),
    "the sweeps that are owed": lambda full: full._replace(sweeps_owed=0),
    "the live jobs": lambda full: full._replace(live=(), depth=0),
}


@pytest.mark.parametrize("what", DROPPED)
def test_the_gate_turns_red_when_the_key_drops(what):
    scope = Scope(2, 1, 1, 1)
    model = FullModel(scope, reads=True, judge=False)
    states = explore(model, limit=400).index
    odd = unlike(model, states, blunt(DROPPED[what]), lambda k: representative(scope.limits, k))
    assert odd is not None


def test_a_law_that_looks_where_it_should_not_is_searched_plainly():
    from counterfoil_spec import ledger as law

    def nosy(ledger, job_id, result=""):
        if any(job.state is State.FAILED for job in ledger.retained):
            return law.Step(ledger, law.Reply(law.Outcome.REFUSED), "S4", "somebody failed")
        return law.finish(ledger, job_id, result)

    changed = {name: entry.apply for name, entry in law.ACTIONS.items()} | {"finish": nosy}
    fast, plain = (kind(Scope(1, 1, 0, 0), changed) for kind in (LedgerModel, KeyModel))
    quick, slow = explore(fast, judge=fast), explore(plain, judge=plain)
    assert quick.states == slow.states
    assert (
        quick.found.keys()
        == slow.found.keys()
        == {
            "any_live_job_may_end",
            "an_unknown_id_is_not_found",
        }
    )
