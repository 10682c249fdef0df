"""The selected samples: their classes and images, the neighbors of one, and their files."""

import contextlib
import itertools
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.base.score import recall_text
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.nearest import EXACT_UP_TO, ranks_of
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import TEXT, TOWER
from contrastive_lab import cache, export, format, guard, pictures, query_params, state, texts
from contrastive_lab.components.figure_file import draw_map_buttons
from contrastive_lab.components.gallery import draw_strip
from contrastive_lab.embedding_map import NEAREST, plain_table
from contrastive_lab.explore import tower_panels
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.report import button

SMALL, TWO_LINES = 40, 100  # pixels of a selected picture, and of two lines of them
LISTED = 200  # selected samples in the table
OTHERS = 7  # other runs in which ranks are looked up


def many(space: Space, rows: EmbeddingSet, picked: list[int]) -> None:
    """Draw a selection of several samples: their classes, their images, and the neighbors of one of them."""
    st.header(_("{picked} selected").format(picked=f"{len(picked):,}"))
    if rows.labels is not None:
        labels = rows.labels[picked]
        counts = np.bincount(labels[labels >= 0])
        counted = [f"{rows.class_name(int(c))}: {counts[c]:,}" for c in np.argsort(-counts)[:12] if counts[c]]
        st.caption(format.plain(" · ".join(counted)))
    one = _one_of(space, rows, picked[:LISTED])
    tower_panels.partners(space, rows, one)
    neighbors(space, rows, one, cache.nearest(rows.content_hash, one, NEAREST, rows))
    if rows.columns or rows.labels is not None:
        with st.expander(_("The selection as a table")):
            draw_table(plain_table(rows, picked[:LISTED]), hide_index=True)


def _one_of(space: Space, rows: EmbeddingSet, listed: list[int]) -> int:
    """Let the user choose one selected sample by its image or id; return its row."""
    place = state.place_of(space)
    key, shown, title = f"one-{cache.digest(place)}", f"selected-{cache.digest(place, listed)}", rows.ids.__getitem__
    if pictures.are_decoded(space):
        images, titles = pictures.some_of(space, listed), [title(row) for row in listed]
        clicked = draw_strip(images, titles, SMALL, TWO_LINES, _("selected images"), shown)
        if clicked != st.session_state.get(f"{shown}:before", []):  # else the list may say another
            st.session_state[f"{shown}:before"] = clicked
            query_params.choose(key, listed[clicked[0]] if clicked else listed[0])
    return query_params.one_of(
        st.selectbox, _("Neighbors of"), listed, format_func=title, name="one", text=title, key=key
    )


def neighbors(space: Space, rows: EmbeddingSet, i: int, nearest: tuple[np.ndarray, np.ndarray]) -> None:
    """Draw the nearest samples with similarity, label and their rank in each other run."""
    near, similarity = nearest
    of_towers = [name for name in (TOWER, TEXT) if cache.towers(rows) and name in rows.columns]
    others, table, captions = _ranks(space, rows, i, near), [], []
    for q, (j, s) in enumerate(zip(near.tolist(), similarity.tolist(), strict=True)):
        row: dict[str, Any] = {"rank": q + 1, "id": rows.ids[j], N_("cosine similarity"): round(s, 3)}
        if rows.labels is not None:
            row["class"] = rows.class_name(int(rows.labels[j]))
        row |= {name: str(rows.columns[name][j]) for name in of_towers}
        table.append(row | {_("rank in {name}").format(name=name): int(r[q]) for name, r in others.items()})
        captions.append(f"{row.get('class') or row['id']} {s:.2f}")
    place, with_pictures = state.place_of(space), pictures.are_decoded(space)
    if with_pictures:
        key = f"near-{cache.digest(place, space.layer, i)}"
        pictures.gallery(space, near.tolist(), captions, _("nearest samples"), key)
        if not space.is_loaded and space.split and not space.epoch:
            _why_alike(space, rows, i, dict(zip(near.tolist(), captions, strict=True)))
    said = None if with_pictures else rows.columns.get(TEXT, rows.texts)
    if said is not None:
        if of_towers:
            captions = [f"{rows.columns[TOWER][j]} · {text}" for j, text in zip(near, captions, strict=True)]
        about = None if of_towers else rows.ids[i]  # two towers: the text itself is above
        st.html(texts.answers(str(said[i]), zip(captions, map(str, said[near]), strict=True), about))
    with st.expander(_("As a table, with ranks in other runs"), expanded=not with_pictures and said is None):
        draw_table(table, hide_index=True)


