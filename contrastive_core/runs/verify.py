"""Is every file of a run what was written? Each is opened: JSON is held to its shape, weights and
states to their SHA-256. Torch-free, but for weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from contrastive_core.errors import Damaged
from contrastive_core.runs import Run, formats, recorded
from contrastive_core.storage import records
from contrastive_core.storage.shapes import Shape

__all__ = ["damage", "damaged_records"]

OBJECTS = {
    "status.json": formats.STATUS,
    "evaluation.json": formats.EVALUATION,
    "meta.json": formats.META,
}
LINES: dict[str, Shape] = {
    "metrics.jsonl": formats.METRICS,
    "marks.jsonl": formats.MARK,
}


def damage(run: Run) -> list[str]:
    """A sentence for each damaged file of the run; nothing is touched."""
    from contrastive_core.runs import checkpoints

    sentences = damaged_records(run)
    for epoch in run.snapshots():
        path = run.path / "snapshots" / f"{run.unit}-{epoch:04d}.npz"
        sentences += _problem(run, path, partial(run.snapshot, epoch))
    for step in recorded.steps(run):
        sentences += _problem(run, recorded.path_of(run, step), partial(recorded.read, run, step))
    for path in checkpoints.state_manifests(run):
        sentences += _problem(run, path, partial(checkpoints.read_state, path))
    if run.weights.exists():
        sentences += _problem(run, run.weights, partial(checkpoints.load_weights, run))
    return sentences


def damaged_records(run: Run) -> list[str]:
    """The same for the small files only, quick enough for a page."""
    path = run.path / "run.json"
    sentences = _problem(run, path, partial(formats.read_manifest, path))
    for name, shape in OBJECTS.items():
        path = run.path / name
        sentences += _problem(run, path, partial(records.read_object, path, shape))
    for name, shape in LINES.items():
        path = run.path / name
        sentences += _problem(run, path, partial(_check_lines, path, shape))
    return sentences


def _problem(run: Run, path: Path, read: Callable[[], object]) -> list[str]:
    """What is wrong with a file, if anything; nothing where it is missing."""
    try:
        read()
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, OSError) as error:
        name, why = str(path.relative_to(run.path)), str(error)
        inside = why.replace(f"{run.path}/", "")
        return [inside if inside != why else f"{name}: {why}"]
    return []


def _check_lines(path: Path, shape: Shape) -> None:
    bad = records.damaged_lines(path, shape)
    if bad:
        numbers = ", ".join(map(str, bad[:10])) + (", …" if len(bad) > 10 else "")
        some = f"line {numbers} is" if len(bad) == 1 else f"lines {numbers} are"
        raise Damaged(f"{some} damaged and left out; the others are read")
