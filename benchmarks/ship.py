"""Copy trained runs to checkpoints/shipped: what a page needs of each, as small as it can be.

    CONTRASTIVE_LAB_RUNS=FOLDER contrastive-lab sweep checkpoints/shipped.toml
    CONTRASTIVE_LAB_RUNS=FOLDER python -m benchmarks.ship [--only simclr-digits ...]
    python -m benchmarks.ship --rescore    # after a change of a metric: the scores alone
    python -m benchmarks.ship --prepare    # what pages open at once, from the shipped weights
    python -m benchmarks.ship --tables     # of that, the tables of samples alone
    python -m benchmarks.ship --loss-lab   # of that, what the Loss Lab opens on alone

Of each run: manifest, status, the lines of its epochs, encoder, head and text tower in float16, scores
made from these very weights, and four snapshots of a few images. So that pages open
without torch and without a wait, also, all compressed: h and z of the test images in float16, their maps
(PCA and UMAP), every score with what it says of each sample in float32 (Compare tests pairs on these,
engine/answers/comparisons.py), the table of the training images by the loss
that the run was trained with, in float32 (Samples), and that loss on a batch (Loss Lab). Of a run with two towers also
z of both, and what Explore, Samples and Compare ask of its pairs. Once for all runs of a data set, in
checkpoints/images: its decoded test images, and the thumbnails of the Loss Lab's batches. The published
figures are of float32 rows; those in float16 give the same at the digits shown
(tests/unit/engine/test_shipped_results.py).
A sweep leaves out what ships already: to train all anew, empty checkpoints/shipped first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import runs
from contrastive_core.base import json_files, storage
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.memory import read_npz
from contrastive_core.base.progress import ignore_progress
from contrastive_core.base.storage import IMAGES, ROOT, SHIPPED, data_home, runs_home
from contrastive_core.compare.embed import embed_run
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.data import datasets
from contrastive_core.engine import answers, catalog
from contrastive_core.engine.answers.scores import scores
from contrastive_core.lab import lab_view
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import DIRECTIONS, BatchRequest
from contrastive_core.lab.view import compute_view
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import results
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import TOWERS, Space, layers_of
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES
from contrastive_core.sweeps import sweep_file
from contrastive_lab import home
from contrastive_lab.loss_lab import lessons
from contrastive_lab.loss_lab.choices import FIRST_SIZE
from contrastive_lab.loss_setting import knobs_to_compute

PARTS = ("encoder.", "head.", "text_tower.", "text_head.", "temperature.", "bias")  # of the weights
ROWS = 90  # images of a snapshot: what 20 runs have room for
LIMIT = 34 << 20  # bytes of all shipped runs and their test images


def ship(run: Run) -> Run:
    """One run, copied, scored and drawn."""
    target = SHIPPED / run.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    json_files.write_json(target / "run.json", run.manifest)
    status = {k: v for k, v in run.status().items() if k not in ("pid", "updated")}
    json_files.write_json(target / "status.json", status)
    epochs = [line for line in run.metrics() if "images_per_s" not in line]
    json_files.append_lines(target / "metrics.jsonl", epochs)
    made = Run(target, run.manifest)
    weights = checkpoints.load_weights(run)
    used = {k: v for k, v in weights.items() if k.startswith(PARTS)}
    checkpoints.save_weights(made, used, half=True)
    _snapshots(run, made)
    prepare(made)
    return made


def _snapshots(run: Run, made: Run) -> None:
    """Four epochs, from the first to the last, of fewer images."""
    known = run.snapshots()
    for at in (0, len(known) // 6, len(known) // 2, -1):
        found = run.snapshot(known[at])
        made.save_snapshot(known[at], **{k: found[k][:ROWS] for k in ("index", "labels", "h", "z")})


def prepare(run: Run) -> None:
    """What pages open at once: rows, maps, every score."""
    shutil.rmtree(data_home() / "embeddings" / run.name, ignore_errors=True)
    for folder in ("embeddings", *results.FOLDERS.values()):
        shutil.rmtree(run.path / folder, ignore_errors=True)
    for layer in layers_of(run):
        arrays = embed_run(run, "test", layer, "cpu").arrays()
        arrays["features"] = arrays["features"].astype(np.float16)
        _write_small(run.path / "embeddings" / f"test-{layer}.npz", arrays)
    keep_scores(run)
    for layer in layers_of(run):
        space = Space.of_run(run, "test", layer).values
        for kind in ("pca", "umap"):
            _keep("map", answers.with_defaults({"space": space, "kind": kind}))
        if layer == TOWERS:
            keep_pairs(run)
    keep_table(run)
    keep_loss_lab(run)


def keep_pairs(run: Run) -> None:
    """What pages ask of two towers: recall, zero-shot accuracy and the lists of pairs."""
    space = {"space": Space.of_run(run, "test", TOWERS).values}
    _keep("towers", space)
    _keep("zero_shot", {**space, "templates": list(DEFAULT_TEMPLATES)})
    _keep("tower_pairs", space)


def _keep(kind: str, values: JsonObject) -> None:
    """An answer, where pages look for it."""
    made, path = answers.make(kind, values), results.came_along(kind, values)
    assert path is not None  # these are what pages open with
    _write_small(path, results.arrays_of(made))


def keep_table(run: Run) -> None:
    """The table of the training images by the run's own loss."""
    _write_tables(run, run.path / "samples")
    if run.name == home.SOURCE:
        _write_tables(home.make(), run.path / home.TABLES)


