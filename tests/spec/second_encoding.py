"""The ledger's state space once more, written without a line of the spec: numbers and tuples.

A live job is 0..3 (running * 2 + payload taken), a retained one a pair (kind * 2 + taken, age). It
exists to be counted, and compared with the counts of the spec.
"""


def moves(state, max_queue, max_completed, ttl, submitters):
    live, retained, owed = state
    too_old = ttl + 1

    def swept(jobs):
        young = [job for job in jobs if job[1] <= ttl]
        return tuple(young[max(len(young) - max(max_completed, 0), 0) :])

    if len(live) < max_queue:
        longer = tuple(sorted((*live, 0)))
        if submitters == 0:
            yield longer, swept(retained), 0
        elif owed < submitters:
            yield longer, retained, owed + 1
    if owed:
        yield live, swept(retained), owed - 1
    for at, job in enumerate(live):
        others = live[:at] + live[at + 1 :]
        if job < 2:
            yield tuple(sorted((*others, job + 2))), retained, owed
        if job % 2 == 0:
            yield tuple(sorted((*others, job + 1))), retained, owed
        for kind in range(3):
            yield others, (*retained, (kind * 2 + job % 2, 0)), owed
    for at, (what, age) in enumerate(retained):
        if what % 2 == 0:
            yield live, (*retained[:at], (what + 1, age), *retained[at + 1 :]), owed
    yield live, tuple((what, min(age + 1, too_old)) for what, age in retained), owed


def count(max_queue, max_completed, ttl, submitters):
    """How many states can be reached from the empty ledger."""
    start = ((), (), 0)
    seen, frontier = {start}, [start]
    while frontier:
        new = []
        for state in frontier:
            for after in moves(state, max_queue, max_completed, ttl, submitters):
                if after not in seen:
                    seen.add(after)
                    new.append(after)
        frontier = new
    return len(seen)


def main():
    """Count every pinned scope again, and say which counts differ (1 if any)."""
    from counterfoil_spec.model_scopes import DEEP_FULL, FULL, pinned

    differ = 0
    for scope in (*FULL, *DEEP_FULL):
        ours = count(scope.max_queue, scope.max_completed, scope.job_ttl_ms, scope.submitters)
        same = ours == pinned("full", scope)
        differ += not same
        print(f"{scope} with {scope.submitters} submitting: {ours:,}{'' if same else ' DIFFERS'}")
    return int(differ > 0)


if __name__ == "__main__":
    raise SystemExit(main())
