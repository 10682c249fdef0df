"""How long a training will take: at the rate of an earlier one like it on this machine."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.records import runs
from contrastive_core.records.image_form import SMALL
from contrastive_core.records.run import Run
from contrastive_lab import format
from contrastive_lab.locale import _


def expected(data: str, arguments: list[str], method: str, epochs: int, given: list[str]) -> None:
    """A sentence; where nothing like it was trained here, that it is not known."""
    encoder = _after(arguments, "--encoder")
    sizes = [s.partition("=")[2].strip() for s in given if s.startswith("batch_size=")]
    batch = sizes[-1] if sizes else None
    for run in runs.list_runs():
        is_like = _is_like(run, data, method, encoder, batch) and _has_size(run, arguments)
        if is_like and (rate := _seconds_per_epoch(run)):
            each = f"{rate:.2g} s" if rate < 10 else format.duration(rate)
            st.caption(
                format.plain(
                    _("About {epochs}: an estimate, from {each} an epoch of {name} on this machine.").format(
                        epochs=format.duration(epochs * rate), each=each, name=run.name
                    )
                )
            )
            return
    if data:
        st.caption(_("How long it takes is not known yet: nothing like it was trained here."))


def _is_like(run: Run, data: str, method: str, encoder: str | None, batch: str | None) -> bool:
    if run.shipped or run.is_recording:
        return False
    config: dict[str, Any] = run.config
    same = (config.get("dataset"), config.get("method"), config.get("encoder"))
    return same == (data, method, encoder) and batch in (None, str(config.get("batch_size")))


def _has_size(run: Run, arguments: list[str]) -> bool:
    """Whether its images are of the size that is asked for; without one, that the small encoder
    would take."""
    size, asked = int(run.config.get("image_size") or 0), _after(arguments, "--image-size")
    if asked is not None:
        return size == int(asked)
    return size <= SMALL or run.config.get("encoder") != "small"


def _after(arguments: list[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments else None


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
