"""Images or rows of numbers for the playground, few enough to train on in a browser. Torch-free."""

from pathlib import Path

import numpy as np

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.safe_files import printable
from contrastive_core.data import datasets, image_sets
from contrastive_core.data.small_images import (
    HELD_OUT,
    LEAST,
    LONGEST,
    MOST,
    SEED,
    SIDE,
    TOO_FEW,
    SmallImages,
    load_small,
)
from contrastive_core.spaces import file_formats, loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet

DEVIATIONS = 3  # of a column of vectors, from its mean to black and to white


def load_samples(name: str, root: str | None = None) -> SmallImages:
    """Load the images of a data set, or rows of vectors as images one pixel high.

    Args:
        name: a data set, the path of a folder of images or of a file of vectors, or `vectors:KEY` of loaded vectors.
        root: see `datasets.load`.
    Raises: BadSetting for too few samples; the errors of `datasets.load`, `file_formats.read` and `loaded_vectors`."""
    if name.startswith(loaded_vectors.PREFIX):
        key = name.removeprefix(loaded_vectors.PREFIX)
        return _small_rows(loaded_vectors.about(key)["name"], loaded_vectors.rows(key))
    path = Path(name).expanduser()
    if not datasets.is_files(name) and path.suffix.lower() in file_formats.ENDINGS:
        return _small_rows(path.name, file_formats.read(path))
    is_folder = name not in datasets.dataset_names() and path.is_dir()
    return load_small(f"{image_sets.FOLDER}{path}" if is_folder else name, root)


def _small_rows(name: str, rows: EmbeddingSet) -> SmallImages:
    """Return rows as images one pixel high, with each column's mean at the center of the range. If some rows have
    labels, the others are left out."""
    is_known = np.isfinite(rows.features).all(1) & (True if rows.labels is None else rows.labels >= 0)
    most = min(MOST, MOST * SIDE**2 // rows.width)
    chosen = np.random.default_rng(SEED).permutation(np.flatnonzero(is_known))[:most]
    if len(chosen) < LEAST:
        raise BadSetting(TOO_FEW, name=printable(name), n=len(chosen), least=LEAST)
    values = rows.features[chosen].astype(np.float64)
    scaled = (values - values.mean(0)) / np.maximum(values.std(0), 1e-12)
    images = (127.5 + 127.5 / DEVIATIONS * scaled).round().clip(0, 255).astype(np.uint8)[:, None]
    labels, classes = None, tuple[str, ...]()
    if rows.labels is not None:
        present, numbers = np.unique(rows.labels[chosen], return_inverse=True)
        labels = numbers.astype(np.int16)
        classes = tuple(printable(rows.class_name(k), LONGEST) for k in present.tolist())
    return SmallImages(images, labels, classes, len(chosen) - int(HELD_OUT * len(chosen)), len(rows))
