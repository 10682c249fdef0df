"""Two towers in one file: their names, and the assignment of columns to towers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import PAIR, TEXT, TOWER

PICTURES = ("image", "image_path", "path", "file", "filename", "picture")  # columns of file names, or of images
TEXTS = (TEXT, "texts", "caption", "captions", "sentence")
VECTOR_WORDS = ("embeddings", "embedding", "embeds", "embed", "emb", "vectors", "vector", "vec", "features")
OF_PICTURES = ("image", "img", "photo", "picture", "vision", "visual")
OF_TEXTS = ("text", "txt", "caption", "sentence", "query", "question", "answer")
Columns = dict[str, np.ndarray]


def tower_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the towers that columns such as `image_embedding` or the series `text_` belong to."""
    names = tuple(map(_stem, columns))
    return names if all(names) and len({*names}) == len(names) else tuple(columns)


def _stem(name: str) -> str:
    """Return the name without a prefix or suffix such as "embedding"."""
    stem = name.strip("_-. ")
    for word in VECTOR_WORDS:
        low = stem.lower()
        if low != word and low.endswith(word) and low[: -len(word)][-1] in "_-. ":
            return stem[: -len(word)].strip("_-. ")
        if low != word and low.startswith(word) and low[len(word) :][0] in "_-. ":
            return stem[len(word) :].strip("_-. ")
    return stem


def columns_of_towers(columns: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> list[Columns]:
    """Return the columns of each of two towers, by name. `sizes`: the number of rows of each.

    `question_text` is `text` of the tower question; `question` is its text, or its images. A column of images or of
    texts belongs to the tower that its name suggests; any other to every tower with the same number of rows."""
    parts: dict[str, Columns] = {name: {} for name in sizes}
    for key, column in columns.items():
        tower, own = _owner(key, column, tuple(sizes), len({*sizes.values()}) > 1)
        fitting = [name for name, n in sizes.items() if n == len(column)]
        for name in (tower,) if tower else fitting or tuple(sizes):
            parts[name][own] = column
    return list(parts.values())


def _owner(key: str, column: np.ndarray, names: tuple[str, ...], are_unequal: bool) -> tuple[str | None, str]:
    """Return the tower that a column describes (None for both), and the column's name in it."""
    for name in sorted(names, key=len, reverse=True):
        if key.startswith(f"{name}_"):
            return name, key.removeprefix(f"{name}_")
        if key == name:
            return name, TEXT if key not in PICTURES else key
    if key.lower() in PICTURES and not are_unequal:
        return picture_tower(names), key
    if key.lower() in TEXTS and column.dtype.kind in "OUST" and not are_unequal:
        return _only(names, OF_TEXTS) or _other(names, _only(names, OF_PICTURES)), key
    return None, key


def picture_tower(names: tuple[str, ...]) -> str:
    """Return the tower whose name suggests images; else the first."""
    return _only(names, OF_PICTURES) or _other(names, _only(names, OF_TEXTS)) or names[0]


def _only(names: tuple[str, ...], words: Sequence[str]) -> str | None:
    found = [name for name in names if any(word in name.lower() for word in words)]
    return found[0] if len(found) == 1 else None


def _other(names: tuple[str, ...], name: str | None) -> str | None:
    return None if name is None else names[1] if names[0] == name else names[0]


def with_text(rows: EmbeddingSet) -> EmbeddingSet:
    """Return the rows of one tower with the column of texts, if any, renamed to `text`."""
    if TEXT in rows.columns:
        return rows
    unlikely = (*PICTURES, PAIR, TOWER, "split", "group")
    plain = replace(rows, columns={k: v for k, v in rows.columns.items() if k.lower() not in unlikely})
    named = next((v for k, v in plain.columns.items() if k.lower() in TEXTS and v.dtype.kind == "U"), None)
    texts = plain.texts if named is None else named
    if texts is None:
        return rows
    return replace(rows, columns={k: v for k, v in rows.columns.items() if v is not texts} | {TEXT: texts})
