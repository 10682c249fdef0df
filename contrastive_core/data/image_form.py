"""One size for the images of a folder, as a training's settings name it. Torch-free."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message

SMALLEST = 4  # pixels of a side that a training is asked for
LARGEST = 518  # pixels of a side: DINOv2's
SMALL = 64  # of the encoder `small`, whose field of view is 41 pixels
RESIZES = ("crop", "pad")


@dataclass(frozen=True)
class ImageForm:
    """The resizing of a folder's images. `size`: pixels of a side; None: the median of the shorter sides,
    at most SMALL. `crop` brings the shorter side to it and keeps the middle; `pad` the longer, and fills with black."""

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
        """For a person: 64 × 64 pixels, cropped."""
        how = N_("cropped to the middle") if self.resize == "crop" else N_("padded with black")
        return message("{size} × {size} pixels, {how}", size=self.size, how=how)


USUAL = ImageForm()


def form_of(config: Mapping[str, Any]) -> ImageForm:
    """Return the form that a run's settings name."""
    return ImageForm(config.get("image_size"), config.get("resize") or "crop")


def described(config: Mapping[str, Any]) -> str:
    """Describe the size of a run's images for a person; "" where they have a size of their own."""
    form = form_of(config)
    return message("images of {form}", form=form.text) if form.size else ""


def visible(channels: int) -> slice:
    """Return the channels that a picture shows: three, or the first where there are fewer."""
    return slice(3 if channels > 2 else 1)
