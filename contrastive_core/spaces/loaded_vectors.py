"""Vectors that a person opens, with their images. A child process with limited memory reads the files, so the server
parses no untrusted file, and stores them by content in `data_home()/spaces/<key>/`: `rows.npz`, `about.json`, if there
are images `images.npy`, and of triplets their file, `source.*`. Torch-free."""

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import Damaged, Refused, UnusableEmbedding
from contrastive_core.base.json_files import JsonObject, schema_of
from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.messages import N_, Message, join, message, printable, sentence
from contrastive_core.base.sandbox import Limits, run_sandboxed
from contrastive_core.base.storage import EXPANSION, data_home, file_stamp
from contrastive_core.spaces import attached_files, file_formats, triplets
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import PAIR, RESERVED, joined, towers_of, why_ordinary, with_text

PREFIX = "vectors:"  # what their names start with, before the key
KEY = re.compile(r"[0-9a-f]{16}")
GONE = N_("these vectors are not stored; open the file again")
MEMORY = file_formats.VECTORS + 3 * file_formats.LIMIT  # vectors, and what is known of them
ROOM = 4 << 30  # bytes for the pictures of a small file
SECONDS, TO_ENCODE = 300, 3600
BY = (PAIR, "group", "id")  # columns that say which rows belong together, if both files have one
IN_ORDER = "row"
ONE_EACH = N_("{name} already has two towers; a second file can only be added to a file with one tower")
NO_COLUMN = N_("{name} has no column {column} that says which rows belong together")
TWO_NAMES = N_("--towers needs two names, for example --towers image,caption; got {towers}")
NONE_LEFT = N_("no pair is left: in every pair, a row has values that are not finite, or only zeros")
TAKEN = N_("The vectors are {taken} columns, {names}; {labels}; further columns to color by: {columns}.")


@dataclass(frozen=True)
class OtherTower:
    """A second file of vectors as the other tower. `name`: its displayed name; `towers`: the names of both towers, ""
    for those of the files; `by`: the column in both files that matches rows, "row" for rows of the same number, "" for
    the first of pair, group and id that both have, or else the order of the rows."""

    path: str | Path
    name: str
    towers: tuple[str, str] = ("", "")
    by: str = ""


def other_tower(path: str | None, towers: str | None, by: str) -> OtherTower | None:
    """Return the second file that a command names; None without one. `towers`: two names separated by a comma. Raises
    UnusableEmbedding."""
    if not path:
        if towers or by:
            raise UnusableEmbedding(N_("--towers and --by need --other FILE"))
        return None
    names = [name.strip() for name in towers.split(",")] if towers else ["", ""]
    if len(names) != 2 or (towers and not all(names)):
        raise UnusableEmbedding(TWO_NAMES, towers=f"{printable(towers or '')!r}")
    return OtherTower(path, Path(path).name, (names[0], names[1]), by)


def open_vectors(
    path: str | Path,
    name: str,
    pictures: str | Path | None = None,
    leave_out: Sequence[str] = (),
    labels: str | Path | None = None,
    other: OtherTower | None = None,
) -> str:
    """Store the vectors of one or two files with their images; return their key, as listed by `loaded`.

    Args: name: the name to display; pictures: a further folder in which file names are looked up;
        leave_out: columns of numbers that are not part of the vectors;
        labels: a file with one label per row that replaces the file's own labels; other: a second file, whose
        rows are the other tower of the first, or the vectors of its texts; or a folder that encodes them.
    Raises: UnusableEmbedding, NotRegular, Damaged with a sentence; FileNotFoundError."""
    path = Path(path).expanduser().absolute()
    folder, own_labels = (Path(p).expanduser().absolute() if p is not None else None for p in (pictures, labels))
    asked = other and {**asdict(other), "path": str(Path(other.path).expanduser().absolute())}
    files = [path, *([Path(asked["path"])] if asked else [])]
    tables = ("contrastive_core.spaces.tables",) if {f.suffix.lower() for f in files} & {".parquet", ".csv"} else ()
    encoder = ("contrastive_core.models.text_tower",) if files[1:] and files[1].is_dir() else ()
    every = [each for file in files for each in (file.rglob("*") if file.is_dir() else [file])]
    memory = min(MEMORY, ROOM + EXPANSION * sum(stamp[1] for file in every if (stamp := file_stamp(file))))
    child = Limits(memory, TO_ENCODE if encoder else SECONDS, preload=("PIL.Image", *tables, *encoder))
    try:
        return str(run_sandboxed(_keep, path, name, folder, tuple(leave_out), own_labels, asked, limits=child))
    except Refused as error:
        raise UnusableEmbedding("{name} cannot be opened: {error}", name=printable(name), error=error) from None


