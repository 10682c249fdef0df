"""Is every file of a run what was written? Each is opened, and held to its hash. Torch-free, but
for weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from contrastive_core.errors import Damaged
from contrastive_core.runs import Run
from contrastive_core.storage import atomic, records

__all__ = ["damage", "damaged_records"]

RECORDS = ("run.json", "status.json", "evaluation.json", "meta.json")
LINES = ("metrics.jsonl", "marks.jsonl")


def damage(run: Run) -> list[str]:
    """A sentence for each damaged file of the run; nothing is touched."""
    from contrastive_core.runs import checkpoints

    found = damaged_records(run)
    for epoch in run.snapshots():
        path = run.path / "snapshots" / f"epoch-{epoch:04d}.npz"
        found += _look(run, path, lambda epoch=epoch: run.snapshot(epoch))  # type: ignore[misc]
    for path in sorted((run.path / "state").glob("*.json")):
        file = path.with_suffix(".safetensors")
        found += _look(run, file, lambda path=path: _state(path))  # type: ignore[misc]
    if run.weights.exists():
        found += _look(run, run.weights, lambda: checkpoints.load_weights(run))
    return found


def damaged_records(run: Run) -> list[str]:
    """The same for the small files only, quick enough for a page."""
    found: list[str] = []
    for name in RECORDS:
        path = run.path / name
        found += _look(run, path, lambda path=path: records.read_json(path))  # type: ignore[misc]
    for name in LINES:
        path = run.path / name
        found += _look(run, path, lambda path=path: _lines(path))  # type: ignore[misc]
    return found


def _look(run: Run, path: Path, read: Callable[[], object]) -> list[str]:
    """What is wrong with a file, if anything; none where it is missing."""
    try:
        read()
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, OSError) as error:
        name, said = str(path.relative_to(run.path)), str(error)
        return [said.replace(str(path), name) if str(path) in said else f"{name}: {said}"]
    return []


def _lines(path: Path) -> None:
    bad = records.damaged_lines(path)
    if bad:
        shown = ", ".join(map(str, bad[:10])) + (", …" if len(bad) > 10 else "")
        some = f"line {shown} is" if len(bad) == 1 else f"lines {shown} are"
        raise Damaged(f"{some} damaged and left out; the others are read")


def _state(manifest: Path) -> None:
    wanted = records.read_json(manifest)["sha256"]
    data = manifest.with_suffix(".safetensors")
    if not data.exists():
        raise Damaged("missing")
    if atomic.sha256_file(data) != wanted:
        raise Damaged("its hash is not what was written")
