"""Workers, stuck ones included, and budgets over HTTP with the probe model (Q4, T)."""

import base64
import json
import socket
import threading

import pytest

from counterfoil_server.models import Stop
from counterfoil_server.workers import WorkerPool


class Piece:
    def __init__(self, act):
        self.act = act
        self.stop = Stop()

    def run(self):
        self.act()


@pytest.fixture
def pool():
    made = []

    def make(size, max_stuck=4):
        made.append(WorkerPool(size, max_stuck))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_work_runs_in_the_order_it_was_put(pool):
    order, over = [], threading.Event()
    one = pool(1)
    for n in range(20):
        one.put(Piece(lambda n=n: order.append(n)))
    one.put(Piece(over.set))
    assert over.wait(60) and order == list(range(20))


def test_work_that_lets_an_error_out_does_not_end_its_worker(pool):
    over = threading.Event()
    one = pool(1)
    one.put(Piece(lambda: 1 / 0))
    one.put(Piece(over.set))
    assert over.wait(60)


def test_a_stuck_worker_is_replaced_asked_to_stop_and_leaves_when_it_is_back(pool):
    gate, over, asked = threading.Event(), threading.Event(), threading.Event()
    one = pool(1)
    hung = Piece(gate.wait)
    hung.stop.then(asked.set)
    one.put(hung)
    while not one.busy:
        pass
    one.give_up(hung)
    assert asked.is_set()
    one.put(Piece(over.set))
    assert over.wait(60) and one.stuck == 1
    before = threading.active_count()
    gate.set()
    while one.stuck:
        pass
    while threading.active_count() >= before:
        pass


def test_past_the_bound_a_stuck_worker_stays_busy(pool):
    gate, over = threading.Event(), threading.Event()
    one = pool(1, max_stuck=0)
    hung = Piece(gate.wait)
    one.put(hung)
    while not one.busy:
        pass
    one.give_up(hung)
    one.put(Piece(over.set))
    assert not over.wait(0.05) and (one.busy, one.stuck) == (1, 0)
    gate.set()
    assert over.wait(60), "and is there again when its thread is back"


def test_waiting_work_that_is_given_up_never_runs(pool):
    one = pool(0)
    piece, other = Piece(lambda: None), Piece(lambda: None)
    one.put(piece)
    one.put(other)
    one.give_up(piece)
    assert one.take(lambda _: True) is other
    assert one.take(lambda _: True) is None


def test_a_stop_that_was_set_before_anyone_listened_is_heard():
    stop, heard = Stop(), []
    stop.set()
    stop.then(lambda: heard.append(1))
    assert heard == [1]


def test_a_hanging_run_times_out_and_takes_no_worker_away(serve):
    client = serve(workers=1, async_timeout=1000, async_max_queue=2)
    for _ in range(3):
        hung = client.admitted("hang")
        status = client.ended(hung)
        assert status["state"] == "timeout" and status["error"] == "timed out after 1000 ms"
        assert client.get(f"/jobs/{hung}/result").status == 409
        assert client.ended(client.admitted("x"))["state"] == "done"
    assert client.core.pool.stuck == 3
    text = client.get("/metrics").content.decode()
    assert "counterfoil_workers_stuck 3.0" in text


def test_a_late_result_does_not_overwrite_a_timeout(serve):
    client = serve(workers=1, async_timeout=500)
    late, failing = client.admitted("delay:900"), client.admitted("delay:900;fail:late")
    assert client.ended(late)["state"] == client.ended(failing)["state"] == "timeout"
    client.until(lambda: client.core.pool.stuck == client.core.pool.busy == 0)
    assert client.get(f"/jobs/{late}").json["state"] == "timeout"
    assert client.get(f"/jobs/{failing}").json["error"] == "timed out after 500 ms"
    assert client.core.ledger.depth() == 0


def test_a_job_that_never_got_a_worker_times_out_and_lets_its_payload_go(serve):
    client = serve(workers=1, async_timeout=1500, max_stuck=0)
    running, waiting = client.admitted("delay:3000"), client.admitted("x")
    assert client.ended(waiting)["state"] == client.ended(running)["state"] == "timeout"
    assert client.core.ledger._jobs[waiting].payload is None
    client.until(lambda: client.core.pool.busy == 0)
    assert client.ended(client.admitted("x"))["state"] == "done"


def test_without_a_budget_nothing_times_out(serve):
    client = serve(async_timeout=0)
    assert client.ended(client.admitted("delay:300"))["state"] == "done"


def test_waiters_hold_no_worker_and_no_thread(serve):
    client = serve(workers=1)
    slow = client.admitted("delay:3000")
    threads = threading.active_count()
    sockets = []
    for _ in range(50):
        one = socket.create_connection((client.address.hostname, client.address.port))
        one.sendall(f"GET /jobs/{slow}/wait HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        sockets.append(one)
    client.until(lambda: client.core.waiters.blocked == 50)
    assert threading.active_count() == threads
    assert client.submit("x").status == 202
    for one in sockets:
        assert b'"state":"done"' in one.recv(1000)
        one.close()


def test_the_counters_agree_with_the_ledger(serve):
    client = serve(workers=2, async_timeout=1500, async_max_queue=8, async_max_completed=3)
    for commands in ("x", "fail:no", "hang", "crash", "y", "z"):
        client.ended(client.admitted(commands))
    client.admitted("delay:100")
    value = client.core.metrics.registry.get_sample_value
    submitted = value("counterfoil_jobs_submitted_total")
    ended = [
        value("counterfoil_jobs_completed_total", {"state": state})
        for state in ("done", "failed", "timeout")
    ]
    assert submitted == 7 and ended == [3, 2, 1]
    assert submitted == sum(ended) + value("counterfoil_queue_depth")
    assert value("counterfoil_jobs_evicted_total", {"cause": "count"}) > 0


def test_a_call_whose_client_goes_away_gives_up_its_turn_or_keeps_its_worker(serve):
    """Going away must not be a way to run more at once than there are workers."""
    client = serve(workers=1)
    address = (client.address.hostname, client.address.port)
    image = base64.b64encode(b"delay:1500").decode()
    body = json.dumps({"images": [image]}).encode()
    head = f"POST /infer HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    for number in range(4):
        with socket.create_connection(address) as gone:
            gone.sendall(head + body)
            client.until(lambda: client.core.runner.calls == 1)
            client.until(lambda: client.core.pool.busy == 1)
        client.until(lambda: client.core.runner.calls == 0)
        assert (client.core.pool.stuck, client.core.pool.pending) == (0, 0), number
    client.until(lambda: client.core.pool.busy == 0)
    assert client.submit("x", path="/infer").status == 200
    assert len(client.core.runner._deadlines) == 0


def test_calls_leave_the_workers_threads_as_they_are(serve):
    client = serve(workers=2)
    before = threading.active_count()
    for _ in range(50):
        assert client.submit("x", path="/infer").status == 200
    assert client.core.pool.stuck == 0
    assert threading.active_count() == before


def test_a_call_that_hangs_past_its_budget_gives_its_worker_back(serve):
    client = serve(workers=1, async_timeout=500)
    assert client.submit("hang", path="/infer").status == 504
    assert client.submit("x", path="/infer").status == 200
    assert client.core.pool.stuck == 1
