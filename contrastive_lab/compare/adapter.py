"""A map from the vectors of A to those of B on Compare: the recall it keeps, and what to encode again first."""

import numpy as np
import streamlit as st

from contrastive_core.base.json_files import npz_bytes
from contrastive_core.compare.adapter import adapter_request, title_of
from contrastive_core.spaces.space import Space
from contrastive_lab import figures, format, locale, query_params
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait

A, B = SHAPES[0], SHAPES[1]
TITLE = N_("Map the vectors of {a} to those of {b}")


def show(spaces: list[Space]) -> None:
    """Offer the map; if it is on, draw what it keeps, the share to encode again, the groups, and its file."""
    st.header(_(TITLE).format(a=A, b=B))
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