def _keep(
    path: str, name: str, folder: str | None, leave_out: Sequence[str], labels: str | None, other: JsonObject | None
) -> str:
    """Read, attach images and store; runs in the child process."""
    rows, files = read_vectors(Path(path), name, leave_out, labels, OtherTower(**other) if other else None)
    attached = [attached_files.pictures_of(*each, Path(folder) if folder else None) for each in files]
    images, notes = [found for found, _ in attached], [note for _, note in attached]
    every = images[0]
    if len(files) == 2:
        every = attached_files.stacked_towers(images, (len(files[0][1]), len(files[1][1])))
    elif every is None and (every := attached_files.dataset_pictures(rows)) is not None:
        notes = []  # the names are ids of a data set
    said = _sentences(_taken(rows), note_of_towers(rows), triplets.note(rows))
    key = save_vectors(rows, f"{name} + {other['name']}" if other else name, every, _sentences(*notes), said)
    if file_formats.has_lines(path):  # to write it again with decisions
        kept = _folder(key) / f"source{Path(path).suffix.lower()}"
        with storage.open_regular(path) as file, storage.writing(kept) as out:
            shutil.copyfileobj(file, out)
    return key


def read_vectors(
    path: Path, name: str, leave_out: Sequence[str] = (), labels: str | None = None, other: OtherTower | None = None
) -> tuple[EmbeddingSet, list[tuple[Path, EmbeddingSet]]]:
    """Return the rows of one or two files, and each file with its own rows. `labels`: of the first file; `leave_out`:
    columns of either. Raises as `open_vectors` does."""
    if other is None or file_formats.are_triplets(path):
        rows = triplets.read(path, other.path) if other else file_formats.read(path, leave_out)
        rows = attached_files.labeled(rows, labels) if labels else rows
        return rows, [(path, rows)]
    second = Path(other.path).expanduser().absolute()
    columns = file_formats.table_columns(second) if leave_out else ()
    of_other = [column for column in leave_out if column in columns]
    own = [c for c in leave_out if c not in of_other or c in file_formats.table_columns(path)]
    sets = [file_formats.read(path, own, by_id=True), file_formats.read(second, of_other, by_id=True)]
    for rows, known in zip(sets, (name, other.name), strict=True):
        if towers_of(rows) is not None:
            raise UnusableEmbedding(ONE_EACH, name=printable(known))
    if labels:
        sets[0] = attached_files.labeled(sets[0], labels)
    named = other.by.strip()
    for by in {"": BY, IN_ORDER: ()}.get(named, (named,)):
        groups = [_groups(rows, by, is_named=bool(named)) for rows in sets]
        if groups[0] is not None and groups[1] is not None:
            break
        if named:
            lacking = name if groups[0] is None else other.name
            raise UnusableEmbedding(NO_COLUMN, name=printable(lacking), column=f"{printable(by, 80)!r}")
    else:
        by, groups = IN_ORDER, [None, None]
    towers = [given.strip() or Path(file).stem for given, file in zip(other.towers, (name, other.name), strict=True)]
    if towers[0] == towers[1] and not all(other.towers):
        towers = [given.strip() or f"{stem} {n}" for n, given, stem in zip((1, 2), other.towers, towers, strict=True)]
    plain = [{k: v for k, v in rows.columns.items() if k not in RESERVED} for rows in sets]
    a, b = (with_text(replace(rows, columns=columns)) for rows, columns in zip(sets, plain, strict=True))
    rows = joined(a, b, (printable(towers[0], 80), printable(towers[1], 80)), *groups)
    provenance = {**rows.provenance, "paired_by": by, "columns": None}
    return replace(rows, provenance=provenance), [(path, sets[0]), (second, sets[1])]


