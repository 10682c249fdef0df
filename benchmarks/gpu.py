"""Everything that a GPU has to show, in one command and one table.

    python -m benchmarks.gpu --images FOLDER [--device cuda] [--only PART[:SECONDS] ...] [--out gpu.md]

FOLDER holds train/CLASS/*.jpg and test/CLASS/*.jpg, CIFAR-10's for instance. Nothing else is needed. Parts (--only):

labels        ResNet-18 with labels, by a recipe whose accuracy on the original images is known: what the files cost.
resume        how far a run that was stopped and resumed is from one in one go, beside the same run a second time.
training      the method with the encoder: seconds, and kNN and linear-probe accuracy of the test images at the end.
lightly       SimCLR as lightly's benchmark on CIFAR-10 trains it, with its own network, for as many epochs.
recompressed  the parts `labels` and `training` on the images after one more JPEG file of lower quality.
step          a training step, plain, captured and compiled, its loss, and its kernels, launches and waits.
loss          NT-Xent, forward and backward, at 131,072 rows beside lightly's and pytorch-metric-learning's.
files         images per second from the JPEG files to memory, beside torchvision's ImageFolder with as many workers.
precision     the same step in bf16 and in float32.
waits         how often a step of each method makes the host wait; its first loss beside the CPU's (CUDA only).

Parts run in the order in which --only names them, each for at most its seconds. One that fails, for instance for want
of time or memory, gives one row with its reason; the others go on. Each row is also added at once to a file of JSON
lines beside the table. Without a GPU everything runs on the CPU, which a test does at tiny sizes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks import _machine, images, waits
from benchmarks._gpu_rows import Row, line, setup_of, timed
from benchmarks._gpu_step import MODES, step_shares, steps_in_a_row
from benchmarks._gpu_training import labels, lightly, recompressed_files, training
from benchmarks._timing import alternate
from benchmarks._training import synchronize
from contrastive_core import losses, pairs, runs
from contrastive_core.base import storage
from contrastive_core.base.device import choose, describe
from contrastive_core.data import datasets
from contrastive_core.runs import checkpoints
from contrastive_core.train.loop import compute_step, train
from contrastive_core.train.setup import TrainSetup

D, TAU = 128, 0.5
FIRST = 20  # steps before the timed ones


class OutOfTime(RuntimeError):
    """A part has had its seconds."""


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
    """Milliseconds of a step with its encoder as each mode has it, and what of a plain one is kernels and waits."""
    for mode in args.modes:
        setup = setup_of(args)
        name = f"step of {args.batch} images, {mode}"
        try:
            MODES[mode](setup)
            found = steps_in_a_row(setup, args.steps, args.first_steps)
        except OutOfTime:
            raise
        except RuntimeError as error:
            yield Row(name, "ms", None, note=str(error).splitlines()[0])
            continue
        yield Row(
            name, "ms", found.ms, note=f"mean loss of the last half {found.loss:.5f}, first steps {found.first:.1f} s"
        )
        shares = step_shares(step_of(setup), setup.device, min(args.steps, FIRST))
        yield Row(f"{name}: kernels", "ms", shares.work)
        yield Row(f"{name}: launches", "ms", shares.launches)
        yield Row(f"{name}: waits", "ms", shares.waits, note=f"{shares.waited:g} per step")


def precision(args: argparse.Namespace) -> Iterator[Row]:
    """A step in bf16 beside one in float32."""
    steps = {amp: step_of(setup_of(args, amp=amp)) for amp in (True, False)}
    device = choose(args.device)
    bf16, float32 = (measured(steps[amp], device, min(args.steps, FIRST))[0] for amp in (True, False))
    yield Row(f"step of {args.batch} images, bf16", "ms", bf16, "float32", float32)


def resume(args: argparse.Namespace) -> Iterator[Row]:
    """The largest difference of a weight after two epochs. Kernels need not be deterministic: a second run tells."""
    (first, _), (second, _), (resumed, setup) = (
        two_epochs(args, name, stops=name == "resumed") for name in ("first", "second", "resumed")
    )
    again, apart = (max(float((x - first[k]).abs().max()) for k, x in other.items()) for other in (second, resumed))
    yield Row("stopped and resumed, largest difference of a weight", "", apart, note=f"the same run twice: {again:.2g}")
    state = [
        (p, x) for p, of in setup.optimizer.state.items() for x in of.values() if getattr(x, "shape", 0) == p.shape
    ]
    strided = sum(p.ndim == 4 and not p.is_contiguous() for p, _ in state)
    other = sum(x.stride() != p.stride() for p, x in state)
    yield Row(
        "optimizer state laid out otherwise than its weights", "", other, note=f"{strided} of channels-last weights"
    )
    losses = [line["loss"] for line in runs.load("gpu-resumed").metrics() if "loss" in line]
    yield Row("losses that are not finite", "", sum(not np.isfinite(x) for x in losses), note=f"of {len(losses)}")


def two_epochs(args: argparse.Namespace, name: str, stops: bool) -> tuple[dict[str, Tensor], TrainSetup]:
    """A run's weights after two epochs, in float64; with `stops`, its first epoch ends with a stop."""
    setup = setup_of(args, epochs=2, save_seconds=0.0)
    run = runs.create(f"gpu-{name}", setup.config.to_dict())

    def stop(lines: list[dict[str, float]]) -> None:
        if stops and any("seconds" in line for line in lines):
            signal.raise_signal(signal.SIGTERM)

    if train(setup, run, on_lines=stop) == "stopped":
        setup = setup_of(args, epochs=2, save_seconds=0.0)
        train(setup, run, resume=True)
    return {k: x.double() for k, x in checkpoints.load_weights(run).items()}, setup


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
    "labels": labels,
    "resume": resume,
    "training": training,
    "lightly": lightly,
    "recompressed": recompressed_files,
    "step": step,
    "loss": loss,
    "files": files,
    "precision": precision,
    "waits": waits_of_methods,
}


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Each part's rows; of one that fails, its reason."""
    for name, seconds in args.only:
        start = time.perf_counter()
        try:
            with at_most(seconds):
                yield from PARTS[name](args)
        except (RuntimeError, ValueError, OSError) as error:
            yield Row(name, "", None, note=f"{type(error).__name__}: {str(error).splitlines()[0]}")
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise OutOfTime after so many seconds; 0: never."""

    def stop(number: int, frame: object) -> None:
        raise OutOfTime(f"stopped after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 10)  # again, should code that ignores exceptions have taken the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def part(text: str) -> tuple[str, int]:
    """A part's name and its seconds, from NAME or NAME:SECONDS."""
    name, _, seconds = text.partition(":")
    if name not in PARTS:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(PARTS)}")
    return name, int(seconds or 0)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--images", type=Path, required=True, help="folder of JPEG files by split and class")
    options.add_argument("--device", default="auto")
    options.add_argument("--out", type=Path, default=Path("gpu.md"), help="the table; default: gpu.md")
    options.add_argument(
        "--only", nargs="+", type=part, default=[(name, 0) for name in PARTS], metavar="PART[:SECONDS]"
    )
    options.add_argument("--method", default="simclr", help="of training, resume and step")
    options.add_argument("--recipe", default="cifar", help="training recipe; default: cifar")
    options.add_argument("--encoder", default="resnet18")
    options.add_argument("--epochs", type=int, default=200)
    options.add_argument("--batch", type=int, default=512)
    options.add_argument("--scores", nargs="+", default=["knn", "linear_probe"])
    options.add_argument("--label-epochs", type=int, default=30)
    options.add_argument("--label-batch", type=int, default=256)
    options.add_argument("--quality", type=int, default=40, help="of the files of recompressed")
    options.add_argument("--rows", type=int, default=131_072)
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--first-steps", type=int, default=FIRST, help="steps that are not timed")
    options.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES), help="of step")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--workers", type=int, default=_machine.cores())
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
            with args.out.with_suffix(".jsonl").open("a") as lines:
                lines.write(json.dumps({**row._asdict(), "at": round(time.time())}) + "\n")
            print(made[-1], flush=True)
            storage.write_bytes(args.out, ("\n".join(made) + "\n").encode())  # so far
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
