"""How a run was trained, and the first scores of a space as a strip of scales with intervals and baselines: raw pixels,
an untrained encoder, and the references that the user chooses."""

import html
from pathlib import Path

import streamlit as st

from contrastive_core.base.score import Score, Scores
from contrastive_core.compare.evaluation import (
    BESIDE,
    MOST_REFERENCES,
    PREFIX,
    SOURCES,
    name_of,
    reference_names,
    references_of,
    set_references,
)
from contrastive_core.data.dataset import described
from contrastive_core.engine import catalog
from contrastive_core.runs.run import Run
from contrastive_lab import cache, format, locale, state
from contrastive_lab.locale import N_, _
from contrastive_lab.progress import scored_or_wait
from contrastive_lab.recordings import LAYER_TITLES

FIRST = ("knn", "linear_probe", "alignment", "uniformity", "rankme")
UNLABELED = ("uniformity", "rankme", "hubness", "neighbor_stability")
NAMES = {"knn": N_("kNN accuracy"), "linear_probe": N_("Linear probe")}
NAMES |= {"neighbor_stability": N_("Stable neighbors")}
SHARE = (0.0, 1.0)
RANGES = {"knn": SHARE, "linear_probe": SHARE, "neighbor_stability": SHARE, "alignment": (0.0, 4.0)}
RANGES |= {
    "hubness": (0.0, 5.0),
    "uniformity": (-4.0, 0.0),
}  # of rows that fill a sphere of many dimensions to one point
RANGES["modality_gap"] = (0.0, 2.0)
MARKS = {source: SOURCES[source] for source in BESIDE} | {"chance": N_("chance")}
STYLE = Path(__file__).with_name("score_strip.css")


def draw(scores: dict[str, Scores], how: str = "", other: str = "") -> None:
    """Draw scores by source ("own", "raw", "random", "other"). Args: other: the layer of the source "other"."""
    own = scores["own"]
    names = _first(own)
    if not names:
        return
    st.header(_("Is it a good encoder?"))
    if sentence := _answer(scores):
        st.markdown(sentence)
    show(scores, names, other)
    if names[0] != FIRST[0] and "knn" in own and (why := own["knn"].missing):
        st.caption(_("{why}. The scores that need no labels are shown.").format(why=format.plain(why)))
    elif how:
        st.caption(locale.text(how))


def _answer(scores: dict[str, Scores]) -> str:
    """Describe the kNN accuracy compared with that of raw pixels, as far as both are known."""
    own, raw = (_known("knn", scores, source) for source in ("own", "raw"))
    if own is None:
        return ""
    figures = {"own": _figure(own), "raw": _figure(raw) if raw is not None else ""}
    if raw is None or raw.value is None or own.interval is None:
        text = _("kNN {own}; raw pixels reach {raw}.") if raw is not None else _("kNN {own}.")
    elif own.interval[0] > raw.value:
        text = _("Better than raw pixels: kNN {own}, on the pixels alone {raw}.")
    elif own.interval[1] < raw.value:
        text = _("Worse than raw pixels: kNN {own}, on the pixels alone {raw}.")
    else:
        text = _("No better than raw pixels: kNN {own}, on the pixels alone {raw}.")
    return format.plain(text.format(**figures))


def _marks(scores: dict[str, Scores]) -> dict[str, str]:
    """Return the names of the references by source, the user's references last."""
    return MARKS | {source: name_of(source) for source in scores if source.startswith(PREFIX)}


def show(scores: dict[str, Scores], names: list[str], other: str = "") -> None:
    """Draw the strip of the named scores; "chance" is also a source."""
    st.html(f"<style>{STYLE.read_text('utf-8')}</style>{markup(scores, other, names)}")


def about_run(run: Run) -> None:
    """Draw a line that describes a run."""
    config, data = run.config, format.data_of(run.config.get("dataset"))
    names = [catalog.title(kind, str(config.get(key))) for kind, key in (("methods", "method"), ("losses", "loss"))]
    about = [*names, data, format.epochs(config.get("epochs")), _("seed {seed}").format(seed=config.get("seed"))]
    if imported := run.manifest.get("imported"):
        about = [_("{kind}, not trained here").format(kind=imported.get("kind")), data]
        about += [_("random weights: it has learned nothing")] if imported.get("random") else []
    about += [form] if (form := described(config)) else []
    st.caption(" · ".join(map(format.plain, about)))  # a sentence each, translated by itself


def show_accuracies(run: Run) -> None:
    """Draw the accuracies on a run's test images if they have been scored."""
    if (record := cache.accuracies(run)) is not None and (own := record.scores.get("h")) is not None:
        show({**record.scores, "own": own}, [name for name in FIRST[:2] if name in own])
        if how := format.judged_images(record):
            st.caption(how)


def markup(scores: dict[str, Scores], other: str = "", names: list[str] | None = None) -> str:
    """Return the strip as HTML with escaped texts. Arguments as for `show`; without `names`, the first scores."""
    names = _first(scores["own"]) if names is None else names
    rows = "".join(_row(name, scores, other) for name in names)
    return f'<div class="scores">{rows}{_key(names, scores)}</div>'


def _first(own: Scores) -> list[str]:
    """Return the names of the scores to show; they differ without labels."""
    labeled = any(n in own and own[n].value is not None for n in FIRST[:2])
    return [n for n in (FIRST if labeled else UNLABELED) if n in own]


