"""The image size of a folder's images, selected by a training's settings. Torch-free."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message

SMALLEST = 4  # smallest side in pixels
LARGEST = 518  # pixels of a side: DINOv2's
SMALL = 64  # for the encoder `small`, whose receptive field is 41 pixels
RESIZES = ("crop", "pad")


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
