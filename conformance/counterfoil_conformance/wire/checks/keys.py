"""With a token configured (K1, H12): 401 before everything else, and the whole token or nothing.

Every route is asked without a token, and a few of each kind with every way of getting one nearly
right. That a refused `POST` does no work is seen where places are counted (the full queue). The
control is the right token under another spelling of the scheme: it must open the same doors.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.probing import all_of, error_text, has_infer, quick_body
from counterfoil_conformance.wire.registry import DISABLED, Context, check
from counterfoil_conformance.wire.steps import admit

__all__: tuple[str, ...] = ()

_PUBLIC: Final = ("/healthz", "/ready", "/openapi.json")


class Door(NamedTuple):
    """A request that needs the token; `order`: what it is also wrong in, which comes later."""

    name: str
    method: str
    path: str
    body: bytes | None = None
    kind: str = "application/json"
    prefix: bool = True
    order: bool = False


def _doors(ctx: Context, *, infer: bool) -> Iterator[Door]:
    good = json.dumps(quick_body(ctx)).encode()
    yield Door("a submit", "POST", "/jobs", good)
    yield Door("an unknown id", "GET", "/jobs/{id}")
    yield Door("a wait", "GET", "/jobs/{id}/wait?timeout=50")
    yield Door("a result", "GET", "/jobs/{id}/result")
    if infer:
        yield Door("/infer", "POST", "/infer", good)
    yield Door("/metrics", "GET", ctx.target.metrics.path or "/metrics", prefix=False)
    yield Door("an unknown path", "GET", "/cf-nowhere", order=True)
    yield Door("an unknown path at the root", "GET", "/cf-nowhere", prefix=False, order=True)
    yield Door("an unknown action", "GET", "/jobs/{id}/cancel", order=True)
    yield Door("a wrong method on /jobs", "PUT", "/jobs", good, order=True)
    yield Door("a wrong method on a job", "DELETE", "/jobs/{id}", order=True)
    yield Door("a wrong method on a result", "POST", "/jobs/{id}/result", good, order=True)
    yield Door("no JSON", "POST", "/jobs", b"nope", order=True)
    yield Door("an empty body", "POST", "/jobs", b"", order=True)
    yield Door("no images", "POST", "/jobs", b"{}", order=True)
    yield Door("a wrong media type", "POST", "/jobs", b"nope", "text/plain", order=True)
    # Not %00: a gateway (nginx) takes it for a head that cannot be parsed, which may come first.
    yield Door("an odd id", "GET", "/jobs/%C3%A9%20%27%3Cx", order=True)
    yield Door("an odd timeout", "GET", "/jobs/{id}/wait?timeout=abc", order=True)
    yield Door("GET on /jobs", "GET", "/jobs", order=True)
    limit = ctx.target.limits.max_body
    if limit is not None and limit <= 4 * 1024 * 1024:
        large = b"{}" + b" " * (limit + 1024)
        yield Door("a body over the limit", "POST", "/jobs", large, order=True)
    if infer:
        yield Door("/infer with no JSON", "POST", "/infer", b"nope", order=True)


def _nearly(token: str) -> dict[str, dict[str, str]]:
    """Headers that are not the token, by what is wrong with them."""
    swapped = token.swapcase()
    other = {at: "x" if token[at] != "x" else "y" for at in (0, len(token) // 2, len(token) - 1)}
    basic = base64.b64encode(f"user:{token}".encode()).decode()
    plain = base64.b64encode(token.encode()).decode()
    values = {
        "a wrong token": "Bearer wrong",
        "the token without its last character": f"Bearer {token[:-1]}",
        "the token's first character": f"Bearer {token[:1]}",
        "the token without its first character": f"Bearer {token[1:]}",
        "the token and a character": f"Bearer {token}x",
        "a character and the token": f"Bearer x{token}",
        "the token with another first character": f"Bearer {other[0]}{token[1:]}",
        "the token with another last character": f"Bearer {token[:-1]}{other[len(token) - 1]}",
        "the token twice": f"Bearer {token}{token}",
        "the token and a word": f"Bearer {token} x",
        "the token and a comma": f"Bearer {token}, x",
        "the token in quotes": f'Bearer "{token}"',
        "the token without a scheme": token,
        "the scheme without a token": "Bearer",
        "a scheme that begins alike": f"BearerX {token}",
        "no space after the scheme": f"Bearer{token}",
        "the scheme Basic": f"Basic {basic}",
        "the scheme Basic, the token alone": f"Basic {plain}",
        "the token under Basic": f"Basic {token}",
        "the scheme Token": f"Token {token}",
        "the scheme Digest": f"Digest {token}",
        "a wildcard": "Bearer *",
        "the word null": "Bearer null",
        "the token in base64": f"Bearer {plain}",
    }
    if swapped != token:
        values["the token in the other case"] = f"Bearer {swapped}"
    # A token of one character is its own beginning.
    wrong = {n: {"Authorization": v} for n, v in values.items() if v != f"Bearer {token}"}
    wrong["a cookie"] = {"Cookie": f"token={token}; Authorization=Bearer {token}"}
    wrong["another header"] = {"X-API-Key": token, "X-Auth-Token": token}
    local = {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
    wrong["the word of a local proxy"] = local
    wrong["Proxy-Authorization"] = {"Proxy-Authorization": f"Bearer {token}"}
    return wrong


@check("K1 H12 E5", limit_s=120.0, even=(DISABLED,))
async def without_the_token_every_route_is_401(ctx: Context) -> None:
    """401 for known and unknown paths alike, before any other refusal; nearly right is wrong."""
    if not ctx.target.token:
        ctx.untestable("K1", "token")
        return
    doors = list(_doors(ctx, infer=await has_infer(ctx)))

    async def plain(door: Door) -> None:
        for name, token in (("no token", None), ("a wrong token", "wrong")):
            answer = await _knock(ctx, door, token=token)
            _judge(ctx, door, name, answer)

    await all_of(doors, plain)
    near = _nearly(ctx.target.token)
    some = [door for door in doors if not door.order]

    async def nearly(item: tuple[str, dict[str, str]]) -> None:
        for door in some:
            answer = await _knock(ctx, door, token=None, headers=item[1])
            _judge(ctx, door, item[0], answer)

    await all_of(near.items(), nearly)
    await all_of(some, _in_the_query(ctx))
    await _odd_headers(ctx)
    await _other_methods(ctx)


def _in_the_query(ctx: Context):  # type: ignore[no-untyped-def]  # noqa: ANN202
    token = ctx.target.token

    async def probe(door: Door) -> None:
        for name in ("token", "access_token", "key"):
            joint = "&" if "?" in door.path else "?"
            other = door._replace(path=f"{door.path}{joint}{name}={token}")
            answer = await _knock(ctx, other, token=None)
            _judge(ctx, door, f"the token in the query as {name}", answer)

    return probe


async def _knock(
    ctx: Context, door: Door, *, token: str | None, headers: dict[str, str] | None = None
) -> Answer:
    where = door.path.replace("{id}", f"cf-{ctx.session.nonce()}")
    given = dict(headers or {})
    if door.body is not None:
        given["Content-Type"] = door.kind
    return await ctx.session.send(
        door.method, where, body=door.body, headers=given, token=token, prefix=door.prefix
    )


def _judge(ctx: Context, door: Door, with_what: str, answer: Answer) -> None:
    if not answer.ok:
        return
    clauses = ("K1", "H12") if door.order else ("K1",)
    said = f"{door.method} ({door.name}) with {with_what}: {answer.status}"
    for clause in clauses:
        ctx.expect(answer.status == 401, clause, said, allowed="401", answers=(answer,))


async def _odd_headers(ctx: Context) -> None:
    """Authorization headers that are hardly text: refused, and no 5xx."""
    for name, value in (
        ("Latin-1 in the token", "Bearer caf\u00e9"),
        ("an emoji in the token", "Bearer \U0001f600"),
        ("a token of 5000 characters", "Bearer " + "a" * 5000),
        ("many spaces", "Bearer" + " " * 100 + "not-it"),
    ):
        answer = await ctx.session.send(
            "GET", "/jobs/cf-odd", token=None, headers={"Authorization": value}, json_route=False
        )
        if answer.ok:
            said = f"{name}: {answer.status}"
            fine = answer.status in (401, 400, 431)
            ctx.expect(fine, "K1", said, allowed="401 (or 400)", answers=(answer,))


async def _other_methods(ctx: Context) -> None:
    for path in ("/jobs", "/jobs/cf-unknown", "/cf-nowhere"):
        answer = await ctx.session.send("HEAD", path, token=None, json_route=False)
        if answer.ok:
            said = f"HEAD {path} with no token: {answer.status}"
            ctx.expect(answer.status == 401, "K1", said, allowed="401", answers=(answer,))
        answer = await ctx.session.send("OPTIONS", path, token=None, json_route=False)
        if answer.ok:
            said = f"OPTIONS {path} with no token: {answer.status}"
            ctx.expect(answer.status == 401, "K1", said, allowed="401", answers=(answer,))


@check("K1", even=(DISABLED,))
async def the_scheme_may_be_written_in_any_case(ctx: Context) -> None:
    """`bearer` and `BEARER` with the token open every door; so the 401s are for the token."""
    token = ctx.target.token
    if not token:
        return
    metrics = ctx.target.metrics.path or "/metrics"
    for scheme in ("Bearer", "bearer", "BEARER", "bEaReR"):
        headers = {"Authorization": f"{scheme} {token}"}
        for method, path, body, prefix in (
            ("GET", "/jobs/cf-unknown", None, True),
            ("POST", "/jobs", b"nope", True),
            ("GET", metrics, None, False),
        ):
            answer = await ctx.session.send(
                method,
                path,
                body=body,
                prefix=prefix,
                token=None,
                headers=headers,
                json_route=path != metrics,
            )
            if answer.ok:
                said = f"{method} {path} with the scheme {scheme}: {answer.status}"
                fine = answer.status not in (401, 403)
                ctx.expect(fine, "K1", said, allowed="not 401", answers=(answer,))


@check("K1", needs=("bodies.quick",), places=1)
async def a_known_job_is_401_too(ctx: Context) -> None:
    """Without the token a job that exists looks like one that does not."""
    if not ctx.target.token:
        return
    sent = await admit(ctx, "quick")
    if sent.job is None:
        return
    job = sent.job
    await ctx.session.until_terminal(job, ctx.session.patience_s())
    for path in (job.poll_url, job.result_url, f"{ctx.target.prefix}/jobs/{job.id}/wait"):
        for token in (None, "wrong"):
            answer = await ctx.session.send("GET", path, token=token, prefix=False)
            if answer.ok:
                said = f"GET {path} of a known job without the token: {answer.status}"
                ctx.expect(answer.status == 401, "K1", said, allowed="401", answers=(answer,))
    await _alike(ctx, job.id)
    for method in ("DELETE", "HEAD"):
        answer = await ctx.session.send(
            method, f"/jobs/{job.id}", token=None, json_route=method != "HEAD"
        )
        if answer.ok:
            said = f"{method} on a known job without the token: {answer.status}"
            ctx.expect(answer.status == 401, "K1", said, allowed="401", answers=(answer,))


async def _alike(ctx: Context, known: str) -> None:
    """The 401s of a known and of an unknown id say the same (ids and numbers aside)."""
    said: dict[str, set[str]] = {}
    for _ in range(2):
        for kind, job_id in (("known", known), ("unknown", f"cf-{ctx.session.nonce()}")):
            answer = await ctx.session.send("GET", f"/jobs/{job_id}", token=None)
            if answer.status != 401:
                return
            text = re.sub(r"\d+", "#", error_text(ctx, answer).replace(job_id, "<id>"))
            said.setdefault(kind, set()).add(text)
    # Only where each kind always reads the same does a difference tell them apart.
    if all(len(texts) == 1 for texts in said.values()):
        fine = said["known"] == said["unknown"]
        why = f"the 401 of a known id reads {said['known']}, of an unknown one {said['unknown']}"
        ctx.expect(fine, "K1", why, allowed="alike")
