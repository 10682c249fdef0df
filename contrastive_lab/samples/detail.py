"""One sample, below the bench: where it stands on every list, its neighbors, why its loss is so."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine.vectors import nearest_of
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_request import SampleRequest
from contrastive_core.records.sample_table import LISTS, SampleTable, percent, reason
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.components.sample_view import LossesOverKnob, SampleView, ShownPair, draw_sample_view
from contrastive_lab.components.shared.knob import SliderKnob
from contrastive_lab.locale import N_, _
from contrastive_lab.samples import over_epochs
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.table_picker import Pictures, embedding_of
from contrastive_lab.tables import draw_table

NEAR = 8
NEIGHBOR = 96  # pixels of a picture: three beside each other on a phone
VIEWS = (N_("Neighbors"), N_("Why this loss"), N_("Over time"))


def show(findings: Findings, name: str, rows: np.ndarray, row: int, pictures: Pictures) -> None:
    """More of the sample of `row`: its neighbors, its loss taken apart, its loss over time."""
    request, table, at = findings.of(row)
    view = query_params.one_of(st.segmented_control, _("More of it"), VIEWS, name="view")
    sample = str(findings.table.columns["id"][row])
    st.caption(format.plain(f"{sample} · {locale.text(reason(table, name, at))}"))
    st.caption(numbers(table, at))
    if view == "Neighbors":
        around(request, table, name, at, pictures)
    elif view == "Why this loss":
        explain(request, table, at, pictures)
    else:
        first = row - at
        inside = rows[(rows >= first) & (rows < first + len(table))] - first
        names = findings.table.columns["id"][first : first + len(table)]
        over_epochs.of_one(request, table, inside, at, names)


def numbers(table: SampleTable, row: int) -> str:
    """Its place in every list, and its loss with the spread of it."""
    columns, extra = table.columns, table.extra
    parts = []
    if np.isfinite(columns["loss"][row]):
        parts.append(
            _("loss {loss}, rank {rank}").format(loss=f"{columns['loss'][row]:.3f}", rank=int(columns["rank"][row]))
        )
    if "loss_in_batches" in extra and np.isfinite(extra["loss_in_batches"][row]):
        mean, spread = (extra[f"loss_in_batches{k}"][row] for k in ("", "_spread"))
        parts.append(_("in training's batches {mean} ± {spread}").format(mean=f"{mean:.3f}", spread=f"{spread:.3f}"))
    draws = extra.get("loss_by_draw")
    if draws is not None and draws.shape[1] > 1:
        parts.append(_("by draw of views {draws}").format(draws=", ".join(f"{v:.3f}" for v in draws[row])))
    for name in LISTS:
        score = table.score(name)
        nothing = name == "false_negative" and score[row] <= -1  # no negative is near
        if name != "loss" and np.isfinite(score[row]) and not nothing:
            place = int((score > score[row]).sum()) + 1
            said = percent(score[row]) if name == "mislabeled" else f"{score[row]:.3f}"
            parts.append(
                _("{lists}: {said} (place {place})").format(
                    lists=locale.text(LISTS[name][0]).lower(), said=said, place=place
                )
            )
    return " · ".join(parts)


def around(request: SampleRequest, table: SampleTable, name: str, row: int, pictures: Pictures) -> None:
    """Its nearest samples, with their labels; before them what it is confused with."""
    sample = str(table.columns["id"][row])
    embedding = embedding_of(request)
    if embedding is None or sample not in embedding[1].ids:
        return
    rows = embedding[1]
    line = st.container(horizontal=True, gap="small")
    columns = [line.container(width=NEIGHBOR) for _unused in range(NEAR + 1)]
    if name == "duplicate":
        other = {"train": "test", "test": "train"}[request.split]
        split = other if table.extra["leaked"][row] else request.split
        duplicate = str(table.extra["nearest_duplicate"][row])
        pictures.show(
            columns[0], duplicate, _("nearest, {split}: {duplicate}").format(split=split, duplicate=duplicate), split
        )
    elif name == "false_negative" and (other := str(table.extra["lookalike"][row])):
        pictures.show(columns[0], other, _("pushed away: {label}").format(label=label_of(table, other)), request.split)
    else:
        pictures.show(columns[0], sample, _("itself"), request.split)
    near, similarity = _nearest(rows.content_hash, rows.ids.index(sample), rows)
    for column, j, s in zip(columns[1:], near, similarity, strict=False):
        text = f"{label_of(table, rows.ids[j])} {s:.2f}"
        pictures.show(column, rows.ids[j], text, request.split)
    st.caption(_("Nearest by cosine similarity of the encoder output (h), with their labels."))


@st.cache_resource(max_entries=64, show_spinner=False)
def _nearest(content: str, place: int, _rows: EmbeddingSet) -> tuple[np.ndarray, np.ndarray]:
    return nearest_of(_rows, place, NEAR)


def label_of(table: SampleTable, sample: str) -> str:
    """Its label here; the training set's samples that the run left out have none."""
    at = table.row(sample)
    return _("left out") if at is None else str(table.columns["label"][at])


