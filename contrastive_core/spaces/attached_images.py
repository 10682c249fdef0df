"""Images supplied with loaded vectors, as thumbnails (n, 3, side, side).

In an `.npz`: an array `images`. In a table: a column of file names, or of images as bytes. A vector file may come from
anyone, so names are opened only if they are regular files below its own folder, or below a folder that the user names.
A file that is not an image stays gray."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.memory import read_npz
from contrastive_core.base.messages import N_, message, printable, thousands
from contrastive_core.base.storage import follow_links, is_regular, open_regular
from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.data.image_decoding import open_image
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import PICTURES, picture_tower, towers_of

SIDE = 64  # pixels along the side of a kept picture
ARRAYS = ("images", "image", "pictures")
GRAY = 128
REFUSED = N_(
    "{refused} of {files} images were not opened, for example {first}: they do not exist, are links or are outside the "
    "file's folder. If they are in another folder, give that folder when you open the file. Set "
    "CONTRASTIVE_LAB_FOLLOW_LINKS=1 to follow links."
)
MOST = 200_000  # rows whose pictures are kept: 2.5 GB


@dataclass(frozen=True, eq=False)
class Attached:
    """Images of the rows of a vector file, and a note about skipped ones."""

    images: np.ndarray | None  # (n, c, h, w) uint8; None: no pictures
    note: str = ""  # sentences about names that were refused, or are of no file


def pictures_of(path: Path, rows: EmbeddingSet, folder: Path | None = None) -> Attached:
    """Return thumbnails of the rows of a file. `folder`: a further folder in which file names are looked up, besides
    the file's own. Raises ValueError if it is not a folder."""
    towers = towers_of(rows)
    if path.suffix == ".npz":
        if towers is None:
            return Attached(_array(path, len(rows), ARRAYS))
        first = picture_tower(towers.names)  # an array of one tower's rows, by its name and length
        for name in sorted(towers.names, key=lambda name: name != first):
            at = towers.rows_of(name)
            if (images := _array(path, len(at), (*(f"{name}_{of}" for of in ARRAYS), *ARRAYS))) is not None:
                return Attached(spread(images, at, len(rows)))
        return Attached(None)
    if folder is not None and not folder.is_dir():
        raise ValueError(message("There is no folder {folder} of pictures.", folder=folder))
    columns = [rows.columns[name] for name in PICTURES if name in rows.columns]
    if len(rows) > MOST:
        note = message("Pictures are kept for at most {most} rows.", **thousands(most=MOST))
        return Attached(None, note if columns else "")
    names = next((column for column in columns if column.dtype.kind == "U"), None)
    if names is not None:
        roots = [Path(os.path.abspath(f)) for f in (folder, path.parent) if f is not None]
        files = {str(name): _below(str(name), roots) for name in names if name}
        images = _stacked((files.get(str(name)) for name in names), len(rows))
        if not (refused := [name for name in map(str, names) if name and files[name] is None]):
            return Attached(images)
        counts = thousands(refused=len(refused), files=int((names != "").sum()))
        return Attached(images, message(REFUSED, first=printable(refused[0], 60), **counts))
    if path.suffix != ".parquet":
        return Attached(None)
    with open_regular(path) as file:
        import pyarrow.parquet as pq

        n = int(pq.ParquetFile(file).metadata.num_rows)
    if n == len(rows):
        return Attached(_stacked(_stored(path), n))
    if towers is None or 2 * n != len(rows) or len(towers.a) != n:
        return Attached(None)
    images = _stacked(_stored(path), n)
    at = towers.rows_of(picture_tower(towers.names))
    return Attached(None if images is None else spread(images, at, len(rows)))


def _below(name: str, roots: Sequence[Path]) -> Path | None:
    """Return the regular file of a name below the first of `roots` that has it; None if it is not to be opened."""
    for root in roots:
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # too long, a zero byte, links in a circle
            file = Path(os.path.normpath(root / name))
            is_below = file.is_relative_to(root)
            has_link = is_below and file.resolve() != root.resolve() / file.relative_to(root)
            if is_below and (follow_links() or not has_link) and is_regular(file):
                return file
    return None


