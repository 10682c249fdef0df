"""Two towers on Compare: recall in both directions, the threshold of a match, and duels: the first answers of A and B
without their names, one key each, and the verdict so far."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.score import Scores, scores_from_json
from contrastive_core.compare.comparison import hash_of
from contrastive_core.compare.evaluation import TOWERS
from contrastive_core.compare.match_threshold import RATE, JudgedPairs, MatchThreshold, find_threshold
from contrastive_core.compare.towers import KS, RECALL, SIDES
from contrastive_core.samples import annotations
from contrastive_core.samples.duels import BOTH, KEYS, MARGIN, NEITHER, Duels
from contrastive_core.spaces.attached_files import read_qrels
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, figures, format, locale, pictures, stage, texts
from contrastive_lab.compare.space_picker import SHAPES, judgments
from contrastive_lab.figures import draw_definitions, draw_table
from contrastive_lab.locale import N_, Deferred, _, message, ngettext
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.samples.findings import window

THRESHOLD, DUELS = N_("Match threshold"), N_("Duels")  # views of the page
LABELS = dict(zip(KEYS, (N_("Left is better"), N_("Right is better"), N_("Both are good"), N_("Neither")), strict=True))
SHORTCUTS = dict(zip(KEYS, ("Left", "Right", BOTH[0].upper(), NEITHER[0].upper()), strict=True))
PICTURE = 160  # pixels
AT_1 = ("recall_1_forth", "recall_1_back")  # in the verdict


def of_towers(space: Space, waits: bool = False) -> Scores:
    """Return recall, gap and zero-shot accuracy of a run with a text tower, or recall and gap of a file with two
    towers. `waits`: compute missing scores; otherwise they are omitted."""
    if space.is_loaded:
        result = _recall(space, waits)
        return {} if result is None else scores_from_json(result.meta["scores"]["own"])
    record = cache.scores(run) if (run := space.run) and run.has_towers else None
    return {} if record is None else record.scores.get(TOWERS, {})


def _recall(space: Space, waits: bool = False) -> Result | None:
    """Return the stored or computed recall of a space with its chance level; None for one tower or if it is missing."""
    if (run := space.run) is not None:
        if not run.has_towers:
            return None
        space, waits = Space.of_run(run, "test", TOWERS), False  # its record has the recall
    elif (rows := cache.embedding(space)) is None or cache.towers(rows) is None:
        return None
    values = {"space": space.values}
    result = cache.result("towers", values)
    return result or (answer_or_wait("towers", values, message("Recall between the towers")) if waits else None)


def side_by_side(scores: Sequence[Scores]) -> list[Scores]:
    """Return the scores of each space in comparable columns; if tower names differ, recall is titled by direction
    alone."""
    if len({str(one[AT_1[0]].title) for one in scores if AT_1[0] in one}) < 2:
        return list(scores)
    ways = {"forth": SIDES, "back": SIDES[::-1]}
    titles = {f"recall_{k}_{way}": message(RECALL, k=k, a=a, b=b) for k in KS for way, (a, b) in ways.items()}
    return [{key: replace(score, title=titles.get(key, score.title)) for key, score in one.items()} for one in scores]


def show_recall(names: Sequence[str], spaces: Sequence[Space]) -> None:
    """Draw recall@1 of each two-tower space in both directions with its interval and chance level, and notes."""
    scores, shown = [of_towers(space, waits=True) for space in spaces], dict[str, list[str]]()
    for name, space, titled in zip(names, spaces, side_by_side(scores), strict=True):
        answer = _recall(space)
        chance = {} if answer is None else scores_from_json(answer.meta["scores"]["chance"])
        for key in (key for key in AT_1 if key in titled and titled[key].value is not None):
            text = f"{format.plain(name)} **{format.figure_of(titled[key])}** ({format.interval_of(titled[key])})"
            if key in chance:
                text = _("{text}, chance {value}").format(text=text, value=format.figure_of(chance[key]))
            shown.setdefault(locale.text(titled[key].title), []).append(text)
        for warning in answer.meta["warnings"] if answer else ():
            st.warning(f"{format.plain(name)}: {format.plain(warning)}")
        for reason in why_missing(titled):
            st.caption(format.plain(f"{name}: {reason}"))
    for title, values in shown.items():
        st.markdown(f"{format.plain(title)}: {' · '.join(values)}")
    ways = {name: str(one[AT_1[0]].title).partition(", ")[2] for name, one in zip(names, scores, strict=True) if one}
    if shown and len({*ways.values()}) > 1:
        listed = "; ".join(f"{name}: {way}" for name, way in ways.items())
        st.caption(format.plain(_("First tower → second tower: {listed}.").format(listed=listed)))


def why_missing(scores: Scores) -> list[str]:
    """Return a sentence for each undefined score, each reason once."""
    missing = {score.missing: score.title for score in scores.values() if score.value is None and score.missing}
    return [_("{title}: {reason}.").format(title=_(title), reason=_(why)) for why, title in missing.items()]


def changes(result: Result, before: str, after: str) -> None:
    """Draw a table of each figure of the two towers before and after, with its difference."""
    one, two = (scores_from_json(result.meta[which]) for which in ("before", "after"))
    rows = []
    for name, (value, low, high) in result.meta["differences"].items():
        unit, digits = (100, ".1f") if one[name].unit == "share" else (1, ".3f")
        rows.append(
            {
                "score": _(one[name].title),
                before: format.figure_of(one[name]),
                after: format.figure_of(two[name]),
                "difference": f"{unit * value:+{digits}}",
                "95 %": format.interval((unit * low, unit * high), digits),
            }
        )
    draw_table(rows, hide_index=True, width="stretch", height="content")
    with st.expander(_("Meaning of the scores")):
        draw_definitions(two.values())


def show_threshold(spaces: list[Space]) -> None:
    """Draw the threshold of each space at the chosen false-match rate, and the shares of matches by similarity."""
    st.subheader(_("From which similarity is a pair a match?"))
    rate = st.number_input(
        _("Highest false-match rate, %"),
        0.1,
        50.0,
        100 * RATE,
        0.5,
        width=240,
        help=_("The share of pairs that are no match and still reach the threshold."),
    )
    file, found = judgments(), dict[str, MatchThreshold]()
    for shape, space in zip(SHAPES, spaces, strict=False):
        with stage.errors_shown():
            pairs = _pairs(space, file, hash_of(file) if file else "")
            found[f"{shape} {space.title}"] = find_threshold(pairs, rate / 100)
    if not found:
        return
    for name, one in found.items():
        st.markdown(format.plain(locale.text(one.sentence(name))))
        st.caption(format.plain(locale.text(one.basis)))
    bins = {name: one.calibration for name, one in found.items()}
    lines = {name: ([b.similarity for b in own], [100 * b.share for b in own]) for name, own in bins.items()}
    figure = figures.curves(lines, N_("cosine similarity"), N_("matches, %"))
    for trace, (name, own) in zip(figure.data, bins.items(), strict=True):
        above, below = ([100 * abs(b.interval[end] - b.share) for b in own] for end in (1, 0))
        trace.error_y = {"array": above, "arrayminus": below, "thickness": 1, "width": 0}
        if (threshold := found[name].threshold) is not None:
            figure.add_vline(x=threshold, line_dash="dot", annotation_text=f"{name[:1]} {threshold:.4f}")
    figure.update_yaxes(rangemode="tozero")
    st.plotly_chart(figure, key="match-calibration")
    st.caption(_("Share of matches by similarity, with 95 % intervals. Dotted: the threshold."))
    source = file.name if file else ""
    st.download_button(
        _("Download as JSON"),
        json_bytes([one.record(name, source) for name, one in found.items()]),
        "match_threshold.json",
        on_click="ignore",
    )


@st.cache_resource(max_entries=8, show_spinner=Deferred(N_("Comparing queries with answers…")))
def _pairs(space: Space, file: Path | None, content: str) -> JudgedPairs:
    rows = cache.embedding(space)
    towers = None if rows is None else cache.towers(rows)
    assert towers is not None
    return JudgedPairs.of(towers, read_qrels(file) if file else None, file.name if file else "")


# --- duels ---


def show_duels(spaces: list[Space]) -> None:
    """Draw the next duel of A and B, both embedded, and the verdict."""
    with stage.errors_shown():
        _judge(_duels(*spaces[:2]), spaces[0])
        stage.take_arrows()


@st.cache_resource(max_entries=4, show_spinner=Deferred(N_("Comparing queries with answers…")))
def _duels(a: Space, b: Space) -> Duels:
    sets = [rows for space in (a, b) if (rows := cache.embedding(space)) is not None]
    return Duels.of([a.title, b.title], sets)


@st.fragment
def _judge(duels: Duels, space: Space) -> None:
    marks = duels.marks()
    number, standing = duels.next(marks), duels.standing(marks)
    picture, side = stage.columns(is_first=False)
    with picture, st.container(key="duel"):
        if number is None:
            st.info(_("Every query with different answers is judged."))
        else:
            _draw_duel(duels, space, number)
        st.button(
            _("Undo"), key="duel-undo", shortcut="U", type="tertiary", disabled=not marks, on_click=_undo, args=(duels,)
        )
    with side:
        st.subheader(_("Which first answer is better?"))
        margin = st.number_input(
            _("Smallest difference that matters, points"),
            0.1,
            50.0,
            100 * MARGIN,
            0.5,
            key="duel-margin",
            help=_("A point is 1 % of all queries. You can stop when the difference is shown to be smaller."),
        )
        st.markdown(format.plain(locale.text(standing.sentence(margin / 100))))
        text = ngettext("{count} decision", "{count} decisions", standing.decided).format(count=standing.decided)
        more = _("First answers differ on {differing} of {queries} queries; the others count as equal.")
        st.caption(f"{text}. {more.format(differing=f'{standing.differing:,}', queries=f'{standing.queries:,}')}")


def _draw_duel(duels: Duels, space: Space, number: int) -> None:
    """Draw a query, both answers and the keys."""
    query = int(duels.queries[number])
    with st.container(border=True):
        st.caption(_("Query"))
        _draw(duels, space, query)
    for column, title, row in zip(st.columns(2), (_("Left"), _("Right")), duels.shown(number), strict=True):
        with column.container(border=True, height="stretch"):
            st.caption(title)
            _draw(duels, space, row, duels.text(query))

    def decide(key: str) -> None:
        with stage.errors_told():
            if duels.next(duels.marks()) == number:
                duels.decide(number, key, window()[0])
            else:  # a second key before the next query was drawn
                st.toast(_("The key came before the next query. Press it again."))

    with st.container(horizontal=True):
        for key, label in LABELS.items():  # with the number in its name: a late press cannot decide on the next query
            name = f"duel-{duels.file.stem}-{number}-{key}"
            st.button(_(label), key=name, shortcut=SHORTCUTS[key], on_click=decide, args=(key,))


def _draw(duels: Duels, space: Space, row: int, query: str = "") -> None:
    """Draw a sample as its image, else as its text or id, in which the words of a query are marked."""
    rows, name = cache.embedding(space), duels.rows.ids[row]
    if cache.images(space) is not None and rows is not None and pictures.are_decoded(space):
        st.image(cache.picture(pictures.of(space), rows.ids.index(name)), width=PICTURE)
        return
    st.html(texts.markup(duels.text(row), query))


def _undo(duels: Duels) -> None:
    with stage.errors_told():
        annotations.undo([duels.file], *window())
