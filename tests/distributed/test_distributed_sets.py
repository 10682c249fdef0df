"""Embeddings over four processes: each has its part, and the answers are those of one process."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from worlds import spread

from contrastive_core import metrics
from contrastive_core.distributed.collectives import World
from contrastive_core.distributed.sharded_rows import SPREAD
from contrastive_core.embeddings.file_formats import read
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.evaluation.embed import embed_run, parts
from contrastive_core.evaluation.evaluate import evaluate, evaluate_file, evaluate_sets
from contrastive_core.metrics import _logistic, linear_probe, silhouette, uniformity
from contrastive_core.ops import neighbors
from contrastive_core.records import runs
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.runs import checkpoints
from contrastive_core.samples.run_samples import samples_of_run
from contrastive_core.samples.table_builder import SampleInputs, build_table
from contrastive_core.training.setup import prepare

SIZE = 4
DRAWN = ("linear_probe", "silhouette", "uniformity")
SAMPLES = (
    (silhouette, "PAIRS", 400),
    (silhouette, "HELD", 12),  # three rows and their four classes
    (uniformity, "SAMPLE", 21),
    (linear_probe, "SAMPLE", 100),
    (linear_probe, "HELD", 0),
    (_logistic, "BLOCK", 70),
)
SPREADING = [n for n in metrics.names() if metrics.get(n).spreads]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors in a file, and a run that has weights."""
    home = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(0)
    label = rng.integers(-1, 4, 203)
    rows = rng.normal(size=(5, 7))[label] + 1.2 * rng.normal(size=(203, 7))
    np.savez(home / "vectors.npz", features=rows.astype(np.float32), label=label)
    with pytest.MonkeyPatch.context() as patch:
        lives_in(home, patch)
        config = TrainConfig(method="simclr", dataset="digits")
        made = prepare(config)
        run = runs.create("small", made.config.to_dict(), made.dataset.fingerprint)
        checkpoints.save_weights(run, made.method.state_dict())
    return home


