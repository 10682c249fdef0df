"""Everything that a GPU has to show, in one command and one table.

    python -m benchmarks.gpu --images FOLDER [--device cuda] [--epochs 200] [--out gpu.md]

FOLDER holds train/CLASS/*.jpg and test/CLASS/*.jpg, CIFAR-10's for instance. Nothing else is needed. Parts (--only):

waits      how often a step of each method makes the host wait; its first loss beside the CPU's (CUDA only).
training   SimCLR with ResNet-18, beside the same encoder, batch, optimizer and augmentations as lightly's documentation
           writes the loop: seconds, and kNN and linear-probe accuracy of the test images after the last epoch.
loss       NT-Xent, forward and backward, at 131,072 rows beside lightly's and pytorch-metric-learning's.
step       a training step, plain and compiled, with its kernels, launches and waits (PyTorch's profiler).
precision  the same step in bf16 and in float32.
resume     how far a run that was stopped and resumed is from one in one go, beside the same run a second time.
files      images per second from the JPEG files to memory, beside torchvision's ImageFolder with as many workers.

A part that fails, for instance for want of memory, gives one row with its reason; the others go on. Without a GPU
everything runs on the CPU, which a test does at tiny sizes.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks import _machine, images, waits
from benchmarks._gpu_step import step_shares
from benchmarks._lightly import PeerSimCLR, peer_batches
from benchmarks._timing import alternate
from benchmarks._training import rows_of, synchronize
from contrastive_core import losses, pairs
from contrastive_core.data import datasets
from contrastive_core.device import choose, describe
from contrastive_core.evaluation.evaluate import evaluate_sets
from contrastive_core.models.encoders import create_encoder
from contrastive_core.records import runs
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.runs import checkpoints
from contrastive_core.storage import atomic
from contrastive_core.training.loop import compute_step, train
from contrastive_core.training.optim import create_optimizer, learning_rate, set_learning_rate
from contrastive_core.training.setup import TrainSetup, prepare

D, TAU = 128, 0.5
SCORES = ("knn", "linear_probe")


class Row(NamedTuple):
    """A figure of ours, and the peer's; None where there is none."""

    work: str
    unit: str
    ours: float | None
    peer: str = ""
    theirs: float | None = None
    note: str = ""


def setup_of(args: argparse.Namespace, **changed: object) -> TrainSetup:
    """What a training with this method's defaults needs."""
    config = TrainConfig(
        "simclr",
        f"folder:{args.images}",
        epochs=args.epochs,
        batch_size=args.batch,
        encoder=args.encoder,
        device=args.device,
        compile=bool(changed.pop("compile", False)),
    )
    return prepare(dataclasses.replace(config, **changed))  # type: ignore[arg-type]


# --- training ------------------------------------------------------------------------------------


def training(args: argparse.Namespace) -> Iterator[Row]:
    """Seconds and scores of ours, then of lightly's."""
    setup = setup_of(args)
    run = runs.create("gpu-simclr", setup.config.to_dict())
    seconds = timed(setup.device, lambda: train(setup, run))
    ours = scores_of(setup.method.encoder, setup)
    peer = PeerSimCLR(encoder_like(setup, args.encoder), setup.method.settings).to(setup.device)
    taken = timed(setup.device, lambda: train_peer(peer, setup, args.workers))
    theirs = scores_of(peer.backbone, setup)
    name = f"SimCLR, {args.encoder}, {setup.config.epochs} epochs of {len(setup.dataset):,} images"
    yield Row(name, "s", seconds, "lightly", taken)
    for score in SCORES:
        yield Row(f"{name}: {score}", "%", ours[score], "lightly", theirs[score])


def encoder_like(setup: TrainSetup, name: str) -> torch.nn.Module:
    torch.manual_seed(setup.config.seed)
    shape = setup.dataset.images.shape[1:]
    return create_encoder(name, shape[0], shape[1])


def train_peer(peer: PeerSimCLR, setup: TrainSetup, workers: int) -> None:
    """lightly's loop with our batch, optimizer, schedule and precision."""
    config, device = setup.config, setup.device
    optimizer = create_optimizer(config.optimizer or "", peer.parameters(), config.lr or 0, config.weight_decay or 0)
    pictures = np.asarray(setup.dataset.images)
    batches = peer_batches(pictures, setup.method.recipe, config.batch_size or 0, workers)
    steps = len(setup.loader.epoch(0)) * config.epochs
    peer.train()
    for step in range(steps):
        set_learning_rate(optimizer, learning_rate(step, steps, config.lr or 0, config.schedule or ""))
        x0, x1 = (x.to(device, non_blocking=True) for x in next(batches))
        with torch.autocast(device.type, torch.bfloat16, enabled=bool(config.amp)):
            loss = peer.loss(x0, x1, step / steps)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()


