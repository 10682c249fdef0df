"""Spaces, what is asked of them, and what comes out: loaded vectors, answers, tables."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from contrastive_core import runs
from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.storage import ROOT
from contrastive_core.engine import answers
from contrastive_core.runs.run_metrics import cost_of
from contrastive_core.spaces import attached_files, file_formats, loaded_vectors, results
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space, graph_path, kept_graph, train_test_split
from contrastive_core.spaces.towers import joined
from contrastive_lab import embedding_map
from contrastive_lab.explore import export

RNG = np.random.default_rng


def rows(n: int = 60, d: int = 5, kinds: int = 3, **more: object) -> EmbeddingSet:
    """Rows around the first axes, one for each class."""
    labels = np.arange(n) % kinds
    x = np.eye(kinds, d)[labels] + 0.1 * RNG(0).normal(size=(n, d))
    return EmbeddingSet(x.astype(np.float32), labels.astype(np.int64), **more)


def test_loaded_vectors_are_kept_by_content_without_rows_that_have_no_direction() -> None:
    given = rows(20)
    given.features[3] = np.nan
    given.features[5] = 0
    images = np.arange(20, dtype=np.uint8)[:, None, None, None].repeat(3, 1)
    key = loaded_vectors.save_vectors(given, "mine.npz", images)
    assert loaded_vectors.save_vectors(given, "mine.npz", images) == key
    other = loaded_vectors.save_vectors(given, "again.npz", images)  # equal content takes over no name
    assert [loaded_vectors.about(k)["name"] for k in (key, other)] == ["mine.npz", "again.npz"]
    loaded_vectors.forget(other)
    space = Space.of_vectors(key)
    found = space.rows()
    assert found is not None
    assert found.ids[3:5] == ("4", "6")
    assert space.images()[3, 0, 0, 0] == 4
    assert loaded_vectors.loaded()[key]["left_out"] == {"not_finite": 1, "zero": 1}
    assert Space(**space.values) == space
    loaded_vectors.forget(key)
    assert not loaded_vectors.loaded()


def test_vectors_that_cannot_be_used_get_a_sentence() -> None:
    with pytest.raises(UnusableEmbedding, match="1 usable rows: 0 contain"):
        loaded_vectors.save_vectors(EmbeddingSet(np.array([[1, 0], [0, 0]], np.float32)), "x.npy")
    with pytest.raises(UnusableEmbedding, match="open the file again"):
        Space.of_vectors("../../etc").rows()


def test_judged_rows_follow_the_split_column_or_a_fixed_fifth_of_each_class() -> None:
    marked = rows(20, columns={"split": np.array(["train", "test"] * 10)})
    train, test, at, how = train_test_split(marked)
    assert len(train) == len(test) == 10
    assert at.tolist() == list(range(1, 20, 2))
    assert "marked test" in how
    train, test, at, how = train_test_split(rows(60))
    assert len(test) == 12
    assert np.bincount(test.labels).tolist() == [4, 4, 4]  # type: ignore[arg-type]
    assert not set(train.ids) & set(test.ids)
    assert "fixed fifth" in how
    whole, part = rows(600), rows(600).take(range(400))  # a file with fewer of the same rows
    first, second = (set(train_test_split(r)[1].ids) for r in (whole, part))
    assert len(first & second) > 0.8 * len(second)


def test_scores_of_loaded_vectors_stand_at_the_rows_that_were_judged() -> None:
    key = loaded_vectors.save_vectors(rows(120), "mine.npy")
    values = {"space": Space.of_vectors(key).values}
    said: list[str] = []
    made = answers.make("scores", values, lambda stage, fraction: said.append(stage))
    own = made.meta["scores"]["own"]
    assert own["knn"]["value"] == 1
    right = made.arrays["knn:per_sample"]
    assert right.shape == (120,)
    assert np.isfinite(right).sum() == made.meta["n_test"] == 24
    assert (made.arrays["knn:predicted"] >= 0).sum() == 24
    assert np.isfinite(made.arrays["hubness:per_sample"]).all()
    assert "known factors" in own["factors"]["missing"]
    assert "kNN accuracy" in said
    kept = results.read("scores", values)
    assert kept is not None
    assert kept.meta["scores"]["own"]["knn"]["extras"]["curve"]["1"] == 1


def test_a_map_and_new_samples_share_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    base = rows(60)
    own = Space.of_vectors(loaded_vectors.save_vectors(base, "base.npy"))
    settings = {"seed": 1, "neighbors": 6, "min_dist": 0.2, "metric": "cosine"}
    values = {"space": own.values, "kind": "umap", **settings}
    said: list[tuple[str, float | None]] = []
    made = answers.make("map", values, lambda *progress: said.append(progress))
    assert made.meta["settings"] == {"kind": "umap", **settings}
    assert any("layout" in stage and (fraction or 0) > 0 for stage, fraction in said)
    assert graph_path(base.content_hash, "cosine").exists()
    with monkeypatch.context() as patch:
        patch.setattr("contrastive_core.spaces.neighbor_graphs.nearest", lambda *a, **k: pytest.fail("again"))
        kept = kept_graph(base, 15)
        answers.make("map", {**values, "neighbors": 8})
    assert kept is not None
    assert kept[0].shape == kept[1].shape == (60, 15)
    new, narrow = (Space.of_vectors(loaded_vectors.save_vectors(rows(12, d=d), "new.npy")) for d in (5, 4))
    places = answers.make("placed", {"map": values, "new": new.values}).arrays["xy"]
    assert places.shape == (12, 2)
    np.testing.assert_allclose(places[0], made.arrays["xy"][0], atol=1e-3)
    with pytest.raises(UnusableEmbedding, match="5 dimensions, the new rows 4"):
        answers.make("placed", {"map": values, "new": narrow.values})


def test_a_comparison_of_loaded_vectors_comes_back_whole() -> None:
    from contrastive_core.compare.comparison import Comparison, comparison_request

    good, bad = rows(200), rows(200)
    wrong = np.arange(0, 200, 10)
    bad.features[wrong] = np.roll(bad.features[wrong], 1, axis=1)
    keys = [loaded_vectors.save_vectors(v, name) for v, name in ((good, "good"), (bad, "bad"))]
    values = {**comparison_request([Space.of_vectors(k) for k in keys]), "names": ["good", "bad"]}
    made = answers.make("comparison", values)
    found = Comparison.of(made.meta, made.arrays)
    assert found.graphs.shape == (2, 39, 20)  # a fifth of each class is judged
    assert found.cka[0, 0] == pytest.approx(1)
    assert {t.metric for t in found.tests} >= {"knn", "linear_probe", "purity", "uniformity"}
    assert [s["knn"].value for s in found.scores] == found.accuracy["knn"]
    for space in values["spaces"]:
        answers.make("scores", {"space": space})  # some of all rows, some of the judged ones
    again = answers.make("comparison", {**values, "names": ["fine", "poor"]})
    assert again.meta["tests"] == [{**t, "a": "fine", "b": "poor"} for t in made.meta["tests"]]
    assert again.arrays["graphs"].shape == (2, 39, 20)
    with pytest.raises(ValueError, match="an analysis is one of"):
        answers.make("weather", {})


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_tables_have_the_columns_that_embedding_atlas_reads(ending: str) -> None:
    given = rows(30, ids=tuple(f"=i{i}" for i in range(30)), classes=("a", "b", "c"))
    xy = RNG(0).normal(size=(30, 2)).astype(np.float32)
    data = export.table(given, xy, [3, 0, 6], ending)
    if ending == "csv":
        head, first, *rest = data.decode().splitlines()
        assert head == "id,label,class,x,y,neighbors"
        assert first.startswith("'=i3,0,a,")
        assert len(rest) == 2
        return
    table = pq.read_table(io.BytesIO(data)).to_pylist()
    assert [r["id"] for r in table] == ["=i3", "=i0", "=i6"]
    assert table[1]["x"] == pytest.approx(float(xy[0, 0]))
    for row, record in enumerate(table):
        near = record["neighbors"]
        assert sorted(near["ids"]) == [i for i in range(3) if i != row]
        assert near["distances"] == sorted(near["distances"])


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_what_was_exported_here_finds_its_images_again(tmp_path: Path, ending: str) -> None:
    from contrastive_core.data import datasets

    found = datasets.load("digits", "test")
    given = EmbeddingSet(
        RNG(0).normal(size=(5, 3)).astype(np.float32),
        ids=tuple(map(str, found.ids[3:8])),
        split="test",
        provenance={"dataset": "digits"},
    )
    given.save(tmp_path / f"out{ending}")
    read = file_formats.read(tmp_path / f"out{ending}")
    np.testing.assert_array_equal(attached_files.dataset_pictures(read), found.images[3:8])
    assert attached_files.dataset_pictures(rows(5)) is None


def test_what_points_are_colored_by() -> None:
    given = rows(40, columns={"kind": np.arange(40) % 2, "size": RNG(0).normal(size=40)})
    assert embedding_map.color_of(given, "kind", {})[1] == ("0", "1")
    assert embedding_map.color_of(given, "size", {})[1] == ()
    assert embedding_map.color_of(given, "hubness", {})[0] is None
    many = rows(900, d=300, kinds=300)
    assert len(embedding_map.color_of(many, "class", {})[1]) == 10


def test_a_sample_of_many_points_keeps_the_classes() -> None:
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    shown = embedding_map.subsample_rows(labels, 1000, 100)
    assert np.bincount(labels[shown]).tolist() == pytest.approx([60, 30, 10], abs=1)
    assert len(set(shown.tolist())) == 100
    assert embedding_map.subsample_rows(labels, 1000, 1000) is None
    lit = [int(shown[4]), int(shown[7]), next(i for i in range(1000) if i not in set(shown))]
    assert embedding_map.drawn_places(sorted(lit), shown) == sorted({4, 7})


def test_costs_are_read_from_the_runs_files() -> None:
    run = runs.create("c", {"method": "simclr"})
    run.append_metrics([{"step": 1, "images_per_s": 10.0, "memory_mb": 5}, {"step": 2, "seconds": 3}])
    header = json.dumps({"encoder.w": {"shape": [2, 3]}, "queue": {"shape": [9]}}).encode()
    run.weights.write_bytes(len(header).to_bytes(8, "little") + header)
    assert cost_of(run) == {"seconds": 3, "images_per_s": 10.0, "memory_mb": 5, "parameters": 6}
    run.weights.write_bytes(b"\xff" * 40)
    assert cost_of(run)["parameters"] is None


def test_the_selection_of_the_maps_is_that_of_samples_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.testing.v1 import AppTest

    monkeypatch.chdir(ROOT)
    key = loaded_vectors.save_vectors(rows(12, ids=tuple(f"s{i}" for i in range(12))), "mine.npy")

    def page(key: str) -> None:
        import numpy as np
        import streamlit as st

        from contrastive_core.samples.sample_table import SampleTable, request_of
        from contrastive_lab import state
        from contrastive_lab.samples.findings import Findings, cut_to_selection

        ids = np.array([f"s{i}" for i in range(11, -1, -1)])
        columns = {"id": ids, "label": np.full(12, "a"), "mislabeled": np.zeros(12)}
        table = SampleTable(columns, (), "sup_con")
        if "selection" not in st.session_state:
            state.select([2, 5], f"vectors {key}")
        request = request_of(f"vectors:{key}", "train", "sup_con")
        found = cut_to_selection(Findings((request,), (table,)), np.arange(4, 12))
        st.text(" ".join(ids[found]))

    app = AppTest.from_function(page, args=(key,), default_timeout=30).run()
    assert app.text[0].value == "s7 s6 s5 s4 s3 s2 s1 s0"
    app.toggle[0].set_value(True).run()
    assert "Only the 2 selected" in app.toggle[0].label
    assert app.text[0].value == "s5 s2"
    app.toggle[0].set_value(False).run()
    app.button[0].click().run()
    assert app.session_state["selection"] == {f"vectors {key}": list(range(8))}


def test_towers_are_scored_in_both_directions() -> None:
    x = RNG(0).normal(size=(12, 4)).astype(np.float32)
    both = joined(EmbeddingSet(x), EmbeddingSet(x[::-1].copy()), ("a", "b"), np.arange(12), np.arange(12)[::-1].copy())
    space = Space.of_vectors(loaded_vectors.save_vectors(both, "both.npz"))
    result = answers.make("towers", {"space": space.values})
    own = result.meta["scores"]["own"]
    assert own["recall_1_forth"]["value"] == own["recall_1_back"]["value"] == 1
    assert result.meta["scores"]["chance"]["recall_1_forth"]["value"] == pytest.approx(1 / 12)
    assert result.arrays["rank"].tolist() == [1] * 24
    single = Space.of_vectors(loaded_vectors.save_vectors(rows(), "one.npy"))
    with pytest.raises(ValueError, match="two towers"):
        answers.make("towers", {"space": single.values})
