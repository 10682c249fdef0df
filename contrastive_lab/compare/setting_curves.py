"""A setting as an axis: runs of one method as curves of accuracy, uniformity and tolerance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from contrastive_core.engine.sweep_results import SettingScores, best_setting
from contrastive_core.records.evaluation import Evaluation
from contrastive_core.records.run import Run
from contrastive_core.records.sweep_cells import Figure, figure_of, intervals_in_words
from contrastive_lab import cache, format, guard, plots, query_params, state
from contrastive_lab.locale import N_, _
from contrastive_lab.setting_names import shown_name
from contrastive_lab.tables import draw_table

Points = Sequence[tuple[Any, Run]]  # a value of the setting, and a run that has it
Offered = Mapping[tuple[str, str], Points]

GROUPS = ("loss_knobs", "method_knobs", "encoder_knobs")
CURVE = 280  # pixels of a figure; below each other where there is no room beside each other
PLAIN = ("epochs", "batch_size", "lr")


def axis(ready: list[Run], layer: str, chosen: Collection[str]) -> None:
    """Curves over a setting that differs between scored runs of one method on one data set; first
    one that differs between the `chosen` runs."""
    offered = _settings_with_curves(ready)
    if not offered:
        _offer_sweep()
        return
    name, knob = query_params.one_of(
        st.selectbox,
        _("Runs and setting"),
        offered,
        name="setting",
        default=_first(offered, chosen),
        text=lambda o: f"{o[0]}: {o[1]}",
        format_func=_title,
    )
    points = sorted(offered[name, knob], key=lambda p: (str(type(p[0])), p[0]))
    zoom = query_params.switch(st.toggle, _("Zoom to the figures"), name="zoom", help=_("Instead of 0 to 100 %."))
    row = st.container(horizontal=True)
    for title, unit in SHOWN.items():
        with row.container(width=CURVE):
            figure = _figure(points, layer, knob, title, unit)
            if title == ACCURACY:
                plots.whole_range(figure, zoom)
            st.plotly_chart(figure, key=f"axis {title}")
            st.caption(_intervals(points, layer, title))
    _verdict(points, layer, knob)
    _describe(knob)
    draw_table([_row(value, run, knob, layer) for value, run in points], hide_index=True)


def _settings_with_curves(ready: list[Run]) -> dict[tuple[str, str], list[tuple[Any, Run]]]:
    """The scored runs along each setting that differs between runs of one method on one data set."""
    groups: dict[str, list[Run]] = {}
    for run in ready:
        name = f"{run.config.get('method')} with {run.config.get('loss')} on {state.data_key(run)}"
        groups.setdefault(name.strip(), []).append(run)
    return {(name, knob): points for name, runs in groups.items() for knob, points in _knobs(runs).items()}


def _offer_sweep() -> None:
    st.info(
        _(
            "Curves need runs of one method that differ in a setting: τ, margin, momentum, head "
            "… The sweep *temperature* trains some."
        )
    )
    st.page_link(
        "pages/runs.py",
        label=_("Start a sweep"),
        icon=":material/tune:",
        query_params={"view": "sweeps", "sweep": "temperature"},
    )


def _row(value: object, run: Run, knob: str, layer: str) -> dict[str, object]:
    record = cache.scores(run)
    return {shown_name(knob): value, "run": run.name, **(_values(record, layer) if record else {})}


def _describe(knob: str) -> None:
    dilemma = _(
        "The dilemma: a low τ spreads the samples (uniformity falls) and tears apart what is "
        "alike (tolerance falls); accuracy is best in between. "
    )
    st.caption(
        (dilemma if knob == "temperature" else "")
        + _("A dot is a run, the line goes through their means. Tolerance is the mean cosine within a class.")
    )


def _title(of: tuple[str, str]) -> str:
    """Runs and setting as pages name them: "SimCLR with NT-Xent on digits: temperature τ"."""
    catalog = cache.catalog()
    method, _unused, rest = of[0].partition(" with ")
    loss, _unused, data = rest.partition(" on ")
    about = catalog["methods"].get(method, {}), catalog["losses"].get(loss, {})
    names = about[0].get("title", method), about[1].get("title", loss)
    return _("{method} with {loss} on {data}: {setting}").format(
        method=names[0], loss=names[1], data=data, setting=shown_name(of[1])
    )


def _first(offered: Offered, chosen: Collection[str]) -> tuple[str, str] | None:
    """What most of the chosen runs differ in, if any two do."""
    found = {at: len({str(value) for value, run in points if run.name in chosen}) for at, points in offered.items()}
    best = max(found, key=lambda at: found[at])
    return (
        best
        if found[best] > 1
        else next((at for at, points in offered.items() if any(run.name in chosen for _unused, run in points)), None)
    )


def _verdict(points: Points, layer: str, knob: str) -> None:
    """What paired tests on the same test images show of the values, and what else differs."""
    settings: dict[str, SettingScores] = {}
    for value, run in points:
        record = cache.scores(run)
        score = record.score(layer, "knn") if record else None
        if score is None or score.value is None:
            continue
        one = settings.setdefault(str(value), SettingScores(str(value)))
        seed = int(run.config.get("seed") or 0)
        one.scores.setdefault(seed, score.value)
        if score.per_sample is not None:
            one.right.setdefault(seed, score.per_sample)
    name = "τ" if knob == "temperature" else shown_name(knob)
    shown, rests_on = best_setting(name, list(settings.values()))
    if not shown:
        return
    st.markdown(f"**{format.plain(shown)}**")
    st.caption(format.plain(_("By kNN accuracy. {rests_on}").format(rests_on=rests_on)))
    if others := _others(points, knob):
        listed = format.plain(", ".join(others))
        st.caption(
            _("These runs differ in other settings too, which may be the reason: {listed}.").format(listed=listed)
        )


def _others(points: Points, knob: str) -> list[str]:
    """Further settings that these runs do not share."""
    every = [_settings(run) for _unused, run in points]
    names = dict.fromkeys(k for settings in every for k in settings if k != knob)
    return [shown_name(k) for k in names if len({str(s.get(k)) for s in every}) > 1]


ACCURACY = N_("kNN accuracy")
METRICS = {ACCURACY: "knn", "uniformity": "uniformity", "tolerance": "tolerance"}
SHOWN = {
    ACCURACY: N_("kNN accuracy, %"),
    "uniformity": N_("uniformity, nats (lower: more even)"),
    "tolerance": N_("tolerance (higher: classes together)"),
}


def _figure(points: Points, layer: str, knob: str, title: str, unit: str) -> Any:
    """A dot for each run, and a line through the mean of those with one value, with intervals."""
    found = _found(points, layer, title)
    values, means = list(found), [f.mean for f in found.values() if f.mean is not None]
    figure = plots.curves({"mean": (values, means)}, shown_name(knob), unit)
    plots.intervals(figure, means, [f.interval for f in found.values()])
    figure.update_layout(showlegend=False)
    if any(len(f.values) > 1 for f in found.values()):
        dots = [(value, one) for value, f in found.items() for one in f.values]
        figure.add_scatter(
            x=[d[0] for d in dots],
            y=[d[1] for d in dots],
            mode="markers",
            opacity=0.55,
            name="run",
            marker={"symbol": "circle-open"},
        )
    if knob == "temperature" and all(isinstance(v, (int, float)) for v in values):
        xs = sorted(values)
        figure.update_xaxes(type="log", tickvals=xs, ticktext=[f"{x:g}" for x in xs])
    return figure


def _found(points: Points, layer: str, title: str) -> dict[Any, Figure]:
    """By value of the setting: the runs' figures, their mean and its interval."""
    rows: dict[Any, list[dict[str, Any]]] = {}
    for value, run in points:
        record = cache.scores(run)
        score = record.score(layer, METRICS[title]) if record else None
        if score is None:
            continue
        rows.setdefault(value, []).append(
            {
                "status": "done",
                "seed": int(run.config.get("seed") or 0),
                METRICS[title]: score.value,
                "images": {METRICS[title]: int(score.number("n") or 0)},
            }
        )
    measure = "accuracy" if title == ACCURACY else METRICS[title]
    return {value: figure_of(some, measure, METRICS[title]) for value, some in rows.items()}


