"""Loaded vectors, stored under their content's key in `data_home()/spaces/<key>/`: `rows.npz`, `about.json`, if there
are images `images.npy`, and of triplets their file, `source.*`. Torch-free."""

import contextlib
import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import numpy as np

from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.json_files import schema_of
from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.messages import N_, sentence
from contrastive_core.base.storage import data_home, file_stamp
from contrastive_core.spaces.embedding_set import EmbeddingSet, plain_provenance

PREFIX = "vectors:"  # what their names start with, before the key
KEY = re.compile(r"[0-9a-f]{16}")
GONE = N_("these vectors are not stored; open the file again")


class About(TypedDict):
    """An about.json: the source of the vectors and a description of their rows."""

    name: str
    rows: int
    width: int
    labels: bool
    left_out: dict[str, int]
    splits: list[str]
    images: bool
    dataset: str | None
    split: str
    note: str  # what is amiss
    said: NotRequired[str]  # what is to be known besides
    ids: NotRequired[str]  # a hash of the rows' ids


ABOUT = replace(schema_of(About), required=("name", "rows", "width", "labels", "left_out", "splits", "images"))


def save_vectors(
    rows: EmbeddingSet, name: str, images: np.ndarray | None = None, note: str = "", said: str = ""
) -> str:
    """Store vectors under their content and name; return the key. Rows without a direction are left out.

    Args: images: (n, c, h, w) uint8 of all rows; note: sentences about problems; said: sentences with further
    information; both are stored too. Raises UnusableEmbedding."""
    usable, left_out = rows.usable, {k: len(v) for k, v in rows.problems.items()}
    check_usable(name, len(usable), left_out)
    kept = rows if len(usable) == len(rows) else rows.take(usable)
    content, dataset = _key(kept), plain_provenance(kept.provenance).get("dataset")
    named = hashlib.sha256(f"{content} {name}".encode()).hexdigest()[:16]  # where another file has that content
    key = named if _name_of(named) or _name_of(content) not in (None, name) else content
    about_rows: About = {
        "name": name,
        "rows": len(kept),
        "width": kept.width,
        "labels": kept.labels is not None,
        "left_out": {k: n for k, n in left_out.items() if n},
        "splits": _splits(kept),
        "images": images is not None,
        "dataset": dataset if isinstance(dataset, str) else None,
        "split": kept.split,
        "note": note,
        "said": said,
        "ids": hashlib.sha256("\n".join(sorted(kept.ids)).encode()).hexdigest()[:16],
    }
    folder = _folder(key)
    if images is not None:
        with storage.writing(folder / "images.npy") as file:
            np.save(file, np.ascontiguousarray(images[usable], np.uint8))
    write_npz(folder / "rows.npz", **kept.arrays())
    json_files.write_json(folder / "about.json", about_rows)
    return key


def check_usable(name: str, usable: int, left_out: Mapping[str, int]) -> None:
    """Raise UnusableEmbedding if fewer than two rows are usable."""
    if usable < 2:
        raise UnusableEmbedding(
            "{name} has {usable} usable rows: {not_finite} contain values that are not finite, {zero} are all zeros",
            name=name,
            usable=usable,
            **left_out,
        )


def _name_of(key: str) -> str | None:
    with contextlib.suppress(ValueError, OSError):
        return about(key)["name"]
    return None


def _key(rows: EmbeddingSet) -> str:
    """Return a hash of the vectors and their columns and class names."""
    if not rows.classes and not rows.columns:
        return rows.content_hash[:16]
    digest = hashlib.sha256(f"{rows.content_hash} {rows.classes}".encode())
    for name, values in rows.columns.items():
        digest.update(f"{name} {values.dtype}".encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]


def loaded() -> dict[str, About]:
    """Return the descriptions of all usable loaded vectors by key, newest first. `damaged` lists the others."""
    return {key: entry for key, entry in _entries().items() if not isinstance(entry, Exception)}


def damaged() -> dict[str, str]:
    """Return the reasons, by key, of loaded vectors that cannot be used."""
    return {key: sentence(entry) for key, entry in _entries().items() if isinstance(entry, Exception)}


def _entries() -> dict[str, About | Exception]:
    files = [file for file in (data_home() / "spaces").glob("*/about.json") if KEY.fullmatch(file.parent.name)]
    times = {file.parent.name: stamp[2] for file in files if (stamp := file_stamp(file))}
    entries: dict[str, About | Exception] = {}
    for key in sorted(times, key=lambda key: times[key], reverse=True):
        try:
            entries[key] = about(key)
        except (UnusableEmbedding, Damaged) as error:
            entries[key] = error
    return entries


def about(key: str) -> About:
    """Return the description of loaded vectors. Raises UnusableEmbedding if they no longer exist; Damaged."""
    path = _folder(key) / "about.json"
    try:
        return cast(About, json_files.read_object(path, ABOUT, json_files.MAX_RECORD))
    except FileNotFoundError:
        raise UnusableEmbedding(GONE) from None
    except OSError as error:
        raise Damaged("{path} cannot be read: {reason}", path=path, reason=error.strerror) from None


def forget(key: str) -> None:
    """Remove loaded vectors; the original file is not touched."""
    shutil.rmtree(_folder(key), ignore_errors=True)


def rows(key: str, split: str = "") -> EmbeddingSet:
    """Return the rows, or those of one split if rows have a split. Raises FileNotFoundError."""
    every = EmbeddingSet.from_arrays(read_npz(_folder(key) / "rows.npz"))
    at = _rows_of_split(every, split)
    return every if at is None else every.take(at)


def images(key: str, split: str = "") -> np.ndarray | None:
    """Return the images (n, c, h, w) uint8 of `rows`, in their order; None without images."""
    path = _folder(key) / "images.npy"
    if not path.exists():
        return None
    every = np.load(path, mmap_mode="r", allow_pickle=False)
    at = _rows_of_split(EmbeddingSet.from_arrays(read_npz(path.with_name("rows.npz"))), split)
    return every if at is None else every[at]


def _splits(rows: EmbeddingSet) -> list[str]:
    return sorted(set(map(str, rows.columns.get("split", ()))) & {"train", "test"})


def keep_source(key: str, path: Path) -> None:
    """Store a copy of the opened file of texts, to write it again with decisions."""
    with storage.open_regular(path) as file, storage.writing(_folder(key) / f"source{path.suffix.lower()}") as out:
        shutil.copyfileobj(file, out)


def source(key: str) -> Path | None:
    """Return the copy of the opened file of texts; None without one."""
    return next(_folder(key).glob("source.*"), None)


def _rows_of_split(rows: EmbeddingSet, split: str) -> np.ndarray | None:
    return np.flatnonzero(rows.columns["split"] == split) if split in _splits(rows) else None


def _folder(key: str) -> Path:
    if not KEY.fullmatch(key):
        raise UnusableEmbedding(GONE)
    return data_home() / "spaces" / key
