"""Estimates of a training: time, from a similar earlier one on this machine, and disk space."""

import shutil

import streamlit as st

from contrastive_core import runs
from contrastive_core.base.paths import data_home
from contrastive_core.data import datasets
from contrastive_core.data.dataset import SMALL, form_of
from contrastive_core.data.folder_selection import name_of, values_of
from contrastive_core.data.image_cache import space_of
from contrastive_core.data.image_sets import allowed_space
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_lab import cache, format
from contrastive_lab.locale import _, sentence

EXAMPLES = (64, 224)  # pixels of a side


def expected(config: TrainConfig | None, data: str) -> None:
    """Draw the estimated time, or a note that no similar run was trained here. `config`: resolved settings."""
    names = ("dataset", "method", "encoder", "batch_size", "image_size")
    for run in runs.list_runs() if config else ():
        is_same = all(run.config.get(name) == getattr(config, name) for name in names)
        if is_same and config and not (run.shipped or run.is_recording) and (rate := _seconds_per_epoch(run)):
            each = f"{rate:.2g} s" if rate < 10 else format.duration(rate)
            text = _("About {epochs}, estimated from {each} per epoch of {name} on this machine.")
            st.caption(
                format.plain(text.format(epochs=format.duration(config.epochs * rate), each=each, name=run.name))
            )
            return
    if data:
        st.caption(_("No time estimate yet: nothing similar was trained on this machine."))


def _seconds_per_epoch(run: Run) -> float | None:
    """Return the seconds of a run's last measured epoch, cached until its metrics change; None if there is none."""
    path = run.path / "metrics.jsonl"
    try:
        return _measured(str(path), path.stat().st_mtime_ns, run)
    except OSError:
        return None


@st.cache_data(max_entries=64, show_spinner=False)
def _measured(path: str, changed: int, _run: Run) -> float | None:
    lines = [x for x in _run.metrics() if x.get("seconds") and x.get("epoch")]
    return float(lines[-1]["seconds"]) / int(lines[-1]["epoch"]) if lines else None


def wrong_size(folder: str, config: TrainConfig) -> str:
    """Return the reason why decoded images do not fit on the disk."""
    free = _free_space()
    if config.cache != "memory-map" or not (beyond := _beyond(folder, config, free)):
        return ""
    return _(
        "Decoded at {side} pixels, {n} images take {needed} GB, and {free} GB are free: choose a smaller size."
    ).format(side=config.image_size, n=f"{beyond[0]:,}", needed=f"{beyond[1] / 1e9:,.1f}", free=f"{free / 1e9:,.1f}")


def about_disk(folder: str, config: TrainConfig | None) -> list[str]:
    """Describe the disk space of the decoded images, at two common sizes if theirs is unknown; or that none is used."""
    if (result := cache.result("folder", values_of(folder))) is None:
        return []
    try:
        allowed = allowed_space(data_home())
    except ValueError as error:
        return [sentence(error)]
    if config and (config.cache == "stream" or (config.cache == "auto" and _beyond(folder, config, allowed))):
        return [_("The images are decoded again in each epoch of training. Nothing is stored on disk.")]
    n, channels = sum(map(sum, result.meta["counts"])), result.meta.get("channels")
    template = _("{n} images of {channels} channels") if channels else _("{n} images in color")
    images, at_side = template.format(n=f"{n:,}", channels=channels), _("{space_of} MB at {side} pixels")
    sides = (config.image_size,) if config and config.image_size else EXAMPLES
    sizes = [at_side.format(space_of=f"{space_of(n, at, channels or 3) / 1e6:,.0f}", side=at) for at in sides]
    free, text = f"{_free_space() / 1e9:,.0f}", _("Decoded once, {images} take {sizes}; {free} GB are free.")
    return [text.format(images=images, sizes=", ".join(sizes), free=free)]


def _beyond(folder: str, config: TrainConfig, allowed: float) -> tuple[int, int] | None:
    """Return the number of images to decode and their bytes if these exceed the allowed space; else None."""
    if (result := cache.result("folder", values_of(folder))) is None:
        return None
    parts = {split: sum(counts[i] for counts in result.meta["counts"]) for i, split in enumerate(("train", "test"))}
    form, channels = form_of(config.to_dict()), result.meta.get("channels") or 3
    side = form.size or SMALL
    if space_of(sum(parts.values()), side, channels) < allowed:
        return None
    n = sum(k for split, k in parts.items() if not datasets.is_made(name_of(folder), split, form))
    needed = space_of(n, side, channels)
    return (n, needed) if n and needed >= allowed else None


def _free_space() -> int:
    """Return the free bytes on the disk of decoded images."""
    home = data_home()
    return shutil.disk_usage(next(path for path in (home, *home.parents) if path.exists())).free
