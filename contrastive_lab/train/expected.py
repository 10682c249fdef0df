"""How long a training will take: at the rate of an earlier one like it on this machine."""

from collections.abc import Sequence

import streamlit as st

from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.records.train_config import SMALL
from contrastive_lab import format
from contrastive_lab.locale import _


def expected(data: str, method: str, encoder: str, epochs: int, settings: Sequence[str]) -> None:
    """A sentence; where nothing like it was trained here, that it is not known. settings: NAME=VALUE."""
    chosen = {name.strip(): value.strip() for name, _is, value in (s.partition("=") for s in settings)}
    for run in runs.list_runs():
        is_own = not (run.shipped or run.is_recording)
        same = tuple(map(run.config.get, ("dataset", "method", "encoder"))) == (data, method, encoder)
        if is_own and same and _fits(run, chosen) and (rate := _seconds_per_epoch(run)):
            each = f"{rate:.2g} s" if rate < 10 else format.duration(rate)
            text = _("About {epochs}, estimated from {each} per epoch of {name} on this machine.")
            st.caption(format.plain(text.format(epochs=format.duration(epochs * rate), each=each, name=run.name)))
            return
    if data:
        st.caption(_("No time estimate yet: nothing similar was trained on this machine."))


def _fits(run: Run, chosen: dict[str, str]) -> bool:
    """Whether its batch and image size are the chosen ones; without a chosen size, the small encoder's."""
    if chosen.get("batch_size") not in (None, str(run.config.get("batch_size"))):
        return False
    size = int(run.config.get("image_size") or 0)
    if "image_size" in chosen:
        return str(size) == chosen["image_size"]
    return size <= SMALL or run.config.get("encoder") != "small"


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
