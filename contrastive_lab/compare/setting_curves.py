"""Curves over a setting: runs of one method, drawn like a sweep, by accuracy, uniformity and tolerance."""

import dataclasses
from collections.abc import Collection

import streamlit as st

from contrastive_core.runs.run import Run
from contrastive_core.sweeps import sweep_results
from contrastive_core.sweeps.sweep_file import Axis, Draw, Row, Sweep, load, status
from contrastive_core.sweeps.sweep_results import FOLDER, with_shipped
from contrastive_lab import cache, figures, format, guard, locale, query_params
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import _
from contrastive_lab.progress import scored_or_wait
from contrastive_lab.setting_names import shown_name

CURVE = 280  # pixels of a figure; below each other where there is no room beside each other
PLAIN = ("epochs", "batch_size", "lr")
KNN = "knn test"
MEASURES = ("accuracy", "uniformity", "tolerance")


def axis(ready: list[Run], layer: str, chosen: Collection[str]) -> None:
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

    def differ(at: tuple[str, str]) -> int:
        return len({str(_settings(run)[at[1]]) for run in offered[at] if run.name in chosen})

    first, label = max(offered, key=differ), _("Runs and setting")
    name, knob = query_params.one_of(
        st.selectbox, label, offered, name="setting", default=first, text=": ".join, format_func=_title
    )
    zoom = query_params.switch(
        st.toggle,
        _("Zoom to the figures"),
        name="zoom",
        help=_("Fit the axis to the values instead of showing 0 to 100 %."),
    )
    _draw(offered[name, knob], layer, knob, zoom)
    dilemma = _(
        "The dilemma: a low τ spreads the samples (uniformity falls) and separates similar ones (tolerance falls). "
        "Accuracy is best in between. "
    )
    text = _("Each dot is a run, and the line connects the means. Tolerance is the mean cosine within a class.")
    st.caption((dilemma if knob == "temperature" else "") + text)


def _draw(members: list[Run], layer: str, knob: str, zoom: bool) -> None:
    """Draw the runs' scores over the setting, the best value, other differences, and a table."""
    x = "τ" if knob == "temperature" else shown_name(knob)
    sweep = Sweep(
        name=knob,
        title="",
        base={},
        axes=(Axis(x, ()),),
        seeds=(),
        form="line",
        budget_hours=None,
        draw=Draw(x, measures=MEASURES),
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
    of_layer = dataclasses.replace(record, scores={"h": scores})
    return {
        "run": run.name,
        "status": "done",
        "seed": int(run.config.get("seed") or 0),
        "evaluation": of_layer,
        **values,
    }


def _settings_with_curves(ready: list[Run]) -> dict[tuple[str, str], list[Run]]:
    """Return the runs for each setting that differs between runs of one method on one data set."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in ready:
        with guard.on_its_own(run.name):
            name = f"{run.config.get('method')} with {run.config.get('loss')} on {run.data_key}".strip()
            for knob in _settings(run):
                found.setdefault((name, knob), []).append(run)
    return {at: some for at, some in found.items() if len({str(_settings(run)[at[1]]) for run in some}) > 1}


def _settings(run: Run) -> dict[str, str | float]:
    """Return a run's settings that can be an axis."""
    settings: dict[str, object] = {k: run.config.get(k) for k in PLAIN}
    for group in ("loss_knobs", "method_knobs", "encoder_knobs"):
        settings |= run.config.get(group) or {}
    return {k: v for k, v in settings.items() if isinstance(v, (int, float, str))}


def _title(of: tuple[str, str]) -> str:
    """Return the displayed name of runs and setting: "SimCLR with NT-Xent on digits: temperature τ"."""
    method, _with, rest = of[0].partition(" with ")
    loss, _on, data = rest.partition(" on ")
    return _("{method} with {loss} on {data}: {setting}").format(
        method=cache.method_title(method), loss=cache.loss_title(loss), data=data, setting=shown_name(of[1])
    )
