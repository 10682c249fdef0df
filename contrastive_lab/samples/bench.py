"""The bench of the Samples page: its section of the list, and the decisions made on it."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st

from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.sample_lists import LISTS, RANDOM, VOTED, VOTERS
from contrastive_core.samples.sample_table import SampleTable, percent
from contrastive_lab import cache, format, locale, texts
from contrastive_lab.components.bench import (
    Bench,
    BenchItem,
    DeskEvent,
    EvidenceGroup,
    ShownChoice,
    ShownNeighbor,
    draw_bench,
    reported,
    sheets,
)
from contrastive_lab.components.shared.transport import ThumbnailSheet
from contrastive_lab.locale import _
from contrastive_lab.samples.detail import Group, NamedPicture, evidence_of
from contrastive_lab.samples.findings import PAGE, Findings, window
from contrastive_lab.samples.subject import follow_list, go_to, look_at, moves

KEY = "samples-bench"
ACK = "samples-kept"  # of the session: the last event that was kept
LIKELY = 3  # other classes that have a key
DRAWN = "samples-drawn"  # of the session: when it last read what was decided
OF_VOTERS = ("wrong_by_loss", "wrong_by_neighbors", "wrong_by_probe", "wrong_by_discriminant")  # as VOTED has them


def hear(findings: Findings) -> None:
    """Store the bench's reported decisions, in order; skip those already stored."""
    report = reported(KEY)
    findings = replace(findings, list=LISTS.get(str(report.get("list")), findings.list))
    nonce, kept = report.get("nonce"), st.session_state.get(ACK, {})
    seq = kept.get("seq", 0) if kept.get("nonce") == nonce else 0
    for event in report.get("events", ()):
        if event["seq"] > seq:
            seq, name = event["seq"], f"{nonce}:{event['seq']}"
            if event["what"] != "undo":
                _keep(findings, event, name)
                continue
            undone = sample_annotations.undo([findings.file(r) for r in findings.requests], *window(), name)
            if undone and (sample := undone[0][1]["id"]) != report.get("at"):  # on another sample: show that one
                done = {choice.what: choice.done for choice in findings.list.choices}.get(undone[0][1]["what"], "")
                st.toast(_("Undone: {sample} was {done}.").format(sample=format.plain(sample), done=_(done)))
                go_to(sample)
    if nonce and report.get("events"):
        st.session_state[ACK] = {"nonce": nonce, "seq": seq}
    st.session_state[DRAWN] = time.time()  # decisions are read anew after this
    follow_list(cache.digest(findings.requests))
    if report.get("at") and report.get("go") == moves():
        look_at(str(report["at"]))


def _keep(findings: Findings, event: DeskEvent, name: str) -> None:
    """Store a decision on one or more samples. Reports come from the browser, so samples may no longer exist."""
    what, by_file = event["what"], dict[Path, list[dict[str, object]]]()
    if what not in [one.what for one in findings.list.choices]:
        return
    for one in event.get("items", ()):
        row, label = findings.table.row(str(one.get("id"))), str(one.get("label") or "")
        if row is None or (what == "relabel" and not label):
            continue
        known = findings.marked.get(findings.id(row), {})
        is_unseen = known.get("time", 0.0) > st.session_state.get(DRAWN, float("inf"))
        if is_unseen and known.get("by") != window()[0]:
            text = _("{sample} was decided elsewhere in the meantime. Your decision on it was not stored.")
            st.toast(text.format(sample=format.plain(findings.id(row))), icon=":material/warning:")
            continue
        decided = {"id": findings.own_id(row), "what": what, "label": label if what == "relabel" else None}
        by_file.setdefault(findings.file(findings.of(row)[0]), []).append({**findings.about(row), **decided})
    for file, lines in by_file.items():
        sample_annotations.add_many(file, lines, name)


