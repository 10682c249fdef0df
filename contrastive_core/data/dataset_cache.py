"""Cache of data sets: one `.npy` file of images per split, read as a memory map.

A cached split is a folder with `images.npy`, `labels.npz` and, written last, `about.json`.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contrastive_core.data.dataset import Dataset, DatasetArrays
from contrastive_core.errors import Damaged
from contrastive_core.paths import IMAGES, data_home
from contrastive_core.storage import atomic, json_files
from contrastive_core.storage.lock import lock

CHUNK = 1000  # images hashed at a time
PATIENCE = 3600.0  # seconds to wait for another process that creates the same split
UNUSABLE = (FileNotFoundError, Damaged, ValueError, KeyError)  # errors of an incomplete cache


def load_or_create(name: str, split: str, key: str, create: Callable[[], DatasetArrays]) -> Dataset:
    """Read a split from the cache; create it first if it is missing or damaged. Waits for another
    process that creates it."""
    with contextlib.suppress(*UNUSABLE):
        return load_cached(name, split, key)
    folder = _folder(key)
    with lock(folder.with_name(f"{key}.lock"), wait=PATIENCE):
        with contextlib.suppress(*UNUSABLE):
            return _read(name, split, folder)
        _write(folder, create())
    return _read(name, split, folder)


def load_cached(name: str, split: str, key: str) -> Dataset:
    """Read a split that is shipped, or else cached. Raises one of UNUSABLE."""
    with contextlib.suppress(*UNUSABLE):
        return _read(name, split, IMAGES / key)
    return _read(name, split, _folder(key))


def cached_path(key: str) -> Path:
    """Return the file that is written last when a split is created."""
    shipped = IMAGES / key / "about.json"
    return shipped if shipped.exists() else _folder(key) / "about.json"


def _folder(key: str) -> Path:
    return data_home() / "data" / key


def _write(folder: Path, arrays: DatasetArrays) -> None:
    images, labels, path = arrays["images"], np.asarray(arrays["labels"], np.int64), folder / "images.npy"
    digest = hashlib.sha256(repr((images.shape, tuple(arrays["classes"]))).encode())
    for i in range(0, len(images), CHUNK):
        digest.update(np.ascontiguousarray(images[i : i + CHUNK]).tobytes())
    digest.update(labels.tobytes())
    if "file" in arrays:
        atomic.make_folder(folder)
        arrays["file"].replace(path)
        shutil.rmtree(arrays["file"].parent, ignore_errors=True)
    else:
        with atomic.writing(path) as file:
            np.save(file, images, allow_pickle=False)
    ids = {"ids": np.array(arrays["ids"])} if arrays.get("ids") else {}
    json_files.write_npz(folder / "labels.npz", labels=labels, **ids, **arrays.get("factors", {}))
    about = {
        "classes": list(arrays["classes"]),
        "fingerprint": digest.hexdigest(),
        "skipped": arrays.get("skipped", []),
        "notes": arrays.get("notes", []),
        "n": len(labels),
        "bytes": path.stat().st_size,
    }
    json_files.write_json(folder / "about.json", about)  # last: it marks the folder as complete


def _read(name: str, split: str, folder: Path) -> Dataset:
    about = json_files.read_json(folder / "about.json")
    path = folder / "images.npy"
    if path.stat().st_size != about["bytes"]:
        raise Damaged("{path} is damaged: its size is not what was written", path=path)
    images = np.load(path, mmap_mode="r", allow_pickle=False)
    arrays = json_files.read_npz(folder / "labels.npz")
    labels, ids, n = arrays.pop("labels"), arrays.pop("ids", None), about["n"]
    if len(images) != n or len(labels) != n:
        raise Damaged("{folder} is damaged: its files do not fit together", folder=folder)
    return Dataset(
        name,
        split,
        images,
        labels,
        tuple(about["classes"]),
        [f"{split}/{i:06d}" for i in range(n)] if ids is None else ids.tolist(),
        about["fingerprint"],
        arrays,
        [(str(file), str(reason)) for file, reason in about["skipped"]],
        [(str(file), str(note)) for file, note in about["notes"]],
    )
