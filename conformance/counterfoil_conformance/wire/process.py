"""The target's process, where the target file says how to start and stop it.

`[process].start` is a command that stays in the foreground; the kit runs it, watches it, and sends
it SIGTERM or SIGKILL, or runs `stop` or `kill` in their place. A plain command is run without a
shell, so that its exit code and its signals are its own; one with shell syntax is run by `sh`, in a
process group that gets the signals.

A target that was already running when the run began is not ours to signal: then only the commands
of the target file can stop it, and its exit code cannot be known.
"""

import asyncio
import os
import re
import shlex
import signal
import subprocess
import tempfile
from contextlib import suppress
from typing import Final

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.wire.target import Target

__all__ = ["READY_WITHIN_S", "TargetProcess"]

READY_WITHIN_S: Final = 30.0
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"$`\\]*\"")
_SHELL_SYNTAX: Final = re.compile(r"[|&;<>()$`*?~#\n]")


class TargetProcess:
    """Starts, stops and kills one target. All waits are bounded; nothing is left running."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._commands = target.process
        self._running: subprocess.Popen[bytes] | None = None
        self._by_shell = False
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this does

    @property
    def ours(self) -> bool:
        """Whether the kit started the process that runs now."""
        return self._running is not None and self._running.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process the kit started; None if unknown or still running.

        A shell that stood between us and the target says nothing of the target's own code when it
        died of the signal itself.
        """
        code = self._running.poll() if self._running is not None else None
        return None if self._by_shell and code is not None and code < 0 else code

    def can_stop(self) -> bool:
        """Whether it can be asked to end."""
        return self.ours or bool(self._commands.stop)

    def can_kill(self) -> bool:
        """Whether it can be ended at once."""
        return self.ours or bool(self._commands.kill)

    async def start(self) -> None:
        """Start it, and return once it accepts connections.

        Raises:
            HarnessError: it cannot be run, it ended, or it did not listen in time.
        """
        command = self._commands.start
        self._by_shell = _SHELL_SYNTAX.search(_QUOTED.sub("", command)) is not None
        words = ["sh", "-c", command] if self._by_shell else shlex.split(command)
        try:
            self._running = subprocess.Popen(  # noqa: ASYNC220 - spawning is prompt
                words,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise HarnessError(f"process.start = {command!r}: {error}") from error
        await self._until_listening()

    async def _until_listening(self) -> None:
        deadline = asyncio.get_running_loop().time() + READY_WITHIN_S
        while not await self.listening():
            if self._running is not None and self._running.poll() is not None:
                code = self._running.returncode
                raise HarnessError(
                    f"process.start = {self._commands.start!r} ended with exit code {code} "
                    f"before it listened: {self.last_words()}"
                )
            if asyncio.get_running_loop().time() > deadline:
                await self.abandon()
                raise HarnessError(
                    f"process.start = {self._commands.start!r} did not listen on "
                    f"{self.target.base_url} within {READY_WITHIN_S:g} s"
                )
            await asyncio.sleep(0.05)
        if self._running is not None and self._running.poll():
            raise HarnessError(
                f"process.start = {self._commands.start!r} ended ({self.last_words()}), and "
                f"something else answers on {self.target.base_url}"
            )

    async def listening(self) -> bool:
        """Whether something accepts connections where the target should be."""
        try:
            async with asyncio.timeout(1.0):
                _, writer = await asyncio.open_connection(self.target.host, self.target.port)
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    async def stop(self) -> None:
        """Ask it to end: `process.stop`, or SIGTERM."""
        await self._end(self._commands.stop, signal.SIGTERM)

    async def kill(self) -> None:
        """End it at once: `process.kill`, or SIGKILL."""
        await self._end(self._commands.kill, signal.SIGKILL)

    async def ended(self, within_s: float) -> bool:
        """Whether it is over within that time: the process we started, or its listener."""
        deadline = asyncio.get_running_loop().time() + within_s
        while True:
            if self._running is not None:
                over = self._running.poll() is not None
            else:
                over = not await self.listening()
            if over or asyncio.get_running_loop().time() > deadline:
                return over
            await asyncio.sleep(0.02)

    async def abandon(self) -> None:
        """Kill what we started, if it still runs."""
        if self.ours:
            self._signal(signal.SIGKILL)
            await self.ended(5.0)

    def last_words(self) -> str:
        """The last line the process printed."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 4096))
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else "(it printed nothing)"

    async def _end(self, command: str, how: signal.Signals) -> None:
        if command:
            await asyncio.to_thread(self._run, command)
        else:
            self._signal(how)

    def _run(self, command: str) -> None:
        pid = str(self._running.pid) if self._running is not None else ""
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "COUNTERFOIL_PID": pid},
                timeout=READY_WITHIN_S,
                check=False,
            )

    def _signal(self, how: signal.Signals) -> None:
        if self._running is None:
            return
        with suppress(ProcessLookupError):
            if self._by_shell or how is signal.SIGKILL:
                os.killpg(self._running.pid, how)
            else:
                self._running.send_signal(how)
