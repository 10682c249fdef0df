"""What Explore writes for other tools: nothing long is searched for, nothing large is text."""

import ast
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import streamlit as st
from opened_page import opened
from sample_sets import blobs

from contrastive_core.base.memory import write_npz
from contrastive_core.base.storage import ROOT, data_home
from contrastive_core.spaces import file_formats, loaded_vectors, neighbor_graphs, space
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_lab import state
from contrastive_lab.components.shared import mount
from contrastive_lab.explore import export


@pytest.fixture
def graph_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a graph is looked for; a search without one would fail."""
    monkeypatch.setattr(space, "graph_path", lambda *a: tmp_path / "graph.npz")
    monkeypatch.setattr(export, "EXACT_UP_TO", 50)
    monkeypatch.setattr(export, "nearest_of", lambda *a: pytest.fail("all were searched"))
    return tmp_path / "graph.npz"


def vectors(n: int) -> EmbeddingSet:
    x = np.random.default_rng(0).normal(size=(n, 6)).astype(np.float32)
    return EmbeddingSet(x, np.arange(n) % 3, classes=("a", "b", "c"))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_neighbors_of_many_are_those_of_the_kept_graph_with_its_recall(
    ending: str, graph_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "BATCH", 32)
    rows, xy = vectors(100), np.random.default_rng(1).normal(size=(100, 2))
    graph = neighbor_graphs.nearest(rows.features, None, 30)
    write_npz(graph_file, index=graph.index, score=graph.score, recall=np.array(0.9875))
    data = export.table(rows, xy, None, ending)
    if ending == "csv":
        head, first, *_ = data.decode().splitlines()
        assert head == "id,label,class,x,y,neighbors,neighbors_recall"
        assert first.startswith("0,0,a,")
        assert first.endswith(",0.9875")
        cells = list(csv.DictReader(data.decode().splitlines()))
        assert json.loads(cells[3]["neighbors"])["ids"] == [rows.ids[q] for q in graph.index[3, :15]]
        return
    file = pq.ParquetFile(io.BytesIO(data))
    assert file.metadata.num_row_groups == 4  # in parts
    read = file.read().to_pylist()
    assert [r["id"] for r in read] == list(rows.ids)
    assert {r["neighbors_recall"] for r in read} == {0.9875}
    assert [r["neighbors"]["ids"] for r in read] == graph.index[:, :15].tolist()
    away = [r["neighbors"]["distances"] for r in read]
    np.testing.assert_allclose(away, np.maximum(0, 1 - graph.score[:, :15]), atol=1e-6)
    np.testing.assert_allclose([[r["x"], r["y"]] for r in read], xy)


def test_where_nobody_looked_for_them_a_large_table_is_without(graph_file: Path) -> None:
    rows = vectors(51)
    read = pq.read_table(io.BytesIO(export.table(rows, np.zeros((51, 2)), None, "parquet")))
    assert read.column_names == ["id", "label", "class", "x", "y"]
    assert "neighbors" not in export.table(rows, np.zeros((51, 2)), None, "csv").decode()


def test_vectors_as_parquet_are_opened_again(tmp_path: Path) -> None:
    rows = vectors(40)
    path = tmp_path / "again.parquet"
    path.write_bytes(export.vectors(rows))
    again = file_formats.read(path)
    np.testing.assert_array_equal(again.features, rows.features)
    assert again.ids == rows.ids
    assert again.classes == rows.classes
    rows.labels[:10] = -1  # without a label they come back without one
    path.write_bytes(export.vectors(rows))
    assert file_formats.read(path).n_labeled == 30


def exported(
    monkeypatch: pytest.MonkeyPatch, rows: EmbeddingSet, chosen: int = 0
) -> tuple[dict[str, Callable[[], Any]], str]:
    """What the export of rows, some of them chosen, offers, by label, and what it says."""
    offered: dict[str, Callable[[], Any]] = {}
    monkeypatch.setattr(st, "download_button", lambda label, data, *a, **k: offered.__setitem__(label, data))
    if chosen:
        select = state.selection
        monkeypatch.setattr(state, "selection", lambda *a: select(*a) or [*range(chosen)])
    key = loaded_vectors.save_vectors(rows, "mine.npy")
    app = opened("explore", monkeypatch, vectors=key, map="pca")
    assert not app.exception
    return offered, " ".join(str(c.value) for c in app.caption)


def test_a_page_offers_files_that_are_made_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "table", lambda *a: pytest.fail("nobody asked"))
    monkeypatch.setattr(export, "vectors", lambda *a: pytest.fail("nobody asked"))
    offered, said = exported(monkeypatch, blobs())
    assert {"Map, neighbors and columns (.csv)", "The vectors (.parquet)", "The vectors (.csv)"} <= {*offered}
    assert "left out" not in said
    text = offered["The vectors (.csv)"]()
    assert len(text.splitlines()) == 301


def test_a_page_says_what_a_large_export_is_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "EXACT_UP_TO", 50)
    monkeypatch.setattr(export, "CSV_UP_TO", 100)
    offered, said = exported(monkeypatch, blobs(), chosen=60)
    assert {label for label in offered if "(.csv)" in label} == set()
    assert "The vectors (.parquet)" in offered
    assert "Neighbors are left out. Above 50 rows" in said
    assert "Neighbors are not exported for selections of more than 50 rows." in said
    assert "CSV is limited to 100 values here" in said


def test_many_vectors_are_written_to_a_file_of_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not sent through the browser: the server would hold several copies."""
    monkeypatch.setattr(export, "SENT_UP_TO", blobs().features.nbytes - 1)
    key = loaded_vectors.save_vectors(blobs(), "a b/mine.npy")
    app = opened("explore", monkeypatch, vectors=key, map="pca")
    button = next(b for b in app.button if b.label == "Write the vectors (0.0 GB) to a file")
    button.click().run()
    assert not app.exception
    (path,) = (data_home() / "exports").iterdir()
    assert path.name == f"a-b-mine-{blobs().content_hash[:8]}.parquet"
    assert any("They are in" in c.value for c in app.caption)
    np.testing.assert_array_equal(file_formats.read(path).features, blobs().features)


