"""Decisions about samples: keep, relabel, drop. Stored per data set and split, with undo, and applied to the data.

Every run of a data set shows its decisions, those of a split in `data_home()/decisions/DATA/SPLIT.jsonl`. The file is
append-only, under a lock. A line stores a decision on a sample, its window and time, and the label and the suggestion
at that time; the last line of a sample counts. An undo is also a line, which names the undone event. An existing event
is not written again, so a window can safely repeat a report. `export` writes the two files that `train --exclude` and
`--relabel` read. Their names come from their content, so a run's own files never change. Torch-free."""

import contextlib
import csv
import hashlib
import io
import json
import os
import secrets
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.lock import lock
from contrastive_core.base.messages import N_, message, printable
from contrastive_core.base.sandbox import Limits, run_sandboxed
from contrastive_core.base.storage import data_home, safe_cell
from contrastive_core.data import datasets, overrides
from contrastive_core.runs.run import Run
from contrastive_core.samples.sample_lists import FALSE_NEGATIVES, GIVEN_NEGATIVES, LISTS, MISMATCHED
from contrastive_core.samples.sample_table import SampleRequest, decimals, decisions_path, request_of
from contrastive_core.spaces import loaded_vectors, triplets
from contrastive_core.spaces.file_formats import NEGATIVE, POSITIVE, is_column_of

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
    every = {file: json_files.read_lines(file) for file in files}
    if event and any(line.get("event") == event for lines in every.values() for line in lines):
        return []
    found = [(file, cast(Mark, line)) for file in every for line in _valid(every[file]) if line.get("event")]
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


def changes(file: Path, run: Run, column: str = overrides.LABEL) -> tuple[dict[str, bytes], int, int]:
    """Combine a run's own exclusions and relabels with the decisions, without writing a file. Returns the contents by
    the option of `train` that reads them, and the numbers of dropped and relabeled samples beside the run's own.
    `column`: header of the column that replaces the class (for pairs: the key of the true partner)."""
    decisions, before = marks(file), run.config
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


def export(file: Path, run: Run, column: str = overrides.LABEL) -> list[str]:
    """Write the files of `changes` beside the run; return the arguments of `train` that name them."""
    arguments = []
    for option, content in changes(file, run, column)[0].items():
        path = _folder(run) / f"{option}-{hashlib.sha256(content).hexdigest()[:12]}.csv"
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


# --- triplets, or a folder of images, with the decisions applied ---


NO_DECISIONS = N_(
    "{name} has no decisions with these vectors; open it with the same vectors in the app, and decide on its pairs on "
    "the page Samples"
)
DECISIONS = tuple(LISTS[key].decisions for key in (MISMATCHED, FALSE_NEGATIVES, GIVEN_NEGATIVES))
Line = dict[Any, Any]
Pairs = set[tuple[int, int]]  # of a query and a document
Placed = tuple[Path, str, Path, Path | None]  # an image, its split, the folder of that, the place there; None: dropped
Column = tuple[str, list[int], dict[str, list[Any]], bool]  # name, documents, their values by column, is it a list


def export_triplets(path: Path, out: Path, space: str) -> dict[str, int]:
    """Write a file of triplets in the shape that was read; a child process reads it. A pair that is no match is left
    out, or another document takes the place of the wrong one; a given negative that is a match is removed. Returns the
    numbers of `rows`, of `all_rows`, and of `negatives` removed and `positives` replaced.

    Args: space: the name of the opened file. Raises: BadSetting without decisions, and what `triplets.read` raises."""
    limits = Limits(loaded_vectors.MEMORY, loaded_vectors.SECONDS, preload=("contrastive_core.spaces.tables",))
    return dict(run_sandboxed(write_triplets, path.absolute(), out.absolute(), space, limits=limits))


