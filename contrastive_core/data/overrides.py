"""Preparation of a training set: captions if the method needs them, and changes by sample id from files.

`exclude` drops samples: one id per line, a CSV with a column `id`, or a JSON list. `relabel` changes classes: a CSV
with columns `id` and `label` (for captions `partner`), or a JSON object of class by id. A class is a name or a number,
−1 for none. A CSV with a column `decision`, such as the app's new_labels.csv, serves both: `exclude` uses its dropped
training rows, `relabel` the relabeled ones."""

import dataclasses
import json
import math
from typing import Any

import numpy as np

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message, printable
from contrastive_core.base.storage import read_table, read_text
from contrastive_core.data.captions import add_captions
from contrastive_core.data.dataset import Captions
from contrastive_core.data.datasets import Dataset

LACKING = N_("Training images without a caption are left out: {n} of {all}, the first is {first}.")
LABEL, PARTNER = "label", "partner"  # columns of `relabel`: a class, or the key of the image that a caption belongs to


class ImageRows:
    """Some rows of an array of images, read only when indexed; further indices apply to each image."""

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


def training_set(dataset: Dataset, needs_captions: bool, exclude: str | None, relabel: str | None) -> Dataset:
    """Prepare a data set for training: without the samples of `exclude`, with the classes of `relabel`. If the method
    needs captions, they are added and images without one are left out. Raises BadSetting."""
    if not needs_captions:
        return curated(dataset, exclude, relabel)
    dataset = curated(add_captions(dataset), exclude, relabel)
    assert dataset.captions is not None
    keep = np.unique(dataset.captions.image)
    if (n := len(dataset) - len(keep)) == 0:
        return dataset
    names = {"n": f"{n:,}", "all": f"{len(dataset):,}", "kept": f"{len(keep):,}"}
    if len(keep) < 2:
        raise BadSetting(
            "captions.csv has captions of {kept} of {all} training images; two or more are needed", **names
        )
    first = dataset.ids[int(np.setdiff1d(np.arange(len(dataset)), keep)[0])]
    remark = message(LACKING, **names, first=printable(first, 80))
    dataset = take(dataset, keep)
    return dataclasses.replace(dataset, remarks=(*dataset.remarks, remark))


def curated(dataset: Dataset, exclude: str | None, relabel: str | None) -> Dataset:
    """Return the data set without the samples of `exclude` and with the classes of `relabel`; images are not copied. If
    the data set has captions, both files may name captions as `IMAGE#2`, to drop them or to move them to another image.
    """
    gone, changes = set(read_ids(exclude)) if exclude else set(), read_labels(relabel) if relabel else {}
    if captions := dataset.captions:
        dataset, gone, changes = _with_true_captions(dataset, captions, gone, changes)
    if gone:
        _check_ids(gone, dataset, str(exclude or relabel))
        keep = np.array([i for i, id in enumerate(dataset.ids) if id not in gone], np.int64)
        if not len(keep):
            raise BadSetting("{exclude} excludes every training image", exclude=exclude or relabel)
        dataset = take(dataset, keep)
    if changes:
        _check_ids(set(changes), dataset, str(relabel))
        labels, at = dataset.labels.copy(), {id: i for i, id in enumerate(dataset.ids)}
        classes = dataset.classes
        numbers = {str(k): k for k in range(-1, len(classes))} | {name: k for k, name in enumerate(classes)}
        for id, name in changes.items():
            if name not in numbers:
                values = {"path": relabel, "name": f"{printable(name, 80)!r}", "classes": ", ".join(classes[:20])}
                raise BadSetting("{path} contains the unknown class {name}; known: {classes}", **values)
            labels[at[id]] = numbers[name]
        dataset = dataclasses.replace(dataset, labels=labels)
    return dataset


def _with_true_captions(
    dataset: Dataset, captions: Captions, gone: set[str], changes: dict[str, str]
) -> tuple[Dataset, set[str], dict[str, str]]:
    """Drop the captions in `gone` and move those in `changes` to their images. Returns the data set and the remaining
    ids of both; images that lost all captions are added to the first. Raises: BadSetting for an unknown image."""
    names, places = captions.names(dataset.ids), {id: i for i, id in enumerate(dataset.ids)}
    moved = {name: changes[name] for name in names if name in changes}
    for name, image in moved.items():
        if image not in places:
            values = {"caption": f"{printable(name, 80)!r}", "image": f"{printable(image, 80)!r}"}
            raise BadSetting("the caption {caption} belongs to {image}, which is not a training image", **values)
    owner = np.array([places.get(moved.get(name, ""), i) for name, i in zip(names, captions.image, strict=True)])
    keep = [k for k, name in enumerate(names) if name not in gone]
    made = captions.at(owner, keep)
    alone = {dataset.ids[i] for i in np.setdiff1d(captions.image, made.image).tolist()}
    left = {name: label for name, label in changes.items() if name not in moved}
    return dataclasses.replace(dataset, captions=made), gone - {*names} | alone, left


def take(dataset: Dataset, keep: np.ndarray) -> Dataset:
    """Return the images `keep`, in that order, as `ImageRows`, which read on demand."""
    images, labels, ids = ImageRows(dataset.images, keep), dataset.labels[keep], [dataset.ids[i] for i in keep]
    factors = {k: v[keep] for k, v in dataset.factors.items()}
    captions = dataset.captions and dataset.captions.take(keep)
    return dataclasses.replace(dataset, images=images, labels=labels, ids=ids, factors=factors, captions=captions)


def read_ids(path: str) -> list[str]:
    """Read sample ids from one id per line, a CSV with a column `id`, or a JSON list."""
    if path.endswith(".json"):
        return [str(v) for v in _read_json(path, list)]
    if path.endswith(".csv"):
        return [row["id"] for row in _read_rows(path, "drop", "id")]
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def read_labels(path: str) -> dict[str, str]:
    """Read classes or partners by sample id from a CSV with `id` and `label` or `partner`, or a JSON object."""
    if path.endswith(".json"):
        return {str(k): str(v) for k, v in _read_json(path, dict).items()}
    names = read_text(path).partition("\n")[0].strip().split(",")
    column = PARTNER if PARTNER in names and LABEL not in names else LABEL
    return {row["id"]: row[column] for row in _read_rows(path, "relabel", "id", column)}


def _read_json(path: str, kind: type) -> Any:
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadSetting("cannot read {path}: {error}", path=path, error=error) from None
    if not isinstance(value, kind):
        kinds: dict[type, str] = {list: N_("a JSON list"), dict: N_("a JSON object")}
        raise BadSetting("{path} must hold {kind}", path=path, kind=kinds[kind])
    return value


def _read_rows(path: str, decision: str, *columns: str) -> list[dict[str, str]]:
    """Return the rows of a CSV. If it holds decisions, return only training rows with this decision."""
    names, rows = read_table(path, *columns)
    for number, row in enumerate(rows, 2):
        if any(row[column] is None for column in columns):
            raise BadSetting("{path}: line {number} is truncated", path=path, number=number)
    if "decision" in names:
        rows = [row for row in rows if row["decision"] == decision and row.get("split") != "test"]
    return rows


def _check_ids(ids: set[str], dataset: Dataset, path: str) -> None:
    if unknown := sorted(ids - set(dataset.ids)):
        raise BadSetting(
            "{path}: ids that are not in {name}: {n}, for example {first}; ids there look like {ids}",
            path=path,
            name=dataset.name,
            n=len(unknown),
            first=f"{printable(unknown[0], 80)!r}",
            ids=f"{dataset.ids[0]!r}",
        )
