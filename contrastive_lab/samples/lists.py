"""The lists of the Samples page: choice, cut-off, filters, random check and table."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.samples.label_audit import LabelAudit
from contrastive_core.samples.sample_lists import FALSE_NEGATIVES, LISTS, OWN_RANK, RANDOM, SampleList, why_no_suspects
from contrastive_core.samples.sample_table import SampleTable, decimals
from contrastive_core.samples.tower_pairs import Cells
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.components.cut_off import CutOff, draw_cut_off
from contrastive_lab.components.shared.mount import reported_state
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.findings import Findings, look_near, look_near_picture, own_picture
from contrastive_lab.samples.subject import ASKED, AT, CHIP, LIST, Pictures, go_to

MATRIX = 40  # classes of the matrix
ROWS = 2000  # of the table; the file has all
START = LISTS["mislabeled"].cut or 0.5
LISTED = "samples-listed"  # of the session: how long the list above the cut-off was
CUTS = np.linspace(0, 1, 51)
COUNTED = N_("suspicion that the label is wrong, 0 to 1; counts on a logarithmic scale")
KEY = "samples-list"  # of the chip
SIZES = (40, 120, 240, 480)  # of a random check
SHARE = 0.95  # of the own cosine, above which a margin leaves out a negative (NV-Retriever, arXiv 2407.15831)


def pick(table: SampleTable) -> SampleList:
    """Draw the choice of the list as a chip with its number of samples; return the list, kept in the URL."""
    score, chosen, titles = table.score("mislabeled"), query_params.kept_value("list"), dict[str, str]()
    for name, one in LISTS.items():
        if len(rows := table.ranked(one.column)):
            count = len(rows) if one.cut is None else int((score > _cut()).sum())
            if one.are_twins:
                count = int((table.twin[rows] >= 0).sum())
            titles[name] = _(one.title) if name == RANDOM else f"{_(one.title)} · {count:,}"

    def choose() -> None:
        query_params.keep(list=st.session_state[KEY])
        go_to()

    one = LISTS[chosen if chosen in titles else next(iter(titles))]
    st.menu_button(titles[one.key], list(titles), key=KEY, format_func=titles.__getitem__, on_click=choose)
    query_params.keep(list=one.key)
    return one


def _cut() -> float:
    """Return the cut-off of the URL, or the last released one."""
    return float(query_params.kept_number("cut", START, 0.0, 1.0))


def order(table: SampleTable, one: SampleList) -> np.ndarray:
    """Return the rows of a list; of both splits by the rank of their loss within their split, because losses against
    more samples are higher."""
    split, loss = table.extra["split"], table.columns["loss"]
    if one.column != "loss" or (split == split[:1]).all():
        return one.order(table)
    share, is_known = np.full(len(table), np.nan), np.isfinite(loss)
    for name in np.unique(split):
        some = (split == name) & is_known
        share[some] = table.columns["rank"][some] / max(1, some.sum())
    return np.argsort(share, kind="stable")[: is_known.sum()]  # NaN last


def show_explanation(findings: Findings) -> None:
    """Draw the explanation of the list, with facts about the whole set."""
    table, one, run = findings.table, findings.list, findings.requests[0].run
    st.caption(locale.text(one.how))
    method = "" if run is None else str(run.config.get("method"))
    if one.key == "mislabeled" and cache.catalog()["methods"].get(method, {}).get("needs_labels"):
        text = _(
            "This encoder was trained with the labels, so wrong labels that it memorized stay hidden. An encoder "
            "trained without labels has no such blind spot."
        )
        st.caption(text)
    for fact in () if one.are_twins else one.facts(table):  # said above the list
        st.caption(locale.text(fact))
    for request in findings.requests:
        if left_out := Pictures(request).left_out:
            st.caption(format.plain(left_out))


def show_basis(findings: Findings, one: SampleList) -> None:
    """Draw the limits of a list: missing scores, samplings, or an approximate search."""
    request, table, facts = findings.requests[0], findings.table, [table.facts for table in findings.tables]
    lines = [locale.text(why)] if (why := why_no_suspects(table)) else []
    if one.are_twins:
        lines += map(locale.text, one.facts(table))
    if one.key == FALSE_NEGATIVES:  # which pairs a relative margin would leave out, also of the decided ones
        is_out, listed = table.extra["twin_cosine"] > SHARE * table.extra["own_cosine"], table.ranked(FALSE_NEGATIVES)
        values = {"out": int(is_out[listed].sum()), "listed": len(listed), "share": SHARE}
        for name, choice in (("match", "relabel"), ("other", "keep")):
            of_choice = [sample for sample, mark in findings.marked.items() if mark["what"] == choice]
            rows = np.isin(table.columns["id"], of_choice)
            values |= {f"{name}_out": int(is_out[rows].sum()), name: int(rows.sum())}
        text = _(
            "A relative margin of {share} (TopK-PercPos) leaves out {out} of these {listed} pairs. Of those you "
            "decided, it leaves out {match_out} of {match} matches and {other_out} of {other} others."
        )
        lines.append(text.format(**values))
    if one.rests_on == "losses":
        card = cache.catalog()["losses"].get(request.loss, {})
        if card.get("per_sample") == "none":
            text = _("{title} has no value per sample: all samples share the batch's value, so this list has no order.")
            lines.append(text.format(title=card.get("title", request.loss)))
        if most := next((f["loss_candidates"] for f in facts if "loss_candidates" in f), None):
            text = _("Each loss is computed among {most} random samples, because this set is large.")
            lines.append(text.format(most=f"{most:,.0f}"))
    elif recalls := [f["neighbors_recall"] for f in facts if "neighbors_recall" in f]:
        text = _("The neighbors come from an approximate search that finds {recall} of them.")
        lines.append(text.format(recall=f"{100 * min(recalls):.0f} %"))
    for line in lines:
        st.caption(format.plain(line))


def filtered(findings: Findings, rows: np.ndarray) -> np.ndarray:
    """Draw the filters; return the rows of a list that pass them."""
    table, keep = findings.table, np.ones(len(rows), bool)
    columns, classes = table.columns, list(table.labels)
    if table.towers[0]:
        if part := query_params.text(st.text_input, _("Text contains"), name="text").strip().lower():
            both = zip(columns["id"][rows].tolist(), table.extra["partner"][rows].tolist(), strict=True)
            told = (f"{a} {b} {table.texts.get(a, '')} {table.texts.get(b, '')}" for a, b in both)
            keep &= np.array([part in text.lower() for text in told], bool)
        label, most, help = _("Own rank at least"), max(int(table.facts["candidates"]), 2), _(OWN_RANK)
        lowest = query_params.number(st.number_input, label, 1, most, name="own-rank", default=1, help=help)
        keep &= table.extra["own_rank"][rows] >= lowest
    if len(classes) > 1 and (some := query_params.many_of(st.multiselect, _("Classes"), classes, name="classes")):
        keep &= np.isin(columns["label"][rows], some)
    if "suggested" in table.extra and len(classes) > 1:
        if some := query_params.many_of(st.multiselect, _("Suggested classes"), classes, name="suggested"):
            keep &= np.isin(table.extra["suggested"][rows], some)
        of_rows = _both(table, rows)
        shown = {"": _("All pairs")} | {pair: f"{pair} · {n:,}" for pair, n in Counter(of_rows).most_common() if pair}
        box, label = st.selectbox, _("Label → suggestion")
        if pair := query_params.one_of(box, label, shown, name="pair", on_change=go_to):
            keep &= np.array([one == pair for one in of_rows], bool)
    has = np.isin(columns["id"][rows], list(findings.marked))
    keep &= np.isin(has, _yes_or_no(_("Decided"), "marked"))
    if findings.disagreements:
        differs = np.isin(columns["id"][rows], list(findings.disagreements))
        keep &= np.isin(differs, _yes_or_no(_("Reviewers disagree"), "disagree"))
    if not keep.all():
        st.caption(
            _("The filter leaves {count} of {rows}.").format(count=f"{int(keep.sum()):,}", rows=f"{len(rows):,}")
        )
    return rows[keep]


def _both(table: SampleTable, rows: np.ndarray) -> list[str]:
    """Return the label and suggested class of each row as one text; "" if the label is probably right."""
    names = zip(*(some[rows].tolist() for some in (table.columns["label"], table.extra["suggested"])), strict=True)
    wrong = table.columns["mislabeled"][rows] > START
    return [f"{a} → {b}" if is_wrong and a else "" for (a, b), is_wrong in zip(names, wrong, strict=True)]


def _choose_pair(pair: str | None) -> None:
    query_params.choose(query_params.key_of("pair"), pair or "", in_popover=True)
    go_to()


def show_narrowed(table: SampleTable) -> None:
    """Draw a button that ends each choice that leaves only a few samples on the list."""
    near, picture = query_params.kept_value("near") or "", own_picture()
    told = _("Nearest to {sample}")
    pair = query_params.page_values().get(query_params.key_of("pair"))
    choices: list[tuple[str | None, Callable[[None], None]]] = [
        (pair if "suggested" in table.extra else None, _choose_pair),
        (None if table.row(near) is None else told.format(sample=format.plain(Path(near).name)), look_near),
        (picture and told.format(sample=format.plain(picture[0])), look_near_picture),
    ]
    line = st.container(horizontal=True) if any(text for text, _act in choices) else st
    for text, act in choices:
        if text:
            line.button(f"{text} ✕", on_click=act, args=(None,))


def confusion(table: SampleTable, rows: np.ndarray) -> None:
    """Draw the suspects as a matrix of labels and suggested classes; a click filters the list by a cell."""
    pairs, key = Counter(filter(None, _both(table, rows))), f"samples-confusion-{cache.digest(table.labels)}"
    if not pairs:
        return
    names = table.labels[:MATRIX]

    def clicked() -> None:
        if cells := st.session_state[key]["selection"]["cells"]:
            at, column = cells[0]
            pair = f"{names[int(at)]} {column}"
            _choose_pair(pair if pairs[pair] else None)

    with st.expander(_("Suspects by label and suggested class")):
        listed = [{_("label"): a} | {f"→ {b}": pairs[f"{a} → {b}"] for b in names} for a in names]
        draw_table(listed, hide_index=True, key=key, on_select=clicked, selection_mode="single-cell")
        text = _(
            "Rows are the labels, columns the suggested classes. Click a cell to show only its samples in the list."
        )
        st.caption(text)


def _yes_or_no(label: str, name: str) -> list[bool]:
    """Draw a filter; return the values that pass it: both if nothing is chosen."""
    choice = query_params.one_or_none(st.segmented_control, label, ("yes", "no"), name=name)
    return [True, False] if choice is None else [choice == "yes"]


def listed(findings: Findings, rows: np.ndarray) -> Iterator[Cells]:
    """Yield a list's rows as plain values, one by one, since there may be a million."""
    table, marked, one = findings.table, findings.marked, findings.list
    columns, score, likely = table.columns, table.score(one.column), one.column == "mislabeled"
    done = {choice.what: choice.done if one.decisions else choice.what for choice in one.choices}
    for place, r in enumerate(rows.tolist(), 1):
        sample, (_request, own, at) = findings.id(r), findings.of(r)
        mark = marked.get(sample, {})
        decision = done.get(str(mark.get("what")), "")
        given: Cells = {"score": round(float(score[r]), 5)}
        if likely:
            given = {"probability_wrong": decimals(float(score[r]))}  # as in new_labels.csv
        if one.values:
            given |= {"decision": decision, N_("matched with"): mark.get("label") or ""}
            yield {"place": place, **one.values(own, at), **given}
            continue
        yield {
            "place": place,
            "id": sample,
            "split": str(table.extra["split"][r]),
            "label": str(columns["label"][r]),
            **given,
            "loss": round(float(columns["loss"][r]), 5),
            "rank": int(columns["rank"][r]),
            "decision": decision,
            "why": one.reason(own, at),
        }


