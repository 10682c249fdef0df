"""The commands that train and look after runs. Each takes the parsed arguments.

Modules are imported by the command that needs them, so that `list` need not wait for torch.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any, NoReturn

from contrastive_core.cli.output import say

__all__ = ["do_list", "do_queue", "do_sweep", "do_train", "do_verify"]


def do_train(args: Namespace) -> None:
    """Train a new run, or go on with an old one.

    The run's folder is the first process's: other machines need the data, not the folder.
    """
    if args.processes > 1 and "RANK" not in os.environ:
        _under_torchrun(args.processes, sys.argv[1:])
    from contrastive_core.distributed import collectives
    from contrastive_core.training.loop import train

    with collectives.process_group(args.device) as world:
        prepared, run = _prepared(args, world)
        progress = Progress(prepared.config.epochs, quiet=args.json or not world.is_rank0)
        status = train(prepared, run, args.resume, progress)
        progress.close()
    if world.is_rank0:
        if note := run.status().get("note"):
            sys.stderr.write(f"{note}\n")
        say(args, {"run": run.name, "status": status, **_last(run)}, f"{run.name}: {status}")


def do_list(args: Namespace) -> None:
    """Runs, and the names that other commands take."""
    from contrastive_core import losses, methods, metrics, runs
    from contrastive_core.data import datasets

    found = [_row(run) for run in runs.list_runs()]
    names = {
        "methods": methods.names(),
        "losses": losses.names(),
        "metrics": metrics.names(),
        "datasets": datasets.dataset_names(),
    }
    lines = [f"{what}: {', '.join(entries)}" for what, entries in names.items()]
    width = max([len(r["run"]) for r in found], default=0)
    lines += [
        f"{r['run']:<{width}}  {r['status']:<8} {r['method']} on {r['dataset']}"
        f"{'  (shipped)' if r['shipped'] else ''}{'  ' + r['reason'] if r['reason'] else ''}"
        for r in found
    ] or ["no runs yet: python -m contrastive_core train --method simclr --dataset digits"]
    say(args, {"runs": found, **names}, "\n".join(lines))


def do_sweep(args: Namespace) -> None:
    """Train the cells of a sweep file that are not done yet."""
    from contrastive_core.sweeps import runner as sweep_runner
    from contrastive_core.sweeps import spec as sweep_spec

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    found = sweep_spec.changed(sweep_spec.load(args.file), args.set)
    if args.score:
        return _score_cells(found, tell)
    if sweep_runner.estimate(found) is None:
        sweep_runner.measure(found, tell)
    left = len({row["run"] for row in sweep_runner.status(found) if row["status"] != "done"})
    about = (sweep_runner.estimate(found) or 0) / 60
    tell(f"{found.title}: {left} of {len(found.trained())} cells to train, about {about:.0f} min")
    if not args.dry_run:
        sweep_runner.run_sweep(found, tell, args.most)
    rows = sweep_runner.status(found)
    shown = [{k: v for k, v in r.items() if k not in ("step", "epoch")} for r in rows]
    lines = [f"{r['status']:<8} {r['run']}{_score(r)}" for r in shown]
    say(args, {"sweep": found.name, "form": found.form, "cells": shown}, "\n".join(lines))


def _score_cells(sweep: Any, tell: Callable[[str], None]) -> None:
    """Score the done cells' test images, for the figure."""
    from contrastive_core import runs
    from contrastive_core.evaluation.evaluate import evaluate
    from contrastive_core.sweeps import runner as sweep_runner

    names = sweep_runner.unscored(sweep)
    for number, name in enumerate(names, 1):
        tell(f"scoring {name}, {number} of {len(names)}")
        evaluate(runs.load(name), list(sweep_runner.SCORED))


def do_queue(args: Namespace) -> None:
    """Start what waits until nothing does. The app leaves this behind when it is closed."""
    from contrastive_core.jobs import queue

    queue.work(lambda text: print(text, file=sys.stderr, flush=True))
    left = [job.name for job in queue.queue()]
    say(args, {"waiting": left}, f"still waiting: {', '.join(left)}" if left else "nothing waits")


def do_verify(args: Namespace) -> int:
    """Check every file of the runs, and compute anew the figures that come with the project; 1 if
    something is damaged or a figure does not follow from the weights."""
    from contrastive_core import runs
    from contrastive_core.evaluation.reproduce import Known, deviations
    from contrastive_core.runs.verify import damage

    known: Known = {}
    chosen = [runs.load(name) for name in args.runs] or runs.list_runs()
    found = {run.name: damage(run) for run in chosen}
    found |= {name: [why] for name, why in runs.damaged().items() if not args.runs}
    for run in chosen:
        if run.shipped and not args.files and not found[run.name]:
            print(f"{run.name}: computing its figures", file=sys.stderr)
            found[run.name] = deviations(run, args.device, known)
    lines = [f"{name}: {'; '.join(bad) if bad else 'whole'}" for name, bad in found.items()]
    say(args, {"runs": found}, "\n".join(lines) or "no runs yet")
    return int(any(found.values()))


# --- train's parts -----------------------------------------------------------------------------


