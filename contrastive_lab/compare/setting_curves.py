"""A setting as an axis: runs of one method as curves of accuracy, uniformity and tolerance."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from contrastive_core.base.score import Score
from contrastive_core.compare.verdicts import SettingScores, best_setting
from contrastive_core.runs.run import Run
from contrastive_core.sweeps.plots import Figure, figure_of, intervals_in_words
from contrastive_lab import cache, figures, format, guard, plots, query_params
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.progress import scored_or_wait
from contrastive_lab.setting_names import shown_name

Points = Sequence[tuple[Any, Run]]  # a value of the setting, and a run that has it
Offered = Mapping[tuple[str, str], Points]

CURVE = 280  # pixels of a figure; below each other where there is no room beside each other
PLAIN = ("epochs", "batch_size", "lr")
METRICS = {  # name on the page, and what stands at its axis
    "knn": (N_("kNN accuracy"), N_("kNN accuracy, %")),
    "uniformity": ("uniformity", N_("uniformity, nats (lower: more even)")),
    "tolerance": ("tolerance", N_("tolerance (higher: classes together)")),
}


def axis(ready: list[Run], layer: str, chosen: Collection[str]) -> None:
    """Curves over a setting that differs between runs of one method: of the `chosen` where they differ in one, and are
    scored first; else of all that are scored, first one of the chosen."""
    own = _settings_with_curves([run for run in ready if run.name in chosen and not run.is_recording])
    differing = {run.name: run for points in own.values() for _value, run in points}
    if not all(cache.scores(run) or scored_or_wait(run) for run in differing.values()):
        return
    offered = own or _settings_with_curves([run for run in ready if cache.scores(run)])
    if not offered:
        text = _(
            "Curves need runs of one method that differ in a setting, such as τ, margin, momentum or head. The sweep "
            "*temperature* trains some."
        )
        st.info(text)
        sweep = {"view": "sweeps", "sweep": "temperature"}
        st.page_link("pages/runs.py", label=_("Start a sweep"), icon=":material/tune:", query_params=sweep)
        return
    first, label = _first(offered, chosen), _("Runs and setting")
    name, knob = query_params.one_of(
        st.selectbox, label, offered, name="setting", default=first, text=": ".join, format_func=_title
    )
    points = sorted(offered[name, knob], key=lambda p: (str(type(p[0])), p[0]))
    zoom = query_params.switch(st.toggle, _("Zoom to the figures"), name="zoom", help=_("Instead of 0 to 100 %."))
    row = st.container(horizontal=True)
    for metric, (title, unit) in METRICS.items():
        with row.container(width=CURVE):
            found = _found(points, layer, metric)
            figure = _figure(found, knob, unit)
            if metric == "knn":
                plots.whole_range(figure, zoom)
            figures.draw(figure, metric, f"axis {title}")
            st.caption(intervals_in_words(list(found.values()), "run"))
    _verdict(points, layer, knob)
    dilemma = _(
        "The dilemma: a low τ spreads the samples (uniformity falls) and separates similar ones (tolerance falls). "
        "Accuracy is best in between. "
    )
    text = _("Each dot is a run, and the line connects the means. Tolerance is the mean cosine within a class.")
    st.caption((dilemma if knob == "temperature" else "") + text)
    draw_table([_row(value, run, knob, layer) for value, run in points], hide_index=True)


def _settings_with_curves(ready: list[Run]) -> dict[tuple[str, str], list[tuple[Any, Run]]]:
    """The runs along each setting that differs between runs of one method on one data set."""
    found: dict[str, dict[str, list[tuple[Any, Run]]]] = {}
    for run in ready:
        with guard.on_its_own(run.name):
            name = f"{run.config.get('method')} with {run.config.get('loss')} on {run.data_key}".strip()
            for knob, value in _settings(run).items():
                found.setdefault(name, {}).setdefault(knob, []).append((value, run))
    every = {(name, knob): points for name, knobs in found.items() for knob, points in knobs.items()}
    return {at: points for at, points in every.items() if len({str(value) for value, _run in points}) > 1}


def _row(value: object, run: Run, knob: str, layer: str) -> dict[str, object]:
    scores = {metric: score.value if (score := _score(run, layer, metric)) else None for metric in METRICS}
    scores["knn"] = None if scores["knn"] is None else 100 * scores["knn"]
    return {shown_name(knob): value, "run": run.name, **{METRICS[metric][0]: v for metric, v in scores.items()}}


def _score(run: Run, layer: str, metric: str) -> Score | None:
    record = cache.scores(run)
    return record.score(layer, metric) if record else None


def _title(of: tuple[str, str]) -> str:
    """Runs and setting as pages name them: "SimCLR with NT-Xent on digits: temperature τ"."""
    method, _with, rest = of[0].partition(" with ")
    loss, _on, data = rest.partition(" on ")
    return _("{method} with {loss} on {data}: {setting}").format(
        method=cache.method_title(method), loss=cache.loss_title(loss), data=data, setting=shown_name(of[1])
    )


def _first(offered: Offered, chosen: Collection[str]) -> tuple[str, str] | None:
    """What most of the chosen runs differ in; else what some of them have."""
    values = {at: {str(value) for value, run in points if run.name in chosen} for at, points in offered.items()}
    best = max(values, key=lambda at: len(values[at]))
    return best if len(values[best]) > 1 else next((at for at, some in values.items() if some), None)


def _verdict(points: Points, layer: str, knob: str) -> None:
    """What paired tests on the same test images show of the values, and what else differs."""
    settings: dict[str, SettingScores] = {}
    for value, run in points:
        score = _score(run, layer, "knn")
        if score is None or score.value is None:
            continue
        one, seed = settings.setdefault(str(value), SettingScores(str(value))), int(run.config.get("seed") or 0)
        one.scores.setdefault(seed, score.value)
        if score.per_sample is not None:
            one.right.setdefault(seed, score.per_sample)
    name = "τ" if knob == "temperature" else shown_name(knob)
    shown, rests_on = best_setting(name, list(settings.values()))
    if not shown:
        return
    st.markdown(f"**{format.plain(shown)}**")
    st.caption(format.plain(_("By kNN accuracy. {rests_on}").format(rests_on=rests_on)))
    settings_of_each = [_settings(run) for _value, run in points]
    names = dict.fromkeys(k for one in settings_of_each for k in one if k != knob)
    if others := [shown_name(k) for k in names if len({str(one.get(k)) for one in settings_of_each}) > 1]:
        text = _("These runs differ in other settings too, which may be the reason: {listed}.")
        st.caption(text.format(listed=format.plain(", ".join(others))))


def _figure(found: dict[Any, Figure], knob: str, unit: str) -> Any:
    """A dot for each run, and a line through the mean of those with one value, with intervals."""
    values, means = list(found), [f.mean for f in found.values() if f.mean is not None]
    figure = plots.curves({"mean": (values, means)}, shown_name(knob), unit)
    plots.intervals(figure, means, [f.interval for f in found.values()])
    figure.update_layout(showlegend=False)
    if any(len(f.values) > 1 for f in found.values()):
        x, y = zip(*((value, one) for value, f in found.items() for one in f.values), strict=True)
        marker = {"symbol": "circle-open"}
        figure.add_scatter(x=x, y=y, mode="markers", opacity=0.55, name="run", marker=marker)
    if knob == "temperature" and all(isinstance(v, (int, float)) for v in values):
        xs = sorted(values)
        figure.update_xaxes(type="log", tickvals=xs, ticktext=[f"{x:g}" for x in xs])
    return figure


def _found(points: Points, layer: str, metric: str) -> dict[Any, Figure]:
    """By value of the setting: the runs' figures, their mean and its interval."""
    rows: dict[Any, list[dict[str, Any]]] = {}
    for value, run in points:
        if (score := _score(run, layer, metric)) is not None:
            cell = {"status": "done", "seed": int(run.config.get("seed") or 0), metric: score.value}
            rows.setdefault(value, []).append(cell)
    measure = "accuracy" if metric == "knn" else metric
    return {value: figure_of(some, measure, metric) for value, some in rows.items()}


def _settings(run: Run) -> dict[str, Any]:
    """A run's settings that can stand on an axis."""
    settings = {k: run.config.get(k) for k in PLAIN}
    for group in ("loss_knobs", "method_knobs", "encoder_knobs"):
        settings |= run.config.get(group) or {}
    return {k: v for k, v in settings.items() if isinstance(v, (int, float, str))}
