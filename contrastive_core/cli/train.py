"""`train`: a new run, or an old one that goes on."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
import time
from argparse import Namespace
from typing import Any, NoReturn

from contrastive_core.cli.output import Terminal, print_note, print_result, progress_of
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.training.config import OPTIONS, TrainConfig, from_dict, with_settings

__all__ = ["config_of", "train"]


def train(args: Namespace) -> None:
    """Train a new run, or go on with an old one.

    The run's folder is the first process's: other machines need the data, not the folder.
    """
    if args.processes > 1 and "RANK" not in os.environ:
        _under_torchrun(args.processes, sys.argv[1:])
    from contrastive_core.distributed import collectives
    from contrastive_core.training import loop
    from contrastive_core.training.image_size import kept_smaller

    with (
        collectives.process_group(args.device) as world,
        progress_of(args, speaks=world.is_rank0) as on_progress,
    ):
        setup, run = _setup_and_run(args, world, on_progress)
        if world.is_rank0 and setup.dataset.left_out:
            print_note(setup.dataset.left_out)
        if world.is_rank0 and (note := kept_smaller(setup.config)):
            print_note(note)
        is_quiet = args.json or not world.is_rank0
        epochs = setup.config.epochs
        steps = setup.method.total_steps // max(1, epochs)
        report = _Report(epochs, steps, on_progress, is_quiet)
        status = loop.train(setup, run, args.resume, report)
    if world.is_rank0:
        if note := run.status().get("note"):
            print_note(note)
        record = {"run": run.name, "status": status, **_last_scores(run)}
        print_result(args, record, f"{run.name}: {status}")


def _under_torchrun(processes: int, arguments: list[str]) -> NoReturn:
    """Go on as torchrun with the same command; `--run` is an option of its own, `--name` is not."""
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    arguments = ["--name" + x[5:] if re.fullmatch("--run(=.*)?", x) else x for x in arguments]
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *start, "-m", "contrastive_core", *arguments])


def _setup_and_run(args: Namespace, world: Any, on_progress: OnProgress) -> tuple[Any, Any]:
    """All that training needs, and its run, agreed upon by all processes."""
    from contrastive_core import runs
    from contrastive_core.data import datasets
    from contrastive_core.distributed import collectives
    from contrastive_core.training.setup import prepare

    def ask() -> Any:
        return _config_and_run(args, on_progress) if world.is_rank0 else None

    first = collectives.raise_together(ask, patient=True)
    config, run = collectives.broadcast_object(first)

    def fetch() -> None:  # one process of each machine; the others wait until the data are there
        if world.local_rank == 0:
            datasets.of_config(config.to_dict(), "train", args.download, on_progress)

    collectives.raise_together(fetch, patient=True)
    setup = collectives.raise_together(lambda: prepare(config, world))
    if len(set(collectives.all_gather_object(setup.dataset.fingerprint))) > 1:
        raise ValueError(f"{config.dataset} is not the same on all machines; copy it anew")

    def create() -> Any:
        fingerprint = setup.dataset.fingerprint
        return runs.create(args.run, setup.config.to_dict(), fingerprint, **_about(setup))

    if run is None:
        run = collectives.broadcast_object(
            collectives.raise_together(lambda: create() if world.is_rank0 else None)
        )
    return setup, run


def _config_and_run(args: Namespace, on_progress: OnProgress) -> tuple[Any, Any]:
    """The settings, and the run if it exists already (resumed, or queued by the app). A run to
    start from that is being imported is waited for."""
    from contrastive_core import runs
    from contrastive_core.errors import BadSetting
    from contrastive_core.training.image_size import with_image_size

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
    return with_image_size(config_of(args, on_progress)), None


def config_of(args: Namespace, on_progress: OnProgress = ignore_progress) -> TrainConfig:
    """The settings of a new run; encoder and its settings are those of the run that it starts from,
    where they are not given. Raises BadSetting, NoSuchRun."""
    from contrastive_core.jobs import importing
    from contrastive_core.training.start_fits import started_from

    options = [f"{name}={value}" for name in OPTIONS if (value := getattr(args, name)) is not None]
    given = [*options, *args.set]
    config = with_settings(TrainConfig(device=args.device), given)
    if not config.start:
        return config
    importing.wait_for(config.start, on_progress)
    return started_from(config.start, config, given)


def _about(setup: Any) -> dict[str, Any]:
    """What else the manifest keeps: the device, the processes, and why the defaults are so."""
    from contrastive_core.device import describe

    return {
        "device": describe(setup.device),
        "processes": setup.world.size,
        "reasons": setup.reasons,
        "n_train": len(setup.dataset.labels),
        "classes": list(setup.dataset.classes),
        "left_out": setup.dataset.left_out,
        "image_shape": list(setup.dataset.images.shape[1:]),
        "command": _command(sys.argv[1:]),
    }


def _command(arguments: list[str]) -> str:
    """The command line as a person would repeat it."""
    at = arguments.index("--progress") if "--progress" in arguments else len(arguments)
    words = [*arguments[:at], *arguments[at + 2 :]]
    return " ".join(["python -m contrastive_core", *map(shlex.quote, words)])


class _Report:
    """Hears every line of metrics: says how far the training is, and writes a line an epoch."""

    def __init__(self, epochs: int, steps: int, on_progress: OnProgress, is_quiet: bool) -> None:
        """Args: steps: of an epoch."""
        self.epochs, self.on_progress, self.is_quiet = epochs, on_progress, is_quiet
        self.steps, self.started, self.longest = 0, time.monotonic(), steps

    def __call__(self, line: dict[str, Any]) -> None:
        if "images_per_s" not in line:
            self.longest, self.steps = max(self.longest, self.steps), 0
            self._write(line)
            return
        self.steps += 1
        part = min(1.0, self.steps / max(1, self.longest))
        if isinstance(self.on_progress, Terminal):
            speed = f"{line['images_per_s']:,.0f} images/s"
            self.on_progress.detail = f" loss {line['loss']:.4f}, {speed}"
        if not self.is_quiet or not isinstance(self.on_progress, Terminal):
            stage = f"epoch {line['epoch'] + 1} of {self.epochs}"
            self.on_progress(stage, (line["epoch"] + part) / self.epochs)

    def _write(self, line: dict[str, Any]) -> None:
        if self.is_quiet:
            return
        parts = [f"epoch {line['epoch']}/{self.epochs}", f"loss {line['loss']:.4f}"]
        if "knn_train_sample" in line:
            parts.append(f"kNN on the training sample {100 * line['knn_train_sample']:.1f} %")
        text = ", ".join([*parts, f"{time.monotonic() - self.started:.0f} s"])
        if isinstance(self.on_progress, Terminal):
            self.on_progress.line(text)
        else:
            print_note(text)


def _last_scores(run: Any) -> dict[str, Any]:
    """The last epoch's scores."""
    lines = [line for line in run.metrics() if "knn_train_sample" in line or "alignment" in line]
    return lines[-1] if lines else {}
