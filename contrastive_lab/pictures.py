"""The images of the rows of an embedding, for maps and galleries; and why two samples are similar: the parts of their
patches or words, on every page where a pair is met."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.engine import jobs
from contrastive_core.spaces.results import Values
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, progress, query_params, state
from contrastive_lab.components.alike import AlikeSide, draw_alike
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import _, message
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
    picked = draw_gallery(some_of(space, some), captions, labels=labels, size=SIDE, title=title, key=key)
    place = state.place_of(space)
    if picked and state.selection(place) != [some[picked[0]]]:
        state.select([some[picked[0]]], place)
        st.rerun()


# --- why two samples are similar -------------------------------------------------------------------


def is_likeness_wanted() -> bool:
    """Draw a switch; return whether a pair is to be explained."""
    return query_params.switch(st.toggle, _("Why are they alike?"), name="why")


def explain_likeness(values: Values, names: tuple[str, str]) -> None:
    """Draw the parts of two samples, and what covering the largest ones does. values: of the analysis "likeness"."""
    if (found := progress.answer_or_wait("likeness", values, message("Similarity of patches"))) is None:
        return
    meta, arrays = found.meta, found.arrays
    st.caption(format.plain(" · ".join(names)))
    sides = [AlikeSide(n, *both) for n, *both in zip(names, meta["shapes"], meta["words"], strict=True)]
    images = [arrays[f"image{k}"] for k in range(2) if f"image{k}" in arrays]
    draw_alike(sides, arrays["patches"], images, "alike")
    low, high = meta["interval"]
    text: str = _("The similarity {similarity} is an exact sum over pairs of patches.")
    if not meta["is_exact"]:
        text = _(
            "The similarity is {similarity}; the parts sum to {explained}. They are integrated Jacobians. The rest of "
            "the similarity does not depend on the patches."
        )
    text += " " + _(
        "Covering those with the largest parts lowers it by {gap} more than covering random ones (area between the two "
        "curves, 95 % CI {low} to {high})."
    )
    if low <= 0:
        text += " " + _("This effect is not clear: each patch sees much more of the image than its own area.")
    numbers = {name: meta[name] for name in ("similarity", "explained", "gap")} | {"low": low, "high": high}
    st.caption(format.plain(text.format(**{name: f"{x:.2f}" for name, x in numbers.items()})))
