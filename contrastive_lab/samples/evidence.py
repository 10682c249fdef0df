"""The samples shown beside another one on the bench: its nearest rows and their labels, by class."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import streamlit as st

from contrastive_core.samples.sample_table import K, SampleTable
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import nearest_of, nearest_of_label
from contrastive_lab import locale
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.subject import embedding_of

MOST, FEW = 6, 3  # pictures of the first group, and of each further one
NEAREST = {
    "image": (N_("Nearest images, cosine similarity"), N_("Nearest images labeled {classes}")),
    "text": (N_("Nearest texts, cosine similarity"), N_("Nearest texts labeled {classes}")),
    "row": (N_("Nearest rows, cosine similarity"), N_("Nearest rows labeled {classes}, cosine similarity")),
}


class NamedPicture(NamedTuple):
    """A sample shown beside another one, and its description."""

    split: str
    id: str
    text: str
    is_named: bool = True  # the text is shown, and not only read out


Group = tuple[str, list[NamedPicture]]  # under a title
Tally = list[tuple[str, int]]  # labels of near rows, with their numbers
Rows = tuple[np.ndarray, np.ndarray]  # with their cosines
Near = tuple[Rows, dict[str, Rows]]  # the nearest rows, of all and of each class asked for


def evidence_of(findings: Findings, part: np.ndarray) -> dict[int, tuple[list[Group], Tally]]:
    """Return the groups of samples shown beside each row, and the labels of the nearest K where rows have no picture
    or text. For likely wrong labels: the nearest of the suggested class, of the own class and of all; without an
    embedding, the most certain ones of each class."""
    found: dict[int, tuple[list[Group], Tally]] = {}
    one, of_all, of_class = findings.list, *map(locale.text, NEAREST[findings.pictures.kind])
    for request, table, first in findings.parts():
        rows = tuple(r - first for r in part.tolist() if first <= r < first + len(table))
        labels: tuple[tuple[str, ...], ...] = ((),) * len(rows)  # the suggested class and the own one
        if one.key == "mislabeled" and "suggested" in table.extra:
            both = ((str(table.extra["suggested"][row]), str(table.columns["label"][row])) for row in rows)
            labels = tuple(tuple(filter(None, dict.fromkeys(names))) for names in both)
        far = {"train": "test", "test": "train"}.get(request.split, "")
        vectors = None if one.title_beside else embedding_of(request)
        near: list[Near | None] = [None] * len(rows)
        is_bare = findings.pictures.kind == "row"
        if vectors is not None:
            near = _nearest(vectors.content_hash, str(request.path()), rows, labels, vectors, table)
        for row, names, nearest in zip(rows, labels, near, strict=True):
            beside = one.beside(table, row)
            shown = [NamedPicture(far if b.is_far else request.split, b.id, b.text) for b in beside]
            groups, tally = [(_(one.title_beside) or of_all, shown)] if shown else [], Tally()
            if vectors is not None and nearest is not None:
                (index, similarity), by_class = nearest
                for name, some in by_class.items():
                    told = ((vectors.ids[j], f"{s:.2f}" if is_bare else name) for j, s in zip(*some, strict=True))
                    near_label = [NamedPicture(request.split, i, text, is_named=False) for i, text in told]
                    groups.append((of_class.format(classes=name), near_label))
                ids = [vectors.ids[j] for j in index]
                labels_near = [label_of(table, i) for i in ids]
                tally = [*Counter(filter(None, labels_near)).most_common()] if is_bare else []
                mark = "· " if is_bare else ""  # a number may be a label
                told = (
                    (i, f"{label} {mark}{s:.2f}" if label else f"{'' if is_bare else i} {s:.2f}".strip())
                    for i, label, s in zip(ids, labels_near, similarity, strict=True)
                )
                all_near = [*shown, *(NamedPicture(request.split, i, t) for i, t in told)]
                groups = [*(groups if by_class else []), (of_all, all_near)]
            elif not one.title_beside:
                typical = names or (str(table.columns["label"][row]),)  # as of a shipped run
                for name in filter(None, typical):  # the most certain ones of the class
                    others = np.flatnonzero((table.columns["label"] == name) & (np.arange(len(table)) != row))
                    surest = others[np.argsort(table.columns["mislabeled"][others], kind="stable")[:MOST]]
                    if ids := table.columns["id"][surest].tolist():
                        near_label = [NamedPicture(request.split, i, name, is_named=False) for i in ids]
                        groups.append((_("Typical images labeled {classes}").format(classes=name), near_label))
            groups = [(title, some[: FEW if k else MOST]) for k, (title, some) in enumerate(groups)]
            found[first + row] = groups, tally
    return found


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
    near = zip(*nearest_of(_vectors, np.array(known), K), strict=True) if known else ()
    of_all = dict(zip(known, near, strict=True))
    labels_of = [] if _vectors.labels is None else np.unique(_vectors.labels).tolist()
    number_of = {_vectors.class_name(label): label for label in labels_of}
    found: list[Near | None] = []
    for sample, names in zip(samples, labels, strict=True):
        if (place := at.get(sample)) is None:
            found.append(None)
            continue
        classes = {name: number_of[name] for name in names if name in number_of}
        by_class = {name: nearest_of_label(_vectors, place, label, MOST) for name, label in classes.items()}
        found.append((of_all[place], by_class))
    return found


def label_of(table: SampleTable, sample: str) -> str:
    """Return a sample's label; "left out" for training samples that the run excluded."""
    label = table.label_of(sample)
    return _("left out") if label is None else label
