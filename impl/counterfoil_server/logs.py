"""Structured logs: one line per event, as text for people or as JSON for machines.

The code logs through the standard library, with what belongs to an event as `extra` fields
(`request_id`, `job_id`, `trace_id`), so that it can be embedded anywhere; only the process that
serves decides how a line looks. Tokens and bodies are never logged (K2).
"""

import logging
import sys

import structlog

from counterfoil_server.config import Settings

__all__ = ["set_up_logging"]


def set_up_logging(settings: Settings) -> None:
    """Log to stderr in the configured level and format."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(settings.log_format),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    logging.getLogger("sanic").setLevel("WARNING")
    logging.getLogger("sanic.error").addFilter(_is_news)


def _rendering(log_format: str) -> list[structlog.typing.Processor]:
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    return [structlog.dev.ConsoleRenderer(colors=False)]


def _is_news(record: logging.LogRecord) -> bool:
    """The framework logs an error for every GET that has a body; any client can send one."""
    return not record.getMessage().endswith("body not consumed.")
