"""The map that forms on Train: a run's fixed sample after an epoch. Explore shows it while its own is made."""

import numpy as np
import streamlit as st

from contrastive_core.engine.images import datasets
from contrastive_core.records import Damaged, UnusableEmbedding
from contrastive_core.records.run import Run
from contrastive_core.records.train_config import form_of
from contrastive_lab import cache, format
from contrastive_lab.components.scatter import ScatterData, draw_scatter
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.locale import _


def draw(run: Run, epoch: int, *, with_images: bool = False) -> None:
    """The map after an epoch, each made once; why not, where its rows cannot be read."""
    try:
        xy, labels, index = cache.snapshot_map(run, epoch)
    except (Damaged, UnusableEmbedding, OSError) as error:
        st.warning(format.plain(error))
        return
    images = _images(run, index) if with_images else None
    name = cache.digest(run.name, epoch, images is not None)
    data = ScatterData(
        xy,
        [str(i) for i in index],
        name,
        labels if (labels >= 0).any() else None,
        run.manifest.get("classes") or [],
        title=_("PCA of z after epoch {epoch}").format(epoch=epoch),
        note=_("PCA of z after epoch {epoch}, {count} training images").format(epoch=epoch, count=len(xy)),
        thumbnails=thumbnail_sheet(images),
        medoids=[] if images is None else cache.medoids(name, xy),
    )
    draw_scatter(data, height=360, fits=with_images, key="forming")


def show_last(run: Run) -> None:
    """Train's last map with its images, if there is one, and what it is."""
    epochs = run.snapshots()
    if epochs:
        text = _("Until then Train's map after epoch {epochs}: training images, after the head (z).")
        st.caption(text.format(epochs=epochs[-1]))
        draw(run, epochs[-1], with_images=True)


def _images(run: Run, index: np.ndarray) -> np.ndarray | None:
    """The images (n, c, h, w) behind the points, where the data set is decoded already."""
    if not datasets.is_made(str(run.config.get("dataset")), "train", form_of(run.config)):
        return None
    try:
        images = cache.dataset_of(run, "train").images
    except (ValueError, OSError):
        return None
    if (run.manifest.get("n_train") or len(images)) != len(images):  # rows are numbers among those that are left
        return None
    return np.stack([images[i] for i in index]) if int(index.max()) < len(images) else None
