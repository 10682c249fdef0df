"""The bench of the Samples page: its section of the list, the decisions made on it, the evidence beside each sample,
and the parts of its loss."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import streamlit as st

from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.sample_lists import LISTS, RANDOM, VOTERS
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, percent, suspicion
from contrastive_lab import cache, format, locale, pictures, query_params, texts
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
from contrastive_lab.components.sample_view import SampleView, ShownPair, draw_sample_view
from contrastive_lab.components.shared.mount import SliderKnob, ThumbnailSheet, thumbnail_sheet
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.evidence import Group, NamedPicture, Tally, evidence_of, label_of
from contrastive_lab.samples.findings import PAGE, Findings, window
from contrastive_lab.samples.subject import AT, OF, Pictures, go_to, moves

KEY = "samples-bench"
ACK = "samples-kept"  # of the session: the last event that was kept
LIKELY = 3  # other classes that have a key
DRAWN = "samples-drawn"  # of the session: when it last read what was decided
VIEW = 96  # pixels of a view's picture
WHY = N_("Why this loss")


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
    of = cache.digest(findings.requests)
    if st.session_state.get(OF, of) != of:  # the list comes from other tables: the page says what is at hand
        go_to(st.session_state.get(AT))
    st.session_state[OF] = of
    if report.get("at") and report.get("go") == moves():
        st.session_state[AT] = str(report["at"])


def _keep(findings: Findings, event: DeskEvent, name: str) -> None:
    """Store a decision on one or more samples. Reports come from the browser, so samples may no longer exist."""
    what, decisions = event["what"], list[tuple[int, str, str | None]]()
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
        decisions.append((row, what, label if what == "relabel" else None))
    findings.decide(decisions, name)


def show(findings: Findings, rows: np.ndarray, row: int, note: str = "") -> None:
    """Draw the bench with the section of the list around the current sample, and a note on the whole list."""
    place = next(iter(np.flatnonzero(rows == row).tolist()), -1)
    # The browser has the grid's pages around the sample at hand.
    start = max(0, (place // PAGE - 1) * PAGE) if place >= 0 else -1
    part = rows[start : start + 3 * PAGE] if place >= 0 else np.array([row])
    beside: dict[tuple[str, str], int] = {}  # places of the pictures beside the samples
    evidence = evidence_of(findings, part)
    items = [_item(findings, r, *evidence[r], beside) for r in part.tolist()]
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
        end="" if one.cut is None else _("End of the list. The cut-off at the top decides how many samples are on it."),
        note=note,
    )
    draw_bench(bench, KEY)


def _item(
    findings: Findings, row: int, groups: list[Group], tally: Tally, beside: dict[tuple[str, str], int]
) -> BenchItem:
    """Return a sample in the format of the bench; images of its evidence are added to `beside`."""
    table, one, pictures, (request, own, at) = findings.table, findings.list, findings.pictures, findings.of(row)
    mark, about = findings.marked.get(findings.id(row), {}), findings.about(row)
    given, suggested = about["given"], about.get("suggested", "")
    votes = [(_(voter), str(table.extra[name][row])) for name, voter in VOTERS.items() if name in table.extra]
    named = [said for _voter, said in votes]
    likeliest = sorted(named, key=named.count, reverse=True)  # shipped tables have no likeliest classes
    ranked = table.extra["likely"][row].tolist() if "likely" in table.extra else likeliest
    classes = [] if one.decisions or not suggested else [suggested, *ranked]
    likely = [name for name in dict.fromkeys(classes) if name != given]
    is_judged = one.key != RANDOM and not one.decisions  # nobody is told what to think of a random row
    is_wrong = is_judged and bool(given) and is_probably_wrong(table, row)
    is_voted = is_judged and (is_wrong or one.key == "mislabeled")
    first, *others = one.front(own, at)
    front = [NamedPicture(request.split, b.id, b.text) for b in (first, *others) if others]
    text = pictures.text(first.id, request.split)
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
        votes=votes if is_voted else [],
        mark=mark.get("what", ""),
        label=mark.get("label") or "",
        likely=likely[:LIKELY],
        keep_first=not one.decisions and bool(given) and not is_probably_wrong(table, row),
        text=texts.said(text) if text else None,
        front=_neighbors(findings, front, beside, text),
        tally=tally,
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
        return _("Suspicion {wrong} of 1.").format(wrong=locale.text(suspicion(wrong)))
    if name == "mislabeled" and np.isfinite(wrong):
        return _("Probably right: suspicion {wrong} of 1.").format(wrong=locale.text(suspicion(wrong)))
    return ""


@st.cache_resource(max_entries=8, show_spinner=False)
def _sheets(
    content: str, _findings: Findings, _part: np.ndarray, _beside: dict[tuple[str, str], int]
) -> tuple[ThumbnailSheet, ThumbnailSheet]:
    """Return the images of a section, and of the samples beside it, cached by content."""
    near = _findings.pictures.stack([i for _unused, i in _beside], [split for split, _unused in _beside])
    return sheets(_findings.stack(_part), near)


# --- details of a sample --------------------------------------------------------------------------


def show_detail(findings: Findings, row: int) -> None:
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
    groups = [group for _title, group in evidence_of(findings, np.array([row]))[row][0] if group]
    if groups and pictures.is_likeness_wanted():
        near, own = groups[0][0], findings.own_id(row)  # of a suspect, the nearest of the suggested class
        values = {"space": request.embedding.values, "ids": [own, near.id], "splits": [request.split, near.split]}
        pictures.explain_likeness(values, (own, f"{near.id} ({locale.text(near.text)})"))


def numbers(table: SampleTable, row: int) -> str:
    """Describe a sample's loss, and its rank on every list."""
    columns, parts = table.columns, []
    if np.isfinite(loss := columns["loss"][row]):
        parts.append(_("loss {loss}, rank {rank}").format(loss=f"{loss:.3f}", rank=int(columns["rank"][row])))
    for name, one in LISTS.items():
        score = table.score(one.column)
        nothing = name in (RANDOM, "loss") or (name == "false_negative" and score[row] <= -1)  # no negative is near
        if np.isfinite(score[row]) and not nothing:
            said = locale.text(suspicion(score[row])) if name == "mislabeled" else f"{score[row]:.3f}"
            place = int((score > score[row]).sum()) + 1
            text, total = _("{score} {value}, rank {rank} of {total}"), int(np.isfinite(score).sum())
            rank = {"rank": f"{place:,}", "total": f"{total:,}"}
            parts.append(text.format(score=_(one.score), value=said, **rank))
    return " · ".join(parts)


