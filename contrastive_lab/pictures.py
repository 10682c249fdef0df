"""The images of the rows of an embedding, for maps and galleries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.data import datasets
from contrastive_core.data.image_form import form_of
from contrastive_core.engine import jobs
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, state
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import message
from contrastive_lab.progress import follow

SIDE = 48  # pixels of an image in a gallery


def are_decoded(space: Space) -> bool:
    """Return whether images are available; while they are decoded the page shows the progress."""
    run = space.run
    if run is None:
        return cache.images(space) is not None
    if not datasets.is_made(str(run.config.get("dataset")), space.split, form_of(run.config)):
        follow(jobs.decoding(run.config, space.split), message("The images behind the points (once)"))
        return False
    return True


def of(space: Space) -> np.ndarray:
    """Return images (n, c, h, w) in the order of the rows."""
    images = cache.images(space)
    assert images is not None
    return images


def some_of(space: Space, rows: Sequence[int]) -> np.ndarray:
    """Return images (m, c, h, w) of these rows."""
    images = of(space)
    return np.stack([images[i] for i in rows])


def gallery(
    space: Space, some: list[int], captions: list[str], title: str, key: str, labels: Sequence[str] = ()
) -> None:
    """Draw images; a click selects an image's point. labels: names for screen readers, default the captions."""
    look: dict[str, Any] = {"labels": labels, "size": SIDE, "title": title, "key": key}
    picked, place = draw_gallery(some_of(space, some), captions, **look), state.place_of(space)
    if picked and state.selection(place) != [some[picked[0]]]:
        state.select([some[picked[0]]], place)
        st.rerun()
