"""Where two spaces disagree: classes and samples that one has right, and neighbors that one keeps."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine.vectors import overlap
from contrastive_core.records.comparison import ACCURACIES, Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_lab import cache, format, pictures, query_params, state
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import N_, _
from contrastive_lab.tables import draw_table

SHOWN = 60

WAYS = (N_("A right, B wrong"), N_("B right, A wrong"), N_("Both wrong"))
NEIGHBORS = N_("Neighbors")


@dataclass(frozen=True, eq=False)
class ComparedSamples:
    """The samples of a comparison as rows of the first of its spaces, by their numbers in it."""

    space: EmbeddingRef
    comparison: Comparison

    @cached_property
    def places(self) -> dict[str, int]:
        """The row of each sample."""
        rows = cache.embedding(self.space)
        return {name: q for q, name in enumerate(self.comparison.ids if rows is None else rows.ids)}

    @cached_property
    def classes(self) -> list[str]:
        """The class of each sample; "" where it has none."""
        labels = self.comparison.labels
        return [""] * len(self.comparison.ids) if labels is None else [self.class_name(int(c)) for c in labels]

    def class_name(self, label: int) -> str:
        """The name of a class; "–" where a label is missing."""
        rows = cache.embedding(self.space)
        return "–" if label < 0 else str(label) if rows is None else rows.class_name(label)

    def table(self, some: np.ndarray, i: int, j: int, metric: str) -> list[dict[str, Any]]:
        """Label, predictions of spaces i and j, columns such as a text, and id of some samples."""
        rows, predicted = cache.embedding(self.space), self.comparison.predicted.get(metric)
        table = []
        for row, name in zip(some.tolist(), self.ids(some), strict=True):
            said = ("", "") if predicted is None else [self.class_name(int(c)) for c in predicted[[i, j], row]]
            own = {} if rows is None else {k: v[self.places[name]].item() for k, v in rows.columns.items()}
            table.append({"class": self.classes[row], "A says": said[0], "B says": said[1], **own, "id": name})
        return table

    def ids(self, some: np.ndarray | list[int]) -> list[str]:
        return [self.comparison.ids[i] for i in some]

    def images(self, some: np.ndarray | list[int]) -> np.ndarray:
        """Images (n, c, h, w)."""
        every = pictures.of(self.space)
        return np.stack([every[self.places[name]] for name in self.ids(some)])

    def select(self, some: np.ndarray | list[int]) -> None:
        """Select them on all pages."""
        state.select([self.places[name] for name in self.ids(some)], state.place_of(self.space))
        st.toast(_("{rows} selected, on all pages").format(rows=f"{len(some):,}"))


def _pair(samples: ComparedSamples) -> tuple[int, int, str]:
    """Choose A, B and the accuracy by which they are compared ("" where there is none): numbers and its name."""
    a, b, c = st.columns([2, 2, 1], vertical_alignment="bottom")
    names, known = samples.comparison.names, samples.comparison.correct
    first = query_params.one_of(a.selectbox, "A", names, name="a")
    second = query_params.one_of(b.selectbox, "B", [n for n in names if n != first], name="b")
    metric = ""
    if known:
        metric = query_params.one_of(c.selectbox, _("By"), known, name="by", format_func=ACCURACIES.get)
    return names.index(first), names.index(second), metric


def classes(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """The difference between two spaces for each class, the largest first."""
    samples = ComparedSamples(spaces[0], comparison)
    i, j, metric = _pair(samples)
    if not metric:
        st.info(_("Differences by class need labels."))
        return
    table = [
        {
            "class": samples.class_name(d.label),
            "n": d.n,
            "A, %": round(100 * d.accuracies[0], 1),
            "B, %": round(100 * d.accuracies[1], 1),
            N_("A − B, points"): round(100 * d.value, 1),
            "95 %": format.interval((100 * d.interval[0], 100 * d.interval[1]), "+.1f"),
        }
        for d in comparison.by_class(metric, i, j)
    ]
    one = partial(st.column_config.NumberColumn, format="%.1f")
    formats = {"A, %": one(), "B, %": one(), "A − B, points": one(format="%+.1f")}
    draw_table(table, hide_index=True, column_config=formats)
    by_chance = _(
        "{accuracy} on the samples of each class. Each interval is a separate 95 % interval (Agresti–Min, over "
        "samples, not seeds): about one class in twenty excludes zero by chance."
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(by_chance.format(accuracy=_(ACCURACIES[metric])))
        st.download_button(_("Table as CSV"), format.table_csv(table), "classes.csv", "text/csv", on_click="ignore")


def disagree(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Choose A, B and what they disagree on."""
    samples = ComparedSamples(spaces[0], comparison)
    i, j, metric = _pair(samples)
    ways = _ways(comparison, i, j, metric)
    way = _choose_way(ways, f"disagree-{cache.digest(*comparison.names, i, j, metric)}")
    if way == NEIGHBORS:
        _neighbors(samples, i, j)
        return
    rows = ways[way]
    first, second = comparison.names[i], comparison.names[j]
    question = _("{first} and {second} both wrong").format(first=first, second=second)
    if way != "Both wrong":
        right, wrong = (second, first) if way.startswith("B") else (first, second)
        question = _("{right} right, {wrong} wrong").format(right=right, wrong=wrong)
    text = _("**{count} of {judged} samples**: {question}.")
    counts = {"count": f"{len(rows):,}", "judged": f"{comparison.judged[metric].sum():,}"}
    st.markdown(text.format(question=format.plain(question), **counts))
    if len(rows):
        _listed(samples, rows, (i, j, metric), f"{first} {second} {metric} {way}")


