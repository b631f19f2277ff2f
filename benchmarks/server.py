"""The shipped server with one more route: the framework's bare JSON echo, the limit.

Both routes are answered by the same process, so that one run on one machine compares them. With
`external` no job is run, so that what is measured is the 202 path; a new process for every round
keeps the jobs from piling up.
"""

import asyncio
import gc
import sys

import uvloop
from sanic import Request, response

from counterfoil_server.app import App, build_app
from counterfoil_server.config import Settings
from counterfoil_server.core import Core
from counterfoil_server.probe_model import ProbeModel
from counterfoil_server.serving import bind, running

TOKEN = "bench"


def with_echo(core: Core) -> App:
    """The application, and `/echo`."""
    app = build_app(core)

    async def echo(request: Request) -> response.HTTPResponse:
        return response.json(request.json)

    app.add_route(echo, "/echo", methods=["POST"])
    return app


async def main() -> None:
    settings = Settings(
        port=0,
        token=TOKEN,
        async_enabled=True,
        async_max_queue=10**7,
        runner="external" if "external" in sys.argv else "internal",
        runner_token="runner",
        workers=2,
        async_timeout=3_600_000,
    )
    listener = bind(settings)
    async with running(Core(settings, ProbeModel()), listener, with_echo):
        print(listener.getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    uvloop.run(main())
