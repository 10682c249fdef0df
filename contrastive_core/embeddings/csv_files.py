"""Tables of vectors in CSV, read some rows at a time. Torch-free."""

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
    Limits,
    Table,
    Texts,
    said,
    taken_of,
)  # fmt: skip
from contrastive_core.errors import UnusableEmbedding

__all__ = ["csv"]


def csv(file: BinaryIO, path: Path, limits: Limits, leave_out: Sequence[str] = ()) -> Table:
    """Vectors and columns of a CSV file with a line of names. `leave_out`: as of `parquet`."""
    import pandas as pd

    taken: list[str] = []
    rest: list[pd.DataFrame] = []
    features, n, held = np.empty((0, 0), np.float32), 0, 0
    for frame in pd.read_csv(file, low_memory=False, chunksize=BATCH):
        frame.columns = frame.columns.astype(str)
        if not rest:
            if frame.shape[1] > MAX_COLUMNS:
                raise UnusableEmbedding(
                    f"{path.name} has {frame.shape[1]:,} columns; at most {MAX_COLUMNS:,} are read"
                )
            kinds = _kinds(frame)
            taken = taken_of([k for k, v in kinds.items() if v == "number"], kinds, path, leave_out)
        elif _kinds(frame) != kinds:  # a text below numbers: what a column is, only all rows tell
            file.seek(0)
            return _csv_at_once(file, path, limits, leave_out)
        rest.append(frame.drop(columns=taken))
        held += int(rest[-1].memory_usage(deep=False).sum())
        stop = n + len(frame)
        if held > limits.columns or 4 * stop * len(taken) > limits.vectors:
            raise UnusableEmbedding(f"{path.name} is too large a table: {stop:,} rows and more")
        if stop > len(features):
            features.resize((stop * 5 // 4, len(taken)), refcheck=False)
        features[n:stop] = frame[taken].to_numpy(np.float32)
        n = stop
    if not taken:
        raise UnusableEmbedding(f"{path.name} has no rows")
    features.resize((n, len(taken)), refcheck=False)
    return features, _csv_columns(pd.concat(rest)), said(taken)


def _csv_at_once(
    file: BinaryIO, path: Path, limits: Limits, leave_out: Sequence[str] = ()
) -> Table:
    import pandas as pd

    if (size := os.fstat(file.fileno()).st_size) > limits.columns:
        raise UnusableEmbedding(
            f"{path.name} has a column that is numbers in some rows and text in others; of such a "
            f"table at most {limits.columns:,} bytes are read, it has {size:,}"
        )
    frame = pd.read_csv(file, low_memory=False)
    frame.columns = frame.columns.astype(str)
    kinds = _kinds(frame)
    taken = taken_of([k for k, v in kinds.items() if v == "number"], kinds, path, leave_out)
    features = frame[taken].to_numpy(np.float32)
    return features, _csv_columns(frame.drop(columns=taken)), said(taken)


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
