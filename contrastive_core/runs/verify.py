"""Is every file of a run what was written? Each is opened: JSON is checked against its schema, weights and
states to their SHA-256. Torch-free, but for weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from contrastive_core.errors import Damaged
from contrastive_core.messages import message, sentence
from contrastive_core.records import recorded_steps, run_files
from contrastive_core.records.evaluation import EVALUATION
from contrastive_core.records.run import Run
from contrastive_core.storage import json_files
from contrastive_core.storage.json_schema import Schema

__all__ = ["damage", "damaged_records"]

OBJECTS = {"status.json": run_files.STATUS, "evaluation.json": EVALUATION, "meta.json": run_files.META}
LINES: dict[str, Schema] = {"metrics.jsonl": run_files.METRICS, "marks.jsonl": run_files.MARK}


def damage(run: Run) -> list[str]:
    """A sentence for each damaged file of the run; nothing is touched."""
    from contrastive_core.runs import checkpoints

    sentences = damaged_records(run)
    for epoch in run.snapshots():
        path = run.path / "snapshots" / f"{run.unit}-{epoch:04d}.npz"
        sentences += _problem(run, path, partial(run.snapshot, epoch))
    for step in recorded_steps.steps(run):
        sentences += _problem(run, recorded_steps.path_of(run, step), partial(recorded_steps.read, run, step))
    for path in checkpoints.state_manifests(run):
        sentences += _problem(run, path, partial(checkpoints.read_state, path))
    if run.weights.exists():
        sentences += _problem(run, run.weights, partial(checkpoints.load_weights, run))
    return sentences


def damaged_records(run: Run) -> list[str]:
    """The same for the small files only, quick enough for a page."""
    path = run.path / "run.json"
    sentences = _problem(run, path, partial(run_files.read_manifest, path))
    for name, schema in OBJECTS.items():
        path = run.path / name
        sentences += _problem(run, path, partial(json_files.read_object, path, schema))
    for name, schema in LINES.items():
        path = run.path / name
        sentences += _problem(run, path, partial(_check_lines, path, schema))
    return sentences


def _problem(run: Run, path: Path, read: Callable[[], object]) -> list[str]:
    """What is wrong with a file, if anything; nothing where it is missing."""
    try:
        read()
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, OSError) as error:
        name, why = str(path.relative_to(run.path)), sentence(error)
        inside = why.replace(f"{run.path}/", "")
        return [inside if inside != why else f"{name}: {why}"]
    return []


def _check_lines(path: Path, schema: Schema) -> None:
    bad = json_files.damaged_lines(path, schema)
    if bad:
        numbers = ", ".join(map(str, bad[:10])) + (", …" if len(bad) > 10 else "")
        some = (
            message("line {numbers} is", numbers=numbers)
            if len(bad) == 1
            else message("lines {numbers} are", numbers=numbers)
        )
        raise Damaged("{some} damaged and left out; the others are read", some=some)
