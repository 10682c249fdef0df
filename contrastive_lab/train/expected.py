"""How long a training will take: at the rate of an earlier one like it on this machine."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core import runs
from contrastive_core.runs import Run
from contrastive_lab import format

__all__ = ["expected"]


def expected(data: str, arguments: list[str], method: str, epochs: int, given: list[str]) -> None:
    """A sentence; where nothing like it was trained here, that it is not known."""
    encoder = arguments[arguments.index("--encoder") + 1]
    sizes = [s.partition("=")[2].strip() for s in given if s.startswith("batch_size=")]
    batch = sizes[-1] if sizes else None
    for run in runs.list_runs():
        if _is_like(run, data, method, encoder, batch) and (rate := _seconds_per_epoch(run)):
            st.caption(format.plain(
                f"About {format.duration(epochs * rate)}: an estimate, from {rate:.2g} s an epoch "
                f"of {run.name} on this machine."
            ))  # fmt: skip
            return
    if data:
        st.caption("How long it takes is not known yet: nothing like it was trained here.")


def _is_like(run: Run, data: str, method: str, encoder: str, batch: str | None) -> bool:
    if run.shipped or run.is_recording:
        return False
    config: dict[str, Any] = run.config
    same = (config.get("dataset"), config.get("method"), config.get("encoder"))
    return same == (data, method, encoder) and batch in (None, str(config.get("batch_size")))


def _seconds_per_epoch(run: Run) -> float | None:
    """Of a run's last epoch that was measured; kept until its metrics change."""
    path = run.path / "metrics.jsonl"
    try:
        return _measured(str(path), path.stat().st_mtime_ns, run)
    except OSError:
        return None


@st.cache_data(max_entries=64, show_spinner=False)
def _measured(path: str, changed: int, _run: Run) -> float | None:
    lines = [x for x in _run.metrics() if x.get("seconds") and x.get("epoch")]
    return float(lines[-1]["seconds"]) / int(lines[-1]["epoch"]) if lines else None
