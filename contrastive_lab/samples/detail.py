"""One sample: the samples shown beside it as evidence, its rank on every list, and the parts of its loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st

from contrastive_core.base.cards import Kernel, LossEntry
from contrastive_core.samples.sample_lists import LISTS, RANDOM, SampleList
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, percent
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.nearest import nearest_of, nearest_of_label
from contrastive_lab import cache, format, locale, pictures, query_params
from contrastive_lab.components.sample_view import LossesOverKnob, SampleView, ShownPair, draw_sample_view
from contrastive_lab.components.shared.transport import SliderKnob, thumbnail_sheet
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.subject import Pictures, embedding_of

MOST, FEW = 6, 3  # pictures of the first group, and of each further one
NEAREST = {
    "image": (N_("Nearest images, cosine similarity"), N_("Nearest images labeled {classes}")),
    "text": (N_("Nearest texts, cosine similarity"), N_("Nearest texts labeled {classes}")),
    "row": (N_("Nearest rows, cosine similarity"), N_("Nearest rows labeled {classes}")),
}
VIEW = 96  # pixels of a view's picture
WHY = N_("Why this loss")


def show(findings: Findings, row: int) -> None:
    """Draw the details of a row: its rank on every list and, on request, the parts of its loss, and why the first
    sample beside it is similar."""
    request, table, at = findings.of(row)
    if table.towers[0]:
        return
    st.caption(format.plain(f"{findings.id(row)} · {numbers(table, at)}"))
    if query_params.one_or_none(st.pills, _("More details"), (WHY,), name="view", label_visibility="collapsed"):
        explain(request, table, at, findings.pictures)
    if request.run is None:
        return
    groups = [group for _title, group in evidence_of(findings, np.array([row]))[row] if group]
    if groups and pictures.is_likeness_wanted():
        near, own = groups[0][0], findings.own_id(row)  # of a suspect, the nearest of the suggested class
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


def explain(request: SampleRequest, table: SampleTable, row: int, shown: Pictures) -> None:
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
        thumbnails=thumbnail_sheet(shown.stack([p.id for p, _positive in pairs])),
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


def knob_of(about: LossEntry, kernel: Kernel) -> SliderKnob | None:
    """Return the slider of the loss: its label, range and the run's value; None without a knob."""
    if (name := kernel.get("knob")) is None:
        return None
    low, label = (0.02, _("τ, temperature")) if name == "temperature" else (0.05, _("ε, margin"))
    value = float(kernel["temperature"] if name == "temperature" else kernel["margin"])
    return SliderKnob(label, min(low, value), max(2.0, value), value, bool(about["knobs"][name]["log"]))


# --- evidence beside a sample ---


class NamedPicture(NamedTuple):
    """A sample shown beside another one, and its description."""

    split: str
    id: str
    text: str
    is_named: bool = True  # the text is shown, and not only read out


Group = tuple[str, list[NamedPicture]]  # under a title
Near = tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]  # rows, cosines, and the rows of each class asked for


def evidence_of(findings: Findings, part: np.ndarray) -> dict[int, list[Group]]:
    """Return the groups of samples shown beside each row. For likely wrong labels: the nearest of the suggested class,
    of the own class and of all; without an embedding, the most certain ones of each class."""
    found: dict[int, list[Group]] = {}
    one, of_all, of_class = findings.list, *map(locale.text, NEAREST[findings.pictures.kind])
    for request, table, first in findings.parts():
        rows = tuple(r - first for r in part.tolist() if first <= r < first + len(table))
        labels = tuple(_classes(one, table, row) for row in rows)
        vectors = None if one.title_beside else embedding_of(request)
        near: list[Near | None] = [None] * len(rows)
        if vectors is not None:
            near = _nearest(vectors.content_hash, str(request.path()), rows, labels, vectors, table)
        for row, names, nearest in zip(rows, labels, near, strict=True):
            shown = shown_beside(one, request, table, row)
            groups = [(_(one.title_beside) or of_all, shown)] if shown else []
            if vectors is not None and nearest is not None:
                index, similarity, by_class = nearest
                for name, some in by_class.items():
                    ids = [vectors.ids[j] for j in some]
                    near_label = [NamedPicture(request.split, i, name, is_named=False) for i in ids]
                    groups.append((of_class.format(classes=name), near_label))
                ids = [vectors.ids[j] for j in index]
                told = [f"{label_of(table, i) or i} {s:.2f}" for i, s in zip(ids, similarity, strict=True)]
                all_near = [*shown, *(NamedPicture(request.split, i, t) for i, t in zip(ids, told, strict=True))]
                groups = [*(groups if by_class else []), (of_all, all_near)]
            elif not one.title_beside:
                typical = names or (str(table.columns["label"][row]),)  # as of a shipped run
                for name in filter(None, typical):  # the most certain ones of the class
                    others = np.flatnonzero((table.columns["label"] == name) & (np.arange(len(table)) != row))
                    surest = others[np.argsort(table.columns["mislabeled"][others], kind="stable")[:MOST]]
                    if ids := table.columns["id"][surest].tolist():
                        near_label = [NamedPicture(request.split, i, name, is_named=False) for i in ids]
                        groups.append((_("Typical images labeled {classes}").format(classes=name), near_label))
            found[first + row] = [(title, some[: FEW if k else MOST]) for k, (title, some) in enumerate(groups)]
    return found


def _classes(one: SampleList, table: SampleTable, row: int) -> tuple[str, ...]:
    """Return the suggested class and the own class if the list doubts the label."""
    if one.key != "mislabeled" or "suggested" not in table.extra:
        return ()
    both = (str(table.extra["suggested"][row]), str(table.columns["label"][row]))
    return tuple(name for name in dict.fromkeys(both) if name)


@st.cache_resource(max_entries=8, show_spinner=False)
def _nearest(
    content: str,
    path: str,
    rows: tuple[int, ...],
    labels: tuple[tuple[str, ...], ...],
    _vectors: EmbeddingSet,
    _table: SampleTable,
) -> list[Near | None]:
    """Return the nearest rows of an embedding for some rows of a table; None for those not in the embedding."""
    samples = [str(_table.columns["id"][row]) for row in rows]
    at: dict[str, int] = dict(zip(samples, rows, strict=True))
    if any(row >= len(_vectors) or _vectors.ids[row] != sample for sample, row in at.items()):
        at = {name: place for place, name in enumerate(_vectors.ids)}
    known = [at[sample] for sample in samples if sample in at]
    near = zip(*nearest_of(_vectors, np.array(known), MOST), strict=True) if known else ()
    of_all = dict(zip(known, near, strict=True))
    found: list[Near | None] = []
    for sample, names in zip(samples, labels, strict=True):
        if (place := at.get(sample)) is None:
            found.append(None)
            continue
        classes = {name: _vectors.classes.index(name) for name in names if name in _vectors.classes}
        by_class = {name: nearest_of_label(_vectors, place, label, MOST) for name, label in classes.items()}
        found.append((*of_all[place], by_class))
    return found


def shown_beside(one: SampleList, request: SampleRequest, table: SampleTable, at: int) -> list[NamedPicture]:
    """Return the images that the list shows beside a row."""
    far = {"train": "test", "test": "train"}.get(request.split, "")
    return [NamedPicture(far if b.is_far else request.split, b.id, b.text) for b in one.beside(table, at)]


def label_of(table: SampleTable, sample: str) -> str:
    """Return a sample's label; "left out" for training samples that the run excluded."""
    label = table.label_of(sample)
    return _("left out") if label is None else label