def _groups(rows: EmbeddingSet, by: str, is_named: bool) -> np.ndarray | None:
    """Return a column of groups; the rows' own ids for the column id, or if a column that the user named is missing."""
    has_ids = bool(rows.provenance.get("has_ids")) or rows.ids != tuple(map(str, range(len(rows))))
    own = np.array(rows.ids) if has_ids and (by == "id" or is_named) else None
    return rows.columns.get(by, own)


def note_of_towers(rows: EmbeddingSet) -> Message | str:
    """Describe the two towers, their pairing, and the numbers of usable pairs and rows; "" if there is nothing to say.
    Raises UnusableEmbedding if no pair of usable rows is left."""
    if (towers := towers_of(rows)) is None:
        return why_ordinary(rows)
    kept = towers_of(rows.take(rows.usable))
    if kept is None or not (pairs := kept.partner_pairs(1)[1]):
        raise UnusableEmbedding(NONE_LEFT)
    by = str(rows.provenance.get("paired_by", PAIR))
    return message(
        "Two towers: {a} ({n} rows) and {b} ({m} rows), {how}: {pairs} pairs.",
        a=towers.names[0],
        b=towers.names[1],
        n=f"{len(kept.a):,}",
        m=f"{len(kept.b):,}",
        how=N_("paired row by row") if by == IN_ORDER else message("paired by {column}", column=by),
        pairs=f"{pairs:,}",
    )


def _taken(rows: EmbeddingSet) -> str:
    """Describe which columns of a table are the vectors and which are not; "" if one column of lists holds them."""
    taken = rows.provenance.get("columns")
    if not isinstance(taken, list) or len(taken) != rows.width:
        return ""
    names = ", ".join(taken if len(taken) <= 8 else [*taken[:4], "…", *taken[-2:]])
    labels = N_("with labels") if rows.labels is not None else N_("without labels")
    return message(TAKEN, taken=f"{len(taken):,}", names=names, labels=labels, columns=len(rows.columns))


def _sentences(*parts: str) -> str:
    return join(" ", filter(None, parts)) if any(parts) else ""


# --- what is stored ---


class About(TypedDict):
    """An about.json: the source of the vectors and a description of their rows."""

    name: str
    rows: int
    width: int
    labels: bool
    left_out: dict[str, int]
    splits: list[str]
    images: bool
    note: str  # what is amiss
    said: str  # what is to be known besides
    ids: str  # a hash of the rows' ids


SINCE = {"note": "", "said": "", "ids": ""}  # fields that files of version 0.2 may lack
ABOUT = replace(schema_of(About), required=tuple(name for name in About.__annotations__ if name not in SINCE))


def save_vectors(
    rows: EmbeddingSet, name: str, images: np.ndarray | None = None, note: str = "", said: str = ""
) -> str:
    """Store vectors under their content and name; return the key. Rows without a direction are left out.

    Args: images: (n, c, h, w) uint8 of all rows; note: sentences about problems; said: sentences with further
    information; both are stored too. Raises UnusableEmbedding."""
    usable, left_out = rows.usable, {k: len(v) for k, v in rows.problems.items()}
    check_usable(name, len(usable), left_out)
    kept = rows if len(usable) == len(rows) else rows.take(usable)
    folder = _folder(key := _key_of(kept, name))
    if images is not None:
        with storage.writing(folder / "images.npy") as file:
            np.save(file, np.ascontiguousarray(images[usable], np.uint8))
    write_npz(folder / "rows.npz", **kept.arrays())
    about_rows: About = {
        "name": name,
        "rows": len(kept),
        "width": kept.width,
        "labels": kept.labels is not None,
        "left_out": {k: n for k, n in left_out.items() if n},
        "splits": sorted(set(map(str, kept.columns.get("split", ()))) & {"train", "test"}),
        "images": images is not None,
        "note": note,
        "said": said,
        "ids": hashlib.sha256("\n".join(sorted(kept.ids)).encode()).hexdigest()[:16],
    }
    json_files.write_json(folder / "about.json", about_rows)
    return key


