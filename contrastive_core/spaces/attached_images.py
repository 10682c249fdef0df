"""Images supplied with loaded vectors, as thumbnails (n, 3, side, side).

In an `.npz`: an array `images`. In a table: a column of file names, or of images as bytes. A vector file may come from
anyone, so names are opened only if they are regular files below its own folder, or below a folder that the user names.
`..`, absolute names and links to other places are refused. The files are opened like those of image folders
(data/image_decoding.py); a file that is not an image stays gray."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.memory import read_npz
from contrastive_core.base.messages import N_, join, message, printable, thousands
from contrastive_core.base.storage import follow_links, is_regular, open_regular
from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.data.image_decoding import open_image
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import PICTURES, Towers, picture_tower, towers_of

SIDE = 64  # pixels along the side of a kept picture
ARRAYS = ("images", "image", "pictures")
GRAY = 128
OUTSIDE, MISSING = N_("their paths point outside its folder"), N_("they do not exist")
LINK = N_("they are links; set CONTRASTIVE_LAB_FOLLOW_LINKS=1 to follow links")
MOST = 200_000  # rows whose pictures are kept: 2.5 GB


@dataclass(frozen=True, eq=False)
class Attached:
    """Images of the rows of a vector file, and a note about skipped ones."""

    images: np.ndarray | None  # (n, c, h, w) uint8; None: no pictures
    note: str = ""  # sentences about names that were refused, or are of no file


def pictures_of(path: Path, rows: EmbeddingSet, folder: Path | None = None) -> Attached:
    """Return thumbnails of the rows of a file read by `file_formats.read`. `folder`: a further folder named by the
    user, in which file names are looked up beside the file's own folder. Raises ValueError when `folder` is not a
    folder."""
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
    if names is None:
        return Attached(_stored_images(path, rows, towers) if path.suffix == ".parquet" else None)
    roots = [Path(os.path.abspath(f)) for f in (folder, path.parent) if f is not None]
    files = [_below(str(name), roots) if name else None for name in names]
    images = _stacked((f if isinstance(f, Path) else None for f in files), len(rows))
    return Attached(images, _note([str(name) for name in names], files))


def _below(name: str, roots: Sequence[Path]) -> Path | str:
    """Return the file of a name below the first of `roots` that has it, or the reason why it is not opened."""
    why = OUTSIDE
    for root in roots:
        try:
            file = Path(os.path.normpath(root / name))
            if not file.is_relative_to(root):
                continue
            resolved, home = file.resolve(), root.resolve()
            if resolved != home / file.relative_to(root) and not follow_links():
                reason = LINK if resolved.is_relative_to(home) else OUTSIDE
            elif is_regular(file):
                return file
            else:
                reason = MISSING
        except (OSError, ValueError, RuntimeError):  # too long, a zero byte, links in a circle
            continue
        why = reason if why == OUTSIDE else why
    return why


def _note(names: Sequence[str], files: Sequence[Path | str | None]) -> str:
    """Describe the names that were not opened, one sentence per reason."""
    parts: list[str] = []
    for why in (OUTSIDE, LINK, MISSING):
        if refused := [n for n, file in zip(names, files, strict=True) if file == why]:
            counts = thousands(refused=len(refused), files=sum(f is not None for f in files))
            values = {"why": why, "first": printable(refused[0], 60), **counts}
            parts.append(
                message("{refused} of {files} images were not opened because {why}, for example {first}.", **values)
            )
    if parts:
        parts.append(N_("If they are in another folder, give that folder when you open the file."))
    return join(" ", parts)


def _stored_images(path: Path, rows: EmbeddingSet, towers: Towers | None) -> np.ndarray | None:
    """Return thumbnails of a column of images. If a table row gives two rows, they belong to one tower."""
    import pyarrow.parquet as pq

    with open_regular(path) as file:
        n = int(pq.ParquetFile(file).metadata.num_rows)
    if towers is None or len(towers.a) != len(towers.b) or 2 * n != len(rows):
        return _stacked(_stored(path), len(rows))
    small = _stacked(_stored(path), len(towers.a))
    return None if small is None else spread(small, towers.rows_of(picture_tower(towers.names)), len(rows))


def spread(images: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """Return n images: `images` (k, c, h, w) at the rows `at`, gray elsewhere."""
    every = np.full((n, *images.shape[1:]), GRAY, np.uint8)
    every[at] = images
    return every


def stacked_towers(images: Sequence[np.ndarray | None], counts: tuple[int, int]) -> np.ndarray | None:
    """Stack the images of two towers, tower a first, in one size and in color if any image is; gray for a tower without
    images. None if neither has images."""
    known = [each for each in images if each is not None]
    if not known:
        return None
    if len({each.shape[1:] for each in known}) > 1 or known[0].shape[1] != 3:
        images = [None if each is None else _as_thumbnails(each) for each in images]
    shape = next(each.shape[1:] for each in images if each is not None)
    gray = [np.full((n, *shape), GRAY, np.uint8) for n in counts]
    return np.concatenate([gray[k] if each is None else each for k, each in enumerate(images)])


def _as_thumbnails(images: np.ndarray) -> np.ndarray:
    """Return images (n, c, h, w) as color thumbnails of one size."""
    from PIL import Image, ImageOps

    small = np.empty((len(images), 3, SIDE, SIDE), np.uint8)
    for row, image in enumerate(images):
        picture = Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0))
        small[row] = np.asarray(ImageOps.fit(picture.convert("RGB"), (SIDE, SIDE))).transpose(2, 0, 1)
    return small


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
    step = max(1, -(-max(images.shape[2:]) // SIDE))
    return images[:, :, ::step, ::step]


def _stored(path: Path) -> Iterator[Any]:
    """Yield the images in a column of bytes, or of structures with `bytes`, as in image data sets. They are yielded one
    at a time, because the file stores equal ones once but a list would hold each."""
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
    from PIL import Image, ImageOps

    if not isinstance(source, (bytes, Path)):
        return None
    try:
        with open_image(source) as image:
            image.draft("RGB", (SIDE, SIDE))
            small = ImageOps.fit(image.convert("RGB"), (SIDE, SIDE))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return None
    return np.asarray(small).transpose(2, 0, 1)


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
