"""Scores on Compare: tables of scores and cost of each space, of all paired tests and of classes; and curves over a
setting, of runs of one method, drawn like a sweep, by accuracy, uniformity and tolerance."""

import contextlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from contrastive_core.base.score import Scores
from contrastive_core.compare.comparison import Comparison
from contrastive_core.compare.evaluation import BESIDE, PREFIX, name_of
from contrastive_core.compare.verdicts import ACCURACIES, Difference
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import cost_of
from contrastive_core.spaces.space import Space
from contrastive_core.sweeps import sweep_results
from contrastive_core.sweeps.sweep_file import Axis, Draw, Row, Sweep, load, status
from contrastive_core.sweeps.sweep_results import FOLDER, with_shipped
from contrastive_lab import cache, figures, format, locale, query_params, stage
from contrastive_lab.compare import towers
from contrastive_lab.compare.disagreements import ComparedSamples
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.figures import draw_definitions, draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.progress import scored_or_wait
from contrastive_lab.score_strip import follow_missing_reference, manage_references, reference_scores
from contrastive_lab.setting_names import shown_name

CURVE = 280  # pixels of a figure; below each other where there is no room beside each other
PLAIN = ("epochs", "batch_size", "lr")
KNN = "knn test"
MEASURES = ("accuracy", "uniformity", "tolerance")
CurveKey = tuple[str, str, str, str]  # method, loss, data and setting of a curve
COST = {"seconds": N_("training, s"), "images_per_s": "images/s", "memory_mb": N_("memory, MB")}
COST |= {"parameters": "parameters"}
LABELED = N_("trained with labels")
SHARES = ("knn", "linear_probe", "purity")
LEAST = (0.1, 0.5, 1.0, 2.0, 5.0)  # points
SMALLEST_P = 1e-4  # smaller ones are not told apart
BETTER = {1: N_("✓ A better"), -1: N_("✓ B better")}  # by the sign of A − B
HIGHER = {1: N_("✓ A higher"), -1: N_("✓ B higher")}  # of scores that are neither better nor worse
Cells = dict[str, tuple[str, dict[str, object]]]  # by row title: a displayed value, and its columns in a file


def scores_of_references(spaces: list[Space]) -> dict[str, Scores]:
    """Return the scores of raw pixels, the untrained encoder and further references by source, from the first run."""
    if (run := _first_run(spaces)) is None:
        return {}
    record, own = cache.scores(run), {PREFIX + space.name for space in spaces}
    known = {k: record.scores[k] for k in BESIDE if k in record.scores} if record else {}
    return known | {source: scores for source, scores in reference_scores(run).items() if source not in own}


def images_of_references(spaces: list[Space]) -> str:
    """Describe the images on which the references are evaluated; "" if unknown."""
    record = cache.scores(run) if (run := _first_run(spaces)) else None
    return format.judged_images(record) if record else ""


def _first_run(spaces: list[Space]) -> Run | None:
    return next((run for space in spaces if (run := space.run)), None)


def table(spaces: list[Space], comparison: Comparison) -> None:
    """Draw a table with a row for each score and cost, and a column for each space and each reference."""
    st.header(_("Scores"))
    names: Sequence[str] = comparison.names
    if len(set(names)) < len(names):  # files that share a name
        names = [f"{number}. {name}" for number, name in enumerate(names, 1)]
    paired = towers.side_by_side([towers.of_towers(space) for space in spaces])
    columns: dict[str, Cells] = {}
    for name, space, scores, recall in zip(names, spaces, comparison.scores, paired, strict=True):
        run = space.run
        labels: Cells = {LABELED: (_("yes"), {LABELED: _("yes")})} if run and needs_labels(run) else {}
        cost = {text: cost_of(run).get(key) for key, text in COST.items()} if run else {}
        costs: Cells = {text: (f"{value:,g}", {text: value}) for text, value in cost.items() if value is not None}
        columns[name] = labels | _cells(scores | recall) | costs
    columns |= {locale.text(name_of(k)): _cells(scores) for k, scores in scores_of_references(spaces).items()}
    heads = list(dict.fromkeys(head for cells in columns.values() for head in cells))
    rows = []
    for head in heads:
        title = head.removesuffix(", %")
        texts = {k: cells[head][0] if head in cells else None for k, cells in columns.items()}
        rows.append({"score": _(title) + head.removeprefix(title), **texts})
    wide = {k: st.column_config.TextColumn(width=_width([k, *(row[k] for row in rows)])) for k in columns}
    wide["score"] = st.column_config.TextColumn(width=_width([row["score"] for row in rows]), pinned=True)
    alt = _("Scores and cost of each run")
    draw_table(rows, hide_index=True, height="content", column_config=wide, placeholder="–", alt=alt)
    if images := images_of_references(spaces):
        st.caption(format.plain(images))
    if any({*heads} - {*cells} - {LABELED} for cells in columns.values()):
        text = _(
            "–: not known. Recall and modality gap need two towers, zero-shot accuracy also a text tower; cost is "
            "known for trained runs only."
        )
        st.caption(text)
    listed = [
        {"run": name} | {k: v for _text, of_file in cells.values() for k, v in of_file.items()}
        for name, cells in columns.items()
    ]
    with st.container(horizontal=True, vertical_alignment="center"):
        text = _(
            "In parentheses: 95 % intervals over samples, not seeds. Times and memory are those of the machine that "
            "trained."
        )
        st.caption(text)
        st.download_button(_("Table as CSV"), format.table_csv(listed), "compare.csv", "text/csv", on_click="ignore")
        with st.popover(_("Meaning of the scores"), icon=":material/help:"):
            draw_definitions(comparison.scores[0].values() if comparison.scores else ())
        manage_references()
    follow_references(spaces)


