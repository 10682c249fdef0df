"""The lists of the Samples page: choice, cut-off, filters, table and files."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.base import storage
from contrastive_core.samples.label_audit import LabelAudit
from contrastive_core.samples.pair_table import Cells
from contrastive_core.samples.sample_lists import FALSE_NEGATIVES, LISTS, OWN_RANK, RANDOM, SampleList, why_no_suspects
from contrastive_core.samples.sample_table import SampleTable, decimals
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.components.cut_off import CutOff, draw_cut_off
from contrastive_lab.components.shared.mount import reported_state
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.findings import Findings, forget_picture, look_near, own_picture
from contrastive_lab.samples.subject import AT, go_to

MATRIX = 40  # classes of the matrix
ROWS = 2000  # of a page of the table; the files have all
# Of a file's columns; of the others "string".
TYPES = {"place": "int64", "rank": "int64", "score": "float64", "probability_wrong": "float64", "loss": "float64"}
START = LISTS["mislabeled"].cut or 0.5
LISTED = "samples-listed"  # of the session: how long the list above the cut-off was
CUTS = np.linspace(0, 1, 51)
COUNTED = N_("probability that the label is wrong; counts on a logarithmic scale")
KEY = "samples-list"  # of the chip
SHARE = 0.95  # of the own cosine, above which a margin leaves out a negative (NV-Retriever, arXiv 2407.15831)


def pick(table: SampleTable) -> SampleList:
    """Draw the choice of the list as a chip with its number of samples; return the list, kept in the URL."""
    found = {name: table.ranked(one.column) for name, one in LISTS.items()}
    score, chosen = table.score("mislabeled"), query_params.kept_value("list")
    counts = {
        name: len(rows) if LISTS[name].cut is None else int((score > _cut()).sum()) for name, rows in found.items()
    }
    counts |= {name: int((table.twin[rows] >= 0).sum()) for name, rows in found.items() if LISTS[name].are_twins}
    names = [name for name, rows in found.items() if len(rows)]

    def title(name: str) -> str:
        return _(LISTS[name].title) if name == RANDOM else f"{_(LISTS[name].title)} · {counts[name]:,}"

    def choose() -> None:
        query_params.keep(list=st.session_state[KEY])
        go_to()

    one = LISTS[chosen if chosen in names else names[0]]
    st.menu_button(title(one.key), names, key=KEY, format_func=title, on_click=choose)
    query_params.keep(list=one.key)
    return one


def _cut() -> float:
    """Return the cut-off of the URL, or the last released one."""
    return float(query_params.kept_number("cut", START, 0.0, 1.0))


def order(table: SampleTable, one: SampleList) -> np.ndarray:
    """Return the rows of a list by its score, or in another chosen order."""
    if one.column == "loss" and (table.extra["split"] != table.extra["split"][:1]).any():
        return by_place(table)
    orders = {by: title for by, title in one.orders.items() if len(table.ranked(by))}
    if len(orders) < 2:
        return one.order(table)
    by = query_params.one_of(
        st.selectbox, _("Ordered by"), orders, name="order", format_func=orders.get, on_change=go_to
    )
    return one.order(table, by)


def by_place(table: SampleTable) -> np.ndarray:
    """Return the rows by the rank of their loss within their split; losses against more samples are higher."""
    share, split = np.full(len(table), np.nan), table.extra["split"]
    for name in np.unique(split):
        some = (split == name) & np.isfinite(table.columns["loss"])
        share[some] = table.columns["rank"][some] / max(1, some.sum())
    order = np.argsort(share, kind="stable")  # NaN last
    return order[np.isfinite(share[order])]


def show_explanation(table: SampleTable, one: SampleList, method: str) -> None:
    """Draw the explanation of the list, with facts about the whole set; `method` trained the encoder ("": none)."""
    st.caption(locale.text(one.how))
    if one.key == "mislabeled" and cache.catalog()["methods"].get(method, {}).get("needs_labels"):
        text = _(
            "This encoder was trained with the labels, so wrong labels that it memorized stay hidden. An encoder "
            "trained without labels has no such blind spot."
        )
        st.caption(text)
    for fact in () if one.are_twins else one.facts(table):  # said above the list
        st.caption(locale.text(fact))


def show_basis(findings: Findings, one: SampleList) -> None:
    """Draw the limits of a list: missing scores, samplings, another encoder, or an approximate search."""
    request, facts = findings.requests[0], [table.facts for table in findings.tables]
    lines = [locale.text(why)] if (why := why_no_suspects(findings.table)) else []
    if one.are_twins:
        lines += map(locale.text, one.facts(findings.table))
    if one.key == FALSE_NEGATIVES:
        lines.append(_margin(findings))
    if one.rests_on == "losses":
        card = cache.catalog()["losses"].get(request.loss, {})
        if card.get("per_sample") == "none":
            text = _("{title} has no value per sample: all samples share the batch's value, so this list has no order.")
            lines.append(text.format(title=card.get("title", request.loss)))
        if most := next((f["loss_candidates"] for f in facts if "loss_candidates" in f), None):
            text = _("Each loss is computed among {most} random samples, because this set is large.")
            lines.append(text.format(most=f"{most:,.0f}"))
    else:
        if by := request.by:
            text = _("This list uses the encoder of {name}. Losses and nearest images come from the run's own encoder.")
            lines.append(text.format(name=by))
        if recalls := [f["neighbors_recall"] for f in facts if "neighbors_recall" in f]:
            text = _("The neighbors come from an approximate search that finds {recall} of them.")
            lines.append(text.format(recall=f"{100 * min(recalls):.0f} %"))
    for line in lines:
        st.caption(format.plain(line))


def _margin(findings: Findings) -> str:
    """Describe which pairs of the list a relative margin would leave out as negatives, also of the decided ones."""
    table = findings.table
    is_out, listed = table.extra["twin_cosine"] > SHARE * table.extra["own_cosine"], table.ranked(FALSE_NEGATIVES)
    counts = {"out": int(is_out[listed].sum()), "listed": len(listed), "share": SHARE}
    for name, choice in (("match", "relabel"), ("other", "keep")):
        of_choice = [sample for sample, mark in findings.marked.items() if mark["what"] == choice]
        rows = np.isin(table.columns["id"], of_choice)
        counts |= {f"{name}_out": int(is_out[rows].sum()), name: int(rows.sum())}
    text = _(
        "A relative margin of {share} (TopK-PercPos) leaves out {out} of these {listed} pairs. Of those you decided, "
        "it leaves out {match_out} of {match} matches and {other_out} of {other} others."
    )
    return text.format(**counts)


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
    others = classes if "suggested" in table.extra and len(classes) > 1 else []
    if others and (some := query_params.many_of(st.multiselect, _("Suggested classes"), others, name="suggested")):
        keep &= np.isin(table.extra["suggested"][rows], some)
    if others:
        of_rows = _both(table, rows)
        shown = {"": _("All pairs")} | {pair: f"{pair} · {n:,}" for pair, n in Counter(of_rows).most_common() if pair}
        box, label = st.selectbox, _("Label → suggestion")
        if pair := query_params.one_of(box, label, shown, name="pair", format_func=shown.get, on_change=go_to):
            keep &= np.array([one == pair for one in of_rows], bool)
    loss = columns["loss"][rows]
    finite = loss[np.isfinite(loss)]
    if len(finite) and finite.min() < finite.max():
        ends = (float(finite.min()), float(finite.max()))
        low, high = st.slider(_("Loss"), *ends, ends, key=f"loss-{cache.digest(table.loss, ends)}")
        keep &= ~np.isfinite(loss) | ((loss >= low) & (loss <= high))
    if "correct" in table.extra:
        words = (_("its label"), "another")
        keep &= np.isin(table.extra["correct"][rows], _yes_or_no(_("Probe says"), "probe", words))
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


def _choose_pair(pair: str) -> None:
    query_params.choose(query_params.key_of("pair"), pair, in_popover=True)
    go_to()


def show_narrowed(table: SampleTable) -> None:
    """Draw a button that ends each choice that leaves only a few samples on the list."""
    pair, near = query_params.page_values().get(query_params.key_of("pair")), query_params.kept_value("near")
    buttons: list[tuple[str, Callable[..., None], str | None]] = []
    if pair and "suggested" in table.extra:
        buttons.append((f"{pair} ✕", _choose_pair, ""))
    if near and table.row(near) is not None:
        buttons.append((_("Nearest to {sample} ✕").format(sample=Path(near).name), look_near, None))
    if picture := own_picture():
        buttons.append((_("Nearest to {sample} ✕").format(sample=format.plain(picture[0])), forget_picture, None))
    line = st.container(horizontal=True) if buttons else st
    for text, act, none in buttons:
        line.button(text, on_click=act, args=(none,))


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
            _choose_pair(pair if pairs[pair] else "")

    with st.expander(_("Suspects by label and suggested class")):
        listed = [{_("label"): a} | {f"→ {b}": pairs[f"{a} → {b}"] for b in names} for a in names]
        draw_table(listed, hide_index=True, key=key, on_select=clicked, selection_mode="single-cell")
        text = _(
            "Rows are the labels, columns the suggested classes. Click a cell to show only its samples in the list."
        )
        st.caption(text)


def _yes_or_no(label: str, name: str, words: tuple[str, str] = ("yes", "no")) -> list[bool]:
    """Draw a filter; return the values that pass it: both if nothing is chosen."""
    choice = query_params.one_or_none(st.segmented_control, label, words, name=name)
    return [True, False] if choice is None else [choice == words[0]]


def show_files(findings: Findings, rows: np.ndarray, place: Any) -> None:
    """Draw downloads of the list with all columns."""
    types = {column: TYPES.get(column, "string") for column in next(listed(findings, rows[:1]), {})}
    download, key = partial(place.download_button, on_click="ignore", width="stretch"), findings.list.key
    download(_("This list as CSV"), lambda: format.table_csv(listed(findings, rows)), f"{key}.csv", "text/csv")
    kind, content = "application/vnd.apache.parquet", lambda: storage.parquet_of(listed(findings, rows), types)
    download(_("As Parquet"), content, f"{key}.parquet", kind)


def listed(findings: Findings, rows: np.ndarray, first: int = 1) -> Iterator[Cells]:
    """Yield a list's rows as plain values, one by one, since there may be a million; `first`: the first rank."""
    table, marked, one = findings.table, findings.marked, findings.list
    columns, score, likely = table.columns, table.score(one.column), one.column == "mislabeled"
    called = "probability_wrong" if likely else "score"  # the first as in new_labels.csv
    done = {choice.what: choice.done if one.decisions else choice.what for choice in one.choices}
    for place, r in enumerate(rows.tolist(), first):
        sample, (_request, own, at) = findings.id(r), findings.of(r)
        mark = marked.get(sample, {})
        decision = done.get(str(mark.get("what")), "")
        given: Cells = {called: decimals(float(score[r])) if likely else round(float(score[r]), 5)}
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
    page, pages = 1, -(-len(rows) // ROWS)
    if pages > 1:
        label = _("Page of {pages}").format(pages=f"{pages:,}")
        key = f"samples-page-{cache.digest(findings.list.key, len(rows))}"
        page = query_params.number(st.number_input, label, 1, pages, name="page", default=1, key=key, width=160)
    before = (page - 1) * ROWS
    shown = rows[before : before + ROWS]
    key = f"samples-table-{page}"

    def chosen() -> None:
        if picked := st.session_state[key]["selection"]["rows"]:
            go_to(findings.id(shown[picked[0]]))

    columns = {"why": st.column_config.TextColumn(width="large")}
    if findings.table.towers[0]:
        columns |= {name: st.column_config.NumberColumn(help=_(OWN_RANK)) for name in ("own rank", "own rank back")}
    table = [*listed(findings, shown, before + 1)]
    draw_table(table, columns, key=key, on_select=chosen, hide_index=True, height=460, selection_mode="single-row")
    if pages > 1:
        first, last, every = (f"{n:,}" for n in (before + 1, before + len(shown), len(rows)))
        text = _("Rows {before} to {last} of {rows}; the files contain all.")
        st.caption(text.format(before=first, last=last, rows=every))


# --- the cut-off --------------------------------------------------------------------------------


def above(findings: Findings, rows: np.ndarray, every: bool, audit: LabelAudit | None) -> np.ndarray:
    """Draw the cut-off; return the rows above it, or all if there are none or `every` is set."""
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
        is_over |= _gone_through(table, rows, is_over, np.isfinite(audit.wrong), (key, cut))
    return rows if every or not is_over.any() else rows[is_over]


def _gone_through(
    table: SampleTable, rows: np.ndarray, is_over: np.ndarray, decided: np.ndarray, key: tuple[str, float]
) -> np.ndarray:
    """Return which rows (m) stay on the list: those decided up to the current sample, and this one. Decisions lower the
    others' probabilities, but the list does not end before the current sample."""
    last, most = st.session_state.get(LISTED, (key, 0))
    most = max(int(np.flatnonzero(is_over).max(initial=-1)) + 1, most if last == key else 0)
    st.session_state[LISTED] = (key, most)
    row, stay = table.row(st.session_state.get(AT) or ""), np.zeros(len(rows), bool)
    for place in np.flatnonzero(rows[:most] == row) if row is not None else ():
        stay[: place + 1] = decided[rows[: place + 1]]
        stay[place] = True
    return stay


@st.cache_resource(max_entries=8, show_spinner=False)
def _said_of_cuts(key: str, language: str, _score: np.ndarray) -> tuple[list[int], list[str]]:
    """Return the histogram, and the text at each cut-off; cached, because there may be a million scores."""
    text, over = _("{count} with P(wrong) > {cut}"), [int((_score > cut).sum()) for cut in CUTS]
    return counts(_score), [text.format(count=f"{n:,}", cut=f"{cut:.2f}") for n, cut in zip(over, CUTS, strict=True)]


def counts(score: np.ndarray) -> list[int]:
    """Count the scores in each bin; a score equal to a cut is below it."""
    places = np.clip(np.ceil(score * (len(CUTS) - 1) - 1e-9).astype(int) - 1, 0, len(CUTS) - 2)
    return np.bincount(places, minlength=len(CUTS) - 1).tolist()  # type: ignore[no-any-return]
