"""Time and peak memory at 10,000, 100,000 and a million rows of 256 numbers.

    python -m benchmarks.scale [--rows 10000 100000 1000000] [--only probe ...]

100 classes: centers that lie in families, within each class a spectrum that falls as learned ones
do, so that classes overlap. The vectors are mapped from a file, each measurement is a process of
its own, on as many threads as there are cores, and its peak is all that it has in memory, pages of
that file and the libraries among it (VmHWM). "scores" are those that need no nearest neighbors,
taken as of a file without marks: four fifths of the rows teach, a fifth is judged. scikit-learn's
figures stand beside where it can: its probe with the C given up to PEER_ROWS rows, its silhouette
of all pairs up to PEER_PAIRS. Sample losses are exact up to a size, and estimated above:
then what they are off stands beside (no peer has such an estimate). "project", "evaluate" and
"compare" are what the app does with an opened file, end to end (benchmarks/_whole.py).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _whole
from benchmarks._machine import cores
from benchmarks._timing import limit, summary

ROWS = (10_000, 100_000, 1_000_000)
WIDTH, CLASSES, FAMILIES, BLOCK = 256, 100, 10, 50_000
PEER_PAIRS = 10_000  # rows up to which scikit-learn's silhouette runs
PEER_ROWS = 100_000  # and its logistic regression
LIMIT_MB = 8000.0  # at a million rows: every peak
OF_NEIGHBORS = ("knn", "hubness", "purity", "neighbor_stability")
Figures = dict[str, Any]


def write_rows(folder: Path, n: int) -> None:
    """`features.npy` (n, 256), `labels.npy` (n) and `other.npy`, another encoder's (n, 256)."""
    draw = np.random.default_rng(0)
    families = draw.normal(size=(FAMILIES, WIDTH))
    centers = families[np.arange(CLASSES) % FAMILIES] + 0.7 * draw.normal(size=(CLASSES, WIDTH))
    turn = np.linalg.qr(draw.normal(size=(WIDTH, WIDTH)))[0] * np.arange(1, WIDTH + 1) ** -0.5
    turn, centers = (v.astype(np.float32) for v in (6 * turn.T, 0.25 * centers))
    mix = draw.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 16
    labels = draw.integers(0, CLASSES, n)
    shape = (n, WIDTH)
    features, other = (
        np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, shape)
        for name in ("features", "other")
    )
    for i in range(0, n, BLOCK):
        of = labels[i : i + BLOCK]
        x = (centers[of] + draw.standard_normal((len(of), WIDTH), np.float32)) @ turn
        features[i : i + BLOCK] = x
        other[i : i + BLOCK] = np.maximum(x @ mix, 0)
    np.save(folder / "labels.npy", labels)


def sets_of(folder: Path, mark: int | None = None) -> tuple[Any, Any]:
    """Training rows and rows to judge, mapped; mark: the first to judge (default: after 4/5)."""
    from contrastive_core.embeddings.embedding_set import EmbeddingSet

    features = np.load(folder / "features.npy", mmap_mode="r")
    labels = np.load(folder / "labels.npy").astype(np.int64)
    at = len(labels) * 4 // 5 if mark is None else mark
    train = EmbeddingSet(features[:at], labels[:at]) if at else None
    return train, EmbeddingSet(features[at:], labels[at:])


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


def samples(folder: Path) -> Figures:
    """All that the Samples page asks for: losses, lists and voters by SupCon, kept and read."""
    from contrastive_core.samples import table
    from contrastive_core.samples.score import SampleInputs, score_samples

    rows, start = sets_of(folder, 0)[1], time.perf_counter()
    stages: dict[str, float] = {}

    def on_progress(stage: str, _: float | None) -> None:
        stages.setdefault(stage, time.perf_counter() - start)

    made = score_samples(SampleInputs(rows, "sup_con", {"temperature": 0.1}), on_progress)
    table.keep_table(made, folder / "samples.npz")
    kept = table.read_table(folder / "samples.npz", "sup_con")
    assert kept is not None
    return {**kept.facts, **{f"s at {stage}": s for stage, s in stages.items()}}


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


def of_all(name: str) -> Callable[[Path], Figures]:
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


WORKS: dict[str, Callable[[Path], Figures]] = {
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
    "samples": samples,
    "sample losses, by class": sample_losses,
    "sample losses, two views": sample_losses_of_views,
    **_whole.WORKS,
}
MOST = {
    "probe, C = 1": PEER_ROWS,
    "scikit-learn's probe, C = 1": PEER_ROWS,
    "scikit-learn's silhouette": PEER_PAIRS,
    "umap-learn's map": PEER_ROWS,
    "scikit-learn's kNN": PEER_ROWS,
}
LONGEST = {"probe": 300.0, "project": 1200.0}  # seconds at a million rows
PEERS = ("scikit-learn", "umap-learn")


def peak_mb() -> float:
    """The most that this process has had in memory (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) * 1024 / 1e6 for x in lines if x.startswith("VmHWM"))


def child(work: str, folder: Path) -> None:
    """One measurement, as a line of JSON."""
    import torch

    import contrastive_core.evaluation.evaluate  # noqa: F401  imports are not timed

    torch.set_num_threads(cores())
    start = time.perf_counter()
    figures = WORKS[work](folder)
    print(json.dumps({"s": time.perf_counter() - start, "mb": peak_mb(), **figures}))


def measure(work: str, folder: Path) -> Figures:
    """One measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", "--child", work, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{work} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def told(figures: Figures) -> str:
    """The figures themselves, in a line."""
    parts = [(k, v) for k, v in figures.items() if k not in ("s", "mb") and v is not None]
    return ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in parts)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=ROWS)
    options.add_argument("--only", nargs="+", choices=WORKS, default=list(WORKS))
    options.add_argument("--child", choices=WORKS, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.child:
        child(args.child, args.folder)
        return
    lines = []
    before: dict[str, Figures] = {}
    for n in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            write_rows(Path(folder), n)
            if set(args.only) & {"project", "evaluate", "compare"}:
                _whole.prepare(Path(folder))
            for work in args.only:
                if n > MOST.get(work, n):
                    continue
                found = measure(work, Path(folder))
                growth = f"{found['s'] / before[work]['s']:5.1f}×" if work in before else " " * 6
                print(
                    f"{n:>9,}  {work:<28}{found['s']:8.1f} s {growth}{found['mb']:8,.0f} MB  "
                    f"{told(found)}",
                    flush=True,
                )
                before[work] = found
                if n == max(args.rows) and not work.startswith(PEERS):
                    lines.append(limit(f"{work}, {n:,} rows, peak", found["mb"], "MB", LIMIT_MB))
                if n == max(args.rows) and work in LONGEST:
                    lines.append(limit(f"{work}, {n:,} rows", found["s"], "s", LONGEST[work]))
    summary("scale", lines)


if __name__ == "__main__":
    main()
