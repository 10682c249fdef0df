"""Files that belong to vectors: labels, relevance judgments, and images as thumbnails (n, 3, side, side). Torch-free.

None of them is trusted: no pickle is opened, and a wrong number of labels is an error. Images are an array `images` in
an `.npz`, or in a table a column of file names, or of images as bytes. Names are opened only if they are regular files
below the vectors' folder, or below a folder that the user names. A file that is not an image stays gray."""

import contextlib
import csv
import io
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.json_files import fields, whole
from contrastive_core.base.memory import read_npz
from contrastive_core.base.messages import N_, join, message, printable, sentence, thousands
from contrastive_core.base.storage import follow_links, is_regular, open_regular
from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.data.image_decoding import open_image
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.file_formats import class_numbers, cut_texts, explained_errors, npy_head
from contrastive_core.spaces.towers import PICTURES, picture_tower, towers_of

ENDINGS = (".npy", ".txt", ".csv", ".tsv")
LIMIT = 400 << 20  # bytes of such a file
LARGEST = 1_000_000  # of numbers that count classes
KNOWN = ("label", "labels", "y", "class")  # columns of a table that are taken


def labeled(rows: EmbeddingSet, path: str | Path) -> EmbeddingSet:
    """Return the rows with the labels of a file, in its order: numbers, or names of classes. An empty label, NaN or a
    number below 0 means no label.

    Args: path: `.npy` of (n) numbers or texts; `.txt`, `.csv` or `.tsv` with a label on each of n
        lines, with an optional header; with several columns, the one named label.
    Raises: UnusableEmbedding, NotRegular or Damaged with a sentence; FileNotFoundError."""
    path = Path(path)
    name, n, ending = printable(path.name), len(rows), path.suffix.lower()
    if ending not in ENDINGS:
        template = N_("label files must end in {endings}; got {name}")
        raise UnusableEmbedding(template, endings=", ".join(ENDINGS), name=f"{name!r}")
    with open_regular(path, LIMIT) as file, explained_errors(path):
        if ending == ".npy":
            shape, _, dtype = npy_head(file, path, os.fstat(file.fileno()).st_size)
            if len([k for k in shape if k != 1]) > 1 or not shape or dtype.kind not in "iubfUS":
                template = N_("{name} must contain (n) labels, as numbers or texts; got {dtype} {shape}")
                raise UnusableEmbedding(template, name=name, dtype=dtype, shape=shape)
            file.seek(0)
            array = np.lib.format.read_array(file, allow_pickle=False).reshape(-1)
            values = cut_texts(np.char.decode(array, "utf-8", "replace") if dtype.kind == "S" else array)
        else:
            values = _labels_of_lines(file.read().decode("utf-8-sig"), ending, name, n)
    if len(values) != n:
        counts = thousands(values=len(values), n=n)
        raise UnusableEmbedding("{name} has {values} labels, but there are {n} rows of embeddings", name=name, **counts)
    is_large = values > LARGEST if values.dtype.kind in "iuf" else np.zeros(n, bool)
    if is_large.any() and (values[is_large] == np.round(values[is_large])).all():  # no class numbers, but names
        values = np.array([f"{v:.0f}" if v >= 0 else "" for v in values.tolist()], np.str_)
    labels, classes = class_numbers(values)
    if labels is None or not (labels >= 0).any():
        raise UnusableEmbedding("{name} has no label: all are empty, NaN or below 0", name=name)
    return replace(rows, labels=labels, classes=classes)


def _labels_of_lines(text: str, ending: str, name: str, n: int) -> np.ndarray:
    """Return the labels of a text, one per line; the first of n + 1 lines is a header. Integers become numbers, NaN for
    missing ones; anything else remains text."""
    if ending == ".txt":
        cells = [[line] for line in text.splitlines()]
    else:
        kind = csv.excel_tab if ending == ".tsv" else csv.excel
        cells = [row or [""] for row in csv.reader(io.StringIO(text), kind)]
    while len(cells) > n and cells[-1] == [""]:  # lines that are empty behind the last
        cells.pop()
    if not cells:
        raise UnusableEmbedding("{name} is empty", name=name)
    heads = [cell.strip().lower() for cell in cells[0]]
    column = next((heads.index(known) for known in KNOWN if known in heads), 0 if len(heads) == 1 else None)
    if column is None:
        template = N_("{name} has {head} columns; the column of labels must be named label in the first line")
        raise UnusableEmbedding(template, name=name, head=len(heads))
    if len(cells) == n + 1 or heads[column] in KNOWN:
        cells = cells[1:]
    texts = [row[column].strip() if column < len(row) else "" for row in cells]
    with contextlib.suppress(ValueError):
        values = np.array([float(text) if text else np.nan for text in texts])
        known = values[np.isfinite(values)]
        if (known == np.round(known)).all():
            return values
    return cut_texts(np.array(texts, np.str_))


# --- relevance judgments ---


Qrels = dict[str, dict[str, int]]  # the grade of each judged document, by query
GRADES = fields(others=fields(others=whole(-json_files.LARGEST)))
FORM = N_('{name} must contain judgments in the form {{"query": {{"document": 1}}}}')
LINE = N_(
    "{name}: line {line} is not a judgment ({text}); expected query, document and a whole number, "
    "with tabs between (BEIR), or query, 0, document and a whole number (TREC)"
)
TWICE = N_("{name} judges document {document} of query {query} twice, with different numbers")
UNKNOWN_QUERIES = N_("{name} refers to queries that are not in the data: {count}, for example {example}")
NUMBERED = N_(
    "Queries and documents of triplets without ids are numbered from 0. The fields id and positive_id of a line name "
    "its query and its answer"
)
UNKNOWN_DOCUMENTS = N_("{name} refers to documents that are not in the data: {count}, for example {example}")


