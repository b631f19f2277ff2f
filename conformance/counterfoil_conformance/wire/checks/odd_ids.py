"""Ids that were never issued, in every spelling that has ever broken a server (E4).

The trap is a path that a server reads in another way than it is written: `..` may be resolved, a
broken escape may be refused before any route is looked for. 404 is right, and so are 400 and 414
(and 431, where a long line counts as a large head); what is never right is a 5xx, a hang, another
job's answer, or the id in a header as it came.
"""

from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.laws import raw_in_head
from counterfoil_conformance.wire.probing import all_of
from counterfoil_conformance.wire.registry import DISABLED, Context, check
from counterfoil_conformance.wire.steps import admit

__all__: tuple[str, ...] = ()

ODD_IDS: Final = (
    "%00",
    "job_%00",
    "job_%00abc",
    "%0d%0aX-Injected:%20yes",
    "%0D%0A%0D%0AHTTP/1.1%20200%20OK",
    "%0aX-Injected:%20yes",
    "%0dX-Injected:%20yes",
    "%1b%5b31m",
    "%7f",
    "%c2%85",
    "%2e%2e",
    "%2e",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%5c..%5cwindows",
    "%252e%252e%252f",
    "%2e%2e%2fhealthz",
    "..%2fhealthz",
    "..%2fmetrics",
    "x%2f..%2f..%2fhealthz",
    "%2e%2e%2fjobs%2fx",
    "%2Fjobs",
    "%F0%9F%98%80",
    "job_%F0%9F%98%80",
    "%E4%BB%BB%E5%8A%A1",
    "caf%C3%A9",
    "%ff",
    "%ff%fe%fd",
    "%ed%a0%80",
    "%c0%af",
    "%f4%90%80%80",
    "job%20x",
    "+",
    "%25",
    "%22%3E%3Cscript%3E",
    "'%20OR%201=1--",
    "%7B%7B7*7%7D%7D",
    "$%7Bjndi:x%7D",
    "*",
    "~",
    "-",
    "_",
    "0",
    "null",
    "None",
    "undefined",
    "true",
    "job_",
    "job_" + "0" * 32,
    "__proto__",
    "constructor",
    "a" * 128,
    "a" * 2000,
    "a" * 10_000,
    "%41" * 3000,
)
# Spellings that no URL should have: refused by whoever reads the request line, or not at all.
RAW_IDS: Final = ("%", "%zz", "%f", "job_\U0001f600", "caf\u00e9", "\x7f", "<x>", '"', "a|b", "`")
# Paths that some servers resolve before they look for a route.
TRAVERSALS: Final = (
    *("..", "../..", "../../etc/passwd", ".", "x/../y", "%2e%2e/%2e%2e/jobs"),
    *("", "/x", "/", "x//result", "x//", "//"),
)
ALLOWED: Final = (404, 400, 414, 431)
# Queries that hardly are any; what is wrong with a query may also be 422 (W10).
QUERIES: Final = (
    "?x=%",
    "?%zz",
    "?timeout=%",
    "?timeout=%ff",
    "?timeout=%00",
    "?timeout=%F0%9F%98%80",
    "?timeout=%0d%0aX-Injected:%20yes",
    "?timeout=1&timeout=2",
    "?timeout[]=5",
    "?" + "a=1&" * 500,
    "?&&=&",
    "?",
)


@check("E4 E5 E9", even=(DISABLED,))
async def odd_ids_are_unknown(ctx: Context) -> None:
    """An id of any spelling that was never issued is 404 (or 400, 414) and reaches no header."""
    actions = ("", "/wait?timeout=50", "/result")
    rows = [(odd, action) for odd in ODD_IDS for action in actions]

    async def probe(row: tuple[str, str]) -> None:
        answer = await ctx.session.send("GET", f"/jobs/{row[0]}{row[1]}")
        _judge(ctx, answer)

    await all_of(rows, probe)


