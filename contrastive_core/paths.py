"""Where things lie: users' runs, shipped runs, and what can be made again. Torch-free."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["ROOT", "SHIPPED", "data_home", "follow_links", "runs_home"]

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "checkpoints" / "shipped"


def runs_home() -> Path:
    """Where users' runs live: $CONTRASTIVE_LAB_RUNS, or `checkpoints/runs`."""
    return Path(os.environ.get("CONTRASTIVE_LAB_RUNS") or ROOT / "checkpoints" / "runs")


def data_home() -> Path:
    """Where what can be made again is kept: $CONTRASTIVE_LAB_HOME, or `.cache`."""
    return Path(os.environ.get("CONTRASTIVE_LAB_HOME") or ROOT / ".cache")


def follow_links() -> bool:
    """Whether links inside image folders are followed: where $CONTRASTIVE_LAB_FOLLOW_LINKS is 1."""
    return os.environ.get("CONTRASTIVE_LAB_FOLLOW_LINKS") == "1"
