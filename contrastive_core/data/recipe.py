"""Augmentations with their probability and strength: the settings `recipe.*` of a training.

Views may differ: `recipe.views` lists the changed settings of each view, such as "blur=1 | blur=0.1
solarize=0.2", or a name of VIEWS. If a method needs more views than listed, the list repeats from the
start; a method with one view uses the first.

BYOL (Grill et al. 2020, arXiv 2006.07733, appendix B, table 6) always blurs its first view, rarely the
second, and solarizes some images in the second; its color steps are weaker than SimCLR's:
brightness and contrast 0.4, saturation 0.2, hue 0.1 in both views."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob, knobs_of

VIEWS = {  # names for `views`
    "byol": "blur=1 solarize=0 saturation=0.2 hue=0.1 | blur=0.1 solarize=0.2 saturation=0.2 hue=0.1"
}


@dataclass(frozen=True)
class Recipe:
    """Settings of the augmentations: their probability per image (0 is off) and their strength."""

    crop: float = knob(1.0, 0, 1, N_("probability of a random resized crop"))
    crop_low: float = knob(0.4, 0.01, 1, N_("smallest share of the area that a crop keeps"))
    crop_high: float = knob(1.0, 0.01, 1, N_("largest share of the area that a crop keeps"))
    crop_aspect: float = knob(4 / 3, 1, 4, N_("largest aspect ratio of a crop; the smallest is its inverse"))
    flip: float = knob(0.5, 0, 1, N_("probability of mirroring left to right"))
    rotation: float = knob(0.0, 0, 1, N_("probability of a rotation"))
    rotation_degrees: float = knob(15.0, 0, 180, N_("largest rotation, in degrees"))
    jitter: float = knob(0.8, 0, 1, N_("probability of color jitter (brightness, contrast, saturation, hue)"))
    brightness: float = knob(0.4, 0, 1, N_("brightness factor within 1 ± this"))
    contrast: float = knob(0.4, 0, 1, N_("contrast factor within 1 ± this"))
    saturation: float = knob(0.4, 0, 1, N_("saturation factor within 1 ± this"))
    hue: float = knob(0.5, 0, 0.5, N_("maximum hue shift to either side, as a fraction of the color circle"))
    gray: float = knob(0.2, 0, 1, N_("probability of dropping the colors"))
    blur: float = knob(0.0, 0, 1, N_("probability of a Gaussian blur (kernel: a tenth of the image)"))
    blur_low: float = knob(0.1, 0.01, 10, N_("smallest blur, standard deviation in pixels"))
    blur_high: float = knob(2.0, 0.01, 10, N_("largest blur, standard deviation in pixels"))
    solarize: float = knob(0.0, 0, 1, N_("probability of inverting bright pixels"))
    solarize_from: float = knob(0.5, 0, 1, N_("threshold of solarization, as a fraction of the full range"))
    noise: float = knob(0.0, 0, 1, N_("probability of Gaussian noise"))
    noise_sigma: float = knob(0.05, 0, 1, N_("standard deviation of the noise, as a fraction of the full range"))
    sobel: float = knob(0.0, 0, 1, N_("probability of replacing the image by its edges"))
    cutout: float = knob(0.0, 0, 1, N_("probability of blanking out a square"))
    cutout_size: float = knob(0.4, 0, 1, N_("side of the blanked square, as a fraction of the image's side"))
    order: str = knob("", help=N_("steps to apply first, for example 'blur crop'; the others keep their order"))
    views: str = knob("", help=N_("settings of each view, such as 'blur=1 | blur=0.1', or byol"))

    @property
    def each(self) -> list[Recipe]:
        """The recipe of each listed view; a single recipe if `views` is empty."""
        changes = view_changes(self.views)
        return [Recipe(**vars(self) | {"views": ""} | change) for change in changes]

    def of_view(self, number: int) -> Recipe:
        """Return the recipe of a view, counted from 0."""
        if not self.views:
            return self
        each = self.each
        return each[number % len(each)]


@lru_cache(64)
def view_changes(text: str) -> tuple[dict[str, float], ...]:
    """Return the changed settings of each view; one empty change for an empty text. Raises ValueError."""
    knobs = knobs_of(Recipe)
    numbers = [name for name, entry in knobs.items() if not isinstance(entry.default, str)]
    views = []
    for part in VIEWS.get(text.strip(), text).split("|"):
        change: dict[str, float] = {}
        for word in part.replace(",", " ").split():
            name, equals, value = word.partition("=")
            if not equals or name not in numbers:
                values = {"word": repr(word), "views": ", ".join(VIEWS), "numbers": ", ".join(numbers)}
                raise BadSetting(
                    "recipe.views: {word} is no setting of a view; write it as blur=1 | blur=0.1 "
                    "solarize=0.2, or a name: {views}. A view has: {numbers}",
                    **values,
                )
            change[name] = knobs[name].check(name, value)
        views.append(change)
    return tuple(views)
