"""What the app does with an opened file of vectors, end to end: it is opened, mapped, scored, and
compared with another, by the very analyses that pages wait for (cli/analyses), as works of
benchmarks/scale.py. Beside them umap-learn as it comes, and scikit-learn's nearest neighbors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["WORKS", "prepare"]

Figures = dict[str, Any]
NAMES = ("features", "other")  # the two files


def prepare(folder: Path) -> None:
    """Write and open the files, with two columns that are known of each row, below `folder`."""
    from contrastive_core.embeddings.open_vectors import open_vectors

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
    from contrastive_core.jobs.results import MAP_DEFAULTS

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
    values = {"names": list(NAMES), "spaces": _spaces(folder), "groups": groups}
    meta, arrays = _made("comparison", folder, values)
    matrices = {k: float(arrays[k][0, 1]) for k in ("cka", "overlap", "procrustes")}
    return {**matrices, "recall": meta["recall"], "tests": len(meta["tests"])}


def umap_learn(folder: Path) -> Figures:
    """umap-learn's map, with its own neighbors and start, judged as ours is."""
    from umap import UMAP

    from contrastive_core.evaluation.map_quality import judge

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


def _made(kind: str, folder: Path, values: Figures) -> tuple[Figures, dict[str, np.ndarray]]:
    """An analysis's plain values and arrays, made and kept as the app's tasks make them."""
    from contrastive_core.cli import analyses

    _home(folder)
    result = analyses.make(kind, values, device="cpu")
    return result.meta, result.arrays


def _spaces(folder: Path) -> list[Figures]:
    from contrastive_core.embeddings import ref

    return [ref.of_vectors(key).values for key in json.loads((folder / "keys.json").read_text())]


def _home(folder: Path) -> None:
    """Where the app keeps what it opens and makes: in the folder, which goes in the end."""
    os.environ["CONTRASTIVE_LAB_HOME"] = str(folder / "home")


WORKS: dict[str, Callable[[Path], Figures]] = {
    "project": project,
    "umap-learn's map": umap_learn,
    "evaluate": evaluate,
    "scikit-learn's kNN": nearest_neighbors,
    "compare": compare,
}