def write_triplets(path: str, out: str, space: str) -> dict[str, int]:
    found, lines = triplets.read_texts(Path(path)), [dict(line) for _, line in triplets.lines(Path(path))]
    wrong, chosen, matches = _decided(found, request_of(space, "train", pairs=True))
    names = [name for name in lines[0] if name is not None]
    order, known = iter(found.documents.order), dict[int, Line]()
    sides = [[list(_columns(line, known_as, order, known)) for line in lines] for known_as in (POSITIVE, NEGATIVE)]
    rows, counts = list[Line](), {"negatives": 0, "positives": 0}
    for query, line, positive, negative in zip(found.queries.order, lines, *sides, strict=True):
        is_match = triplets.is_match({str(k).lower(): v for k, v in line.items()}, 0, found.name)
        more, has_all = chosen.get(query, []) if is_match else [], True
        for column in positive:
            out_of = wrong if is_match else matches
            kept = [i for i, document in enumerate(column[1]) if (query, document) not in out_of]
            new = [known[more.pop(0)] for _ in column[1][len(kept) :] if more]
            has_all &= _put(line, column, kept, new) > 0
            counts["positives"] += len(new)
        if has_all:
            rows.append(line)
            for column in negative:
                kept = [i for i, document in enumerate(column[1]) if (query, document) not in matches]
                counts["negatives"] += len(column[1]) - _put(line, column, kept, [])
    table = io.BytesIO()
    text = io.TextIOWrapper(table, "utf-8", "backslashreplace", newline="")  # half a surrogate pair as JSON has it
    if Path(path).suffix.lower() == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq  # half a second

        with storage.open_regular(path) as file:
            schema = pq.ParquetFile(file).schema_arrow
        pq.write_table(pa.Table.from_pylist(rows, schema), table)
    elif Path(path).suffix.lower() == ".csv":
        cells = ([*map(row.get, names), *(row.get(None) or [])] for row in rows)  # None: beyond the head
        csv.writer(text, lineterminator="\n").writerows([names, *cells])
    else:
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    text.flush()
    storage.write_bytes(out, table.getbuffer())
    return {"rows": len(rows), "all_rows": len(lines), **counts}


def _decided(found: triplets.Triplets, request: SampleRequest) -> tuple[Pairs, dict[int, list[int]], Pairs]:
    """Return the wrong pairs, the documents that take their place by query, and the pairs that match."""
    at = [{name: i for i, name in enumerate(side.ids)} for side in (found.queries, found.documents)]
    if at[0].keys() & at[1].keys():  # then a joined set has longer ids
        at[1] = {f"{triplets.NAMES[1]}:{name}": i for name, i in at[1].items()}

    def pair(*names: object) -> Pairs:
        query, document = ([of[str(name)] for name in names if str(name) in of] for of in at)
        return {(query[0], document[-1])} if query and document else Pairs()

    mismatched, false_negatives, given_negatives = decided = [marks(request.decisions(name)) for name in DECISIONS]
    dropped = {i for i, mark in marks(request.decisions()).items() if mark["what"] == "drop"}
    if not (any(decided) or dropped):
        raise BadSetting(NO_DECISIONS, name=found.name)
    gone = [{i for name, i in of.items() if name in dropped} for of in at]
    out = {(q, d) for q, d in found.positive + found.negative if q in gone[0] or d in gone[1]}
    wrong, chosen, matches = Pairs(out), Pairs(), Pairs()
    for i, mark in mismatched.items():
        wrong |= pair(i, mark.get("given")) if mark["what"] != "keep" else Pairs()
        chosen |= pair(i, mark.get("label")) if mark["what"] == "relabel" else Pairs()
    for i, mark in false_negatives.items():
        matches |= pair(i, mark.get("label")) if mark["what"] == "relabel" else Pairs()
    for i, mark in given_negatives.items():
        matches |= pair(i, mark.get("given"), mark.get("label")) if mark["what"] == "relabel" else Pairs()
    group = triplets.groups_of(found, [*{*found.positive} - wrong])
    alike = {(query, document) for one, document in matches for query in np.flatnonzero(group == group[one]).tolist()}
    ordered = sorted(chosen - wrong)
    return wrong, {q: [d for one, d in ordered if one == q] for q, _ in ordered}, alike | chosen | out


