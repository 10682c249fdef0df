"""Data sets by name: images as one uint8 array, labels, stable ids, and a fingerprint.

Images are decoded or made once into `.npy` files under `data_home()` and read from there as a
memory map. Importing this module is cheap; pages read images through it without torch.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.errors import Damaged, NotDownloaded, UnknownName
from contrastive_core.paths import data_home
from contrastive_core.storage import atomic, records
from contrastive_core.storage.lock import lock
from contrastive_core.storage.regular import printable

__all__ = ["Dataset", "check_name", "dataset_names", "is_made", "load", "made_path"]

SPLITS = ("train", "test")
CHUNK = 1000  # images written at a time
PATIENCE = 3600.0  # seconds to wait for another process that makes the same images
NOT_WHOLE = (FileNotFoundError, Damaged, ValueError, KeyError)
REASONS = 3  # for files left out that are named
SEED = 0  # of the splits that are ours to make


@dataclass(frozen=True, eq=False)
class Dataset:
    """One split. `labels` are −1 where there is none; `factors` is known for `shapes` only;
    `skipped` lists files that could not be read, with the reason."""

    name: str
    split: str
    images: np.ndarray  # (n, c, h, w) uint8, often a memory map
    labels: np.ndarray  # (n) int64
    classes: tuple[str, ...]
    ids: list[str]
    fingerprint: str
    factors: dict[str, np.ndarray] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def left_out(self) -> str:
        """How many files were left out and why, in one sentence; "" where none was."""
        if not self.skipped:
            return ""
        reasons = Counter(reason for _, reason in self.skipped).most_common(REASONS)
        parts = [f"{count:,} for this: {reason}" for reason, count in reasons]
        if remaining := len(self.skipped) - sum(count for _, count in reasons):
            parts.append(f"{remaining:,} for other reasons")
        files = f"{n:,} files were" if (n := len(self.skipped)) > 1 else "1 file was"
        first = f"the first is {self.skipped[0][0]}"
        return f"{files} left out of {printable(self.name)} ({first}); {'; '.join(parts)}"


Arrays = dict[str, Any]  # images, labels, classes, and perhaps ids, factors, skipped


def dataset_names() -> list[str]:
    """Names that `load` takes, besides `folder:PATH`."""
    return [*_MADE, *_DOWNLOADED]


def load(
    name: str, split: str = "train", root: str | None = None, download: bool = False
) -> Dataset:
    """A data set's split.

    Args:
        name: one of `dataset_names()`, or `folder:PATH` with a folder per class, or images only,
            or `train/` and `test/` with either.
        root: where torchvision's files lie; default `data_home()/torchvision`.
        download: fetch them if they are missing.
    Raises: UnknownName, NotDownloaded, ValueError for an empty folder.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be train or test; got {split!r}")
    if name.strip() == "folder:":
        raise ValueError("folder: needs the path of a folder with images behind the colon")
    if name.startswith("folder:"):
        from contrastive_core.data import image_folder

        key, make = image_folder.plan(name.removeprefix("folder:"), split, data_home() / "data")
    elif name in _MADE:
        key, make = f"{name}-{split}-v1", lambda: _MADE[name](split)
    elif name in _DOWNLOADED:
        from contrastive_core.data import torchvision_sets

        if not torchvision_sets.is_there(name, root) and not download:
            raise NotDownloaded(torchvision_sets.how_to_get(name))
        key = f"{name}-{split}-v1"

        def make() -> Arrays:
            return torchvision_sets.make(name, split, root, download)
    else:
        check_name(name)
        raise AssertionError(f"{name} is known, and nothing loads it")
    return _cached(name, split, key, make)


def check_name(name: str) -> None:
    """Raises UnknownName for what no data set can be called; reads no file."""
    if name.removeprefix("folder:").strip() and name.startswith("folder:"):
        return
    if name in dataset_names():
        return
    text = f"unknown data set {name!r}; known: {', '.join(dataset_names())}, folder:PATH"
    if "/" in name or "\\" in name:
        text += f" (a folder of images is written folder:{name})"
    raise UnknownName(text)


def is_made(name: str, split: str) -> bool:
    """Whether `load` only has to read what was decoded before."""
    try:
        return made_path(name, split).exists()
    except ValueError:
        return True  # `load` says what is wrong


