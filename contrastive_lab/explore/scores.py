"""The first scores of a space; all others on demand, each with an explanation; and recall@10 and nDCG@10 of compressed
vectors of two towers against their bytes."""

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.base.score import Score, Scores, scores_from_json
from contrastive_core.compare.comparison import judgments_request
from contrastive_core.compare.evaluation import PREFIX, SOURCES, name_of
from contrastive_core.compare.retrieval import (
    FIGURES,
    METRICS,
    PRECISION_TITLES,
    REDUCTIONS,
    CompressedScore,
    by_vector,
    scores_of,
    smallest,
)
from contrastive_core.engine import jobs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES, Towers
from contrastive_lab import cache, figures, format, locale, query_params, recordings, score_strip, stage, state
from contrastive_lab.compare import space_picker
from contrastive_lab.compare.towers import changes, why_missing
from contrastive_lab.figures import draw_definitions, draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait, follow

NAMES = {"own": N_("this space"), "raw": SOURCES["raw"], "random": SOURCES["random"]}
CHANCE = {"chance": N_("chance")}  # of recall between two towers
VIEWS = (N_("All scores"), N_("kNN over k"), N_("Classes"), N_("Spectrum"), N_("Hubs"), N_("Factors"))


def by_source(answer: Result) -> dict[str, Scores]:
    return {source: scores_from_json(values) for source, values in answer.meta["scores"].items()}


def first_scores(space: Space) -> None:
    """Draw the scores of two towers, of a file, or of a run's test split beside raw pixels, the untrained encoder,
    references and the other layer; for a recording, the switch for its figures."""
    rows, run = cache.embedding(space), space.run
    if space.is_recording:
        recordings.offer_figures()
    elif rows is not None and (towers := cache.towers(rows)):
        _scores_of_towers(space, towers)
    elif run is None:
        if result := answer_or_wait("scores", {"space": space.values}, message("Scores")):
            score_strip.draw(by_source(result), result.meta["how"])
    elif (record := cache.scores(run)) is None:
        follow(jobs.evaluation(run), message("Scores (once)"))
    else:
        other = "z" if space.layer == "h" else "h"
        sources = {"own": space.layer, "other": other, "raw": "raw", "random": "random"}
        own = {name: record.scores.get(source, {}) for name, source in sources.items()}
        score_strip.draw(own | score_strip.reference_scores(run), format.judged_images(record), other)
        score_strip.follow_missing_reference(run)


def _scores_of_towers(space: Space, towers: Towers) -> None:
    """Draw recall@k in both directions with its chance level, and the modality gap."""
    st.header(_("Do its towers agree?"))
    result = answer_or_wait("towers", {"space": space.values}, message("Recall between the towers"))
    if result is not None:
        found = by_source(result)
        if space.run is not None:
            accuracy = _zero_shot(space)
            found = {source: accuracy.get(source, {}) | scores for source, scores in found.items()}
        score_strip.show(found, list(found["own"]))
        for text in result.meta.get("warnings", ()):
            st.warning(format.plain(text))
        for note in [*result.meta["notes"], *why_missing(found["own"])]:
            st.caption(format.plain(note))
    for name, n in zip(towers.names, towers.without_partner, strict=True):
        if n:
            st.caption(format.plain(_("Rows of {name} without a partner: {n}.").format(n=f"{n:,}", name=name)))
    label, about = _("Subtract each tower's mean"), _("Closes most of the gap, without training.")
    is_centered = query_params.switch(st.toggle, label, name="centered", help=about)
    what = message("Recall without the means")
    if is_centered and (made := answer_or_wait("centered", {"space": space.values}, what)):
        changes(made, str(_("as they are")), str(_("minus the means")))


def _zero_shot(space: Space) -> dict[str, Scores]:
    """Draw a field to edit the templates; return the zero-shot accuracy by source, {} until there is one."""
    with st.popover(_("Zero-shot prompts"), icon=":material/edit:", width="content"):
        help = _("The braces stand for the class name. A class is the mean of its prompts.")
        key = f"templates-{cache.digest(state.data_of(space))}"
        text = st.text_area(_("Templates, one per line"), "\n".join(DEFAULT_TEMPLATES), key=key, help=help)
    templates = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in templates or ["–"] if line.count("{}") != 1]
    if wrong:
        template = _("A template needs one pair of braces where the class name goes. Got: {first}")
        st.warning(format.plain(template.format(first=wrong[0])))
        return {}
    values = {"space": space.values, "templates": templates}
    result = answer_or_wait("zero_shot", values, message("Zero-shot accuracy"))
    return by_source(result) if result else {}


