"""What a person decided about samples: keep, relabel, drop. Kept beside the run, with undo.

Every decision is a line of `marks.jsonl`; the last one of a sample counts; undo takes the last line
back. `export` writes the two files that `train --exclude` and `--relabel` read. Torch-free.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from contrastive_core import data, store
from contrastive_core.runs import Run

__all__ = ["CHOICES", "add", "export", "marks", "undo"]

CHOICES = ("keep", "relabel", "drop")


def marks(run: Run) -> dict[str, dict[str, Any]]:
    """The decision on each sample: `what`, and `label` for a relabel."""
    found: dict[str, dict[str, Any]] = {}
    for line in store.read_lines(_path(run)):
        if isinstance(line, dict) and line.get("what") in (*CHOICES, None):
            if line["what"] is None:
                found.pop(str(line["id"]), None)
            else:
                found[str(line["id"])] = line
    return found


def add(run: Run, sample: str, what: str | None, label: str | None = None) -> None:
    """Decide on a sample; None takes its decision away. Raises ValueError for another word."""
    if what not in (*CHOICES, None):
        raise ValueError(f"a mark is one of {', '.join(CHOICES)}; got {what!r}")
    if what == "relabel" and not label:
        raise ValueError("a relabel needs the class that the sample should have")
    path = _path(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    store.append_lines(path, [{"id": sample, "what": what, "label": label}])


def undo(run: Run) -> str | None:
    """Take the last decision back; returns the sample it was on."""
    lines = store.read_lines(_path(run))
    if not lines:
        return None
    last = lines.pop()
    store.write_bytes(_path(run), b"")
    store.append_lines(_path(run), lines)
    return str(last["id"])


def export(run: Run) -> tuple[Path, Path, int, int]:
    """Write `exclude.csv` and `relabel.csv`; their paths and how many samples each names."""
    found = marks(run)
    drop = [i for i, m in found.items() if m["what"] == "drop"]
    relabel = [(i, m["label"]) for i, m in found.items() if m["what"] == "relabel"]
    folder = _path(run).parent
    exclude_path, relabel_path = folder / "exclude.csv", folder / "relabel.csv"
    store.write_bytes(exclude_path, _csv(["id"], [[i] for i in drop]))
    store.write_bytes(relabel_path, _csv(["id", "label"], [list(r) for r in relabel]))
    return exclude_path, relabel_path, len(drop), len(relabel)


def _csv(head: list[str], rows: list[list[Any]]) -> bytes:
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(head)
    table.writerows(rows)
    return out.getvalue().encode()


def _path(run: Run) -> Path:
    """Shipped runs are read-only: marks on them lie with the data."""
    home = data.data_home() / "marks" / run.name if run.shipped else run.path
    return home / "marks.jsonl"
