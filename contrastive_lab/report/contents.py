"""What a report says: each run's rows, map, scores, settings and a batch, and their comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from contrastive_core.embeddings.reading import read_images
from contrastive_core.engine import answers
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.evaluate import evaluate
from contrastive_core.loss_lab.batch import load_batch
from contrastive_core.loss_lab.view import compute_view
from contrastive_core.records import OnProgress, embedding_ref, fraction_of, prefixed, runs
from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import Evaluation, read_evaluation
from contrastive_core.records.run import Run
from contrastive_core.records.train_config import described
from contrastive_lab.compare.comparison_request import comparison_of
from contrastive_lab.components.loss_view import LossView, PairAxes
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.components.shared.transport import digest
from contrastive_lab.loss_description import about_loss
from contrastive_lab.loss_setting import default_pairing, request_of, setting_of

MOST = 8  # runs
POINTS = 2000  # of each run's map
BATCH = 64  # columns of the live view


@dataclass(frozen=True, eq=False)
class RunPart:
    """One run. `xy` and `images` are of the `shown` rows."""

    title: str
    about: str
    rows: EmbeddingSet
    shown: np.ndarray  # (k) rows of the map
    xy: np.ndarray  # (k, 2)
    images: np.ndarray | None  # (k, c, h, w) uint8
    map_about: dict[str, Any]  # its settings and quality
    evaluation: Evaluation | None
    layer: str
    settings: list[tuple[str, str]]
    loss_view: LossView | None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Contents:
    """All runs, and what the comparison says; `apart` says why there is none."""

    parts: list[RunPart]
    comparison: Comparison | None = None
    apart: str = ""


@dataclass(frozen=True)
class ReportRequest:
    """What a report is asked to show of each run."""

    split: str = "test"
    layer: str = "h"
    map: str = "pca"
    device: str = "auto"


def gather(names: Sequence[str], asked: ReportRequest, on_progress: OnProgress) -> Contents:
    """Everything, made where it is not kept. Raises ValueError with the reason."""
    names = list(dict.fromkeys(names))
    if len(names) > MOST:
        raise ValueError(f"a report is of at most {MOST} runs; got {len(names)}")
    chosen = [runs.load(name) for name in names]
    spaces = [embedding_ref.of_run(run, asked.split, asked.layer) for run in chosen]
    parts = [_part(*one, asked, prefixed(on_progress, one[0].name)) for one in zip(chosen, spaces, strict=True)]
    if len(parts) < 2:
        return Contents(parts)
    data = {(str(r.config.get("dataset")), str(r.manifest.get("data_fingerprint"))) for r in chosen}
    if len(data) > 1:
        named = ", ".join(sorted({name for name, _ in data}))
        return Contents(parts, apart=f"These runs have no samples in common: they are of {named}.")
    result = answers.make("comparison", comparison_of(spaces), on_progress, asked.device)
    return Contents(parts, Comparison.of(result.meta, result.arrays))


def _part(run: Run, space: EmbeddingRef, asked: ReportRequest, on_progress: OnProgress) -> RunPart:
    rows = embed_run(run, space.split, space.layer, asked.device, fraction_of(on_progress, "embedding"))
    evaluation = read_evaluation(run, asked.split)
    if evaluation is None and asked.split == "test":
        evaluation = evaluate(run, device=asked.device, on_progress=on_progress)
    values = answers.with_defaults({"space": space.values, "kind": asked.map})
    drawn_map = answers.make("map", values, on_progress, asked.device)
    shown = np.sort(np.random.default_rng(0).permutation(len(rows))[:POINTS])  # the same of all runs on the same rows
    on_progress("images and a batch", None)
    images, without_images = _images(space, shown)
    view, note = _loss_view(run)
    notes = [text for text in (without_images, run.manifest.get("left_out"), note) if text]
    title, points = str(run.meta().get("title") or run.name), drawn_map.arrays["xy"][shown]
    about = _about(run, space, len(rows))
    of_map = (rows, shown, points, images, drawn_map.meta)
    return RunPart(title, about, *of_map, evaluation, space.layer, _settings(run), view, notes)


def _about(run: Run, space: EmbeddingRef, n: int) -> str:
    """What the run is and which of its rows are shown, in one line."""
    config = run.config
    trained = f"{config.get('epochs')} epochs · seed {config.get('seed')}"
    if imported := run.manifest.get("imported"):
        trained = "random weights, not trained" if imported.get("random") else "not trained here"
    loss, rows = f"loss {config.get('loss')}", f"{space.split} split, {n:,} rows of {space.layer}"
    parts = [config.get("method"), loss, config.get("dataset"), trained, rows, described(config)]
    return " · ".join(str(part) for part in parts if part != "")


def _images(space: EmbeddingRef, shown: np.ndarray) -> tuple[np.ndarray | None, str]:
    """Images of some rows; or a sentence where there are none."""
    try:
        images = read_images(space)
    except (ValueError, OSError) as error:
        return None, f"The map has no pictures: {error}"
    return (None if images is None else np.asarray(images[shown])), ""


def _settings(run: Run) -> list[tuple[str, str]]:
    """What the run was trained with, one line each, then who made it."""
    lines = [("run", run.name)]
    for key, value in run.config.items():
        named = {f"{key}.{name}": v for name, v in value.items()} if isinstance(value, dict) else {key: value}
        lines += [(name, str(v)) for name, v in named.items()]
    for key in ("created", "data_fingerprint", "versions"):
        value = run.manifest.get(key)
        inner = value if isinstance(value, dict) else {"": value}
        lines += [(f"{key} {name}".strip(), str(v)) for name, v in inner.items() if v is not None]
    return lines


def _loss_view(run: Run) -> tuple[LossView | None, str]:
    """A batch of the run's own data under its own loss; or a sentence why there is none."""
    loss, pairing = str(run.config.get("loss")), default_pairing(run)
    try:
        about = about_loss(loss, dict(run.config.get("loss_knobs") or {}))
        batch = load_batch(run, request_of("z", pairing, BATCH, 0))
        view = compute_view(batch, pairing, loss, about["values"])
    except (ValueError, OSError, TypeError) as error:
        return None, f"There is no live loss view: {error}"
    setting = setting_of(view, about, about["values"], digest(run.name, loss))
    if view.kernel is None:  # nothing can be dragged: there is no library behind a file
        setting = replace(setting, knob=None)
    return LossView(setting, PairAxes.of(view, thumbnail_sheet(batch.thumbs)), loss, about["title"]), view.note
