"""The tables that the page lists together: one for each split, joined, with their decisions."""

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from secrets import token_hex

import numpy as np
import streamlit as st

from contrastive_core.base.memory import write_npz
from contrastive_core.base.storage import data_home
from contrastive_core.data.image_decoding import ENDINGS
from contrastive_core.runs.run import Run
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples import label_audit
from contrastive_core.samples.annotations import Mark
from contrastive_core.samples.label_audit import LabelAudit
from contrastive_core.samples.sample_lists import LISTS, SampleList
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, decimals, merged_table, read_arrays
from contrastive_core.spaces.space import nearest_of
from contrastive_lab import cache, format, query_params, state
from contrastive_lab.locale import _
from contrastive_lab.samples.subject import AT, Pictures, embedding_of, go_to, table_or_wait

PAGE = 30  # samples of the grid, and of a list of neighbors
PICTURE = "samples-picture"  # of the session: how many own pictures were looked for
KEPT = 50  # own pictures and selections that an address can name
WINDOW = "samples-window"  # of the session: its name in what it decides, and since when it is open


@dataclass(frozen=True, eq=False)
class Findings:
    """Sample tables listed together: their requests and the computed tables."""

    requests: tuple[SampleRequest, ...]
    tables: tuple[SampleTable, ...]
    list: SampleList = LISTS["mislabeled"]  # that is decided on

    @staticmethod
    def ready(requests: Sequence[SampleRequest]) -> Findings | None:
        """Return findings if all tables are computed; else compute the first missing one and draw its progress."""
        tables: list[SampleTable] = []
        for request in requests:
            if (table := table_or_wait(request)) is None:
                return None
            tables.append(table)
        return Findings(tuple(requests), tuple(tables))

    @cached_property
    def table(self) -> SampleTable:
        """All rows as one table, cached by the paths of the tables."""
        by_split = {r.split: table for r, table in zip(self.requests, self.tables, strict=True)}
        joined = _joined(tuple(str(r.path()) for r in self.requests), by_split)
        return joined.rescored("mislabeled", np.concatenate([t.columns["mislabeled"] for t in self.tables]))

    @cached_property
    def pictures(self) -> Pictures:
        return Pictures(self.requests[0])

    def parts(self) -> Iterator[tuple[SampleRequest, SampleTable, int]]:
        """Yield the request and table of each split, and the index of its first row in the list."""
        first = 0
        for request, table in zip(self.requests, self.tables, strict=True):
            yield request, table, first
            first += len(table)

    def of(self, row: int) -> tuple[SampleRequest, SampleTable, int]:
        """Return the request and table of a row's split, and its row number there."""
        request, table, first = [part for part in self.parts() if part[2] <= row][-1]
        return request, table, row - first

    def id(self, row: int) -> str:
        return str(self.table.columns["id"][row])

    def own_id(self, row: int) -> str:
        return str(self.table.extra["own_id"][row])

    def stack(self, rows: np.ndarray) -> np.ndarray | None:
        """Return images (n, c, h, w) of rows; None if one has none."""
        return self.pictures.stack(*(list(map(str, self.table.extra[k][rows])) for k in ("own_id", "split")))

    def file(self, request: SampleRequest) -> Path:
        """Return the file of a split's decisions on the list."""
        return request.decisions(self.list.decisions)

    def decide(self, decisions: Sequence[tuple[int, str, str | None]], event: str) -> None:
        """Store decisions (row, what, label) as one event."""
        by_file = dict[Path, builtins.list[Mapping[str, object]]]()
        for row, what, label in decisions:
            line = {**self.about(row), "id": self.own_id(row), "what": what, "label": label}
            by_file.setdefault(self.file(self.of(row)[0]), []).append(line)
        for file, lines in by_file.items():
            sample_annotations.add_many(file, lines, event)

    @cached_property
    def _decided(self) -> Sequence[tuple[SampleTable, int, Sequence[sample_annotations.Mark]]]:
        """Each part's table, its first row in the joined table, and its decisions, read once."""
        return [(table, at, sample_annotations.decisions(self.file(request))) for request, table, at in self.parts()]

    @cached_property
    def marked(self) -> sample_annotations.Marks:
        """The decisions on the rows, by their ids in the joined table."""
        return {
            self.id(first + row): mark
            for table, first, lines in self._decided
            for own, mark in sample_annotations.marks_of(lines).items()
            if (row := table.row(own)) is not None
        }

    @cached_property
    def disagreements(self) -> dict[str, str]:
        """The decisions of each reviewer on rows where they disagree, by the rows' ids in the joined table."""
        return {
            self.id(first + row): ", ".join(f"{name}: {word}" for name, word in words.items())
            for table, first, lines in self._decided
            for own, words in sample_annotations.disagreements(lines).items()
            if (row := table.row(own)) is not None
        }

    @cached_property
    def marked_rows(self) -> np.ndarray:
        """The decided rows (m), ascending."""
        return np.sort([row for sample in self.marked if (row := self.table.row(sample)) is not None]).astype(int)

    def about(self, row: int) -> Mark:
        """Return the details to store with a decision: the given and the suggested label, or for a pair its rows."""
        table = self.table
        by: Mark = {"by": window()[0], "reviewer": reviewer(), "list": self.list.key}
        if self.list.decisions:
            given = str(table.extra["partner"][row]) if table.towers[0] else ""
            return {**by, "given": given, "suggested": str(table.extra[self.list.other][row])}
        known: Mark = {**by, "given": str(table.columns["label"][row])}
        if self.list.suggests:
            return {**known, "suggested": self.list.suggests(table, row)}
        if "suggested" in table.extra:
            known["suggested"] = str(table.extra["suggested"][row])
            if np.isfinite(wrong := float(table.columns["mislabeled"][row])):
                known["wrong"] = decimals(wrong)
            known["confidence"] = decimals(float(table.extra["suggested_probability"][row]))
        return known