# --- all scores ------------------------------------------------------------------------------------


def chips(rows: EmbeddingSet) -> None:
    """Draw the names of the panels below the stage; choosing one scrolls to it."""
    views = [*VIEWS, *([COMPRESSION] if cache.towers(rows) else [])]
    look = {"label_visibility": "collapsed", "on_change": stage.scroll_next}
    query_params.one_or_none(st.pills, _("More"), views, name="more", **look)


def more(space: Space, rows: EmbeddingSet) -> None:
    """Draw the chosen panel below the stage: all scores, or the view of one."""
    if not (view := query_params.current("more", [*VIEWS, COMPRESSION], "")):
        return
    with stage.in_view():
        if view == COMPRESSION:
            _compression(space)
            return
        what = message("All scores, with values for each sample")
        if not (answer := answer_or_wait("scores", {"space": space.values}, what)):
            return
        stage.end_scroll()
        scores = by_source(answer) | (score_strip.reference_scores(run) if (run := space.run) else {})
        match view:
            case "All scores":
                found = cache.result("towers", {"space": space.values})
                of_towers = by_source(found) if found else {}
                _table(space, {**scores, **of_towers, "own": of_towers.get("own", {}) | scores["own"]})
            case "Classes":
                _classes(space, scores["own"], answer, rows)
            case "Hubs":
                _hubs(space, scores["own"], answer)
            case _:
                {"kNN over k": _over_k, "Spectrum": _spectrum, "Factors": _factors}[view](scores)


def _table(space: Space, scores: dict[str, Scores]) -> None:
    rows, listed, none = list[dict[str, str]](), list[dict[str, object]](), format.figure_of(None)
    others = {
        source: locale.text(head)
        for source, head in {**_names(scores), **CHANCE}.items()
        if source != "own" and any(format.figure_of(scores.get(source, {}).get(k)) != none for k in scores["own"])
    }
    for name, score in scores["own"].items():
        title = ", ".join(filter(None, [_(score.title), locale.text(score.approximation)]))
        row = {"score": title, "value": format.figure_of(score), "95 %": format.interval_of(score)}
        cells: dict[str, object] = {"score": title, **format.number_of(score), "95 %": row["95 %"]}
        for source, head in others.items():
            other = scores.get(source, {}).get(name)
            row[head] = format.figure_of(other)
            cells[head] = format.number_of(other)["value"]
        rows.append(row)
        listed.append(cells)
    draw_table(rows, hide_index=True, width="stretch", height="content")
    with st.container(horizontal=True, vertical_alignment="center"):
        text = _(
            "95 % intervals are over samples, not seeds. Scores that are not estimated from samples have no interval."
        )
        st.caption(text)
        st.download_button(_("Scores as CSV"), format.table_csv(listed), "scores.csv", "text/csv", on_click="ignore")
        score_strip.manage_references()
    draw_definitions(scores["own"].values())


def _names(scores: dict[str, Scores]) -> dict[str, str]:
    """Return the names of this space and its references by source, the user's references last."""
    return NAMES | {source: name_of(source) for source in scores if source.startswith(PREFIX)}


def _with_names(scores: dict[str, Scores], name: str) -> dict[str, Score]:
    """Return this score of each source that has it, by the source's name on the page."""
    names = _names(scores)
    return {locale.text(names[k]): scores[k][name] for k in names if name in scores.get(k, {})}


def _over_k(scores: dict[str, Scores]) -> None:
    series = {
        text: (list(knn.curve), [100 * v for v in knn.curve.values()])
        for text, knn in _with_names(scores, "knn").items()
        if knn.curve
    }
    if not series:
        st.info(_missing(scores["own"], "knn"))
        return
    figure = figures.curves(series, _("k, neighbors that vote"), _("kNN accuracy, %"))
    ks = sorted({k for xs, _ys in series.values() for k in xs})
    figure.update_xaxes(type="log", tickvals=ks, ticktext=[str(k) for k in ks])
    figures.draw(figure, "knn-over-k", "over-k")
    template = _(
        "The score uses k = {k}, set by the number of training rows. The curve is for information only; nothing is "
        "selected by it."
    )
    st.caption(template.format(k=f"{scores['own']['knn'].number('k') or 0:g}"))


