"""Between pages and what other processes answered, or a user loaded: cached by what was asked.

A part of `session`, in a file of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.embeddings import ref
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.jobs import results, task
from contrastive_lab.components.shared.thumbnails import ThumbnailSheet, thumbnail_sheet

__all__ = ["answer", "ask_again", "asked", "quick_pca", "thumbnails_of_rows", "vector_pictures",
           "vector_thumbnails", "vectors"]  # fmt: skip

AXES_FROM = 2000  # rows that the axes of a quick map are taken from where rows are wide


def answer(kind: str, values: dict[str, Any]) -> results.Result | None:
    """The answer to a question, if it has been made."""
    path = results.path(kind, values)
    return _answer(str(path), kind, values) if path.exists() else None


@st.cache_resource(max_entries=24, show_spinner=False)
def _answer(path: str, _kind: str, _values: dict[str, Any]) -> results.Result | None:
    return results.read(_kind, _values)


def asked(kind: str, values: dict[str, Any]) -> str | None:
    """What is being done to answer; None once it is answered. Starts the process if need be.

    Raises: ValueError with the reason when its process ended without an answer.
    """
    if answer(kind, values) is not None:
        return None
    mark = f"asked {results.task(kind, values)}"
    if what := task.progress(kind, values):
        st.session_state[mark] = True
        return what
    if st.session_state.get(mark) and (why := task.failed(kind, values)):
        raise ValueError(why)
    st.session_state[mark] = True
    task.ask(kind, values)
    return "starting"


def ask_again(kind: str, values: dict[str, Any]) -> None:
    st.session_state.pop(f"asked {results.task(kind, values)}", None)


@st.cache_resource(max_entries=4, show_spinner=False)
def vectors(name: str, split: str) -> EmbeddingSet:
    """Loaded vectors by their name. Raises ValueError when they are gone."""
    try:
        rows = ref.Space(name, split, "loaded").rows()
    except FileNotFoundError:
        raise ValueError("these vectors are gone; open their file again") from None
    assert rows is not None
    return rows


@st.cache_resource(max_entries=4, show_spinner=False)
def vector_pictures(name: str, split: str) -> np.ndarray | None:
    """The images of loaded vectors, if they came with some."""
    return ref.pictures(ref.Space(name, split, "loaded"))


@st.cache_data(max_entries=6, show_spinner=False)
def vector_thumbnails(name: str, split: str) -> ThumbnailSheet:
    return thumbnail_sheet(vector_pictures(name, split))


@st.cache_data(max_entries=3, show_spinner=False)
def thumbnails_of_rows(name: str, split: str, rows: bytes, _images: np.ndarray) -> ThumbnailSheet:
    """Thumbnails of some rows (int64, as bytes) of a split's images, where not all are drawn."""
    return thumbnail_sheet(_images[np.frombuffer(rows, np.int64)])


@st.cache_resource(max_entries=6, show_spinner=False)
def quick_pca(content: str, _features: np.ndarray) -> np.ndarray:
    """The first two principal components (n, 2) at once, while a judged map is being made."""
    x = _features - _features.mean(0, dtype=np.float64).astype(np.float32)
    n, d = x.shape
    if d <= AXES_FROM:
        axes = np.linalg.eigh((x.T @ x).astype(np.float64))[1][:, ::-1][:, :2]  # (d, 2)
    else:
        some = x[np.random.default_rng(0).permutation(n)[:AXES_FROM]]
        axes = some.T @ np.linalg.eigh((some @ some.T).astype(np.float64))[1][:, ::-1][:, :2]
    xy = np.zeros((n, 2), np.float32)
    xy[:, : axes.shape[1]] = x @ axes.astype(np.float32)
    top = np.abs(xy).argmax(0)
    return np.where(xy[top, [0, 1]] < 0, -xy, xy)
