"""One flat training loop: batch → pairs → loss → step → state, with everything written down.

A run ends as `done`, `stopped` (asked to), or `failed` (a NaN, a collapse, no memory, a full
disk), always with its reason and with the last good state to go on from.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import nn

from contrastive_core.device import autocast, memory_bytes
from contrastive_core.distributed import collectives
from contrastive_core.errors import CannotGoOn
from contrastive_core.pairs.types import Pairs
from contrastive_core.runs import Run, checkpoints
from contrastive_core.training import global_batch, monitor
from contrastive_core.training.failures import diverged, reason_of
from contrastive_core.training.metrics_log import MetricsLog, Report
from contrastive_core.training.optim import learning_rate, set_learning_rate
from contrastive_core.training.setup import Prepared
from contrastive_core.training.state import TrainPosition, capture, restore

__all__ = ["train"]

COLLAPSED = 1e-4  # uniformity above −COLLAPSED: every embedding is the same point
RANDOM = ("random.views", "random.torch")  # differ between processes
CUDA_LOOK = 10  # steps between looks at a CUDA device, each of which waits for it


def train(p: Prepared, run: Run, resume: bool = False, report: Report = lambda line: None) -> str:
    """Train until the end, a signal, or a failure; returns the run's status.

    `report` is called with every line of metrics. Raises: CannotGoOn after it has set the status
    to failed; Locked, with nothing changed, when another process trains the run.
    """
    with (
        _stop_signals() as stop,  # until the last word is written
        run.lock() if p.world.is_rank0 else nullcontext(),  # nobody sees an end without its reason
    ):
        return _train(p, run, MetricsLog(run, p.world.is_rank0, report), stop, resume)


def _train(p: Prepared, run: Run, log: MetricsLog, stop: threading.Event, resume: bool) -> str:
    """Train, and write down how it ended."""
    try:
        status = _loop(p, run, log, stop, resume)
    except (CannotGoOn, OSError, ValueError, torch.OutOfMemoryError) as error:
        reason = reason_of(error, p)
        log.failed(reason)
        raise CannotGoOn(reason) from error
    except RuntimeError as error:
        if p.world.size == 1:
            log.failed(f"{type(error).__name__}: {error}")
            raise
        log.failed("another process of the run ended; go on with --resume")
        raise CannotGoOn("another process of the run ended; go on with --resume") from error
    except BaseException as error:
        log.failed(f"{type(error).__name__}: {error}")
        raise
    log.status(status, "asked to stop; go on with --resume" if status == "stopped" else "")
    return status


def _loop(p: Prepared, run: Run, log: MetricsLog, stop: threading.Event, resume: bool) -> str:
    config, method, optimizer = p.config, p.method, p.optimizer
    # not if it was killed before its first state; the first process's machine has the files
    go_on = resume and collectives.broadcast_object(checkpoints.has_begun(run))
    place, note = _resume(p, run) if go_on else (TrainPosition(), "")
    log.start(place, config.epochs, note)
    parameters = [q for q in method.parameters() if q.requires_grad]
    steps = len(p.plan(0))
    total, warmup = steps * config.epochs, round((config.warmup or 0) * steps)
    saved, alike = time.monotonic(), 0
    method.train()
    while place.epoch < config.epochs:
        for index in p.plan(place.epoch)[place.batch :]:
            lr = learning_rate(place.step, total, config.lr or 0, config.schedule or "", warmup)
            set_learning_rate(optimizer, lr)
            batch = p.batch(index)
            with autocast(p.device, bool(config.amp)):
                pairs = method.pairs(batch, p.generator)
            pairs = global_batch.global_pairs(pairs, by_label=method.needs_labels)
            output = p.loss(pairs)
            value = global_batch.local_value(output)
            optimizer.zero_grad(set_to_none=True)
            value.backward()
            global_batch.sum_gradients(parameters)
            norm = nn.utils.clip_grad_norm_(parameters, config.clip or math.inf)
            look = p.device.type != "cuda" or place.step % CUDA_LOOK == 0
            if look:
                shown = float(collectives.all_reduce_sum(value.detach()))
                if not math.isfinite(shown) or not math.isfinite(float(norm)):
                    raise CannotGoOn(diverged(place, shown, float(norm), lr))
            optimizer.step()
            method.after_step(pairs)
            place = place.after_batch()
            log.images += len(index)
            if look:
                log.step(
                    place,
                    memory_bytes(p.device),
                    loss=shown,
                    lr=lr,
                    grad_norm=float(norm),
                    n_valid=output.n_valid,
                )
            if place.batch < steps and collectives.any_process(stop.is_set()):
                _save(p, run, log, place)
                return "stopped"
        alike = _after_epoch(p, run, log, place, pairs, alike)
        place = place.after_epoch()
        stopped = place.epoch < config.epochs and collectives.any_process(stop.is_set())
        due = time.monotonic() - saved > config.save_seconds or place.epoch == config.epochs
        if collectives.any_process(due or stopped):
            _save(p, run, log, place)
            saved = time.monotonic()
        if stopped:
            return "stopped"
    return "done"


def _after_epoch(
    p: Prepared, run: Run, log: MetricsLog, place: TrainPosition, pairs: Pairs, alike: int
) -> int:
    """Score and snapshot the fixed sample. Returns for how many epochs all has been alike."""
    if not p.world.is_rank0:
        return 0
    amp = bool(p.config.amp)
    h, z = monitor.embed(p.method, p.sample.images, amp)
    found = monitor.scores(p.method, p.sample, p.method.recipe, h, z, amp)
    log.epoch(place, {**found, **monitor.pair_similarity(pairs), **_told(p.method)})
    every, last = p.config.snapshot_every, place.epoch + 1 == p.config.epochs
    if last or (every and (place.epoch + 1) % every == 0):
        run.save_snapshot(place.epoch + 1, index=p.sample.index, h=h, z=z, labels=p.sample.labels)
    alike = alike + 1 if found.get("uniformity", -1.0) > -COLLAPSED else 0
    if p.config.collapse_patience and alike >= p.config.collapse_patience:
        raise CannotGoOn(
            f"collapsed: for {alike} epochs all embeddings have been one point; try a lower "
            "learning rate, a longer warm-up (--set warmup=5), or stronger augmentations"
        )
    return alike


def _told(method: nn.Module) -> dict[str, float]:
    """What the method itself has to tell: a learned temperature, the queue's age, …"""
    tell = getattr(method, "report", None)
    return {} if tell is None else {k: float(v) for k, v in tell().items()}


