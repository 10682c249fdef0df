"""`sweep` and `queue`: many trainings, one after the other."""

from __future__ import annotations

from argparse import Namespace

from contrastive_core.cli.output import print_note, print_result, progress_of
from contrastive_core.engine import queue as waiting
from contrastive_core.engine import sweep_runner
from contrastive_core.records import runs
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.sweeps import spec


def sweep(args: Namespace) -> None:
    """Train the cells of a sweep file that are not done yet."""
    chosen = spec.changed(spec.load(args.file), args.set)
    if args.score:
        return _score_cells(args, chosen)
    if sweep_runner.estimate(chosen) is None:
        with progress_of(args) as on_progress:
            sweep_runner.measure(chosen, lambda stage: on_progress(stage, None))
    untrained = len({row["run"] for row in sweep_runner.status(chosen) if row["status"] != "done"})
    about = (sweep_runner.estimate(chosen) or 0) / 60
    all_cells = len(chosen.trained())
    print_note(f"{chosen.title}: {untrained} of {all_cells} cells to train, about {about:.0f} min")
    if not args.dry_run:
        sweep_runner.run_sweep(chosen, print_note, args.most)
    rows = sweep_runner.status(chosen)
    cells = [{k: v for k, v in r.items() if k not in ("step", "epoch")} for r in rows]
    lines = [f"{r['status']:<8} {r['run']}{_score(r)}" for r in cells]
    print_result(args, {"sweep": chosen.name, "form": chosen.form, "cells": cells}, "\n".join(lines))


def _score_cells(args: Namespace, chosen: spec.Sweep) -> None:
    """Score the done cells' test images, for the figure."""
    from contrastive_core.evaluation.evaluate import evaluate

    names = sweep_runner.unscored(chosen)
    with progress_of(args) as on_progress:
        for number, name in enumerate(names):
            on_progress(f"scoring {name}, {number + 1} of {len(names)}", number / len(names))
            evaluate(runs.load(name), list(sweep_runner.SCORED))


def queue(args: Namespace) -> None:
    """Start what waits until nothing does. The app leaves this behind when it is closed."""
    waiting.work(print_note)
    names = [job.name for job in waiting.queue()]
    text = f"still waiting: {', '.join(names)}" if names else "nothing waits"
    print_result(args, {"waiting": names}, text)


def _score(row: JsonObject) -> str:
    knn = row.get("knn_train_sample")
    return "" if knn is None else f"  kNN on the training sample {100 * knn:.1f} %"
