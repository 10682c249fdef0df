"""The content of a report: rows, map and scores of each space, settings, a batch and the comparison."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.progress import OnProgress, prefixed
from contrastive_core.base.score import Scores, scores_from_json
from contrastive_core.base.storage import data_home, runs_home
from contrastive_core.compare.comparison import Comparison, comparison_request
from contrastive_core.compare.evaluation import PREFIX, SOURCES, read_evaluation, references_of
from contrastive_core.data.dataset import described
from contrastive_core.data.datasets import SPLITS
from contrastive_core.engine import answers, catalog
from contrastive_core.engine.answers.scores import evaluate
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import default_pairing, request_of
from contrastive_core.lab.view import about_loss, compute_view
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import read_loop_check
from contrastive_core.samples import annotations
from contrastive_core.samples.label_audit import audit_table
from contrastive_core.samples.sample_table import request_of as request_of_samples
from contrastive_core.spaces import results
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_lab import format
from contrastive_lab.components.loss_view import LossView, PairAxes
from contrastive_lab.components.shared.mount import thumbnail_sheet
from contrastive_lab.loss_setting import setting_of
from contrastive_lab.report import views_asked
from contrastive_lab.setting_names import main_setting, shown_name, shown_value

POINTS = 2000  # of each run's map
BATCH = 64  # columns of the live view
TITLED = {"method": "methods", "loss": "losses"}
UPKEEP = set(
    "device threads channels_last compile capture monitor_every snapshot_every sample save_seconds "
    "collapse_patience".split()
)
PATH = re.compile(r"(?<![\w.:])(?:~|[A-Za-z]:)?[/\\][^\s:*?\"<>|]*[/\\]([^\s/\\]+)")  # of two folders or more


@dataclass(frozen=True, eq=False)
class Part:
    """The content for a run, a recording or a file of vectors. `xy` and `images` belong to the `shown` rows."""

    title: str
    about: str
    rows: EmbeddingSet
    shown: np.ndarray  # (k) rows of the map
    xy: np.ndarray  # (k, 2)
    images: np.ndarray | None  # (k, c, h, w) uint8
    map_settings: Mapping[str, float | str]
    map_quality: Mapping[str, float]
    scores: dict[str, Scores]  # by source, its own first
    settings: list[tuple[str, str]]
    loss_view: LossView | None
    notes: list[str] = field(default_factory=list)
    cost: JsonObject | None = None  # of compressed vectors, if it has been computed


@dataclass(frozen=True, eq=False)
class Contents:
    """Content of a report: its parts and the comparison. `apart` is the reason if there is no comparison."""

    parts: list[Part]
    comparison: Comparison | None = None
    apart: str = ""
    adapter: JsonObject | None = None  # between the first two, if it has been fitted


def gather(spaces: Sequence[Space], map_kind: str, device: str, on_progress: OnProgress, qrels: str = "") -> Contents:
    """Collect the content, and compute missing results. Args: qrels: a file of relevance judgments. Raises ValueError
    with the reason."""
    parts = [_part(space, map_kind, device, prefixed(on_progress, space.title)) for space in spaces]
    stored = [results.read(*one) for one in views_asked(spaces, qrels)]
    views = [None if one is None else one.meta for one in stored]
    parts = [replace(part, cost=cost) for part, cost in zip(parts, views, strict=False)]
    if len(parts) < 2:
        return Contents(parts)
    chosen = [run for space in spaces if (run := space.run)]
    data = {(str(run.config.get("dataset")), str(run.manifest.get("data_fingerprint"))) for run in chosen}
    comparison, apart = None, ""
    if len(data) > 1:
        named = ", ".join(sorted({Path(format.data_of(name)).name for name, _ in data}))
        apart = f"These runs have no samples in common: they use {named}."
    else:
        try:
            result = answers.make("comparison", comparison_request(spaces, qrels=qrels), on_progress, device)
            comparison = Comparison.of(result.meta, result.arrays)
        except ValueError as error:
            apart = f"They are not compared: {error}."
    return Contents(parts, comparison, apart, adapter=views[-1])


def _part(space: Space, map_kind: str, device: str, on_progress: OnProgress) -> Part:
    run, place = space.run, space.recorded
    source = place.run if place else run
    rows = answers.rows_of(space, on_progress, device)
    if run:
        found = evaluate(run, space.split, device, on_progress).scores
        scores = {name: found[name] for name in dict.fromkeys((space.layer, *SOURCES)) if name in found}
        if space.split == "test":
            stored = {one.name: read_evaluation(one) for one in references_of(run)}
            scores |= {PREFIX + name: record.scores["h"] for name, record in stored.items() if record}
    else:
        made = answers.make("scores", {"space": space.values}, on_progress, device).meta["scores"]
        scores = {space.layer if k == "own" else k: scores_from_json(v) for k, v in made.items()}
    map_values = answers.with_defaults({"space": space.values, "kind": map_kind})
    drawn_map = answers.make("map", map_values, on_progress, device)
    shown = np.sort(np.random.default_rng(0).permutation(len(rows))[:POINTS])  # the same of all runs on the same rows
    on_progress("images and a batch", None)
    images, without_images = None, ""
    try:
        if (every := space.images()) is not None:
            images = np.asarray(every[shown])
    except (ValueError, OSError) as error:
        without_images = f"The map has no pictures: {error}"
    view, note = _loss_view(run) if run else (None, "")
    left_out = run.manifest.get("left_out") if run else ""
    loop = read_loop_check(source) if source else None
    checked = f"{loop['text']} {loop['numbers']}" if loop and loop["faults"] else ""
    status = source.status() if source else {}
    turned = format.in_form(status["note"]) if status.get("is_warned") else ""
    told = (turned, checked, without_images, left_out, note, *(label_checks(run) if run else ()))
    notes = [without_paths(text, source) for text in told if text]
    return Part(
        title=str((run and run.meta().get("title")) or space.title),
        about=without_paths(_about(space, rows), source),
        rows=rows,
        shown=shown,
        xy=drawn_map.arrays["xy"][shown],
        images=images,
        map_settings=drawn_map.meta["settings"],
        map_quality=drawn_map.meta["quality"],
        scores=scores,
        settings=_settings(source) if source else [],
        loss_view=view,
        notes=notes,
    )


def label_checks(run: Run) -> list[str]:
    """Return for each split an estimate of its wrong labels from checked random rows; [] without a check."""
    told = []
    for split in SPLITS:
        request = request_of_samples(run.name, split)
        table = request.table() if request.path().exists() else None
        audit = None if table is None else audit_table(table, annotations.marks(request.decisions()), run)
        if audit is not None and audit.estimate:
            told.append(f"{split} split: {audit.estimate}")
    return told


def without_paths(text: str, run: Run | None = None) -> str:
    """Shorten paths in a text to their last name, for a file that is passed on."""
    folder = Path(format.data_of(run.config.get("dataset")) if run else "")
    if len(folder.parts) > 1:  # its name may hold spaces
        text = text.replace(str(folder), folder.name)
    for root in (data_home(), runs_home(), Path.home()):
        text = text.replace(f"{root}{os.sep}", "")
    return PATH.sub(r"\1", text)


def _about(space: Space, rows: EmbeddingSet) -> str:
    """Describe the run and the shown rows in one line."""
    if (run := space.run) is None:
        labels = "no labels" if rows.labels is None else f"{int((rows.labels >= 0).sum()):,} of them with a label"
        kind, split = "recording" if space.recorded else "vectors", f"{space.split} split" if space.split else ""
        parts = [kind, split, f"{len(rows):,} rows", labels, f"{rows.width:,} dimensions"]
        return " · ".join(filter(None, parts))
    config = run.config
    trained = f"{format.epochs(config.get('epochs'))} · seed {config.get('seed')}"
    if imported := run.manifest.get("imported"):
        trained = "random weights, not trained" if imported.get("random") else "not trained here"
    names = [
        *(catalog.title(kind, str(config.get(key))) for key, kind in TITLED.items()),
        main_setting(run, catalog.read()),
    ]
    shown = f"{space.split} split, {len(rows):,} rows of {space.layer}"
    parts = [*names, format.data_of(config.get("dataset")), trained, shown, described(config)]
    return " · ".join(str(part) for part in dict.fromkeys(parts) if part != "")


def _settings(run: Run) -> list[tuple[str, str]]:
    """Return the settings of the run, one line each, then its origin."""
    known = {k: v for k, v in run.config.items() if v not in (None, "", {}) and k not in UPKEEP}
    known |= {key: catalog.title(kind, str(known[key])) for key, kind in TITLED.items() if key in known}
    lines = [("run", run.name), *((shown_name(k), shown_value(v)) for k, v in known.items())]
    lines.append(("made on", str(run.manifest.get("created") or "")[:10]))
    lines.append(("fingerprint of the data", str(run.manifest.get("data_fingerprint") or "")))
    versions = run.manifest.get("versions") or {}
    lines += [(f"version of {name}", str(v or "")) for name, v in versions.items()]
    return [(name, without_paths(value, run)) for name, value in lines if value]


def _loss_view(run: Run) -> tuple[LossView | None, str]:
    """Return a batch of the run's own data under its own loss; or the reason why there is none."""
    loss, pairing = str(run.config.get("loss")), default_pairing(run)
    try:
        about = about_loss(loss, dict(run.config.get("loss_knobs") or {}))
        batch = load_batch(run, request_of("z", pairing, BATCH, 0))
        view = compute_view(batch, pairing, loss, about["values"])
    except (ValueError, OSError, TypeError) as error:
        return None, f"There is no live loss view: {error}"
    setting = setting_of(view, about, about["values"], run.name)
    if view.kernel is None:  # nothing can be dragged: there is no library behind a file
        setting = replace(setting, knob=None)
    return LossView(setting, PairAxes.of(view, thumbnail_sheet(batch.thumbs)), loss, about["title"]), view.note
