"""Two towers on Compare: recall in both directions, two checkpoints of a run, and the threshold of a match."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.score import Scores, scores_from_json
from contrastive_core.compare.comparison import hash_of
from contrastive_core.compare.evaluation import TOWERS
from contrastive_core.compare.match_threshold import RATE, JudgedPairs, MatchThreshold, find_threshold
from contrastive_core.compare.towers import RECALL, SIDES
from contrastive_core.runs.run_metrics import MetricsReader
from contrastive_core.spaces.label_files import read_qrels
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, figures, format, guard, locale, query_params
from contrastive_lab.compare.space_picker import SHAPES, judgments, with_towers
from contrastive_lab.figures import draw_definitions, draw_table
from contrastive_lab.locale import N_, Deferred, _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.train import curves

CHECKPOINTS, THRESHOLD = N_("Checkpoints"), N_("Match threshold")  # views of the page
KEY = re.compile(r"recall_(?P<k>\d+)_(?P<way>forth|back)")  # keys of scores
GAP = "modality_gap"
FELL = N_("From epoch {a} to {b} the modality gap fell by {by} (95 % interval {low} to {high}).")
ROSE = N_("From epoch {a} to {b} the modality gap rose by {by} (95 % interval {low} to {high}).")
SAME = N_("From epoch {a} to {b} the modality gap did not change significantly (95 % interval {low} to {high}).")
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
    titles = {str(one[AT_1[0]].title) for one in scores if AT_1[0] in one}
    if len(titles) < 2:
        return list(scores)

    def title(key: str) -> str:
        if (found := KEY.fullmatch(key)) is None:
            return ""
        a, b = SIDES if found["way"] == "forth" else SIDES[::-1]
        return message(RECALL, k=found["k"], a=a, b=b)

    return [{key: replace(score, title=title(key) or score.title) for key, score in one.items()} for one in scores]


def directions(names: Sequence[str], scores: Sequence[Scores]) -> str:
    """Explain which towers are the first and the second if their names differ; else ""."""
    known = {name: str(one[AT_1[0]].title).partition(", ")[2] for name, one in zip(names, scores, strict=True) if one}
    known = {name: way for name, way in known.items() if way}
    if len({*known.values()}) < 2:
        return ""
    listed = "; ".join(f"{name}: {way}" for name, way in known.items())
    return _("First tower → second tower: {listed}.").format(listed=listed)


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
        for warning in answer.meta.get("warnings", ()) if answer else ():
            st.warning(f"{format.plain(name)}: {format.plain(warning)}")
        for reason in why_missing(titled):
            st.caption(format.plain(f"{name}: {reason}"))
    for title, values in shown.items():
        st.markdown(f"{format.plain(title)}: {' · '.join(values)}")
    if shown and (text := directions(names, scores)):
        st.caption(format.plain(text))


def why_missing(scores: Scores) -> list[str]:
    """Return a sentence for each undefined score, each reason once."""
    missing = {score.missing: score.title for score in scores.values() if score.value is None and score.missing}
    return [_("{title}: {reason}.").format(title=_(title), reason=_(why)) for why, title in missing.items()]


def compare_checkpoints(names: list[str]) -> None:
    """Draw the comparison of two checkpoints of a run with two towers; nothing if no run has them."""
    candidates = with_towers(names)
    if not candidates:
        return
    st.subheader(_("Two checkpoints of one run"))
    name = next(iter(candidates))
    if len(candidates) > 1:
        name = query_params.one_of(st.selectbox, _("Run"), candidates, name="checkpoints")
    run = candidates[name]
    epochs = run.snapshots()
    if len(epochs) < 2:
        text = _("{name} keeps {n} of the two checkpoints needed. Train with snapshot_every=1 to keep one per epoch.")
        st.info(format.plain(text.format(name=name, n=len(epochs))))
        return
    with st.container(horizontal=True):
        before = _epoch(_("From epoch"), epochs[:-1], "from", epochs[0], name)
        after = _epoch(_("to epoch"), [e for e in epochs if e > before], "to", epochs[-1], name)
    values = {"run": name, "epochs": [before, after], "weights": run.weights_hash() if run.weights.exists() else ""}
    if result := answer_or_wait("checkpoints", values, message("Comparing the checkpoints")):
        if GAP in (differences := result.meta["differences"]):
            by, low, high = differences[GAP]
            said = FELL if high < 0 else ROSE if low > 0 else SAME
            ends = (-high, -low) if high < 0 else (low, high)
            numbers = {"by": f"{abs(by):.3f}", "low": f"{ends[0]:.3f}", "high": f"{ends[1]:.3f}"}
            st.markdown(format.plain(_(said).format(a=before, b=after, **numbers)))
        head = _("epoch {epoch}")
        changes(result, head.format(epoch=before), head.format(epoch=after))
        text = _(
            "Computed on {n} training images and their {m} captions, the same at every epoch. Intervals of "
            "differences are over images, each with its captions. Recall differences are in points."
        )
        images, captions = result.meta["n"]
        st.caption(text.format(n=f"{images:,}", m=f"{captions:,}"))
    curves.draw_towers(name, MetricsReader(run.path / "metrics.jsonl").update().epochs)


def _epoch(label: str, epochs: list[int], name: str, default: int, run: str) -> int:
    return query_params.one_of(st.selectbox, label, epochs, name=name, default=default, key=f"epoch-{name}-{run}")


def changes(result: Result, before: str, after: str) -> None:
    """Draw a table of each figure of the two towers before and after, with its difference."""
    scores = [scores_from_json(result.meta["scores"][which]) for which in ("before", "after")]
    rows = []
    for name, (value, low, high) in result.meta["differences"].items():
        one, two = (scored[name] for scored in scores)
        unit, digits = (100, ".1f") if one.unit == "share" else (1, ".3f")
        rows.append(
            {
                "score": _(one.title),
                before: format.figure_of(one),
                after: format.figure_of(two),
                "difference": f"{unit * value:+{digits}}",
                "95 %": format.interval((unit * low, unit * high), digits),
            }
        )
    draw_table(rows, hide_index=True, width="stretch", height="content")
    with st.expander(_("Meaning of the scores")):
        draw_definitions(scores[1].values())


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
        with guard.errors_shown():
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