def timed(device: torch.device, work: Callable[[], object]) -> float:
    """Seconds until the device has done it."""
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def scores_of(encoder: torch.nn.Module, setup: TrainSetup) -> dict[str, float]:
    """Per cent right of the test images by h, in evaluation mode and float32."""
    train_rows = rows_of(encoder, setup.dataset, setup.device)
    test = datasets.of_config(setup.config.to_dict(), "test")
    found = evaluate_sets(SCORES, train_rows, rows_of(encoder, test, setup.device))
    return {name: 100 * float(found[name].value or 0) for name in SCORES}


# --- loss ----------------------------------------------------------------------------------------


def loss(args: argparse.Namespace) -> Iterator[Row]:
    """Milliseconds and peak memory of ours; of the peers too where their matrix fits."""
    device = choose(args.device)
    z = torch.randn(args.rows // 2, 2, D, device=device, requires_grad=True)
    name = f"NT-Xent, {args.rows:,} rows"
    mine = measured(loss_of_ours(z), device)
    for peer, make in (("lightly", loss_of_lightly), ("pytorch-metric-learning", loss_of_metric_learning)):
        theirs: tuple[float | None, float | None] = (None, None)
        reason = ""
        try:
            theirs = measured(make(z), device)
        except torch.OutOfMemoryError:
            reason = f"{peer} runs out of memory"
        yield Row(name, "ms", mine[0], peer, theirs[0], reason)
        if mine[1] is not None:
            yield Row(f"{name}, extra memory", "MB", mine[1], peer, theirs[1], reason)


def loss_of_ours(z: Tensor) -> Callable[[], object]:
    loss = losses.create("nt_xent", temperature=TAU)
    return lambda: torch.autograd.grad(loss(pairs.from_views(z)).value, z)


def loss_of_lightly(z: Tensor) -> Callable[[], object]:
    from lightly.loss import NTXentLoss

    loss = NTXentLoss(TAU)
    return lambda: torch.autograd.grad(loss(z[:, 0], z[:, 1]), z)


def loss_of_metric_learning(z: Tensor) -> Callable[[], object]:
    from pytorch_metric_learning.losses import NTXentLoss

    loss, labels = NTXentLoss(TAU), torch.arange(len(z), device=z.device).repeat_interleave(2)
    return lambda: torch.autograd.grad(loss(z.flatten(0, 1), labels), z)


def measured(work: Callable[[], object], device: torch.device, repeats: int = 5) -> tuple[float, float | None]:
    """Milliseconds of the median call after one, and the MB that it allocates at its peak (CUDA)."""
    work()
    synchronize(device)
    before = 0
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
    seconds = alternate(repeats, ours=lambda: timed(device, work))["ours"]
    extra = (torch.cuda.max_memory_allocated(device) - before) / 1e6 if device.type == "cuda" else None
    return 1e3 * seconds, extra


# --- waits, step, precision, resume, files -------------------------------------------------------


def waits_of_methods(args: argparse.Namespace) -> Iterator[Row]:
    """Waits between two log lines, and losses of the first step in float32, of every method."""
    device, cases = choose(args.device), waits.cases()
    if device.type != "cuda":
        yield Row("waits", "", None, note="only CUDA says when the host waits")
        return
    found = {name: waits.counted_on_cuda(name, case, device) for name, case in cases.items()}
    waiting = ", ".join(name for name, (lines, _) in found.items() if lines)
    total = sum(sum(lines.values()) for lines, _ in found.values())
    yield Row(f"waits of a step, {len(cases)} cases together", "", total, note=waiting)
    farthest = max(found, key=lambda name: found[name][1])
    yield Row("first loss, largest distance from the CPU's", "", found[farthest][1], note=f"relative, {farthest}")


def step_of(setup: TrainSetup) -> Callable[[], object]:
    """A step on one batch, with nothing logged."""
    batch = setup.loader.batch(setup.loader.epoch(0)[0])
    setup.method.train()

    def step() -> None:
        made = compute_step(setup, batch)
        setup.optimizer.step()
        setup.method.after_step(made.pairs)

    return step


def step(args: argparse.Namespace) -> Iterator[Row]:
    """Milliseconds of a step, and what of them is kernels, launches and waits."""
    for word, compiled in (("plain", False), ("compiled", True))[: 1 if args.no_compile else 2]:
        setup = setup_of(args, compile=compiled)
        one, name = step_of(setup), f"step of {args.batch} images, {word}"
        yield Row(name, "ms", measured(one, setup.device, args.steps)[0])
        found = step_shares(one, setup.device, args.steps)
        yield Row(f"{name}: kernels", "ms", found.work)
        yield Row(f"{name}: launches", "ms", found.launches)
        yield Row(f"{name}: waits", "ms", found.waits, note=f"{found.waited:g} per step")


def precision(args: argparse.Namespace) -> Iterator[Row]:
    """A step in bf16 beside one in float32."""
    steps = {amp: step_of(setup_of(args, amp=amp)) for amp in (True, False)}
    device = choose(args.device)
    bf16, float32 = (measured(steps[amp], device, args.steps)[0] for amp in (True, False))
    yield Row(f"step of {args.batch} images, bf16", "ms", bf16, "float32", float32)


def resume(args: argparse.Namespace) -> Iterator[Row]:
    """The largest difference of a weight after two epochs. Kernels need not be deterministic: a second run tells."""
    first, second, resumed = (
        weights_of(args, name, stops=name == "resumed") for name in ("first", "second", "resumed")
    )
    again, apart = (max(float((x - first[k]).abs().max()) for k, x in other.items()) for other in (second, resumed))
    yield Row("stopped and resumed, largest difference of a weight", "", apart, note=f"the same run twice: {again:.2g}")


def weights_of(args: argparse.Namespace, name: str, stops: bool) -> dict[str, Tensor]:
    """A run's weights after two epochs, in float64; with `stops`, its first epoch ends with a stop."""
    setup = setup_of(args, epochs=2, save_seconds=0.0)
    run = runs.create(f"gpu-{name}", setup.config.to_dict())

    def stop(lines: list[dict[str, float]]) -> None:
        if stops and any("seconds" in line for line in lines):
            signal.raise_signal(signal.SIGTERM)

    if train(setup, run, on_lines=stop) == "stopped":
        train(setup_of(args, epochs=2, save_seconds=0.0), run, resume=True)
    return {k: x.double() for k, x in checkpoints.load_weights(run).items()}


def files(args: argparse.Namespace) -> Iterator[Row]:
    """Decoding every training image once: ours with an empty cache, torchvision's with as many workers."""
    data = datasets.load(f"folder:{args.images}")
    some = images.Pictures(len(data), 0, 0, "jpg", int(data.images.shape[-1]))
    home = os.environ["CONTRASTIVE_LAB_HOME"]
    with tempfile.TemporaryDirectory() as caches:
        work = {
            "ours": images.ours(some, args.images, Path(caches)),
            "theirs": images.by_torchvision(some, args.images, args.workers),
        }
        taken = alternate(args.repeats, **work)
    os.environ["CONTRASTIVE_LAB_HOME"] = home
    name = f"{len(data):,} JPEG files of {some.side} pixels decoded"
    yield Row(name, "images/s", len(data) / taken["ours"], "torchvision", len(data) / taken["theirs"])


# --- the table -----------------------------------------------------------------------------------

PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "waits": waits_of_methods,
    "loss": loss,
    "step": step,
    "precision": precision,
    "resume": resume,
    "files": files,
    "training": training,
}


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Each part's rows; of one that fails, its reason."""
    for name in args.only:
        try:
            yield from PARTS[name](args)
        except (RuntimeError, ValueError, OSError) as error:
            yield Row(name, "", None, note=f"{type(error).__name__}: {str(error).splitlines()[0]}")


