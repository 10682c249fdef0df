"""The bench of the Samples page: what it shows of the list, and what is decided on it."""

from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.engine.vectors import nearest_of, nearest_of_label
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_request import SampleRequest
from contrastive_core.records.sample_table import SampleTable, percent, reason
from contrastive_lab import cache
from contrastive_lab.components.bench import Bench, BenchItem, ShownNeighbor, draw_bench, reported, sheets
from contrastive_lab.components.shared.thumbnails import ThumbnailSheet
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.current_sample import RANDOM, follow_list, look_at, moves
from contrastive_lab.samples.findings import Findings, window
from contrastive_lab.samples.table_picker import Pictures, embedding_of

KEY = "samples-bench"
ACK = "samples-kept"  # of the session: the last event that was kept
LIKELY = 3  # other classes that have a key
STEP = 24  # samples by which the stretch that the browser has moves on
NEAR = 6  # pictures beside a suspect
VOTED = ("min_loss_class", "knn_prediction", "probe_prediction", "discriminant_prediction")
NEAREST = {
    "image": (N_("Nearest images, cosine similarity"), N_("Nearest images labeled {classes}")),
    "text": (N_("Nearest texts, cosine similarity"), N_("Nearest texts labeled {classes}")),
    "row": (N_("Nearest rows, cosine similarity"), N_("Nearest rows labeled {classes}")),
}


class Nearest(NamedTuple):
    """Rows of the embedding and their cosines; of a `label` alone, and then without cosines."""

    label: int | None
    rows: np.ndarray
    similarity: np.ndarray


class NamedPicture(NamedTuple):
    """A sample that stands beside another one, and what is said of it."""

    split: str
    id: str
    text: str


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
    follow_list(cache.digest(findings.requests))
    if report.get("at") and report.get("go") == moves():
        look_at(str(report["at"]))


def _keep(findings: Findings, event: dict[str, Any], name: str) -> None:
    """One decision, or its undo. Reports come from the browser: what they name may be gone."""
    what, label = event["what"], str(event.get("label") or "")
    if what == "undo":
        sample_annotations.undo([r.marked for r in findings.requests], *window(), name)
        return
    row = findings.table.row(str(event.get("id")))
    if row is None or what not in sample_annotations.CHOICES or (what == "relabel" and not label):
        return
    about = {**findings.about(row), "by": window()[0], "event": name}
    marked = findings.of(row)[0].marked
    sample_annotations.add(marked, findings.own_id(row), what, label if what == "relabel" else None, **about)


