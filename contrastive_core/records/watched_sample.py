"""Of how many labeled images the figures are that a run takes while it trains."""

from __future__ import annotations

from contrastive_core.errors import Damaged
from contrastive_core.records.run import Run

__all__ = ["labeled_images"]

_counted: dict[tuple[str, int], int] = {}  # by folder and when a snapshot was last written there


def labeled_images(run: Run) -> int:
    """Images of the fixed sample that have a class; 0 where no snapshot is there to count them.

    Pages ask every second: the snapshots' labels are read when there is a new one."""
    try:
        key = (str(run.path), (run.path / "snapshots").stat().st_mtime_ns)
        if key not in _counted:
            epochs = run.snapshots()
            n = int((run.snapshot(epochs[-1])["labels"] >= 0).sum()) if epochs else 0
            _counted[key] = n
        return _counted[key]
    except (OSError, Damaged):
        return 0
