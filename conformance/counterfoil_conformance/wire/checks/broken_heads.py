"""Requests whose head is broken (E5): someone refuses them, nobody hangs, the server lives on.

Little is asked here. A head that cannot be parsed may be refused with 400, 414, 431 or by closing
the connection, and 501 and 505 are HTTP's own words for what a server does not speak. Not right are
a 500, a stack trace, and a connection that neither answers nor ends once the client has stopped
sending.
"""

import asyncio
from typing import Final

from counterfoil_conformance.wire.answer import Answer, Request
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.probing import all_of, routes
from counterfoil_conformance.wire.reading import surface_faults
from counterfoil_conformance.wire.registry import DISABLED, Context, check

__all__: tuple[str, ...] = ()

_END: Final = b"\r\n\r\n"
# Heads that are as they should be, with odd content: what the clause speaks of. The others break
# the framing below it, and there a 5xx or a silence is only warned of.
CONTENT: Final = (
    "HTTP/1.0",
    "Latin-1 in a header",
    "UTF-8 in a header",
    "Latin-1 in Authorization",
    "gzip that is none",
)
INCOMPLETE: Final = ("a body that is cut off", "chunks that are cut off", "a huge length")


def _heads(path: bytes, host: bytes) -> dict[str, bytes]:
    line = b"GET " + path + b" HTTP/1.1\r\nHost: " + host
    post = b"POST " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\nContent-Type: application/json"
    return {
        "garbage": b"\x00\x01\x02 nonsense \xff\xfe" + _END,
        "a TLS hello": b"\x16\x03\x01\x00\x2e\x01\x00\x00\x2a\x03\x03" + b"\x11" * 40 + _END,
        "no version": b"GET " + path + _END,
        "an unknown version": b"GET " + path + b" HTTP/9.9\r\nHost: " + host + _END,
        "no host": b"GET " + path + b" HTTP/1.1" + _END,
        "HTTP/1.0": b"GET " + path + b" HTTP/1.0" + _END,
        "an HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM" + _END,
        "a line without colon": line + b"\r\nnocolon" + _END,
        "an empty header name": line + b"\r\n: x" + _END,
        "a space before the colon": line + b"\r\nX-A : b" + _END,
        "a NUL in a header": line + b"\r\nX-A: a\x00b" + _END,
        "Latin-1 in a header": line + b"\r\nX-A: caf\xe9" + _END,
        "UTF-8 in a header": line + b"\r\nX-Request-ID: \xf0\x9f\x98\x80" + _END,
        "Latin-1 in Authorization": line + b"\r\nAuthorization: Bearer caf\xe9" + _END,
        "a folded header": line + b"\r\nX-A: a\r\n b" + _END,
        "a header of 100 kB": line + b"\r\nX-A: " + b"a" * 100_000 + _END,
        "500 headers": line + b"".join(b"\r\nX-%d: a" % i for i in range(500)) + _END,
        "a length that is no number": post + b"\r\nContent-Length: abc" + _END,
        "a negative length": post + b"\r\nContent-Length: -5" + _END + b"{}",
        "a signed length": post + b"\r\nContent-Length: +2" + _END + b"{}",
        "two lengths": post + b"\r\nContent-Length: 2\r\nContent-Length: 3" + _END + b"{}x",
        "a huge length": post + b"\r\nContent-Length: 99999999999999999999" + _END + b"{}",
        "a length and chunks": post
        + b"\r\nContent-Length: 2\r\nTransfer-Encoding: chunked"
        + _END
        + b"2\r\n{}\r\n0\r\n\r\n",
        "a chunk size that is no number": post
        + b"\r\nTransfer-Encoding: chunked"
        + _END
        + b"zz\r\n{}\r\n0\r\n\r\n",
        "a chunk that is longer than it says": post
        + b"\r\nTransfer-Encoding: chunked"
        + _END
        + b"1\r\n{}{}{}\r\n0\r\n\r\n",
        "a negative chunk size": post
        + b"\r\nTransfer-Encoding: chunked"
        + _END
        + b"-2\r\n{}\r\n0\r\n\r\n",
        "a body that is cut off": post + b"\r\nContent-Length: 50" + _END + b'{"images"',
        "chunks that are cut off": post + b"\r\nTransfer-Encoding: chunked" + _END + b"20\r\n{}",
        "gzip that is none": post
        + b"\r\nContent-Encoding: gzip\r\nContent-Length: 2"
        + _END
        + b"{}",
    }


