"""Spaces with planted differences: equal runs, one that is worse by ten points, 50,000 vectors."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from kept_scores import keep_scores

from contrastive_core import runs
from contrastive_core.base import storage
from contrastive_core.base.memory import write_npz
from contrastive_core.base.storage import ROOT
from contrastive_core.compare import evaluate
from contrastive_core.data import datasets
from contrastive_core.engine import answers
from contrastive_core.spaces import loaded_vectors, results
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space, cached, path_of

WRONG = 36  # of 360 test images, in the run that is planted as the worse: 10 points
POINTS = 50_000


@dataclass(frozen=True)
class Planted:
    address: str
    wrong: tuple[str, ...]  # ids of the images that the worse run gets wrong
    big: str  # key of the 50,000 vectors
    good: EmbeddingSet  # test images of the better run


@pytest.fixture(scope="module")
def planted(serve: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Planted:
    home = tmp_path_factory.mktemp("planted")
    homes = {"CONTRASTIVE_LAB_HOME": f"{home}/home", "CONTRASTIVE_LAB_RUNS": f"{home}/runs"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in homes.items():
            patch.setenv(name, value)
        wrong = plant_runs()
        big = plant_points()
        good = cached(runs.load("good"), "test", "h")
    assert good is not None
    return Planted(serve(ROOT / "app.py", environment=homes), wrong, big, good)


def plant_runs() -> tuple[str, ...]:
    """Runs good, same and worse on digits: `worse` has WRONG test images among another class."""
    sets = {split: datasets.load("digits", split) for split in ("train", "test")}
    moved = np.random.default_rng(1).permutation(len(sets["test"].labels))[:WRONG]
    for name in ("good", "same", "worse"):
        run = runs.create(name, runs.load("simclr-digits").config)
        run.set_status("done")
        storage.write_bytes(run.weights, name.encode())
        for split, found in sets.items():
            labels = np.asarray(found.labels, np.int64)
            where = labels.copy()
            if name == "worse" and split == "test":
                where[moved] = (where[moved] + 1) % 10
            x = np.eye(10, 12)[where] + 0.05 * np.random.default_rng(0).normal(size=(len(labels), 12))
            for which in "hz":
                rows = EmbeddingSet(x.astype(np.float32), labels, tuple(found.ids), split, which, tuple(found.classes))
                path = path_of(run, split, which)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_npz(path, **rows.arrays())
        plant_pages(run)
    return tuple(sorted(str(sets["test"].ids[i]) for i in moved))


def plant_pages(run: runs.Run) -> None:
    """What the pages wait for: scores and maps."""
    sets = {w: cached(run, "test", w) for w in "hz"}
    train = cached(run, "train", "h")
    assert train is not None
    scores = evaluate.evaluate_sets(["knn", "uniformity", "rankme"], train, sets["h"])
    keep_scores(run, {"h": scores, "z": scores}, len(train))
    for which, rows in sets.items():
        for kind in ("pca", "umap"):
            made = results.Result({"settings": {"kind": kind}, "quality": {}}, {"xy": rows.features[:, :2]})
            values = {"space": Space.of_run(run, "test", which).values, "kind": kind}
            results.write("map", answers.with_defaults(values), made)


def plant_points() -> str:
    """50,000 vectors with pictures whose map and scores are there already."""
    rng = np.random.default_rng(0)
    labels = np.arange(POINTS) % 5
    xy = np.eye(5, 4)[labels] * 6 + rng.normal(size=(POINTS, 4))
    pictures = np.broadcast_to((labels * 50).astype(np.uint8)[:, None, None, None], (POINTS, 1, 4, 4))
    rows = EmbeddingSet(xy.astype(np.float32), labels.astype(np.int64))
    key = loaded_vectors.save_vectors(rows, "many.npz", np.array(pictures))
    space = {"space": Space.of_vectors(key).values}
    score = {"title": "RankMe", "reading": "planted", "value": 4.0, "unit": "", "extras": {}}
    scores = {"scores": {"own": {"rankme": score}}, "how": "", "n": POINTS}
    results.write("scores", space, results.Result(scores))
    umap = {"kind": "umap", "seed": 0, "neighbors": 15, "min_dist": 0.1, "metric": "cosine"}
    made = results.Result({"settings": umap, "quality": {}}, {"xy": rows.features[:, :2]})
    results.write("map", {**space, **umap}, made)
    return key
