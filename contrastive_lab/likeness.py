"""Why two samples are similar: the parts of their patches or words, on every page where a pair is met."""

import streamlit as st

from contrastive_core.spaces.results import Values
from contrastive_lab import format, progress, query_params
from contrastive_lab.components.alike import AlikeSide, draw_alike
from contrastive_lab.locale import _, message


def is_wanted() -> bool:
    """Draw a switch; return whether a pair is to be explained."""
    return query_params.switch(st.toggle, _("Why are they alike?"), name="why")


def explain(values: Values, names: tuple[str, str]) -> None:
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
