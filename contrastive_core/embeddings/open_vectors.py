"""Opening a vector file for the pages: read, with its pictures, in a child process with limited
memory and kept under its content, so that nothing of a stranger's file is parsed in the server."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from contrastive_core.embeddings import attached_images, file_formats, label_files
from contrastive_core.errors import Refused, UnusableEmbedding
from contrastive_core.messages import N_, message
from contrastive_core.records import loaded_vectors
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.storage.regular_files import printable
from contrastive_core.storage.sandbox import Limits, run_sandboxed

MEMORY = file_formats.VECTORS + 3 * file_formats.LIMIT  # vectors, and what is known of them
SECONDS = 300


def open_vectors(
    path: str | Path,
    name: str,
    pictures: str | Path | None = None,
    leave_out: Sequence[str] = (),
    labels: str | Path | None = None,
) -> str:
    """Keep the vectors of a file and the pictures that came along; returns the key they are kept
    under, as `loaded_vectors.loaded` lists it.

    Args: name: what the file is called for a person; pictures: a folder that file names in it may
        start from, besides its own; leave_out: columns of numbers that are no part of the vectors;
        labels: a file of labels, one for each row, that count instead of the file's own.
    Raises: UnusableEmbedding, NotRegular, Damaged with a sentence; FileNotFoundError.
    """
    path = Path(path).expanduser().absolute()
    folder, own_labels = (Path(p).expanduser().absolute() if p is not None else None for p in (pictures, labels))
    tables = ("contrastive_core.embeddings.tables",) if path.suffix.lower() in (".parquet", ".csv") else ()
    child = Limits(_memory(), SECONDS, preload=("PIL.Image", *tables))
    try:
        return str(run_sandboxed(_keep, path, name, folder, tuple(leave_out), own_labels, limits=child))
    except Refused as error:
        raise UnusableEmbedding("{name} cannot be opened: {error}", name=printable(name), error=error) from None


def open_upload(name: str, content: bytes | memoryview, labels: str | Path | None = None) -> str:
    """Keep the vectors of an uploaded file; returns their key. Raises what `open_vectors` does."""
    name = Path(name).name
    with uploaded(name, content, "vectors") as copy:
        try:
            return open_vectors(copy, name, labels=labels)
        except ValueError as error:
            raise type(error)(str(error).replace(copy.name, printable(name))) from None


@contextmanager
def uploaded(name: str, content: bytes | memoryview, stem: str) -> Iterator[Path]:
    """A file of what was uploaded, for a child to open; of its name only the ending is kept."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"{stem}{Path(name).suffix.lower()}"
        copy.write_bytes(content)
        yield copy


def _memory() -> int:
    """Bytes that opening a file may take: never more than half of what the machine has."""
    try:
        return min(MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    except (AttributeError, ValueError, OSError):
        return MEMORY


def _keep(path: str, name: str, folder: str | None, leave_out: Sequence[str], labels: str | None) -> str:
    """In the child: read, attach, keep."""
    rows = file_formats.read(path, leave_out=leave_out)
    if labels is not None:
        rows = label_files.labeled(rows, labels)
    attached = attached_images.pictures_of(Path(path), rows, Path(folder) if folder else None)
    images = attached.images if attached.images is not None else attached_images.dataset_pictures(rows)
    note = attached.note if attached.images is not None or images is None else ""
    return loaded_vectors.save_vectors(rows, name, images, f"{_taken(rows)} {note}".strip())


def _taken(rows: EmbeddingSet) -> str:
    """Which of a table's columns are the vectors, and what the others are; "" where one of lists holds them."""
    taken = rows.provenance.get("columns")
    if not isinstance(taken, list) or len(taken) != rows.width:
        return ""
    numbered = [name.rstrip("0123456789") for name in taken]
    is_series = len({*numbered}) == 1 and numbered[0] != taken[0]
    names = message("{taken} to {last}", taken=taken[0], last=taken[-1]) if is_series else ", ".join(taken[:8])
    more = message(" and others") if not is_series and len(taken) > 8 else ""
    labels = N_("with labels") if rows.labels is not None else N_("without labels")
    values = {"taken": f"{len(taken):,}", "names": names, "more": more, "labels": labels, "columns": len(rows.columns)}
    return message(
        "The vectors are {taken} columns, {names}{more}; {labels}; further columns to color by: {columns}.", **values
    )