def cell(row: Row, value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g} {row.unit}"


def line(row: Row) -> str:
    """A row of the table; `ratio`: how many times as good ours is, of accuracies the difference."""
    ratio = ""
    if row.ours and row.theirs:
        if row.unit == "%":
            ratio = f"{row.ours - row.theirs:+.1f}"
        else:
            ratio = f"{row.ours / row.theirs if row.unit == 'images/s' else row.theirs / row.ours:.2f}×"
    peer = f"{row.peer} {cell(row, row.theirs)}" if row.peer else ""
    return f"| {row.work} | {cell(row, row.ours)} | {peer} | {ratio} | {row.note} |"


def arguments(argv: list[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--images", type=Path, required=True, help="folder of JPEG files by split and class")
    options.add_argument("--device", default="auto")
    options.add_argument("--out", type=Path, default=Path("gpu.md"), help="the table; default: gpu.md")
    options.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    options.add_argument("--encoder", default="resnet18")
    options.add_argument("--epochs", type=int, default=200)
    options.add_argument("--batch", type=int, default=512)
    options.add_argument("--rows", type=int, default=131_072)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--workers", type=int, default=_machine.cores())
    options.add_argument("--no-compile", action="store_true")
    args = options.parse_args(argv)
    args.images = args.images.resolve()
    return args


def main(argv: list[str] | None = None) -> None:
    args = arguments(argv)
    device = choose(args.device)
    with tempfile.TemporaryDirectory() as home:
        os.environ.setdefault("CONTRASTIVE_LAB_HOME", f"{home}/home")
        os.environ.setdefault("CONTRASTIVE_LAB_RUNS", f"{home}/runs")
        made = [f"# {describe(device)}", ""]
        made += [f"{_machine.about()}, PyTorch {torch.__version__}, {datetime.date.today()}", ""]
        made += ["| work | ours | peer | ratio | note |", "|---|---|---|---|---|"]
        for row in rows(args):
            made.append(line(row))
            print(made[-1], flush=True)
            atomic.write_bytes(args.out, ("\n".join(made) + "\n").encode())  # so far
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
