"""Tables for other tools: CSV, and Parquet with `x`, `y` and `neighbors` as Embedding Atlas reads
them. Torch-free; pandas and pyarrow are imported late."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from contrastive_core.embeddings.cache import graph_path
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.storage import records
from contrastive_core.storage.tables import safe_cell

__all__ = ["nearest_of", "table"]

K = 15  # neighbors that are written
BLOCK = 1024
OWN = ("x", "y", "neighbors")  # columns that the map gives


def table(rows: EmbeddingSet, xy: np.ndarray, chosen: Sequence[int] | None, ending: str) -> bytes:
    """A row per sample: id, label, class, columns, x, y and neighbors; "parquet" or "csv". A column
    whose name is one of these gets "(given)" behind it.

    Args: xy: (n, 2) of all rows; chosen: only these, in this order. `neighbors` holds `ids`, rows
        of this table from 0, and `distances`, 1 − cosine; of a selection, within it.
    """
    at = np.arange(len(rows)) if chosen is None else np.asarray(list(chosen), np.int64)
    part = rows if chosen is None else rows.take(at)
    columns: dict[str, Any] = {"id": list(part.ids)}
    if part.labels is not None:
        columns["label"] = part.labels.tolist()
        columns["class"] = [part.class_name(int(c)) for c in part.labels]
    for name, values in part.columns.items():
        taken = name in columns or name in OWN
        columns[f"{name} (given)" if taken else name] = values.tolist()
    columns |= {"x": xy[at, 0].tolist(), "y": xy[at, 1].tolist()}
    if len(part) > 1:
        index, away = nearest_of(part)
        columns["neighbors"] = [
            {"ids": i.tolist(), "distances": d.tolist()} for i, d in zip(index, away, strict=True)
        ]
    return _parquet(columns) if ending == "parquet" else _csv(columns)


def nearest_of(rows: EmbeddingSet, k: int = K) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest other rows (n, k) and 1 − cosine: from the kept graph if there is one."""
    k = min(k, len(rows) - 1)
    try:
        kept = records.read_npz(graph_path(rows.content_hash, "cosine"))
        if kept["index"].shape[1] >= k:
            return kept["index"][:, :k], np.maximum(0, 1 - kept["score"][:, :k])
    except (OSError, ValueError, KeyError):
        pass
    x = rows.features.astype(np.float32)
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)
    index, away = np.empty((len(x), k), np.int64), np.empty((len(x), k), np.float32)
    for start in range(0, len(x), BLOCK):
        s = x[start : start + BLOCK] @ x.T  # (r, n)
        s[np.arange(len(s)), start + np.arange(len(s))] = -np.inf
        top = np.argsort(-s, axis=1, kind="stable")[:, :k]
        index[start : start + BLOCK] = top
        away[start : start + BLOCK] = 1 - np.take_along_axis(s, top, 1)
    return index, np.maximum(0, away)


def _parquet(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def _csv(columns: dict[str, Any]) -> bytes:
    import csv

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(map(safe_cell, columns))
    for values in zip(*columns.values(), strict=True):
        writer.writerow([json.dumps(v) if isinstance(v, dict) else safe_cell(v) for v in values])
    return out.getvalue().encode()
