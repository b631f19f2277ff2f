"""A load generator that costs little: keep-alive connections, fixed bytes, counted answers.

It runs in a process of its own, so that the server is what saturates. Answers are told apart by
their `content-length` only; the first status of every connection is checked, and the count of other
statuses is reported.
"""

import asyncio
import json
import sys
import time

__all__ = ["request_bytes"]


def request_bytes(method: str, path: str, body: bytes = b"", token: str = "") -> bytes:
    """A request as it goes over the wire."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: bench",
        "content-type: application/json",
        f"content-length: {len(body)}",
    ]
    if token:
        lines.append(f"authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection(asyncio.Protocol):
    """One request in flight, all the time."""

    def __init__(self, request: bytes, status: bytes) -> None:
        self.request = request
        self.status = status
        self.answers = 0
        self.others = 0
        self.buffer = b""
        self.latencies: list[float] = []
        self.sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.sent_at = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.find(b"content-length: ") + 16
        size = int(self.buffer[at : self.buffer.find(b"\r", at)])
        if len(self.buffer) < head + 4 + size:
            return
        self.latencies.append(time.perf_counter() - self.sent_at)
        self.answers += 1
        self.others += self.buffer[9:12] != self.status
        self.buffer = b""
        self.send()


async def flood(
    port: int, request: bytes, status: bytes, connections: int, seconds: float
) -> dict[str, float]:
    """Requests per second and latencies in ms, after a warm-up of a fifth of the time."""
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Connection(request, status), "127.0.0.1", port)
        for _ in range(connections)
    ]
    protocols = [protocol for _, protocol in made]
    await asyncio.sleep(seconds / 5)
    warm = sum(protocol.answers for protocol in protocols)
    for protocol in protocols:
        protocol.answers = 0
        protocol.latencies.clear()
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    spent = time.perf_counter() - began
    answers = sum(protocol.answers for protocol in protocols)
    latencies = sorted(ms for protocol in protocols for ms in protocol.latencies)
    for transport, _ in made:
        transport.abort()
    return {
        "per_second": answers / spent,
        "requests": warm + answers,
        "others": sum(protocol.others for protocol in protocols),
        "p50_ms": latencies[len(latencies) // 2] * 1000,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1000,
    }


def main() -> None:
    order = json.load(sys.stdin)
    request = request_bytes(
        order["method"], order["path"], order["body"].encode(), order.get("token", "")
    )
    status = str(order["status"]).encode()
    result = asyncio.run(
        flood(order["port"], request, status, order["connections"], order["seconds"])
    )
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
