"""Similarity of spaces, and of the snapshots of one run: numbers for a few, matrices for four or more."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import streamlit as st

from contrastive_core.base.score import recall_text
from contrastive_core.compare.comparison import Comparison
from contrastive_core.compare.representation_similarity import LEVEL
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, figures, format, query_params
from contrastive_lab.compare import adapter
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait

MATRIX = 300  # pixels of a matrix; below each other where there is no room beside each other
FEW = 3  # spaces, of which each pair has its numbers


def alike(spaces: list[Space], comparison: Comparison) -> None:
    """Draw the similarity between the runs as numbers or matrices, and between the snapshots of one of them."""
    shapes = SHAPES[: len(comparison.names)]
    legend = (f"**{shape}** {format.plain(n)}" for shape, n in zip(shapes, comparison.names, strict=True))
    st.markdown(_(" · ").join(legend))
    between = {"cka": comparison.cka, "overlap": comparison.overlap, "procrustes": comparison.procrustes}
    of_all = {"spaces": [space.values for space in spaces]}
    chance = cache.result("calibration", of_all)
    if len(shapes) <= FEW:
        _numbers(shapes, between, comparison.k, chance)
    else:
        matrices(list(shapes), between, comparison.k, full=comparison.names)
        if chance is not None:
            st.caption(_by_chance(shapes, chance))
    if chance is not None:
        about: str = _(
            "Chance is computed from {orders} random orders of the rows of one space. The calibrated similarity is 0 "
            "at their 95th percentile and 1 for equal spaces. p is the share of orders that are at least as similar "
            "(arXiv 2602.14486)."
        )
        if chance.meta["rows"] < chance.meta["n"]:
            about = about + " " + _("Chance is computed from {rows} rows, so it is higher than for all rows.")
        st.caption(about.format(orders=chance.meta["orders"], rows=f"{chance.meta['rows']:,}"))
    else:
        answer_or_wait("calibration", of_all, message("Chance, from rows in random order"))
    if note := recall_text(comparison.recall):
        st.caption(_("Shared neighbors are based on {note}.").format(note=note))
    if len(spaces) == 2:
        adapter.show(spaces)
    runs = {run.name: (run, s.layer) for s in spaces if (run := s.run) and len(run.snapshots()) > 1}
    if not runs:
        return
    st.header(_("Between the snapshots of one run"))
    name = query_params.one_of(st.selectbox, _("Run"), runs, name="snapshots", width=MATRIX)
    run, layer = runs[name]
    values = {"run": name, "layer": layer, "epochs": run.snapshots(), "weights": run.weights_hash()}
    if result := answer_or_wait("snapshots", values, message("Comparing the snapshots")):
        st.caption(_("Rows and columns are epochs."))
        matrices([str(e) for e in result.meta["epochs"]], result.arrays, result.meta["k"], name)


READINGS = {
    "cka": (N_("Linear CKA (debiased)"), N_("1: the same up to turning and scaling, 0: unrelated.")),
    "overlap": (N_("Shared neighbors"), N_("Share of the {k} nearest neighbors that two spaces have in common.")),
    "procrustes": (
        N_("Procrustes distance"),
        N_("0: the spaces coincide after rotation; 1: they do not match at all."),
    ),
}


def _numbers(shapes: str, values: dict[str, np.ndarray], k: int, chance: Result | None) -> None:
    """Draw the similarity numbers of each pair, with their values by chance."""
    for i, j in combinations(range(len(shapes)), 2):
        row = st.container(horizontal=True)
        for key, (title, reading) in READINGS.items():
            with row.container(width=MATRIX, border=True):
                label = f"{_(title)}, {shapes[i]} {shapes[j]}" if len(shapes) > 2 else _(title)
                st.metric(label, f"{values[key][i, j]:.2f}")
                if chance is not None and not np.isnan(chance.arrays[f"p:{key}"][i, j]):
                    limit, above, p = (chance.arrays[f"{name}:{key}"][i, j] for name in ("chance", "calibrated", "p"))
                    text = _("Chance {limit} · calibrated {value} · p {p}")
                    st.caption(text.format(limit=f"{limit:.2f}", value=f"**{above:.2f}**", p=f"{p:.3f}"))
                st.caption(_(reading).format(k=k))


def _by_chance(names: Sequence[str], chance: Result) -> str:
    """List the pairs of spaces that are no more similar than by chance."""
    pairs = list(combinations(range(len(names)), 2))
    found = {
        _(title): [f"{names[i]}{names[j]}" for i, j in pairs if not chance.arrays[f"p:{key}"][i, j] <= LEVEL]
        for key, (title, _reading) in READINGS.items()
    }
    comma = _(", ")
    listed = [f"{title}: {comma.join(alike)}" for title, alike in found.items() if alike]
    if not listed:
        return _("Every pair of spaces is more similar than by chance, by each measure.")
    return _("Not more similar than by chance: {listed}.").format(listed=_("; ").join(listed))


def matrices(names: list[str], values: dict[str, np.ndarray], k: int, of: str = "", full: Sequence[str] = ()) -> None:
    """Draw matrices side by side. Args: full: longer names, for a saved figure."""
    row = st.container(horizontal=True)
    for key, (title, reading) in READINGS.items():
        with row.container(width=MATRIX, gap="xsmall"):
            st.markdown(f"**{_(title)}**")
            figure = figures.matrix(values[key], names, names, reverse=key == "procrustes")
            named = figures.matrix(values[key], full, full, reverse=key == "procrustes") if full else None
            figures.draw(figure, key, f"{key}-{cache.digest(of)}", named)
            st.caption(_(reading).format(k=k))
