"""A connection that ends, in whichever way, is given back at once and not at the next collection.

The collector comes once in tens of thousands of objects. Until then every connection that is part
of a cycle keeps its buffers, its request and its answer: some kilobytes that anyone can have the
server hold by cutting connections.
"""

import gc
import socket

import pytest
from sanic.http import Http

from counterfoil_server.wire_protocol import ForgivingHttp

NUMBER = 20
CUT = {
    "before a request": b"",
    "in its head": b"POST /jobs HTTP/1.1\r\nhost",
    "in its body": b"POST /jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{",
    "in a wait": b"GET /jobs/%s/wait HTTP/1.1\r\nhost: x\r\n\r\n",
}


def cut(client, data):
    """Send some bytes and the end of our side, and read until the server has closed its own."""
    with socket.create_connection((client.address.hostname, client.address.port)) as connection:
        connection.settimeout(60)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def left_in_cycles(client, data):
    """How many connections, of some that were cut, only the collector would give back."""
    data = data.replace(b"%s", client.admitted("hang").encode())
    cut(client, data)
    gc.collect()
    gc.disable()
    try:
        for _ in range(NUMBER):
            cut(client, data)
        client.get("/healthz")
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return sum(isinstance(one, Http) for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("where", CUT)
def test_a_connection_that_is_cut_leaves_nothing_to_collect(serve, where):
    assert left_in_cycles(serve(), CUT[where]) == 0


def test_a_connection_that_kept_its_request_would_be_found(serve, monkeypatch):
    monkeypatch.delattr(ForgivingHttp, "http1")
    assert left_in_cycles(serve(), CUT["in its body"]) > NUMBER // 2
