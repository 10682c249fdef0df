"""Recordings on pages: the choice of their rows (probe set or batch, and step), and their growth."""

import contextlib

import streamlit as st

from contrastive_core import runs
from contrastive_core.compare.evaluation import OF_TOWERS
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import MetricsReader, read_loop_check
from contrastive_core.spaces.recorded_rows import PROBE, STEP, Recorded, kinds_of
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import are_tower_names
from contrastive_lab import cache, figures, format, locale, query_params
from contrastive_lab.locale import N_, _

NEWEST = N_("newest")
LAYER_TITLES = {"h": N_("encoder output (h)"), "z": N_("after the head (z)"), TOWERS: OF_TOWERS}
KINDS = {PROBE: N_("Probe set"), STEP: N_("Rows of a step")}


Kinds = dict[str, list[int]]  # as `kinds_of` gives them, read once for a page: they grow while it is drawn


def place_of(run: Run, kinds: Kinds) -> Recorded | None:
    """Return the rows chosen by the URL or the controls; None while there are none."""
    if not kinds:
        return None
    kind = query_params.current("rows", kinds, next(iter(kinds)))
    chosen = _chosen_step(run, kind, kinds[kind])
    return Recorded(run, kind, kinds[kind][-1] if chosen == NEWEST else int(chosen))


def space_of(place: Recorded) -> Space:
    """Return the space of the rows, in the chosen layer if there are two."""
    layers = ("h", "z") if place.has_h() else ("z",)
    return Space.of_recording(place, query_params.current("features", layers, layers[0]))


def choose_place(run: Run, place: Recorded, kinds: Kinds) -> None:
    """Draw the controls for probe set or batch, step, and layer."""
    if len(kinds) > 1:
        titles = {kind: KINDS[kind] for kind in kinds}
        query_params.one_of(st.segmented_control, _("Rows"), titles, name="rows", width="content")
    choose_step(run, place.kind, kinds[place.kind])
    if place.has_h():
        layers = {layer: LAYER_TITLES[layer] for layer in ("h", "z")}
        query_params.one_of(st.segmented_control, _("Features"), layers, name="features", width="content")


def choose_step(run: Run, kind: str, steps: list[int]) -> int:
    """Let the user choose a stored step; the newest is followed by default."""
    titles, key = {str(s): f"{s:,}" for s in steps} | {NEWEST: NEWEST}, _key(run, kind)
    chosen = query_params.one_of(st.select_slider, _("Step"), titles, name="step", key=key, default=NEWEST)
    return steps[-1] if chosen == NEWEST else int(chosen)


def follows_newest(run: Run, place: Recorded, kinds: Kinds) -> bool:
    """Return whether the page follows the newest step of a growing recording."""
    return run.is_alive() and _chosen_step(run, place.kind, kinds[place.kind]) == NEWEST


def _chosen_step(run: Run, kind: str, steps: list[int]) -> str:
    return query_params.current("step", [*map(str, steps), NEWEST], NEWEST, key=_key(run, kind))


def _key(run: Run, kind: str) -> str:
    return f"recorded-step-{cache.digest(run.name, kind)}"


def has_rows(run: Run) -> bool:
    """Return whether a page can show a run: it has weights, or is a recording with rows."""
    return run.weights.exists() or (run.is_recording and bool(kinds_of(run)))


# --- while it grows ------------------------------------------------------------------------------


LACKS = N_(
    "A recording contains embeddings and metrics of a training loop that ran elsewhere. It has no weights, so it "
    "cannot embed new images, continue training or be exported."
)
FEW = 300  # points of a curve
SHOWN = {
    "loss": N_("Loss"),
    "effective_negatives": N_("Negatives that matter"),
    "active_negatives": N_("Negatives still pushed"),
    "rankme": N_("RankMe"),
    "knn": N_("kNN of the step"),
    "recall_1_forth": N_("Recall@1, {a} → {b}"),
    "recall_1_back": N_("Recall@1, {b} → {a}"),
    "modality_gap": N_("Modality gap"),
}
SHARES = ("knn", "recall_1_forth", "recall_1_back")
CURVES = {  # by title: names of figures, and the name of the axis
    N_("Loss"): ({"loss": "recorded", "caller_loss": N_("your loop's")}, "loss"),
    N_("Negatives"): (
        {"effective_negatives": N_("negatives that matter"), "negatives": "all", "active_negatives": "pushed"},
        N_("negatives of an anchor"),
    ),
    N_("Gradient by pair class"): (
        {"grad_positive": "positives", "grad_negative": "negatives"},
        N_("length of the gradient"),
    ),
    N_("Alignment and uniformity"): (
        {"alignment": "alignment", "uniformity": "uniformity"},
        N_("squared distance, nats"),
    ),
    "RankMe": ({"rankme": N_("this step"), "probe_rankme": N_("probe set")}, "dimensions"),
    "kNN": ({"knn": N_("this step"), "probe_knn": N_("probe set")}, N_("accuracy, leave-one-out")),
    N_("Recall@1 of the step"): (
        {"recall_1_forth": N_("{a} → {b}"), "recall_1_back": N_("{b} → {a}")},
        N_("share whose partner is nearest"),
    ),
    N_("Modality gap"): ({"modality_gap": N_("this step")}, N_("distance between the means")),
    N_("Temperature"): ({"temperature": "τ"}, "τ"),
    N_("Bias"): ({"bias": "b"}, "b"),
}