def _columns(line: Line, names: Sequence[str], order: Iterator[int], known: dict[int, Line]) -> Iterator[Column]:
    """Yield a line's columns of texts with the columns that start with their names, such as `pos_scores`. Adds the text
    and the vectors of new documents to `known`, by the end of the column's name."""
    for name, value in line.items():
        if not is_column_of(str(name).lower(), names) or (names is NEGATIVE and triplets.plain(value) in ([], [""])):
            continue
        is_list = isinstance(value, list) and not triplets.is_vector(value) and not isinstance(value[0], dict)
        documents = list(islice(order, len(value) if is_list else 1))
        ends = {str(other): str(other)[len(name) :].lower() for other in line if str(other).startswith(f"{name}_")}
        beside = [other for other in ends if not is_column_of(other.lower(), names)]
        values = {other: line[other] if is_list else [line[other]] for other in (name, *beside)}
        values = {k: x for k, x in values.items() if isinstance(x, list) and len(x) == len(documents)}
        ends = {k: end for k, end in {name: "", **ends}.items() if k in values and end in ("", *triplets.VECTORS)}
        for i, document in enumerate(documents):
            known.setdefault(document, {end: values[k][i] for k, end in ends.items()})
        yield name, documents, values, is_list


def _put(line: Line, column: Column, kept: Sequence[int], new: Sequence[Line]) -> int:
    """Store a column's kept values and new documents in the line; return how many it has now."""
    name, _, every, is_list = column
    for key, values in every.items():
        found = [values[i] for i in kept] + [one.get(key[len(name) :].lower()) for one in new]
        line[key] = found if is_list else next(iter(found), None)
    return len(kept) + len(new)


def placed(dataset: str, by_split: Mapping[str, Marks]) -> Iterator[Placed]:
    """Yield every image of `folder:PATH` with its destination. If the new class already has the file name, the old
    class is prepended to it. Raises BadSetting for other data sets, and for a class that the folder does not have."""
    if not dataset.startswith("folder:"):
        text = N_("a corrected folder needs a folder of images, and {dataset} is not one")
        raise BadSetting(text, dataset=printable(dataset))
    for split, listing in datasets.listings_of(dataset).items():
        decisions = by_split.get(split, {})
        parts = [Path(*file.path.parts[-len(file.id.split("/")) :]) for file in listing.files]
        taken, numbers = set(parts), [file.label for file in listing.files]
        folders = {listing.classes[k]: part.parts[0] for k, part in zip(numbers, parts, strict=True) if k >= 0}
        for file, old in zip(listing.files, parts, strict=True):
            mark, place = decisions.get(file.id, {}), old
            if mark.get("what") == "relabel":
                if (label := str(mark.get("label"))) not in folders:
                    values = {"id": printable(file.id, 80), "label": printable(label, 80)}
                    raise BadSetting("{id} is relabeled as {label}, which is not a class of the folder", **values)
                place = Path(folders[label], *old.parts[1:])
                while place in taken:
                    place = place.with_name(f"{old.parts[0]}-{place.name}")
                taken.add(place)
            base = file.path.parents[len(old.parts) - 1]
            yield file.path, split, base, None if mark.get("what") == "drop" else place


def write_folder(dataset: str, by_split: Mapping[str, Marks], out: Path, should_move: bool = False) -> int:
    """Create the folder `out` with train/ and test/, so that the test images stay the same; return its number of
    images. Files are hard links, or copies on another file system. With `should_move` they are moved, and dropped ones
    stay. Raises BadSetting, also if `out` exists."""
    moves = [(file, out / split / place) for file, split, _, place in placed(dataset, by_split) if place is not None]
    if out.exists():
        raise BadSetting("{out} already exists", out=printable(out))
    for file, target in moves:
        target.parent.mkdir(parents=True, exist_ok=True)
        if should_move:
            shutil.move(file, target)
            continue
        try:
            os.link(file, target)
        except OSError:
            shutil.copy2(file, target)
    return len(moves)


def folder_script(dataset: str, by_split: Mapping[str, Marks]) -> str:
    """Return a shell script that moves relabeled files to their class, and dropped ones to a folder beside the data."""
    root = Path(dataset.partition(":")[2]).expanduser()
    lines = ["#!/bin/sh", "set -e"]
    for file, _, base, place in placed(dataset, by_split):
        target = root.with_name(f"{root.name}-dropped") / file.relative_to(root) if place is None else base / place
        if target != file:
            old, new, folder = (shlex.quote(str(path)) for path in (file, target, target.parent))
            lines.append(f"mkdir -p {folder} && mv -n {old} {new}")
    return "\n".join([*lines, ""])
