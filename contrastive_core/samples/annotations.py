"""Decisions about samples: keep, relabel, drop. Stored per data set, with undo.

Decisions belong to the data set and the split, not to a run: each pair has one file,
`data_home()/decisions/DATA/SPLIT.jsonl`, and every run of the data set shows its decisions. (In a folder of images a
sample of each split may have the same id.)

The file is append-only, under a lock. A line stores a decision on a sample, its window and time, and the label and the
suggestion at that time; the last line of a sample counts. An undo is also a line, which names the undone event. An
existing event is not written again, so a window can safely repeat a report. `export` writes the two files that `train
--exclude` and `--relabel` read when a training starts. Their names come from their content, so a run's own files never
change. Torch-free."""

import contextlib
import csv
import hashlib
import io
import json
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from contrastive_core.base import json_files, storage
from contrastive_core.base.lock import lock
from contrastive_core.base.messages import N_, message
from contrastive_core.base.storage import data_home, safe_cell
from contrastive_core.data import datasets, overrides
from contrastive_core.runs.run import Run
from contrastive_core.samples.sample_table import decimals, decisions_path

CHOICES = ("keep", "relabel", "drop")
NEW_LABELS = "id split given probability_wrong suggested probability_suggested decision label reviewer".split()
PATIENCE = 30.0  # seconds for another window that writes: it needs thousandths


class Mark(TypedDict, total=False):
    """A decision on a sample, with the label, suggestion and probability at that time."""

    what: str  # one of CHOICES
    label: str | None  # that a relabel gives
    given: str
    suggested: str
    confidence: float  # probability of the suggested class
    wrong: float  # probability that the given label is wrong
    list: str  # on which it was decided
    id: str
    event: str
    by: str  # the window
    reviewer: str  # the person
    time: float
    many: bool  # one on several samples at once


Marks = dict[str, Mark]


def marks(file: Path, choices: Sequence[str] = CHOICES) -> Marks:
    """Return the current decision on each sample, one of the choices."""
    return marks_of(decisions(file, choices))


def decisions(file: Path, choices: Sequence[str] = CHOICES) -> list[Mark]:
    """Return every decision that was not undone, oldest first."""
    return [cast(Mark, line) for line in _valid(json_files.read_lines(file)) if line.get("what") in choices]


def marks_of(lines: Sequence[Mark]) -> Marks:
    """Return the last of these decisions on each sample."""
    times = Counter(line["event"] for line in lines if "event" in line)
    return {str(line["id"]): cast(Mark, {**line, "many": times[line.get("event", "")] > 1}) for line in lines}


def disagreements(lines: Sequence[Mark]) -> dict[str, dict[str, str]]:
    """Return the samples on which reviewers disagree, with each one's last decision; a relabel as its class."""
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        if name := line.get("reviewer"):
            found.setdefault(str(line["id"]), {})[str(name)] = str(line.get("label") or line["what"])
    return {sample: words for sample, words in found.items() if len({*words.values()}) > 1}


def by_split(config: Mapping[str, object]) -> dict[str, Marks]:
    """Return the label decisions of both splits of a run's data set. `config`: the run's settings."""
    return {split: marks(decisions_path(config, split)) for split in datasets.SPLITS}