def _key_of(rows: EmbeddingSet, name: str) -> str:
    """Return the hash of the rows with their columns and classes, and of their name if another file has this content.
    Decisions belong to a key, so the same file always has the same one."""
    content = rows.content_hash[:16]
    if rows.classes or rows.columns:
        digest = hashlib.sha256(f"{rows.content_hash} {rows.classes}".encode())
        for column, values in rows.columns.items():
            digest.update(f"{column} {values.dtype}".encode() + np.ascontiguousarray(values).tobytes())
        content = digest.hexdigest()[:16]
    named = hashlib.sha256(f"{content} {name}".encode()).hexdigest()[:16]
    stored = loaded()
    is_taken = content in stored and stored[content]["name"] != name
    return named if named in stored or is_taken else content


def check_usable(name: str, usable: int, left_out: Mapping[str, int]) -> None:
    """Raise UnusableEmbedding if fewer than two rows are usable."""
    if usable < 2:
        raise UnusableEmbedding(
            "{name} has {usable} usable rows: {not_finite} contain values that are not finite, {zero} are all zeros",
            name=name,
            usable=usable,
            **left_out,
        )


def loaded() -> dict[str, About]:
    """Return the descriptions of all usable loaded vectors by key, newest first. `damaged` lists the others."""
    return {key: entry for key, entry in _entries().items() if not isinstance(entry, Exception)}


def damaged() -> dict[str, str]:
    """Return the reasons, by key, of loaded vectors that cannot be used."""
    return {key: sentence(entry) for key, entry in _entries().items() if isinstance(entry, Exception)}


def _entries() -> dict[str, About | Exception]:
    files = [file for file in (data_home() / "spaces").glob("*/about.json") if KEY.fullmatch(file.parent.name)]
    times = {file.parent.name: stamp[2] for file in files if (stamp := file_stamp(file))}
    entries: dict[str, About | Exception] = {}
    for key in sorted(times, key=lambda key: times[key], reverse=True):
        try:
            entries[key] = about(key)
        except (UnusableEmbedding, Damaged) as error:
            entries[key] = error
    return entries


def about(key: str) -> About:
    """Return the description of loaded vectors. Raises UnusableEmbedding if they no longer exist; Damaged."""
    path = _folder(key) / "about.json"
    try:
        return cast(About, {**SINCE, **json_files.read_object(path, ABOUT, json_files.MAX_RECORD)})
    except FileNotFoundError:
        raise UnusableEmbedding(GONE) from None
    except OSError as error:
        raise Damaged("{path} cannot be read: {reason}", path=path, reason=error.strerror) from None


def forget(key: str) -> None:
    """Remove loaded vectors; the original file is not touched."""
    shutil.rmtree(_folder(key), ignore_errors=True)


def rows(key: str, split: str = "") -> EmbeddingSet:
    """Return the rows, or those of one split if rows have a split. Raises FileNotFoundError."""
    every = EmbeddingSet.from_arrays(read_npz(_folder(key) / "rows.npz"))
    at = _rows_of_split(every, split)
    return every if at is None else every.take(at)


def images(key: str, split: str = "") -> np.ndarray | None:
    """Return the images (n, c, h, w) uint8 of `rows`, in their order; None without images."""
    path = _folder(key) / "images.npy"
    if not path.exists():
        return None
    every = np.load(path, mmap_mode="r", allow_pickle=False)
    at = _rows_of_split(rows(key), split)
    return every if at is None else every[at]


def _rows_of_split(rows: EmbeddingSet, split: str) -> np.ndarray | None:
    """Return the row numbers of a split; None for all rows, if it is "" or no row has it."""
    at = np.flatnonzero(rows.columns.get("split", np.array(())).astype(str) == split)
    return at if split and len(at) else None


def source(key: str) -> Path | None:
    """Return the copy of the opened file of texts; None without one."""
    return next(_folder(key).glob("source.*"), None)


def _folder(key: str) -> Path:
    if not KEY.fullmatch(key):
        raise UnusableEmbedding(GONE)
    return data_home() / "spaces" / key
