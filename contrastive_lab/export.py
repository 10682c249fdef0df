"""Tables for other tools: CSV, and Parquet with `x`, `y` and `neighbors` as Embedding Atlas reads
them. Torch-free; pandas and pyarrow are imported late."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.nearest import nearest_of_all
from contrastive_core.storage.tables import safe_cell

__all__ = ["table"]

K = 15  # neighbors that are written
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
        is_taken = name in columns or name in OWN
        columns[f"{name} (given)" if is_taken else name] = values.tolist()
    columns |= {"x": xy[at, 0].tolist(), "y": xy[at, 1].tolist()}
    if len(part) > 1:
        index, similarity = nearest_of_all(part, min(K, len(part) - 1))
        away = np.maximum(0, 1 - similarity)
        columns["neighbors"] = [
            {"ids": i.tolist(), "distances": d.tolist()} for i, d in zip(index, away, strict=True)
        ]
    return _parquet(columns) if ending == "parquet" else _csv(columns)


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
