"""Files for other tools: vectors, and tables in Parquet or CSV with the columns that Embedding Atlas reads."""

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.base import storage
from contrastive_core.base.score import recall_text
from contrastive_core.base.storage import BATCH, data_home, safe_cell
from contrastive_core.spaces import nearest
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_lab import format
from contrastive_lab.figures import draw_map_buttons
from contrastive_lab.locale import _
from contrastive_lab.report import button

K = 15  # neighbors that are written
COLUMNS = 2 * K + 5  # values of a row of a table, about
RECALL = "neighbors_recall"
OWN = ("x", "y", "neighbors", RECALL)  # columns that the map gives
CSV_UP_TO = 10_000_000  # values: 200 MB of text, half a minute
SENT_UP_TO = 256 << 20  # bytes of vectors that the browser gets; the server holds copies of them

Columns = dict[str, Sequence[str | int | None] | np.ndarray]
Neighbors = tuple[np.ndarray, np.ndarray, float | None]


def fits_csv(rows: int, columns: int) -> bool:
    """Return whether a table of this size is offered as CSV."""
    return rows * columns <= CSV_UP_TO


def about_neighbors(rows: EmbeddingSet) -> tuple[bool, float | None]:
    """Return whether a table of these rows has neighbors, stored or quickly computed, and their recall if
    approximate."""
    found = nearest.kept_graph(rows, min(K, len(rows) - 1))
    if found is None:
        return len(rows) <= nearest.EXACT_UP_TO, None
    return True, found[2]


def table(rows: EmbeddingSet, xy: np.ndarray, chosen: Sequence[int] | None, ending: str) -> bytes:
    """Return a table with a row per sample: id, label, class, columns, x, y and neighbors. `ending`: "parquet" or
    "csv". A column with a reserved name gets the suffix "(given)".

    Args: xy: (n, 2) of all rows; chosen: only these, in this order. `neighbors` holds `ids` (in Parquet rows of this
        table from 0, as Embedding Atlas reads them) and `distances`, 1 − cosine. A selection has neighbors within it.
        They are omitted if searching them would take long. `neighbors_recall` is the recall of an approximate search.
    """
    at = np.arange(len(rows)) if chosen is None else np.asarray(list(chosen), np.int64)
    part = rows if chosen is None else rows.take(at)
    columns: Columns = {"id": part.ids, **part.label_columns}
    for name, values in part.columns.items():
        is_taken = name in columns or name in OWN
        columns[f"{name} (given)" if is_taken else name] = values
    columns |= {"x": xy[at, 0], "y": xy[at, 1]}
    k = min(K, len(part) - 1)
    found = nearest.kept_graph(part, k) if k > 0 else None
    if k > 0 and found is None and len(part) <= nearest.EXACT_UP_TO:
        found = (*nearest.nearest_of_all(part, k), None)
    near = found and (found[0], np.maximum(0, 1 - found[1]), found[2])
    return _parquet(columns, near) if ending == "parquet" else _csv(columns, near)


def vectors(rows: EmbeddingSet) -> bytes:
    """Return ids, labels, columns and vectors as Parquet, which this app can open."""
    out = io.BytesIO()
    rows.write_parquet(out)
    return out.getvalue()


def keep_vectors(rows: EmbeddingSet, name: str) -> Path:
    """Write ids, labels, columns and vectors to a file below `data_home()`, in parts; return its path. Raises
    OSError."""
    plain = re.sub(r"[^\w.-]+", "-", name)
    path = data_home() / "exports" / f"{plain}-{rows.content_hash[:8]}.parquet"
    storage.make_folder(path.parent)
    rows.save(path)
    return path


def _parquet(columns: Columns, near: Neighbors | None) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = pa.table({name: pa.array(values) for name, values in columns.items()})
    out, schema = io.BytesIO(), _with_neighbors(known.slice(0, 0), near, 0).schema
    with pq.ParquetWriter(out, schema) as file:
        for start in range(0, len(known), BATCH):
            file.write_table(_with_neighbors(known.slice(start, BATCH), near, start))
    return out.getvalue()


def _with_neighbors(part: Any, near: Neighbors | None, start: int) -> Any:
    """Add neighbors as lists to the part of a table that begins with row `start`."""
    import pyarrow as pa

    if near is None:
        return part
    index, away, recall = near
    k, here = index.shape[1], slice(start, start + len(part))
    ends = np.arange(0, (len(part) + 1) * k, k, dtype=np.int32)
    lists = [pa.ListArray.from_arrays(pa.array(ends), pa.array(x[here].reshape(-1))) for x in (index, away)]
    part = part.append_column("neighbors", pa.StructArray.from_arrays(lists, ["ids", "distances"]))
    if recall is None:
        return part
    return part.append_column(RECALL, pa.array(np.full(len(part), recall)))


