"""Commands that train: `train` starts or resumes a run, `change` edits settings of a running run and writes its changes
as a schedule, `branch` continues a run from a saved epoch, and `advise` searches for settings."""

import dataclasses
import re
import shlex
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from contrastive_core import runs
from contrastive_core.advice import search
from contrastive_core.advice.candidates import AdviceRequest, plan_advice
from contrastive_core.advice.first_look import in_words, look
from contrastive_core.advice.plan import CRITERION, Answer, AnswerRow
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.storage import write_bytes
from contrastive_core.cli.command_io import Terminal, counted, out_path, print_note, print_result, progress_of
from contrastive_core.data import datasets
from contrastive_core.engine import queue, training
from contrastive_core.engine.queue import wait_for_device
from contrastive_core.exchange import checkpoint_import
from contrastive_core.exchange.checkpoint_import import create_run, open_checkpoint
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World
from contrastive_core.runs import changes
from contrastive_core.runs.changes import read_schedule
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import OPTIONS, TrainConfig, from_dict, usual_epochs, with_settings
from contrastive_core.train import loop
from contrastive_core.train.changes import branch as branch_off
from contrastive_core.train.changes import live_settings_of
from contrastive_core.train.settings import with_cache, with_image_size
from contrastive_core.train.setup import TrainSetup, inherit_encoder, manifest_of, prepare


def train(args: Namespace) -> None:
    """Train a new run or resume one. In a group of processes, only the first one writes the run."""
    with collectives.process_group(args.device) as world, progress_of(args, speaks=world.is_rank0) as on_progress:
        setup, run = _setup_and_run(args, world, on_progress)
        for note in (setup.dataset.left_out, *setup.notes):
            if world.is_rank0 and note:
                print_note(note)
        epochs = setup.config.epochs
        steps = setup.method.total_steps // max(1, epochs)
        report = _Report(epochs, steps, on_progress, is_quiet=args.json or not world.is_rank0)
        report.run = run
        status = loop.train(setup, run, args.resume, report)
    if world.is_rank0:
        if (ending := run.status().get("note")) and ending != report.note:
            print_note(ending)
        lines = (line for line in reversed(run.metrics()) if "knn_train_sample" in line or "alignment" in line)
        earlier: dict[str, float | None] = next(lines, {})  # of the last scored epoch before this command
        record = {"run": run.name, "status": status, **(report.scores or earlier)}
        print_result(args, record, f"{run.name}: {status}")


def _setup_and_run(args: Namespace, world: World, on_progress: OnProgress) -> tuple[TrainSetup, Run]:
    """Return the prepared training and its run, identical in all processes."""

    def read_settings() -> tuple[TrainConfig, Run | None, datasets.Listings | None] | None:
        if not world.is_rank0:
            return None
        config, run = _config_and_run(args, on_progress)
        if run is not None or not datasets.is_files(config.dataset):
            return config, run, None
        listings = datasets.listings_of(config.dataset)
        return with_cache(with_image_size(config, listings), listings), run, listings

    chosen = collectives.raise_together(read_settings, patient=True)
    listings = chosen[2] if chosen else None  # of a folder, on the process that chose the image size
    config, run = collectives.broadcast_object(chosen and chosen[:2])

    def load() -> datasets.Dataset | None:  # one process of each machine; the others wait for it
        if world.local_rank:
            return None
        return datasets.of_config(config.to_dict(), "train", args.download, on_progress, listings=listings)

    dataset = collectives.raise_together(load, patient=True)
    setup = collectives.raise_together(lambda: prepare(config, world, dataset))
    if len(set(collectives.all_gather_object(setup.dataset.fingerprint))) > 1:
        raise ValueError(f"{config.dataset} is not the same on all machines; copy it anew")

    def create() -> Run | None:
        if not world.is_rank0:
            return None
        hidden = ArgumentParser(add_help=False)  # of the command line to repeat
        hidden.add_argument("--progress")
        words = hidden.parse_known_args(sys.argv[1:])[1]
        about = manifest_of(setup, shlex.join(["contrastive-lab", *words]))
        if args.schedule:
            about["schedule"] = read_schedule(args.schedule, live_settings_of(setup.config.to_dict()))
        name = args.run or runs.free_name(runs.stem_of(config.method, config.dataset, config.seed, args.set))
        return runs.create(name, setup.config.to_dict(), setup.dataset.fingerprint, **about)

    return setup, run or collectives.broadcast_object(collectives.raise_together(create))


