"""A second file of vectors as the other tower of a first: the matching of rows, and the names of the towers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_, Message, message
from contrastive_core.base.safe_files import printable
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.tower_columns import with_text
from contrastive_core.spaces.towers import PAIR, TOWER, joined, towers_of, why_ordinary

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
