"""Contrastive losses and methods, how they are trained, and what they make of every sample."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contrastive_core.recording import watch

__all__ = ["watch"]

# How often a waiting thread of GNU OpenMP looks before it sleeps, if torch is not loaded yet. Its own choice, 300,000
# times, is right for one process alone: beside another one it waits for threads that are not running, and a linear
# probe next to a training took 9 times as long, the training 2.6 times (benchmarks/beside.py).
os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def __getattr__(name: str) -> Any:
    """`watch` brings torch along, which most readers of this package do not need."""
    if name == "watch":
        from contrastive_core.recording import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
