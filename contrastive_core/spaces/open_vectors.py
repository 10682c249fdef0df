"""Vector files of pages and commands: a second file as the other tower of a first, and the opening of files for pages.

A child process with limited memory reads the files with their images and stores them under their content, so the server
parses no untrusted file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from contrastive_core.base.errors import Refused, UnusableEmbedding
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import N_, Message, join, message, printable
from contrastive_core.base.sandbox import Limits, run_sandboxed
from contrastive_core.base.storage import EXPANSION, file_stamp
from contrastive_core.spaces import attached_images, file_formats, label_files, loaded_vectors, triplets
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import PAIR, TOWER, joined, towers_of, why_ordinary, with_text

# --- a second file ---


BY = (PAIR, "group", "id")  # columns that say which rows belong together, if both files have one
IN_ORDER = "row"
ONE_EACH = N_("{name} already has two towers; a second file can only be added to a file with one tower")
NO_COLUMN = N_("{name} has no column {column} that says which rows belong together")
TWO_NAMES = N_("--towers needs two names, for example --towers image,caption; got {towers}")
NONE_LEFT = N_("no pair is left: in every pair, a row has values that are not finite, or only zeros")


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


def read_both(
    path: Path, name: str, other: OtherTower, leave_out: Sequence[str] = ()
) -> tuple[EmbeddingSet, EmbeddingSet]:
    """Return the rows of both files. `leave_out`: columns of either that are not part of the vectors. Raises as
    `file_formats.read` does."""
    a, b = Path(path), Path(other.path).expanduser().absolute()
    columns = file_formats.table_columns(b) if leave_out else ()
    of_other = [column for column in leave_out if column in columns]
    own = [c for c in leave_out if c not in of_other or c in file_formats.table_columns(a)]
    sets = file_formats.read(a, own, by_id=True), file_formats.read(b, of_other, by_id=True)
    for rows, known in zip(sets, (name, other.name), strict=True):
        if towers_of(rows) is not None:
            raise UnusableEmbedding(ONE_EACH, name=printable(known))
    return sets


def join_towers(a: EmbeddingSet, b: EmbeddingSet, name: str, other: OtherTower) -> EmbeddingSet:
    """Return the rows of both files as two towers. Raises UnusableEmbedding with a sentence."""
    groups, by = _groups(a, b, name, other)
    plain = [{k: v for k, v in rows.columns.items() if k not in (TOWER, PAIR)} for rows in (a, b)]
    sets = [with_text(replace(rows, columns=columns)) for rows, columns in zip((a, b), plain, strict=True)]
    rows = joined(sets[0], sets[1], tower_names(name, other), *groups)
    return replace(rows, provenance={**rows.provenance, "paired_by": by, "columns": None})


def tower_names(name: str, other: OtherTower) -> tuple[str, str]:
    """Return the names that the user gave, or else those of the files."""
    stems = [given.strip() or Path(file).stem for given, file in zip(other.towers, (name, other.name), strict=True)]
    if stems[0] == stems[1] and not all(other.towers):
        stems = [given.strip() or f"{stem} {n}" for n, given, stem in zip((1, 2), other.towers, stems, strict=True)]
    return printable(stems[0], 80), printable(stems[1], 80)


def _groups(
    a: EmbeddingSet, b: EmbeddingSet, name: str, other: OtherTower
) -> tuple[tuple[np.ndarray | None, np.ndarray | None], str]:
    """Return the group of each row of both files, and the column's name; no groups if rows are matched by order."""
    by = other.by.strip()
    if by == IN_ORDER:
        return (None, None), IN_ORDER
    for key in (by,) if by else BY:
        found = [_group(rows, key, bool(by)) for rows in (a, b)]
        if found[0] is not None and found[1] is not None:
            return (found[0], found[1]), key
        if by:
            lacking = name if found[0] is None else other.name
            raise UnusableEmbedding(NO_COLUMN, name=printable(lacking), column=f"{printable(by, 80)!r}")
    return (None, None), IN_ORDER


def _group(rows: EmbeddingSet, key: str, or_ids: bool) -> np.ndarray | None:
    """Return a column of groups; the rows' own ids for the column id, or if a column that the user named is missing."""
    if key in rows.columns:
        return rows.columns[key]
    has_ids = bool(rows.provenance.get("has_ids")) or rows.ids != tuple(map(str, range(len(rows))))
    return np.array(rows.ids) if has_ids and (key == "id" or or_ids) else None


def note_of_towers(rows: EmbeddingSet) -> Message | str:
    """Describe the two towers, their pairing, and the numbers of usable pairs and rows; "" if there is nothing to say.
    Raises UnusableEmbedding if no pair of usable rows is left."""
    if (towers := towers_of(rows)) is None:
        return why_ordinary(rows)
    names, (a, b) = towers.names, (len(at) for at, _ in towers.usable_sides())
    by = rows.provenance.get("paired_by", PAIR)
    how = N_("paired row by row") if by == IN_ORDER else message("paired by {column}", column=str(by))
    kept = towers_of(rows.take(rows.usable))
    pairs, whole = (0 if each is None else each.partner_pairs(1)[1] for each in (towers, kept))
    if not whole:
        raise UnusableEmbedding(NONE_LEFT)
    values = {"a": names[0], "b": names[1], "n": f"{a:,}", "m": f"{b:,}", "how": how, "pairs": f"{whole:,}"}
    if whole == pairs:
        return message("Two towers: {a} ({n} rows) and {b} ({m} rows), {how}: {pairs} pairs.", **values)
    return message(
        "Two towers: {a} ({n} rows) and {b} ({m} rows), {how}: {pairs} of {all} pairs; the {lost} other "
        "pairs contain a row that is not finite or all zeros.",
        **values,
        all=f"{pairs:,}",
        lost=f"{pairs - whole:,}",
    )


