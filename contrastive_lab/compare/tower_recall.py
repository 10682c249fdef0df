"""Compare's scores of spaces with two towers: recall in both directions beside chance, and the modality gap."""

import re
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from contrastive_core import runs
from contrastive_core.base.score import Scores, scores_from_json
from contrastive_core.compare.towers import RECALL, SIDES
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import MetricsReader
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.plots import draw_definitions, draw_table
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.train import curves

KEY = re.compile(r"recall_(?P<k>\d+)_(?P<way>forth|back)")  # keys of scores
AT_1 = ("recall_1_forth", "recall_1_back")  # in the verdict


def of_towers(space: Space, waits: bool = False) -> Scores:
    """Recall, gap and zero-shot accuracy of a run with a text tower, from its record; recall and gap of a file of two
    towers. `waits`: compute what is not there; else it is left out."""
    if space.is_loaded:
        result = _answer(space, waits)
        return {} if result is None else scores_from_json(result.meta["scores"]["own"])
    record = cache.scores(run) if (run := space.run) and run.has_towers else None
    return {} if record is None else record.scores.get(TOWERS, {})


def _answer(space: Space, waits: bool = False) -> Result | None:
    """Recall of a space with what chance gives, where that is known; None of one tower."""
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
    """Return the scores of each space; where towers have different names, recall is titled by direction alone, and
    stands side by side."""
    titles = {str(one[AT_1[0]].title) for one in scores if AT_1[0] in one}
    if len(titles) < 2:
        return list(scores)
    return [{key: replace(score, title=_title(key) or score.title) for key, score in one.items()} for one in scores]


def _title(key: str) -> str:
    """The title of recall by its key, with the towers as first and second; "" of another score."""
    found = KEY.fullmatch(key)
    if found is None:
        return ""
    a, b = SIDES if found["way"] == "forth" else SIDES[::-1]
    return message(RECALL, k=found["k"], a=a, b=b)


def directions(names: Sequence[str], scores: Sequence[Scores]) -> str:
    """Say which towers are the first and the second, where their names differ; "" else."""
    known = {name: str(one[AT_1[0]].title).partition(", ")[2] for name, one in zip(names, scores, strict=True) if one}
    known = {name: way for name, way in known.items() if way}
    if len({*known.values()}) < 2:
        return ""
    listed = "; ".join(f"{name}: {way}" for name, way in known.items())
    return _("First tower → second tower: {listed}.").format(listed=listed)


def show(names: Sequence[str], spaces: Sequence[Space]) -> None:
    """Show recall@1 of each space of two towers in both directions, with its interval and chance, and what is to be
    said of it."""
    scores, shown = [of_towers(space, waits=True) for space in spaces], dict[str, list[str]]()
    for name, space, titled in zip(names, spaces, side_by_side(scores), strict=True):
        answer = _answer(space)
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
    """A sentence for each score that has no value, each reason once."""
    missing = {score.missing: score.title for score in scores.values() if score.value is None and score.missing}
    return [_("{title}: {reason}.").format(title=_(title), reason=_(why)) for why, title in missing.items()]


# --- two checkpoints of one run with two towers ----------------------------------------------------

VIEW = N_("Checkpoints")
GAP = "modality_gap"
FELL = N_("From epoch {a} to {b} the modality gap fell by {by} (95 % interval {low} to {high}).")
ROSE = N_("From epoch {a} to {b} the modality gap rose by {by} (95 % interval {low} to {high}).")
SAME = N_("From epoch {a} to {b} the modality gap did not change significantly (95 % interval {low} to {high}).")


def with_towers(names: list[str]) -> dict[str, Run]:
    """The runs of these names that have two towers."""
    found: dict[str, Run] = {}
    for name in names:
        if ":" not in name and (run := runs.load(name)).has_towers:
            found[name] = run
    return found


def panel(names: list[str]) -> None:
    """Two checkpoints of one of the runs that have two towers; nothing where none has."""
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
        _changes(result, before, after)
    curves.draw(name, MetricsReader(run.path / "metrics.jsonl").update().epochs)


def _epoch(label: str, epochs: list[int], name: str, default: int, run: str) -> int:
    return query_params.one_of(st.selectbox, label, epochs, name=name, default=default, key=f"epoch-{name}-{run}")


def _changes(result: Result, before: int, after: int) -> None:
    """The verdict on the gap, and a table of every figure."""
    differences = result.meta["differences"]
    scores = [scores_from_json(result.meta["scores"][which]) for which in ("before", "after")]
    if GAP in differences:
        by, low, high = differences[GAP]
        text = FELL if high < 0 else ROSE if low > 0 else SAME
        ends = (-high, -low) if high < 0 else (low, high)
        values = {"by": f"{abs(by):.3f}", "low": f"{ends[0]:.3f}", "high": f"{ends[1]:.3f}"}
        st.markdown(format.plain(_(text).format(a=before, b=after, **values)))
    head = _("epoch {epoch}")
    rows = []
    for name, (value, low, high) in differences.items():
        one, two = (scored[name] for scored in scores)
        unit, digits = (100, ".1f") if one.unit == "share" else (1, ".3f")
        rows.append(
            {
                "score": _(one.title),
                head.format(epoch=before): format.figure_of(one),
                head.format(epoch=after): format.figure_of(two),
                "difference": f"{unit * value:+{digits}}",
                "95 %": format.interval((unit * low, unit * high), digits),
            }
        )
    draw_table(rows, hide_index=True, width="stretch", height="content")
    text = _(
        "Of {n} training images and their {m} captions, the same at every epoch. The interval of a difference draws "
        "images, each with its captions. Recall differences are in points."
    )
    images, captions = result.meta["n"]
    st.caption(text.format(n=f"{images:,}", m=f"{captions:,}"))
    with st.expander(_("Meaning of the scores")):
        draw_definitions(scores[1].values())