def spread(images: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """Return n images: `images` (k, c, h, w) at the rows `at`, gray elsewhere."""
    every = np.full((n, *images.shape[1:]), GRAY, np.uint8)
    every[at] = images
    return every


def stacked_towers(images: Sequence[np.ndarray | None], counts: tuple[int, int]) -> np.ndarray | None:
    """Stack the images of two towers, tower a first, in one size and in color if any image is; gray for a tower without
    images. None if neither has images."""
    from PIL import Image

    known = [each for each in images if each is not None]
    if not known:
        return None
    shapes = {each.shape[1:] for each in known}
    (shape,) = shapes if len(shapes) == 1 else {(3, SIDE, SIDE)}
    every = np.full((sum(counts), *shape), GRAY, np.uint8)
    for start, each in zip((0, counts[0]), images, strict=True):
        for row, image in enumerate(() if each is None else each, start):
            if image.shape == shape:
                every[row] = image
            else:
                picture = Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0))
                every[row] = _square(picture)
    return every


def _stacked(sources: Iterable[Any], n: int) -> np.ndarray | None:
    """Return thumbnails (n, 3, side, side), gray for rows without one; None without any."""
    images = None
    for row, source in enumerate(sources):
        if (small := _thumbnail(source)) is not None:
            images = np.full((n, 3, SIDE, SIDE), GRAY, np.uint8) if images is None else images
            images[row] = small
    return images


def _array(path: Path, n: int, names: Sequence[str]) -> np.ndarray | None:
    arrays = read_npz(path)
    for name in names:
        images = arrays.get(name)
        if images is None or images.dtype != np.uint8 or len(images) != n or images.ndim not in (3, 4):
            continue
        images = images[:, None] if images.ndim == 3 else images
        if images.shape[1] not in (1, 3):  # channels last
            images = images.transpose(0, 3, 1, 2)
        if images.shape[1] in (1, 3):
            return np.ascontiguousarray(_thinned(images))
    return None


def _thinned(images: np.ndarray) -> np.ndarray:
    """Return every k-th pixel of images that are larger than thumbnails."""
    step = max(1, -(-max(images.shape[2:]) // SIDE))
    return images[:, :, ::step, ::step]


def _stored(path: Path) -> Iterator[Any]:
    """Yield the images in a column of bytes, or of structures with `bytes`. The file stores equal ones once; a list
    would hold each."""
    import pyarrow.parquet as pq

    with open_regular(path) as file:
        schema = pq.ParquetFile(file).schema
        if name := next((c for c in PICTURES if c in schema.to_arrow_schema().names), None):
            stored = map(schema.column, range(len(schema)))
            encoded = [c.path for c in stored if c.physical_type == "BYTE_ARRAY"]
            table = pq.ParquetFile(file, read_dictionary=encoded)
            for batch in table.iter_batches(batch_size=256, columns=[name]):
                for value in batch.column(0):
                    plain = value.as_py()
                    yield plain.get("bytes") if isinstance(plain, dict) else plain


def _thumbnail(source: Any) -> np.ndarray | None:
    """Return the central square of an image as (3, side, side); None if it is not an image."""
    from PIL import Image

    if not isinstance(source, (bytes, Path)):
        return None
    try:
        with open_image(source) as image:
            image.draft("RGB", (SIDE, SIDE))
            return _square(image)
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return None


def _square(image: Any) -> np.ndarray:
    """Return the central square of an image in color as (3, side, side)."""
    from PIL import ImageOps

    return np.asarray(ImageOps.fit(image.convert("RGB"), (SIDE, SIDE))).transpose(2, 0, 1)


def dataset_pictures(rows: EmbeddingSet) -> np.ndarray | None:
    """Return images (n, c, h, w) of rows from a data set decoded on this computer, matched by id; else None."""
    name = str(rows.provenance.get("dataset") or "")
    splits = {rows.split} if rows.split else set(map(str, rows.columns.get("split", ())))
    if not name or len(splits) != 1:
        return None
    (split,) = splits
    try:
        form = form_of(rows.provenance)
        if not datasets.is_made(name, split, form):
            return None
        dataset = datasets.load(name, split, form=form, afresh=False)
    except (ValueError, TypeError, OSError):  # the file may name anything
        return None
    at = {str(sample): row for row, sample in enumerate(dataset.ids)}
    if not all(sample in at for sample in rows.ids):
        return None
    return np.asarray(_thinned(dataset.images[[at[sample] for sample in rows.ids]]))