# --- opening ---


MEMORY = file_formats.VECTORS + 3 * file_formats.LIMIT  # vectors, and what is known of them
ROOM = 4 << 30  # bytes for the pictures of a small file
SECONDS, TO_ENCODE = 300, 3600


def open_vectors(
    path: str | Path,
    name: str,
    pictures: str | Path | None = None,
    leave_out: Sequence[str] = (),
    labels: str | Path | None = None,
    other: OtherTower | None = None,
) -> str:
    """Store the vectors of one or two files with their images; return their key, as listed by `loaded_vectors.loaded`.

    Args: name: the name to display; pictures: a further folder in which file names are looked up;
        leave_out: columns of numbers that are not part of the vectors;
        labels: a file with one label per row that replaces the file's own labels; other: a second file, whose
        rows are the other tower of the first, or the vectors of its texts; or a folder that encodes them.
    Raises: UnusableEmbedding, NotRegular, Damaged with a sentence; FileNotFoundError."""
    path = Path(path).expanduser().absolute()
    folder, own_labels = (Path(p).expanduser().absolute() if p is not None else None for p in (pictures, labels))
    asked = other and {**asdict(other), "path": str(Path(other.path).expanduser().absolute())}
    endings = {Path(p).suffix.lower() for p in (path, *([other.path] if other else ()))}
    tables = ("contrastive_core.spaces.tables",) if endings & {".parquet", ".csv"} else ()
    encoder = ("contrastive_core.models.text_tower",) if asked and Path(asked["path"]).is_dir() else ()
    memory = _memory([path, *([Path(other.path)] if other else [])])
    child = Limits(memory, TO_ENCODE if encoder else SECONDS, preload=("PIL.Image", *tables, *encoder))
    try:
        return str(run_sandboxed(_keep, path, name, folder, tuple(leave_out), own_labels, asked, limits=child))
    except Refused as error:
        raise UnusableEmbedding("{name} cannot be opened: {error}", name=printable(name), error=error) from None


@contextmanager
def uploaded(name: str, content: bytes | memoryview, stem: str) -> Iterator[Path]:
    """Write an upload to a file that a child process can open. Only the extension of its name is kept."""
    with scratch_folder() as folder:
        copy = folder / f"{stem}{Path(name).suffix.lower()}"
        copy.write_bytes(content)
        yield copy


def _memory(files: Sequence[Path]) -> int:
    """Return the bytes that opening files may need: their size and that of their images, not the unpacked size."""
    every = [each for file in map(Path.expanduser, files) for each in (file.rglob("*") if file.is_dir() else [file])]
    sizes = (stamp[1] for file in every if (stamp := file_stamp(file)))
    return min(MEMORY, ROOM + EXPANSION * sum(sizes))


def _keep(
    path: str, name: str, folder: str | None, leave_out: Sequence[str], labels: str | None, other: JsonObject | None
) -> str:
    """Read, attach images and store; runs in the child process."""
    pictures = Path(folder) if folder else None
    if other is not None and not file_formats.are_triplets(path):
        return _keep_both(Path(path), name, pictures, leave_out, labels, OtherTower(**other))
    if other is None:
        rows = file_formats.read(path, leave_out=leave_out)
    else:
        rows, name = triplets.read(path, other["path"]), f"{name} + {other['name']}"
    if labels is not None:
        rows = label_files.labeled(rows, labels)
    attached = attached_images.pictures_of(Path(path), rows, pictures)
    images = attached.images if attached.images is not None else attached_images.dataset_pictures(rows)
    note = attached.note if attached.images is not None or images is None else ""
    about = _sentences(_taken(rows), note_of_towers(rows), triplets.note(rows))
    key = loaded_vectors.save_vectors(rows, name, images, note, about)
    if file_formats.has_lines(path):
        loaded_vectors.keep_source(key, Path(path))
    return key


def _keep_both(
    path: Path, name: str, folder: Path | None, leave_out: Sequence[str], labels: str | None, other: OtherTower
) -> str:
    """Store two files as the two towers of one set and return its key."""
    a, b = read_both(path, name, other, leave_out)
    if labels is not None:
        a = label_files.labeled(a, labels)
    rows = join_towers(a, b, name, other)
    files = (path, a), (Path(other.path), b)
    attached = [attached_images.pictures_of(file, of_file, folder) for file, of_file in files]
    images = attached_images.stacked_towers([each.images for each in attached], (len(a), len(b)))
    note = _sentences(*(each.note for each in attached))
    return loaded_vectors.save_vectors(rows, f"{name} + {other.name}", images, note, note_of_towers(rows))


def _sentences(*parts: str) -> str:
    return join(" ", filter(None, parts)) if any(parts) else ""


def _taken(rows: EmbeddingSet) -> str:
    """Describe which columns of a table are the vectors and which are not; "" if one column of lists holds them."""
    taken = rows.provenance.get("columns")
    if not isinstance(taken, list) or len(taken) != rows.width:
        return ""
    numbered = [name.rstrip("0123456789") for name in taken]
    is_series = len({*numbered}) == 1 and numbered[0] != taken[0]
    names = ", ".join([*taken[:8], *(["…"] if len(taken) > 8 else [])])
    if is_series:
        names = message("{taken} to {last}", taken=taken[0], last=taken[-1])
    labels = N_("with labels") if rows.labels is not None else N_("without labels")
    values = {"taken": f"{len(taken):,}", "names": names, "labels": labels, "columns": len(rows.columns)}
    return message(
        "The vectors are {taken} columns, {names}; {labels}; further columns to color by: {columns}.", **values
    )