def describe(run: Run) -> str:
    """Describe a recording in one line: its loss, step and status."""
    status = run.status()
    values = {
        "loss": run.config.get("loss") or _("your loop's own loss"),
        "step": f"{int(status.get('step') or 0):,}",
        "state": _("growing") if status["status"] == "running" else status["status"],
    }
    if knobs := ", ".join(f"{k} {v}" for k, v in (run.config.get("loss_knobs") or {}).items()):
        return _("Recording · {loss} ({knobs}) · step {step} · {state}").format(knobs=knobs, **values)
    return _("Recording · {loss} · step {step} · {state}").format(**values)


def loop_check(run: Run) -> None:
    """Draw the findings of the checks of the loop's loss; nothing for a healthy loop."""
    if (record := read_loop_check(run)) is None:
        return
    if not record["faults"]:
        if record["problem"]:
            st.caption(format.plain(record["problem"]))
        return
    with st.container(border=True):
        st.markdown(_("**The loss of this loop**"))
        st.warning(format.plain(record["text"]))
        st.text(locale.text(record["numbers"]))
        for fault in record["faults"]:
            if fault["rows"]:
                st.text(_("Affected rows: {ids}").format(ids=", ".join(fault["rows"])))
        counts = {"steps": max(fault["steps"] for fault in record["faults"]), "checked": record["checked"]}
        if record["numbers"]:  # none of a fault that no step has
            st.caption(_("Found in {steps} of {checked} checked steps.").format(**counts))


def _growing(name: str) -> Run:
    """Return the recording; redraw the page if it has ended or no longer exists."""
    with contextlib.suppress(ValueError, OSError):
        if (run := runs.load(name)).is_alive():
            return run
    st.rerun()


@st.fragment(run_every=1.0)
def follow(name: str, drawn: Kinds) -> None:
    """Draw a recording's progress every second; redraw the page when it has new rows or ends."""
    run = _growing(name)
    st.caption(format.plain(describe(run)))
    if kinds_of(run) != drawn:
        st.rerun()


def offer_figures() -> None:
    """Draw the switch for the figures below the stage."""
    query_params.switch(st.toggle, _("Figures over the steps"), name="figures")


def draw_figures(run: Run) -> None:
    """Draw, on request, the newest figures and their curves, updated while the recording grows."""
    if not query_params.page_values().get(query_params.key_of("figures")):
        return
    is_growing = run.is_alive()

    def draw() -> None:
        now = _growing(run.name) if is_growing else run
        st.caption(format.plain(describe(now)))
        if not (newest := _reader(now).latest):
            st.info(_("No step has been recorded yet."))
            return
        line, row = newest[-1], st.container(horizontal=True, gap="small")
        for name, title in SHOWN.items():
            value = line.get(name)
            if value is None or (name == "active_negatives" and "effective_negatives" in line):
                continue
            text = f"{100 * value:.1f} %" if name in SHARES else f"{value:,.3g}"
            if name.endswith("negatives") and line.get("negatives") is not None:
                text = _("{value} of {negatives}").format(value=f"{value:,.0f}", negatives=f"{line['negatives']:,.0f}")
            row.metric(_named(title, now), text, help=cache.definitions(name) or None)
        step = f"{int(line['step']):,}"
        st.caption(_("At step {step}, computed on the images of that step.").format(step=step))
        curves([now])

    st.fragment(draw, run_every=1.0 if is_growing else None)()


def _reader(run: Run) -> MetricsReader:
    path = run.path / "metrics.jsonl"
    reader: MetricsReader = st.session_state.setdefault(f"read {path}", MetricsReader(path))
    return reader.update()


def curves(recordings: list[Run]) -> None:
    """Draw the figures over the steps; several recordings share a figure, with their names."""
    lines = {}
    for run in recordings:
        reader = _reader(run)
        some = [*reader.steps[:: -(-len(reader.steps) // FEW) or 1], *reader.epochs]
        lines[run] = sorted(some, key=lambda line: int(line["step"]))
    known = {name for each in lines.values() for line in each for name in line}
    columns = st.columns(2 if len(recordings) == 1 else 1)
    shown = [(title, names, unit) for title, (names, unit) in CURVES.items() if known & names.keys()]
    for place, (title, names, unit) in enumerate(shown):
        series: dict[str, tuple[list[float], list[float]]] = {}
        for run, every in lines.items():
            prefix = "" if len(recordings) == 1 else f"{format.plain(run.name)}: "
            for name, text in names.items():
                if points := [(line["step"], line[name]) for line in every if line.get(name) is not None]:
                    series[prefix + _named(text, run)] = ([x for x, _y in points], [y for _x, y in points])
        with columns[place % len(columns)]:
            st.markdown(f"**{locale.text(title)}**")
            figure, key = figures.curves(series, "step", unit, height=220), "-".join(run.name for run in lines)
            st.plotly_chart(figure, key=f"recorded-{key}-{title}", config=figures.SVG)


def _named(text: str, run: Run) -> str:
    """Return a text with the names of a run's towers."""
    names = run.manifest.get("recording", {}).get("towers")
    return locale.text(text).format(a=names[0], b=names[1]) if are_tower_names(names) else locale.text(text)
