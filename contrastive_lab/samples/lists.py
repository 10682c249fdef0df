"""The lists of the Samples page: which one, filtered how, as a table and as pictures."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.records import tables
from contrastive_core.records.sample_table import LISTS, SampleTable, decimals, reason
from contrastive_lab import cache, format, locale, number_inputs, query_params
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.current_sample import RANDOM, go_to
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.label_audit import HOW, TITLE
from contrastive_lab.tables import draw_table

VOTERS = {"all voters": N_("All voters"), "loss": N_("The loss"), "neighbors": N_("Neighbors"), "probe": N_("Probe")}
VOTERS |= {"scaled_probe": N_("Scaled probe"), "discriminant": N_("Discriminant")}
PAGE = 60  # pictures at once
NEAR = 0.9  # a duplicate's 1 − d₁/d₂₀: a tenth of the distance that is usual here
ROWS = 2000  # of a page of the table; the files have all
# Of a file's columns; of the others "string".
TYPES = {"place": "int64", "rank": "int64", "score": "float64", "probability_wrong": "float64", "loss": "float64"}


def pick(table: SampleTable) -> str:
    """The name of the list, kept in the address; random rows are one too, where there are labels."""
    titles = {n: title for n, (title, _how) in LISTS.items() if len(table.ranked(n))}
    titles |= {RANDOM: TITLE} if np.isfinite(table.columns["mislabeled"]).any() else {}
    look: dict[str, Any] = {"format_func": titles.get, "label_visibility": "collapsed"}
    return query_params.one_of(st.pills, _("List"), titles, name="list", on_change=_to_first, **look)


def _to_first() -> None:
    go_to(None)


def order(table: SampleTable, name: str) -> np.ndarray:
    """The rows of a list; likely wrong labels by all voters together, or by one of them."""
    first, *single = VOTERS
    voters = [v for v in single if f"wrong_by_{v}" in table.extra]
    if name == "loss" and (table.extra["split"] != table.extra["split"][:1]).any():
        return by_place(table)
    if name != "mislabeled" or not voters:
        return table.ranked(name)
    options, label = [first, *voters], _("Ordered by")
    voter = query_params.one_of(
        st.segmented_control, label, options, name="voter", format_func=VOTERS.get, on_change=_to_first
    )
    return table.ranked(name if voter == first else f"wrong_by_{voter}")


def by_place(table: SampleTable) -> np.ndarray:
    """The rows by loss, each by its place among those of its own split: a loss against more samples is a higher one."""
    share, split = np.full(len(table), np.nan), table.extra["split"]
    for name in np.unique(split):
        some = (split == name) & np.isfinite(table.columns["loss"])
        share[some] = table.columns["rank"][some] / max(1, some.sum())
    order = np.argsort(share, kind="stable")  # NaN last
    return order[np.isfinite(share[order])]


def show_explanation(table: SampleTable, name: str, method: str) -> None:
    """How the list is made, and what is known of the whole set beside it; `method` trained the encoder ("": none)."""
    facts, extra, lines = table.facts, table.extra, [HOW if name == RANDOM else LISTS[name][1]]
    if name == "mislabeled" and cache.catalog()["methods"].get(method, {}).get("needs_labels"):
        template = _(
            "This encoder was trained with the labels, so wrong labels that it memorized stay hidden. An encoder "
            "trained without labels has no such blind spot."
        )
        lines.append(template)
    if name == "duplicate":
        near = extra["nearness"] > NEAR
        text = _("{sum} have a neighbor at most a tenth as far as their 20th. Of these pairs, {leaks} cross splits.")
        lines.append(text.format(sum=f"{int(near.sum()):,}", leaks=f"{int((near & extra['leaked']).sum()):,}"))
    if name == "false_negative" and "false_negatives_of_same_class" in facts:
        same = f"{100 * facts['false_negatives_of_same_class']:.0f}"
        lines.append(_("Of the 5 % of pairs pushed hardest, {share} % are of the same class.").format(share=same))
    if name == "loss" and "variance_share" in facts:
        share = 100 * facts["variance_share"]
        sentence = _(
            "{share} % of the variance of losses comes from augmentation (another draw of the same image), {rest} % "
            "from the samples."
        )
        lines.append(sentence.format(share=f"{share:.0f}", rest=f"{100 - share:.0f}"))
    if name == "loss" and "loss_in_batches" in extra:
        exact, batched = (f"{float(np.nanmean(v)):.3f}" for v in (table.columns["loss"], extra["loss_in_batches"]))
        text = _("Mean loss {exact} against all samples; {batched} in batches like training's.")
        lines.append(text.format(exact=exact, batched=batched))
    for line in lines:
        st.caption(locale.text(line))


def show_precision(tables: Sequence[SampleTable], name: str) -> None:
    """How many of the nearest rows were found, where not all were looked at; from what the losses
    of a list were estimated, and how far off they are where they were checked; and that there are
    none, where a set is too large for a loss without an estimate."""
    for table in tables:
        facts, n = table.facts, f"{len(table):,}"
        if name != "loss" and "neighbors_recall" in facts:
            text = _(
                "The neighbors of these {n} samples come from an approximate search that finds {neighbors_recall} of "
                "them."
            )
            st.caption(text.format(n=n, neighbors_recall=f"{facts['neighbors_recall']:.0%}"))
        if "exact_up_to" in facts:
            template = _(
                "{title} is exact only up to {most} samples and has no estimate, so these {n} have no losses. Choose "
                "another loss above."
            )
            st.caption(template.format(title=cache.loss_title(table.loss), most=f"{int(facts['exact_up_to']):,}", n=n))
        elif name == "loss" and facts.get("estimate_checked"):
            st.caption(
                _(
                    "Losses of these {n} samples are estimated from {candidates} candidates each. In a check of "
                    "{checked}, 95 % are off by at most {off}, and the mean error is {bias}. Rank correlation with "
                    "the exact losses: {ranks}."
                ).format(
                    n=n,
                    candidates=f"{int(facts['estimate_candidates']):,}",
                    off=f"{facts['estimate_off']:.2g}",
                    checked=f"{int(facts['estimate_checked']):,}",
                    bias=f"{facts['estimate_bias']:+.1g}",
                    ranks=f"{facts['estimate_correlation']:.4f}",
                )
            )


def filtered(findings: Findings, rows: np.ndarray, followed: np.ndarray | None) -> np.ndarray:
    """The rows of a list that pass the filters; `followed`: (n) bool, those in the run's snapshots, if some are."""
    table, keep = findings.table, np.ones(len(rows), bool)
    columns, classes = table.columns, list(table.labels)
    a, b, c, d = st.columns([3, 3, 2, 2])
    if len(classes) > 1 and (some := query_params.many_of(a.multiselect, _("Classes"), classes, name="classes")):
        keep &= np.isin(columns["label"][rows], some)
    loss = columns["loss"][rows]
    finite = loss[np.isfinite(loss)]
    if len(finite) and finite.min() < finite.max():
        ends = (float(finite.min()), float(finite.max()))
        low, high = b.slider(_("Loss"), *ends, ends, key=f"loss-{cache.digest(table.loss, ends)}")
        keep &= ~np.isfinite(loss) | ((loss >= low) & (loss <= high))
    if "correct" in table.extra:
        words = (_("its label"), "another")
        keep &= np.isin(table.extra["correct"][rows], yes_or_no(c, _("Probe says"), "probe", words))
    has = np.isin(columns["id"][rows], list(findings.marked))
    keep &= np.isin(has, yes_or_no(d, "Decided", "marked"))
    if followed is not None:
        keep &= np.isin(followed[rows], yes_or_no(d, _("In the run's snapshots"), "followed"))
    if not keep.all():
        st.caption(_("The filter leaves {sum} of {rows}.").format(sum=f"{int(keep.sum()):,}", rows=f"{len(rows):,}"))
    return rows[keep]


