"""Which augmentations are on, how often and how strong: the settings `recipe.*` of a training."""

from __future__ import annotations

from dataclasses import dataclass

from contrastive_core.registry import knob

__all__ = ["Recipe"]


@dataclass(frozen=True)
class Recipe:
    """Which augmentations, how often (a probability per image: 0 is off) and how strong."""

    crop: float = knob(1.0, 0, 1, "how often a random resized crop is taken")
    crop_low: float = knob(0.4, 0.01, 1, "smallest part of the area a crop keeps")
    crop_high: float = knob(1.0, 0.01, 1, "largest part of the area a crop keeps")
    crop_aspect: float = knob(4 / 3, 1, 4, "largest aspect ratio of a crop; its inverse too")
    flip: float = knob(0.5, 0, 1, "how often an image is mirrored left to right")
    rotation: float = knob(0.0, 0, 1, "how often an image is turned")
    rotation_degrees: float = knob(15.0, 0, 180, "largest turn to either side, in degrees")
    jitter: float = knob(0.8, 0, 1, "how often the four color steps are applied")
    brightness: float = knob(0.4, 0, 1, "brightness factor within 1 ± this")
    contrast: float = knob(0.4, 0, 1, "contrast factor within 1 ± this")
    saturation: float = knob(0.4, 0, 1, "saturation factor within 1 ± this")
    hue: float = knob(0.5, 0, 0.5, "hue shift within ± this part of the color circle")
    gray: float = knob(0.2, 0, 1, "how often the colors are dropped")
    blur: float = knob(0.0, 0, 1, "how often a Gaussian blur (kernel: a tenth of the image)")
    blur_low: float = knob(0.1, 0.01, 10, "smallest blur, standard deviation in pixels")
    blur_high: float = knob(2.0, 0.01, 10, "largest blur, standard deviation in pixels")
    noise: float = knob(0.0, 0, 1, "how often Gaussian noise is added")
    noise_sigma: float = knob(0.05, 0, 1, "standard deviation of the noise, of the full range")
    sobel: float = knob(0.0, 0, 1, "how often the image is replaced by its edges")
    cutout: float = knob(0.0, 0, 1, "how often a square is blanked out")
    cutout_size: float = knob(0.4, 0, 1, "side of that square, as part of the image's side")
    order: str = knob("", help="steps to take first, as 'blur crop'; the others keep their order")
