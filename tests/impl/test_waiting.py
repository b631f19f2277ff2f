"""Waits on the loop: the mailbox between threads and loop, and what a waiter leaves behind."""

import asyncio
import contextlib
import threading

from counterfoil_server.ledger import JobLedger, Limits, State
from counterfoil_server.waiting import Mailbox, Waiters


class Careless(Mailbox):
    """Puts the letter in first and then looks whether it is the only one: two steps."""

    def post(self, call, *words):
        self._calls.append((call, words))
        if len(self._calls) == 1:
            self._loop.call_soon_threadsafe(self._empty)


def arrivals(kind):
    """What arrives of two letters, when each thread that has put one in waits for the other's."""
    barrier = threading.Barrier(2)

    class Meeting(list):
        def append(self, letter):
            super().append(letter)
            with contextlib.suppress(threading.BrokenBarrierError):
                barrier.wait(0.3)

    async def main():
        arrived = []
        mailbox = kind(asyncio.get_running_loop())
        mailbox._calls = Meeting()
        posts = [asyncio.to_thread(mailbox.post, arrived.append, n) for n in range(2)]
        await asyncio.gather(*posts)
        await asyncio.sleep(0.01)
        return sorted(arrived)

    return asyncio.run(main())


def test_of_two_letters_put_in_at_once_one_rings():
    assert arrivals(Careless) == [], "the fault that this would find"
    assert arrivals(Mailbox) == [0, 1]


def test_letters_of_many_threads_all_arrive_and_each_threads_in_order():
    async def main():
        arrived = []
        mailbox = Mailbox(asyncio.get_running_loop())

        def post_all(n):
            for m in range(2000):
                mailbox.post(arrived.append, (n, m))

        await asyncio.gather(*(asyncio.to_thread(post_all, n) for n in range(4)))
        await asyncio.sleep(0.01)
        for n in range(4):
            assert [m for k, m in arrived if k == n] == list(range(2000))

    asyncio.run(main())


def test_a_thousand_letters_ring_once():
    async def main():
        loop = asyncio.get_running_loop()
        mailbox, rings = Mailbox(loop), []
        ring = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *words: (rings.append(1), ring(*words))
        got = []
        for n in range(1000):
            mailbox.post(got.append, n)
        await asyncio.sleep(0.01)
        assert got == list(range(1000)) and len(rings) == 1

    asyncio.run(main())


def test_a_letter_to_a_closed_loop_is_dropped():
    loop = asyncio.new_event_loop()
    mailbox = Mailbox(loop)
    loop.close()
    mailbox.post(print, "nobody")


def waiting(act):
    """Run `act(ledger, waiters, woken)` on a loop, with one pending job."""

    async def main():
        ledger, woken = JobLedger(Limits(max_queue=10)), []
        mailbox = Mailbox(asyncio.get_running_loop())
        await act(ledger, Waiters(ledger, mailbox, woken.append), woken)

    asyncio.run(main())


def test_a_thousand_waiters_hear_of_an_end_on_another_thread():
    async def act(ledger, waiters, woken):
        job_id = ledger.submit("t", "p")
        tasks = [asyncio.create_task(waiters.wait(job_id, 60_000)) for _ in range(1000)]
        await asyncio.sleep(0)
        assert waiters.blocked == 1000
        threading.Thread(target=ledger.finish, args=(job_id, "r")).start()
        seen = await asyncio.gather(*tasks)
        assert {one.state for one in seen} == {State.DONE}
        assert waiters.blocked == 0 and len(woken) == 1000 and min(woken) >= 0

    waiting(act)


def test_a_wait_that_is_cancelled_or_over_leaves_nothing_behind():
    async def act(ledger, waiters, woken):
        job_id = ledger.submit("t", "p")
        task = asyncio.create_task(waiters.wait(job_id, 60_000))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await waiters.wait(job_id, 1)).state is State.PENDING
        assert waiters.blocked == 0 and not ledger._jobs[job_id].watches and not woken

    waiting(act)


def test_a_wait_on_nothing_or_on_what_has_ended_does_not_block():
    async def act(ledger, waiters, woken):
        assert await waiters.wait("job_none", 60_000) is None
        job_id = ledger.submit("t", "p")
        ledger.fail(job_id, "no")
        assert (await waiters.wait(job_id, 60_000)).state is State.FAILED
        assert not woken

    waiting(act)
