"""Methods and paths that are not on offer (H5), and the two that every server meets: HEAD, OPTIONS.

Where a 405 is asked for, a 404 is often right as well; the rows below say which. Whether an id is
"known" is decided by reads before and after: a job may be evicted while we look.

The trap of HEAD is a body. It is not seen by a parser, which knows that none can come; it is seen
in what the next answer on the connection begins with.
"""

from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.probing import After, all_of, has_infer, next_answer
from counterfoil_conformance.wire.registry import DISABLED, Context, check
from counterfoil_conformance.wire.steps import admit

__all__: tuple[str, ...] = ()

ELSEWHERE: Final = ("PUT", "DELETE", "PATCH")
UNKNOWN_PATHS: Final = (
    ("GET", "/cf-nowhere"),
    ("POST", "/cf-nowhere"),
    ("DELETE", "/cf-nowhere"),
    ("GET", "/jobsx"),
    ("GET", "/jobs/{id}/cancel"),
    ("POST", "/jobs/{id}/cancel"),
    ("DELETE", "/jobs/{id}/cancel"),
    ("GET", "/jobs/{id}/results"),
    ("GET", "/jobs/{id}/resultx"),
    ("GET", "/jobs/{id}/waitx?timeout=50"),
    ("GET", "/jobs/{id}/Result"),
    ("GET", "/jobs/{id}/status"),
    ("GET", "/jobs/{id}/wait/x"),
    ("GET", "/jobs/{id}/result/0"),
)
UNKNOWN_ACTIONS: Final = (
    *("resultx", "waitx?timeout=20", "results", "status", "resul", "Result"),
    *("result/x", "wait/x?timeout=20", "x/result", "wait/result"),
)
HEAD_STATUSES: Final = (200, 204, 404, 405)


@check("H5 E5", even=(DISABLED,))
async def unknown_paths_are_404(ctx: Context) -> None:
    """An unknown path or action is 404, whatever the method."""

    async def probe(row: tuple[str, str]) -> None:
        method, path = row
        where = path.replace("{id}", f"cf-{ctx.session.nonce()}")
        body = b"{}" if method == "POST" else None
        answer = await ctx.session.send(method, where, body=body)
        if answer.ok:
            said = f"{method} {path}: {answer.status}"
            ctx.expect(answer.status == 404, "H5", said, allowed="404", answers=(answer,))

    await all_of(UNKNOWN_PATHS, probe)


@check("H5 E5 H9")
async def wrong_methods_are_refused(ctx: Context) -> None:
    """On `/jobs`, a wait and a result 405 (SHOULD) or 404; on an unknown job 404.

    The clause does not name `/infer`: there either will do, and neither is preferred.
    """
    rows = [("GET", "/jobs"), *((m, "/jobs") for m in ELSEWHERE)]
    for action in ("/wait", "/result"):
        rows += [(m, "/jobs/{id}" + action) for m in ("POST", *ELSEWHERE)]
    rows += [(m, "/jobs/{id}") for m in ("POST", *ELSEWHERE)]
    if await has_infer(ctx):
        rows += [(m, "/infer") for m in ("GET", *ELSEWHERE)]

    async def probe(row: tuple[str, str]) -> None:
        method, path = row
        where = path.replace("{id}", f"cf-{ctx.session.nonce()}")
        body = b"{}" if method in ("POST", "PUT", "PATCH") else None
        answer = await ctx.session.send(method, where, body=body)
        _judge(ctx, method, path, answer, known=False)

    await all_of(rows, probe)


def _judge(ctx: Context, method: str, path: str, answer: Answer, *, known: bool) -> None:
    if not answer.ok:
        return
    said = f"{method} {path}: {answer.status}"
    on_job = path == "/jobs/{id}"
    must: tuple[int, ...] = (404, 405)
    should: tuple[int, ...] = (405,)
    if on_job:
        must = should = (405,) if known else (404,)
    elif path == "/infer" or ("{id}" in path and not known):
        should = must  # an unknown id is 404 as well as a wrong method is 405
    allowed = " or ".join(map(str, must))
    if answer.status not in must:
        ctx.fail("H5", said, allowed=allowed, answers=(answer,))
        return
    if answer.status not in should:
        ctx.warn("H5", said, allowed="405 (or 404, which is no failure)", answers=(answer,))
    ctx.ok("H5")
    offered = {word.strip().upper() for word in (answer.header("allow") or "").split(",")}
    if answer.status == 405 and method in offered:
        ctx.warn("H5", f"{method} {path}: 405, and Allow offers it", answers=(answer,))


