"""Disagreements of A and B: samples that only one of them classifies correctly, samples with other neighbors, and
groups that lie together in one space only."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from contrastive_core.base.memory import overlap
from contrastive_core.compare.comparison import Comparison
from contrastive_core.compare.differences import EXAMPLES, NONE, Differences, differences_request
from contrastive_core.compare.towers import answers_of
from contrastive_core.compare.verdicts import ACCURACIES
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import TEXT
from contrastive_lab import cache, format, locale, pictures, query_params, stage, state, texts
from contrastive_lab.compare.space_picker import A, B
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait

SHOWN = 60
# Ways in which A and B are wrong: as an address names them, and as the page does.
WAYS = {
    "A right, B wrong": N_("only {a} right"),
    "B right, A wrong": N_("only {b} right"),
    "Both wrong": N_("both wrong"),
}
OF_FIGURES = dict(zip(WAYS, (N_("{a} higher"), N_("{b} higher"), N_("both 0")), strict=True))  # such as nDCG@10
OUTCOMES = ("#7A5BD0", "#C99A00", "#64707C", "#B9C1C9", "#E3E7EA")  # only A, only B, both wrong, both right, not judged
NEIGHBORS, GROUPS = N_("Neighbors"), N_("Groups")


@dataclass(frozen=True, eq=False)
class ComparedSamples:
    """The samples of a comparison, as rows of its first space."""

    spaces: Sequence[Space]
    comparison: Comparison
    metric: str  # the accuracy by which they are judged; "" without one

    @property
    def space(self) -> Space:
        """The first space; its rows are the samples."""
        return self.spaces[0]

    @cached_property
    def rows(self) -> EmbeddingSet | None:
        """The rows of the first space; None while they are not embedded."""
        return cache.embedding(self.space)

    @cached_property
    def places(self) -> dict[str, int]:
        """The row of each sample in the first space, by id."""
        return {name: q for q, name in enumerate(self.comparison.ids if self.rows is None else self.rows.ids)}

    @cached_property
    def texts(self) -> np.ndarray | None:
        """The text of each row of the first space; None if the samples are no texts."""
        return None if self.rows is None else self.rows.columns.get(TEXT, self.rows.texts)

    def text(self, name: str) -> str:
        """Return the text of a sample; "" if the samples are no texts."""
        return "" if self.texts is None else str(self.texts[self.places[name]])

    @cached_property
    def classes(self) -> list[str]:
        """The class of each sample; "" for a sample without one."""
        labels = self.comparison.labels
        return [""] * len(self.comparison.ids) if labels is None else [self.class_name(int(c)) for c in labels]

    @cached_property
    def ways(self) -> dict[str, np.ndarray]:
        """The samples by kind of error: only A right, only B right, both wrong; {} without an accuracy."""
        if not self.metric:
            return {}
        one, two = self.comparison.correct[self.metric][:2]
        changed, judged = self.comparison.changed(self.metric), self.comparison.judged[self.metric]
        both_wrong = np.flatnonzero(judged & (one <= 0) & (two <= 0))
        found = changed[(one > two)[changed]], changed[(two > one)[changed]], both_wrong
        return dict(zip(WAYS, found, strict=True))

    def outcomes(self, ids: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...], Sequence[str]]:
        """Return a category for each sample (n) by which of A and B is right, with the categories' names and colors."""
        judged = np.flatnonzero(self.comparison.judged[self.metric])
        code = dict.fromkeys(self.ids(judged), len(WAYS))
        for number, rows in enumerate(self.ways.values()):
            code |= dict.fromkeys(self.ids(rows), number)
        codes = np.array([code.get(name, len(WAYS) + 1) for name in ids])
        alike = _("both the same") if self.is_figure else _("both right")
        names = (*map(self.way_title, WAYS), alike, *([_("not judged")] if len(judged) < len(ids) else []))
        return codes, names, OUTCOMES[: len(names)]

    @property
    def one_right(self) -> int:
        """The number of samples on which exactly one of A and B is right."""
        return sum(len(rows) for way, rows in self.ways.items() if way != "Both wrong")

    @property
    def is_figure(self) -> bool:
        """Return whether samples have a value between 0 and 1, such as nDCG@10, instead of right or wrong."""
        return bool(self.metric) and self.comparison.correct[self.metric].dtype != np.bool_

    def way_title(self, way: str) -> str:
        """Return the displayed name of a kind of error."""
        titles = OF_FIGURES if self.is_figure else WAYS
        return _(titles[way]).format(a=A, b=B) if way in titles else _(way)

    @cached_property
    def shared(self) -> np.ndarray:
        """The share (n) of each sample's nearest neighbors that A and B have in common."""
        return overlap(*self.comparison.graphs[:2])

    def class_name(self, label: int) -> str:
        """Return the name of a class; "–" for a missing label."""
        if label < 0:
            return "–"
        return str(label) if self.rows is None else self.rows.class_name(label)

    def table(self, some: np.ndarray) -> list[dict[str, str | float]]:
        """Return records of some samples: label, predictions or answers of A and B, columns such as a text, and id."""
        predicted, ids = self.comparison.predicted.get(self.metric), self.ids(some)
        if predicted is None:
            sets = map(cache.embedding, self.spaces[:2])
            said = [[""] * len(some) if each is None else answers_of(each, ids) for each in sets]
        else:
            said = [[self.class_name(int(c)) for c in found[some]] for found in predicted[:2]]
        columns, table = {} if self.rows is None else self.rows.columns, []
        for row, name, a, b in zip(some.tolist(), ids, *said, strict=True):
            record: dict[str, str | float] = {} if self.comparison.labels is None else {"class": self.classes[row]}
            if self.is_figure:
                record |= zip("AB", self.comparison.correct[self.metric][:2, row].round(3).tolist(), strict=True)
            record |= {"A says": a, "B says": b}
            record |= {head: values[self.places[name]].item() for head, values in columns.items()}
            table.append(record | {"id": name})
        return table

    def ids(self, some: np.ndarray | list[int]) -> list[str]:
        return [self.comparison.ids[i] for i in some]

    def images(self, some: np.ndarray | list[int]) -> np.ndarray:
        """Return images (n, c, h, w) of some samples."""
        every = pictures.of(self.space)
        return np.asarray(every[np.array([self.places[name] for name in self.ids(some)], np.int64)])

    def lit(self) -> list[int]:
        """Return the selected samples."""
        lit = set(state.selection(state.place_of(self.space)))
        return [q for q, name in enumerate(self.comparison.ids) if lit and self.places[name] in lit]

    def select(self, some: np.ndarray | list[int]) -> None:
        """Select samples on all pages."""
        state.select([self.places[name] for name in self.ids(some)], state.place_of(self.space))
        st.toast(_("{rows} selected, on all pages").format(rows=f"{len(some):,}"))


