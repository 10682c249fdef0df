"""Some images and the augmented views that the recipe makes of them."""

import dataclasses
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.records.recipe import Recipe
from contrastive_core.records.train_config import visible
from contrastive_lab import format, locale
from contrastive_lab.locale import _, message
from contrastive_lab.progress import answer_or_wait

SIDE = 72  # pixels of an image on the page, before the browser scales it
GAP = 4
STEPS = ("crop", "flip", "rotation", "jitter", "gray", "blur", "solarize", "noise", "sobel", "cutout")


def preview(values: dict[str, Any]) -> None:
    """The images in the first column, their views beside them; and which steps are on."""
    st.header(_("Augmented views"))
    result = answer_or_wait("views", values, message("The views"))
    if result is None:
        return
    alt = _("rows of images, each with the views that training makes of it")
    st.image(sheet(result.arrays["images"], result.arrays["views"]), alt=alt)
    caption = _("Left: images of {dataset}. Right: views of each image, drawn again in every epoch.")
    st.caption(caption.format(dataset=format.data_of(values["dataset"])))
    for text in said(result.meta["recipe"], result.arrays["views"].shape[1]):
        st.caption(locale.text(text))
    if left_out := result.meta.get("left_out"):
        st.caption(format.plain(left_out))


def said(recipe: dict[str, Any], columns: int) -> list[str]:
    """Which augmentations are on, for each view where views differ; so many columns show them."""
    each = [steps(dataclasses.asdict(one)) for one in Recipe(**recipe).each]
    if len(each) == 1:
        return each
    wide, text = columns // len(each), _("View {number}, columns {first} to {last}: {steps}")
    return [
        text.format(number=number, first=wide * (number - 1) + 1, last=wide * number, steps=one)
        for number, one in enumerate(each, 1)
    ]


def steps(recipe: dict[str, Any]) -> str:
    """Which augmentations are on, and how often, in words."""
    on = [f"{name} {100 * recipe[name]:.0f} %" for name in STEPS if recipe[name] > 0]
    return _("On: {on}.").format(on=", ".join(on)) if on else _("No augmentation is on: every view is the image.")


def sheet(images: np.ndarray, views: np.ndarray) -> np.ndarray:
    """One picture (height, width, 3) uint8 of images (k, c, h, w), views (k, v, c, h, w) beside."""
    tiles = np.concatenate([images[:, None], views], axis=1)  # (k, 1 + v, c, h, w)
    tiles = np.moveaxis(tiles[:, :, visible(tiles.shape[2])], 2, -1)
    if tiles.shape[-1] == 1:
        tiles = tiles.repeat(3, axis=-1)
    times = max(1, round(SIDE / tiles.shape[2]))
    tiles = tiles.repeat(times, axis=2).repeat(times, axis=3)
    k, n, h, w, _unused = tiles.shape
    paper = np.full((k, h + GAP, n * (w + GAP) + GAP, 3), 255, np.uint8)
    for column in range(n):
        left = column * (w + GAP) + (GAP if column else 0)  # the image stands apart
        paper[:, :h, left : left + w] = tiles[:, column]
    return paper.reshape(-1, paper.shape[2], 3)[:-GAP]