def as_table(findings: Findings, rows: np.ndarray) -> None:
    """Draw the first rows of the list as a table; a click goes to the sample."""
    shown, key = rows[:ROWS], "samples-table"

    def chosen() -> None:
        if picked := st.session_state[key]["selection"]["rows"]:
            go_to(findings.id(shown[picked[0]]))

    columns = {"why": st.column_config.TextColumn(width="large")}
    if findings.table.towers[0]:
        columns |= {name: st.column_config.NumberColumn(help=_(OWN_RANK)) for name in ("own rank", "own rank back")}
    table = [*listed(findings, shown)]
    draw_table(table, columns, key=key, on_select=chosen, hide_index=True, height=460, selection_mode="single-row")
    if len(rows) > ROWS:
        text = _("The first {shown} of {rows} rows; the file contains all.")
        st.caption(text.format(shown=f"{ROWS:,}", rows=f"{len(rows):,}"))


# --- the random check ---------------------------------------------------------------------------


def rows_to_check(audit: LabelAudit, table: SampleTable, chips: DeltaGenerator) -> np.ndarray:
    """Return as many random rows as the user chooses, and draw the estimate; the first undecided one becomes
    current."""
    sizes = [size for size in SIZES if size < audit.labels] or [audit.labels]
    label = _("Random rows to check")
    at_least = next((size for size in sizes if size >= audit.reached), sizes[-1])
    box, titles = chips.selectbox, {n: _("{count} rows").format(count=f"{n:,}") for n in sizes}
    size = query_params.one_of(box, label, titles, name="checks", default=at_least, on_change=go_to, width=CHIP)
    rows = audit.order[:size]
    if audit.estimate:
        is_done = not np.isnan(audit.wrong[rows]).any()
        done = _("This check is done: all {size} rows are decided.").format(size=f"{size:,}") if is_done else ""
        st.caption(" ".join([f"**{locale.text(audit.estimate)}** {done}", *map(locale.text, audit.advice)]))
    else:
        text = _(
            "These rows are random, not suspects. Keep a row if its label is right, relabel it or drop it if not. "
            "From your first decision on, the app estimates how many labels are wrong."
        )
        st.caption(text)
    at = st.session_state.get(AT)
    is_new = st.session_state.get(LIST) != RANDOM and at != st.session_state.get(ASKED)
    if (not at or is_new or table.row(at) not in rows) and len(undecided := rows[np.isnan(audit.wrong[rows])]):
        st.session_state[AT] = str(table.columns["id"][undecided[0]])
    return rows


