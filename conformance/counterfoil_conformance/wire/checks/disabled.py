"""A target whose jobs are switched off (H6): every `/jobs` route is 404."""

import json
from typing import Final

from counterfoil_conformance.wire.probing import quick_body
from counterfoil_conformance.wire.registry import DISABLED, Context, check

__all__: tuple[str, ...] = ()

ROUTES: Final = (
    ("GET", "/jobs/{id}"),
    ("GET", "/jobs/{id}/wait?timeout=200"),
    ("GET", "/jobs/{id}/wait"),
    ("GET", "/jobs/{id}/result"),
)


@check("H6 K1", order=1, even=(DISABLED,))
async def without_jobs_every_route_of_them_is_404(ctx: Context) -> None:
    """`async_enabled = false`: 404 on every `/jobs` route (401 first, without the token)."""
    enabled = ctx.target.limits.async_enabled
    if enabled or (enabled is None and ctx.session.jobs):
        ctx.does_not_apply("H6", "the target has jobs (`limits.async_enabled` is not false)")
        return
    if enabled is None:
        ctx.untestable("H6", "limits.async_enabled")
        return
    good = json.dumps(quick_body(ctx)).encode()
    text = (("Content-Type", "text/plain"),)
    for body, headers in ((good, ()), (b"nope", ()), (b"{}", ()), (b"", ()), (good, text)):
        answer = await ctx.session.send("POST", "/jobs", body=body, headers=headers)
        said = f"POST /jobs with {body[:20]!r}...: {answer.say()[:80]}"
        ctx.expect(answer.status == 404, "H6", said, allowed="404", answers=(answer,))
    for method, path in ROUTES:
        where = path.replace("{id}", f"cf-{ctx.session.nonce()}")
        answer = await ctx.session.send(method, where)
        said = f"{method} {path}: {answer.say()[:80]}"
        ctx.expect(answer.status == 404, "H6", said, allowed="404", answers=(answer,))
        if ctx.target.token:
            answer = await ctx.session.send(method, where, token=None)
            said = f"{method} {path} without the token: {answer.say()[:80]}"
            ctx.expect(answer.status == 401, "K1", said, allowed="401", answers=(answer,))
    await _other_methods(ctx)
    answer = await ctx.session.send("GET", "/cf-nowhere")
    said = f"the control, an unknown path: {answer.say()[:80]}"
    ctx.expect(answer.status == 404, "H6", said, allowed="404", answers=(answer,))


async def _other_methods(ctx: Context) -> None:
    """Methods that no `/jobs` route has: 404 as well; a 405 gives the routes away (a warning)."""
    rows = (("PUT", "/jobs"), ("GET", "/jobs"), ("DELETE", "/jobs/x"), ("POST", "/jobs/x/result"))
    for method, path in rows:
        answer = await ctx.session.send(method, path)
        said = f"{method} {path}: {answer.say()[:80]}"
        if answer.status == 405:
            ctx.warn("H6", said, allowed="404", answers=(answer,))
        else:
            ctx.expect(answer.status == 404, "H6", said, allowed="404", answers=(answer,))
