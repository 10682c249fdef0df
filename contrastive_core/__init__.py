"""Contrastive losses and methods, how they are trained, and what they make of every sample."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contrastive_core.recording import watch

__all__ = ["watch"]

# How often a waiting thread of GNU OpenMP looks before it sleeps, if torch is not loaded yet. Its own choice, 300,000
# times, is right for one process alone: beside others it waits for threads that are not running. With two busy loops
# NT-Xent of 4,096 images took 15.8 s, and 0.55 s with 1,000 looks; alone both take 226 ms. The runtimes of macOS and
# Windows have a setting in time, KMP_BLOCKTIME, which was not measured.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def __getattr__(name: str) -> Any:
    """`watch` brings torch along, which most readers of this package do not need."""
    if name == "watch":
        from contrastive_core.recording import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