# --- the cut-off --------------------------------------------------------------------------------


def above(findings: Findings, rows: np.ndarray, every: bool, audit: LabelAudit | None) -> np.ndarray:
    """Draw the cut-off; return the rows above it, or all if there are none or `every` is set. Those decided up to the
    current sample, and this one, stay: decisions lower the others' probabilities, but do not end the list before it."""
    table, score, cut = findings.table, findings.table.score("mislabeled"), _cut()
    known = score[np.isfinite(score)]
    key = f"cut-off-{cache.digest(findings.requests, len(known))}"

    def let_go() -> None:
        if (value := reported_state(key, "cut")) is not None:
            query_params.keep(cut=min(1.0, max(0.0, float(value))))
            go_to()

    counted, heads = _said_of_cuts(cache.digest(key, float(known.sum())), locale.language(), known)
    draw_cut_off(CutOff(counted, heads, float(CUTS[np.abs(CUTS - cut).argmin()]), _(COUNTED)), key, let_go)
    query_params.keep(cut=cut)
    is_over = score[rows] > cut
    if audit is not None:
        last, most = st.session_state.get(LISTED, ((key, cut), 0))
        most = max(int(np.flatnonzero(is_over).max(initial=-1)) + 1, most if last == (key, cut) else 0)
        st.session_state[LISTED] = ((key, cut), most)
        row = table.row(st.session_state.get(AT) or "")
        for place in np.flatnonzero(rows[:most] == row) if row is not None else ():
            is_over[: place + 1] |= np.isfinite(audit.wrong[rows[: place + 1]])
            is_over[place] = True
    return rows if every or not is_over.any() else rows[is_over]


@st.cache_resource(max_entries=8, show_spinner=False)
def _said_of_cuts(key: str, language: str, _score: np.ndarray) -> tuple[list[int], list[str]]:
    """Return the histogram (a score equal to a cut is below it), and the text at each cut-off; cached, because there
    may be a million scores."""
    places = np.clip(np.ceil(_score * (len(CUTS) - 1) - 1e-9).astype(int) - 1, 0, len(CUTS) - 2)
    text, over = _("{count} with suspicion > {cut}"), [int((_score > cut).sum()) for cut in CUTS]
    heads = [text.format(count=f"{n:,}", cut=f"{cut:.2f}") for n, cut in zip(over, CUTS, strict=True)]
    return np.bincount(places, minlength=len(CUTS) - 1).tolist(), heads