@check("E4 E5 E7", even=(DISABLED,))
async def odd_queries_do_no_harm(ctx: Context) -> None:
    """A query of any spelling on an unknown id leaves it unknown (or is refused)."""

    async def probe(row: tuple[str, str]) -> None:
        where = f"/jobs/cf-{ctx.session.nonce()}{row[0]}{row[1]}"
        _judge(ctx, await ctx.session.send("GET", where), also=(422,))

    await all_of([(a, q) for a in ("", "/wait", "/result") for q in QUERIES], probe)
    injected = {"X-Request-ID": "a%0d%0aX-Injected:%20yes"}
    for method, path in (("GET", "/jobs/cf-unknown"), ("GET", "/cf-nowhere"), ("PUT", "/jobs")):
        answer = await ctx.session.send(method, path, headers=injected)
        fault = raw_in_head(answer, "E7") if answer.ok else None
        if fault is not None and "client's making" in fault.why:
            ctx.session.report((fault,), answer)


@check("E4 E5", even=(DISABLED,))
async def unreadable_paths_do_no_harm(ctx: Context) -> None:
    """Paths that are no paths are refused by someone, and the server lives on."""

    async def raw(odd: str) -> None:
        answer = await ctx.session.send(
            "GET", f"/jobs/{odd}", json_route=False, may_fail=True, timeout_s=5 + ctx.tolerance_s
        )
        _judge(ctx, answer)

    async def traversal(odd: str) -> None:
        answer = await ctx.session.send("GET", f"/jobs/{odd}", json_route=False)
        if answer.ok and (300 <= answer.status < 400 or answer.status in (200, 401, 405)):
            return  # it was resolved to another path, whose answer this is
        _judge(ctx, answer)

    await all_of(RAW_IDS, raw)
    await all_of(TRAVERSALS, traversal)
    answer = await ctx.session.send("GET", f"/jobs/cf-{ctx.session.nonce()}")
    ctx.expect(
        answer.status == 404,
        "E4",
        "after unreadable paths a plain unknown id is not 404",
        allowed="404",
        answers=(answer,),
    )


def _judge(ctx: Context, answer: Answer, also: tuple[int, ...] = ()) -> None:
    if not answer.ok:
        return
    shown = answer.request.path if len(answer.request.path) < 100 else "10 000 characters"
    fault = raw_in_head(answer, "E4")
    if fault is not None:
        ctx.fail("E4", f"{shown}: {fault.why}", allowed=fault.allowed, answers=(answer,))
    elif answer.status in (*ALLOWED, *also):
        ctx.ok("E4")
    else:
        said = f"GET {shown}: {answer.status}"
        ctx.fail("E4", said, allowed="404 (or 400, 414)", answers=(answer,))


@check("E4 G3 S8", needs=("bodies.quick",), places=1)
async def nearly_an_id_is_no_id(ctx: Context) -> None:
    """An issued id with something more, less or other is unknown."""
    sent = await admit(ctx, "quick")
    if sent.job is None:
        return
    job = sent.job
    await ctx.session.until_terminal(job, ctx.session.patience_s())
    near = [f"{job.id}{tail}" for tail in ("%00", "%20", "%0a", "%0d%0a", "x", "%2f", ".", "*")]
    near += [job.id[:-1], job.id[:-4], f"%20{job.id}", f"x{job.id}", f"%00{job.id}"]
    near += [text for text in (job.id.swapcase(), job.id.upper()) if text != job.id]
    if job.id.startswith("job_"):
        near.append(job.id.removeprefix("job_"))

    async def probe(other: str) -> None:
        for action in ("", "/wait?timeout=50", "/result"):
            answer = await ctx.session.send("GET", f"/jobs/{other}{action}")
            if answer.ok and answer.status in ALLOWED:
                ctx.ok("E4")
            elif answer.ok and other not in ctx.session.jobs:
                said = f"{other}{action} is not the id {job.id}, and is answered {answer.status}"
                ctx.fail("E4", said, allowed="404 (or 400)", answers=(sent.answer, answer))

    await all_of([text for text in near if text], probe)