@check("E5", order=20, limit_s=90.0, even=(DISABLED,))  # it mostly waits: begun first
async def broken_heads_do_no_harm(ctx: Context) -> None:
    """No 500, no stack trace, no connection that neither answers nor ends; the server lives on."""
    job = f"{ctx.target.prefix}/jobs".encode()
    host = ctx.target.base_url.split("//")[-1].encode()
    unknown = _heads(job + b"/cf-unknown", host)
    posts = _heads(job, host)
    rows = [
        (name, posts[name] if data.startswith(b"POST") else data) for name, data in unknown.items()
    ]

    async def probe(row: tuple[str, bytes]) -> None:
        await _send(ctx, *row)

    await all_of(rows, probe)
    answer = await ctx.session.send("GET", f"/jobs/cf-{ctx.session.nonce()}")
    said = "after broken heads a plain request is not answered"
    ctx.expect(answer.ok, "E5", said, allowed="an answer", answers=(answer,))


async def _send(ctx: Context, name: str, data: bytes) -> None:
    conn = await ctx.session.client.connect()
    if not isinstance(conn, Connection):
        return
    try:
        method = "POST" if data.startswith(b"POST") else "GET"
        request = Request(method, "/", raw=data, base_url=ctx.target.base_url)
        at = conn.write(data)
        answer = await _first(conn, request, at, 1.5 + ctx.tolerance_s)
        if answer.trouble == "timeout":
            await _judge_silence(ctx, name, answer)
        elif answer.trouble:
            ctx.ok("E5")
        else:
            _judge(ctx, name, answer)
    finally:
        conn.close()


async def _judge_silence(ctx: Context, name: str, answer: Answer) -> None:
    """No answer and no end. An incomplete body may be waited for; a loaded machine is no fault."""
    if name in INCOMPLETE:
        return
    control = await ctx.session.send("GET", f"/jobs/cf-{ctx.session.nonce()}")
    if control.ok and control.trip_us < 1_000_000:
        said = f"{name}: no answer and no end, {answer.trip_us / 1e6:.0f} s after the last byte"
        say = ctx.fail if name in CONTENT else ctx.warn
        say("E5", said, allowed="an answer, or a closed connection", answers=(answer,))


def _judge(ctx: Context, name: str, answer: Answer) -> None:
    may = answer.status in (501, 505)
    found = surface_faults(answer, json_route=False, may_5xx=may)
    faults = [
        fault._replace(
            why=f"{name}: {fault.why}",
            should=name not in CONTENT and "stack trace" not in fault.why,
        )
        for fault in found
        if fault.clause == "E5"
    ]
    ctx.session.report(faults, answer)
    if not faults:
        ctx.ok("E5")
    if answer.request.method == "POST" and answer.status == 202:
        ctx.session.submitted(answer, "other", b"{}")


async def _first(conn: Connection, request: Request, at: int, patience_s: float) -> Answer:
    """The answer; where none comes, the one after we have stopped sending for good."""
    waited = 0.0
    while waited < patience_s and not conn.answer_ready:
        await asyncio.sleep(0.02)
        waited += 0.02
    if not conn.answer_ready:
        conn.half_close()
    return await conn.read_answer(request, at, patience_s + 12.0)


@check("E5 E1", even=(DISABLED,))
async def a_post_without_a_length_has_no_body(ctx: Context) -> None:
    """No `Content-Length` and no chunks mean no body (HTTP): it is refused, and not waited for."""
    for route in await routes(ctx):
        answer = await ctx.session.send(
            "POST", route, body=b"", headers={"Content-Length": ""}, timeout_s=8 + ctx.tolerance_s
        )
        if answer.ok:
            said = f"POST {route} without a length: {answer.status}"
            fine = answer.status in (400, 411, 415, 422, 429)
            ctx.expect(fine, "E1", said, allowed="400 (or 411, 415)", answers=(answer,))
