"""Which refusal comes first (H12): 404 and 405 before the body is looked at.

A request that is wrong twice is answered for the first of the two. (401 before all else is checked
with the keys, a full queue before the body with the full queue.)
"""

from counterfoil_conformance.wire.probing import all_of
from counterfoil_conformance.wire.registry import DISABLED, Context, check

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
