"""The forming map of a training: a run's fixed sample after each epoch, each map aligned to the previous one. Explore
shows it until its own map is ready."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.memory import read_npz
from contrastive_core.compare.representation_similarity import procrustes_chain
from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.runs.run import MAX_SNAPSHOT, NOW, SNAPSHOT, Run
from contrastive_core.spaces.space import pca
from contrastive_lab import cache, format
from contrastive_lab.components.scatter import ScatterData, draw_scatter
from contrastive_lab.components.shared.mount import thumbnail_sheet
from contrastive_lab.locale import _

UNREADABLE = (Damaged, UnusableEmbedding, OSError)
MOST_FRAMES = 40  # epochs that the strip goes through, spread over all
AT_A_STEP = {name: SNAPSHOT[name] for name in ("index", "labels", "z")} | {"step": ("iu", 0)}


@dataclass(frozen=True, eq=False)
class Forming:
    """Maps of a run's fixed sample, each rotated, reflected and scaled to fit the previous epoch's."""

    epochs: list[int]  # that have a map of the newest one's rows
    maps: list[np.ndarray]  # (n, 2) each
    labels: np.ndarray  # (n)
    index: np.ndarray  # (n) rows in the training split
    step: int = 0  # of the last map, where it is one of no epoch's end


def draw(run: Run, *, with_images: bool = False, changed: Mapping[int, str] = {}, is_running: bool = False) -> None:
    """Draw the newest map, with a strip of earlier ones or with images; or the reason why its rows cannot be read.
    `changed`: changed settings by epoch; `is_running`: include the map of the current step."""
    try:
        found = forming(run, is_running)
    except UNREADABLE as error:
        st.warning(format.plain(error))
        return
    if not found.maps:
        st.caption(_("The map appears after the first training steps."))
        return
    xy, index, labels = found.maps[-1], found.index, found.labels
    names = _names(found.epochs, changed) + [_("step {step}").format(step=f"{found.step:,}")] * bool(found.step)
    images = _images(run, index) if with_images else None
    shown = sorted({round(k) for k in np.linspace(0, len(found.maps) - 1, MOST_FRAMES)})
    has_strip = len(shown) > 1 and not with_images
    text = _("PCA of z, {count} training images, each epoch aligned to the one before (Procrustes)")
    template = _("PCA of z at step {step}") if found.step else _("PCA of z after epoch {epoch}")
    title = template.format(step=f"{found.step:,}", epoch=(found.epochs or [0])[-1])
    if not has_strip:
        text = _("{title}, {count} training images")
    data = ScatterData(
        xy,
        [str(i) for i in index],
        cache.digest(run.name, names[-1], images is not None, xy.tobytes()),
        labels if (labels >= 0).any() else None,
        run.manifest.get("classes") or [],
        rows_key=f"forming {run.name}",
        title=title,
        note=text.format(title=title, count=f"{len(xy):,}"),
        thumbnails=thumbnail_sheet(images),
        medoids=[] if images is None else cache.medoids(cache.digest(xy.tobytes()), xy),
        frames=np.stack([found.maps[k] for k in shown]) if has_strip else None,
        frame_names=[names[k] for k in shown] if has_strip else [],
    )
    draw_scatter(data, fits=True, key="forming")


def _names(epochs: Sequence[int], changed: Mapping[int, str]) -> list[str]:
    """Return the name of each map, with the settings changed since the previous one."""
    names = []
    for before, epoch in zip([0, *epochs], epochs, strict=False):
        what = [changed[each] for each in range(before + 1, epoch + 1) if each in changed]
        names.append(" · ".join([_("epoch {epoch}").format(epoch=epoch), *what]))
    return names


def forming(run: Run, is_running: bool = False) -> Forming:
    """Return the maps of all readable epochs, and one of a later step if the training has written it. Raises the errors
    of `Run.snapshot` and `pca` for the newest epoch."""
    epochs, found = run.snapshots(), Forming([], [], np.empty(0), np.empty(0))
    if epochs:
        found = _forming(str(run.path), epochs[-1], run.snapshot_path(epochs[-1]).stat().st_mtime_ns, run)
    if is_running:
        with contextlib.suppress(*UNREADABLE):
            now = read_npz(run.path / NOW, MAX_SNAPSHOT, shapes=AT_A_STEP)
            xy = pca(now["z"].astype(np.float32))
            if not found.maps:
                found = replace(found, labels=now["labels"], index=now["index"])
            if np.array_equal(now["index"], found.index):
                key = f"forming {run.path}"  # of the session: the last look in the first epoch
                before = found.maps[-1:] or [st.session_state.get(key, xy)]
                st.session_state[key] = xy = procrustes_chain([*before, xy])[-1]
                return replace(found, maps=[*found.maps, xy], step=int(now["step"]))
    return found


@st.cache_resource(max_entries=4, show_spinner=False)
def _forming(path: str, newest: int, changed: int, _run: Run) -> Forming:
    maps: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for epoch in (epoch for epoch in _run.snapshots() if epoch <= newest):
        try:
            file = _run.snapshot_path(epoch)
            maps[epoch] = _pca_map(str(file), file.stat().st_mtime_ns, _run, epoch)
        except UNREADABLE:
            if epoch == newest:
                raise
    _, labels, index = maps[newest]
    kept = {epoch: xy for epoch, (xy, _, rows) in maps.items() if np.array_equal(rows, index)}
    return Forming([*kept], procrustes_chain([*kept.values()]), labels, index)


@st.cache_resource(max_entries=2000, show_spinner=False)
def _pca_map(file: str, changed: int, _run: Run, _epoch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    snapshot = _run.snapshot(_epoch)
    return pca(snapshot["z"]), snapshot["labels"], snapshot["index"]


def show_last(run: Run) -> None:
    """Draw the last map of a training with its images and a caption, if there is one."""
    epochs = run.snapshots()
    if epochs:
        text = _(
            "Until then, this is the map of the Train page after epoch {epochs}: training images, after the head (z)."
        )
        st.caption(text.format(epochs=epochs[-1]))
        draw(run, with_images=True)


def _images(run: Run, index: np.ndarray) -> np.ndarray | None:
    """Return the images (n, c, h, w) of the points if the data set is already decoded."""
    if not datasets.is_made(str(run.config.get("dataset")), "train", form_of(run.config)):
        return None
    try:
        images = cache.dataset_of(run, "train").images
    except (ValueError, OSError):
        return None
    if (run.manifest.get("n_train") or len(images)) != len(images):  # rows are numbers among those that are left
        return None
    return np.stack([images[i] for i in index]) if int(index.max()) < len(images) else None
