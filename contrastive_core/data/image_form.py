"""To which form the images of a folder are brought: the size of their side, and how.

`crop` brings the shorter side to the size and keeps the middle; `pad` brings the longer side to it
and fills the rest with black. Torch-free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contrastive_core.errors import BadSetting

__all__ = [
    "AS_BEFORE",
    "LARGEST",
    "RESIZES",
    "SMALL",
    "SMALLEST",
    "USUAL",
    "ImageForm",
    "described",
    "form_of",
    "visible",
]

SMALLEST = 4  # pixels of a side that a training is asked for
LARGEST = 518  # pixels of a side: DINOv2's
SMALL = 64  # of the encoder `small`, whose field of view is 41 pixels
RESIZES = ("crop", "pad")


@dataclass(frozen=True)
class ImageForm:
    """`size`: pixels of a side. None: the median of the shorter sides, at most SMALL; 0: as runs
    that name no size have it, the median of a split's shorter sides, at most 96, cropped."""

    size: int | None = None
    resize: str = "crop"

    def __post_init__(self) -> None:
        if self.size is not None and not 0 <= self.size <= LARGEST:
            raise BadSetting(f"image_size must lie in {SMALLEST}..{LARGEST}; got {self.size}")
        if self.resize not in RESIZES:
            raise BadSetting(f"resize must be {' or '.join(RESIZES)}; got {self.resize!r}")

    @property
    def text(self) -> str:
        """For a person: 64 × 64 pixels, cropped."""
        how = "cropped to the middle" if self.resize == "crop" else "padded with black"
        return f"{self.size} × {self.size} pixels, {how}"


USUAL, AS_BEFORE = ImageForm(), ImageForm(0)


def form_of(config: Mapping[str, Any]) -> ImageForm:
    """The form that a run's settings name; AS_BEFORE for a folder in those of an older version."""
    if "image_size" not in config and str(config.get("dataset")).startswith("folder:"):
        return AS_BEFORE
    return ImageForm(config.get("image_size"), config.get("resize") or "crop")


def described(config: Mapping[str, Any]) -> str:
    """What a run's images were brought to, for a person: "images of 64 × 64 pixels, cropped to the
    middle"; "" where they have a size of their own."""
    form = form_of(config)
    if not form.size:
        return ""
    if form.resize == "crop":
        return f"images of {form.size} × {form.size} pixels, cropped to the middle"
    return f"images of {form.size} × {form.size} pixels, padded with black"


def visible(channels: int) -> slice:
    """Which channels a picture shows of an image with so many: three, or the first where there are
    fewer."""
    return slice(3 if channels > 2 else 1)