def _classes(space: Space, space_scores: Scores, answer: Result, rows: EmbeddingSet) -> None:
    """Draw a table of classes: accuracy, its interval, and confusions. A click selects the samples."""
    import pandas as pd

    per_class = space_scores["knn"].per_class if "knn" in space_scores else []
    labels = answer.arrays.get("knn:confusion_labels")
    if not per_class or labels is None:
        st.info(_missing(space_scores, "knn"))
        return
    names = [c.name for c in per_class]
    listed: list[dict[str, object]] = []
    for one in per_class:
        right = np.nan if one.value is None else 100 * one.value
        row = {"class": one.name, "n": one.n, N_("right, %"): right, "95 %": format.interval_of(one)}
        listed.append(row | {f"→ {n}": t for n, t in zip(names, one.taken_for, strict=True)})
    table, place = pd.DataFrame(listed), state.place_of(space)
    key = f"confusion-{cache.digest(place)}"

    def clicked() -> None:
        if cells := st.session_state[key].selection.cells:
            at, column = cells[0]
            chosen = rows.labels == labels[int(at)]
            if str(column).startswith("→ "):
                chosen &= answer.arrays["knn:predicted"] == labels[names.index(column[2:])]
            else:
                chosen &= answer.arrays["knn:per_sample"] == 0
            state.select(np.flatnonzero(chosen), place)

    draw_table(
        table.style.apply(_shade, subset=[f"→ {n}" for n in names], axis=None).format({N_("right, %"): "{:.1f}"}),
        hide_index=True,
        on_select=clicked,
        selection_mode="single-cell",
        key=key,
        alt=_("Confusion matrix of the kNN vote: rows are the true classes, columns the predicted ones"),
    )
    text = _(
        "By the kNN vote. Click a cell to select its samples on the map and in the gallery. The first columns select "
        "all samples of a class that are wrong."
    )
    st.caption(text)


def _shade(table: Any) -> Any:
    """Tint table cells by their share of the row: blue on the diagonal, orange elsewhere."""
    share = table.to_numpy() / np.maximum(1, table.to_numpy().sum(1, keepdims=True))
    tint = np.empty(share.shape, object)
    for (i, j), v in np.ndenumerate(share):
        color, strength = ("59, 125, 216", 0.7) if i == j else ("232, 131, 58", 3)
        tint[i, j] = f"background-color: rgba({color}, {min(0.8, v * strength):.2f})"
    return tint


def _spectrum(scores: dict[str, Scores]) -> None:
    by_source = _with_names(scores, "rankme")
    series = {text: (range(1, len(s.spectrum) + 1), s.spectrum) for text, s in by_source.items() if s.spectrum}
    if not series:
        st.info(_missing(scores["own"], "rankme"))
        return
    figure = figures.curves(series, _("direction, by its size"), _("singular value, largest = 1"))
    figure.update_yaxes(type="log")
    figures.draw(figure, "spectrum", "spectrum")
    rankme = scores["own"]["rankme"]
    text = _("RankMe {value} of {width} dimensions. {reading} A curve that falls steeply uses few directions.")
    value, width = format.figure_of(rankme), f"{rankme.number('width') or 0:g}"
    st.caption(text.format(value=value, width=width, reading=format.plain(rankme.reading)))


def _hubs(space: Space, space_scores: Scores, answer: Result) -> None:
    counts, hubness = answer.arrays.get("hubness:per_sample"), space_scores.get("hubness")
    if counts is None or hubness is None or hubness.value is None:
        st.info(_missing(space_scores, "hubness"))
        return
    numbers = np.bincount(counts[np.isfinite(counts)].astype(np.int64))  # of drawn rows only
    often = _("how often a sample is among the {k} nearest of others").format(k=f"{hubness.number('k') or 0:g}")
    figure = figures.curves({"samples": (range(len(numbers)), numbers.tolist())}, often, "samples")
    figures.draw(figure, "hubs", "hubs")
    text = _("{reading} Here the skewness is {value}; {share} % are nobody's neighbor.")
    share = f"{100 * (hubness.number('never') or 0):.1f}"
    st.caption(text.format(reading=format.plain(hubness.reading), value=f"{hubness.value:.2f}", share=share))
    place, line = state.place_of(space), st.container(horizontal=True)
    lonely, hubs = np.flatnonzero(counts == 0), np.argsort(-counts)[:50]
    line.button(_("Select the 50 largest hubs"), on_click=state.select, args=(hubs, place))
    line.button(_("Select those that are nobody's neighbor"), on_click=state.select, args=(lonely, place))


