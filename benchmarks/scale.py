"""Time and peak memory of what the app does with an opened file: 10,000 to a million vectors.

    python -m benchmarks.scale [--rows 10000 100000 1000000] [--only evaluate project ...]

The rows are those of benchmarks/_rows.py. They are opened, then scored, mapped, searched for odd
samples and compared with another encoder's, each end to end, by the very analyses that pages wait
for (engine/answers). Beside them, up to PEER_ROWS rows, umap-learn as it comes and the nearest
neighbors of scikit-learn and of faiss.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np

from benchmarks._rows import Figures, Work, main, sets_of
from contrastive_core.spaces.space import Space

PEER_ROWS = 100_000  # the most that the peers are given
NAMES = ("features", "other")  # the two files


def prepare(folder: Path) -> None:
    """Write and open the files, with two columns that are known of each row, below `folder`."""
    from contrastive_core.spaces.loaded_vectors import open_vectors

    _home(folder)
    labels = np.load(folder / "labels.npy")
    draw, keys = np.random.default_rng(2), []
    known = {"size": draw.normal(size=len(labels)), "side": labels % 3}
    for name in NAMES:
        path = folder / f"{name}.npz"
        features = np.load(folder / f"{name}.npy", mmap_mode="r")
        np.savez(path, features=features, labels=labels, **known)
        keys.append(open_vectors(path, path.name))
        path.unlink()
    (folder / "keys.json").write_text(json.dumps(keys))


def project(folder: Path) -> Figures:
    """The UMAP map of an opened file, with its judgment."""
    from contrastive_core.spaces.results import MAP_DEFAULTS

    meta, _ = _made("map", folder, {"space": _spaces(folder)[0], "kind": "umap", **MAP_DEFAULTS})
    return {"landmarks": meta["settings"].get("landmarks"), **meta["quality"]}


def evaluate(folder: Path) -> Figures:
    """Every score of an opened file."""
    meta, _ = _made("scores", folder, {"space": _spaces(folder)[0]})
    figures: Figures = {}
    for name, score in meta["scores"]["own"].items():
        extras = score.get("extras", {})
        figures[name] = score.get("value")
        figures |= {f"{name} {k}": v for k in ("recall", "sample") if (v := extras.get(k))}
    return figures


def compare(folder: Path) -> Figures:
    """Two opened files, with every score, test and matrix."""
    groups = [[name, 0] for name in NAMES]
    values = {"names": list(NAMES), "spaces": _spaces(folder), "groups": groups, "every_score": True}
    meta, arrays = _made("comparison", folder, values)
    matrices = {k: float(arrays[k][0, 1]) for k in ("cka", "overlap", "procrustes")}
    return {**matrices, "recall": meta["recall"], "tests": len(meta["tests"])}


def samples(folder: Path) -> Figures:
    """All that the Samples page asks for: losses, lists and voters by SupCon, kept and read."""
    from contrastive_core.samples import sample_table
    from contrastive_core.samples.issues import SampleInputs, build_table

    rows, start = sets_of(folder, 0)[1], time.perf_counter()
    stages: dict[str, float] = {}

    def on_progress(stage: str, _: float | None) -> None:
        stages.setdefault(stage, time.perf_counter() - start)

    made = build_table(SampleInputs(rows, "sup_con", {"temperature": 0.1}), on_progress)
    sample_table.keep_table(made, folder / "samples.npz")
    kept = sample_table.read_table(folder / "samples.npz", "sup_con")
    assert kept is not None
    return {**kept.facts, **{f"s at {stage}": s for stage, s in stages.items()}}


def umap_learn(folder: Path) -> Figures:
    """umap-learn's map, with its own neighbors and start, judged as ours is."""
    from umap import UMAP

    from contrastive_core.compare.projection import judge

    x = np.load(folder / "features.npy")
    xy = UMAP(metric="cosine", random_state=0, n_jobs=1).fit_transform(x)
    return dict(judge(x, np.asarray(xy, np.float32), device="cpu"))


def nearest_neighbors(folder: Path) -> Figures:
    """scikit-learn's kNN accuracy, as many neighbors as ours, a vote each."""
    from sklearn.neighbors import KNeighborsClassifier

    from contrastive_core.metrics.knn import default_k

    x, y = np.load(folder / "features.npy"), np.load(folder / "labels.npy")
    at = len(y) * 4 // 5
    model = KNeighborsClassifier(default_k(at), metric="cosine", algorithm="brute", n_jobs=-1)
    return {"accuracy": float(model.fit(x[:at], y[:at]).score(x[at:], y[at:]))}


def faiss_neighbors(folder: Path) -> Figures:
    """The same accuracy by faiss's flat index."""
    import faiss

    from contrastive_core.metrics.knn import default_k

    x, y = np.load(folder / "features.npy"), np.load(folder / "labels.npy")
    faiss.normalize_L2(x)
    at = len(y) * 4 // 5
    index = faiss.IndexFlatIP(x.shape[1])
    index.add(x[:at])
    near = index.search(x[at:], default_k(at))[1]
    votes = np.zeros((len(near), y.max() + 1), np.int64)
    np.add.at(votes, (np.arange(len(near))[:, None], y[near]), 1)
    return {"accuracy": float((votes.argmax(1) == y[at:]).mean())}


def _made(kind: str, folder: Path, values: Figures) -> tuple[Figures, dict[str, np.ndarray]]:
    """An analysis's plain values and arrays, made and kept as the app's tasks make them."""
    from contrastive_core.engine import answers

    _home(folder)
    result = answers.make(kind, values, device="cpu")
    return result.meta, result.arrays


def _spaces(folder: Path) -> list[Figures]:

    return [Space.of_vectors(key).values for key in json.loads((folder / "keys.json").read_text())]


def _home(folder: Path) -> None:
    """Where the app keeps what it opens and makes: in the folder, which goes in the end."""
    os.environ["CONTRASTIVE_LAB_HOME"] = str(folder / "home")


WORKS: dict[str, Work] = {
    "project": project,
    "umap-learn's map": umap_learn,
    "evaluate": evaluate,
    "scikit-learn's kNN": nearest_neighbors,
    "faiss's kNN": faiss_neighbors,
    "samples": samples,
    "compare": compare,
}
MOST = dict.fromkeys(("umap-learn's map", "scikit-learn's kNN", "faiss's kNN"), PEER_ROWS)
BESIDE = {"umap-learn's map": ("project", "umap-learn")}  # the work that a peer does as well
LONGEST = {"project": 1200.0, "samples": 1200.0}  # seconds at a million rows


if __name__ == "__main__":
    main("scale", WORKS, MOST, LONGEST, __doc__, prepare, BESIDE)
