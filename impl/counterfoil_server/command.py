"""`counterfoil serve`: read the configuration, load the model, listen."""

import argparse
import asyncio
import gc
import os
import socket
import sys
from pathlib import Path

from counterfoil_server.config import KEYS, ConfigError, Settings, load_settings
from counterfoil_server.core import Core
from counterfoil_server.logs import set_up_logging
from counterfoil_server.models import ModelError, load_model
from counterfoil_server.open_files import room_for
from counterfoil_server.serving import bind, new_loop, serve

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A flag for every key of the configuration."""
    parser.epilog = (
        "Every key can also be set in the environment (COUNTERFOIL_ASYNC_MAX_QUEUE=4) or in the "
        "file given with --config (TOML: async_max_queue = 4). Flags win over the environment, "
        "the environment wins over the file. Times are in ms."
    )
    parser.add_argument("--config", type=Path, help="a TOML file")
    parser.add_argument("--check", action="store_true", help="show what would be served, and end")
    defaults = Settings()
    for key in KEYS:
        shown = getattr(defaults, key.name)
        text = f"{key.help} (default: {shown!r})".replace("%", "%%")
        if key.kind is bool:
            parser.add_argument(key.flag, nargs="?", const="true", metavar="true|false", help=text)
        else:
            parser.add_argument(key.flag, metavar=key.kind.__name__.upper(), help=text)


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop: 0; 2 with one line when something is wrong from the start."""
    try:
        settings = load_settings(vars(args), os.environ, args.config)
        set_up_logging(settings)
        card = Path(settings.model_card) if settings.model_card else None
        model = load_model(settings.model, card, settings.max_pixels)
        if args.check:
            return _show(settings)
        core = Core(settings, model)
        listener = bind(settings)
        room_for(settings.max_connections)
    except (ConfigError, ModelError) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(_which(error, settings))
    try:
        code = _run_loop(core, listener)
    except ConfigError as error:
        return _refuse(str(error))
    if core.pool.stuck or core.pool.busy:
        sys.stdout.flush()
        os._exit(code)  # the interpreter must not wait for, or tear down under, a stuck run
    return code


def _run_loop(core: Core, listener: socket.socket) -> int:
    gc.freeze()  # what is loaded stays; and hardly anything that a request makes has cycles
    gc.set_threshold(50_000, 20, 20)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(serve(core, listener))


def _show(settings: Settings) -> int:
    for key in KEYS:
        value = getattr(settings, key.name)
        print(f"{key.name} = {'(hidden)' if key.secret and value else repr(value)}")
    return 0


def _which(error: OSError, settings: Settings) -> str:
    """Whether it was the event log that cannot be opened, or the address."""
    if error.filename:
        return f"event_log = {settings.event_log!r}: {error.strerror}"
    return f"host, port = {settings.host}:{settings.port}: {error.strerror}"


def _refuse(line: str) -> int:
    print(f"counterfoil serve: {line}", file=sys.stderr)
    return 2
