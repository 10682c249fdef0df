"""Copy trained runs to checkpoints/shipped: what a page needs of each, as small as it can be.

    CONTRASTIVE_LAB_RUNS=FOLDER python -m contrastive_core sweep checkpoints/shipped.toml
    CONTRASTIVE_LAB_RUNS=FOLDER python -m benchmarks.ship [--whole simclr-digits ...]
    python -m benchmarks.ship --rescore    # after a change of a metric: the scores alone

Of each run: manifest, status, the lines of its epochs, encoder and head in float16, scores and
maps made from these very weights, and four snapshots of a few images; for `--whole` runs the test
images' `h` too, so that a first page needs neither torch nor a wait. A sweep leaves out what ships
already: to train all anew, empty checkpoints/shipped first.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from contrastive_core import runs
from contrastive_core.cli import analyses
from contrastive_core.embeddings import ref
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.record import read_published, write_evaluation
from contrastive_core.evaluation.reproduce import ScoreCache, computed_anew
from contrastive_core.jobs import results
from contrastive_core.paths import ROOT, SHIPPED, data_home, runs_home
from contrastive_core.runs import Run, checkpoints
from contrastive_core.storage import records
from contrastive_core.sweeps import spec as sweep_spec

WHOLE = ("simclr-digits", "sup_con-digits", "simclr-shapes")
SCORES = (
    "knn",
    "linear_probe",
    "alignment",
    "uniformity",
    "rankme",
)  # quick ones; others on demand
ROWS = 90  # images of a snapshot: what 16 runs have room for
LIMIT = 10 << 20  # bytes of all shipped runs


def ship(run: Run, whole: bool) -> Run:
    """One run, copied, scored and drawn."""
    target = SHIPPED / run.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    records.write_json(target / "run.json", run.manifest)
    status = {k: v for k, v in run.status().items() if k not in ("pid", "updated")}
    records.write_json(target / "status.json", status)
    epochs = [line for line in run.metrics() if "images_per_s" not in line]
    records.append_lines(target / "metrics.jsonl", epochs)
    made = Run(target, run.manifest)
    weights = checkpoints.load_weights(run)
    used = {k: v for k, v in weights.items() if k.startswith(("encoder.", "head."))}
    checkpoints.save_weights(made, used, half=True)
    _snapshots(run, made)
    _scores_and_maps(made, whole)
    return made


def _snapshots(run: Run, made: Run) -> None:
    """Four epochs, from the first to the last, of fewer images."""
    known = run.snapshots()
    for at in (0, len(known) // 6, len(known) // 2, -1):
        found = run.snapshot(known[at])
        made.save_snapshot(known[at], **{k: v[:ROWS] for k, v in found.items()})


def _scores_and_maps(run: Run, whole: bool) -> None:
    """Made where shipped runs keep theirs, then moved beside the weights."""
    home = data_home() / "embeddings" / run.name
    shutil.rmtree(home, ignore_errors=True)
    rescore(run)
    for which in "hz":
        for kind in ("pca", "umap") if whole else ("pca",):
            embed_run(run, "test", which)
            values = {"space": ref.of_run(run, "test", which).values, "kind": kind}
            made = analyses.make("map", analyses.with_defaults(values))
            results.write_to(results.shipped_map_path(run.name, "test", which, kind), made)
    if whole:
        key = run.weights_hash()[:16]
        for path in home.glob(f"test-h-{key}-v*.npz"):
            _copy(path, run.path / "embeddings" / "test-h.npz")


def rescore(run: Run, cache: ScoreCache | None = None) -> None:
    """The scores of a shipped run, computed anew from its weights and kept beside them."""
    write_evaluation(run, computed_anew(run, SCORES, device="cpu", cache=cache), run.path)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, target)


def size(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--whole", nargs="*", default=list(WHOLE))
    options.add_argument("--only", nargs="*", help="names; default: all in shipped.toml")
    options.add_argument("--rescore", action="store_true", help="scores alone, of what is shipped")
    args = options.parse_args()
    named = [cell.run for cell in sweep_spec.load(ROOT / "checkpoints" / "shipped.toml").cells()]
    cache: ScoreCache = {}
    for name in args.only or named:
        if args.rescore:
            made = runs.load(name)
            rescore(made, cache)
        else:
            source = runs_home() / name
            if not (source / "run.json").exists():
                print(f"{name}: not trained yet, left out")
                continue
            made = ship(Run(source, records.read_json(source / "run.json")), name in args.whole)
        evaluation = read_published(made)
        assert evaluation is not None
        knn = {k: f"{100 * (evaluation.value(k, 'knn') or 0):.1f}" for k in evaluation.scores}
        print(f"{name}: {size(made.path) / 1e6:.2f} MB, kNN {knn}", flush=True)
    total = size(SHIPPED)
    print(f"all: {total / 1e6:.2f} MB{' — too much' if total > LIMIT else ''}")


if __name__ == "__main__":
    main()