def yes_or_no(place: Any, label: str, name: str, words: tuple[str, str] = ("yes", "no")) -> list[bool]:
    """The values that pass a filter: both where nothing is chosen."""
    choice = query_params.one_or_none(place.segmented_control, label, words, name=name)
    return [True, False] if choice is None else [choice == words[0]]


def show(findings: Findings, name: str, rows: np.ndarray, at: str) -> None:
    """The list as pictures or as a table; a click brings a sample to hand."""
    line = st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute")
    with line:
        how = query_params.one_of(st.segmented_control, _("As"), ["pictures", "table"], name="as", width="content")
    files = line.container(horizontal=True, width="content")
    files.download_button(
        _("This list as CSV"),
        lambda: format.table_csv(listed(findings, name, rows)),
        f"{name}.csv",
        "text/csv",
        on_click="ignore",
    )
    files.download_button(
        _("As Parquet"),
        lambda: as_parquet(findings, name, rows),
        f"{name}.parquet",
        "application/vnd.apache.parquet",
        on_click="ignore",
    )
    if how == "table" or not as_pictures(findings, rows, at):
        as_table(findings, name, rows)


def as_parquet(findings: Findings, name: str, rows: np.ndarray) -> bytes:
    types = {column: TYPES.get(column, "string") for column in next(listed(findings, name, rows[:1]), {})}
    return tables.parquet_of(listed(findings, name, rows), types)