def _intervals(points: Points, layer: str, title: str) -> str:
    return intervals_in_words(list(_found(points, layer, title).values()), "run")


def _values(record: Evaluation, layer: str) -> dict[str, float | None]:
    knn = record.value(layer, "knn")
    return {
        N_("kNN accuracy"): None if knn is None else 100 * knn,
        "uniformity": record.value(layer, "uniformity"),
        "tolerance": record.value(layer, "tolerance"),
    }


def _knobs(runs: list[Run]) -> dict[str, list[tuple[Any, Run]]]:
    """Knobs of which these runs have two values or more, with (value, run)."""
    values_by_knob: dict[str, list[tuple[Any, Run]]] = {}
    for run in runs:
        with guard.on_its_own(run.name):
            if cache.scores(run) is None:
                continue
            for knob, value in _settings(run).items():
                values_by_knob.setdefault(knob, []).append((value, run))
    return {k: v for k, v in values_by_knob.items() if len({str(value) for value, _unused in v}) > 1}


def _settings(run: Run) -> dict[str, Any]:
    """A run's settings that can stand on an axis."""
    settings = {k: run.config.get(k) for k in PLAIN}
    for group in GROUPS:
        settings |= run.config.get(group) or {}
    return {k: v for k, v in settings.items() if isinstance(v, (int, float, str))}