def reviewer() -> str:
    """Return the name for this session's decisions: typed, from the environment, or of the user's account."""
    names = map(os.environ.get, ("CONTRASTIVE_LAB_REVIEWER", "USER", "USERNAME"))
    return query_params.kept_value("reviewer") or next(filter(None, names), "")


def window() -> tuple[str, float]:
    """Return this session's name for its decisions, and the time when it was opened."""
    name, since = st.session_state.setdefault(WINDOW, (token_hex(4), time.time()))
    return str(name), float(since)


@st.cache_resource(max_entries=8, show_spinner=False)
def _audit(key: str, _table: SampleTable, _marks: sample_annotations.Marks, _run: Run | None) -> LabelAudit | None:
    return label_audit.audit_table(_table, _marks, _run)


def recalibrated(findings: Findings) -> tuple[Findings, list[LabelAudit | None]]:
    """Return the findings with probabilities recalibrated by each split's random checks, in the old order; and the
    audits of the splits, None without labels. The error rate of one split says nothing about another."""
    tables, audits = list[SampleTable](), list[LabelAudit | None]()
    for request, table in zip(findings.requests, findings.tables, strict=True):
        marks = sample_annotations.marks(request.decisions())
        said = [(i, *map(str, (m.get(k, "") for k in ("what", "label", "list", "many")))) for i, m in marks.items()]
        audit = _audit(cache.digest(str(request.path()), said), table, marks, request.run)
        if audit is not None and audit.found.checked:
            checked = np.full(len(table), np.nan)
            checked[audit.order[: audit.reached]] = audit.wrong[audit.order[: audit.reached]]
            table = table.rescored("mislabeled", label_audit.calibrate(table.columns["mislabeled"], checked))
        tables.append(table)
        audits.append(audit)
    return replace(findings, tables=tuple(tables)), audits


@st.cache_resource(max_entries=4, show_spinner=False)
def _joined(paths: tuple[str, ...], _tables: dict[str, SampleTable]) -> SampleTable:
    return merged_table(_tables)


def look_near(sample: str | None) -> None:
    """List a sample and its nearest ones; None restores the list."""
    query_params.keep(near=sample)
    go_to(sample)


def look_near_picture(name: str | None = None) -> None:
    """List the images nearest to an uploaded one, stored under a name; None restores the list."""
    if name is None:  # Streamlit clears no upload: another takes over
        st.session_state[PICTURE] = st.session_state.get(PICTURE, 0) + 1
    query_params.keep(picture=name)
    go_to()


def own_picture() -> tuple[str, bytes] | None:
    """Return name and content of the uploaded image whose nearest images are listed; None without one."""
    stored = _stored(query_params.kept_value("picture"))
    return (str(stored["name"]), stored["content"].tobytes()) if {"name", "content"} <= {*stored} else None


