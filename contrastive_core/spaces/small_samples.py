"""Images or rows of numbers for the playground, gray and few enough to train on in a browser. Torch-free."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, printable
from contrastive_core.data import datasets
from contrastive_core.data.dataset import Dataset, ImageForm, visible
from contrastive_core.data.image_cache import StreamedImages
from contrastive_core.spaces import file_formats, loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet

SIDE = 16  # pixels; smaller images keep their size
MOST, LEAST = 2000, 20  # images
HELD_OUT = 0.2  # share of the images if there are no test images
SEED = 0
LONGEST = 80  # characters of a class name
DEVIATIONS = 3  # of a column of vectors, from its mean to black and to white
TOO_FEW = N_("{name} has {n} readable samples; at least {least} are needed")


@dataclass(frozen=True, eq=False)
class SmallImages:
    """Images of a data set, those for learning first, then the held-out ones."""

    images: np.ndarray  # (n, height, width) uint8; a height of 1: vectors
    labels: np.ndarray | None  # (n) int16; None where no image has a label
    classes: tuple[str, ...]  # their names
    learned: int  # number of images for learning; the others are held out
    total: int  # images in the data set

    def __len__(self) -> int:
        return len(self.images)


def load_samples(name: str, root: str | None = None) -> SmallImages:
    """Load the images of a data set in gray, at most MOST of SIDE × SIDE pixels or smaller, or rows of vectors as
    images one pixel high; always the same ones. Only the chosen files of a folder are decoded; unreadable ones are left
    out. If some samples have labels, the others are left out.

    Args:
        name: a data set, the path of a folder of images or of a file of vectors, or `vectors:KEY` of loaded vectors.
        root: see `datasets.load`.
    Raises: BadSetting for fewer than LEAST samples; the errors of `datasets.load`, `file_formats.read` and
        `loaded_vectors`."""
    if name.startswith(loaded_vectors.PREFIX):
        key = name.removeprefix(loaded_vectors.PREFIX)
        return _small_rows(loaded_vectors.about(key)["name"], loaded_vectors.rows(key))
    path = Path(name).expanduser()
    if not datasets.is_files(name) and path.suffix.lower() in file_formats.ENDINGS:
        return _small_rows(path.name, file_formats.read(path))
    if name not in datasets.dataset_names() and path.is_dir():
        name = f"{datasets.FOLDER}{path}"
    parts = _splits(name, root)
    rng, total = np.random.default_rng(SEED), sum(len(rows) for _, rows in parts)
    share = min(1.0, MOST / max(1, total))
    found = []
    for dataset, rows in parts:
        rows = np.sort(rng.permutation(rows)[: int(share * len(rows))]) if share < 1 else rows
        colors = np.asarray(dataset.images[rows])
        images = colors[:, visible(colors.shape[1])].mean(1).round().astype(np.uint8)
        if images.shape[-1] > SIDE:
            small = [np.asarray(Image.fromarray(one).resize((SIDE, SIDE), Image.Resampling.BOX)) for one in images]
            images = np.stack(small) if small else images[:, :SIDE, :SIDE]
        read = np.ones(len(rows), bool)
        if isinstance(dataset.images, StreamedImages):
            read = np.array([dataset.images.paths[row] not in dataset.images.failed for row in rows], bool)
        found.append((images[read], dataset.labels[rows[read]]))
    images, labels = (np.concatenate([part[k] for part in found]) for k in (0, 1))
    if len(images) < LEAST or not len(found[1][0]):
        raise BadSetting(TOO_FEW, name=printable(name), n=len(images), least=LEAST)
    present, numbers = np.unique(labels, return_inverse=True)
    if present[0] < 0:
        return SmallImages(images, None, (), len(found[0][0]), total)
    classes = tuple(printable(parts[0][0].classes[k], LONGEST) for k in present)
    return SmallImages(images, numbers.astype(np.int16), classes, len(found[0][0]), total)


def _splits(name: str, root: str | None) -> list[tuple[Dataset, np.ndarray]]:
    """Return two data sets, for learning and held out, and the usable rows of each: labeled ones if any are."""
    if datasets.is_files(name):
        datasets.check_name(name)
        listings, form = datasets.listings_of(name), ImageForm(SIDE)
        splits = [split for split in datasets.SPLITS if listings[split].files] or ["train"]
        sets = [datasets.load_streamed(name, split, form, listings=listings) for split in splits]
    else:
        sets = [datasets.load(name, split, root) for split in datasets.SPLITS]
    has_labels = any((one.labels >= 0).any() for one in sets)
    rows = [np.flatnonzero(one.labels >= 0) if has_labels else np.arange(len(one)) for one in sets]
    if len(sets) == 2:
        return list(zip(sets, rows, strict=True))
    order = np.random.default_rng(SEED).permutation(rows[0])
    held_out = int(HELD_OUT * len(order))
    return [(sets[0], np.sort(order[held_out:])), (sets[0], np.sort(order[:held_out]))]


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