def follow_references(spaces: list[Space]) -> None:
    """Score runs with raw pixels, their untrained encoders and the first run's references, unless this is done; draw
    the progress. For the end of a page, because the verdict needs no reference."""
    runs = [run for space in spaces if (run := space.run)]
    if runs and all(map(scored_or_wait, runs)):
        follow_missing_reference(runs[0])


def needs_labels(run: Run) -> bool:
    """Return whether the run's method uses labels; False if unknown, as for recordings and without a catalog."""
    with contextlib.suppress(RuntimeError):  # a file of the user is no valid method
        methods = cache.catalog()["methods"]
        return bool(methods.get(str(run.config.get("method")), {}).get("needs_labels"))
    return False


def _cells(scores: Scores) -> Cells:
    """Return the defined scores of one run by row title, the accuracies first."""
    cells: Cells = {}
    first = [scores[name] for name in ACCURACIES if name in scores]
    for score in dict.fromkeys([*first, *scores.values()]):
        if score.value is None:
            continue
        is_share, digits = score.unit == "share", format.decimals_of(score)
        head = score.title + (", %" if is_share else "")
        value = round(100 * score.value if is_share else score.value, digits)
        interval, made_of = format.interval_of(score), score.approximation
        beside = {f"{head} (95 %)": interval, f"{head} (made of)": made_of}
        text = f"{value:,.{digits}f}" + "".join(f" ({locale.text(note)})" for note in beside.values() if note)
        cells[head] = text, {head: value} | {k: v for k, v in beside.items() if v}
    return cells


def _width(texts: Iterable[str | None]) -> int:
    """Return the width in pixels of a column that shows each text in full."""
    return 24 + max(round(sum(15 if c > "⺀" else 7.5 for c in text or "")) for text in texts)


def tests(comparison: Comparison) -> None:
    """Draw the paired differences of every score between every two spaces, compared with the smallest relevant
    difference."""
    if not comparison.tests:
        st.info(_("No score has a value per sample, so no paired test is possible."))
        return
    st.header(_("Every test"))
    label, help = _("Smallest difference that matters, points"), _("One point is 0.01 of a score.")
    least = query_params.one_of(st.segmented_control, label, LEAST, name="least", default=1.0, help=help)
    of_verdict, rows = {(d.metric, d.a, d.b): d.interval for d in comparison.differences}, []
    for test in comparison.tests:
        shown = replace(test, interval=of_verdict.get((test.metric, test.a, test.b), test.interval))
        rows.append(_test(shown, comparison.scores[0][test.metric].higher_is_better, least / 100))
    draw_table(rows, hide_index=True, height="content" if len(rows) < 12 else "auto")
    text = _(
        "✓: the whole 95 % interval is above the smallest difference that matters, and p is below 0.05 after Holm's "
        "correction for {tests} tests. “Too small”: the whole interval is below that difference. “Unclear”: the "
        "interval contains both negligible and relevant differences, or p is not below 0.05. p tests for no "
        "difference at all (McNemar's exact test for right or wrong, otherwise a paired t test) and does not measure "
        "its size."
    )
    st.caption(text.format(tests=len(comparison.tests)))
    with st.container(horizontal=True, vertical_alignment="center"):
        text = _(
            "These results hold for these runs only: intervals and p values contain the variation over samples, not "
            "between seeds. To compare methods, choose three seeds of each."
        )
        st.caption(text)
        st.download_button(_("Table as CSV"), format.table_csv(rows), "tests.csv", "text/csv", on_click="ignore")