def judgments_file(path: str | Path) -> Path:
    """Return the file of judgments that a path names: itself, or `qrels/test.tsv`, `dev.tsv` or `train.tsv` of a BEIR
    folder, the first that exists."""
    path = Path(path)
    files = [path / "qrels" / f"{split}.tsv" for split in ("test", "dev", "train")]
    return next((file for file in files if file.is_file()), files[0]) if path.is_dir() else path


def read_qrels(path: str | Path) -> Qrels:
    """Return the grade of each judged document, by query; 0 or less is "not relevant".

    Args: path: three columns with tabs between (query-id, corpus-id, score; a first line of names is skipped), four
        with spaces or tabs (query, iteration, document, grade), JSON: `{query: {document: grade}}`, or a BEIR folder.
    Raises: Damaged, UnusableEmbedding or NotRegular with a sentence; FileNotFoundError."""
    path = judgments_file(path)
    name, found = printable(path.name), Qrels()
    if path.suffix.lower() == ".json":
        try:
            found = json_files.read_json(path, GRADES, LIMIT)
        except Damaged as error:
            raise Damaged(join(". ", [sentence(error), message(FORM, name=name)])) from None
    else:
        with open_regular(path, LIMIT) as file, explained_errors(path):
            text = file.read().decode("utf-8-sig")
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            cells = [cell.strip() for cell in line.split("\t")] if line.count("\t") == 2 else line.split()
            try:
                query, document, grade = cells[0], cells[-2], int(cells[-1])
                if len(cells) not in (3, 4) or not query or not document:
                    raise ValueError
            except (ValueError, IndexError):
                if number == 1 and len(cells) in (3, 4) and cells[-1].isalpha():
                    continue  # the names of the columns
                raise Damaged(LINE, name=name, line=f"{number:,}", text=repr(printable(line, 80))) from None
            if found.setdefault(query, {}).setdefault(document, grade) != grade:
                pair = {"document": repr(printable(document, 80)), "query": repr(printable(query, 80))}
                raise UnusableEmbedding(TWICE, name=name, **pair)
    if not any(grade > 0 for grades in found.values() for grade in grades.values()):
        raise UnusableEmbedding("{name} judges no document as relevant", name=name)
    return found


def check_ids(
    qrels: Mapping[str, Mapping[str, int]], queries: Collection[str], documents: Collection[str], name: str
) -> None:
    """Check that all judged queries and documents exist. Raises UnusableEmbedding. Args: name: of the file of
    judgments."""
    judged = {document for grades in qrels.values() for document in grades}
    for template, ids, known in ((UNKNOWN_QUERIES, {*qrels}, queries), (UNKNOWN_DOCUMENTS, judged, documents)):
        if unknown := ids - {*known}:
            values = {"count": f"{len(unknown):,}", "example": repr(printable(min(unknown), 80))}
            text = message(template, name=printable(name), **values)
            if "0" in known:
                text = join(". ", [text, NUMBERED])
            raise UnusableEmbedding(text)


# --- images ---


SIDE = 64  # pixels along the side of a kept picture
ARRAYS = ("images", "image", "pictures")
GRAY = 128
REFUSED = N_(
    "{refused} of {files} images were not opened, for example {first}: they do not exist, are links or are outside the "
    "file's folder. If they are in another folder, give that folder when you open the file. Set "
    "CONTRASTIVE_LAB_FOLLOW_LINKS=1 to follow links."
)
MOST = 200_000  # rows whose pictures are kept: 2.5 GB


def pictures_of(path: Path, rows: EmbeddingSet, folder: Path | None = None) -> tuple[np.ndarray | None, str]:
    """Return thumbnails (n, c, h, w) uint8 of the rows of a file, None without any, and a note about names that were
    refused. `folder`: a further folder in which file names are looked up. Raises ValueError if it is not a folder."""
    towers = towers_of(rows)
    if path.suffix == ".npz":
        if towers is None:
            return _array(path, len(rows), ARRAYS), ""
        first = picture_tower(towers.names)  # an array of one tower's rows, by its name and length
        for name in sorted(towers.names, key=lambda name: name != first):
            at = towers.rows_of(name)
            if (images := _array(path, len(at), (*(f"{name}_{of}" for of in ARRAYS), *ARRAYS))) is not None:
                return spread(images, at, len(rows)), ""
        return None, ""
    if folder is not None and not folder.is_dir():
        raise ValueError(message("There is no folder {folder} of pictures.", folder=folder))
    columns = [rows.columns[name] for name in PICTURES if name in rows.columns]
    if len(rows) > MOST:
        note = message("Pictures are kept for at most {most} rows.", **thousands(most=MOST))
        return None, note if columns else ""
    names = next((column for column in columns if column.dtype.kind == "U"), None)
    if names is not None:
        roots = [Path(os.path.abspath(f)) for f in (folder, path.parent) if f is not None]
        files = {str(name): _below(str(name), roots) for name in names if name}
        images = _stacked((files.get(str(name)) for name in names), len(rows))
        if not (refused := [name for name in map(str, names) if name and files[name] is None]):
            return images, ""
        counts = thousands(refused=len(refused), files=int((names != "").sum()))
        return images, message(REFUSED, first=printable(refused[0], 60), **counts)
    if path.suffix != ".parquet":
        return None, ""
    with open_regular(path) as file:
        import pyarrow.parquet as pq

        n = int(pq.ParquetFile(file).metadata.num_rows)
    if n == len(rows):
        return _stacked(_stored(path), n), ""
    if towers is None or 2 * n != len(rows) or len(towers.a) != n:
        return None, ""
    images = _stacked(_stored(path), n)
    at = towers.rows_of(picture_tower(towers.names))
    return None if images is None else spread(images, at, len(rows)), ""


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
