"""The commands `sweep` and `queue`: several trainings in a row."""

from argparse import Namespace

from contrastive_core import runs
from contrastive_core.cli.command_io import counted, print_note, print_result, progress_of
from contrastive_core.engine import queue as waiting
from contrastive_core.sweeps import sweep_file
from contrastive_core.sweeps.sweep_results import verdict


def sweep(args: Namespace) -> None:
    """Train the unfinished cells of a sweep file, or score the trained ones with `--score`."""
    chosen = sweep_file.changed(sweep_file.load(args.file), args.set)
    if args.score:
        return _score_cells(args, chosen)
    from contrastive_core.sweeps.training import measure, run_sweep  # torch: `queue` is a small process

    measure(chosen)
    untrained = len({row["run"] for row in sweep_file.status(chosen) if row["status"] != "done"})
    minutes = (sweep_file.estimate(chosen) or 0) / 60
    print_note(f"{chosen.title}: {untrained} of {len(chosen.trained())} cells to train, about {minutes:.0f} min")
    if not args.dry_run:
        run_sweep(chosen, print_note, args.most)
    cells = [{k: v for k, v in r.items() if k not in ("step", "epoch")} for r in sweep_file.status(chosen)]
    lines = [f"{cell['status']:<8} {cell['run']}" for cell in cells]
    for number, cell in enumerate(cells):
        if (knn := cell.get("knn_train_sample")) is not None:
            lines[number] += f"  kNN on the training sample {100 * knn:.1f} %"
    print_result(args, {"sweep": chosen.name, "form": chosen.form, "cells": cells}, "\n".join(lines))


def _score_cells(args: Namespace, chosen: sweep_file.Sweep) -> None:
    from contrastive_core.engine.answers.scores import evaluate  # torch: `queue` is a small process

    names = sweep_file.unscored(chosen)
    with progress_of(args) as on_progress:
        for number, name in enumerate(names):
            on_progress(f"scoring {name}, {number + 1} of {len(names)}", number / len(names))
            evaluate(runs.load(name))
    rows = sweep_file.status(chosen)
    left = sum(row["status"] != "done" for row in rows)
    shown, rests_on = verdict(chosen, rows, "knn test")
    text = f"{chosen.title}: {counted(len(names), 'run')} scored now, {left} not trained yet"
    result = {"sweep": chosen.name, "scored": names, "untrained": left, "verdict": shown}
    print_result(args, result, "\n".join(filter(None, [text, f"kNN on test: {shown}" if shown else "", rests_on])))


def queue(args: Namespace) -> None:
    """Start queued runs until none is left. This process continues after the app is closed."""
    waiting.work(print_note)
    names = [job.name for job in waiting.queue()]
    text = f"still waiting: {', '.join(names)}" if names else "nothing waits"
    print_result(args, {"waiting": names}, text)
