"""One split of a data set, and sentences about files that were skipped or read only in part."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from contrastive_core.data.captions import Captions
from contrastive_core.messages import N_, join, message
from contrastive_core.records.train_config import ImageForm

REASONS = 3  # that are listed
Files = Sequence[tuple[str, str]]  # ids, with the reason, or with the note
SKIPPED = (  # one file; several for one reason; several for different reasons
    N_("1 file was left out of {images}, {first}: {reasons}."),
    N_("{n} files were left out of {images} (the first is {first}): {reasons}."),
    N_("{n} files were left out of {images} (the first is {first})."),
)
PARTLY_READ = (
    N_("1 file of {images} was not taken whole, {first}: {reasons}."),
    N_("{n} files of {images} were not taken whole (the first is {first}): {reasons}."),
    N_("{n} files of {images} were not taken whole (the first is {first})."),
)


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
    """One split of a data set. `labels` are −1 where there is none; `factors` holds further values per image. `skipped`
    lists files that could not be read, with the reason, `notes` files that were read in part, `remarks` sentences on
    the folder. `form` is the size of images that come from files."""

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
    captions: Captions | None = None  # where `caption_sources.add_captions` added them

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def left_out(self) -> str:
        """Sentences on files that were skipped or read in part, and on the folder; "" where there are none."""
        images = N_("the training images") if self.split == "train" else N_("the test images")
        skipped, notes = _sentences(SKIPPED, images, self.skipped), _sentences(PARTLY_READ, images, self.notes)
        return join(" ", [*skipped, *notes, *self.remarks])


def _sentences(templates: tuple[str, str, str], images: str, files: Files) -> list[str]:
    """Return the sentence that fits, and for several reasons a sentence on each of the most frequent."""
    if not files:
        return []
    counts = Counter(_plain_reason(reason).removesuffix(".") for _, reason in files).most_common()
    n, first, reason = f"{len(files):,}", files[0][0], counts[0][0]
    one_file, one_reason, several_reasons = templates
    if len(counts) == 1:
        template = one_reason if len(files) > 1 else one_file
        return [message(template, n=n, images=images, first=first, reasons=reason)]
    each = [
        message("The reason for {count} of them: {reason}.", count=f"{count:,}", reason=reason)
        for reason, count in counts[:REASONS]
    ]
    remaining = sum(count for _, count in counts[REASONS:])
    others = [message("Other reasons for {remaining} of them.", remaining=f"{remaining:,}")] if remaining else []
    return [message(several_reasons, n=n, images=images, first=first), *each, *others]


def _plain_reason(reason: str) -> str:
    """Return a reason in plain words in place of Pillow's."""
    lower = reason.lower()
    if "truncated" in lower:  # "Truncated File Read", "image file is truncated (7 bytes …"
        return N_("the file is cut off")
    return N_("the file is damaged") if "data stream" in lower else reason
