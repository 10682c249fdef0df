"""Samples shown beside another one: evidence for its possible classes, and the nearest of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st

from contrastive_core.samples.sample_lists import SampleList
from contrastive_core.samples.sample_table import SampleRequest, SampleTable
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.nearest import nearest_of, nearest_of_label
from contrastive_lab import locale
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.table_picker import embedding_of

MOST, FEW = 6, 3  # pictures of the first group, and of each further one
NEAREST = {
    "image": (N_("Nearest images, cosine similarity"), N_("Nearest images labeled {classes}")),
    "text": (N_("Nearest texts, cosine similarity"), N_("Nearest texts labeled {classes}")),
    "row": (N_("Nearest rows, cosine similarity"), N_("Nearest rows labeled {classes}")),
}


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
                typical = names or (str(table.columns["label"][row]),)
                groups += [group for name in typical if (group := _typical(request, table, name, row))[1]]
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


def _typical(request: SampleRequest, table: SampleTable, label: str, at: int) -> Group:
    """Return the most certain samples of a class, if the embedding is missing (shipped runs have only test rows)."""
    others = np.flatnonzero((table.columns["label"] == label) & (np.arange(len(table)) != at))
    surest = others[np.argsort(table.columns["mislabeled"][others], kind="stable")[:MOST]] if label else others[:0]
    near = [NamedPicture(request.split, str(table.columns["id"][row]), label, is_named=False) for row in surest]
    return _("Typical images labeled {classes}").format(classes=label), near


def shown_beside(one: SampleList, request: SampleRequest, table: SampleTable, at: int) -> list[NamedPicture]:
    """Return the images that the list shows beside a row."""
    far = {"train": "test", "test": "train"}.get(request.split, "")
    return [NamedPicture(far if b.is_far else request.split, b.id, b.text) for b in one.beside(table, at)]


def label_of(table: SampleTable, sample: str) -> str:
    """Return a sample's label; "left out" for training samples that the run excluded."""
    label = table.label_of(sample)
    return _("left out") if label is None else label