def _write_tables(run: Run, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    request = request_of(run.name, "train")
    make_table(request, device="cpu")
    made = request.path()
    columns = read_npz(made)  # and facts, which are no columns
    _write_small(folder / made.name, {k: v if v.ndim == 0 else _single(v) for k, v in columns.items()})


def keep_loss_lab(run: Run) -> None:
    """What the Loss Lab opens on: the run's own loss on a batch, and those of the lessons."""
    shutil.rmtree(run.path / lab_view.FOLDER, ignore_errors=True)
    weights, cards = run.weights_hash(), catalog.read()["losses"]
    request, pairing = _first_batch(run)
    batch = load_batch(run, request)
    assert batch.thumbs is not None  # of a data set
    for loss, first in _first_losses(run, cards).items():
        known = {name: first.get(name, knob["default"]) for name, knob in cards[loss]["knobs"].items()}
        asked = {name: value for name, value in known.items() if value is not None}
        knobs = knobs_to_compute(cards[loss], asked)
        question = lab_view.question(weights, request, pairing, loss, json.dumps(knobs, sort_keys=True))
        view = compute_view(batch, pairing, loss, knobs)
        values = vars(view) | {"extras": {}}  # matrices of all dimensions, which the browser computes
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        meta = {name: value for name, value in values.items() if name not in arrays}
        _write_small(lab_view.path_of(run, loss), lab_view.file_arrays(question, meta, **arrays))
    shared = IMAGES / lab_view.FOLDER / f"{hashlib.sha256(batch.thumbs.tobytes()).hexdigest()[:16]}.npz"
    _write_small(shared, {lab_view.THUMBS: batch.thumbs})
    thumbs = lab_view.file_arrays(lab_view.question(weights, request), {"file": shared.name})
    _write_small(lab_view.path_of(run, lab_view.THUMBS), thumbs)


def _first_batch(run: Run) -> tuple[BatchRequest, str]:
    """The batch that the Loss Lab opens on, and its pairing or direction."""
    if run.has_towers:
        return BatchRequest(TOWERS, FIRST_SIZE, 1, 0), DIRECTIONS[0]
    pairing = lab_view.default_pairing(run)
    return lab_view.request_of("z", pairing, FIRST_SIZE, 0), pairing


def _first_losses(run: Run, cards: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Losses on that batch with their knobs: those of the lessons on this run, and its own."""
    on_it = [
        lesson
        for lesson in lessons.LESSONS
        if {"run": run.name, "size": str(FIRST_SIZE)}.items() <= lesson.address.items()
    ]
    choices = [choice for lesson in on_it for choice in lesson.choices if choice.name == "loss"]
    firsts: dict[str, dict[str, Any]] = {loss: {} for choice in choices for loss in choice.options}
    for address in (lesson.address for lesson in on_it):
        firsts[address["loss"]] = _knobs(cards[address["loss"]], address)
    return firsts | {str(run.config["loss"]): run.config.get("loss_knobs", {})}


def _knobs(card: dict[str, Any], address: dict[str, str]) -> dict[str, Any]:
    """Knobs as an address has them."""
    defaults = {name: knob["default"] for name, knob in card["knobs"].items() if name in address}
    return {
        name: address[name] == "yes" if isinstance(default, bool) else type(default)(address[name])
        for name, default in defaults.items()
    }


def keep_scores(run: Run) -> None:
    """Every score of the test images."""
    shutil.rmtree(run.path / results.FOLDERS["scores"], ignore_errors=True)
    for layer in layers_of(run):
        values = {"space": Space.of_run(run, "test", layer).values}
        made = scores(values, ignore_progress, "cpu")
        small = {k: _narrow(v) for k, v in made.arrays.items()}
        path = results.shipped_path("scores", run.name, "test", layer)
        _write_small(path, results.arrays_of(Result(made.meta, small)))


def _narrow(array: np.ndarray) -> np.ndarray:
    """Numbers in four bytes, classes in two."""
    return _single(array) if array.dtype.kind == "f" else array.astype(np.int16)


def _single(array: np.ndarray) -> np.ndarray:
    """Numbers in four bytes where they have eight."""
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _write_small(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with storage.writing(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def ship_images(dataset: str) -> None:
    """The decoded test images of a data set, as they lie in the cache."""
    place = IMAGES / f"{dataset}-test-v1"
    shutil.rmtree(place, ignore_errors=True)
    datasets.load(dataset, "test")
    shutil.copytree(datasets.made_path(dataset, "test").parent, place, copy_function=shutil.copyfile)


def size(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="*", help="names; default: all in shipped.toml")
    options.add_argument("--rescore", action="store_true", help="scores alone, of what is shipped")
    options.add_argument("--prepare", action="store_true", help="what pages open, of what is shipped")
    options.add_argument("--loss-lab", action="store_true", help="what the Loss Lab opens on alone")
    options.add_argument("--tables", action="store_true", help="the tables alone, of what is shipped")
    args = options.parse_args()
    named = [cell.run for cell in sweep_file.load(ROOT / "checkpoints" / "shipped.toml").cells()]
    trained = runs_home()
    os.environ["CONTRASTIVE_LAB_RUNS"] = str(SHIPPED)  # a name means the shipped run, not the one it is a copy of
    for name in args.only or named:
        if args.rescore or args.prepare or args.tables or args.loss_lab:
            made = runs.load(name)
            if args.rescore:
                keep_scores(made)
            if args.prepare:
                prepare(made)
            elif args.tables:
                keep_table(made)
            elif args.loss_lab:
                keep_loss_lab(made)
        else:
            source = trained / name
            if not (source / "run.json").exists():
                print(f"{name}: not trained yet, left out")
                continue
            made = ship(Run(source, json_files.read_json(source / "run.json")))
        evaluation = read_evaluation(made)
        assert evaluation is not None
        knn = {k: f"{100 * (evaluation.value(k, 'knn') or 0):.1f}" for k in evaluation.scores}
        print(f"{name}: {size(made.path) / 1e6:.2f} MB, kNN {knn}", flush=True)
    if not (args.rescore or args.tables or args.loss_lab):
        for dataset in sorted({str(runs.load(name).config["dataset"]) for name in args.only or named}):
            ship_images(dataset)
    total = size(SHIPPED) + size(IMAGES)
    print(f"all: {total / 1e6:.2f} MB")
    if total > LIMIT:
        raise SystemExit(f"more than {LIMIT >> 20} MiB: too much to ship")


if __name__ == "__main__":
    main()
