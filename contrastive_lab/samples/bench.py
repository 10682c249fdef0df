"""The bench of the Samples page: what it shows of the list, and what is decided on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.engine.vectors import nearest_of, nearest_of_label
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_table import SampleTable, percent, reason
from contrastive_lab import cache
from contrastive_lab.components.bench import Bench, BenchItem, ShownNeighbor, draw_bench, reported, sheets
from contrastive_lab.locale import _
from contrastive_lab.samples.current_sample import look_at, moves
from contrastive_lab.samples.findings import Findings, window
from contrastive_lab.samples.table_picker import Pictures, embedding_of

KEY = "samples-bench"
ACK = "samples-kept"  # of the session: the last event that was kept
STEP = 24  # samples by which the stretch that the browser has moves on
NEAR = 6  # pictures beside a suspect


class Nearest(NamedTuple):
    """Rows of the embedding and their cosines; of a `label` alone, and then without cosines."""

    label: int | None
    rows: np.ndarray
    similarity: np.ndarray


def hear(findings: Findings) -> None:
    """Keep what the bench reported, in order; what was kept before is passed over."""
    report = reported(KEY)
    nonce, kept = report.get("nonce"), st.session_state.get(ACK, {})
    seq = kept.get("seq", 0) if kept.get("nonce") == nonce else 0
    for event in report.get("events", ()):
        if event["seq"] > seq:
            _keep(findings, event, f"{nonce}:{event['seq']}")
            seq = event["seq"]
    if nonce and report.get("events"):
        st.session_state[ACK] = {"nonce": nonce, "seq": seq}
    if report.get("at") and report.get("go") == moves():
        look_at(str(report["at"]))


def _keep(findings: Findings, event: dict[str, Any], name: str) -> None:
    """One decision, or its undo. Reports come from the browser: what they name may be gone."""
    if event["what"] == "undo":
        findings.undo(name)
        return
    row = findings.table.row(str(event.get("id")))
    if row is None or event["what"] not in sample_annotations.CHOICES:
        return
    request = findings.of(row)[0]
    label = str(event.get("label") or "") if event["what"] == "relabel" else None
    if label == "":
        return
    about = {**findings.about(row), "by": window()[0], "event": name}
    sample_annotations.add(request.marked, findings.own_id(row), event["what"], label, **about)


def show(findings: Findings, name: str, rows: np.ndarray, row: int, pictures: Pictures) -> None:
    """The bench with the stretch of the list around the sample at hand."""
    place = next(iter(np.flatnonzero(rows == row)), None)
    if place is None:
        start, part = 0, np.array([row])
    else:
        start = max(0, int(place) // STEP * STEP - STEP // 2)
        part = rows[start : start + 3 * STEP]
    items: list[BenchItem] = []
    beside: list[tuple[str, str]] = []
    table, marked = findings.table, findings.marked
    nearest = _nearest_of(findings, name, part)
    for r in part.tolist():
        title, near = _beside(findings, name, r, nearest.get(r))
        places = [_place(pictures, one, beside) for one in near]
        mark = marked.get(str(table.columns["id"][r]), {})
        items.append(_item(findings, name, r, title, places, mark))
    ids, splits = (list(map(str, table.extra[k][part])) for k in ("own_id", "split"))
    content = cache.digest(findings.requests, ids, splits, beside)
    large, small = _sheets(content, pictures, ids, splits, beside)
    bench = Bench(
        items,
        start if place is not None else -1,
        len(rows),
        -1 if place is None else int(place),
        cache.digest([str(r.marked) for r in findings.requests]),
        moves(),
        st.session_state.get("samples-many", 0),
        bool(marked),
        pictures.classes or table.classes or _labels(table),
        st.session_state.get(ACK, {}),
        large,
        small,
        bool(findings.missing),
    )
    draw_bench(bench, KEY, lambda: None)


def _labels(table: SampleTable) -> list[str]:
    """The labels that samples have, where they are numbers without names, in their order."""
    return sorted(table.labels, key=lambda label: (len(label), label))


def _item(
    findings: Findings, name: str, row: int, title: str, near: list[ShownNeighbor], mark: dict[str, Any]
) -> BenchItem:
    """A sample in the words of the bench."""
    table, (_unused, own, at) = findings.table, findings.of(row)
    given = str(table.columns["label"][row])
    suggested = str(table.extra["suggested"][row]) if "suggested" in table.extra else ""
    return BenchItem(
        str(table.columns["id"][row]),
        str(table.extra["split"][row]) if len(findings.requests) > 1 else "",
        given,
        suggested,
        _sentence(table, name, row, given, suggested),
        reason(own, name, at),
        title,
        near,
        mark.get("what", ""),
        mark.get("label") or "",
    )


def _sentence(table: SampleTable, name: str, row: int, given: str, suggested: str) -> str:
    if not given:
        return _("It has no label.")
    wrong = table.columns["mislabeled"][row]
    if not suggested or not np.isfinite(wrong):
        return _("Labeled {given}.").format(given=given)
    if name != "mislabeled" and wrong <= 0.5:
        return _("Labeled {given}, which is wrong with {wrong}.").format(given=given, wrong=percent(wrong))
    return _("Labeled {given}. Rather {suggested}: the label is wrong with {wrong}.").format(
        given=given, suggested=suggested, wrong=percent(wrong)
    )


def _nearest_of(findings: Findings, name: str, part: np.ndarray) -> dict[int, Nearest]:
    """The nearest of a stretch's rows: of likely wrong labels those of the suggested class, else of
    all. They are found together, and once: among a million rows one search takes as long as all."""
    found: dict[int, Nearest] = {}
    first = 0
    for request, table in zip(findings.requests, findings.tables, strict=True):
        rows = [r - first for r in part.tolist() if first <= r < first + len(table)]
        if rows and (embedding := embedding_of(request)) is not None:
            vectors = embedding[1]
            places = {r: at for r in rows if (at := _place_of(vectors, table, r)) is not None}
            labels = tuple(_suggested(vectors, table, name, r) for r in places)
            near = _nearest(vectors.content_hash, tuple(places.values()), labels, vectors)
            found |= dict(zip((first + r for r in places), near, strict=True))
        first += len(table)
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
def _nearest(
    content: str, places: tuple[int, ...], labels: tuple[int | None, ...], _rows: EmbeddingSet
) -> list[Nearest]:
    """The nearest of each place, of a label where one is given."""
    alike = [p for p, label in zip(places, labels, strict=True) if label is None]
    of_all = iter(zip(*nearest_of(_rows, np.array(alike), NEAR), strict=True) if alike else ())
    return [
        Nearest(label, *(next(of_all) if label is None else (nearest_of_label(_rows, place, label, NEAR), np.zeros(0))))
        for place, label in zip(places, labels, strict=True)
    ]


def _suggested(vectors: EmbeddingSet, table: SampleTable, name: str, at: int) -> int | None:
    """The class whose nearest are shown: the suggested one, of likely wrong labels."""
    if name != "mislabeled" or "suggested" not in table.extra:
        return None
    label = str(table.extra["suggested"][at])
    return vectors.classes.index(label) if label in vectors.classes else None


def _place_of(vectors: EmbeddingSet, table: SampleTable, at: int) -> int | None:
    """Where a sample stands in the embedding: mostly where it does in its table."""
    sample = str(table.columns["id"][at])
    if at < len(vectors) and vectors.ids[at] == sample:
        return at
    return _places(vectors.content_hash, vectors.ids).get(sample)


def _beside(findings: Findings, name: str, row: int, nearest: Nearest | None) -> tuple[str, list[tuple[str, str, str]]]:
    """What stands at the right: a title, and (split, id, text) of each: of likely wrong labels the
    nearest of the suggested class, else what the list is about and the nearest of all."""
    request, table, at = findings.of(row)
    embedding = embedding_of(request)
    if embedding is None or nearest is None:
        return "", []
    ids = embedding[1].ids
    if nearest.label is not None:
        some = [(request.split, ids[j], _label(table, ids[j])) for j in nearest.rows]
        return _("Nearest images labeled {classes}").format(classes=embedding[1].classes[nearest.label]), some
    first = []
    if name == "duplicate":
        far = {"train": "test", "test": "train"}.get(request.split, "")
        split = far if table.extra["leaked"][at] else request.split
        duplicate = str(table.extra["nearest_duplicate"][at])
        first = [(split, duplicate, _("nearest, {split}").format(split=split) if split else "nearest")]
    elif name == "false_negative" and (other := str(table.extra["lookalike"][at])):
        first = [(request.split, other, _("pushed away: {label}").format(label=_label(table, other)))]
    near, similarity = (v[: NEAR - len(first)] for v in (nearest.rows, nearest.similarity))
    some = [(request.split, ids[j], f"{_label(table, ids[j])} {s:.2f}") for j, s in zip(near, similarity, strict=True)]
    return _("Nearest images, cosine similarity"), [*first, *some]


@st.cache_resource(max_entries=8, show_spinner=False)
def _places(content: str, _ids: tuple[str, ...]) -> dict[str, int]:
    return {name: place for place, name in enumerate(_ids)}


def _label(table: SampleTable, sample: str) -> str:
    """Its label here; the training set's samples that the run left out have none."""
    at = table.row(sample)
    return _("left out") if at is None else str(table.columns["label"][at]) or sample


def _place(pictures: Pictures, one: tuple[str, str, str], beside: list[tuple[str, str]]) -> ShownNeighbor:
    """Where a picture stands among all of them, which it joins."""
    split, sample, text = one
    if pictures.get(sample, split) is None:
        return ShownNeighbor(-1, f"{sample} · {text}")
    if (split, sample) not in beside:
        beside.append((split, sample))
    return ShownNeighbor(beside.index((split, sample)), text)


@st.cache_resource(max_entries=8, show_spinner=False)
def _sheets(
    content: str, _pictures: Pictures, _ids: list[str], _splits: list[str], _beside: list[tuple[str, str]]
) -> Any:
    """The pictures of a stretch, and of what stands beside it, kept by what they show."""
    near = _pictures.stack([i for _unused, i in _beside], [s for s, _unused in _beside]) if _beside else None
    return sheets(_pictures.stack(_ids, _splits), near)