def made_path(name: str, split: str) -> Path:
    """The file that is written last when a split is decoded. Raises ValueError for a folder that
    cannot be used."""
    key = f"{name}-{split}-v1"
    if name.startswith("folder:"):
        from contrastive_core.data import image_folder

        key, _ = image_folder.plan(name.removeprefix("folder:"), split, data_home() / "data")
    return data_home() / "data" / key / "about.json"


def _cached(name: str, split: str, key: str, make: Callable[[], Arrays]) -> Dataset:
    """Read the split from the cache; make it first if it is not there or damaged. Where another
    process is at that, wait for it."""
    folder = data_home() / "data" / key
    with contextlib.suppress(*NOT_WHOLE):
        return _read(name, split, folder)
    with lock(data_home() / "data" / f"{key}.lock", wait=PATIENCE):
        with contextlib.suppress(*NOT_WHOLE):
            return _read(name, split, folder)
        _write(folder, make())
    return _read(name, split, folder)


def _write(folder: Path, arrays: Arrays) -> None:
    images, labels = arrays["images"], np.asarray(arrays["labels"], np.int64)
    digest = hashlib.sha256(repr((images.shape, tuple(arrays["classes"]))).encode())
    with atomic.writing(folder / "images.npy") as file:  # in parts: they may not fit into memory
        head = {"descr": "|u1", "fortran_order": False, "shape": images.shape}
        np.lib.format.write_array_header_1_0(file, head)
        for start in range(0, len(images), CHUNK):
            part = np.ascontiguousarray(images[start : start + CHUNK], np.uint8).tobytes()
            digest.update(part)
            file.write(part)
        size = file.tell()
    digest.update(labels.tobytes())
    records.write_npz(folder / "labels.npz", labels=labels, **arrays.get("factors", {}))
    about = {
        "classes": list(arrays["classes"]),
        "ids": arrays.get("ids"),
        "fingerprint": digest.hexdigest(),
        "skipped": arrays.get("skipped", []),
        "n": len(labels),
        "bytes": size,
    }
    records.write_json(folder / "about.json", about)  # last: without it nothing is there


def _read(name: str, split: str, folder: Path) -> Dataset:
    about = records.read_json(folder / "about.json")
    path = folder / "images.npy"
    if path.stat().st_size != about["bytes"]:
        raise Damaged(f"{path} is damaged: its size is not what was written")
    images = np.load(path, mmap_mode="r", allow_pickle=False)
    arrays = records.read_npz(folder / "labels.npz")
    labels = arrays.pop("labels")
    n = about["n"]
    if len(images) != n or len(labels) != n:
        raise Damaged(f"{folder} is damaged: its files do not fit together")
    ids = about["ids"] or [f"{split}/{i:06d}" for i in range(n)]
    skipped = [(str(a), str(b)) for a, b in about["skipped"]]
    classes = tuple(about["classes"])
    return Dataset(name, split, images, labels, classes, ids, about["fingerprint"], arrays, skipped)


# --- made on the spot --------------------------------------------------------------------------


def _digits(split: str) -> Arrays:
    """scikit-learn's 1,797 gray 8×8 digits: 1,437 for training, 360 for the test, by class."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    rows = np.arange(len(digits.target))
    train, test = train_test_split(rows, test_size=360, random_state=SEED, stratify=digits.target)
    rows = np.sort(train if split == "train" else test)
    images = np.round(digits.images[rows] * (255 / 16)).astype(np.uint8)[:, None]  # (n, 1, 8, 8)
    return {
        "images": images,
        "labels": digits.target[rows],
        "classes": [str(i) for i in range(10)],
        "ids": [f"digits/{i:04d}" for i in rows],
    }


def _shapes(split: str) -> Arrays:
    from contrastive_core.data import shapes

    n = shapes.TRAIN if split == "train" else shapes.TEST
    images, labels, factors = shapes.make(n, seed=SHAPES_SEED[split])
    return {"images": images, "labels": labels, "classes": shapes.CLASSES, "factors": factors}


SHAPES_SEED = {"train": 0, "test": 1}
_MADE: dict[str, Callable[[str], Arrays]] = {"digits": _digits, "shapes": _shapes}
_DOWNLOADED = ("cifar10", "cifar100", "stl10", "mnist", "fashion_mnist")
