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
from contrastive_lab.setting_names import main_setting

FIRST = ("knn", "linear_probe", "alignment", "uniformity", "rankme")
UNLABELED = ("uniformity", "rankme", "hubness", "neighbor_stability")
NAMES = {"knn": N_("kNN accuracy"), "linear_probe": N_("Linear probe"), "neighbor_stability": N_("Stable neighbors")}
RANGES = {"alignment": (0.0, 4.0), "hubness": (0.0, 5.0), "modality_gap": (0.0, 2.0)}
RANGES |= {"uniformity": (-4.0, 0.0)}  # of rows that fill a sphere of many dimensions to one point
RANGES |= dict.fromkeys(("knn", "linear_probe", "neighbor_stability"), (0.0, 1.0))
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
    own, raw = (scores.get(source, {}).get("knn") for source in ("own", "raw"))
    if own is None or own.value is None:
        return ""
    if raw is None or raw.value is None:
        return format.plain(_("kNN {own}.").format(own=_figure(own)))
    text = _("Not significantly better than raw pixels: kNN {own}, on the pixels alone {raw}.")
    if own.interval is None:
        text = _("kNN {own}; raw pixels reach {raw}.")
    elif own.interval[0] > raw.value:
        text = _("Better than raw pixels: kNN {own}, on the pixels alone {raw}.")
    elif own.interval[1] < raw.value:
        text = _("Worse than raw pixels: kNN {own}, on the pixels alone {raw}.")
    return format.plain(text.format(own=_figure(own), raw=_figure(raw)))


def show(scores: dict[str, Scores], names: list[str], other: str = "") -> None:
    """Draw the strip of the named scores; "chance" is also a source."""
    st.html(f"<style>{STYLE.read_text('utf-8')}</style>{markup(scores, other, names)}")


def about_run(run: Run) -> None:
    """Draw a line that describes a run."""
    config, data = run.config, format.data_of(run.config.get("dataset"))
    names = [catalog.title(kind, str(config.get(key))) for kind, key in (("methods", "method"), ("losses", "loss"))]
    names += [main] if (main := main_setting(run, cache.catalog())) else []
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


def _first(own: Scores) -> list[str]:
    """Return the names of the scores to show; they differ without labels."""
    labeled = any(n in own and own[n].value is not None for n in FIRST[:2])
    return [n for n in (FIRST if labeled else UNLABELED) if n in own]


def markup(scores: dict[str, Scores], other: str = "", names: list[str] | None = None) -> str:
    """Return the strip as HTML with escaped texts: for each score a row with its name, scale and figure, which opens an
    explanation; then the legend. Arguments as for `show`; without `names`, the first scores."""
    own, rows = scores["own"], ""
    names = _first(own) if names is None else names
    marks = MARKS | {source: name_of(source) for source in scores if source.startswith(PREFIX)}
    for name in names:
        score, beside = own[name], list[str]()
        known = {k: one for k, of in scores.items() if (one := of.get(name)) is not None and one.value is not None}
        if interval := format.interval_of(score):
            beside.append(_("95 % interval over samples, not seeds: {interval}").format(interval=interval))
        for source, text in marks.items():
            if source in known:
                note = f"{_figure(known[source])} {locale.text(known[source].approximation)}".rstrip()
                beside.append(f"{locale.text(text)}: {note}")
        ends = _range(name, score) if score.value is not None else None
        lines = "\n".join(map(_html, [*beside, *_explanation(name, score, ends, known.get("other"), other)]))
        title, reading = (_html(text) for text in (NAMES.get(name, score.title), score.reading))
        scale = '<span class="scale"></span>'
        if ends is not None:
            sources = [source for source in (*marks, "own") if source in known]
            alt = "; ".join(map(_html, beside))
            scale = f'<span class="scale" role="img" aria-label="{alt}">{_marks_on(ends, sources, known)}</span>'
        rows += (
            f'<details name="score"><summary><span class="name" title="{reading}">{title}</span>{scale}'
            f'<span class="value">{_html(_figure(score))}</span></summary><p>{lines}</p></details>'
        )
    has_interval = any(own[name].interval is not None for name in names)
    this = _("this one, with its 95 % interval over samples, not seeds") if has_interval else _("this one")
    legend = {"own": this} | {source: text for source, text in marks.items() if scores.get(source)}
    key = "".join(f'<span><i class="{k.partition(":")[0]}"></i>{_html(text)}</span>' for k, text in legend.items())
    if len(legend) > 1 or has_interval:
        rows += f'<div class="key">{key}</div>'
    return f'<div class="scores">{rows}</div>'


def _html(text: str) -> str:
    """Return a text as HTML in the page's language."""
    return html.escape(locale.text(text))


def _figure(score: Score) -> str:
    return format.figure_of(score).replace(" %", "\u00a0%")


def _range(name: str, score: Score) -> tuple[float, float] | None:
    """Return the lowest and the highest possible score; for a rank the highest is the width."""
    if name == "rankme":
        width = score.number("width")
        return (1.0, width) if width and width > 1 else None
    return (0.0, 1.0) if score.unit == "share" else RANGES.get(name)


def _marks_on(ends: tuple[float, float], sources: list[str], known: Scores) -> str:
    """Return the HTML of the marks of sources on a scale, the last with its interval."""

    def place(value: float) -> float:
        return 100 * min(1.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0])))

    marks = ""
    if (interval := known["own"].interval) is not None:
        left, right = map(place, interval)
        marks = f'<i class="interval" style="left:{left:.2f}%;width:{right - left:.2f}%"></i>'
    for source in sources:
        value, kind = known[source].value or 0.0, source.partition(":")[0]
        off = " off" if value > ends[1] else ""
        marks += f'<i class="{kind}{off}" style="left:{place(value):.2f}%"></i>'
    return marks


def _explanation(
    name: str, score: Score, ends: tuple[float, float] | None, beside: Score | None, other: str
) -> list[str]:
    """Return the lines that explain a figure, beside that of the layer `other`."""
    lines = [f"{_(LAYER_TITLES[other])}: {_figure(beside)}"] if other in LAYER_TITLES and beside else []
    if score.value is None:
        lines.append(score.missing)
    if name == "knn" and (k := score.number("k")) and (tau := score.number("temperature")):
        lines.append(_("The {k} nearest samples vote, with τ {tau}.").format(k=f"{k:g}", tau=f"{tau:g}"))
    if score.approximation:
        lines.append(score.approximation)
    if ends:
        lines.append(_("The scale goes from {low} to {high}.").format(low=f"{ends[0]:g}", high=f"{ends[1]:g}"))
    return [*lines, score.reading]


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
    """Draw the popover to choose references, with links to further ones."""
    with st.popover(_("References"), icon=":material/flag:"):
        st.caption(
            _("These runs are shown beside every other run on the same data set: on its scales and in its tables.")
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