def lives_in(home: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("CONTRASTIVE_LAB_HOME", str(home / "data"))
    patch.setenv("CONTRASTIVE_LAB_RUNS", str(home / "runs"))
    patch.setenv("TEST_VECTORS", str(home / "vectors.npz"))


def blocks(base: int, queries: int) -> None:
    """Rows that meet at a time."""
    for module in (neighbors, silhouette, uniformity):
        module.BASE = base
    neighbors.SCORES, silhouette.BLOCK, uniformity.BLOCK = queries * base, queries, queries


def everything(world: World, vectors: Path) -> dict:
    """All that the commands compute, with blocks so small that every score meets several."""
    blocks(25, 10)
    scored = evaluate_file(vectors, device="cpu")
    with pytest.MonkeyPatch.context() as patch:  # and so few that they are drawn
        for module, name, value in SAMPLES:
            patch.setattr(module, name, value)
        drawn = evaluate_file(vectors, None, list(DRAWN), "cpu")
    blocks(500, 50)
    run = runs.load("small")
    own = {k: v.features for k, v in parts(run, "test", "cpu").items()}  # encoded, not read
    whole = embed_run(run, "test", "h", "cpu")
    mine = parts(run, "test", "cpu")["h"]  # read from what `embed_run` wrote
    graph = build_table(SampleInputs(read(vectors), "sup_con", batch_size=50))
    return {
        "file": scored,
        "drawn": drawn,
        "run": evaluate(run, ["knn", "rankme"], "test", "cpu").to_json(),
        "h": whole.features,
        "parts": SPREAD.each({k: len(v) for k, v in own.items()}),
        "encoded": own["h"],
        "read": (mine.features, mine.ids, mine.labels),
        "samples": samples_of_run(run, None, "test", device="cpu"),
        "table": graph,
        "refused": refused(world) if world.size > 1 else [],
    }


def job(world: World) -> dict:
    import os

    return everything(world, Path(os.environ["TEST_VECTORS"]))


@pytest.fixture(scope="module")
def found(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, list[dict]]:
    """What one process computes, and what each of four does; neither sees the other's caches."""
    alone = tmp_path_factory.mktemp("alone") / "home"
    shutil.copytree(home, alone)
    with pytest.MonkeyPatch.context() as patch:
        lives_in(home, patch)
        many = spread(job, SIZE, tmp_path_factory.mktemp("world"))
    with pytest.MonkeyPatch.context() as patch:
        for module in (neighbors, silhouette, uniformity):
            patch.setattr(module, "BASE", module.BASE)
            name = "SCORES" if module is neighbors else "BLOCK"
            patch.setattr(module, name, getattr(module, name))
        lives_in(alone, patch)
        one = job(World())
    return one, many


def test_every_score_of_a_file_is_that_of_one_process(found: tuple[dict, list[dict]]) -> None:
    one, many = found
    for each in many:
        record = each["file"]
        assert record["processes"] == SIZE
        assert max(record["rows_per_process"]) <= -(-203 // SIZE)
        assert sum(record["rows_per_process"]) == 203
        for name in SPREADING:
            want, got = (r["scores"][name] for r in (one["file"], record))
            assert "value" in want, want
            assert got["value"] == pytest.approx(want["value"], rel=1e-6, abs=1e-9), name
            for a, b in zip(got["interval"] or (), want["interval"] or (), strict=True):
                assert a == pytest.approx(b, rel=1e-5, abs=1e-7), name
        for name in ("knn", "linear_probe", "purity", "hubness"):
            want, got = (dict(r["scores"][name]["extras"]) for r in (one["file"], record))
            # A fit is right to 1e-5, the place of a flat curve's least value to the root of that.
            for part, rel in {"c": 3e-3, "log_loss": 1e-4}.items():
                a, b = got.pop(part, 0.0), want.pop(part, 0.0)
                assert a == pytest.approx(b, rel=rel), part
            assert got == want, name


def test_a_sample_is_of_the_same_rows_on_many_processes(found: tuple[dict, list[dict]]) -> None:
    one, many = found
    for name, want in one["drawn"]["scores"].items():
        assert "sample" in want["extras"], name
        for each in many:
            got = each["drawn"]["scores"][name]
            assert got["value"] == pytest.approx(want["value"], rel=1e-6), name
            assert got["extras"]["sample"] == want["extras"]["sample"]


def test_a_score_for_one_process_says_so(found: tuple[dict, list[dict]]) -> None:
    _, many = found
    missing = many[0]["file"]["scores"]["factors"]["missing"]
    assert "one process" in missing


def test_a_run_is_embedded_and_scored_by_parts(found: tuple[dict, list[dict]]) -> None:
    one, many = found
    for each in many:
        assert np.array_equal(each["h"], one["h"])  # bit by bit
        for source, scores in one["run"]["scores"].items():
            for name, want in scores.items():
                got = each["run"]["scores"][source][name]["value"]
                assert got == pytest.approx(want["value"], rel=1e-6), (source, name)
    sizes = [p["h"] for p in many[0]["parts"]]
    assert len(sizes) == SIZE
    assert sum(sizes) == len(one["h"])
    assert max(sizes) - min(sizes) <= 1
    assert np.array_equal(np.concatenate([e["encoded"] for e in many]), one["h"])
    features, ids, labels = (list(x) for x in zip(*(e["read"] for e in many), strict=True))
    assert np.array_equal(np.concatenate(features), one["read"][0])
    assert sum(ids, ()) == one["read"][1]
    assert np.array_equal(np.concatenate(labels), one["read"][2])


@pytest.mark.parametrize("table", ["samples", "table"])
def test_samples_are_those_of_one_process(table: str, found: tuple[dict, list[dict]]) -> None:
    one, many = found
    for each in many:
        parts_of = ("columns", "extra")
        for part in parts_of:
            for name, want in getattr(one[table], part).items():
                got = getattr(each[table], part)[name]
                if want.dtype.kind == "f":
                    assert np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True), name
                elif name != "rank":  # equal losses may swap places in their last digit
                    assert np.array_equal(got, want), name


def test_too_few_rows_or_labels_are_refused_alike(tmp_path: Path) -> None:
    tiny = tmp_path / "tiny.npz"
    np.savez(tiny, features=np.eye(3, dtype=np.float32), label=[0, 1, 0])
    with pytest.raises(ValueError, match="fewer rows than processes"):
        [read(tiny, (i, 4)) for i in range(4)]


def refused(world: World) -> list[str]:
    """The sentences of scores where one process has no labeled row, or a bad one."""
    rows = np.random.default_rng(world.rank).normal(size=(6, 3)).astype(np.float32)
    none = np.full(6, -1) if world.rank else np.arange(6) % 2
    bad = rows.copy()
    bad[0, 0] = np.nan if world.rank else 1.0
    said = []
    for train, test in (
        (EmbeddingSet(rows, none), EmbeddingSet(rows, np.arange(6) % 2)),
        (EmbeddingSet(rows, np.arange(6) % 2), EmbeddingSet(bad, np.arange(6) % 2)),
    ):
        scores = evaluate_sets(["knn"], train, test, Graphs("cpu", rows=SPREAD))
        said.append(scores["knn"].missing)
    return said


def test_no_process_waits_for_one_that_cannot_score(found: tuple[dict, list[dict]]) -> None:
    first, *others = (each["refused"] for each in found[1])
    assert all(said == first for said in others)
    assert "labeled row on every process" in first[0]
    assert "not finite" in first[1]
