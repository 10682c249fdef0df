"""Files for other tools: vectors, and tables in Parquet or CSV with the columns that Embedding Atlas reads."""

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.base import storage
from contrastive_core.base.score import recall_text
from contrastive_core.base.storage import BATCH, data_home, safe_cell
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import EXACT_UP_TO, Space, kept_graph, nearest_of
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


def table(rows: EmbeddingSet, xy: np.ndarray, chosen: Sequence[int] | None, ending: str) -> bytes:
    """Return a table with a row per sample: id, label, class, columns, x, y and neighbors. `ending`: "parquet" or
    "csv"; `xy`: (n, 2) of all rows; `chosen`: only these, in this order, with neighbors among them.

    `neighbors` holds `ids` (in Parquet rows of this table from 0, as Embedding Atlas reads them) and `distances`,
    1 − cosine; it is omitted if a search would take long. `neighbors_recall` is that of an approximate search."""
    at = np.arange(len(rows)) if chosen is None else np.asarray(list(chosen), np.int64)
    part = rows if chosen is None else rows.take(at)
    columns: Columns = {"id": part.ids, **part.label_columns}
    for name, values in part.columns.items():
        is_taken = name in columns or name in OWN
        columns[f"{name} (given)" if is_taken else name] = values
    columns |= {"x": xy[at, 0], "y": xy[at, 1]}
    k = min(K, len(part) - 1)
    found = kept_graph(part, k) if k > 0 else None
    if k > 0 and found is None and len(part) <= EXACT_UP_TO:
        found = (*nearest_of(part, np.arange(len(part)), k), None)
    near = found and (found[0], np.maximum(0, 1 - found[1]), found[2])
    return (_parquet if ending == "parquet" else _csv)(columns, near)


def vectors(rows: EmbeddingSet) -> bytes:
    """Return ids, labels, columns and vectors as Parquet, which this app can open."""
    out = io.BytesIO()
    rows.write_parquet(out)
    return out.getvalue()


def _parquet(columns: Columns, near: Neighbors | None) -> bytes:
    """Write the table in parts, with neighbors as lists."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    known, out, file = pa.table({name: pa.array(values) for name, values in columns.items()}), io.BytesIO(), None
    for start in range(0, len(known), BATCH):
        part = known.slice(start, BATCH)
        if near is not None:
            index, away, recall = near
            k, here = index.shape[1], slice(start, start + len(part))
            ends = pa.array(np.arange(0, (len(part) + 1) * k, k, dtype=np.int32))
            lists = [pa.ListArray.from_arrays(ends, pa.array(x[here].reshape(-1))) for x in (index, away)]
            part = part.append_column("neighbors", pa.StructArray.from_arrays(lists, ["ids", "distances"]))
            if recall is not None:
                part = part.append_column(RECALL, pa.array(np.full(len(part), recall)))
        file = file or pq.ParquetWriter(out, part.schema)
        file.write_table(part)
    if file:
        file.close()
    return out.getvalue()


def _csv(columns: Columns, near: Neighbors | None) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    cells: dict[str, Iterable[Any]] = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in columns.items()}
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
        button.offer([space.name], space.split, space.layer)
        _describe_neighbors(rows, len(picked))
        for (what, (label, some)), ending in itertools.product(tables.items(), ("parquet", "csv")):
            if ending == "parquet" or len(rows if some is None else some) * COLUMNS <= CSV_UP_TO:
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
        stem = re.sub(r"[^\w.-]+", "-", name)
        path = data_home() / "exports" / f"{stem}-{rows.content_hash[:8]}.parquet"
        try:
            with st.spinner(_("Writing the vectors…")):
                storage.make_folder(path.parent)
                rows.save(path)
        except OSError as error:
            st.error(format.plain(error))
        else:
            st.caption(format.plain(_("They are in {path}.").format(path=path)))
    if rows.features.size <= CSV_UP_TO:
        as_csv = partial(format.csv_of, rows, range(len(rows)))
        st.download_button(_("The vectors (.csv)"), as_csv, f"{name}.csv", on_click="ignore")
    else:
        text = _("CSV is limited to {csv_up_to} values here. Parquet has no limit.")
        st.caption(text.format(csv_up_to=f"{CSV_UP_TO:,}"))


def _describe_neighbors(rows: EmbeddingSet, chosen: int) -> None:
    """Explain the column names of the tables, and which tables have no neighbors."""
    text = _("The names x, y and neighbors follow Embedding Atlas. Neighbors are ids in CSV, row numbers in Parquet.")
    st.caption(text)
    found, most = kept_graph(rows, min(K, len(rows) - 1)), f"{EXACT_UP_TO:,}"
    if found is None and len(rows) > EXACT_UP_TO:
        text = _(
            "Neighbors are left out. Above {exact_up_to} rows they are only exported if a UMAP map by cosine has "
            "already found them."
        )
        st.caption(text.format(exact_up_to=most))
    elif found is not None and found[2] is not None:
        text = _("These are {neighbors}; the column neighbors_recall says so.")
        st.caption(text.format(neighbors=recall_text(found[2])))
    if chosen > EXACT_UP_TO:
        text = _("Neighbors are not exported for selections of more than {exact_up_to} rows.")
        st.caption(text.format(exact_up_to=most))