def disagree(samples: ComparedSamples) -> None:
    """Draw the choice of a kind of disagreement, initially the first kind with samples, and its samples."""
    ways, (picture, side) = samples.ways, stage.columns(is_first=False)
    with side:
        way = query_params.one_of(
            st.radio,
            _("Kind of disagreement"),
            [*ways, NEIGHBORS, GROUPS],
            name="disagree",
            default=next((way for way, rows in ways.items() if len(rows)), NEIGHBORS),
            key=f"disagree-{cache.digest(*samples.comparison.names[:2], samples.metric)}",
            format_func=lambda way: samples.way_title(way) + (f" ({len(ways[way]):,})" if way in ways else ""),
        )
        if way == GROUPS:
            found = _about_groups(samples.spaces[:2])
        elif way == NEIGHBORS:
            row = _choose_moved(samples)
        else:
            _about(samples, way)
    with picture, st.container(key="compare-list"):
        if way == GROUPS:
            _show_groups(samples.spaces[:2], found)
        elif way == NEIGHBORS:
            _neighbors(samples, row)
        else:
            _listed(samples, ways[way], f"{samples.comparison.names} {samples.metric} {way}")


def _about(samples: ComparedSamples, way: str) -> None:
    """Draw the number of samples with a disagreement, their file, and a button that selects them."""
    rows, (first, second) = samples.ways[way], samples.comparison.names[:2]
    text = _("{first} and {second} both 0") if samples.is_figure else _("{first} and {second} both wrong")
    question = text.format(first=first, second=second)
    if way != "Both wrong":
        right, wrong = (second, first) if way.startswith("B") else (first, second)
        text = _("{right} higher than {wrong}") if samples.is_figure else _("{right} right, {wrong} wrong")
        question = text.format(right=right, wrong=wrong)
    text = _("**{count} of {judged} samples**: {question}.")
    if samples.metric not in ACCURACIES:
        text = _("**{count} of {judged} queries**: {question}.")
    judged = samples.comparison.judged[samples.metric].sum()
    counts = {"count": f"{len(rows):,}", "judged": f"{judged:,}"}
    st.markdown(text.format(question=format.plain(question), **counts))
    if len(rows):
        st.download_button(  # made when it is asked for: the answers to many queries take seconds
            _("These samples as CSV"),
            lambda: format.table_csv(samples.table(rows)),
            "disagree.csv",
            "text/csv",
            on_click="ignore",
        )
        label = _("Select all of these on the maps")
        with st.container(key="compare-next"):
            st.button(label, on_click=samples.select, args=(rows,), type="primary", width="stretch")