def _factors(scores: dict[str, Scores]) -> None:
    own = scores["own"].get("factors")
    if own is None or own.value is None:
        st.info(_missing(scores["own"], "factors"))
        return
    table, names = list[dict[str, object]](), [locale.text(name) for name in _names(scores).values()]
    for name in (k for k in own.extras if k != "n"):
        found = {text: factors.number(name) for text, factors in _with_names(scores, "factors").items()}
        shares = {text: None if value is None else max(0.0, value) for text, value in found.items()}
        table.append({"factor": name.replace("_", " "), **dict.fromkeys(names), **shares})
    bar = st.column_config.ProgressColumn(min_value=0, max_value=1, format="%.2f")
    bars = dict.fromkeys(names, bar)
    draw_table(table, hide_index=True, column_config=bars, width="stretch")
    st.caption(format.plain(own.reading))


def _missing(space_scores: Scores, name: str) -> str:
    why = space_scores[name].missing if name in space_scores else ""
    return format.plain(why or _("This needs labels and training rows."))


# --- compressed vectors ----------------------------------------------------------------------------


COMPRESSION = N_("Compression")
MARGINS = (0.5, 1.0, 2.0, 5.0)  # points


def _compression(space: Space) -> None:
    """Draw the smallest vectors that lose little, the curve for one kind of dimensions, and a table of all."""
    try:
        judged = judgments_request(space_picker.judgments_input() or "")
    except (ValueError, OSError) as error:
        st.error(format.plain(error))
        return
    answer = answer_or_wait(
        "compression", {"space": space.values, **judged}, message("Compressed vectors"), may_stop=True
    )
    if answer is None:
        return
    stage.end_scroll()
    found, width = scores_of(answer.meta["scores"]), int(answer.meta["width"])
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        box = st.segmented_control
        metric = query_params.one_of(box, _("Metric"), METRICS, name="metric", format_func=FIGURES.get)
        kind = query_params.one_of(box, _("Dimensions"), REDUCTIONS, name="kind", default="pca")
        margin = query_params.one_of(box, _("Points that may be lost"), MARGINS, name="margin")
    if kept := smallest(found, margin / 100):
        text = _("**{size} instead of {full} bytes per vector** lose at most {margin} points.")
        values = {"size": f"{kept[0].size:,g}", "full": f"{4 * width:,}", "margin": f"{margin:g}"}
        said = " ".join(format.plain(locale.text(one.contrast.against(margin / 100))) for one in kept)
        st.markdown(text.format(**values), help=said)
    else:
        st.info(_("No vectors are shown to lose at most {margin} points.").format(margin=f"{margin:g}"))
    _curve(found, metric, kind)
    counts = {k: f"{answer.meta[k]:,}" for k in ("queries", "of", "documents")}
    text = _(
        "{queries} of {of} queries among {documents} documents. Bars are separate 95 % intervals of the difference "
        "from the full vectors (paired bootstrap over queries). Principal axes come from the documents alone."
    )
    st.caption(text.format(**counts))
    rows = list[dict[str, object]]()
    for first, *rest in by_vector(found):
        cells: dict[str, object] = {N_("bytes"): first.size, N_("vectors"): locale.text(first.contrast.first)}
        for one in (first, *rest):
            ends = format.interval((100 * one.interval[0], 100 * one.interval[1]), "+.1f")
            cells |= {f"{FIGURES[one.metric]}, %": round(100 * one.value, 1)}
            cells |= {_("{score}, change (95 %)").format(score=FIGURES[one.metric]): f"{100 * one.loss:+.1f} ({ends})"}
        rows.append(cells)
    draw_table(rows, hide_index=True)
    st.download_button(_("Table as CSV"), format.table_csv(rows), "compression.csv", "text/csv", on_click="ignore")


def _curve(found: list[CompressedScore], metric: str, kind: str) -> None:
    full = next(one.value - one.loss for one in found if one.metric == metric)
    lines = {
        locale.text(title): [s for s in found if (s.metric, s.reduction, s.precision) == (metric, kind, precision)]
        for precision, title in PRECISION_TITLES.items()
    }
    series = {name: ([s.size for s in line], [100 * s.value for s in line]) for name, line in lines.items()}
    figure = figures.curves(series, _("bytes per vector"), f"{FIGURES[metric]}, %", height=360)
    for trace, line in zip(figure.data, lines.values(), strict=True):
        above, below = ([100 * abs(s.interval[end] - s.loss) for s in line] for end in (1, 0))
        trace.error_y = {"type": "data", "array": above, "arrayminus": below, "symmetric": False, "thickness": 1}
    figure.add_hline(y=100 * full, line_dash="dot", annotation_text=_("full vectors"), annotation_position="top left")
    sizes = sorted({s.size for line in lines.values() for s in line})
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[f"{size:,g}" for size in sizes])
    figures.draw(figure, f"compression-{metric}-{kind}", "compression")