class Counted:
    """Images that count how many numbers are read at once, as of a file that memory cannot hold."""

    def __init__(self, images: np.ndarray) -> None:
        self.images, self.shape, self.most = images, images.shape, 0

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, at: Any) -> np.ndarray:
        part = self.images[at]
        self.most = max(self.most, part.size)
        return part

    def __array__(self, *a: Any, **k: Any) -> np.ndarray:
        self.most = self.images.size
        return self.images


@pytest.mark.parametrize("most", [None, 500_000])
def test_thumbnails_read_a_block_of_images_at_a_time(most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).integers(0, 255, (50, 3, 40, 44)).astype(np.uint8)
    rows = np.random.default_rng(1).permutation(50)[:31]
    at_once = mount.thumbnail_sheet(images[rows], most)
    counted, one = Counted(images), images[0].size
    monkeypatch.setattr(mount, "READ_AT_ONCE", 4 * one)
    sheet = mount.thumbnail_sheet(counted, most, rows=rows)  # type: ignore[arg-type]
    assert counted.most == 4 * one
    assert (sheet.picture, sheet.across, sheet.tile) == (at_once.picture, at_once.across, at_once.tile)
    assert mount.thumbnail_sheet(images, rows=rows[:0]) is mount.NO_THUMBNAILS


def test_a_download_never_redraws_its_page() -> None:
    """A click that reruns the page can drop the file before the browser fetches it: during a redraw 23 of 24 failed."""
    for path in (*(ROOT / "contrastive_lab").rglob("*.py"), *(ROOT / "pages").glob("*.py")):
        for call in filter(_is_download, ast.walk(ast.parse(path.read_text("utf-8")))):
            given = {word.arg: ast.unparse(word.value) for word in call.keywords}
            assert given.get("on_click") == "'ignore'", f"{path.name}:{call.lineno}"


def _is_download(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "download_button"
