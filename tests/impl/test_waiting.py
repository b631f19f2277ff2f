"""Waits on the loop: the mailbox between threads and loop, and what a waiter leaves behind."""

import asyncio
import sys
import threading

from counterfoil_server.ledger import JobLedger, Limits, State
from counterfoil_server.waiting import Mailbox, Waiters


def test_no_letter_is_lost_between_many_threads():
    """The order of look and put matters only when threads switch between the two: they do here."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        async def main():
            arrived = []
            mailbox = Mailbox(asyncio.get_running_loop())
            threads = [
                threading.Thread(
                    target=lambda n=n: [mailbox.post(arrived.append, (n, m)) for m in range(2000)]
                )
                for n in range(4)
            ]
            for thread in threads:
                thread.start()
            async with asyncio.timeout(60):
                while len(arrived) < 8000:  # noqa: ASYNC110 (threads have no event to set)
                    await asyncio.sleep(0.001)
            for n in range(4):
                assert [m for k, m in arrived if k == n] == list(range(2000))

        asyncio.run(main())
    finally:
        sys.setswitchinterval(before)


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