def _test(test: Difference, higher_is_better: bool | None, least: float) -> dict[str, object]:
    """Return one row of the table of tests."""
    unit, digits = (100, ".1f") if test.metric in SHARES else (1, ".3f")
    p, (low, high) = test.p_corrected, test.interval
    sign = int(low > least) - int(high < -least)
    result = N_("too small") if max(abs(low), abs(high)) <= least else N_("unclear")
    if sign and p < 0.05:
        result = HIGHER[sign] if higher_is_better is None else BETTER[sign if higher_is_better else -sign]
    return {
        "score": (_("{score}, points") if unit == 100 else "{score}").format(score=_(test.title)),
        "A": test.a,
        "B": test.b,
        "A − B": float(f"{unit * test.value:{digits}}"),
        "95 %": format.interval((unit * low, unit * high), digits),
        N_("smallest relevant difference"): unit * least,
        N_("result"): _(result),
        N_("p, corrected"): f"{p:.2g}" if p >= SMALLEST_P else f"< {SMALLEST_P:g}",
    }


def classes(samples: ComparedSamples) -> None:
    """Draw the difference between A and B for each class, the largest first; nothing without labels."""
    table = [
        {
            "class": samples.class_name(d.label),
            "n": d.n,
            "A, %": round(100 * d.accuracies[0], 1),
            "B, %": round(100 * d.accuracies[1], 1),
            N_("A − B, points"): round(100 * d.value, 1),
            "95 %": format.interval((100 * d.interval[0], 100 * d.interval[1]), "+.1f"),
            N_("p, corrected"): f"{d.p:.2g}" if d.p >= SMALLEST_P else f"< {SMALLEST_P:g}",
        }
        for d in samples.comparison.by_class(samples.metric)
    ]
    if not table:
        return
    st.header(_("By class"))
    one = partial(st.column_config.NumberColumn, format="%.1f")
    formats = {"A, %": one(), "B, %": one(), "A − B, points": one(format="%+.1f")}
    draw_table(table, hide_index=True, column_config=formats)
    by_chance = _(
        "{accuracy} on the samples of each class. Each interval is a separate 95 % interval (Agresti–Min, over "
        "samples, not seeds): about one class in twenty excludes zero by chance. p is corrected for the number of "
        "classes (Holm)."
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(by_chance.format(accuracy=locale.text(samples.comparison.titles[samples.metric])))
        st.download_button(_("Table as CSV"), format.table_csv(table), "classes.csv", "text/csv", on_click="ignore")


# --- curves over a setting ---


def curves(ready: list[Run], layer: str, chosen: Collection[str]) -> None:
    """Draw curves over a setting that differs between runs of one method. Uses the `chosen` runs if they are scored and
    differ in only one setting; else all scored runs, with a setting of the chosen ones first."""
    own = _settings_with_curves([run for run in ready if run.name in chosen and not run.is_recording])
    differing = {run.name: run for members in own.values() for run in members}
    if not all(cache.scores(run) or scored_or_wait(run) for run in differing.values()):
        return
    offered = own or _settings_with_curves([run for run in ready if cache.scores(run)])
    if not offered:
        text = _(
            "Curves need runs of one method that differ in a setting, such as τ, margin, momentum or head. This is "
            "the sweep *temperature*, which comes with the app."
        )
        st.info(text)
        sweep, link = load(FOLDER / "temperature.toml"), {"view": "sweeps", "sweep": "temperature"}
        _curves(sweep, with_shipped(sweep, status(sweep)), zoom=False)
        st.page_link("pages/runs.py", label=_("Start a sweep"), icon=":material/tune:", query_params=link)
        return

    def differ(at: CurveKey) -> int:
        return len({str(_settings(run)[at[-1]]) for run in offered[at] if run.name in chosen})

    chosen_key: CurveKey = query_params.one_of(
        st.selectbox,
        _("Runs and setting"),
        offered,
        name="setting",
        default=max(offered, key=differ),
        text=lambda at: "{} with {} on {}: {}".format(*at),
        format_func=_title,
    )
    knob = chosen_key[-1]
    zoom = query_params.switch(
        st.toggle,
        _("Zoom to the figures"),
        name="zoom",
        help=_("Fit the axis to the values instead of showing 0 to 100 %."),
    )
    _draw(offered[chosen_key], layer, knob, zoom)
    dilemma = _(
        "The dilemma: a low τ spreads the samples (uniformity falls) and separates similar ones (tolerance falls). "
        "Accuracy is best in between. "
    )
    text = _("Each dot is a run, and the line connects the means. Tolerance is the mean cosine within a class.")
    st.caption((dilemma if knob == "temperature" else "") + text)


def _draw(members: list[Run], layer: str, knob: str, zoom: bool) -> None:
    """Draw the runs' scores over the setting, the best value, other differences, and a table."""
    x = "τ" if knob == "temperature" else shown_name(knob)
    draw = Draw(x, measures=MEASURES)
    sweep = Sweep(
        name=knob, title="", base={}, axes=(Axis(x, ()),), seeds=(), form="line", budget_hours=None, draw=draw
    )
    settings = {run.name: _settings(run) for run in members}
    members = sorted(members, key=lambda run: (str(type(at := settings[run.name][knob])), at))
    rows = [_row(run, layer) | {x: settings[run.name][knob]} for run in members]
    if _curves(sweep, rows, zoom):
        names = dict.fromkeys(k for one in settings.values() for k in one if k != knob)
        if others := [shown_name(k) for k in names if len({str(one.get(k)) for one in settings.values()}) > 1]:
            text = _("These runs differ in other settings too, which may be the reason: {listed}.")
            st.caption(text.format(listed=format.plain(", ".join(others))))
    titles = {measure: sweep_results.label(measure, KNN) for measure in MEASURES}
    values = [{title: sweep_results.value_of(row, measure, KNN) for measure, title in titles.items()} for row in rows]
    draw_table([{x: row[x], "run": row["run"], **one} for row, one in zip(rows, values, strict=True)], hide_index=True)


def _curves(sweep: Sweep, rows: list[Row], zoom: bool) -> str:
    """Draw the figures that have values, and the best value; return the sentence about it, "" for none."""
    place = st.container(horizontal=True)
    for measure, figure in zip(sweep.draw.measures, sweep_results.draw(sweep, rows, KNN, PALETTE, zoom), strict=False):
        if not figure.data:
            continue
        with place.container(width=CURVE):
            figure.layout.yaxis.title.text = locale.text(figure.layout.yaxis.title.text)
            figures.draw(figure, measure, f"axis {measure}")
            cells = sweep_results.cells_of(rows, [sweep.draw.x], KNN, [measure])
            st.caption(sweep_results.intervals_in_words([cell[measure] for cell in cells], are_runs=True))
    shown, rests_on = sweep_results.verdict(sweep, rows, KNN)
    if shown:
        st.markdown(f"**{format.plain(shown)}**")
        st.caption(format.plain(_("By kNN accuracy. {rests_on}").format(rests_on=rests_on)))
    return shown


def _row(run: Run, layer: str) -> Row:
    """Return a run's scores as a finished cell of a sweep."""
    record = cache.scores(run)
    assert record is not None
    scores = record.scores.get(layer, {})
    values: Row = {name: scores[name].value for name in MEASURES if name in scores}
    values[KNN] = record.value(layer, "knn")
    seed, of_layer = int(run.config.get("seed") or 0), replace(record, scores={"h": scores})
    return {"run": run.name, "status": "done", "seed": seed, "evaluation": of_layer, **values}


def _settings_with_curves(ready: list[Run]) -> dict[CurveKey, list[Run]]:
    """Return the runs for each setting that differs between runs of one method on one data set."""
    found: dict[CurveKey, list[Run]] = {}
    for run in ready:
        with stage.on_its_own(run.name):
            for knob in _settings(run):
                at = str(run.config.get("method")), str(run.config.get("loss")), run.data_key, knob
                found.setdefault(at, []).append(run)
    return {at: some for at, some in found.items() if len({str(_settings(run)[at[-1]]) for run in some}) > 1}


def _settings(run: Run) -> dict[str, str | float]:
    """Return a run's settings that can be an axis."""
    settings: dict[str, object] = {k: run.config.get(k) for k in PLAIN}
    for group in ("loss_knobs", "method_knobs", "encoder_knobs"):
        settings |= run.config.get(group) or {}
    return {k: v for k, v in settings.items() if isinstance(v, (int, float, str))}


def _title(at: CurveKey) -> str:
    """Return the displayed name of runs and setting: "SimCLR with NT-Xent on digits: temperature τ"."""
    method, loss, data, knob = at
    return _("{method} with {loss} on {data}: {setting}").format(
        method=cache.method_title(method), loss=cache.loss_title(loss), data=data, setting=shown_name(knob)
    )
