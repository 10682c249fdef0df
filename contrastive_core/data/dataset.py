"""One split of a data set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from contrastive_core.data.skipped_files import skipped_sentences
from contrastive_core.messages import join
from contrastive_core.records.image_form import ImageForm

__all__ = ["Dataset", "DatasetArrays"]


class DatasetArrays(TypedDict):
    """The content of a split, as it is generated, decoded or downloaded."""

    images: np.ndarray  # (n, c, h, w) uint8
    labels: Any  # (n)
    classes: Any
    ids: NotRequired[list[str]]
    factors: NotRequired[dict[str, np.ndarray]]
    file: NotRequired[Path]  # the `.npy` file of the images, which may be moved
    skipped: NotRequired[list[tuple[str, str]]]
    notes: NotRequired[list[tuple[str, str]]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """One split of a data set.

    `labels` are −1 where there is none; `factors` holds further values per image. `skipped` lists
    files that could not be read, with the reason, `notes` files that were read in part, `remarks`
    sentences on the folder. `form` is the size of images that come from files.
    """

    name: str
    split: str
    images: Any  # (n, c, h, w) uint8: an array, a memory map, or some rows of one (overrides.ImageRows)
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
        """Sentences on skipped files and on the folder; "" where there are none."""
        sentences = skipped_sentences(self.split, self.skipped, self.notes)
        return join(" ", [*sentences, *self.remarks])