def _losses_over_knob(table: SampleTable, row: int) -> LossesOverKnob | None:
    """Every sample's loss over the values of the live knob, if the table holds them."""
    losses = table.extra.get("loss_over_knob")
    if losses is None or table.grid is None or len(table.grid) < 2:
        return None
    return LossesOverKnob(table.grid, losses, row)


def explain(request: SampleRequest, table: SampleTable, row: int, pictures: Pictures) -> None:
    """The loss taken apart: shares of pairs, margin, and rank as the knob is dragged."""
    sample = str(table.columns["id"][row])
    try:
        why = cache.sample_why(request, str(request.path()), sample)
    except ValueError as error:
        st.info(format.plain(error))
        return
    pairs = [*((p, True) for p in why.weakest_positives), *((p, False) for p in why.hardest_negatives)]
    kinds = {True: _("positive"), False: _("negative")}
    names = [f"{kinds[positive]} {label_of(table, p.id)} · {p.id}" for p, positive in pairs]
    _show_margin(why.margin)
    if why.kernel is None:
        shares = [(n, round(100 * p.share, 2), p.score) for n, (p, _unused) in zip(names, pairs, strict=True)]
        draw_table(
            [dict(zip((_("pair"), _("share %"), why.score_kind), row, strict=True)) for row in shares], hide_index=True
        )
        return
    about = cache.catalog()["losses"][request.loss]
    view = SampleView(
        cache.digest(request, sample, str(request.path())),
        why.scores,
        why.mask,
        why.kernel,
        [ShownPair(n, p.column, positive) for n, (p, positive) in zip(names, pairs, strict=True)],
        pictures.stack([p.id for p, _unused in pairs], [request.split] * len(pairs)),
        knob_of(about, why.kernel),
        _losses_over_knob(table, row),
    )
    draw_sample_view(view, key=f"why-{cache.digest(sample)}")
    st.caption(
        _(
            "The loss here is that of its first view among all samples; the one above is the "
            "mean over its views and their draws. Weakest positives and hardest negatives first. "
            "The encoder stays as it is: what moves is the loss's view of it, computed in the "
            "browser; ranks between the values at which all losses are known are interpolated."
        )
    )


def _show_margin(margin: float) -> None:
    """How much nearer the nearest positive is than the nearest negative."""
    if np.isfinite(margin):
        st.caption(
            _(
                "Margin {margin}: cosine to its nearest positive less that to its nearest negative. "
                "A negative is nearer."
            ).format(margin=f"{margin:+.3f}")
            if margin < 0
            else _("Margin {margin}: cosine to its nearest positive less that to its nearest negative. ").format(
                margin=f"{margin:+.3f}"
            )
        )


def knob_of(about: dict[str, Any], kernel: dict[str, Any]) -> SliderKnob | None:
    """What is dragged: its label, range and the value that the run has."""
    name = kernel.get("knob")
    if name is None:
        return None
    low, high = (0.02, 2.0) if name == "temperature" else (0.05, 2.0)
    label = _("τ, temperature") if name == "temperature" else _("ε, margin")
    value = float(kernel[name])
    log = bool(about["knobs"][name]["log"])
    return SliderKnob(label, min(low, value), max(high, value), value, log)