def _why_alike(space: Space, rows: EmbeddingSet, i: int, near: dict[int, str]) -> None:
    """Draw, on request, the patches of a sample and of one of its neighbors that make them similar."""
    if not pictures.is_likeness_wanted():
        return
    other = query_params.one_of(
        st.selectbox,
        _("Neighbor"),
        [*near],
        format_func=lambda row: f"{near[row]} · {rows.ids[row]}",
        name="neighbor",
        text=rows.ids.__getitem__,
        key=f"neighbor-{i}",
    )
    names = (rows.ids[i], rows.ids[other])
    pictures.explain_likeness({"space": space.values, "ids": list(names)}, names)


def _ranks(space: Space, rows: EmbeddingSet, i: int, near: np.ndarray) -> dict[str, np.ndarray]:
    """Return, for each other run on the same samples, the ranks of these neighbors (1: nearest)."""
    by_run: dict[str, np.ndarray] = {}
    data = state.data_of(space)
    for run in [] if space.is_loaded else state.all_runs():
        if run.name == space.name or run.data_key != data or len(by_run) == OTHERS:
            continue
        with contextlib.suppress(*guard.DAMAGE):  # its own page says what is wrong with it
            other = cache.embedding(Space.of_run(run, space.split, space.layer)) if run.weights.exists() else None
            if other is not None and other.ids == rows.ids:
                by_run[run.name] = ranks_of(other, i, near)
    return by_run


def out(space: Space, rows: EmbeddingSet, xy: np.ndarray, picked: list[int]) -> None:
    """Draw downloads of selection, coordinates and neighbors, and vectors; each file is made on request."""
    name, n, chosen = space.title.rsplit(".", 1)[0], f"{len(rows):,}", f"{len(picked):,}"
    selected = _("Selected rows: {picked} of {rows} (.{ending})")
    text = _("Map, neighbors and columns (.{ending})")
    tables: dict[str, tuple[str, list[int] | None]] = {"map": (text, None), "selection": (selected, picked)}
    with st.popover(_("Export"), icon=":material/download:", width="content", key="explore-export"):
        draw_map_buttons("map-file")
        if not space.epoch:
            button.offer([space.name], space.split, space.layer)
        _about_neighbors(rows, len(picked))
        for (what, (label, some)), ending in itertools.product(tables.items(), ("parquet", "csv")):
            if ending == "parquet" or export.fits_csv(len(rows if some is None else some), export.COLUMNS):
                st.download_button(
                    label.format(picked=chosen, rows=n, ending=ending),
                    partial(export.table, rows, xy, some, ending),
                    f"{name}-{what}.{ending}",
                    disabled=some is not None and not some,
                    key=f"{what}-{ending}",
                    on_click="ignore",
                )
        _vector_files(rows, name)


def _vector_files(rows: EmbeddingSet, name: str) -> None:
    """Draw a download of the vectors; large ones are written to a file on this computer instead."""
    size = f"{rows.features.nbytes / 1e9:.1f}"
    if rows.features.nbytes <= export.SENT_UP_TO:
        st.download_button(
            _("The vectors (.parquet)"), partial(export.vectors, rows), f"{name}.parquet", on_click="ignore"
        )
    elif st.button(_("Write the vectors ({size} GB) to a file").format(size=size)):
        try:
            with st.spinner(_("Writing the vectors…")):
                path = export.keep_vectors(rows, name)
        except OSError as error:
            st.error(format.plain(error))
        else:
            st.caption(format.plain(_("They are in {path}.").format(path=path)))
    if export.fits_csv(len(rows), rows.width):
        st.download_button(
            _("The vectors (.csv)"), lambda: format.csv_of(rows, range(len(rows))), f"{name}.csv", on_click="ignore"
        )
    else:
        text = _("CSV is limited to {csv_up_to} values here. Parquet has no limit.")
        st.caption(text.format(csv_up_to=f"{export.CSV_UP_TO:,}"))


def _about_neighbors(rows: EmbeddingSet, chosen: int) -> None:
    """Explain the column names of the tables, and which tables have no neighbors."""
    text = _("The names x, y and neighbors follow Embedding Atlas. Neighbors are ids in CSV, row numbers in Parquet.")
    st.caption(text)
    are_known, recall = export.about_neighbors(rows)
    most = f"{EXACT_UP_TO:,}"
    if not are_known:
        text = _(
            "Neighbors are left out. Above {exact_up_to} rows they are only exported if a UMAP map by cosine has "
            "already found them."
        )
        st.caption(text.format(exact_up_to=most))
    elif recall is not None:
        text = _("These are {neighbors}; the column neighbors_recall says so.")
        st.caption(text.format(neighbors=recall_text(recall)))
    if chosen > EXACT_UP_TO:
        text = _("Neighbors are not exported for selections of more than {exact_up_to} rows.")
        st.caption(text.format(exact_up_to=most))