def _listed(samples: ComparedSamples, rows: np.ndarray, key: str) -> None:
    """Draw samples with label, both predictions and image or text; chosen ones can be selected on all pages."""
    shown = rows[:SHOWN]
    table = samples.table(shown)
    if len(rows) > SHOWN:
        st.caption(_("{shown} of {rows} are shown.").format(shown=SHOWN, rows=f"{len(rows):,}"))
    if not len(rows):
        st.info(_("There is no such sample."))
    elif pictures.are_decoded(samples.space):
        cells = ((row.get("class", ""), f"{A} {row['A says']}", f"{B} {row['B says']}", row["id"]) for row in table)
        captions, title = ["\n".join(map(str, c)) for c in cells], _("Label, predictions of A and B, id")
        picked = draw_gallery(samples.images(shown), captions, title=title, size=96, key=f"gallery-{cache.digest(key)}")
        if picked:
            st.button(_("Select these on the maps"), on_click=samples.select, args=(shown[picked],))
    elif samples.texts is not None:
        answers = ""
        for row in table:  # a text, such as a query, and what A and B say of it, with their values
            names = [f"{shape} {row[name]}" if name in row else shape for shape, name in ((A, "A"), (B, "B"))]
            said = zip(names, (str(row["A says"]), str(row["B says"])), strict=True)
            about = " · ".join(filter(None, (str(row.get("class", "")), str(row["id"]))))
            answers += texts.answers(samples.text(str(row["id"])), said, about)
        st.html(answers)
    else:
        draw_table(table, hide_index=True)


def _choose_moved(samples: ComparedSamples) -> int:
    """Let the user choose one of the samples whose neighborhoods differ most; return its row."""
    ids, (first, second) = samples.comparison.ids, samples.comparison.names[:2]
    both = format.plain(_("{first} and {second}").format(first=first, second=second))
    text = _(
        "On average, {first} share **{mean} %** of a sample's {k} nearest neighbors. The samples that moved most "
        "come first."
    )
    st.markdown(text.format(k=samples.comparison.k, first=both, mean=f"{100 * samples.shared.mean():.0f}"))
    moved, key = np.argsort(samples.shared, kind="stable")[:200].tolist(), f"moved-{cache.digest(first, second)}"
    shares = {row: f"{100 * samples.shared[row]:.0f}" for row in moved}
    titles = {row: _("{ids}, {share} % shared").format(ids=ids[row], share=shares[row]) for row in moved}
    return query_params.one_of(st.selectbox, _("Sample"), titles, name="sample", text=ids.__getitem__, key=key)


