"""Details of one sample below the bench: its rank on every list, and the parts of its loss."""

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.base.cards import LossEntry
from contrastive_core.samples.sample_lists import LISTS, RANDOM
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, percent
from contrastive_lab import cache, format, locale, pictures, query_params
from contrastive_lab.components.sample_view import LossesOverKnob, SampleView, ShownPair, draw_sample_view
from contrastive_lab.components.shared.transport import SliderKnob, thumbnail_sheet
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.evidence import evidence_of, label_of
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.table_picker import Pictures

VIEW = 96  # pixels of a view's picture
WHY = N_("Why this loss")


def show(findings: Findings, row: int) -> None:
    """Draw the details of a row: its rank on every list and, on request, the parts of its loss."""
    request, table, at = findings.of(row)
    if table.towers[0]:
        return
    st.caption(format.plain(f"{findings.id(row)} · {numbers(table, at)}"))
    if query_params.one_or_none(st.pills, _("More details"), (WHY,), name="view", label_visibility="collapsed"):
        explain(request, table, at, findings.pictures)
    if request.run is not None:
        _why_alike(findings, row)


def _why_alike(findings: Findings, row: int) -> None:
    """Draw, on request, why a sample is similar to the first one beside it: for a suspect, the nearest of the
    suggested class."""
    request = findings.of(row)[0]
    groups = [group for _title, group in evidence_of(findings, np.array([row]))[row] if group]
    if groups and pictures.is_likeness_wanted():
        near, own = groups[0][0], findings.own_id(row)
        values = {"space": request.embedding.values, "ids": [own, near.id], "splits": [request.split, near.split]}
        pictures.explain_likeness(values, (own, f"{near.id} ({locale.text(near.text)})"))


def numbers(table: SampleTable, row: int) -> str:
    """Describe a sample's rank on every list, and its loss with the spread."""
    columns, extra, parts = table.columns, table.extra, []
    if np.isfinite(loss := columns["loss"][row]):
        parts.append(_("loss {loss}, rank {rank}").format(loss=f"{loss:.3f}", rank=int(columns["rank"][row])))
    if "loss_in_batches" in extra and np.isfinite(extra["loss_in_batches"][row]):
        mean, spread = (f"{extra[f'loss_in_batches{k}'][row]:.3f}" for k in ("", "_spread"))
        parts.append(_("in training's batches {mean} ± {spread}").format(mean=mean, spread=spread))
    draws = extra.get("loss_by_draw")
    if draws is not None and draws.shape[1] > 1:
        parts.append(_("for each draw of views: {draws}").format(draws=", ".join(f"{v:.3f}" for v in draws[row])))
    for name, one in LISTS.items():
        score = table.score(one.column)
        nothing = name in (RANDOM, "loss") or (name == "false_negative" and score[row] <= -1)  # no negative is near
        if np.isfinite(score[row]) and not nothing:
            said = percent(score[row]) if name == "mislabeled" else f"{score[row]:.3f}"
            place = int((score > score[row]).sum()) + 1
            text, total = _("{score} {value}, rank {rank} of {total}"), int(np.isfinite(score).sum())
            rank = {"rank": f"{place:,}", "total": f"{total:,}"}
            parts.append(text.format(score=_(one.score), value=said, **rank))
    return " · ".join(parts)


def explain(request: SampleRequest, table: SampleTable, row: int, pictures: Pictures) -> None:
    """Draw the parts of the loss: shares of pairs, margin, and rank as the knob is dragged."""
    sample = str(table.columns["id"][row])
    try:
        why = cache.sample_why(request, str(request.path()), sample)
    except ValueError as error:
        st.info(format.plain(error))
        return
    pairs = [*((p, True) for p in why.weakest_positives), *((p, False) for p in why.hardest_negatives)]
    kinds = (_("negative"), _("positive"))
    names = [f"{kinds[positive]} {label_of(table, p.id)} · {p.id}" for p, positive in pairs]
    margin = _("Margin {margin}: cosine to the nearest positive minus that to the nearest negative. ")
    if why.margin < 0:
        margin = _(
            "Margin {margin}: cosine to the nearest positive minus that to the nearest negative. A negative is nearer."
        )
    if np.isfinite(why.margin):
        st.caption(margin.format(margin=f"{why.margin:+.3f}"))
    if why.views is not None:
        line, captions = (
            st.container(horizontal=True, gap="small"),
            (_("view 1, the anchor"), _("view 2, its positive")),
        )
        for number, caption in enumerate(captions):
            line.container(width=VIEW).image(cache.picture(why.views, number), caption, width="stretch")
    if why.kernel is None:
        pair, share, named = _("pair"), _("share %"), zip(names, pairs, strict=True)
        rows = [{pair: n, share: round(100 * p.share, 2), why.score_kind: p.score} for n, (p, _positive) in named]
        draw_table(rows, hide_index=True)
        return
    losses = table.extra.get("loss_over_knob")  # of every sample, by the live knob
    view = SampleView(
        content=cache.digest(request, sample, str(request.path())),
        scores=why.scores,
        mask=why.mask,
        kernel=why.kernel,
        pairs=[ShownPair(n, p.column, positive) for n, (p, positive) in zip(names, pairs, strict=True)],
        thumbnails=thumbnail_sheet(pictures.stack([p.id for p, _positive in pairs])),
        knob=knob_of(cache.catalog()["losses"][request.loss], why.kernel),
        over_knob=None if losses is None or len(table.grid) < 2 else LossesOverKnob(table.grid.tolist(), losses, row),
    )
    draw_sample_view(view, key=f"why-{cache.digest(sample)}")
    text = _(
        "This is the loss of its first view among all samples. The value above is the mean over its views and their "
        "draws. Weakest positives and hardest negatives come first. The encoder is frozen: the slider only changes "
        "the loss, computed in the browser. Ranks are interpolated between the settings at which all losses are "
        "known."
    )
    st.caption(text)


def knob_of(about: LossEntry, kernel: dict[str, Any]) -> SliderKnob | None:
    """Return the slider of the loss: its label, range and the run's value; None without a knob."""
    if (name := kernel.get("knob")) is None:
        return None
    low, label = (0.02, _("τ, temperature")) if name == "temperature" else (0.05, _("ε, margin"))
    value = float(kernel[name])
    return SliderKnob(label, min(low, value), max(2.0, value), value, bool(about["knobs"][name]["log"]))
