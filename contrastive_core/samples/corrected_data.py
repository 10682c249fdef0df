"""Data with decisions applied: a file of triplets in the shape that was read; a folder of images, copied or moved by a
script. Torch-free.

In a file of triplets, a pair that is no match is left out. If another document is the match, it takes the place of the
wrong one in a line of its query. A given negative that is a match is removed. A line with an empty column of positives
is left out."""

import csv
import io
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, printable
from contrastive_core.base.sandbox import Limits, run_sandboxed
from contrastive_core.base.storage import open_regular, write_bytes
from contrastive_core.data import datasets
from contrastive_core.samples.annotations import Marks, marks
from contrastive_core.samples.sample_lists import FALSE_NEGATIVES, GIVEN_NEGATIVES, LISTS, MISMATCHED
from contrastive_core.samples.sample_table import SampleRequest, request_of
from contrastive_core.spaces import loaded_vectors, triplets
from contrastive_core.spaces.file_formats import NEGATIVE, POSITIVE, is_column_of

NO_DECISIONS = N_(
    "{name} has no decisions with these vectors; open it with the same vectors in the app, and decide on its pairs on "
    "the page Samples"
)
DECISIONS = tuple(LISTS[key].decisions for key in (MISMATCHED, FALSE_NEGATIVES, GIVEN_NEGATIVES))
Line = dict[Any, Any]
Pairs = set[tuple[int, int]]  # of a query and a document
Column = tuple[str, list[int], dict[str, list[Any]], bool]  # name, documents, their values by column, is it a list


def export_triplets(path: Path, out: Path, space: str) -> dict[str, int]:
    """Write a file of triplets with the decisions applied; a child process reads it. Returns the numbers of `rows`, of
    `all_rows`, and of `negatives` removed and `positives` replaced. Args: space: the name of the opened file.
    Raises: BadSetting without decisions, and what `triplets.read` raises."""
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

        with open_regular(path) as file:
            schema = pq.ParquetFile(file).schema_arrow
        pq.write_table(pa.Table.from_pylist(rows, schema), table)
    elif Path(path).suffix.lower() == ".csv":
        cells = ([*map(row.get, names), *(row.get(None) or [])] for row in rows)  # None: beyond the head
        csv.writer(text, lineterminator="\n").writerows([names, *cells])
    else:
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    text.flush()
    write_bytes(out, table.getbuffer())
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


@dataclass(frozen=True)
class Placed:
    """An image file and its destination: `place`, relative to the folder of its split; None if the image is dropped."""

    file: Path
    split: str
    base: Path  # the folder of its split
    place: Path | None


def placed(dataset: str, by_split: Mapping[str, Marks]) -> Iterator[Placed]:
    """Yield every image of `folder:PATH` with its destination. If the new class already has the file name, the old
    class is prepended to it. Raises BadSetting for other data sets, and for a class that the folder does not have."""
    if not dataset.startswith("folder:"):
        raise BadSetting(
            "a corrected folder needs a folder of images, and {dataset} is not one", dataset=printable(dataset)
        )
    for split, listing in datasets.listings_of(dataset).items():
        decisions = by_split.get(split, {})
        parts = [Path(*file.path.parts[-len(file.id.split("/")) :]) for file in listing.files]
        folders = {
            listing.classes[f.label]: p.parts[0] for f, p in zip(listing.files, parts, strict=True) if f.label >= 0
        }
        taken = set(parts)
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
            yield Placed(file.path, split, base, None if mark.get("what") == "drop" else place)


def write_folder(dataset: str, by_split: Mapping[str, Marks], out: Path, should_move: bool = False) -> int:
    """Create the folder `out` with train/ and test/, so that the test images stay the same; return its number of
    images. Files are hard links, or copies on another file system. With `should_move` they are moved, and dropped ones
    stay. Raises BadSetting, also if `out` exists."""
    every = [one for one in placed(dataset, by_split) if one.place is not None]
    if out.exists():
        raise BadSetting("{out} already exists", out=printable(out))
    for one in every:
        target = out / one.split / str(one.place)
        target.parent.mkdir(parents=True, exist_ok=True)
        if should_move:
            shutil.move(one.file, target)
            continue
        try:
            os.link(one.file, target)
        except OSError:
            shutil.copy2(one.file, target)
    return len(every)


def folder_script(dataset: str, by_split: Mapping[str, Marks]) -> str:
    """Return a shell script that moves relabeled files to their class, and dropped ones to a folder beside the data."""
    root = Path(dataset.partition(":")[2]).expanduser()
    lines = ["#!/bin/sh", "set -e"]
    for one in placed(dataset, by_split):
        target = root.with_name(f"{root.name}-dropped") / one.file.relative_to(root)
        if one.place is not None:
            target = one.base / one.place
        if target != one.file:
            old, new, folder = (shlex.quote(str(path)) for path in (one.file, target, target.parent))
            lines.append(f"mkdir -p {folder} && mv -n {old} {new}")
    return "\n".join([*lines, ""])