@check("H5 E5", needs=("bodies.slow",), places=1)
async def wrong_methods_on_a_known_job_are_405(ctx: Context) -> None:
    """A job that is there refuses other methods with 405, and is not changed by them."""
    sent = await admit(ctx, "slow")
    if sent.job is None:
        return
    job = sent.job

    async def probe(method: str) -> None:
        body = b"{}" if method != "DELETE" else None
        before = await ctx.session.status(job)
        answer = await ctx.session.send(method, f"/jobs/{job.id}", body=body)
        after = await ctx.session.status(job)
        if before.answer.status == after.answer.status == 200:
            _judge(ctx, method, "/jobs/{id}", answer, known=True)
        elif before.answer.status == 200 and before.state in ("pending", "running"):
            said = f"after {method} on a live job its status is {after.answer.status}"
            answers = (before.answer, answer, after.answer)
            ctx.fail("H5", said, allowed="405 without effect", answers=answers)
        for action in ("/wait", "/result"):
            answer = await ctx.session.send(method, f"/jobs/{job.id}{action}", body=body)
            _judge(ctx, method, "/jobs/{id}" + action, answer, known=True)
        await unknown_action(method, "cancel")

    async def unknown_action(method: str, action: str) -> None:
        # Some HTTP libraries refuse a PUT or PATCH without a length before they route.
        body = b"{}" if method in ("POST", "PUT", "PATCH") else None
        answer = await ctx.session.send(method, f"/jobs/{job.id}/{action}", body=body)
        if answer.ok:
            said = f"{method} /jobs/{{id}}/{action} of a known id: {answer.status}"
            ctx.expect(answer.status == 404, "H5", said, allowed="404", answers=(answer,))

    await all_of(("POST", *ELSEWHERE), probe)
    for action in UNKNOWN_ACTIONS:
        await unknown_action("GET", action)
    await _head_and_options(ctx, (f"/jobs/{job.id}",))
    await ctx.session.until_terminal(job, ctx.session.patience_s())
    done = [f"/jobs/{job.id}/wait?timeout=100"]
    if job.state == "done":
        done.append(f"/jobs/{job.id}/result")
    await _head_and_options(ctx, tuple(done))


@check("H5 E5 E8", even=(DISABLED,))
async def head_and_options_leave_the_connection_in_order(ctx: Context) -> None:
    """HEAD has no body; HEAD and OPTIONS are 200, 204, 404 or 405, and the next request works."""
    unknown = f"/jobs/cf-{ctx.session.nonce()}"
    paths = ["/jobs", unknown, f"{unknown}/result", f"{unknown}/wait", "/cf-nowhere"]
    if await has_infer(ctx):
        paths.append("/infer")
    await _head_and_options(ctx, tuple(paths))
    await _head_and_options(ctx, ctx.target.dialect.public or (), prefix=False)


async def _head_and_options(ctx: Context, paths: tuple[str, ...], *, prefix: bool = True) -> None:
    async def probe(row: tuple[str, str]) -> None:
        await _bodyless(ctx, *row, prefix=prefix)

    await all_of([(m, p) for p in paths for m in ("HEAD", "OPTIONS")], probe)


async def _bodyless(ctx: Context, method: str, path: str, *, prefix: bool) -> None:
    conn = await ctx.session.client.connect()
    if not isinstance(conn, Connection):
        return
    try:
        answer = await ctx.session.send(
            method, path, conn=conn, prefix=prefix, json_route=False, may_5xx=True
        )
        if not answer.ok:
            return
        where = path.split("?", maxsplit=1)[0]
        said = f"{method} {where}: {answer.status}"
        allowed = "200, 204, 404 or 405"
        if not ctx.expect(
            answer.status in HEAD_STATUSES, "H5", said, allowed=allowed, answers=(answer,)
        ):
            return
        if answer.closed and method == "HEAD":
            rest, _ = await conn.read_until_close(1.0)
            if rest.strip():
                said = f"HEAD {where}: {len(rest)} bytes came after the head"
                ctx.fail("H5", said, allowed="no body", answers=(answer,))
            return
        if answer.closed:
            return
        found = await next_answer(ctx, conn)
        if found.after is After.CLOSED:
            said = f"after {method} {where} the connection was closed without a word"
            ctx.warn("H5", said, allowed="a usable connection", answers=(answer,))
            return
        ctx.expect(
            found.fine,
            "H5",
            f"after {method} {where} the next request got {found.after}",
            allowed="no body, and a usable connection",
            answers=(answer, found.answer) if found.answer is not None else (answer,),
            one_connection=True,
        )
    finally:
        conn.close()