def nearest_rows(findings: Findings, rows: np.ndarray) -> np.ndarray:
    """Return the rows of the list or, on request, those nearest to a sample, or to an uploaded image in all splits."""
    request = findings.requests[0]
    if findings.pictures.kind != "image" or request.pairs:
        return rows
    if (run := request.run) is not None:
        key = f"{PICTURE}-{st.session_state.get(PICTURE, 0)}"

        def take() -> None:
            file = st.session_state[key]
            content = file and np.frombuffer(file.getvalue(), np.uint8)
            look_near_picture(_store(name=np.array(file.name), content=content) if file else None)

        st.file_uploader(_("Images nearest to your own picture"), sorted(ENDINGS), key=key, on_change=take)
        if (picture := own_picture()) is not None:
            query_params.keep(picture=query_params.kept_value("picture"))
            encoder, cosines = cache.digest(run.name, run.weights_hash()), dict[int, float]()
            try:
                for request, table, first in findings.parts():
                    near = cache.nearest_to_picture(encoder, request.split, picture[1], PAGE, run)
                    found = ((table.row(name), cosine) for name, cosine in near)
                    cosines |= {first + row: cosine for row, cosine in found if row is not None}
                return np.array(sorted(cosines, key=lambda row: -cosines[row])[:PAGE], int)
            except (ValueError, OSError) as error:
                st.error(format.plain(error))
    st.button(_("Images nearest to this one"), on_click=lambda: look_near(st.session_state.get(AT)), width="stretch")
    sample = query_params.kept_value("near") or ""
    if (row := findings.table.row(sample)) is None:
        return rows
    query_params.keep(near=sample)
    request, table, at = findings.of(row)
    if (vectors := embedding_of(request)) is None:
        return rows
    place = [*vectors.ids].index(findings.own_id(row))
    names = [vectors.ids[i] for i in (place, *nearest_of(vectors, place, PAGE - 1)[0])]
    return np.array([row - at + other for name in names if (other := table.row(name)) is not None])


def _store(**content: np.ndarray) -> str:
    """Store the source of a list under a name for the URL; the oldest of many is removed."""
    folder, name = data_home() / "lists", cache.digest({k: a.tobytes() for k, a in content.items()})
    if not (path := folder / f"{name}.npz").exists():
        for old in sorted(folder.glob("*.npz"), key=lambda p: p.stat().st_mtime)[: 1 - KEPT]:
            old.unlink(missing_ok=True)
        write_npz(path, **content)
    return name


def _stored(name: str | None) -> dict[str, np.ndarray]:
    """Return the arrays stored under a name of the URL; empty for an unknown one."""
    is_name = name is not None and name.isalnum()
    return (is_name and read_arrays(data_home() / "lists" / f"{name}.npz")) or {}


def cut_to_selection(findings: Findings, rows: np.ndarray) -> np.ndarray:
    """Draw the switch to samples selected on the maps; return the rows, limited to them if it is on."""
    spaces = [(r, vectors) for r in findings.requests if (vectors := embedding_of(r)) is not None]
    if not spaces:
        return rows
    places = [state.place_of(r.embedding) for r, _unused in spaces]
    own, splits = (findings.table.extra[k][rows] for k in ("own_id", "split"))
    stored = _stored(query_params.requested("picked"))
    inside, lit = np.zeros(len(rows), bool), dict[str, np.ndarray]()
    for (request, vectors), place in zip(spaces, places, strict=True):
        if (name := f"of {request.split}") in stored:  # of an address, as after a reload
            state.select(np.flatnonzero(np.isin(vectors.ids, stored[name])), place)
        lit[name] = np.array([vectors.ids[i] for i in state.selection(place) if i < len(vectors)], str)
        inside |= np.isin(own, lit[name]) & (splits == request.split)
    number = sum(map(len, lit.values()))
    label = _("Only the {number} selected on the maps").format(number=f"{number:,}")
    if query_params.requested("selected") and not stored:
        go_to()
    is_cut = number > 0 and query_params.switch(st.toggle, label, name="selected")
    query_params.keep(picked=_store(**lit) if is_cut else None)
    if is_cut:
        rows, own, splits = rows[inside], own[inside], splits[inside]
    if st.button(_("Select this list on the maps"), width="stretch", disabled=not len(rows)):
        for (request, vectors), place in zip(spaces, places, strict=True):
            listed = set(own[splits == request.split].tolist())
            state.select([i for i, name in enumerate(vectors.ids) if name in listed], place)
        st.rerun()
    return rows