def show(findings: Findings, rows: np.ndarray, row: int) -> None:
    """Draw the bench with the section of the list around the current sample."""
    place = next(iter(np.flatnonzero(rows == row).tolist()), -1)
    # The browser has the grid's pages around the sample at hand.
    start = max(0, (place // PAGE - 1) * PAGE) if place >= 0 else -1
    part = rows[start : start + 3 * PAGE] if place >= 0 else np.array([row])
    beside: dict[tuple[str, str], int] = {}  # places of the pictures beside the samples
    evidence = evidence_of(findings, part)
    items = [_item(findings, r, evidence[r], beside) for r in part.tolist()]
    content = cache.digest(findings.requests, [findings.id(r) for r in part], list(beside))
    table, one = findings.table, findings.list
    classes = findings.pictures.classes or table.classes or sorted(table.labels, key=lambda one: (len(one), one))
    pictures, pictures_beside = _sheets(content, findings, part, beside)
    bench = Bench(
        items=items,
        content=content,
        start=start,
        total=len(rows),
        at=place,
        list=findings.list.key,
        of=cache.digest([str(findings.file(r)) for r in findings.requests]),
        go=moves(),
        changed=st.session_state.get("samples-many", 0),
        may_undo=bool(findings.marked),
        choices=[ShownChoice(c.what, _(c.text), c.key, _(c.done)) for c in one.choices],
        are_pairs=bool(one.decisions),
        classes=[] if one.decisions else classes,
        ack=st.session_state.get(ACK, {}),
        pictures=pictures,
        near=pictures_beside,
        so_far=bool(findings.missing),
        end="" if one.cut is None else _("End of the list. The cut-off at the top decides how many samples are on it."),
    )
    draw_bench(bench, KEY)


def _item(findings: Findings, row: int, groups: list[Group], beside: dict[tuple[str, str], int]) -> BenchItem:
    """Return a sample in the format of the bench; images of its evidence are added to `beside`."""
    table, one, pictures, (request, own, at) = findings.table, findings.list, findings.pictures, findings.of(row)
    mark, about = findings.marked.get(findings.id(row), {}), findings.about(row)
    given, suggested = about["given"], about.get("suggested", "")
    votes = {
        voter: str(table.extra[name][row]) for voter, name in zip(OF_VOTERS, VOTED, strict=True) if name in table.extra
    }
    names = list(votes.values())  # of tables without `likely`
    ranked = (
        table.extra["likely"][row].tolist() if "likely" in table.extra else sorted(names, key=lambda n: -names.count(n))
    )
    classes = [] if one.decisions or not suggested else [suggested, *ranked]
    likely = [name for name in dict.fromkeys(classes) if name != given]
    is_judged = one.key != RANDOM and not one.decisions  # nobody is told what to think of a random row
    is_wrong = is_judged and bool(given) and is_probably_wrong(table, row)
    is_voted = is_judged and (is_wrong or one.key == "mislabeled")
    text = pictures.text(str(own.columns["id"][at]), request.split)
    why = "" if is_voted and votes else one.reason(own, at)
    if (said := findings.disagreements.get(findings.id(row))) is not None:
        differ = _("Reviewers disagree: {said}.").format(said=said)
        why = f"{why} {differ}".strip()
    return BenchItem(
        id=findings.id(row),
        badge=request.split if len(findings.requests) > 1 else "",
        given="" if one.decisions else given,
        suggested=suggested,
        sentence=_(one.question) if one.question else _sentence(table, one.key, row),
        why=why,
        evidence=[EvidenceGroup(title, _neighbors(findings, group, beside, text)) for title, group in groups],
        looks_like=suggested if is_wrong else "",
        likeliness=percent(about["confidence"]) if is_wrong else "",
        wrong=about.get("wrong") if is_voted else None,
        votes=[(_(VOTERS[voter]), name) for voter, name in votes.items()] if is_voted else [],
        mark=mark.get("what", ""),
        label=mark.get("label") or "",
        likely=likely[:LIKELY],
        keep_first=not one.decisions and bool(given) and not is_probably_wrong(table, row),
        text=texts.said(text) if text else None,
    )


def _neighbors(
    findings: Findings, group: list[NamedPicture], beside: dict[tuple[str, str], int], query: str
) -> list[ShownNeighbor]:
    """Return samples shown beside another, by the index of their image, or as text without one, in which the words of
    the other's text are marked."""
    shown, pictures = [], findings.pictures
    for split, sample, text, is_named in group:
        if pictures.get(sample, split) is None:
            told = f"{sample} · {locale.text(text)}"
            body = pictures.text(sample, split)
            shown.append(ShownNeighbor(-1, told, texts.said(body, query) if body else None))
        else:
            place = beside.setdefault((split, sample), len(beside))
            shown.append(ShownNeighbor(place, locale.text(text), is_named=is_named))
    return shown


def is_probably_wrong(table: SampleTable, row: int) -> bool:
    """Return whether another class is more probable than the label."""
    return "suggested" in table.extra and bool(table.columns["mislabeled"][row] > 0.5)


def _sentence(table: SampleTable, name: str, row: int) -> str:
    """Return the sentence about a label below its name."""
    if not table.columns["label"][row]:
        return _("It has no label.")
    if name == RANDOM:
        return _("Random row, not a suspect: is this label right?")
    wrong = table.columns["mislabeled"][row]
    if is_probably_wrong(table, row):
        return _("The label is wrong with probability {wrong}.").format(wrong=percent(wrong))
    if name == "mislabeled" and np.isfinite(wrong):
        return _("Probably right: the label is wrong with probability {wrong}.").format(wrong=percent(wrong))
    return ""


@st.cache_resource(max_entries=8, show_spinner=False)
def _sheets(
    content: str, _findings: Findings, _part: np.ndarray, _beside: dict[tuple[str, str], int]
) -> tuple[ThumbnailSheet, ThumbnailSheet]:
    """Return the images of a section, and of the samples beside it, cached by content."""
    near = _findings.pictures.stack([i for _unused, i in _beside], [split for split, _unused in _beside])
    return sheets(_findings.stack(_part), near)
