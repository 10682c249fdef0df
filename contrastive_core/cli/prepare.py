"""What the app's tasks run: `analyze`, `decode`, and `present` for all that a run's pages show."""

from __future__ import annotations

import json
from argparse import Namespace

from contrastive_core.cli.output import print_result, progress_of
from contrastive_core.data import datasets
from contrastive_core.engine import answers, results
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.evaluate import evaluate
from contrastive_core.records import embedding_ref, runs
from contrastive_core.records.evaluation import read_evaluation
from contrastive_core.records.image_form import ImageForm


def analyze(args: Namespace) -> None:
    """Make what a page asks for, and keep it."""
    values = json.loads(args.values)
    if not isinstance(values, dict):
        raise ValueError("the values of an analysis are a JSON object")
    with progress_of(args) as on_progress:
        answers.make(args.kind, values, on_progress, args.device)
    path = results.path(args.kind, values)
    print_result(args, {"kind": args.kind, "out": str(path)}, str(path))


def decode(args: Namespace) -> None:
    """Decode the images of a data set, unless they have been."""
    form = ImageForm(args.image_size, args.resize)
    with progress_of(args) as on_progress:
        dataset = datasets.load(args.dataset, args.split, args.root, False, form, on_progress)
    left_out = dataset.left_out
    record = {"dataset": args.dataset, "split": args.split, "images": len(dataset), "left_out": left_out}
    text = f"{args.dataset}, {args.split}: {len(dataset):,} images"
    print_result(args, record, f"{text}. {left_out}" if left_out else text)


def present(args: Namespace) -> None:
    """Embed and score a run, and draw its maps: all that its pages wait for."""
    run = runs.load(args.run)
    with progress_of(args) as on_progress:
        if read_evaluation(run) is None:
            evaluate(run, device=args.device, on_progress=on_progress)
        for layer in "hz":
            embed_run(run, args.split, layer, args.device)
            for kind in ("pca", "umap"):
                values = {"space": embedding_ref.of_run(run, args.split, layer).values, "kind": kind}
                answers.make("map", answers.with_defaults(values), on_progress, args.device)
    print_result(args, {"run": run.name, "split": args.split}, f"{run.name}: ready")