def explain(request: SampleRequest, table: SampleTable, row: int, shown: Pictures) -> None:
    """Draw the parts of the loss as the knob is dragged: the shares of pairs, and the margin."""
    sample = str(table.columns["id"][row])
    try:
        why = cache.sample_why(request, str(request.path()), sample)
    except ValueError as error:
        st.info(format.plain(error))
        return
    pairs = [*((p, True) for p in why.weakest_positives), *((p, False) for p in why.hardest_negatives)]
    kinds = (_("negative"), _("positive"))
    names = [f"{kinds[positive]} {label_of(table, p.id)} · {p.id}" for p, positive in pairs]
    if np.isfinite(why.margin):
        text = _("Margin {margin}: cosine to the nearest positive minus that to the nearest negative.")
        st.caption(text.format(margin=f"{why.margin:+.3f}"))
    if why.views is not None:
        line = st.container(horizontal=True, gap="small")
        for number, caption in enumerate((_("view 1, the anchor"), _("view 2, its positive"))):
            line.container(width=VIEW).image(cache.picture(why.views, number), caption, width="stretch")
    if why.kernel is None:
        pair, share, named = _("pair"), _("share %"), zip(names, pairs, strict=True)
        rows = [{pair: n, share: round(100 * p.share, 2), why.score_kind: p.score} for n, (p, _positive) in named]
        draw_table(rows, hide_index=True)
        return
    slider = None
    if (name := why.kernel.get("knob")) is not None:
        low, label = (0.02, _("τ, temperature")) if name == "temperature" else (0.05, _("ε, margin"))
        value, about = float(why.kernel[name]), cache.catalog()["losses"][request.loss]
        slider = SliderKnob(label, min(low, value), max(2.0, value), value, bool(about["knobs"][name]["log"]))
    view = SampleView(
        content=cache.digest(request, sample, str(request.path())),
        scores=why.scores,
        mask=why.mask,
        kernel=why.kernel,
        pairs=[ShownPair(n, p.column, positive) for n, (p, positive) in zip(names, pairs, strict=True)],
        thumbnails=thumbnail_sheet(shown.stack([p.id for p, _positive in pairs])),
        knob=slider,
    )
    draw_sample_view(view, key=f"why-{cache.digest(sample)}")
    text = _(
        "This is the loss of its first view among all samples. The value above is the mean over its views and their "
        "draws. Weakest positives and hardest negatives come first. The encoder is frozen: the slider only changes "
        "the loss, computed in the browser."
    )
    st.caption(text)
