"""What a person decided about samples: keep, relabel, drop. Kept beside the run, with undo.

Splits have marks of their own: only those of training samples are for training, and in a folder of
images a sample of each split may have the same id.

Every decision is a line of `marks.jsonl`, the one file of a split; the last one of a sample counts;
undo takes the last line back. `export` writes the two files that `train --exclude` and `--relabel`
read, when a training is asked for; they are named by their content, so that a run's own files never
change. Torch-free.
"""

from __future__ import annotations

import csv
import hashlib
import io
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.data import overrides
from contrastive_core.paths import data_home
from contrastive_core.runs import Run
from contrastive_core.storage import atomic, records

__all__ = [
    "CHOICES",
    "Changes",
    "add",
    "changes",
    "cleaned",
    "drop_many",
    "export",
    "marks",
    "of_split",
    "relabel_many",
    "undo",
]

CHOICES = ("keep", "relabel", "drop")


def of_split(run: Run, split: str) -> Run | Path:
    """Whose marks those of a split are: the run's own for its training samples, else a folder."""
    return run if split == "train" else _path(run).parent / f"marks-{split}"


def marks(run: Run | Path) -> dict[str, dict[str, Any]]:
    """The decision on each sample of a run, or in a folder: `what`, `label` for a relabel."""
    decisions: dict[str, dict[str, Any]] = {}
    for line in records.read_lines(_path(run)):
        if isinstance(line, dict) and line.get("what") in (*CHOICES, None):
            if line["what"] is None:
                decisions.pop(str(line["id"]), None)
            else:
                decisions[str(line["id"])] = line
    return decisions


def add(run: Run | Path, sample: str, what: str | None, label: str | None = None) -> None:
    """Decide on a sample; None takes its decision away. Raises ValueError for another word."""
    if what not in (*CHOICES, None):
        raise ValueError(f"a mark is one of {', '.join(CHOICES)}; got {what!r}")
    if what == "relabel" and not label:
        raise ValueError("a relabel needs the class that the sample should have")
    path = _path(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    records.append_lines(path, [{"id": sample, "what": what, "label": label}])


def drop_many(run: Run | Path, samples: Sequence[str]) -> None:
    """Drop samples all at once; one undo takes them all back."""
    _add_many(run, [{"id": i, "what": "drop"} for i in samples])


def relabel_many(run: Run | Path, labels: Mapping[str, str]) -> None:
    """Give samples other classes, by id, all at once; one undo takes them all back."""
    _add_many(run, [{"id": i, "what": "relabel", "label": c} for i, c in labels.items()])


def _add_many(run: Run | Path, lines: Sequence[dict[str, Any]]) -> None:
    path, group = _path(run), secrets.token_hex(4)
    path.parent.mkdir(parents=True, exist_ok=True)
    records.append_lines(path, [{**line, "group": group} for line in lines])


def undo(run: Run | Path) -> str | None:
    """Take the last decision back; returns the sample it was on, of many the first."""
    lines = records.read_lines(_path(run))
    if not lines:
        return None
    last = lines.pop()
    while lines and last.get("group") and lines[-1].get("group") == last["group"]:
        last = lines.pop()
    records.write_lines(_path(run), lines)
    return str(last["id"])


@dataclass(frozen=True)
class Changes:
    """The content of the files for a training without what was marked; None: there is nothing to
    say."""

    exclude: bytes | None
    relabel: bytes | None
    dropped: int  # by the marks, beside what the run left out itself
    relabeled: int

    @property
    def files(self) -> dict[str, bytes]:
        """The files that are not empty, by the option of `train` that reads them."""
        both = {"exclude": self.exclude, "relabel": self.relabel}
        return {option: content for option, content in both.items() if content is not None}


def changes(run: Run | Path) -> Changes:
    """What the run left out and relabeled itself together with the marks. Nothing is written."""
    decisions = marks(run)
    drop = [i for i, m in decisions.items() if m["what"] == "drop"]
    labels = {i: str(m["label"]) for i, m in decisions.items() if m["what"] == "relabel"}
    before = run.config if isinstance(run, Run) else {}
    gone = [*overrides.read_ids(before["exclude"])] if before.get("exclude") else []
    relabeled_before = overrides.read_labels(before["relabel"]) if before.get("relabel") else {}
    gone = list(dict.fromkeys([*gone, *drop]))
    relabeled = {i: label for i, label in {**relabeled_before, **labels}.items() if i not in gone}
    return Changes(
        _csv(["id"], [[i] for i in gone]) if gone else None,
        _csv(["id", "label"], [list(one) for one in relabeled.items()])
        if relabeled or relabeled_before
        else None,
        len(drop),
        len(labels),
    )


def export(run: Run | Path) -> list[str]:
    """Write the files of `changes`; the arguments of `train` that name them."""
    folder, arguments = _path(run).parent, []
    for option, content in changes(run).files.items():
        path = folder / f"{option}-{hashlib.sha256(content).hexdigest()[:12]}.csv"
        atomic.write_bytes(path, content)
        arguments += [f"--{option}", str(path)]
    return arguments


def cleaned(run: Run, candidates: Sequence[Run]) -> list[Run]:
    """Those of `candidates` that were trained with files exported from this run's marks."""
    folder = str(_path(run).parent)
    files = [(one, [one.config.get(k) for k in ("exclude", "relabel")]) for one in candidates]
    return [
        one for one, paths in files
        if one.name != run.name and any(p and str(Path(p).parent) == folder for p in paths)
    ]  # fmt: skip


def _csv(head: list[str], rows: list[list[Any]]) -> bytes:
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(head)
    table.writerows(rows)
    return out.getvalue().encode()


def _path(run: Run | Path) -> Path:
    """Marks on vectors lie in a folder of their own; those on shipped runs, which are read-only,
    with the data."""
    if isinstance(run, Path):
        return run / "marks.jsonl"
    home = data_home() / "marks" / run.name if run.shipped else run.path
    return home / "marks.jsonl"
