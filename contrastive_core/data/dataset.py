"""One split of a data set with its captions, the size that a training selects for images of a folder, and sentences
about files that were skipped or only partly read. Torch-free."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, join, message

SMALLEST = 4  # smallest side in pixels
LARGEST = 518  # pixels of a side: DINOv2's
SMALL = 64  # for the encoder `small`, whose receptive field is 41 pixels
RESIZES = ("crop", "pad")


def usual_side(median: int) -> int:
    """Return the default image side: the median of the shorter sides, at least SMALLEST and at most SMALL."""
    return max(SMALLEST, min(SMALL, median))


@dataclass(frozen=True)
class ImageForm:
    """Resizing of a folder's images. `size`: pixels of a side; None: the median of the shorter sides, at most SMALL.
    `crop` scales the shorter side to `size` and keeps the center; `pad` scales the longer side and pads with black."""

    size: int | None = None
    resize: str = "crop"

    def __post_init__(self) -> None:
        if self.size is not None and not SMALLEST <= self.size <= LARGEST:
            limits = {"smallest": SMALLEST, "largest": LARGEST}
            raise BadSetting("image_size must lie in {smallest}..{largest}; got {size}", size=self.size, **limits)
        if self.resize not in RESIZES:
            resizes = " or ".join(RESIZES)
            raise BadSetting("resize must be {resizes}; got {resize}", resizes=resizes, resize=repr(self.resize))

    @property
    def text(self) -> str:
        """The form in words: 64 × 64 pixels, cropped to the middle."""
        how = N_("cropped to the middle") if self.resize == "crop" else N_("padded with black")
        return message("{size} × {size} pixels, {how}", size=self.size, how=how)


USUAL = ImageForm()


def form_of(config: Mapping[str, Any]) -> ImageForm:
    """Return the image form that a run's settings select."""
    return ImageForm(config.get("image_size"), config.get("resize") or "crop")


def described(config: Mapping[str, Any]) -> str:
    """Describe the image size of a run in words; "" if it is fixed by the data set."""
    form = form_of(config)
    return message("images of {form}", form=form.text) if form.size else ""


def visible(channels: int) -> slice:
    """Return the channels to display: the first three, or the first if there are fewer."""
    return slice(3 if channels > 2 else 1)


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
class Captions:
    """Captions: `texts` (m), and `image` (m) int64, the row of each text's image, sorted."""

    texts: tuple[str, ...]
    image: np.ndarray

    @property
    def digest(self) -> str:
        """SHA-256 of the texts and their images."""
        parts = (self.image.astype("<i8").tobytes(), *(f"{text}\n".encode() for text in self.texts))
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def names(self, images: Sequence[str]) -> list[str]:
        """Return the id of each caption: the id of its image and its number among that image's captions, from 1."""
        number = np.arange(len(self.image)) - np.searchsorted(self.image, self.image) + 1
        return [f"{images[i]}#{k}" for i, k in zip(self.image.tolist(), number.tolist(), strict=True)]

    def at(self, image: np.ndarray, keep: Sequence[int]) -> "Captions":
        """Return the captions at the indices `keep`, assigned to the images in `image` (m)."""
        order = sorted(keep, key=lambda k: int(image[k]))
        return Captions(tuple(self.texts[k] for k in order), image[np.asarray(order, np.int64)])

    def take(self, keep: np.ndarray) -> "Captions":
        """Return the captions of the images `keep`, in that order."""
        first, last = self.bounds(keep)
        rows = [range(i, j) for i, j in zip(first, last, strict=True)]
        texts = tuple(self.texts[k] for each in rows for k in each)
        return Captions(texts, np.repeat(np.arange(len(keep)), last - first))

    def bounds(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the index of each image's first caption, and the index after its last."""
        return np.searchsorted(self.image, images, "left"), np.searchsorted(self.image, images, "right")

    def at_most(self, count: int) -> "Captions":
        """Return at most `count` captions of each image, the first ones."""
        keep = np.arange(len(self.image)) - np.searchsorted(self.image, self.image) < count
        return Captions(tuple(text for text, kept in zip(self.texts, keep, strict=True) if kept), self.image[keep])


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
    captions: Captions | None = None  # if `captions.add_captions` added them

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
    plain = []
    for _, reason in files:  # Pillow's own words are replaced
        if "truncated" in reason.lower():  # "Truncated File Read", "image file is truncated (7 bytes …"
            reason = N_("the file is cut off")
        plain.append(N_("the file is damaged") if "data stream" in reason.lower() else reason.removesuffix("."))
    counts = Counter(plain).most_common()
    reasons = [reason for reason, _ in counts]
    if len(counts) > 1:
        reasons = [message("{n} × {reason}", n=f"{n:,}", reason=reason) for reason, n in counts]
    reasons[REASONS:] = ["…"] if len(reasons) > REASONS else []
    return [message(template, images=images, n=f"{len(files):,}", first=files[0][0], reasons=join("; ", reasons))]
