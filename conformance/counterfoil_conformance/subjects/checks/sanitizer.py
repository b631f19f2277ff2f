"""What ThreadSanitizer saw: a data race in the driver is a broken C1 and C2.

A driver built with `-fsanitize=thread` reports on stderr, which the kit reads. A correct build of a
racy ledger may well answer everything right on the machine at hand; under the sanitizer it cannot
hide. This check stands last: it looks back on everything that ran.
"""

import time

from counterfoil_conformance.subjects.registry import Context, check

_SETTLE_S = 0.2


@check("C1 C2")
def the_sanitizer_reports_no_race(ctx: Context) -> None:
    """Any report counts; without a sanitizer in the driver nothing can be said."""
    time.sleep(_SETTLE_S)
    alarms = ctx.subject.alarms()
    if alarms:
        why = f"ThreadSanitizer reported {len(alarms)} times: {alarms[0]}"
        repro = f"counterfoil conform {ctx.subject.name!r}"
        for clause in ("C1", "C2"):
            ctx.fail(clause, why, repro=repro)
    elif ctx.subject.can("tsan"):
        ctx.ok("C1 C2")
    else:
        ctx.untestable("C1 C2", "needs a driver built with -fsanitize=thread")
