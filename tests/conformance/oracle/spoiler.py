"""Spoil a history a little: change an answer, move or stretch an interval, swap two answers."""

from dataclasses import replace

STATES = ("pending", "running", "done", "failed", "timeout")


def spoil(calls, rng, times=1):
    """The history with `times` random changes; it may or may not still have an explanation."""
    calls = list(calls)
    for _ in range(times):
        if calls:
            index = rng.randrange(len(calls))
            calls[index] = rng.choice([_answer, _answer, _interval])(calls[index], calls, rng)
    return tuple(calls)


def _answer(call, calls, rng):
    """Another answer that the same call might have had."""
    reply = call.reply or {}
    state = rng.choice(STATES)
    error = "e" if state in ("failed", "timeout") else None
    absent = rng.random() < 0.4
    match call.op:
        case "submit":
            reply = {"refused": True} if "job" in reply else {"job": f"job_{len(calls)}99"}
        case "depth":
            reply = {"depth": rng.randrange(4)}
        case "start" | "finish" | "fail" | "timeout":
            reply = {"accepted": not reply.get("accepted")}
        case "snapshot" | "wait":
            reply = {"unknown": True} if absent else {"state": state, "error": error}
        case "result":
            told = {"status": "not_done", "state": state}
            told = {"status": "ready"} if state == "done" else told
            reply = {"status": "not_found"} if absent else told
    return replace(call, reply=reply)


def _interval(call, calls, rng):
    """The same call at another time, or in a shorter one."""
    if call.return_us is None:
        return call
    if rng.random() < 0.5:
        middle = rng.uniform(call.call_us, call.return_us)
        half = (call.return_us - call.call_us) * rng.random() / 2
        return replace(call, call_us=int(middle - half), return_us=int(middle + half) + 1)
    shift = rng.choice([-1, 1]) * rng.randrange(1, 20_000)
    return replace(call, call_us=call.call_us + shift, return_us=call.return_us + shift)
