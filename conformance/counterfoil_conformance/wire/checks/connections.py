"""What a refusal leaves on the connection (E8).

Each kind of refusal is provoked on a connection of its own, and then one more request is sent on
it. The bodies of the refused requests are themselves requests: a server that leaves a body unread
and goes on will take it for the next request, and answer a question nobody asked.

Bodies go out in two ways: at once, and after the refusal has had time to come (a server may refuse
by the head alone; the body still follows, for HTTP has no way to take it back).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from counterfoil_conformance.wire.client import DEFAULT, _Default
from counterfoil_conformance.wire.probing import after_refusal, all_of, has_infer, patience_s
from counterfoil_conformance.wire.registry import DISABLED, Context, check
from counterfoil_conformance.wire.stubborn import chunked, open_stubborn, send_in_pieces

__all__: tuple[str, ...] = ()

_HEAD_WAIT_S: Final = 0.15
_JSON: Final = (("Content-Type", "application/json"),)


class Provocation(NamedTuple):
    """A request that is to be refused: `{id}` in the path is an unknown id."""

    name: str
    method: str
    path: str
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    token: str | _Default | None = DEFAULT


def _smuggled(ctx: Context) -> bytes:
    """A body that is a request: if it is ever answered, it was taken for one."""
    path = f"{ctx.target.prefix}/jobs/cf-smuggled"
    return f"GET {path} HTTP/1.1\r\nHost: smuggled\r\n\r\n".encode() * 3


def _provocations(ctx: Context, *, infer: bool) -> Iterable[Provocation]:
    body = _smuggled(ctx)
    yield Provocation("an unknown id", "GET", "/jobs/{id}")
    yield Provocation("an unknown id's result", "GET", "/jobs/{id}/result")
    yield Provocation("a wait on an unknown id", "GET", "/jobs/{id}/wait?timeout=100")
    yield Provocation("an unknown path", "GET", "/cf-nowhere")
    yield Provocation("an unknown action", "GET", "/jobs/{id}/cf-nothing")
    yield Provocation("an unknown id, with a body", "GET", "/jobs/{id}", body, _JSON)
    yield Provocation("an unknown path, with a body", "POST", "/cf-nowhere", body, _JSON)
    yield Provocation("a wrong method on /jobs", "PUT", "/jobs", body, _JSON)
    yield Provocation("a wrong method on a job", "POST", "/jobs/{id}", body, _JSON)
    yield Provocation("DELETE with a body", "DELETE", "/jobs/{id}", body, _JSON)
    yield Provocation("PATCH on a result", "PATCH", "/jobs/{id}/result", body, _JSON)
    yield Provocation("POST on a wait", "POST", "/jobs/{id}/wait", body, _JSON)
    yield Provocation("a body that is no JSON", "POST", "/jobs", body, _JSON)
    yield Provocation("a body without images", "POST", "/jobs", b"{}" + b" " * 3000, _JSON)
    yield Provocation("an empty body", "POST", "/jobs", b"", _JSON)
    text = (("Content-Type", "text/plain"),)
    yield Provocation("a wrong media type", "POST", "/jobs", body, text)
    large = b"\r\n\r\n" + body * 300
    yield Provocation("a body of 60 kB that is no JSON", "POST", "/jobs", large, _JSON)
    yield Provocation("60 kB to an unknown path", "POST", "/cf-nowhere", large, _JSON)
    yield Provocation("60 kB with a wrong method", "PUT", "/jobs/{id}", large, _JSON)
    yield Provocation("OPTIONS with a body", "OPTIONS", "/jobs", body, _JSON)
    if infer:
        yield Provocation("/infer, no JSON", "POST", "/infer", body, _JSON)
        yield Provocation("/infer, no images", "POST", "/infer", b"{}", _JSON)
        yield Provocation("/infer, wrong method", "PUT", "/infer", body, _JSON)
    if ctx.target.token:
        yield Provocation("no token", "GET", "/jobs/{id}", None, (), None)
        yield Provocation("no token, with a body", "POST", "/jobs", body, _JSON, None)
        yield Provocation("no token, 60 kB", "POST", "/jobs", large, _JSON, None)
        yield Provocation("a wrong token", "POST", "/infer", body, _JSON, "wrong")


@check("E8 E5", limit_s=120.0, even=(DISABLED,))
async def the_next_request_gets_its_own_answer(ctx: Context) -> None:
    """After any refusal the connection is in order, or closed."""
    rows = list(_provocations(ctx, infer=await has_infer(ctx)))
    bodied = [row for row in rows if row.body is not None]
    todo = [(row, "whole") for row in rows]
    todo += [(row, "head first") for row in bodied]
    todo += [(row, "chunked") for row in bodied if row.body]
    todo += [(row, "expect") for row in bodied if row.body and row.method == "POST"]

    async def probe(item: tuple[Provocation, str]) -> None:
        await _provoke(ctx, *item)

    await all_of(todo, probe)


async def _provoke(ctx: Context, row: Provocation, how: str) -> None:
    conn = await open_stubborn(ctx.session.client)
    if conn is None:
        return
    try:
        path = ctx.target.prefix + row.path.replace("{id}", f"cf-{ctx.session.nonce()}")
        headers = list(row.headers)
        pieces: list[bytes] = []
        if row.body is not None and how == "chunked":
            headers.append(("Transfer-Encoding", "chunked"))
            pieces = list(chunked(row.body, 16_384))
        elif row.body is not None:
            headers.append(("Content-Length", str(len(row.body))))
            pieces = [row.body]
        if how == "expect":
            headers.append(("Expect", "100-continue"))
        request = ctx.session.client.request(
            row.method, path, body=row.body, headers=headers, token=row.token
        )
        pause_s = _HEAD_WAIT_S if how in ("head first", "expect") else 0.0
        answer, _ = await send_in_pieces(
            conn,
            request,
            pieces,
            pause_s=pause_s,
            timeout_s=patience_s(ctx),
        )
        ctx.session.look_at(
            answer, may_5xx=row.path == "/infer", json_route=row.method != "OPTIONS"
        )
        if not answer.ok or answer.status == 202:
            if row.path == "/jobs" and row.method == "POST" and answer.ok:
                ctx.session.submitted(answer, "other", row.body or b"")
            return
        await after_refusal(ctx, conn, f"{row.name} ({how})", answer)
    finally:
        conn.close()


@check("E8", even=(DISABLED,))
async def refusals_in_a_row_share_a_connection(ctx: Context) -> None:
    """Ten different refusals one after another, each with its own answer."""
    conn = await ctx.session.client.connect()
    if isinstance(conn, str):
        return
    try:
        for number in range(10):
            job_id = f"cf-row-{number}-{ctx.session.nonce()}"
            action = ("", "/result", "/wait?timeout=20")[number % 3]
            answer = await ctx.session.send(
                "GET", f"/jobs/{job_id}{action}", conn=conn, may_fail=True
            )
            if answer.trouble in ("closed", "reset"):
                return
            if not answer.ok:
                said = f"refusal {number + 1} on one connection: {answer.say()}"
                ctx.fail("E8", said, allowed="its own answer, or closed", answers=(answer,))
                return
            others = b"cf-row-" in answer.body and job_id.encode() not in answer.body
            ctx.expect(
                not others,
                "E8",
                f"refusal {number + 1} on one connection speaks of another id",
                allowed="its own answer",
                answers=(answer,),
            )
            if answer.closed:
                return
    finally:
        conn.close()