def show(findings: Findings, name: str, rows: np.ndarray, row: int) -> None:
    """The bench with the stretch of the list around the sample at hand."""
    place = next(iter(np.flatnonzero(rows == row).tolist()), -1)
    start = max(0, place // STEP * STEP - STEP // 2) if place >= 0 else -1
    part = rows[start : start + 3 * STEP] if place >= 0 else np.array([row])
    beside: dict[tuple[str, str], int] = {}  # places of the pictures at the right
    nearest = _nearest_of(findings, name, part)
    items = [_item(findings, name, r, nearest.get(r), beside) for r in part.tolist()]
    content = cache.digest(findings.requests, [findings.id(r) for r in part], list(beside))
    table, decided_on = findings.table, cache.digest([str(r.marked) for r in findings.requests])
    classes = findings.pictures.classes or table.classes or sorted(table.labels, key=lambda one: (len(one), one))
    bench = Bench(
        *(items, start, len(rows), place, decided_on),
        moves(),
        st.session_state.get("samples-many", 0),
        bool(findings.marked),
        classes,
        st.session_state.get(ACK, {}),
        *_sheets(content, findings, part, beside),
        so_far=bool(findings.missing),
    )
    draw_bench(bench, KEY)


def _item(
    findings: Findings, name: str, row: int, nearest: Nearest | None, beside: dict[tuple[str, str], int]
) -> BenchItem:
    """A sample in the words of the bench; the pictures at its right join those that are `beside`."""
    table, (request, own, at) = findings.table, findings.of(row)
    title, some = _beside(findings.pictures, request, own, name, at, nearest)
    near = [_place(findings.pictures, one, beside) for one in some]
    text = findings.pictures.text(str(own.columns["id"][at]), request.split)
    mark = findings.marked.get(findings.id(row), {})
    given = str(table.columns["label"][row])
    suggested = str(table.extra["suggested"][row]) if "suggested" in table.extra else ""
    split = request.split if len(findings.requests) > 1 else ""
    said = (_sentence(table, name, row, given, suggested), reason(own, name, at), title)
    decided, likely = (mark.get("what", ""), mark.get("label") or ""), _likely(table, row, given, suggested)
    keep_first = bool(given) and not is_probably_wrong(table, row)
    return BenchItem(findings.id(row), split, given, suggested, *said, near, *decided, likely, keep_first, text)


def is_probably_wrong(table: SampleTable, row: int) -> bool:
    """Whether another class is likelier than the label."""
    return "suggested" in table.extra and bool(table.columns["mislabeled"][row] > 0.5)


def _sentence(table: SampleTable, name: str, row: int, given: str, suggested: str) -> str:
    if not given:
        return _("It has no label.")
    if name == RANDOM:
        return _("Random row, not a suspect. Labeled {given}: is that right?").format(given=given)
    wrong = table.columns["mislabeled"][row]
    if is_probably_wrong(table, row):
        template = _("Labeled {given}, more likely {suggested}: the label is wrong with probability {wrong}.")
    elif name == "mislabeled" and np.isfinite(wrong):
        template = _("Labeled {given}, probably right: the label is wrong with probability {wrong}.")
    else:
        template = _("Labeled {given}.")
    return template.format(given=given, suggested=suggested, wrong=percent(wrong))


def _likely(table: SampleTable, row: int, given: str, suggested: str) -> list[str]:
    """The likeliest classes besides the label; of tables without them those that the voters name."""
    if not suggested:
        return []
    if "likely" in table.extra:
        ranked = table.extra["likely"][row].tolist()
    else:
        voted = [str(table.extra[name][row]) for name in VOTED if name in table.extra]
        ranked = sorted(voted, key=lambda name: -voted.count(name))
    return [name for name in dict.fromkeys([suggested, *ranked]) if name != given][:LIKELY]


def _nearest_of(findings: Findings, name: str, part: np.ndarray) -> dict[int, Nearest]:
    """The nearest of all rows of a stretch, in one search; for likely wrong labels of the suggested class."""
    found: dict[int, Nearest] = {}
    for request, table, first in findings.parts():
        rows = [r - first for r in part.tolist() if first <= r < first + len(table)]
        if rows and (vectors := embedding_of(request)) is not None:
            places = {r: place for r in rows if (place := _place_of(vectors, table, r)) is not None}
            of_suggested = name == "mislabeled" and "suggested" in table.extra
            names = [str(table.extra["suggested"][r]) if of_suggested else None for r in places]
            labels = tuple(vectors.classes.index(n) if n in vectors.classes else None for n in names)
            near = _nearest(vectors.content_hash, tuple(places.values()), labels, vectors)
            found |= {first + r: one for r, one in zip(places, near, strict=True)}
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


def _place_of(vectors: EmbeddingSet, table: SampleTable, at: int) -> int | None:
    """Where a sample stands in the embedding: mostly where it does in its table."""
    sample = str(table.columns["id"][at])
    if at < len(vectors) and vectors.ids[at] == sample:
        return at
    return _places(vectors.content_hash, vectors.ids).get(sample)


@st.cache_resource(max_entries=8, show_spinner=False)
def _places(content: str, _ids: tuple[str, ...]) -> dict[str, int]:
    return {name: place for place, name in enumerate(_ids)}


def _beside(
    pictures: Pictures, request: SampleRequest, table: SampleTable, name: str, at: int, nearest: Nearest | None
) -> tuple[str, list[NamedPicture]]:
    """Title and pictures at the right: for likely wrong labels of the suggested class, else of all."""
    vectors = embedding_of(request)
    if vectors is None or nearest is None:
        return _typical(request, table, name, at)
    of_all, of_class = NEAREST[pictures.kind]
    ids, split = [vectors.ids[j] for j in nearest.rows], request.split
    labels = [label_of(table, i) or i for i in ids]
    if nearest.label is not None:
        title = _(of_class).format(classes=vectors.classes[nearest.label])
        return title, [NamedPicture(split, *one) for one in zip(ids, labels, strict=True)]
    first = [one] if (one := confused_with(request, table, name, at)) else []
    texts = [f"{label} {s:.2f}" for label, s in zip(labels, nearest.similarity, strict=True)]
    near = [NamedPicture(split, *one) for one in zip(ids, texts, strict=True)]
    return _(of_all), [*first, *near][:NEAR]


def _typical(request: SampleRequest, table: SampleTable, name: str, at: int) -> tuple[str, list[NamedPicture]]:
    """Without the rows of an embedding (a shipped run brings those of its test images): the surest of a class."""
    suggested = name == "mislabeled" and "suggested" in table.extra
    label = str((table.extra["suggested"] if suggested else table.columns["label"])[at])
    others = np.flatnonzero((table.columns["label"] == label) & (np.arange(len(table)) != at))
    surest = others[np.argsort(table.columns["mislabeled"][others], kind="stable")[:NEAR]]
    if not label or not len(surest):
        return "", []
    near = [NamedPicture(request.split, str(table.columns["id"][row]), label) for row in surest]
    return _("Typical images labeled {classes}").format(classes=label), near


def confused_with(request: SampleRequest, table: SampleTable, name: str, at: int) -> NamedPicture | None:
    """What the list says that a sample is taken for: a duplicate, or what it is pushed away from."""
    if name == "duplicate":
        far = {"train": "test", "test": "train"}.get(request.split, "")
        split = far if table.extra["leaked"][at] else request.split
        text = _("nearest, {split}").format(split=split) if split else _("nearest")
        return NamedPicture(split, str(table.extra["nearest_duplicate"][at]), text)
    if name == "false_negative" and (other := str(table.extra["lookalike"][at])):
        text = _("pushed away: {label}").format(label=label_of(table, other) or other)
        return NamedPicture(request.split, other, text)
    return None


def label_of(table: SampleTable, sample: str) -> str:
    """Its label here; the training set's samples that the run left out have none."""
    at = table.row(sample)
    return _("left out") if at is None else str(table.columns["label"][at])


def _place(pictures: Pictures, one: NamedPicture, beside: dict[tuple[str, str], int]) -> ShownNeighbor:
    """Where a picture stands among all of them, which it joins."""
    if pictures.get(one.id, one.split) is None:
        return ShownNeighbor(-1, f"{one.id} · {one.text}", pictures.text(one.id, one.split))
    return ShownNeighbor(beside.setdefault((one.split, one.id), len(beside)), one.text)


@st.cache_resource(max_entries=8, show_spinner=False)
def _sheets(
    content: str, _findings: Findings, _part: np.ndarray, _beside: dict[tuple[str, str], int]
) -> tuple[ThumbnailSheet, ThumbnailSheet]:
    """The pictures of a stretch, and of what stands beside it, kept by what they show."""
    near = _findings.pictures.stack([i for _unused, i in _beside], [split for split, _unused in _beside])
    return sheets(_findings.stack(_part), near)
