"""Is every file of a run what was written? Each is opened, and held to its hash if it has one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from contrastive_core import checkpoints, store
from contrastive_core.runs import Run

__all__ = ["damage"]


def damage(run: Run) -> list[str]:
    """A sentence for each damaged file of the run; nothing is touched."""
    found: list[str] = []

    def look(path: Path, read: Callable[[], object]) -> None:
        try:
            read()
        except FileNotFoundError:
            return
        except (store.Damaged, ValueError, KeyError, TypeError, OSError) as error:
            found.append(f"{path.relative_to(run.path)}: {error}")

    for name in ("run.json", "status.json", "evaluation.json", "meta.json"):
        path = run.path / name
        if path.exists():
            look(path, lambda path=path: store.read_json(path))  # type: ignore[misc]
    look(run.path / "metrics.jsonl", lambda: _lines(run.path / "metrics.jsonl"))
    for epoch in run.snapshots():
        path = run.path / "snapshots" / f"epoch-{epoch:04d}.npz"
        look(path, lambda epoch=epoch: run.snapshot(epoch))  # type: ignore[misc]
    for path in sorted((run.path / "state").glob("*.json")):
        look(path.with_suffix(".safetensors"), lambda path=path: _state(path))  # type: ignore[misc]
    weights = run.path / "weights.safetensors"
    if weights.exists():
        look(weights, lambda: checkpoints.load_weights(run))
    return found


def _lines(path: Path) -> None:
    """Every line but the last must be whole: a kill may tear that one, and resume cuts it off."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    for number, line in enumerate(lines, 1):
        try:
            json.loads(line)
        except ValueError:
            raise store.Damaged(f"line {number} is damaged") from None


def _state(manifest: Path) -> None:
    wanted = store.read_json(manifest)["sha256"]
    data = manifest.with_suffix(".safetensors")
    if not data.exists():
        raise store.Damaged("missing")
    if store.sha256_file(data) != wanted:
        raise store.Damaged("its hash is not what was written")