def _config_and_run(args: Namespace, on_progress: OnProgress) -> tuple[TrainConfig, Run | None]:
    """Return the settings, and the run if it exists (resumed, or queued by the app). Raises BadSetting."""
    if args.run:
        runs.checked_name(args.run) if args.resume else runs.new_name(args.run)
    if not args.resume:
        return config_of(args, on_progress), None
    if not args.run:
        raise BadSetting("--resume needs --run NAME, the run to continue")
    if args.schedule:
        raise BadSetting(N_("--schedule is for a new run; a run that was stopped keeps its own"))
    run = runs.load(args.run)
    recipe = run.config.get("training_recipe") or "short"  # of runs that precede this setting
    config = from_dict({**run.config, "training_recipe": recipe})
    if args.device != "auto":
        config = dataclasses.replace(config, device=args.device)
    return with_settings(config, args.set), run


def config_of(args: Namespace, on_progress: OnProgress = ignore_progress) -> TrainConfig:
    """Return the settings of a new run. A run given by `start` supplies the encoder and its settings unless
    they are set. Waits while that run is being imported. Raises BadSetting, NoSuchRun."""
    options = [f"{name}={value}" for name in OPTIONS if (value := getattr(args, name)) is not None]
    given = [*options, *args.set]
    config = with_settings(TrainConfig(device=args.device), given)
    if not any(line.startswith("epochs=") for line in given):
        is_start = bool(config.start or args.weights)
        epochs = usual_epochs(config.method, config.dataset, config.encoder, is_start)
        config = dataclasses.replace(config, epochs=epochs)
    if args.weights:
        if config.start:
            raise BadSetting(N_("--weights and --start both name where to start from: give one of them"))
        if args.encoder and checkpoint_import.is_model(args.encoder):
            opening = checkpoint_import.open_model(checkpoint_import.Wanted(args.encoder, args.weights), on_progress)
        else:
            opening = open_checkpoint(args.weights, args.encoder)
        with opening as it:
            stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(args.weights).stem[:40]).strip("-._")
            name = runs.free_name(f"{stem or 'file'}-weights")
            imported = create_run(it, config.dataset, name, config.root, on_progress)
        config = dataclasses.replace(config, start=imported.name)
    if not config.start:
        return config
    training.wait_for_import(config.start, on_progress)
    return inherit_encoder(config.start, config, given)


class _Report:
    """Report of a training's progress, from its lines of metrics, with one printed line per epoch."""

    def __init__(self, epochs: int, steps: int, on_progress: OnProgress, is_quiet: bool) -> None:
        """Create a report. Args: steps: steps per epoch."""
        self.epochs, self.on_progress, self.is_quiet = epochs, on_progress, is_quiet
        self.terminal = on_progress if isinstance(on_progress, Terminal) else None
        self.started, self.steps = time.monotonic(), max(1, steps)
        self.scores: dict[str, float] = {}  # the line of the last epoch
        self.run: Run | None = None
        self.note: str | None = None  # of the run, as printed last

    def __call__(self, lines: list[dict[str, float]]) -> None:
        last_step = None
        for line in lines:
            if "images_per_s" in line:
                last_step = line
                continue
            self.scores = line
            if not self.is_quiet:
                self._print_epoch(line)
        if last_step is None or (self.is_quiet and self.terminal):
            return
        if self.terminal:
            self.terminal.detail = f" loss {last_step['loss']:.4f}, {last_step['images_per_s']:,.0f} images/s"
        done = last_step["step"] / self.steps - last_step["epoch"]  # of this epoch
        part = 1.0 if last_step is not lines[-1] else min(1.0, max(0.0, done))
        text = f"epoch {last_step['epoch'] + 1} of {self.epochs}"
        self.on_progress(text, (last_step["epoch"] + part) / self.epochs)

    def _print_epoch(self, line: dict[str, float]) -> None:
        parts = [f"epoch {line['epoch']}/{self.epochs}", f"loss {line['loss']:.4f}"]
        if "knn_train_sample" in line:
            parts.append(f"kNN on the training sample {100 * line['knn_train_sample']:.1f} %")
        texts = [", ".join([*parts, f"{time.monotonic() - self.started:.0f} s"])]
        note = self.run.status().get("note") if self.run else None
        if note and note != self.note:
            texts.append(note)
        self.note = note
        for text in texts:
            self.terminal.line(text) if self.terminal else print_note(text)


