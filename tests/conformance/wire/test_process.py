"""The target's process is started, asked to end, killed, and never left running."""

import asyncio
import socket
import sys

import pytest

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.wire.own_server import reserved_port
from counterfoil_conformance.wire.process import TargetProcess
from counterfoil_conformance.wire.target import Process, Target

LISTEN = (
    "import signal,socket,sys,time;"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(sys.argv[2])));"
    "s=socket.create_server(('127.0.0.1', int(sys.argv[1])));"
    "time.sleep(60)"
)


def target(start, port, **commands):
    return Target(base_url=f"http://127.0.0.1:{port}", process=Process(start=start, **commands))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def listener(port, code=0):
    return f'{sys.executable} -c "{LISTEN}" {port} {code}'


def test_a_reserved_port_is_a_servers_and_nobody_elses():
    with reserved_port() as port:
        with socket.create_server(("127.0.0.1", port)), pytest.raises(OSError, match="in use"):
            socket.create_server(("127.0.0.1", port))
        with socket.create_server(("127.0.0.1", port)):
            pass  # and again, after a restart
        others = {free_port() for _ in range(2000)}
    assert port not in others


def test_a_stop_is_a_sigterm_and_the_exit_code_is_known():
    async def run():
        port = free_port()
        process = TargetProcess(target(listener(port, 7), port))
        assert not process.ours and not process.can_stop()
        await process.start()
        assert process.ours and process.can_stop() and await process.listening()
        assert process.exit_code is None
        await process.stop()
        assert await process.ended(30)
        assert process.exit_code == 7 and not process.ours

    asyncio.run(run())


def test_a_kill_ends_it_at_once_and_it_can_be_started_again():
    async def run():
        port = free_port()
        process = TargetProcess(target(listener(port), port))
        await process.start()
        await process.kill()
        assert await process.ended(30) and process.exit_code != 0
        await process.start()
        assert process.ours
        await process.abandon()
        assert not process.ours and not await process.listening()

    asyncio.run(run())


def test_a_shell_command_is_run_by_a_shell_and_its_group_is_signalled():
    async def run():
        port = free_port()
        process = TargetProcess(target(f"true && exec {listener(port, 3)}", port))
        await process.start()
        await process.stop()
        assert await process.ended(30)
        assert process.exit_code == 3

    asyncio.run(run())


def test_a_stop_command_takes_the_place_of_the_signal():
    async def run():
        port = free_port()
        commands = {"stop": 'kill -TERM "$COUNTERFOIL_PID"'}
        process = TargetProcess(target(listener(port), port, **commands))
        await process.start()
        await process.stop()
        assert await process.ended(30) and process.exit_code == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("start", "said"),
    [("/no/such/program", "process.start"), (f'{sys.executable} -c "print(5)"', "exit code 0")],
)
def test_a_command_that_does_not_serve_is_the_harness_s_fault(start, said):
    process = TargetProcess(target(start, free_port()))
    with pytest.raises(HarnessError, match=said):
        asyncio.run(process.start())