def _row(name: str, scores: dict[str, Scores], other: str) -> str:
    """Return one score as HTML: its name, scale and figure, with an explanation that can be opened."""
    score = scores["own"][name]
    beside = _beside(name, scores)
    lines = "\n".join(map(_html, [*beside, *_read(name, scores, other)]))
    title, reading = (_html(text) for text in (NAMES.get(name, score.title), score.reading))
    return (
        f'<details name="score"><summary><span class="name" title="{reading}">{title}</span>'
        f"{_scale(name, scores, '; '.join(map(_html, beside)))}"
        f'<span class="value">{_html(_figure(score))}</span></summary><p>{lines}</p></details>'
    )


def _html(text: str) -> str:
    """Return a text as HTML in the page's language."""
    return html.escape(locale.text(text))


def _known(name: str, scores: dict[str, Scores], source: str) -> Score | None:
    """Return a source's score if it has a value; else None."""
    score = scores.get(source, {}).get(name)
    return score if score is not None and score.value is not None else None


def _scale(name: str, scores: dict[str, Scores], alt: str) -> str:
    """Return the HTML of a scale from the lowest to the highest possible score, with its marks."""
    score = scores["own"][name]
    if score.value is None or (ends := _range(name, score)) is None:
        return '<span class="scale"></span>'
    low, high = ends

    def place(value: float) -> float:
        """Return the position of a value in per cent of the scale."""
        return 100 * min(1.0, max(0.0, (value - low) / (high - low)))

    marks = ""
    if score.interval is not None:
        left, right = map(place, score.interval)
        marks = f'<i class="interval" style="left:{left:.2f}%;width:{right - left:.2f}%"></i>'
    for source in (*_marks(scores), "own"):
        if (one := _known(name, scores, source)) is not None and one.value is not None:
            off = " off" if one.value > high else ""
            kind = source.partition(":")[0]
            marks += f'<i class="{kind}{off}" style="left:{place(one.value):.2f}%"></i>'
    return f'<span class="scale" role="img" aria-label="{alt}">{marks}</span>'


def _range(name: str, score: Score) -> tuple[float, float] | None:
    """Return the lowest and the highest possible score; for a rank the highest is the width."""
    if name == "rankme":
        width = score.number("width")
        return (1.0, width) if width and width > 1 else None
    return SHARE if score.unit == "share" else RANGES.get(name)


def _figure(score: Score) -> str:
    return format.figure_of(score).replace(" %", "\u00a0%")


def _beside(name: str, scores: dict[str, Scores]) -> list[str]:
    """Return texts for a score's interval and for the references' values."""
    interval = format.interval_of(scores["own"][name])
    lines = [_("95 % interval over samples, not seeds: {interval}").format(interval=interval)] if interval else []
    for source, text in _marks(scores).items():
        if (beside := _known(name, scores, source)) is not None:
            lines.append(f"{locale.text(text)}: {_figure(beside)} {locale.text(beside.approximation)}".rstrip())
    return lines


def _read(name: str, scores: dict[str, Scores], other: str) -> list[str]:
    """Return the lines that explain a figure."""
    score, lines = scores["own"][name], []
    if other in LAYER_TITLES and (beside := _known(name, scores, "other")) is not None:
        lines.append(f"{_(LAYER_TITLES[other])}: {_figure(beside)}")
    if score.value is None:
        lines.append(score.missing)
    if name == "knn" and (k := score.number("k")) and (tau := score.number("temperature")):
        lines.append(_("The {k} nearest samples vote, with τ {tau}.").format(k=f"{k:g}", tau=f"{tau:g}"))
    if score.approximation:
        lines.append(score.approximation)
    if score.value is not None and (ends := _range(name, score)):
        lines.append(_("The scale goes from {low} to {high}.").format(low=f"{ends[0]:g}", high=f"{ends[1]:g}"))
    return [*lines, score.reading]


def _key(names: list[str], scores: dict[str, Scores]) -> str:
    """Return the legend of the marks; "" if the space has only its own mark."""
    has_interval = any(scores["own"][n].interval is not None for n in names)
    own = _("this one, with its 95 % interval over samples, not seeds") if has_interval else _("this one")
    known = {"own": own} | {k: v for k, v in _marks(scores).items() if scores.get(k)}
    if len(known) == 1 and not has_interval:
        return ""
    marks = "".join(
        f'<span><i class="{kind.partition(":")[0]}"></i>{_html(text)}</span>' for kind, text in known.items()
    )
    return f'<div class="key">{marks}</div>'


# --- the user's references -------------------------------------------------------------------------


def reference_scores(run: Run) -> dict[str, Scores]:
    """Return the computed scores of a run's references on its test images, by source."""
    scored = {one.name: cache.scores(one) for one in references_of(run)}
    return {PREFIX + name: record.scores.get("h", {}) for name, record in scored.items() if record}


def follow_missing_reference(run: Run) -> None:
    """Score the first unscored reference of a run; draw the progress or the failure."""
    if missing := next((one for one in references_of(run) if cache.scores(one) is None), None):
        scored_or_wait(missing)


def manage_references() -> None:
    """Draw the popover to choose references."""
    with st.popover(_("References"), icon=":material/flag:"):
        choose_references()


def choose_references() -> None:
    """Draw the choice of references, and links to further ones."""
    st.caption(
        _(
            "These runs are shown beside every other run on the same data set: on its scales, in its tables "
            "and under the lists of Samples."
        )
    )
    named = reference_names()
    key = f"references-{cache.digest(*named)}"  # the list may change elsewhere
    able = [run.name for run in state.all_runs() if run.weights.exists()]
    options = [*dict.fromkeys([*named, *able])]
    chosen = st.multiselect(_("References"), options, named, key=key, max_selections=MOST_REFERENCES)
    if chosen != named:
        set_references(chosen)
        st.rerun()
    st.page_link("pages/runs.py", label=_("Import an encoder on Runs"), icon=":material/download:")
