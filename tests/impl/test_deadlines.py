"""One timer for all budgets, on virtual time."""

import asyncio

import pytest

from counterfoil_server.deadlines import Deadlines
from counterfoil_server.virtual_time import VirtualTimeLoop


@pytest.fixture
def loop():
    loop = VirtualTimeLoop()
    yield loop
    loop.close()


def passing(loop, ms):
    loop.run_until_complete(asyncio.sleep(ms / 1000))


def at(loop, act):
    """Do something on the loop."""

    async def main():
        return act()

    return loop.run_until_complete(main())


@pytest.fixture
def heard():
    return []


def test_each_is_told_once_when_its_time_is_over_and_in_order(loop, heard):
    deadlines = Deadlines(100, loop.clock, lambda key: heard.append((key, loop.clock())))
    began = loop.clock()
    at(loop, lambda: deadlines.add("a", began))
    passing(loop, 30)
    at(loop, lambda: deadlines.add("b", loop.clock()))
    passing(loop, 500)
    assert [key for key, _ in heard] == ["a", "b"]
    assert [when - began for _, when in heard] == [100, 130]
    assert len(deadlines) == 0


def test_what_ended_in_time_is_not_told_and_does_not_hold_up_the_others(loop, heard):
    deadlines = Deadlines(100, loop.clock, heard.append)
    at(loop, lambda: [deadlines.add(key, loop.clock()) for key in "abc"])
    deadlines.discard("a")
    deadlines.discard("a")
    passing(loop, 200)
    assert heard == ["b", "c"]


def test_renewed_means_from_now(loop, heard):
    deadlines = Deadlines(100, loop.clock, heard.append)
    at(loop, lambda: [deadlines.add(key, loop.clock()) for key in "ab"])
    passing(loop, 60)
    at(loop, lambda: deadlines.renew("a", loop.clock()))
    passing(loop, 60)
    assert heard == ["b"]
    passing(loop, 50)
    assert heard == ["b", "a"]


def test_ten_thousand_budgets_need_one_timer(loop, heard):
    deadlines = Deadlines(100, loop.clock, heard.append)
    at(loop, lambda: [deadlines.add(key, loop.clock()) for key in range(10_000)])
    assert len(loop._scheduled) == 1
    passing(loop, 200)
    assert heard == list(range(10_000))


@pytest.mark.parametrize("span_ms", [0, -1])
def test_without_a_budget_nothing_is_remembered(loop, heard, span_ms):
    deadlines = Deadlines(span_ms, loop.clock, heard.append)
    at(loop, lambda: deadlines.add("a", loop.clock()))
    assert len(deadlines) == 0


def test_who_is_told_may_add_again(loop, heard):
    def again(key):
        heard.append(key)
        if len(heard) < 3:
            deadlines.add(key, loop.clock())

    deadlines = Deadlines(10, loop.clock, again)
    at(loop, lambda: deadlines.add("a", loop.clock()))
    passing(loop, 1000)
    assert heard == ["a"] * 3
