"""The server's own description in OpenAPI 3.1, made from its configuration."""

from typing import Any

from counterfoil_server.config import Settings

__all__ = ["describe"]


def describe(settings: Settings) -> dict[str, Any]:
    """The document behind `/openapi.json`."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Counterfoil model server", "version": "1"},
        "servers": [{"url": settings.prefix or "/"}],
        "paths": {},
    }
