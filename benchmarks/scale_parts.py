"""Time and peak memory of single parts at 10,000, 100,000 and a million rows of 256 numbers.

    python -m benchmarks.scale_parts [--rows 10000 100000 1000000] [--only probe ...]

The rows are those of benchmarks/_rows.py. "scores" are those that need no nearest neighbors, taken
as of a file without marks: four fifths of the rows teach, a fifth is judged. scikit-learn's figures
stand beside where it can: its probe with the C given up to PEER_ROWS rows, its silhouette of all
pairs up to PEER_PAIRS. Sample losses are exact up to a size, and estimated above: then what they
are off stands beside (no peer has such an estimate). What the app does from end to end is in
benchmarks/scale.py.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._rows import BLOCK, WIDTH, Figures, Work, main, sets_of

PEER_PAIRS = 10_000  # rows up to which scikit-learn's silhouette runs
PEER_ROWS = 100_000  # and its logistic regression
OF_NEIGHBORS = ("knn", "hubness", "purity", "neighbor_stability")


def scores(folder: Path) -> Figures:
    """Every score that needs no neighbors."""
    from contrastive_core import metrics
    from contrastive_core.evaluation.evaluate import evaluate_sets

    names = [name for name in metrics.names() if name not in OF_NEIGHBORS]
    taken = evaluate_sets(names, *sets_of(folder))
    return {name: score.value for name, score in taken.items() if score.value is not None}


def probe(folder: Path, **settings: float) -> Figures:
    """The linear probe, its C chosen."""
    from contrastive_core import metrics

    result = metrics.create("linear_probe", **settings)(*sets_of(folder))
    return {"accuracy": result.value, "c": result.extras["c"], "of": result.extras.get("sample")}


def probe_at_1(folder: Path) -> Figures:
    """The linear probe at C = 1."""
    return probe(folder, c=1.0)


def logistic_regression(folder: Path) -> Figures:
    """scikit-learn's, at C = 1."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    train, test = sets_of(folder)
    scaler = StandardScaler().fit(train.features)
    model = LogisticRegression(C=1.0, max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(scaler.transform(train.features), train.labels)
    return {"accuracy": float(model.score(scaler.transform(test.features), test.labels))}


def silhouette_score(folder: Path) -> Figures:
    """scikit-learn's, of all rows at length 1."""
    from sklearn.metrics import silhouette_score
    from sklearn.preprocessing import normalize

    _, rows = sets_of(folder, 0)
    return {"silhouette": float(silhouette_score(normalize(rows.features), rows.labels))}


def sample_losses(folder: Path) -> Figures:
    """SupCon of every row against all others, as the Samples page takes it above its limit: from
    some candidates, with the nearest of them; and what the estimate is off on 512 rows."""
    return losses_of(sets_of(folder, 0)[1], None, "sup_con", {"temperature": 0.1})


def sample_losses_of_views(folder: Path) -> Figures:
    """NT-Xent of two views of every row: half a deviation of noise on each."""
    _, rows = sets_of(folder, 0)
    draw, n = np.random.default_rng(1), len(rows)
    scale = 0.5 * float(np.std(rows.features[:1000]))
    views = np.empty((n, 2, WIDTH), np.float32)
    for i in range(0, n, BLOCK):
        x = rows.features[i : i + BLOCK, None]
        views[i : i + BLOCK] = x + scale * draw.standard_normal((len(x), 2, WIDTH), np.float32)
    return losses_of(rows, views, "nt_xent", {"temperature": 0.2})


def losses_of(rows: Any, views: Any, loss: str, knobs: Figures) -> Figures:
    """The losses of all rows, and how far off they are where they are estimated."""
    from contrastive_core.ops.sampling import rows_of_sample
    from contrastive_core.samples import estimate
    from contrastive_core.samples.losses import exact_of, near_of, per_sample

    start = time.perf_counter()
    near = near_of(rows, loss, knobs, views, device="cpu")
    found = time.perf_counter() - start
    value, weight = per_sample(rows, loss, knobs, views, device="cpu", near=near)
    figures: Figures = {"mean": float(value[weight > 0].mean()), "deviation": float(value.std())}
    if near is None:
        return figures
    some = rows_of_sample(len(rows), estimate.CHECKED)
    exact = exact_of(some, rows, loss, knobs, views, "cpu")
    error = estimate.error_of(value[some], exact)
    return {**figures, **error, "recall": near.recall, "s of neighbors": found}


def of_all(name: str) -> Work:
    """One metric of all rows."""

    def work(folder: Path) -> Figures:
        from contrastive_core import metrics

        result = metrics.create(name)(*sets_of(folder, 0))
        return {name: result.value, "of": result.extras.get("sample")}

    return work


def similarity(folder: Path) -> Figures:
    """Debiased CKA and Procrustes of two encoders' rows."""
    from contrastive_core.evaluation.representation_similarity import cka, procrustes

    x, y = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("features", "other"))
    return {"cka": cka(x, y), "procrustes": procrustes(x, y)}


WORKS: dict[str, Work] = {
    "scores": scores,
    "probe": probe,
    "probe, C = 1": probe_at_1,
    "scikit-learn's probe, C = 1": logistic_regression,
    "silhouette": of_all("silhouette"),
    "scikit-learn's silhouette": silhouette_score,
    "uniformity": of_all("uniformity"),
    "alignment": of_all("alignment"),
    "rankme": of_all("rankme"),
    "CKA and Procrustes": similarity,
    "sample losses, by class": sample_losses,
    "sample losses, two views": sample_losses_of_views,
}
MOST = {
    "probe, C = 1": PEER_ROWS,
    "scikit-learn's probe, C = 1": PEER_ROWS,
    "scikit-learn's silhouette": PEER_PAIRS,
}
LONGEST = {"probe": 300.0}  # seconds at a million rows


if __name__ == "__main__":
    main("scale_parts", WORKS, MOST, LONGEST, __doc__)