def _valid(lines: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the decisions that were not undone."""
    undone = {line["undo"] for line in lines if line.get("undo")}
    return [line for line in lines if "id" in line and line.get("event") not in undone]


def add(file: Path, sample: str, what: str, label: str | None = None, **about: Any) -> None:
    """Record a decision on a sample. `about`: further values of a `Mark`, and the `event`. Raises ValueError for an
    unknown decision."""
    add_many(file, [{"id": sample, "what": what, "label": label}], **about)


def add_many(
    file: Path,
    lines: Sequence[Mapping[str, object]],
    event: str | None = None,
    choices: Sequence[str] = CHOICES,
    **about: object,
) -> None:
    """Record decisions on several samples as one event, so one undo reverts them all. An existing event is not written
    again. Args: lines: `id`, `what`, `label` and further values of each; about: values shared by all."""
    for line in lines:
        if (what := line["what"]) not in choices:
            values = {"choices": ", ".join(choices), "what": f"{what!r}"}
            raise ValueError(message("mark must be one of {choices}; got {what}", **values))
        if what == "relabel" and not line.get("label"):
            raise ValueError(N_("relabel needs the class that the sample should have"))
    _write(file, [{**about, **line} for line in lines], event)


def _write(file: Path, lines: Sequence[Mapping[str, object]], event: str | None = None) -> None:
    """Append lines as one event, unless it already exists."""
    stamp = {"event": event or secrets.token_hex(8), "time": time.time()}
    with lock(file.with_suffix(".lock"), wait=PATIENCE):
        text = json_files.read_bytes(file, json_files.MAX_LINES) if event and file.exists() else b""
        may_be_there = json.dumps(event).encode() in text  # lines are parsed only then, and not at every press
        if not (may_be_there and any(line.get("event") == event for line in json_files.read_lines(file))):
            json_files.append_lines(file, [{**line, **stamp} for line in lines])


def undo(
    files: Sequence[Path], by: str = "", since: float = float("inf"), event: str | None = None
) -> list[tuple[Path, Mark]]:
    """Undo the last decision made `by` this window or before the time `since`, so that no decision of another open
    window is lost. Returns the undone decisions with their files. `event`: that of the undo; an existing one is not
    repeated."""
    found = []
    for file in files:
        lines = json_files.read_lines(file)
        if event and any(line.get("event") == event for line in lines):
            return []
        found += [(file, cast(Mark, line)) for line in _valid(lines) if line.get("event")]
    own = [line for _, line in found if line.get("by", "") == by or line.get("time", 0.0) < since]
    if not own:
        return []
    last = max(own, key=lambda line: line.get("time", 0.0)).get("event")
    undone = [(file, line) for file, line in found if line.get("event") == last]
    for file in dict.fromkeys(file for file, _ in undone):
        _write(file, [{"undo": last, "by": by}], event)
    return undone


def labels_csv(by_split: Mapping[str, Marks], config: Mapping[str, object] | None = None) -> str:
    """Return a CSV of all decisions with the given, suggested and decided label; the last is empty for a dropped
    sample. probability_wrong is the score of the list of likely wrong labels, probability_suggested the voters'
    probability of the suggested class. `config`: a run's settings, for a file of all samples of its data set."""
    rows = []
    for split, decisions in by_split.items():
        undecided = Marks()
        if config is not None:
            with contextlib.suppress(ValueError, FileNotFoundError):  # no such split
                data = datasets.of_config(config, split)
                names = [*data.classes, ""]  # −1, the last: without a label
                undecided = {i: {"given": names[k]} for i, k in zip(data.ids, data.labels.tolist(), strict=True)}
        for sample, m in {**undecided, **decisions}.items():
            what = m.get("what", "")
            decided = {"relabel": m.get("label"), "drop": ""}.get(what, m.get("given"))
            wrong, sure = ("" if m.get(k) is None else str(decimals(float(m[k]))) for k in ("wrong", "confidence"))
            known = [m.get("given"), wrong, m.get("suggested"), sure]
            cells = (sample, split, *known, what, decided, m.get("reviewer"))
            rows.append([safe_cell(str(cell or "")) for cell in cells])
    return _csv(NEW_LABELS, rows).decode()


def changes(file: Path, run: Run | None = None, column: str = overrides.LABEL) -> tuple[dict[str, bytes], int, int]:
    """Combine a run's own exclusions and relabels with the decisions, without writing a file. Returns the contents by
    the option of `train` that reads them, and the numbers of dropped and relabeled samples beside the run's own.
    `column`: header of the column that replaces the class (for pairs: the key of the true partner)."""
    decisions, before = marks(file), run.config if run is not None else {}
    drop = [i for i, m in decisions.items() if m["what"] == "drop"]
    labels = {i: str(m["label"]) for i, m in decisions.items() if m["what"] == "relabel"}
    gone_before = [*overrides.read_ids(before["exclude"])] if before.get("exclude") else []
    relabeled_before = overrides.read_labels(before["relabel"]) if before.get("relabel") else {}
    gone = list(dict.fromkeys([*gone_before, *drop]))
    relabeled = {i: label for i, label in {**relabeled_before, **labels}.items() if i not in gone}
    files = {"exclude": _csv(["id"], [[i] for i in gone])} if gone else {}
    if relabeled or relabeled_before:
        files["relabel"] = _csv(["id", column], relabeled.items())
    changed = sum(relabeled_before.get(i) != label for i, label in labels.items())
    return files, len(set(drop) - set(gone_before)), changed


def export(file: Path, run: Run | None = None, column: str = overrides.LABEL) -> list[str]:
    """Write the files of `changes` beside the run; return the arguments of `train` that name them."""
    folder, arguments = file.parent if run is None else _folder(run), []
    for option, content in changes(file, run, column)[0].items():
        path = folder / f"{option}-{hashlib.sha256(content).hexdigest()[:12]}.csv"
        storage.write_bytes(path, content)
        arguments += [f"--{option}", str(path)]
    return arguments


def cleaned(run: Run, candidates: Sequence[Run]) -> list[Run]:
    """Return the `candidates` that were trained with files exported from this run's page."""
    folder = _folder(run)
    files = ((one, [one.config.get(option) for option in ("exclude", "relabel")]) for one in candidates)
    return [one for one, paths in files if one.name != run.name and folder in [Path(p).parent for p in paths if p]]


def _csv(head: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([head, *rows])
    return out.getvalue().encode()


def _folder(run: Run) -> Path:
    """Return the folder of a run's exported files. For shipped runs, which are read-only, it is in the data folder."""
    return data_home() / "marks" / run.name if run.shipped else run.path
