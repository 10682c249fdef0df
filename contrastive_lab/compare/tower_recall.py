"""Scores of two-tower spaces on Compare: recall in both directions with its chance level, and the modality gap."""

import re
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from contrastive_core.base.score import Scores, scores_from_json
from contrastive_core.compare.evaluation import TOWERS
from contrastive_core.compare.towers import RECALL, SIDES
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, locale
from contrastive_lab.locale import _, message
from contrastive_lab.progress import answer_or_wait

KEY = re.compile(r"recall_(?P<k>\d+)_(?P<way>forth|back)")  # keys of scores
AT_1 = ("recall_1_forth", "recall_1_back")  # in the verdict


def of_towers(space: Space, waits: bool = False) -> Scores:
    """Return recall, gap and zero-shot accuracy of a run with a text tower, or recall and gap of a file with two
    towers. `waits`: compute missing scores; otherwise they are omitted."""
    if space.is_loaded:
        result = _answer(space, waits)
        return {} if result is None else scores_from_json(result.meta["scores"]["own"])
    record = cache.scores(run) if (run := space.run) and run.has_towers else None
    return {} if record is None else record.scores.get(TOWERS, {})


def _answer(space: Space, waits: bool = False) -> Result | None:
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
    return [{key: replace(score, title=_title(key) or score.title) for key, score in one.items()} for one in scores]


def _title(key: str) -> str:
    """Return the title of recall by its key, with the towers as first and second; "" for another score."""
    found = KEY.fullmatch(key)
    if found is None:
        return ""
    a, b = SIDES if found["way"] == "forth" else SIDES[::-1]
    return message(RECALL, k=found["k"], a=a, b=b)


def directions(names: Sequence[str], scores: Sequence[Scores]) -> str:
    """Explain which towers are the first and the second if their names differ; else ""."""
    known = {name: str(one[AT_1[0]].title).partition(", ")[2] for name, one in zip(names, scores, strict=True) if one}
    known = {name: way for name, way in known.items() if way}
    if len({*known.values()}) < 2:
        return ""
    listed = "; ".join(f"{name}: {way}" for name, way in known.items())
    return _("First tower → second tower: {listed}.").format(listed=listed)


def show(names: Sequence[str], spaces: Sequence[Space]) -> None:
    """Draw recall@1 of each two-tower space in both directions with its interval and chance level, and notes."""
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
    """Return a sentence for each undefined score, each reason once."""
    missing = {score.missing: score.title for score in scores.values() if score.value is None and score.missing}
    return [_("{title}: {reason}.").format(title=_(title), reason=_(why)) for why, title in missing.items()]
