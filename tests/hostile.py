"""Targets that misbehave on purpose: one function per way, on a thread, on a free port."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

Behaviour = Callable[[socket.socket], None]


def read_request(conn: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = conn.recv(65536)
        if not chunk:
            break
        data += chunk
    return data


def hangs(conn: socket.socket) -> None:
    read_request(conn)
    time.sleep(60)


def closes(conn: socket.socket) -> None:
    read_request(conn)


def resets(conn: socket.socket) -> None:
    read_request(conn)
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def babbles(conn: socket.socket) -> None:
    read_request(conn)
    conn.sendall(b"\x16\x03\x01\x00\xff babble babble\r\n\r\n" * 50)


def answers_half(conn: socket.socket) -> None:
    read_request(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")


def promises_too_little(conn: socket.socket) -> None:
    read_request(conn)
    conn.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"state": "pending"}')


def floods(conn: socket.socket) -> None:
    read_request(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
    with contextlib.suppress(OSError):
        for _ in range(100):
            conn.sendall(b"x" * 1_048_576)


def has_no_end_of_head(conn: socket.socket) -> None:
    read_request(conn)
    with contextlib.suppress(OSError):
        conn.sendall(b"HTTP/1.1 200 OK\r\n")
        for _ in range(2000):
            conn.sendall(b"X-More: " + b"y" * 1000 + b"\r\n")


def drips(conn: socket.socket) -> None:
    read_request(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    with contextlib.suppress(OSError):
        for _ in range(600):
            conn.sendall(b" ")
            time.sleep(0.1)


def says(head: bytes, body: bytes) -> Behaviour:
    """Answers every request on a connection with the same bytes."""

    def behave(conn: socket.socket) -> None:
        while read_request(conn):
            length = f"Content-Length: {len(body)}\r\n\r\n".encode()
            conn.sendall(head + b"\r\n" + length + body)

    return behave


@contextlib.contextmanager
def target_that(behaviour: Behaviour) -> Iterator[str]:
    """The base URL of a server that treats every connection so."""
    server = socket.create_server(("127.0.0.1", 0), backlog=200)
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                conn, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=treat, args=(conn,), daemon=True).start()

    def treat(conn: socket.socket) -> None:
        with conn, contextlib.suppress(OSError):
            behaviour(conn)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        stopped.set()
        server.close()
