"""Integrity checks of a run's files: JSON by schema, weights and states by SHA-256. Torch-free except for weights."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged
from contrastive_core.base.json_files import Schema
from contrastive_core.base.messages import sentence
from contrastive_core.runs.records import CHANGE, CHECK, CHECK_FILE, MARK, META, METRICS, REQUEST, STATUS
from contrastive_core.runs.run import Run, read_manifest
from contrastive_core.spaces import recorded_rows


def _check_lines(path: Path, schema: Schema) -> None:
    if bad := json_files.damaged_lines(path, schema):
        numbers = ", ".join(map(str, bad[:10])) + (", …" if len(bad) > 10 else "")
        raise Damaged("damaged lines are skipped and the others are read: {numbers}", numbers=numbers)


READERS: dict[str, Callable[[Path], object]] = {  # of a run's small files
    "run.json": read_manifest,
    "status.json": partial(json_files.read_object, schema=STATUS),
    "meta.json": partial(json_files.read_object, schema=META),
    "metrics.jsonl": partial(_check_lines, schema=METRICS),
    CHECK_FILE: partial(json_files.read_object, schema=CHECK),
    "changes.jsonl": partial(_check_lines, schema=CHANGE),
    "requests.jsonl": partial(_check_lines, schema=REQUEST),
    "marks.jsonl": partial(_check_lines, schema=MARK),
}


def damage(run: Run) -> list[str]:
    """List the damaged files of a run, one sentence each, without changing anything."""
    from contrastive_core.runs import checkpoints

    snapshots = [(run.path / "snapshots" / f"{run.unit}-{epoch:04d}.npz", epoch) for epoch in run.snapshots()]
    steps = recorded_rows.steps(run)
    files: list[tuple[Path, Callable[[], object]]] = [
        *((path, partial(run.snapshot, epoch)) for path, epoch in snapshots),
        *((recorded_rows.path_of(run, step), partial(recorded_rows.read, run, step)) for step in steps),
        *((path, partial(checkpoints.read_state, path)) for path in checkpoints.state_manifests(run)),
        *([(run.weights, partial(checkpoints.load_weights, run))] if run.weights.exists() else []),
    ]
    return damaged_records(run) + [text for path, read in files if (text := _problem(run, path, read))]


def damaged_records(run: Run) -> list[str]:
    """List the damaged small files of a run, fast enough for a page."""
    files = [(run.path / name, partial(read, run.path / name)) for name, read in READERS.items()]
    return [text for path, read in files if (text := _problem(run, path, read))]


def _problem(run: Run, path: Path, read: Callable[[], object]) -> str:
    """Describe the damage of a file; "" for an intact or a missing one."""
    try:
        read()
    except FileNotFoundError:
        return ""
    except (ValueError, KeyError, TypeError, OSError) as error:
        why = sentence(error)
        inside = why.replace(f"{run.path}/", "")
        return inside if inside != why else f"{path.relative_to(run.path)}: {why}"
    return ""
