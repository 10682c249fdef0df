"""Open vector files for the pages: a child process with limited memory reads them with their images and stores them
under their content, so the server parses no untrusted file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from contrastive_core.base.errors import Refused, UnusableEmbedding
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.safe_files import EXPANSION, file_stamp, printable
from contrastive_core.base.sandbox import Limits, run_sandboxed
from contrastive_core.spaces import attached_images, file_formats, label_files, loaded_vectors, triplets
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.other_tower import OtherTower, join_towers, note_of_towers, read_both

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
    encoder = ("contrastive_core.models.sentence_tower",) if asked and Path(asked["path"]).is_dir() else ()
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
