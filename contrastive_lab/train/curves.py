"""Curves of a training: the small ones of the inspector; loss and kNN accuracy; of two towers recall, modality gap,
temperature and bias; and monitors of a collapse."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.base.score import wilson
from contrastive_core.engine import training
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import MetricsReader, labeled_images
from contrastive_lab import cache, figures
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.locale import N_, _
from contrastive_lab.setting_names import Marks, draw_marks
from contrastive_lab.texts import Html, el
from contrastive_lab.train.folder import with_change

KNN = "knn_train_sample"
FEW_STEPS = 300  # points of a curve
SMALLER = 0.9  # share of the anchors before, below which a batch is smaller
HIGH = 64  # pixels
MARGIN = 0.08  # of the range, above and below
FORTH = "recall_1_forth"
RECALL = {FORTH: N_("image → caption"), "recall_1_back": N_("caption → image")}
GAP = "modality_gap"
LEARNED = {"temperature": N_("Temperature τ"), "bias": N_("Bias")}  # by the method, if it has them
Line = Mapping[str, float]  # of a run's metrics
OF_SAMPLE = N_(
    "Computed on the fixed sample of training images and their captions. At gap 0, both towers share one region."
)
HELP = N_(
    "Deviation: standard deviation of each dimension of the unit rows z in a batch, times √d. 1 means evenly "
    "spread, 0 means one point. A random encoder starts near 0. Rank and correlation are computed on a fixed "
    "sample of training images."
)
DEVIATIONS = {
    "z_std": N_("mean over dimensions"),
    "z_std_least": N_("minimum over dimensions"),
    "text_z_std": N_("mean over dimensions, texts"),
    "z_scale": N_("mean over dimensions, rows not scaled"),
}
RANK = {"z_rank": N_("effective rank of z")}
SHARES = {
    "z_correlation": N_("mean |correlation| of two dimensions"),
    "key_distance": N_("distance to the momentum encoder"),
}


# --- in the inspector ---


def figures_of_now(run: Run, metrics: MetricsReader, epochs: int) -> None:
    """Draw loss and score with their curves: kNN accuracy with classes, recall between two towers."""
    if not (lines := thinned(metrics)):
        if training.status_of(run)["status"] != "done":
            st.caption(_("The first step is running…"))
        return
    newest = (metrics.latest or metrics.epochs)[-1]
    done = max(0.02, min(1.0, (newest.get("epoch") or 1) / max(1, epochs)))
    loss = (metrics.epochs or metrics.latest)[-1]["loss"]
    steps = _("step {step}").format(step=f"{newest['step']:,}")
    last = max(1, newest["step"])
    marks = [min(1.0, change["step"] / last) for change in run.changes()]
    drawn = [sparkline(_("Loss"), f"{loss:.3g}", [x["loss"] for x in lines], share=done, note=steps, marks=marks)]
    scored, forth = scores_of(metrics, KNN), scores_of(metrics, FORTH)
    if scored or run.manifest.get("classes"):
        shares = [100 * share for _epoch, share in scored]
        value = f"{shares[-1]:.3g} %" if shares else "–"
        title, note = _("kNN on the training sample"), str(_("Other images of the sample vote on each image."))
        if others := baselines(run):
            note = _("{note} Dashed: on some of the training images.").format(note=note)
        drawn.append(sparkline(title, value, shares, others, done, note))
    elif forth:
        shares = [100 * share for _epoch, share in forth]
        title = _("Recall@1, image → caption")
        drawn.append(sparkline(title, f"{shares[-1]:.3g} %", shares, {}, done, _(OF_SAMPLE)))
    st.html("".join(drawn))
    if any("z_std" in line for line in lines) and not training.status_of(run).get("is_warned"):
        last = next(line for line in reversed(lines) if "z_std" in line)
        deviation = f"{last['z_std']:.2g}"
        text = _("No sign of collapse: the deviation of z is {value}.")
        st.markdown(f":green[●] {text.format(value=deviation)}")
    if metrics.latest:
        speed = float(np.median([x["images_per_s"] for x in metrics.latest]))
        st.caption(_("{speed} images/s").format(speed=f"{speed:,.0f}"))


def baselines(run: Run) -> dict[str, float]:
    """Return the kNN accuracy in per cent of pixels and of an untrained encoder, if a first inspection measured it."""
    data, method = (str(run.config.get(name)) for name in ("dataset", "method"))
    try:
        found = cache.result("look", with_change(data, method=method))
    except (OSError, ValueError):
        return {}
    facts = found.meta["facts"] if found else {}
    named = ((_("pixels"), facts.get("pixels_knn")), (_("untrained"), facts.get("random_encoder")))
    return {f"{name} {100 * value:.3g}": 100 * value for name, value in named if value is not None}


def sparkline(
    title: str,
    value: str,
    ys: Sequence[float],
    baselines: Mapping[str, float] = {},
    share: float = 1.0,
    note: str = "",
    marks: Sequence[float] = (),
) -> Html:
    """Return a curve as an HTML element. Args: ys: spread evenly over `share` of the width; baselines: by name; marks:
    positions of vertical lines, as parts of that share."""
    every = [*ys, *baselines.values()]
    low, high = (min(every), max(every)) if every else (0.0, 1.0)
    room = MARGIN * (high - low) or 1.0

    def down(y: float) -> float:
        return 100 * (high + room - y) / (high - low + 2 * room)

    steps = [100 * share * k / max(1, len(ys) - 1) for k in range(len(ys))]
    upper = [f"{x:.2f}% calc({down(y):.2f}% - 1px)" for x, y in zip(steps, ys, strict=True)]
    lower = [f"{x:.2f}% calc({down(y):.2f}% + 1px)" for x, y in zip(steps, ys, strict=True)]
    outline = ", ".join([*upper, *reversed(lower)])  # as a shape: st.html leaves SVG out
    drawn = [el("u", style=f"top: {down(y):.2f}%") for y in baselines.values()]
    drawn += [el("s", style=f"left: {100 * share * place:.2f}%") for place in marks]
    drawn += [el("b", style=f"clip-path: polygon({outline})")] if len(ys) > 1 else []
    drawn += [el("i", style=f"left: {steps[-1]:.2f}%; top: {down(ys[-1]):.2f}%")] if ys else []
    drawn += [el("small", name, class_="name", style=f"top: {down(y):.2f}%") for name, y in baselines.items()]
    head = el("div", el("span", title), el("strong", value))
    line = el("div", *drawn, class_="line", style=f"height: {HIGH}px")
    return el("div", head, line, el("small", note), class_="sparkline")


# --- on the stage ---


def thinned(metrics: MetricsReader) -> Sequence[Line]:
    """Return as many lines of steps as a curve shows, without the last batch of an epoch if it is smaller; for a
    shipped run without them, those of its epochs."""
    ends, lines = {line["step"] for line in metrics.epochs}, list[Line]()
    for line in metrics.steps or metrics.epochs:  # fewer images have fewer negatives, and a lower loss
        is_smaller = line["step"] in ends and lines and line.get("n_valid", 0) < SMALLER * lines[-1].get("n_valid", 0)
        lines += [] if is_smaller else [line]
    return lines[:: max(1, -(-len(lines) // FEW_STEPS))]


def scores_of(metrics: MetricsReader, name: str) -> list[tuple[int, float]]:
    """Return the named score after each epoch that has one."""
    return [(x["epoch"], x[name]) for x in metrics.epochs if name in x]


def draw_curves(run: Run, metrics: MetricsReader, marks: Marks) -> None:
    """Draw all curves of the training: kNN accuracy with classes, recall between two towers."""
    if not (thin := thinned(metrics)):
        return
    loss = {"loss": ([x["step"] for x in thin], [x["loss"] for x in thin])}
    towers = tower_figures(metrics.epochs, thin, marks)
    drawn = {"loss": figures.curves(loss, "step", _("Loss")), **towers}
    draw_marks(drawn["loss"], marks["step"])
    cells: list[Callable[[], object]] = [
        partial(st.plotly_chart, figure, key=f"{key}-{run.name}", config=figures.SVG) for key, figure in drawn.items()
    ]
    scored = scores_of(metrics, KNN)
    if scored or run.manifest.get("classes"):
        cells.insert(1, partial(vote, run, scored, marks))
    for at in range(0, len(cells), 2):
        for column, cell in zip(st.columns(2), cells[at : at + 2], strict=False):
            with column:
                cell()
    if "recall" in towers:
        st.caption(_(OF_SAMPLE))


def vote(run: Run, scored: list[tuple[int, float]], marks: Marks) -> None:
    """Draw kNN accuracy over the epochs with intervals and baselines, and a sentence about the intervals."""
    epochs, n = [epoch for epoch, _share in scored], labeled_images(run)
    knn = {"kNN": (epochs, [100 * share for _epoch, share in scored])}
    figure = figures.curves(knn, "epoch", _("kNN on the training sample, %"))
    if ends := shares(scored, n):
        figures.band(figure, epochs, ends, "95 %", PALETTE[0])
    for name, value in baselines(run).items():
        place = {"annotation_position": "top left", "annotation_text": name}  # the button stands on the right
        figure.add_hline(y=value, line={"dash": "dot", "color": "gray"}, **place)
    draw_marks(figure, marks["epoch"])
    figure.update_layout(showlegend=False)
    st.plotly_chart(figure, key=f"knn-{run.name}", config=figures.SVG)
    if ends:
        st.caption(since(epochs, ends, n))


def shares(scored: list[tuple[int, float]], n: int) -> list[tuple[float, float]]:
    """Return the 95 % interval of each share of n images, in per cent; empty if n is unknown."""
    ends = [wilson(round(share * n), n) for _epoch, share in scored] if n else []
    return [(100 * low, 100 * high) for low, high in ends]


def since(epochs: list[int], ends: list[tuple[float, float]], n: int) -> str:
    """Describe from which epoch on the intervals overlap the last one, so no difference is shown."""
    low, high = ends[-1]
    first = len(ends) - 1
    while first and ends[first - 1][0] <= high and low <= ends[first - 1][1]:
        first -= 1
    of = _("The band is the 95 % interval over {n} images, for this seed only.").format(n=f"{n:,}")
    if len(ends) == 1:
        return of
    template = _("{band} Accuracy has not changed significantly since epoch {epochs}.")
    if first == len(ends) - 1:
        template = _("{band} The interval of the last epoch does not overlap that of the epoch before.")
    return template.format(band=of, epochs=epochs[first])


# --- two towers, and monitors of a collapse ---


def tower_figures(epochs: Sequence[Line], steps: Sequence[Line], marks: Marks) -> dict[str, Any]:
    """Return figures of recall@1 in both directions, the modality gap, and learned values, by name; empty without two
    towers. Args: marks: of changed settings."""
    drawn = {}
    if recall := _series(epochs, RECALL, "epoch", 100):
        drawn["recall"] = figures.curves(recall, "epoch", _("Recall@1 on the training sample, %"))
    titles = {GAP: N_("Modality gap"), **LEARNED}
    for key, title in titles.items():
        lines, x = (steps, "step") if key in LEARNED else (epochs, "epoch")
        if series := _series(lines, {key: title}, x):
            drawn[key] = figures.curves(series, x, _(title))
            drawn[key].update_layout(showlegend=False)
    if GAP in drawn:
        drawn[GAP].update_yaxes(rangemode="tozero")
    for key, figure in drawn.items():
        draw_marks(figure, marks["step" if key in LEARNED else "epoch"])
    return drawn


def _series(
    lines: Sequence[Line], names: Mapping[str, str], x: str, factor: float = 1
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the named values that lines have, times a factor, over x; by their titles."""
    found = {}
    for name, title in names.items():
        if known := [line for line in lines if line.get(name) is not None]:
            found[str(_(title))] = ([line[x] for line in known], [factor * line[name] for line in known])
    return found


def draw_collapse(name: str, steps: Sequence[Line], epochs: Sequence[Line], marks: Marks) -> None:
    """Draw the collapse monitors. Args: name: of the run."""
    if not any("z_std" in line for line in steps):
        st.caption(_("This run has not recorded any collapse monitors."))
        return
    st.caption(_(HELP))
    panels = (
        (_("Deviation"), DEVIATIONS, steps, "step"),
        (_("Effective rank"), RANK, epochs, "epoch"),
        (_("Correlation and distance"), SHARES, epochs, "epoch"),
    )
    for number, (column, (title, names, lines, x)) in enumerate(zip(st.columns(3), panels, strict=True)):
        if series := _series(lines, names, x):
            figure = figures.curves(series, x, title)
            figure.update_yaxes(rangemode="tozero")
            draw_marks(figure, marks[x])
            column.plotly_chart(figure, key=f"monitor-{number}-{name}", config=figures.SVG)
