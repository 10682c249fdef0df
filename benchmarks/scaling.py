"""Strong and weak scaling over processes on this machine, and the bytes that a step moves.

    python -m benchmarks.scaling [--steps 10] [--rounds 3]
    python -m benchmarks.scaling --sums resnet18    # gradients summed during the backward pass, and after it

SimCLR with the small encoder on 32×32 images, NT-Xent, one thread per process. Strong: a batch of
512 is shared out over 1, 2 and 4 processes; weak: 128 images each. Ratios are taken within a round.

What must move: with W processes, b images, v views, z of width d and P parameters each process
receives the others' rows and later their gradients, 2·(W−1)/W·b·v·d·4 bytes, and takes part in
the sum of the gradients, 2·(W−1)/W·P·4 bytes in a ring. What a step does move is read from the
kernel's counters of this process's own connections (Linux), so that other traffic does not count.

On paper: a step takes t_compute + bytes/bandwidth + messages·latency, nothing of it side by side.
`paper()` has the numbers that are put in; they are a GPU's data sheet, not measurements.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.multiprocessing as mp

from benchmarks._timing import Seconds, figure, limit, summary
from contrastive_core import losses, methods
from contrastive_core.base.local_processes import environment_of
from contrastive_core.base.memory import part_of
from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.recipe import Recipe
from contrastive_core.models.encoders import create_encoder
from contrastive_core.ops import collectives
from contrastive_core.train import large_batches
from contrastive_core.train.optim import create_optimizer

SIZE, VIEWS, WORLDS = 32, 2, (1, 2, 4)
STRONG, WEAK = 512, 128  # images of the whole batch, and of each process
TCP_RECEIVED = 128  # where struct tcp_info tells the bytes received (linux/tcp.h)


@dataclass(frozen=True)
class Step:
    """What one step of one process cost: seconds, bytes received, parameters, width of z, seconds of waiting for the
    sums of gradients after the backward pass."""

    seconds: float
    received: float
    parameters: int
    width: int
    waited: float = 0.0


@dataclass(frozen=True)
class Work:
    """What the processes do: images of the whole batch, steps, and whether gradients are summed during backward."""

    batch: int
    steps: int
    encoder: str = "small"
    overlaps: bool = True


def worker(rank: int, size: int, work: Work, folder: str) -> None:
    batch, steps = work.batch, work.steps
    os.environ |= environment_of(rank, size, Path(folder, "rendezvous"))
    torch.set_num_threads(1)
    world = collectives.init_process_group() if size > 1 else collectives.World()
    method = methods.create(
        "simclr",
        encoder=create_encoder(work.encoder, 3, SIZE),
        image_shape=(3, SIZE, SIZE),
        n_train=batch,
        recipe=Recipe(),
    )
    large_batches.synchronize_norms(method)
    parameters = list(method.parameters())
    buckets = large_batches.GradientBuckets(parameters)
    optimizer = create_optimizer("adamw", parameters, 1e-3, 1e-4)
    loss, generator = losses.create("nt_xent"), torch.Generator().manual_seed(rank)
    index = torch.arange(batch)[part_of(batch, (world.rank, world.size))]
    images = torch.randint(0, 256, (len(index), 3, SIZE, SIZE), dtype=torch.uint8)
    mine = Batch(images, torch.zeros_like(index), index)

    def step() -> float:
        pairs = large_batches.global_pairs(method.pairs(mine, generator), by_label=False)
        optimizer.zero_grad(set_to_none=True)
        value = large_batches.local_value(loss(pairs))
        if work.overlaps:
            buckets.start()
        value.backward()
        start = time.perf_counter()
        buckets.finish()
        waited = time.perf_counter() - start
        optimizer.step()
        return waited

    step()
    step()
    collectives.all_gather_object(None)
    before, start = received(), time.perf_counter()
    waited = sum(step() for _ in range(steps)) / steps
    seconds, moved = (time.perf_counter() - start) / steps, (received() - before) / steps
    if world.is_rank0:
        count, width = sum(p.numel() for p in parameters), method.head.out_dim
        Path(folder, "out.json").write_text(json.dumps([seconds, moved, count, width, waited]))
    collectives.all_gather_object(None)
    os._exit(0)  # gloo's threads can abort an exit by the usual way


def received() -> int:
    """Bytes that this process's TCP connections have received so far."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        if not (path := Path("/proc/self/fd", name)).exists() or not path.is_socket():
            continue
        one = socket.socket(fileno=os.dup(int(name)))
        with one:
            if one.type == socket.SOCK_STREAM and one.family in (socket.AF_INET, socket.AF_INET6):
                info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_RECEIVED + 8)
                total += struct.unpack_from("Q", info, TCP_RECEIVED)[0]
    return total


