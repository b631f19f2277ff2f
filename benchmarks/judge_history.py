"""How long it takes to judge a long history: 10 000 calls of 11 clients, the bar is 1 s.

Run `python benchmarks/judge_history.py [CALLS]`. The history comes from the simulator of the
oracle's tests: 9 clients that submit and read, 2 runners, max_queue 32, max_completed 500.
"""

import sys
import time
from pathlib import Path

from counterfoil_conformance.oracle.judge import judge
from counterfoil_spec.ledger import Limits

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "conformance" / "oracle"))
from simulator import Plan, setting_of, simulate


def main() -> None:
    """Judge once to warm up, then print the best of three."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    plan = Plan(Limits(32, 5000, 500), clients=9, calls=wanted, latency_us=300, think_us=500)
    calls = simulate(plan, 1)
    seconds = []
    for _ in range(4):
        started = time.perf_counter()
        judgement = judge(calls, setting_of(plan))
        seconds.append(time.perf_counter() - started)
    assert not judgement.accusations
    clients = len({call.client for call in calls})
    print(f"{len(calls)} calls, {clients} clients: judged in {min(seconds[1:]):.3f} s")


if __name__ == "__main__":
    main()
