"""An answer that comes while we are sending is read, also when the peer then resets us."""

import asyncio
import socket
import struct

import pytest

from counterfoil_conformance.wire.client import Client, Connection
from counterfoil_conformance.wire.stubborn import chunked, open_stubborn, send_in_pieces
from counterfoil_conformance.wire.target import Target

REFUSAL = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


async def served(behave):
    """A server whose connections `behave`, and a client for it."""

    async def hold(reader, writer):
        await behave(reader, writer)
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    return server, Client(Target(base_url=f"http://127.0.0.1:{port}"))


async def reset_after_the_answer(reader, writer):
    await reader.readexactly(100)
    writer.write(REFUSAL)
    await writer.drain()
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def read_all_first(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(300_000)
    writer.write(REFUSAL)
    await writer.drain()


async def close_without_a_word(reader, writer):
    await reader.readexactly(100)


@pytest.mark.parametrize(
    ("behave", "early"), [(reset_after_the_answer, True), (read_all_first, False)]
)
def test_a_413_is_read_whenever_it_comes(behave, early):
    async def run():
        server, client = await served(behave)
        async with server:
            conn = await open_stubborn(client)
            headers = {"Content-Length": "300000"}
            request = client.request("POST", "/jobs", headers=headers)
            pieces = (b" " * 10_000 for _ in range(30))
            answer, was_early = await send_in_pieces(conn, request, pieces, pause_s=0.005)
            conn.close()
            assert (answer.status, was_early) == (413, early)
            assert not conn.alive

    asyncio.run(run())


def test_no_answer_at_all_is_trouble_and_no_exception():
    async def run():
        server, client = await served(close_without_a_word)
        async with server:
            conn = await open_stubborn(client)
            assert isinstance(conn, Connection)
            request = client.request("POST", "/jobs", headers={"Content-Length": "300000"})
            pieces = (b" " * 10_000 for _ in range(30))
            answer, _ = await send_in_pieces(conn, request, pieces, pause_s=0.005)
            conn.close()
            assert answer.trouble in ("closed", "reset")

    asyncio.run(run())


def test_a_target_that_is_not_there_gives_no_connection():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    client = Client(Target(base_url=f"http://127.0.0.1:{port}"))
    assert asyncio.run(open_stubborn(client)) is None


def test_chunks_are_a_body_with_its_end():
    assert b"".join(chunked(b"abcdefg", 3)) == b"3\r\nabc\r\n3\r\ndef\r\n1\r\ng\r\n0\r\n\r\n"