def measure(size: int, work: Work) -> Step:
    """A step in `size` processes, as the first of them saw it."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (size, work, folder), nprocs=size)
        return Step(*json.loads(Path(folder, "out.json").read_text()))


def must_move(size: int, batch: int, step: Step) -> float:
    """Bytes that each process has to receive in a step: rows and their gradients, parameters'."""
    share = 2 * (size - 1) / size
    return share * (batch * VIEWS * step.width + step.parameters) * 4


@dataclass(frozen=True)
class Gpu:
    """A data sheet and what is assumed of it."""

    flops: float = 0.4 * 989e12  # H100 SXM, bf16 dense, at 40 % of its peak
    inside: float = 450e9  # bytes/s between GPUs of a machine, one way (NVLink 4)
    outside: float = 50e9  # bytes/s between machines, for each GPU (400 Gb/s)
    latency: float = 20e-6  # s, of one message to all
    machine: int = 8  # GPUs


def paper(size: int, gpu: Gpu, each: int = 256) -> dict[str, float]:
    """A step of SimCLR with ResNet-50 (25.6 M parameters with its head, 4.1 GFLOP forward for an
    image of 224 pixels, three times that with backward) on `size` GPUs with `each` images."""
    parameters, width, norms = 25.6e6, 128, 53
    forward = 4.1e9 * each * VIEWS * 3
    scores = 2 * (each * VIEWS) * (each * VIEWS * size) * width * 3
    compute = (forward + scores) / gpu.flops
    step = Step(0, 0, int(parameters), width)
    moved = must_move(size, each * size, step) if size > 1 else 0.0
    messages = (4 * norms + 6) if size > 1 else 0  # two each way for a norm; pairs, loss, gradients
    bandwidth = gpu.inside if size <= gpu.machine else gpu.outside
    seconds = compute + moved / bandwidth + messages * gpu.latency
    return {"gpus": size, "ms": 1e3 * seconds, "mb": moved / 1e6, "efficiency": compute / seconds}


def compare_sums(encoder: str, steps: int, rounds: int) -> None:
    """Print what a step of 32 images takes on two processes, with gradients summed during backward and after it."""
    found: dict[bool, list[Step]] = {False: [], True: []}
    for _ in range(rounds):
        for overlaps, taken in found.items():
            taken.append(measure(2, Work(32, steps, encoder, overlaps)))
    for overlaps, taken in found.items():
        seconds, waited = (Seconds(x) for x in ([s.seconds for s in taken], [s.waited for s in taken]))
        print(
            f"{encoder}, sums {'during' if overlaps else 'after'} the backward pass: {1e3 * seconds:.0f} ms "
            f"a step, {1e3 * waited:.0f} ms of it wait for the sums; {taken[0].received / 1e6:.2f} MB received"
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--sums", metavar="ENCODER", help="only compare two ways to sum its gradients")
    args = options.parse_args()
    if args.sums:
        return compare_sums(args.sums, args.steps, args.rounds)
    kinds = {"strong": lambda w: STRONG, "weak": lambda w: WEAK * w}
    found: dict[tuple[str, int], list[Step]] = {}
    for _ in range(args.rounds):
        for kind, batch in kinds.items():
            for w in WORLDS:
                found.setdefault((kind, w), []).append(measure(w, Work(batch(w), args.steps)))
    for (kind, w), steps in found.items():
        batch, seconds = kinds[kind](w), Seconds([s.seconds for s in steps])
        base = Seconds([s.seconds for s in found[kind, 1]])
        gain = seconds and batch / kinds[kind](1) * base / seconds
        print(
            f"{kind:<6} {w} processes, batch {batch:>3}: {1e3 * seconds:6.0f} ms, "
            f"{batch / seconds:6.0f} images/s, {gain:.2f} times one process; "
            f"{steps[0].received / 1e6:.3f} MB received a step, "
            f"{must_move(w, batch, steps[0]) / 1e6:.3f} must be"
        )
    for size in (1, 8, 64):
        at = paper(size, Gpu())
        print(
            f"on paper, ResNet-50, 256 images a GPU, {size:>2} GPUs: {at['ms']:.1f} ms, "
            f"{at['mb']:.0f} MB a step, {100 * at['efficiency']:.0f} % of {size} times one GPU"
        )
    four = found["strong", 4][0]
    most = 1.1 * must_move(4, STRONG, four) / 1e6
    name = "bytes received in a step, 4 processes"
    lines = [limit(name, four.received / 1e6, "MB", most)]
    for kind, goal in (("strong", 2.5), ("weak", 2.5)):
        one, many = (Seconds([s.seconds for s in found[kind, w]]) for w in (1, 4))
        per_image = Seconds([s * STRONG / kinds[kind](4) for s in many.rounds])
        alone = Seconds([s * STRONG / kinds[kind](1) for s in one.rounds])
        about = f"{kind} scaling, 512 images by 4 processes"
        lines.append(figure(about, per_image, "one process", alone, goal))
    summary("scaling", lines)


if __name__ == "__main__":
    main()