# --- changes and branches ---


def change(args: Namespace) -> None:
    """Request changes to a running run, and write all changes so far. Raises: BadSetting; ValueError for other runs."""
    run = runs.load(args.run)
    if not args.settings and not args.out:
        raise BadSetting(N_("name a setting to change, such as loss.temperature=0.1, or a file with --out"))
    if args.settings:
        changes.request(run, live_settings_of(run.config), changes.settings_of(args.settings))
    if args.out:
        write_bytes(out_path(args.out, ".json"), json_bytes(changes.schedule_of(run.changes())), shared=True)
    asked = f"{run.name}: asked for {', '.join(args.settings)} at its next step\n" if args.settings else ""
    told = changes.in_words(run.changes()) or "none yet"
    print_result(args, {"run": run.name, "changes": run.changes()}, f"{asked}changes so far: {told}")


def branch(args: Namespace) -> None:
    """Create branches of a run and add them to the queue. Raises: BadSetting; ValueError if no state is saved."""
    run = runs.load(args.run)
    made = branch_off(run, *(changes.settings_of(text.split(",")) for text in args.settings), epoch=args.epoch)
    for one in made:
        queue.resume(one.name)
    names = [one.name for one in made]
    lines = [f"{one.name}: from epoch {one.status()['epoch']} of {run.name}, in the queue" for one in made]
    print_result(args, {"runs": names}, "\n".join(lines))


# --- advice ---


def advise(args: Namespace) -> None:
    """Describe the images; then, unless `--look` is set, search for settings."""
    with progress_of(args) as on_progress:
        if args.look:
            seen = look(args.dataset, args.root, args.method, args.device, on_progress)
            lines = [f"{seen.dataset}: {in_words(seen.facts)}"]
            for one in seen.suggestions:
                lines += ["", f"{one.setting}: {one.text}", f"  {one.reason}", f"  to settle it: {one.settle}"]
            return print_result(args, dataclasses.asdict(seen), "\n".join(lines))
        request = AdviceRequest(
            dataset=args.dataset,
            minutes=args.minutes,
            choose=None if args.choose is None else args.choose.split(","),
            name=args.name or "",
            method=args.method,
            epochs=args.epochs,
            root=args.root,
            device=args.device,
            references=args.reference,
            methods=[name for text in args.methods or () for name in text.split(",") if name] or None,
        )
        plan = plan_advice(request, on_progress)
    if args.dry_run:
        return print_result(args, {"plan": plan.to_dict(), "sentence": plan.sentence()}, plan.sentence())
    print_note(plan.sentence())
    print_note(f"its name is {plan.name}; the same command with --name {plan.name} goes on with it")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with progress_of(args) as on_progress:
        answer = search.advise(plan, on_progress, wait_for_device)
    print_result(args, dict(answer), text_of(answer))


def text_of(answer: Answer) -> str:
    """Format an answer for a terminal."""
    held_out, rest = (int(str(answer["plan"][name])) for name in ("held_out", "train"))
    lines = [f"{CRITERION}: {held_out:,} of {held_out + rest:,} training images, which are not used for training", ""]

    def figure(row: AnswerRow) -> str:
        """Format a mean with its interval and the interval's basis, in columns."""
        ends = row["interval"]
        interval = f" ({100 * ends[0]:.1f} to {100 * ends[1]:.1f}, over {row['basis']})" if ends else ""
        return f"{100 * row['mean']:7.1f}{interval:<40}"

    for row in answer["rows"]:
        label = f"{row['label']} (default)" if row["is_default"] else row["label"]
        took = f"{counted(row['epochs'], 'epoch')}, {row['seconds']:.0f} s, {counted(row['seeds'], 'seed')}"
        lines.append(f"{figure(row)} {label}, {took}")
    lines += [f"{figure(row)} {row['label']}" for row in answer["references"]]
    lines += [f"  failed: {label}: {why}" for label, why in answer["failed"].items()]
    lines += [f"  no time for: {', '.join(answer['untried'])}"] if answer["untried"] else []
    lines += ["", *(f"  {one}" for one in answer["comparisons"]), "", answer["verdict"]]
    return "\n".join([*lines, "", answer["test"]] if answer["test"] else lines)
