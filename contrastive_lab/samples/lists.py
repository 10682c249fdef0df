"""The lists of the Samples page: which one, filtered how, as a table and as pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.records.files import tables
from contrastive_core.records.sample_table import LISTS, SampleTable, decimals, reason
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.current_sample import go_to
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.table_picker import Pictures
from contrastive_lab.tables import draw_table

VOTERS = {
    "loss": N_("The loss"),
    "neighbors": N_("Neighbors"),
    "probe": N_("Probe"),
    "scaled_probe": N_("Scaled probe"),
    "discriminant": N_("Discriminant"),
}
PAGE = 60  # pictures at once
NEAR = 0.9  # a duplicate's 1 − d₁/d₂₀: a tenth of the distance that is usual here
ROWS = 2000  # of a page of the table; the files have all
TYPES = {
    "place": "int64",
    "rank": "int64",
    "score": "float64",
    "probability_wrong": "float64",
    "loss": "float64",
}  # of a file's columns; of the others "string"


def pick(table: SampleTable) -> str:
    """The name of the list, kept in the address."""
    names = [n for n in LISTS if len(table.ranked(n))]
    name = query_params.one_of(
        st.pills,
        _("List"),
        names,
        name="list",
        format_func=lambda n: LISTS[n][0],
        on_change=lambda: go_to(None),
        label_visibility="collapsed",
    )
    return name


def order(table: SampleTable, name: str) -> np.ndarray:
    """The rows of a list; likely wrong labels by all voters together, or by one of them."""
    voters = [v for v in VOTERS if f"wrong_by_{v}" in table.extra]
    split = table.extra["split"]
    if name == "loss" and (split != split[:1]).any():
        return by_place(table)
    if name != "mislabeled" or not voters:
        return table.ranked(name)
    voter = query_params.one_of(
        st.segmented_control,
        _("Ordered by"),
        [N_("all voters"), *voters],
        name="voter",
        format_func=lambda v: VOTERS.get(v, "All voters"),
        on_change=lambda: go_to(None),
    )
    return table.ranked(name if voter not in voters else f"wrong_by_{voter}")


def by_place(table: SampleTable) -> np.ndarray:
    """The rows by loss, each by its place among those of its own split: a loss against more samples
    is a higher one."""
    share, split = np.full(len(table), np.nan), table.extra["split"]
    for name in np.unique(split):
        some = (split == name) & np.isfinite(table.columns["loss"])
        share[some] = table.columns["rank"][some] / max(1, some.sum())
    order = np.argsort(np.where(np.isfinite(share), share, np.inf), kind="stable")
    return np.asarray(order[np.isfinite(share[order])])


def show_explanation(table: SampleTable, name: str, method: str) -> None:
    """How the list is made, and what is known of the whole set beside it; `method` trained the
    encoder ("": none)."""
    facts, lines = table.facts, [LISTS[name][1]]
    methods = cache.catalog()["methods"]
    if name == "mislabeled" and method in methods and methods[method]["needs_labels"]:
        lines.append(
            _(
                "This encoder was trained with the labels: mistakes that it has learned by heart "
                "stay hidden. An encoder trained without labels has no such blind spot."
            )
        )
    if name == "duplicate":
        near = table.extra["nearness"] > NEAR
        leaks = int((near & table.extra["leaked"]).sum())
        lines.append(
            _(
                "{sum} are at most a tenth as far from one as from their 20th neighbor; of these {leaks} cross splits."
            ).format(sum=f"{int(near.sum()):,}", leaks=f"{leaks:,}")
        )
    if name == "false_negative" and "false_negatives_of_same_class" in facts:
        share = 100 * facts["false_negatives_of_same_class"]
        lines.append(
            _("Of the 5 % pushed hardest, {share} % share the class of what they meet.").format(share=f"{share:.0f}")
        )
    if name == "loss":
        lines += _facts_of_losses(table)
    for line in lines:
        st.caption(locale.text(line))


def _facts_of_losses(table: SampleTable) -> list[str]:
    """Where the spread of losses comes from, and what the losses are in batches."""
    facts, lines = table.facts, []
    if "variance_share" in facts:
        share = 100 * facts["variance_share"]
        lines.append(
            _(
                "Of the spread of losses, {share} % comes from augmentation (another draw of the "
                "same image), {rest} % from the samples."
            ).format(share=f"{share:.0f}", rest=f"{100 - share:.0f}")
        )
    if "loss_in_batches" in table.extra:
        exact, batched = (float(np.nanmean(v)) for v in (table.columns["loss"], table.extra["loss_in_batches"]))
        lines.append(
            _("Mean loss {exact} against all samples; {batched} in batches like training's.").format(
                exact=f"{exact:.3f}", batched=f"{batched:.3f}"
            )
        )
    return lines


def show_precision(tables: Sequence[SampleTable], name: str) -> None:
    """How many of the nearest rows were found, where not all were looked at; from what the losses
    of a list were estimated, and how far off they are where they were checked; and that there are
    none, where a set is too large for a loss without an estimate."""
    for table in tables:
        facts, n = table.facts, len(table)
        if name != "loss" and "neighbors_recall" in facts:
            st.caption(
                _(
                    "The nearest of these {n} images were looked for among some likely ones, which finds "
                    "{neighbors_recall} of them."
                ).format(n=f"{n:,}", neighbors_recall=f"{facts['neighbors_recall']:.0%}")
            )
        if "exact_up_to" in facts:
            title, most = cache.catalog()["losses"][table.loss]["title"], int(facts["exact_up_to"])
            st.caption(
                _(
                    "{title} is exact only up to {most} images, and cannot be estimated from some of "
                    "them: these {n} have no losses. Another loss can be chosen above."
                ).format(title=title, most=f"{most:,}", n=f"{n:,}")
            )
        elif name == "loss" and facts.get("estimate_checked"):
            number, checked = int(facts["estimate_candidates"]), int(facts["estimate_checked"])
            off, bias = facts["estimate_off"], facts["estimate_bias"]
            ranks = facts["estimate_correlation"]
            st.caption(
                _(
                    "Losses of these {n} images are estimated from {candidates} candidates each: off by "
                    "{off} at most for 95 % of {checked} checked, by {bias} on average; rank correlation "
                    "with the exact ones {ranks}."
                ).format(
                    n=f"{n:,}",
                    candidates=f"{number:,}",
                    off=f"{off:.2g}",
                    checked=f"{checked:,}",
                    bias=f"{bias:+.1g}",
                    ranks=f"{ranks:.4f}",
                )
            )


def filtered(table: SampleTable, rows: np.ndarray, marked: dict[str, Any], followed: np.ndarray | None) -> np.ndarray:
    """The rows of a list that pass the filters; followed: (n) bool, those that snapshots follow,
    None where they follow all or none."""
    columns, keep = table.columns, np.ones(len(rows), bool)
    classes = list(table.labels)
    a, b, c, d = st.columns([3, 3, 2, 2])
    chosen_classes = []
    if len(classes) > 1:
        chosen_classes = query_params.many_of(a.multiselect, _("Classes"), classes, name="classes")
    if chosen_classes:
        keep &= np.isin(columns["label"][rows], chosen_classes)
    loss = columns["loss"][rows]
    finite = loss[np.isfinite(loss)]
    if len(finite) and finite.min() < finite.max():
        ends = (float(finite.min()), float(finite.max()))
        low, high = b.slider(_("Loss"), *ends, ends, key=f"loss-{cache.digest(table.loss, ends)}")
        keep &= ~np.isfinite(loss) | ((loss >= low) & (loss <= high))
    if "correct" in table.extra:
        probe = yes_or_no(c, _("Probe says"), "probe", (_("its label"), "another"))
        keep &= np.isin(table.extra["correct"][rows], probe)
    has = np.isin(columns["id"][rows], list(marked)) if marked else np.zeros(len(rows), bool)
    keep &= np.isin(has, yes_or_no(d, "Decided", "marked"))
    if followed is not None:
        inside = yes_or_no(d, _("In the run's snapshots"), "followed")
        keep &= np.isin(followed[rows], inside)
    if not keep.all():
        st.caption(_("The filter leaves {sum} of {rows}.").format(sum=f"{int(keep.sum()):,}", rows=f"{len(rows):,}"))
    return rows[keep]


def yes_or_no(place: Any, label: str, name: str, words: tuple[str, str] = ("yes", "no")) -> list[bool]:
    """The values that pass a filter: both where nothing is chosen."""
    choice = query_params.one_of(place.segmented_control, label, words, name=name, optional=True)
    return [True, False] if choice is None else [choice == words[0]]


def show(findings: Findings, name: str, rows: np.ndarray, at: str, pictures: Pictures) -> None:
    """The list as pictures or as a table; a click brings a sample to hand."""
    line = st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute")
    with line:
        how = query_params.one_of(st.segmented_control, _("As"), ["pictures", "table"], name="as", width="content")
    files = line.container(horizontal=True, width="content")
    files.download_button(
        _("This list as CSV"), lambda: format.table_csv(listed(findings, name, rows)), f"{name}.csv", "text/csv"
    )
    files.download_button(
        _("As Parquet"), lambda: as_parquet(findings, name, rows), f"{name}.parquet", "application/vnd.apache.parquet"
    )
    if how == "table":
        as_table(findings, name, rows)
    else:
        as_pictures(findings, name, rows, at, pictures)


def as_parquet(findings: Findings, name: str, rows: np.ndarray) -> bytes:
    first = next(listed(findings, name, rows[:1]), {})
    types = {column: TYPES.get(column, "string") for column in first}
    return tables.parquet_of(listed(findings, name, rows), types)


def listed(findings: Findings, name: str, rows: np.ndarray, first: int = 1) -> Iterator[dict[str, Any]]:
    """Plain values of a list's rows, one after the other: a million of them are never held.

    Args: first: the place of the first of them.
    """
    table, marked = findings.table, findings.marked
    columns, score = table.columns, table.score(name)
    likely = name == "mislabeled"
    called = "probability_wrong" if likely else "score"  # the first as in new_labels.csv
    for place, r in enumerate(rows, first):
        yield {
            "place": place,
            "id": str(columns["id"][r]),
            "split": str(table.extra["split"][r]),
            "label": str(columns["label"][r]),
            called: decimals(float(score[r])) if likely else round(float(score[r]), 5),
            "loss": round(float(columns["loss"][r]), 5),
            "rank": int(columns["rank"][r]),
            "decision": marked.get(str(columns["id"][r]), {}).get("what", ""),
            "why": reason_of(findings, name, int(r)),
        }


def reason_of(findings: Findings, name: str, row: int) -> str:
    _unused, table, at = findings.of(row)
    return reason(table, name, at)


def as_table(findings: Findings, name: str, rows: np.ndarray) -> None:
    table, page, pages = findings.table, 1, -(-len(rows) // ROWS)
    if pages > 1:
        page = query_params.number(
            st.number_input,
            _("Page of {pages}").format(pages=f"{pages:,}"),
            1,
            pages,
            name="page",
            default=1,
            key=f"samples-page-{cache.digest(name, len(rows))}",
            width=160,
        )
    before = (page - 1) * ROWS
    shown = rows[before : before + ROWS]
    key = f"samples-table-{page}"

    def chosen() -> None:
        picked_rows = st.session_state[key]["selection"]["rows"]
        if picked_rows:
            go_to(str(table.columns["id"][shown[picked_rows[0]]]))

    draw_table(
        list(listed(findings, name, shown, before + 1)),
        hide_index=True,
        height=460,
        key=key,
        on_select=chosen,
        selection_mode="single-row",
        column_config={"why": st.column_config.TextColumn(width="large")},
    )
    if pages > 1:
        last = before + len(shown)
        st.caption(
            _("Rows {before} to {last} of {rows}; the files have all.").format(
                before=f"{before + 1:,}", last=f"{last:,}", rows=f"{len(rows):,}"
            )
        )


def as_pictures(findings: Findings, name: str, rows: np.ndarray, at: str, pictures: Pictures) -> None:
    table, marked = findings.table, findings.marked
    found = np.flatnonzero(table.columns["id"][rows] == at)
    place = int(found[0]) if len(found) else 0
    first = place // PAGE * PAGE
    here = rows[first : first + PAGE]
    part = [str(i) for i in table.columns["id"][here]]
    own, splits = (list(map(str, table.extra[k][here])) for k in ("own_id", "split"))
    images = pictures.stack(own, splits)
    if images is None:
        as_table(findings, name, rows)
        return
    badged = len(findings.requests) > 1
    captions = []
    for q, (sample, row) in enumerate(zip(part, here, strict=True), first + 1):
        words = [str(table.columns["label"][row]), marked.get(sample, {}).get("what", "")]
        words += [str(table.extra["split"][row])] if badged else []
        captions.append(f"{q}. {' · '.join(filter(None, words))}")
    lit = [place - first] if len(found) else []
    n_marked = sum(bool(marked.get(i)) for i in part)
    picked = draw_gallery(
        images,
        captions,
        selected=lit,
        title=_("samples of the list"),
        key=f"samples-{cache.digest(part, at, n_marked)}",
    )
    if other := [q for q in picked if q not in lit]:
        go_to(part[other[-1]])
        st.rerun()
