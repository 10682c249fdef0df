"""What the client and the worker send each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["DONE", "FAILED", "PROGRESS", "Request", "Stop", "Stopped"]

DONE, FAILED, PROGRESS = "done", "failed", "progress"  # kinds of replies


@dataclass(frozen=True)
class Request:
    """A call of `function` ("module:name"), which also gets an `OnProgress` where it `reports`.

    `environment` holds the variables that say where runs and caches lie.
    """

    number: int
    function: str
    arguments: tuple[Any, ...]
    reports: bool = False
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stop:
    """Stop the request of this number at its next report of progress."""

    number: int


class Stopped(Exception):
    """The client asked the worker to stop."""
