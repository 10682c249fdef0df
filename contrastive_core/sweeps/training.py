"""Train the cells of a sweep, one at a time, in this process; and estimate how long an epoch takes."""

import contextlib
import dataclasses
import shlex
import statistics
import threading
import time
from collections.abc import Callable

import torch

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import CannotGoOn, Locked
from contrastive_core.base.messages import N_, message, sentence
from contrastive_core.runs.train_config import TrainConfig, from_dict
from contrastive_core.sweeps.sweep_file import Cell, Row, Sweep, as_text, config_of, estimate, status, timing_path
from contrastive_core.train import loop, monitor
from contrastive_core.train.optim import set_learning_rate
from contrastive_core.train.setup import inherit_encoder, manifest_of, prepare

TIMED_STEPS = 3  # for an estimate of an epoch's time


def run_sweep(sweep: Sweep, report: Callable[[str], None] = print, most: int | None = None) -> list[Row]:
    """Train the unfinished cells, one at a time, at most `most` of them. Returns the `status`. A failed cell is
    reported and skipped. A stop request ends the sweep too."""

    def told(lines: list[dict[str, float]]) -> None:
        for line in lines:
            if "knn_train_sample" in line:
                knn = f"kNN on the training sample {100 * line['knn_train_sample']:.1f} %"
                report(f"epoch {line['epoch']}, loss {line['loss']:.4f}, {knn}")

    trained, started, cells, hours = 0, time.monotonic(), sweep.trained(), sweep.budget_hours
    for number, cell in enumerate(cells, 1):
        states = {row["run"]: row["status"] for row in status(sweep)}
        if states[cell.run] in ("done", "running"):  # the app's queue may be at it
            continue
        if hours and time.monotonic() - started > 3600 * hours:
            text = N_("the budget of {budget_hours} hours is used up; run it again to continue")
            report(message(text, budget_hours=f"{hours:g}"))
            break
        if most is not None and trained >= most:
            break
        trained += 1
        seconds = estimate(sweep)
        place = f"[{number}/{len(cells)}] {cell.run}"
        left = N_("{place}, about {minutes} min left")
        report(place if seconds is None else message(left, place=place, minutes=f"{seconds / 60:.0f}"))
        try:
            failure = train_cell(cell, on_lines=told)
        except CannotGoOn:
            report(N_("stopped; run the sweep again to continue"))
            break
        except Locked as error:
            failure = sentence(error)
        if failure:
            report(message("{run} failed: {failure}; continuing with the next cell", run=cell.run, failure=failure))
    return status(sweep)


def train_cell(cell: Cell, device: str = "auto", on_lines: loop.OnLines = lambda lines: None) -> str:
    """Train a cell, or resume it if it was stopped; a finished cell is left alone.

    Returns: why it could not be trained; "" if it is finished. Raises: CannotGoOn if it was stopped meanwhile;
        Locked if another process trains it."""
    run = None
    with contextlib.suppress(ValueError, OSError):
        run = runs.load(cell.run)
    if run is not None and run.status().get("status") == "done":
        return ""
    stop_requested = threading.Event()
    try:
        if run is not None:
            setup = prepare(from_dict(run.manifest["config"]))
            loop.train(setup, run, resume=True, on_lines=on_lines, stop_requested=stop_requested)
        else:
            config = dataclasses.replace(config_of(cell), device=device)
            if config.start:
                given = [f"{name}={as_text(value)}" for name, value in cell.settings.items()]
                config = inherit_encoder(config.start, config, given)
            setup = prepare(config)
            about = manifest_of(
                setup, shlex.join(["python", "-m", "contrastive_core", "train", "--run", cell.run, *cell.arguments()])
            )
            run = runs.create(cell.run, setup.config.to_dict(), setup.dataset.fingerprint, **about)
            loop.train(setup, run, on_lines=on_lines, stop_requested=stop_requested)
    except Locked:
        raise
    except (CannotGoOn, ValueError, OSError, RuntimeError, torch.OutOfMemoryError) as error:
        return sentence(error) or type(error).__name__
    if stop_requested.is_set():  # also as the run ended: the next one is not begun
        raise CannotGoOn("{run} was stopped; run the same command again to continue", run=cell.run)
    return ""


def measure(sweep: Sweep) -> None:
    """Time a few steps of the first cell if the duration of the sweep is unknown."""
    if estimate(sweep) is None:
        seconds = seconds_per_epoch(config_of(sweep.trained()[0]))
        json_files.write_json(timing_path(sweep), {"seconds": seconds})


def seconds_per_epoch(config: TrainConfig) -> float:
    """Estimate the seconds of an epoch and its scoring from a few steps. Raises ValueError for invalid settings."""
    setup, seconds = prepare(config), []
    setup.method.train()
    set_learning_rate(setup.optimizer, 0.0)
    batches = setup.loader.epoch(0)
    for index in batches[: TIMED_STEPS + 1]:
        started = time.perf_counter()
        output = loop.compute_step(setup, setup.loader.batch(index))
        setup.optimizer.step()
        setup.method.after_step(output.pairs)
        output.loss.item()  # so that a GPU has finished it
        seconds.append(time.perf_counter() - started)
    started = time.perf_counter()
    amp = bool(setup.config.amp)
    monitor.sample_scores(setup.method, setup.sample, monitor.embed_sample(setup.method, setup.sample, amp), amp)
    scoring = time.perf_counter() - started
    return statistics.median(seconds[1:] or seconds) * len(batches) + scoring
