"""Data sets by name: images as one uint8 array, labels, stable ids, and a fingerprint.

Images are decoded or made once into `.npy` files under `data_home()` and read from there as a
memory map. Importing this module is cheap; pages read images through it without torch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.data.image_form import USUAL, ImageForm, form_of
from contrastive_core.data.left_out import sentences
from contrastive_core.errors import BadSetting, Damaged, NotDownloaded, UnknownName
from contrastive_core.paths import IMAGES, data_home
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.storage import atomic, records
from contrastive_core.storage.lock import lock

__all__ = ["Dataset", "check_name", "dataset_names", "is_made", "load", "made_path",
           "of_config"]  # fmt: skip

SPLITS = ("train", "test")
FILES = ("folder:", "csv:")  # begin the names of data sets that are files of images
CHUNK = 1000  # images written at a time
PATIENCE = 3600.0  # seconds to wait for another process that makes the same images
NOT_WHOLE = (FileNotFoundError, Damaged, ValueError, KeyError)
MANY = 100_000  # ids that a JSON file holds at most
SEED = 0  # of the splits that are ours to make


@dataclass(frozen=True, eq=False)
class Dataset:
    """One split. `labels` are −1 where there is none; `factors` is known for `shapes` only;
    `skipped` lists files that could not be read, with the reason, `notes` what was taken of others,
    `remarks` are sentences on the folder itself; `form` is that of files of images."""

    name: str
    split: str
    images: Any  # (n, c, h, w) uint8: an array, a memory map, or some rows of one (overrides.Rows)
    labels: np.ndarray  # (n) int64
    classes: tuple[str, ...]
    ids: list[str]
    fingerprint: str
    factors: dict[str, np.ndarray] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    form: ImageForm | None = None
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def left_out(self) -> str:
        """How many files of this split were left out, or taken in part, and why, and how the whole
        folder was taken, in whole sentences; "" where there is nothing to be said."""
        said = sentences(self.split, self.skipped, self.notes)
        return " ".join([*said, *(f"{one.removesuffix('.')}." for one in self.remarks)])


Arrays = dict[str, Any]  # images, labels, classes, and perhaps ids, factors, skipped


def dataset_names() -> list[str]:
    """Names that `load` takes, besides `folder:PATH` and `csv:PATH`."""
    return [*_MADE, *_DOWNLOADED]


def load(
    name: str,
    split: str = "train",
    root: str | None = None,
    download: bool = False,
    form: ImageForm = USUAL,
    on_progress: OnProgress = ignore_progress,
    afresh: bool = True,
) -> Dataset:
    """A data set's split.

    Args:
        name: one of `dataset_names()`, or `folder:PATH` with a folder per class, or images only,
            or `train/` and `test/` (or `val/`) with either, or `csv:PATH` with a list of images.
        root: where torchvision's files lie; default `data_home()/torchvision`.
        download: fetch them if they are missing.
        form: of the images of a folder; the others have a size of their own.
        on_progress: of decoding.
        afresh: look at the files of a folder now, even if this process did so before.
    Raises: UnknownName, NotDownloaded, ValueError for an empty folder; BadSetting for a size that
    the images cannot be brought to, or that does not fit on the disk.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be train or test; got {split!r}")
    if name.strip() in FILES:
        what = "a folder with images" if name.strip() == "folder:" else "a list of images"
        raise ValueError(f"{name.strip()} needs the path of {what} behind the colon")
    if is_files(name):
        from contrastive_core.data import image_sets

        home = data_home() / "data"
        if not afresh and (before := image_sets.known(name, split, form)):
            with contextlib.suppress(*NOT_WHOLE):
                found = _read_either(name, split, before.key)
                return dataclasses.replace(found, form=before.form, remarks=before.remarks)
        about, make = image_sets.plan(name, split, home, form, on_progress)
        found = _cached(name, split, about.key, make)
        return dataclasses.replace(found, form=about.form, remarks=about.remarks)
    if form.size:
        raise BadSetting(
            f"image_size is for folders and lists of images; those of {name} have a size of their "
            f"own, which --set encoder.pixels={form.size} changes at the encoder"
        )
    if name in _MADE:
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


def of_config(
    config: Mapping[str, Any],
    split: str = "train",
    download: bool = False,
    on_progress: OnProgress = ignore_progress,
    afresh: bool = True,
) -> Dataset:
    """The data set that a run's settings name, in the form that they name. Raises as `load`."""
    name, root = str(config.get("dataset")), config.get("root")
    return load(name, split, root, download, form_of(config), on_progress, afresh)


def is_files(name: str) -> bool:
    """Whether a data set is made of files of images, which have no size of their own."""
    return name.startswith(FILES)


def check_name(name: str) -> None:
    """Raises UnknownName for what no data set can be called; reads no file."""
    if is_files(name) and name.partition(":")[2].strip():
        return
    if name in dataset_names():
        return
    text = f"unknown data set {name!r}; known: {', '.join(dataset_names())}, folder:PATH, csv:PATH"
    if "/" in name or "\\" in name:
        text += f" (a folder of images is written folder:{name})"
    raise UnknownName(text)