def listed(findings: Findings, name: str, rows: np.ndarray, first: int = 1) -> Iterator[dict[str, Any]]:
    """Plain values of a list's rows, one by one, since there may be a million; `first`: the first one's place."""
    table, marked = findings.table, findings.marked
    columns, score, likely = table.columns, table.score(name), name == "mislabeled"
    called = "probability_wrong" if likely else "score"  # the first as in new_labels.csv
    for place, r in enumerate(rows.tolist(), first):
        sample, (_request, own, at) = findings.id(r), findings.of(r)
        yield {
            "place": place,
            "id": sample,
            "split": str(table.extra["split"][r]),
            "label": str(columns["label"][r]),
            called: decimals(float(score[r])) if likely else round(float(score[r]), 5),
            "loss": round(float(columns["loss"][r]), 5),
            "rank": int(columns["rank"][r]),
            "decision": marked.get(sample, {}).get("what", ""),
            "why": reason(own, name, at),
        }


def as_table(findings: Findings, name: str, rows: np.ndarray) -> None:
    page, pages = 1, -(-len(rows) // ROWS)
    if pages > 1:
        label, key = _("Page of {pages}").format(pages=f"{pages:,}"), f"samples-page-{cache.digest(name, len(rows))}"
        page = number_inputs.number(st.number_input, label, 1, pages, name="page", default=1, key=key, width=160)
    before = (page - 1) * ROWS
    shown = rows[before : before + ROWS]
    key = f"samples-table-{page}"

    def chosen() -> None:
        if picked := st.session_state[key]["selection"]["rows"]:
            go_to(findings.id(shown[picked[0]]))

    columns, cells = {"why": st.column_config.TextColumn(width="large")}, [*listed(findings, name, shown, before + 1)]
    look = {"hide_index": True, "height": 460, "selection_mode": "single-row"}
    draw_table(cells, columns, key=key, on_select=chosen, **look)
    if pages > 1:
        first, last, every = (f"{n:,}" for n in (before + 1, before + len(shown), len(rows)))
        text = _("Rows {before} to {last} of {rows}; the files have all.")
        st.caption(text.format(before=first, last=last, rows=every))


def as_pictures(findings: Findings, rows: np.ndarray, at: str) -> bool:
    """The page of pictures that the sample at hand is on; False where there are none."""
    table, marked = findings.table, findings.marked
    found = np.flatnonzero(table.columns["id"][rows] == at)
    place = int(found[0]) if len(found) else 0
    first = place // PAGE * PAGE
    here = rows[first : first + PAGE]
    images = findings.stack(here)
    if images is None:
        return False
    part, captions = [findings.id(row) for row in here], []
    for q, (sample, row) in enumerate(zip(part, here, strict=True), first + 1):
        words = [str(table.columns["label"][row]), marked.get(sample, {}).get("what", "")]
        words += [str(table.extra["split"][row])] if len(findings.requests) > 1 else []
        captions.append(f"{q}. {' · '.join(filter(None, words))}")
    lit = [place - first] if len(found) else []
    key = f"samples-{cache.digest(part, at, sum(sample in marked for sample in part))}"
    picked = draw_gallery(images, captions, selected=lit, title=_("samples of the list"), key=key)
    if other := [q for q in picked if q not in lit]:
        go_to(part[other[-1]])
        st.rerun()
    return True
