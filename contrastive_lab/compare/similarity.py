"""Similarity of spaces, as numbers for a few and matrices for four or more; and a map from the vectors of A to those of
B, with the recall it keeps."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import streamlit as st

from contrastive_core.base.memory import npz_bytes
from contrastive_core.base.score import recall_text
from contrastive_core.compare.adapter import adapter_request, title_of
from contrastive_core.compare.comparison import Comparison
from contrastive_core.compare.representation_similarity import LEVEL
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, figures, format, locale, query_params
from contrastive_lab.compare.space_picker import SHAPES, A, B
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait

MATRIX = 300  # pixels of a matrix; below each other where there is no room beside each other
FEW = 3  # spaces, of which each pair has its numbers


def alike(spaces: list[Space], comparison: Comparison) -> None:
    """Draw the similarity between the spaces as numbers or matrices, beside that by chance."""
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
        show_adapter(spaces)


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


def matrices(names: list[str], values: dict[str, np.ndarray], k: int, full: Sequence[str]) -> None:
    """Draw matrices side by side. Args: full: longer names, for a saved figure."""
    row = st.container(horizontal=True)
    for key, (title, reading) in READINGS.items():
        with row.container(width=MATRIX, gap="xsmall"):
            st.markdown(f"**{_(title)}**")
            figure = figures.matrix(values[key], names, names, reverse=key == "procrustes")
            named = figures.matrix(values[key], full, full, reverse=key == "procrustes")
            figures.draw(figure, key, f"{key}-matrix", named)
            st.caption(_(reading).format(k=k))


# --- the map between two models ---


def show_adapter(spaces: list[Space]) -> None:
    """Offer the map; if it is on, draw what it keeps, the share to encode again, the groups, and its file."""
    st.header(_("Map the vectors of {a} to those of {b}").format(a=A, b=B))
    about = _("An index of old vectors then answers queries of the new model, and nothing is encoded again.")
    if not query_params.switch(st.toggle, _("Fit the map"), name="adapter", help=about):
        return
    values = adapter_request(*spaces)
    result = answer_or_wait("adapter", values, message("A map between the models"), may_stop=True)
    if result is None:
        return
    meta, k = result.meta, result.meta["k"]
    rows = sorted(meta["kept"], key=lambda one: -one["value"])
    best = {"kept": f"{100 * rows[0]['value']:.1f}", "bound": f"{100 * rows[0]['bound']:.1f}"}
    text = _("The map keeps **{kept} %** of the {k} best answers of {b}, at least {bound} %.")
    help = _(
        "The bound holds in 95 of 100 samples of queries, for any distribution, and for all maps together. It is "
        "about {queries} held-out queries on {held} held-out documents; a larger collection has closer neighbors."
    )
    counts = {name: f"{meta[name]:,}" for name in ("queries", "held")}
    st.markdown(text.format(**best, k=k, b=B), help=help.format(**counts))
    table = [
        {
            N_("map"): locale.text(title_of(one["kind"], one["setting"])),
            N_("kept, %"): round(100 * one["value"], 1),
            N_("at least, %"): round(100 * one["bound"], 1),
        }
        for one in rows
    ]
    old = {"map": _("no map: queries of {a}").format(a=A), "kept, %": round(100 * meta["old"][0], 1)}
    draw_table([*table, old], hide_index=True, placeholder="–")
    shares, first, at_random = ([100 * value for value in column] for column in zip(*meta["partial"], strict=True))
    series = {str(_("frequent answers first")): (shares, first), str(_("in random order")): (shares, at_random)}
    figure = figures.curves(series, _("documents encoded again, %"), _("answers kept, %"))
    figures.draw(figure, "adapter", "adapter")
    groups = [
        {
            N_("group of queries"): one["name"],
            "n": one["n"],
            "kept, %": round(100 * one["value"], 1),
            N_("points from the others"): round(100 * one["difference"], 1),
            N_("p, corrected"): f"{one['p']:.2g}",
        }
        for one in meta["groups"]
    ]
    if groups:
        draw_table(groups, hide_index=True)
    with st.container(horizontal=True):
        kept = npz_bytes(kind=np.array(meta["kind"]), **{name: result.arrays[name] for name in ("matrix", "offset")})
        st.download_button(_("Map as .npz"), bytes(kept), "adapter.npz", on_click="ignore")
        csv = format.table_csv({"id": name} for name in meta["first"])
        st.download_button(_("Documents to encode first"), csv, "encode_first.csv", "text/csv", on_click="ignore")