def is_made(name: str, split: str, form: ImageForm = USUAL) -> bool:
    """Whether `load` only has to read what was decoded before."""
    try:
        return made_path(name, split, form).exists()
    except ValueError:
        return True  # `load` says what is wrong


def made_path(name: str, split: str, form: ImageForm = USUAL) -> Path:
    """The file that is written last when a split is decoded. Raises ValueError for a folder that
    cannot be used."""
    key = f"{name}-{split}-v1"
    if is_files(name):
        from contrastive_core.data import image_sets

        about = image_sets.known(name, split, form)
        key = (about or image_sets.plan(name, split, data_home() / "data", form)[0]).key
    came_along = _came_along(key) / "about.json"
    return came_along if came_along.exists() else data_home() / "data" / key / "about.json"


def _came_along(key: str) -> Path:
    """Where a split lies that comes with the project: the test images of the shipped runs."""
    return IMAGES / key


def _cached(name: str, split: str, key: str, make: Callable[[], Arrays]) -> Dataset:
    """Read the split from the cache; make it first if it is not there or damaged. Where another
    process is at that, wait for it."""
    folder = data_home() / "data" / key
    with contextlib.suppress(*NOT_WHOLE):
        return _read_either(name, split, key)
    with lock(data_home() / "data" / f"{key}.lock", wait=PATIENCE):
        with contextlib.suppress(*NOT_WHOLE):
            return _read(name, split, folder)
        _write(folder, make())
    return _read(name, split, folder)


def _read_either(name: str, split: str, key: str) -> Dataset:
    """What came along, or else what was made here. Raises NOT_WHOLE."""
    with contextlib.suppress(*NOT_WHOLE):
        return _read(name, split, _came_along(key))
    return _read(name, split, data_home() / "data" / key)


def _write(folder: Path, arrays: Arrays) -> None:
    images, labels = arrays["images"], np.asarray(arrays["labels"], np.int64)
    digest = hashlib.sha256(repr((images.shape, tuple(arrays["classes"]))).encode())
    written = folder / "images.npy"
    if made := arrays.get("file"):  # decoded into a file that only has to be given its name
        for start in range(0, len(images), CHUNK):
            digest.update(np.ascontiguousarray(images[start : start + CHUNK]).data)
        atomic.make_folder(folder)
        Path(made).replace(written)
        shutil.rmtree(Path(made).parent, ignore_errors=True)
    else:
        with atomic.writing(written) as file:  # in parts: they may not fit into memory
            head = {"descr": "|u1", "fortran_order": False, "shape": images.shape}
            np.lib.format.write_array_header_1_0(file, head)
            for start in range(0, len(images), CHUNK):
                part = np.ascontiguousarray(images[start : start + CHUNK], np.uint8).tobytes()
                digest.update(part)
                file.write(part)
    digest.update(labels.tobytes())
    ids = arrays.get("ids")
    more = {"ids": np.array(ids)} if ids and len(ids) > MANY else {}  # too long a JSON file
    records.write_npz(folder / "labels.npz", labels=labels, **more, **arrays.get("factors", {}))
    about = {
        "classes": list(arrays["classes"]),
        "ids": None if more else ids,
        "fingerprint": digest.hexdigest(),
        "skipped": arrays.get("skipped", []),
        "notes": arrays.get("notes", []),
        "n": len(labels),
        "bytes": written.stat().st_size,
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
    many = arrays.pop("ids", None)
    ids = about["ids"] if many is None else many.tolist()
    ids = ids or [f"{split}/{i:06d}" for i in range(n)]
    skipped, notes = (
        [(str(a), str(b)) for a, b in about.get(k) or ()] for k in ("skipped", "notes")
    )
    return Dataset(
        name, split, images, labels, tuple(about["classes"]), ids, about["fingerprint"], arrays,
        skipped, notes,
    )  # fmt: skip


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


def _digits_mislabeled(split: str) -> Arrays:
    """digits with thirteen labels changed on purpose: an example of what Samples finds."""
    arrays = _digits(split)
    labels = arrays["labels"].copy()
    rng, count = np.random.default_rng(SEED), PLANTED[split]
    rows = rng.choice(len(labels), count, replace=False)
    labels[rows] = (labels[rows] + rng.integers(1, 10, count)) % 10
    return {**arrays, "labels": labels}


def _shapes(split: str) -> Arrays:
    from contrastive_core.data import shapes

    n = shapes.TRAIN if split == "train" else shapes.TEST
    images, labels, factors = shapes.make(n, seed=SHAPES_SEED[split])
    return {"images": images, "labels": labels, "classes": shapes.CLASSES, "factors": factors}


SHAPES_SEED = {"train": 0, "test": 1}
PLANTED = {"train": 10, "test": 3}  # wrong labels
_MADE: dict[str, Callable[[str], Arrays]] = {
    "digits": _digits,
    "shapes": _shapes,
    "digits_mislabeled": _digits_mislabeled,
}
_DOWNLOADED = ("cifar10", "cifar100", "stl10", "mnist", "fashion_mnist")