def _neighbors(samples: ComparedSamples, row: int) -> None:
    """Draw a sample's neighbors: those only in A, those only in B, and those in both."""
    first, second = samples.comparison.names[:2]
    a, b = (graph[row].tolist() for graph in samples.comparison.graphs[:2])
    groups = {
        _("Neighbors in {first} that {second} loses").format(first=first, second=second): [r for r in a if r not in b],
        _("New neighbors in {second}").format(second=second): [r for r in b if r not in a],
        N_("Kept by both"): [r for r in a if r in b],
    }
    own = samples.ids([row])[0]
    if samples.texts is not None and not pictures.are_decoded(samples.space):
        st.html(texts.answers(samples.text(own), (), own))
    for title, rows in groups.items():
        if not rows:
            continue
        st.markdown(f"**{format.plain(title)}** ({len(rows)})")
        if not pictures.are_decoded(samples.space):
            names = samples.ids(rows)
            if samples.texts is None:
                st.text(", ".join(names))
            else:
                st.html(texts.answers(samples.text(own), ((name, samples.text(name)) for name in names)))
            continue
        captions, key = [_("the sample"), *(samples.classes[r] for r in rows)], f"strip-{cache.digest(title, row)}"
        draw_gallery(samples.images([row, *rows]), captions, title=title, size=72, key=key)


# --- groups that lie together in A and apart in B, and the reverse ---


def _about_groups(spaces: Sequence[Space]) -> Differences | None:
    """Say how many groups stand out and on which basis; None while the search runs."""
    result = answer_or_wait("differences", differences_request(spaces), message("Groups that differ"), may_stop=True)
    if result is None:
        return None
    found = Differences.of(result.meta)
    if found.groups:
        said = _("**{count} groups** lie together in one space and apart in the other.")
        st.markdown(said.format(count=len(found.groups)))
    for note in found.notes:
        st.caption(format.plain(locale.text(note)))
    return found


def _show_groups(spaces: Sequence[Space], found: Differences | None) -> None:
    """Draw the sentence of each group, its cohesion in both spaces, and its most typical samples as pictures, or as a
    table with their texts; all can be selected on all pages."""
    if found and not found.groups:
        st.info(locale.text(NONE))
    rows, place = cache.embedding(spaces[0]), state.place_of(spaces[0])
    for number, group in enumerate(found.groups if found and rows is not None else []):
        assert rows is not None
        some, key = group.rows[:EXAMPLES], f"{cache.digest(*(space.values for space in spaces))}-{number}"
        classes = [rows.class_name(int(rows.labels[row])) if rows.labels is not None else "" for row in some]
        with st.container(gap="xsmall", key=f"difference-{number}"):
            st.markdown(f"**{format.plain(locale.text(group.sentence([space.title for space in spaces])))}**")
            said = _("Nearer to a member than to another sample: {a} % in {first}, {b} % in {second}. By chance: 50 %.")
            a, b = (f"{100 * share:.0f}" for share in group.cohesion)
            st.caption(said.format(a=a, b=b, first=A, second=B))
            if pictures.are_decoded(spaces[0]):
                title = _("Typical samples of the group")
                draw_gallery(pictures.some_of(spaces[0], some), classes, title=title, size=72, key=f"group-{key}")
            else:
                table = []
                for row, name in zip(some, classes, strict=True):
                    text = "" if rows.texts is None else str(rows.texts[row])
                    record = {"id": rows.ids[row], "class": name, "text": text}
                    table.append({head: value for head, value in record.items() if value})
                draw_table(table, hide_index=True)
            label = _("Select all {n} on the maps").format(n=f"{len(group.rows):,}")
            st.button(label, key=f"select-{key}", on_click=state.select, args=(group.rows, place))
