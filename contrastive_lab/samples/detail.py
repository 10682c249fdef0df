"""One sample, below the bench: where it stands on every list, its neighbors, why its loss is so."""

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine.vectors import nearest_of
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_request import SampleRequest
from contrastive_core.records.sample_table import LISTS, SampleTable, percent, reason
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.components.sample_view import LossesOverKnob, SampleView, ShownPair, draw_sample_view
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.components.shared.transport import SliderKnob
from contrastive_lab.locale import N_, _
from contrastive_lab.samples import over_epochs
from contrastive_lab.samples.bench import NamedPicture, confused_with, label_of
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.table_picker import Pictures, embedding_of
from contrastive_lab.tables import draw_table

NEAR = 8
NEIGHBOR = 96  # pixels of a picture: three beside each other on a phone
SCORES = {
    "mislabeled": N_("probability that the label is wrong"),
    "false_negative": N_("cosine similarity to the nearest negative"),
    "duplicate": N_("near-duplicate score"),
    "outlier": N_("outlier score"),
    "ambiguous": N_("normalized entropy of the voters"),
    "hub": N_("hub score"),
}  # of the lists, in words
VIEWS = (N_("Neighbors"), N_("Why this loss"), N_("Over time"))


def show(findings: Findings, name: str, rows: np.ndarray, row: int) -> None:
    """More of the sample of `row`: its neighbors, its loss taken apart, its loss over time."""
    request, table, at = findings.of(row)
    view = query_params.one_of(st.segmented_control, _("More of it"), VIEWS, name="view")
    st.caption(format.plain(f"{findings.id(row)} · {locale.text(reason(table, name, at))}"))
    st.caption(numbers(table, at))
    if view == "Neighbors":
        around(request, table, name, at, findings.pictures)
    elif view == "Why this loss":
        explain(request, table, at, findings.pictures)
    else:
        first = row - at
        inside = rows[(rows >= first) & (rows < first + len(table))] - first
        over_epochs.of_one(request, table, inside, at, findings.table.columns["id"][first : first + len(table)])


def numbers(table: SampleTable, row: int) -> str:
    """Its place in every list, and its loss with the spread of it."""
    columns, extra, parts = table.columns, table.extra, []
    if np.isfinite(loss := columns["loss"][row]):
        parts.append(_("loss {loss}, rank {rank}").format(loss=f"{loss:.3f}", rank=int(columns["rank"][row])))
    if "loss_in_batches" in extra and np.isfinite(extra["loss_in_batches"][row]):
        mean, spread = (f"{extra[f'loss_in_batches{k}'][row]:.3f}" for k in ("", "_spread"))
        parts.append(_("in training's batches {mean} ± {spread}").format(mean=mean, spread=spread))
    draws = extra.get("loss_by_draw")
    if draws is not None and draws.shape[1] > 1:
        parts.append(_("by draw of views {draws}").format(draws=", ".join(f"{v:.3f}" for v in draws[row])))
    for name in LISTS:
        score = table.score(name)
        nothing = name == "false_negative" and score[row] <= -1  # no negative is near
        if name != "loss" and np.isfinite(score[row]) and not nothing:
            said = percent(score[row]) if name == "mislabeled" else f"{score[row]:.3f}"
            place = int((score > score[row]).sum()) + 1
            text, total = _("{score} {said}, rank {rank} of {total}"), int(np.isfinite(score).sum())
            rank = {"rank": f"{place:,}", "total": f"{total:,}"}
            parts.append(text.format(score=_(SCORES[name]), said=said, **rank))
    return " · ".join(parts)


def around(request: SampleRequest, table: SampleTable, name: str, row: int, pictures: Pictures) -> None:
    """Its nearest samples, with their labels; before them what it is confused with."""
    sample, rows = str(table.columns["id"][row]), embedding_of(request)
    if rows is None or sample not in rows.ids:
        return
    first = NamedPicture(request.split, sample, _("itself"))
    if other := confused_with(request, table, name, row):
        named = _("nearest, {split}: {duplicate}").format(split=other.split, duplicate=other.id)
        first = other._replace(text=named) if name == "duplicate" else other
    near = zip(*_nearest(rows.content_hash, rows.ids.index(sample), rows), strict=True)
    shown = [NamedPicture(request.split, i := rows.ids[j], f"{label_of(table, i)} {s:.2f}") for j, s in near]
    line = st.container(horizontal=True, gap="small")
    for one in (first, *shown):
        pictures.show(line.container(width=NEIGHBOR), one.id, one.text, one.split)
    if request.run is None:
        st.caption(_("Nearest by cosine similarity."))
    else:
        st.caption(_("Nearest by cosine similarity of the encoder output (h), with their labels."))


@st.cache_resource(max_entries=64, show_spinner=False)
def _nearest(content: str, place: int, _rows: EmbeddingSet) -> tuple[np.ndarray, np.ndarray]:
    return nearest_of(_rows, place, NEAR)


def explain(request: SampleRequest, table: SampleTable, row: int, pictures: Pictures) -> None:
    """The loss taken apart: shares of pairs, margin, and rank as the knob is dragged."""
    sample = str(table.columns["id"][row])
    try:
        why = cache.sample_why(request, str(request.path()), sample)
    except ValueError as error:
        st.info(format.plain(error))
        return
    pairs = [*((p, True) for p in why.weakest_positives), *((p, False) for p in why.hardest_negatives)]
    kinds = (_("negative"), _("positive"))
    names = [f"{kinds[positive]} {label_of(table, p.id)} · {p.id}" for p, positive in pairs]
    margin = _("Margin {margin}: cosine to its nearest positive less that to its nearest negative. ")
    if why.margin < 0:
        margin = _(
            "Margin {margin}: cosine to its nearest positive less that to its nearest negative. A negative is nearer."
        )
    if np.isfinite(why.margin):
        st.caption(margin.format(margin=f"{why.margin:+.3f}"))
    if why.kernel is None:
        pair, share, named = _("pair"), _("share %"), zip(names, pairs, strict=True)
        rows = [{pair: n, share: round(100 * p.share, 2), why.score_kind: p.score} for n, (p, _positive) in named]
        draw_table(rows, hide_index=True)
        return
    losses = table.extra.get("loss_over_knob")  # of every sample, by the live knob
    view = SampleView(
        cache.digest(request, sample, str(request.path())),
        *(why.scores, why.mask, why.kernel),
        [ShownPair(n, p.column, positive) for n, (p, positive) in zip(names, pairs, strict=True)],
        thumbnail_sheet(pictures.stack([p.id for p, _positive in pairs])),
        knob_of(cache.catalog()["losses"][request.loss], why.kernel),
        None if losses is None or len(table.grid) < 2 else LossesOverKnob(table.grid.tolist(), losses, row),
    )
    draw_sample_view(view, key=f"why-{cache.digest(sample)}")
    text = _(
        "This is the loss of its first view among all samples. The value above is the mean over its views and their "
        "draws. Weakest positives and hardest negatives come first. The encoder is frozen: the slider only changes "
        "the loss, computed in the browser. Ranks are interpolated between the settings at which all losses are "
        "known."
    )
    st.caption(text)


def knob_of(about: dict[str, Any], kernel: dict[str, Any]) -> SliderKnob | None:
    """What is dragged: its label, range and the value that the run has."""
    if (name := kernel.get("knob")) is None:
        return None
    low, label = (0.02, _("τ, temperature")) if name == "temperature" else (0.05, _("ε, margin"))
    value = float(kernel[name])
    return SliderKnob(label, min(low, value), max(2.0, value), value, bool(about["knobs"][name]["log"]))
