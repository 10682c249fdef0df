"""Tables of vectors in CSV, read some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.embeddings.table_columns import (
    BATCH,
    MAX_COLUMNS,
    Columns,
    Table,
    TableLimits,
    Texts,
    columns_provenance,
    vector_columns,
)
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.messages import message

__all__ = ["read_csv"]


def read_csv(file: BinaryIO, path: Path, limits: TableLimits, leave_out: Sequence[str] = ()) -> Table:
    """Vectors and columns of a CSV file with a line of names. `leave_out`: as of `read_parquet`."""
    import pandas as pd

    taken: list[str] = []
    rest: list[pd.DataFrame] = []
    features, n, held = np.empty((0, 0), np.float32), 0, 0
    for frame in pd.read_csv(file, low_memory=False, chunksize=BATCH):
        frame.columns = frame.columns.astype(str)
        if not rest:
            if frame.shape[1] > MAX_COLUMNS:
                raise UnusableEmbedding(
                    message(
                        "{name} has {shape} columns; at most {max_columns} are read",
                        name=path.name,
                        shape=f"{frame.shape[1]:,}",
                        max_columns=f"{MAX_COLUMNS:,}",
                    )
                )
            kinds = _kinds(frame)
            taken = vector_columns([k for k, v in kinds.items() if v == "number"], kinds, path, leave_out)
        elif _kinds(frame) != kinds:  # a text below numbers: what a column is, only all rows tell
            file.seek(0)
            return _read_whole_csv(file, path, limits, leave_out)
        rest.append(frame.drop(columns=taken))
        held += int(rest[-1].memory_usage(deep=False).sum())
        stop = n + len(frame)
        if held > limits.columns or 4 * stop * len(taken) > limits.vectors:
            raise UnusableEmbedding(
                message("{name} is too large a table: {stop} rows and more", name=path.name, stop=f"{stop:,}")
            )
        if stop > len(features):
            features.resize((stop * 5 // 4, len(taken)), refcheck=False)
        features[n:stop] = frame[taken].to_numpy(np.float32)
        n = stop
    if not taken:
        raise UnusableEmbedding(message("{name} has no rows", name=path.name))
    features.resize((n, len(taken)), refcheck=False)
    return features, _csv_columns(pd.concat(rest)), columns_provenance(taken)


def _read_whole_csv(file: BinaryIO, path: Path, limits: TableLimits, leave_out: Sequence[str] = ()) -> Table:
    import pandas as pd

    if (size := os.fstat(file.fileno()).st_size) > limits.columns:
        raise UnusableEmbedding(
            message(
                "{name} has a column that is numbers in some rows and text in others; of such a "
                "table at most {columns} bytes are read, it has {size}",
                name=path.name,
                columns=f"{limits.columns:,}",
                size=f"{size:,}",
            )
        )
    frame = pd.read_csv(file, low_memory=False)
    frame.columns = frame.columns.astype(str)
    kinds = _kinds(frame)
    taken = vector_columns([k for k, v in kinds.items() if v == "number"], kinds, path, leave_out)
    features = frame[taken].to_numpy(np.float32)
    return features, _csv_columns(frame.drop(columns=taken)), columns_provenance(taken)


def _kinds(frame: Any) -> dict[str, str]:
    """What each column holds: numbers, yes and no, or anything."""
    names = {"f": "number", "i": "number", "u": "number", "b": "bool"}
    return {name: names.get(dtype.kind, "text") for name, dtype in frame.dtypes.items()}


def _csv_columns(frame: Any) -> Columns:
    import pandas as pd

    columns: Columns = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind in "fiub":
            columns[name] = column.to_numpy()
        else:
            index, texts = pd.factorize(column)
            columns[name] = Texts(["", *map(str, texts)], index + 1)
    return columns
