"""Which refusal comes first (H12): 404 and 405 before the body is looked at.

A request that is wrong twice is answered for the first of the two. (401 before all else is checked
with the keys, a full queue before the body with the full queue.)
"""

from counterfoil_conformance.wire.probing import all_of, patience_s
from counterfoil_conformance.wire.registry import DISABLED, Context, check
from counterfoil_conformance.wire.stubborn import open_stubborn, send_in_pieces

__all__: tuple[str, ...] = ()


@check("H12 E5", even=(DISABLED,))
async def paths_and_methods_come_before_bodies(ctx: Context) -> None:
    """What is asked of an unknown path or with a wrong method is not refused for its body."""
    bodies = (
        (b"nope", "application/json"),
        (b"", "application/json"),
        (b"[]", "application/json"),
        (b"{}", "application/json"),
        (b'{"images": 5}', "application/json"),
        (b"hello", "text/plain"),
        (b"\xff\xfe", "application/json"),
    )
    places = (
        ("POST", "/cf-nowhere", (404,)),
        ("POST", "/jobs/{id}/cancel", (404,)),
        ("PUT", "/jobs", (404, 405)),
        ("POST", "/jobs/{id}", (404, 405)),
        ("POST", "/jobs/{id}/wait", (404, 405)),
        ("POST", "/jobs/{id}/result", (404, 405)),
        ("DELETE", "/jobs/{id}", (404, 405)),
    )

    async def probe(row: tuple[tuple[str, str, tuple[int, ...]], tuple[bytes, str]]) -> None:
        (method, path, allowed), (body, kind) = row
        where = path.replace("{id}", f"cf-{ctx.session.nonce()}")
        answer = await ctx.session.send(method, where, body=body, headers={"Content-Type": kind})
        if answer.ok:
            said = f"{method} {path} with the body {body[:20]!r} ({kind}): {answer.status}"
            words = " or ".join(map(str, allowed))
            ctx.expect(answer.status in allowed, "H12", said, allowed=words, answers=(answer,))

    await all_of([(place, body) for place in places for body in bodies], probe)


@check("H12", needs=("limits.max_body",), even=(DISABLED,))
async def large_bodies_to_nowhere_are_refused_for_the_place(ctx: Context) -> None:
    """A body over the limit on an unknown path SHOULD be 404, not 413: it was not looked at."""
    limit = ctx.target.limits.max_body
    assert limit is not None
    if limit > 4 * 1024 * 1024:
        return
    for method, path in (("POST", "/cf-nowhere"), ("PUT", "/jobs"), ("POST", "/jobs/x/result")):
        conn = await open_stubborn(ctx.session.client)
        if conn is None:
            return
        body = b"{}" + b" " * (limit + 1024)
        request = ctx.session.client.request(method, ctx.target.prefix + path, body=body)
        answer, _ = await send_in_pieces(conn, request, (body,), timeout_s=patience_s(ctx))
        conn.close()
        ctx.session.look_at(answer, may_fail=True)
        said = f"{method} {path} with a body over the limit: {answer.status}"
        if answer.status == 413:
            # Many servers count the bytes before they route; the clause speaks of looking at them.
            ctx.warn("H12", said, allowed="404 or 405", answers=(answer,))
        elif answer.ok:
            fine = answer.status in (404, 405)
            ctx.expect(fine, "H12", said, allowed="404 or 405", answers=(answer,))
