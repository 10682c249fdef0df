"""One split of a data set, and sentences about files that were skipped or only partly read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from contrastive_core.base.messages import N_, join, message
from contrastive_core.data.captions import Captions
from contrastive_core.data.image_form import ImageForm

REASONS = 3  # maximum number of listed reasons
Files = Sequence[tuple[str, str]]  # ids with a reason or a note
SKIPPED = N_("Files left out of {images}: {n}, the first {first} ({reasons}).")
PARTLY_READ = N_("Files of {images} that were not read completely: {n}, the first {first} ({reasons}).")


class DatasetArrays(TypedDict):
    """The content of a split after it is generated, decoded or downloaded."""

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
    """One split of a data set. `labels` are −1 without a label; `factors` holds further values per image. `skipped`
    lists unreadable files with the reason, `notes` partly read files, `remarks` sentences about the folder. `form` is
    the size of images from files."""

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
    captions: Captions | None = None  # if `caption_sources.add_captions` added them

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def left_out(self) -> str:
        """Sentences about files that were skipped or partly read, and about the folder; "" for none."""
        images = N_("the training images") if self.split == "train" else N_("the test images")
        files = [*_sentence_on(SKIPPED, images, self.skipped), *_sentence_on(PARTLY_READ, images, self.notes)]
        return join(" ", [*files, *self.remarks])


@dataclass(frozen=True)
class DatasetInfo:
    """Facts of a training set that a method's defaults and limits depend on. For a folder that is not decoded yet,
    height and width are the median of its images' shorter sides."""

    image_shape: tuple[int, int, int]  # channels, height, width
    n_train: int
    classes: int
    has_captions: bool = False
    form: ImageForm | None = None  # of images from files


KNOWN = {  # sets whose facts need no file
    "digits": DatasetInfo((1, 8, 8), 1437, 10),
    "shapes": DatasetInfo((3, 32, 32), 5000, 8, True),
    "cifar10": DatasetInfo((3, 32, 32), 50_000, 10),
    "cifar100": DatasetInfo((3, 32, 32), 50_000, 100),
    "stl10": DatasetInfo((3, 96, 96), 105_000, 10),
    "mnist": DatasetInfo((1, 28, 28), 60_000, 10),
    "fashion_mnist": DatasetInfo((1, 28, 28), 60_000, 10),
}


def _sentence_on(template: str, images: str, files: Files) -> list[str]:
    """Return a sentence with the number of files and the most frequent reasons; [] for no files."""
    if not files:
        return []
    counts = Counter(_plain_reason(reason).removesuffix(".") for _, reason in files).most_common()
    reasons = [reason if len(counts) == 1 else message("{n} × {reason}", n=n, reason=reason) for reason, n in counts]
    reasons[REASONS:] = ["…"] if len(reasons) > REASONS else []
    return [message(template, images=images, n=f"{len(files):,}", first=files[0][0], reasons=join("; ", reasons))]


def _plain_reason(reason: str) -> str:
    """Replace a reason given by Pillow with plain words."""
    lower = reason.lower()
    if "truncated" in lower:  # "Truncated File Read", "image file is truncated (7 bytes …"
        return N_("the file is cut off")
    return N_("the file is damaged") if "data stream" in lower else reason
