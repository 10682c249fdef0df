"""The playground: an encoder of digits that learns in the browser, in the app and as one file that opens offline."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from contrastive_core.engine import calls
from contrastive_lab import query_params
from contrastive_lab.components.playground import PlaygroundView, draw_playground

LOSSES = ("nt_xent", "sup_con", "info_nce", "triplet")  # whose kernels the browser has
LINK = "play"  # the parameter of the address that holds the setting


def view_of(
    digits: tuple[np.ndarray, np.ndarray, int], kernels: Mapping[str, Mapping[str, Any]], settings: str = ""
) -> PlaygroundView:
    """What `engine.calls.digits` gives with the losses' kernels. `settings`: as an address holds them."""
    images, labels, learned = digits
    return PlaygroundView(images, labels, images.shape[-1], learned, {n: dict(kernels[n]) for n in LOSSES}, settings)


_digits = cache(calls.digits)


def draw(kernels: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw it on a page, its setting kept in the address."""
    setting = draw_playground(view_of(_digits(), kernels, query_params.requested(LINK) or ""))
    query_params.keep(**{LINK: setting or None})
