"""Decisions on pairs of two towers: keep, mismatched, true partner; their undo, their files, and retraining."""

from functools import cached_property, partial
from typing import Any

import streamlit as st

from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.pair_lists import PairList, listed
from contrastive_core.records.run import Run
from contrastive_core.records.sample_request import SampleRequest, pair_decisions_path
from contrastive_lab import cache, format, locale, number_inputs
from contrastive_lab.locale import N_, _, ngettext
from contrastive_lab.samples.findings import window
from contrastive_lab.samples.retrain import queue_cleaned, results

WORDS = {  # of each list, in the order of their buttons: what is stored, its words and its key
    "mismatched": (
        ("keep", N_("They belong together"), "k"),
        ("drop", N_("Mismatched"), "m"),
        ("relabel", N_("The other is the true partner"), "t"),
    ),
    "false_negatives": (("keep", N_("They differ"), "k"), ("relabel", N_("It fits the other too"), "t")),
}
COUNTED = {"keep": N_("kept"), "drop": N_("mismatched"), "relabel": N_("with another partner")}


class Decisions:
    """What was decided on the pairs of a list."""

    def __init__(self, space: EmbeddingRef, name: str) -> None:
        self.file, self.name = pair_decisions_path(space, f"pairs-{name}"), name

    @cached_property
    def marks(self) -> dict[str, dict[str, Any]]:
        """By the id of the query."""
        return sample_annotations.marks(self.file)

    def buttons(self, rows: EmbeddingSet, shown: PairList, place: int, name: str) -> None:
        """Decide on the pair at hand, or go to another; each button has a key."""
        query, other = rows.ids[int(shown.query[place])], rows.ids[int(shown.other[place])]
        mark = self.marks.get(query, {}).get("what")
        with st.container(horizontal=True, vertical_alignment="center"):
            for what, words, key in WORDS[name]:
                st.button(
                    locale.text(words),
                    key=f"pair-{what}",
                    shortcut=key,
                    type="primary" if mark == what else "secondary",
                    on_click=self._decide,
                    args=(rows, shown, place, what, other if what == "relabel" else None),
                )
            ids = [rows.ids[int(q)] for q in shown.query]
            back, on = max(place - 1, 0), min(place + 1, len(ids) - 1)
            st.button(_("Back"), key="pair-back", shortcut="Left", disabled=not place, on_click=_go, args=(ids[back],))
            last = place == len(ids) - 1
            st.button(_("Next"), key="pair-next", shortcut="Right", disabled=last, on_click=_go, args=(ids[on],))
            st.button(_("Undo"), key="pair-undo", shortcut="u", disabled=not self.marks, on_click=self._undo)
            st.caption(_("{place} of {n}").format(place=f"{place + 1:,}", n=f"{len(ids):,}"))

    def _decide(self, rows: EmbeddingSet, shown: PairList, place: int, what: str, label: str | None) -> None:
        query, partner = (rows.ids[int(x[place])] for x in (shown.query, shown.partner))
        about = {"given": partner, "suggested": rows.ids[int(shown.other[place])], "list": self.name}
        sample_annotations.add(self.file, query, what, label, by=window()[0], **about)
        if place + 1 < len(shown):
            _go(rows.ids[int(shown.query[place + 1])])

    def _undo(self) -> None:
        if (done := sample_annotations.undo([self.file], *window())) is not None:
            _go(done[1])

    def bar(self, rows: EmbeddingSet, whole: PairList) -> None:
        """How many were decided on, and the file of them."""
        every = [str(mark["what"]) for mark in self.marks.values()]
        parts = [f"{every.count(what):,} {locale.text(COUNTED[what])}" for what, _words, _key in WORDS[self.name]]
        line = st.container(horizontal=True, vertical_alignment="center")
        line.caption(format.plain(_("Decided: {parts}.").format(parts=", ".join(parts))))
        line.download_button(
            _("Decisions as CSV"),
            partial(self._csv, rows, whole),
            f"{self.name}_decisions.csv",
            "text/csv",
            icon=":material/download:",
            disabled=not every,
            on_click="ignore",
        )

    def _csv(self, rows: EmbeddingSet, whole: PairList) -> str:
        return format.table_csv(one for one in listed(rows, whole, self.marks) if one["decision"])

    def retrain(self, request: SampleRequest) -> None:
        """Train a run again without the mismatched pairs; of vectors, the files only."""
        run = request.run
        done = sample_annotations.changes(self.file, run, "partner")
        changed = done.dropped + done.relabeled
        if run is None and not changed:
            return
        label = _("Train again without the mismatched pairs") if run is not None else _("Files of your decisions")
        with st.expander(label, expanded=bool(changed)):
            for option, content in done.files.items() if changed else ():
                name = f"{option}.csv"
                st.download_button(name, content, name, "text/csv", icon=":material/download:", on_click="ignore")
            if run is None:
                st.caption(_("They list which pairs to leave out or to change."))
            elif request.split != "train":
                st.caption(_("Only training pairs can be left out of training. Choose the training split above."))
            else:
                self._start(run, changed)
        if run is not None and request.split == "train":
            results(run)

    def _start(self, run: Run, changed: int) -> None:
        key, default = f"pair-epochs-{cache.digest(run.name)}", int(run.config.get("epochs") or 20)
        a, b = st.columns([1, 2], vertical_alignment="bottom")
        epochs = number_inputs.number(
            a.number_input, _("Epochs"), 1, 10_000, name="pair-epochs", key=key, default=default
        )
        template = ngettext("Retrain with {n} pair changed", "Retrain with {n} pairs changed", changed)
        label = template.format(n=f"{changed:,}")
        help = None if changed else _("No pair is marked as mismatched or has another partner.")
        begin = partial(b.button, type="primary")
        if number_inputs.button(begin, label, of=[key], disabled=not changed, help=help, icon=":material/replay:"):
            queue_cleaned(run, self.file, epochs)


def _go(query: str) -> None:
    st.session_state["pair-at"] = query
