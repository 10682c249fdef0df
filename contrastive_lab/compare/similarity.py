"""How alike spaces are, and where two of them disagree: samples that one has right, neighbors that one keeps."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from contrastive_core.engine.vectors import overlap
from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.score import recall_text
from contrastive_lab import cache, format, pictures, plots, query_params, state
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.tables import draw_table

MATRIX = 280  # pixels of a matrix; below each other where there is no room beside each other


def alike(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Matrices between the runs, and between the snapshots of one of them."""
    numbers = [str(q) for q in range(1, len(comparison.names) + 1)]
    legend = (f"**{q}** {format.plain(n)}" for q, n in zip(numbers, comparison.names, strict=True))
    st.markdown(" · ".join(legend))
    between = {"cka": comparison.cka, "overlap": comparison.overlap, "procrustes": comparison.procrustes}
    matrices(numbers, between, comparison.k)
    if note := recall_text(comparison.recall):
        st.caption(_("Shared neighbors are of {note}.").format(note=note))
    runs = {run.name: (run, s.layer) for s in spaces if (run := s.run) and len(run.snapshots()) > 1}
    if not runs:
        return
    st.subheader(_("Between the snapshots of one run"))
    name = query_params.one_of(st.selectbox, _("Run"), runs, name="snapshots")
    run, layer = runs[name]
    values = {"run": name, "layer": layer, "epochs": run.snapshots(), "weights": run.weights_hash()}
    if result := answer_or_wait("snapshots", values, message("Comparing the snapshots")):
        st.caption(_("Rows and columns are epochs."))
        matrices([str(e) for e in result.meta["epochs"]], result.arrays, result.meta["k"], name)


READINGS = {
    "cka": (N_("Linear CKA (debiased)"), N_("1: the same up to turning and scaling, 0: unrelated.")),
    "overlap": (N_("Shared neighbors"), N_("Share of the {k} nearest that two spaces have in common.")),
    "procrustes": (N_("Procrustes distance"), N_("0: one can be turned into the other, 1: not at all.")),
}


def matrices(names: list[str], values: dict[str, np.ndarray], k: int, of: str = "") -> None:
    row = st.container(horizontal=True)
    for key, (title, reading) in READINGS.items():
        with row.container(width=MATRIX, gap="xsmall"):
            st.markdown(f"**{_(title)}**")
            figure = plots.matrix(values[key], names, names, reverse=key == "procrustes")
            st.plotly_chart(figure, key=f"{key}-{cache.digest(of)}")
            st.caption(_(reading).format(k=k))


# --- where two disagree --------------------------------------------------------------------------


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
        rows, labels = cache.embedding(self.space), self.comparison.labels
        if labels is None or rows is None:
            return [""] * len(self.comparison.ids)
        return [rows.class_name(int(label)) for label in labels]

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


def disagree(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Choose A, B and what they disagree on."""
    a, b = st.columns(2)
    names, samples = comparison.names, ComparedSamples(spaces[0], comparison)
    first = query_params.one_of(a.selectbox, "A", names, name="a")
    second = query_params.one_of(b.selectbox, "B", [n for n in names if n != first], name="b")
    i, j = names.index(first), names.index(second)
    ways = WAYS if comparison.right is not None else ()
    way = query_params.one_of(st.segmented_control, _("They disagree on"), [*ways, NEIGHBORS], name="disagree")
    if comparison.right is None or way == NEIGHBORS:
        _neighbors(samples, i, j)
        return
    one, two = comparison.right[i], comparison.right[j]
    rows = np.flatnonzero([one & ~two, two & ~one, ~one & ~two][WAYS.index(way)])
    question = _("{first} and {second} both wrong").format(first=first, second=second)
    if way != "Both wrong":
        right, wrong = (second, first) if way.startswith("B") else (first, second)
        question = _("{right} right, {wrong} wrong").format(right=right, wrong=wrong)
    text = _("**{count} samples**: {question}.")
    st.markdown(text.format(count=f"{len(rows):,}", question=format.plain(question)))
    if len(rows):
        _gallery(samples, rows, f"{first} {second} {way}")


def _gallery(samples: ComparedSamples, rows: np.ndarray, key: str) -> None:
    """Pictures of samples; the chosen ones are selected on all pages."""
    shown, classes = rows[:SHOWN], samples.classes
    if pictures.are_decoded(samples.space):
        captions = [f"{classes[r]}\n{name}" for r, name in zip(shown, samples.ids(shown), strict=True)]
        picked = draw_gallery(samples.images(shown), captions, title=key, key=f"gallery-{cache.digest(key)}")
        if picked:
            st.button(_("Select these on the maps"), on_click=samples.select, args=(shown[picked],))
    else:
        draw_table([{"id": name} for name in samples.ids(shown)], hide_index=True)
    if len(rows) > SHOWN:
        st.caption(_("{shown} of {rows} are shown.").format(shown=SHOWN, rows=f"{len(rows):,}"))
    line = st.container(horizontal=True)
    listed = [{"id": name, "class": classes[r]} for r, name in zip(rows, samples.ids(rows), strict=True)]
    line.download_button(_("These samples as CSV"), format.table_csv(listed), "disagree.csv", "text/csv")
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
