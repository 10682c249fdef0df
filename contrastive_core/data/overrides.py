"""A training set with samples left out or given other classes, as files of sample ids say.

`exclude`: one id a line, a CSV with a column `id`, or a JSON list. `relabel`: a CSV with columns
`id` and `label`, or a JSON object of class by id. A class is its name or its number, −1 is none.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from typing import Any

import numpy as np

from contrastive_core.data.datasets import Dataset
from contrastive_core.errors import BadSetting
from contrastive_core.storage.regular import printable, read_regular

__all__ = ["Rows", "curated", "read_ids", "read_labels", "take"]

MAX_BYTES = 256 << 20  # of a list of samples: a few million ids


class Rows:
    """Some rows of an array of images, read when they are asked for: of a memory map nothing is
    copied before. Its first index is one of an array; further ones (slices) are of each image, of
    which then only that part is copied."""

    def __init__(self, images: Any, index: np.ndarray) -> None:
        self.images, self.index = images, index
        self.shape, self.dtype = (len(index), *images.shape[1:]), images.dtype
        self.ndim, self.size = images.ndim, math.prod(self.shape)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> np.ndarray:
        first, *further = rows if isinstance(rows, tuple) else (rows,)
        return np.asarray(self.images[(self.index[first], *further)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.images[self.index], dtype)


def curated(dataset: Dataset, exclude: str | None, relabel: str | None) -> Dataset:
    """The data set without the samples of `exclude`, and with the classes of `relabel`; images are
    no copy."""
    if exclude:
        gone = set(read_ids(exclude))
        _check_ids(gone, dataset, exclude)
        keep = np.array([i for i, id in enumerate(dataset.ids) if id not in gone], np.int64)
        if not len(keep):
            raise BadSetting(f"{exclude} excludes every training image")
        dataset = take(dataset, keep)
    if relabel:
        changes = read_labels(relabel)
        _check_ids(set(changes), dataset, relabel)
        labels, at = dataset.labels.copy(), {id: i for i, id in enumerate(dataset.ids)}
        for id, name in changes.items():
            labels[at[id]] = _class_number(name, dataset.classes, relabel)
        dataset = dataclasses.replace(dataset, labels=labels)
    return dataset


def take(dataset: Dataset, keep: np.ndarray) -> Dataset:
    """The images `keep`, in that order, as `Rows`: read when they are asked for."""
    return dataclasses.replace(
        dataset,
        images=Rows(dataset.images, keep),
        labels=dataset.labels[keep],
        ids=[dataset.ids[i] for i in keep],
        factors={k: v[keep] for k, v in dataset.factors.items()},
    )


def read_ids(path: str) -> list[str]:
    """Sample ids: one a line, a CSV with a column `id`, or a JSON list."""
    text = _text(path)
    if path.endswith(".json"):
        return [str(v) for v in _json(path, text, list)]
    if path.endswith(".csv"):
        return [row["id"] for row in _table(path, text, "id")]
    return [line.strip() for line in text.splitlines() if line.strip()]


def read_labels(path: str) -> dict[str, str]:
    """Classes by sample id: a CSV with columns `id` and `label`, or a JSON object."""
    text = _text(path)
    if path.endswith(".json"):
        return {str(k): str(v) for k, v in _json(path, text, dict).items()}
    return {row["id"]: row["label"] for row in _table(path, text, "id", "label")}


def _json(path: str, text: str, kind: type) -> Any:
    """What the file holds, if it is a list or an object as wanted."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSetting(f"cannot read {path}: {error}") from None
    if not isinstance(value, kind):
        raise BadSetting(f"{path} must hold a JSON {'list' if kind is list else 'object'}")
    return value


def _table(path: str, text: str, *columns: str) -> list[dict[str, str]]:
    reader = csv.DictReader(text.splitlines())
    try:
        names, rows = reader.fieldnames or (), list(reader)
    except csv.Error as error:
        raise BadSetting(f"cannot read {path}: {error}") from None
    for column in columns:
        if column not in names:
            raise BadSetting(f"{path} needs a column {column!r} in its first line")
    for number, row in enumerate(rows, 2):
        if any(row[column] is None for column in columns):
            raise BadSetting(f"{path}: line {number} is cut short")
    return rows


def _text(path: str) -> str:
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        raise BadSetting(f"cannot read {printable(path)}: {printable(error)}") from None


def _check_ids(ids: set[str], dataset: Dataset, path: str) -> None:
    unknown = sorted(ids - set(dataset.ids))
    if unknown:
        raise BadSetting(
            f"{path} names {len(unknown)} samples that {dataset.name} has not, such as "
            f"{printable(unknown[0], 80)!r}; its ids look like {dataset.ids[0]!r}"
        )


def _class_number(name: str, classes: tuple[str, ...], path: str) -> int:
    if name in classes:
        return classes.index(name)
    if name.lstrip("-").isdigit() and -1 <= int(name) < len(classes):
        return int(name)
    raise BadSetting(
        f"{path} names the class {printable(name, 80)!r}; known: {', '.join(classes[:20])}"
    )
