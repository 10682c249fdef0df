"""Names of imported runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["default_run_name"]


def default_run_name(report: Mapping[str, object]) -> str:
    """Return a run's name made from the file's or the model's, as `OpenedCheckpoint.report` or
    `pretrained.about` reports it."""
    text = str(report.get("file")).split(".")[0]
    if report.get("of_library", True):
        text = str(report["encoder"]).partition(":")[2] + "-random" * bool(report.get("random"))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:50] or "import"