# --- saving and going on -----------------------------------------------------------------------


def _save(p: Prepared, run: Run, log: MetricsLog, place: TrainPosition) -> None:
    """Keep all that a resume needs, every process's random states, and the weights for use.

    Raises: CannotGoOn, before anything is written, when weights, queue or bank are not the same,
        bit by bit, on every process.
    """
    if names := collectives.mismatched_tensors(p.method.state_dict()):
        raise CannotGoOn(
            f"{names[0]} is no longer the same on all processes (nor are {len(names) - 1} others); "
            "go on with --resume from the last state, on machines of one kind"
        )
    tensors, plain = capture(place, p.method, p.optimizer, p.generator)
    own = {k: v for k, v in tensors.items() if k in RANDOM}
    plain |= {"world": p.world.size, "versions": _versions(p)}
    for rank, states in enumerate(collectives.all_gather_object(own)):
        tensors |= {f"rank{rank}.{k}": v for k, v in states.items()}
    if p.world.is_rank0:
        log.flush()  # first: a resume cuts lines off after the state's step, and adds none before
        checkpoints.save_state(run, tensors, plain)
        checkpoints.save_weights(run, p.method.state_dict())


def _resume(p: Prepared, run: Run) -> tuple[TrainPosition, str]:
    """Put the last state back; the place it is of, and why equality is void, if it is."""
    tensors, plain = collectives.broadcast_object(
        checkpoints.load_state(run) if p.world.is_rank0 else None
    )
    for name in RANDOM:
        tensors[name] = tensors.get(f"rank{p.world.rank}.{name}", tensors[name])
    if p.world.rank >= plain["world"]:
        tensors["random.views"] = p.generator.get_state()  # a new process: its own views
    place = restore(tensors, plain, p.method, p.optimizer, p.generator)
    reasons, damaged = [], ", ".join(plain["damaged"])
    if plain["world"] != p.world.size:
        reasons.append(f"it had {plain['world']} processes and goes on with {p.world.size}")
    if plain["versions"] != _versions(p):
        reasons.append(f"it ran on {plain['versions']} and goes on with {_versions(p)}")
    notes = [f"{damaged} is damaged; went on from the state before it"] if damaged else []
    notes += [f"not bit-equal to a run in one go: {'; '.join(reasons)}"] if reasons else []
    return place, ". ".join(notes)


def _versions(p: Prepared) -> str:
    return f"torch {torch.__version__}, {p.device.type}, {torch.get_num_threads()} threads"


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """SIGTERM and Ctrl-C ask the loop to save and stop; a second Ctrl-C ends at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def on_signal(number: int, frame: object) -> None:
        if asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.set()

    before = {n: signal.signal(n, on_signal) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