def _ways(comparison: Comparison, i: int, j: int, metric: str) -> dict[str, np.ndarray]:
    """The samples of each way in which spaces i and j are wrong; {} without an accuracy."""
    if not metric:
        return {}
    one, two = comparison.correct[metric][[i, j]]
    found = (one & ~two, two & ~one, ~one & ~two)
    return {way: np.flatnonzero(comparison.judged[metric] & rows) for way, rows in zip(WAYS, found, strict=True)}


def _choose_way(ways: dict[str, np.ndarray], key: str) -> str:
    """What is looked at, at first what has samples; each name has its count."""
    counted = {way: f"{_(way)} ({len(rows):,})" for way, rows in ways.items()}
    return query_params.one_of(
        st.segmented_control,
        _("They disagree on"),
        [*ways, NEIGHBORS],
        name="disagree",
        default=next((way for way, rows in ways.items() if len(rows)), NEIGHBORS),
        key=key,
        format_func=lambda way: counted.get(way, way),
    )


def _listed(samples: ComparedSamples, rows: np.ndarray, pair: tuple[int, int, str], key: str) -> None:
    """Samples with their label, both predictions and their image or text; the chosen ones are selected on all pages."""
    shown = rows[:SHOWN]
    table = samples.table(rows, *pair)
    if pictures.are_decoded(samples.space):
        cells = ([row["class"], f"A: {row['A says']}", f"B: {row['B says']}", row["id"]] for row in table[:SHOWN])
        title = _("Label, predictions of A and B, id")
        picked = draw_gallery(
            samples.images(shown), ["\n".join(c) for c in cells], title=title, key=f"gallery-{cache.digest(key)}"
        )
        if picked:
            st.button(_("Select these on the maps"), on_click=samples.select, args=(shown[picked],))
    else:
        draw_table(table[:SHOWN], hide_index=True)
    if len(rows) > SHOWN:
        st.caption(_("{shown} of {rows} are shown.").format(shown=SHOWN, rows=f"{len(rows):,}"))
    line = st.container(horizontal=True)
    line.download_button(
        _("These samples as CSV"), format.table_csv(table), "disagree.csv", "text/csv", on_click="ignore"
    )
    line.button(_("Select all of these on the maps"), on_click=samples.select, args=(rows,))


def _neighbors(samples: ComparedSamples, i: int, j: int) -> None:
    """Samples whose neighborhoods differ most, and what A keeps and B loses for one of them."""
    comparison = samples.comparison
    ids, first, second = comparison.ids, comparison.names[i], comparison.names[j]
    share = overlap(comparison.graphs[i], comparison.graphs[j])
    both = format.plain(_("{first} and {second}").format(first=first, second=second))
    text = _("Of a sample's {k} nearest, {first} share **{mean} %**. The samples that moved most come first.")
    st.markdown(text.format(k=comparison.k, first=both, mean=f"{100 * share.mean():.0f}"))
    moved, key = np.argsort(share, kind="stable")[:200].tolist(), f"moved-{cache.digest(first, second)}"
    titles = {r: _("{ids}, {share} % shared").format(ids=ids[r], share=f"{100 * share[r]:.0f}") for r in moved}
    row = query_params.one_of(
        st.selectbox, _("Sample"), moved, name="sample", text=ids.__getitem__, key=key, format_func=titles.get
    )
    a, b = comparison.graphs[i][row].tolist(), comparison.graphs[j][row].tolist()
    groups = {
        _("Neighbors in {first} that {second} loses").format(first=first, second=second): [r for r in a if r not in b],
        _("New neighbors in {second}").format(second=second): [r for r in b if r not in a],
        N_("Kept by both"): [r for r in a if r in b],
    }
    for title, rows in groups.items():
        if not rows:
            continue
        st.markdown(f"**{format.plain(title)}** ({len(rows)})")
        if not pictures.are_decoded(samples.space):
            st.text(", ".join(samples.ids(rows)))
            continue
        captions, key = [_("the sample"), *(samples.classes[r] for r in rows)], f"strip-{cache.digest(title, row)}"
        draw_gallery(samples.images([row, *rows]), captions, title=title, size=56, key=key)