def _csv(columns: Columns, near: Neighbors | None) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    cells: dict[str, Iterable[object]] = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in columns.items()}
    if near is not None:
        index, away, recall = near
        pairs = zip(index, away, strict=True)
        cells["neighbors"] = (
            json.dumps({"ids": [columns["id"][q] for q in i], "distances": d.tolist()}) for i, d in pairs
        )
        if recall is not None:
            cells[RECALL] = itertools.repeat(recall, len(index))
    writer.writerow(map(safe_cell, cells))
    for values in zip(*cells.values(), strict=True):
        writer.writerow("" if value is None else safe_cell(value) for value in values)
    return out.getvalue().encode()


# --- what the page offers ------------------------------------------------------------------------


def offer_files(space: Space, rows: EmbeddingSet, xy: np.ndarray, picked: list[int]) -> None:
    """Draw downloads of selection, coordinates and neighbors, and vectors; each file is made on request."""
    name, n, chosen = space.title.rsplit(".", 1)[0], f"{len(rows):,}", f"{len(picked):,}"
    selected = _("Selected rows: {picked} of {rows} (.{ending})")
    text = _("Map, neighbors and columns (.{ending})")
    tables: dict[str, tuple[str, list[int] | None]] = {"map": (text, None), "selection": (selected, picked)}
    with st.popover(_("Export"), icon=":material/download:", width="content", key="explore-export"):
        draw_map_buttons("map-file")
        if not space.epoch:
            button.offer([space.name], space.split, space.layer)
        _describe_neighbors(rows, len(picked))
        for (what, (label, some)), ending in itertools.product(tables.items(), ("parquet", "csv")):
            if ending == "parquet" or fits_csv(len(rows if some is None else some), COLUMNS):
                st.download_button(
                    label.format(picked=chosen, rows=n, ending=ending),
                    partial(table, rows, xy, some, ending),
                    f"{name}-{what}.{ending}",
                    disabled=some is not None and not some,
                    key=f"{what}-{ending}",
                    on_click="ignore",
                )
        _vector_files(rows, name)


def _vector_files(rows: EmbeddingSet, name: str) -> None:
    """Draw a download of the vectors; large ones are written to a file on this computer instead."""
    size = f"{rows.features.nbytes / 1e9:.1f}"
    if rows.features.nbytes <= SENT_UP_TO:
        st.download_button(_("The vectors (.parquet)"), partial(vectors, rows), f"{name}.parquet", on_click="ignore")
    elif st.button(_("Write the vectors ({size} GB) to a file").format(size=size)):
        try:
            with st.spinner(_("Writing the vectors…")):
                path = keep_vectors(rows, name)
        except OSError as error:
            st.error(format.plain(error))
        else:
            st.caption(format.plain(_("They are in {path}.").format(path=path)))
    if fits_csv(len(rows), rows.width):
        st.download_button(
            _("The vectors (.csv)"), lambda: format.csv_of(rows, range(len(rows))), f"{name}.csv", on_click="ignore"
        )
    else:
        text = _("CSV is limited to {csv_up_to} values here. Parquet has no limit.")
        st.caption(text.format(csv_up_to=f"{CSV_UP_TO:,}"))


def _describe_neighbors(rows: EmbeddingSet, chosen: int) -> None:
    """Explain the column names of the tables, and which tables have no neighbors."""
    text = _("The names x, y and neighbors follow Embedding Atlas. Neighbors are ids in CSV, row numbers in Parquet.")
    st.caption(text)
    are_known, recall = about_neighbors(rows)
    most = f"{nearest.EXACT_UP_TO:,}"
    if not are_known:
        text = _(
            "Neighbors are left out. Above {exact_up_to} rows they are only exported if a UMAP map by cosine has "
            "already found them."
        )
        st.caption(text.format(exact_up_to=most))
    elif recall is not None:
        text = _("These are {neighbors}; the column neighbors_recall says so.")
        st.caption(text.format(neighbors=recall_text(recall)))
    if chosen > nearest.EXACT_UP_TO:
        text = _("Neighbors are not exported for selections of more than {exact_up_to} rows.")
        st.caption(text.format(exact_up_to=most))