def _under_torchrun(processes: int, given: list[str]) -> NoReturn:
    """Go on as torchrun with the same command; `--run` is an option of its own, `--name` is not."""
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    given = ["--name" + x[5:] if re.fullmatch("--run(=.*)?", x) else x for x in given]
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *start, "-m", "contrastive_core", *given])


def _prepared(args: Namespace, world: Any) -> tuple[Any, Any]:
    """All that training needs, and its run, agreed upon by all processes."""
    from contrastive_core import runs
    from contrastive_core.data import datasets
    from contrastive_core.distributed import collectives
    from contrastive_core.training.setup import prepare

    first = collectives.raise_together(lambda: _config_and_run(args) if world.is_rank0 else None)
    config, run = collectives.broadcast_object(first)

    def fetch() -> None:  # one process of each machine; the others wait until the data are there
        if world.local_rank == 0:
            datasets.load(config.dataset, "train", config.root, args.download)

    collectives.raise_together(fetch)
    prepared = collectives.raise_together(lambda: prepare(config, world))
    if len(set(collectives.all_gather_object(prepared.dataset.fingerprint))) > 1:
        raise ValueError(f"{config.dataset} is not the same on all machines; copy it anew")

    def create() -> Any:
        fingerprint = prepared.dataset.fingerprint
        return runs.create(args.run, prepared.config.to_dict(), fingerprint, **_more(prepared))

    if run is None:
        run = collectives.broadcast_object(
            collectives.raise_together(lambda: create() if world.is_rank0 else None)
        )
    return prepared, run


def _config_and_run(args: Namespace) -> tuple[Any, Any]:
    """The settings, and the run if it exists already (resumed, or queued by the app)."""
    from contrastive_core import runs
    from contrastive_core.errors import BadSetting
    from contrastive_core.training.config import TrainConfig, from_dict, with_settings

    if args.run:
        runs.checked_name(args.run)
    if args.resume:
        if not args.run:
            raise BadSetting("--resume needs --run NAME, the run to go on with")
        run = runs.load(args.run)
        config = from_dict(run.manifest["config"])
        if args.device != "auto":
            config = dataclasses.replace(config, device=args.device)
        return with_settings(config, args.set), run
    named = ("method", "dataset", "epochs", "seed", "loss", "encoder", "exclude", "relabel", "root")
    given = {k: getattr(args, k) for k in named if getattr(args, k) is not None}
    return with_settings(TrainConfig(**given, device=args.device), args.set), None


def _more(p: Any) -> dict[str, Any]:
    """What else the manifest tells: the device, the processes, and why the defaults are so."""
    from contrastive_core.device import describe

    command = " ".join(["python -m contrastive_core", *map(shlex.quote, sys.argv[1:])])
    return {
        "device": describe(p.device),
        "processes": p.world.size,
        "reasons": p.reasons,
        "n_train": len(p.dataset.labels),
        "classes": list(p.dataset.classes),
        "image_shape": list(p.dataset.images.shape[1:]),
        "command": command,
    }


class Progress:
    """Draws where training is on standard error: a bar on a terminal, else a line per epoch."""

    def __init__(self, epochs: int, quiet: bool) -> None:
        self.epochs, self.quiet, self.bar = epochs, quiet, sys.stderr.isatty()
        self.drawn, self.started = 0.0, time.monotonic()

    def __call__(self, line: dict[str, Any]) -> None:
        of_epoch = "images_per_s" not in line
        now = time.monotonic()
        if self.quiet or (not of_epoch and (not self.bar or now - self.drawn < 0.1)):
            return
        self.drawn = now
        done = line["epoch"] if of_epoch else line["epoch"] + 1
        parts = [f"epoch {done}/{self.epochs}", f"loss {line['loss']:.4f}"]
        if "knn" in line:
            parts.append(f"kNN {100 * line['knn']:.1f} %")
        if not of_epoch:
            parts.append(f"{line['images_per_s']:,.0f} images/s")
        parts.append(f"{now - self.started:.0f} s")
        text = ", ".join(parts)
        if self.bar:
            filled = round(20 * done / self.epochs)
            text = f"\r\033[K{'█' * filled}{'░' * (20 - filled)} {text}"
        sys.stderr.write(text + ("\n" if of_epoch or not self.bar else ""))
        sys.stderr.flush()

    def close(self) -> None:
        if self.bar and not self.quiet:
            sys.stderr.write("\r\033[K")


def _last(run: Any) -> dict[str, Any]:
    """The last epoch's scores."""
    lines = [line for line in run.metrics() if "knn" in line or "alignment" in line]
    return lines[-1] if lines else {}


def _score(row: dict[str, Any]) -> str:
    return f"  kNN within train {100 * row['knn']:.1f} %" if "knn" in row else ""


def _row(run: Any) -> dict[str, Any]:
    config, status = run.manifest.get("config", {}), run.status()
    return {
        "run": run.name,
        "status": status.get("status", ""),
        "reason": status.get("reason", ""),
        "method": config.get("method", run.manifest.get("method", "")),
        "dataset": config.get("dataset", run.manifest.get("dataset", "")),
        "shipped": run.shipped,
    }
