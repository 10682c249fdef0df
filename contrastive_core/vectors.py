"""Vectors that a user loads for the Loss Lab, kept under the hash of their content. Torch-free.

The address of a page names them by that hash, never by a path, so that a bookmark opens them again
and a link can open nothing else.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from contrastive_core import readers, store
from contrastive_core.data import data_home
from contrastive_core.embedding_set import EmbeddingSet, UnusableEmbedding

__all__ = ["keep", "loaded"]


def keep(name: str, content: bytes) -> str:
    """Keep a file's content, if vectors can be read from it; returns its key, such as
    "1f0c…9a.npy".

    Raises: UnusableEmbedding or store.Damaged with a sentence.
    """
    ending = Path(name).suffix.lower()
    if ending not in readers.ENDINGS:
        wanted = ", ".join(readers.ENDINGS)
        raise UnusableEmbedding(f"vectors are read from {wanted}; got {name!r}")
    key = hashlib.sha256(content).hexdigest()[:32] + ending
    path = _path(key)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        store.write_bytes(path, content)
        try:
            readers.read(path)
        except ValueError as error:
            path.unlink()
            raise type(error)(f"{error}".replace(key, name)) from None
    return key


def loaded(key: str) -> EmbeddingSet:
    """The vectors of a key, without rows that no cosine can be taken of.

    Raises: UnusableEmbedding when nothing is kept under the key, or no row is left.
    """
    if not re.fullmatch(r"[0-9a-f]{32}\.[a-z]+", key) or not _path(key).exists():
        raise UnusableEmbedding("These vectors are not kept here; load their file again.")
    found = readers.read(_path(key))
    if not len(found) or sum(map(len, found.problems.values())) == len(found):
        raise UnusableEmbedding("No row of these vectors is finite and other than zero.")
    return found.without_problems()


def _path(key: str) -> Path:
    return data_home() / "vectors" / key
