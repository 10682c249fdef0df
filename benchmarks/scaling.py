"""Strong and weak scaling over processes on this machine, and the bytes that move in a step.

    python -m benchmarks.scaling [--steps 20] [--json]

Each process has one thread. Strong: a batch of 512 is shared out; weak: 128 images each. Cores are
shared with whatever else runs, so read the ratios. What must move in a step of b images, v views,
width d, P parameters and W processes: every process receives the others' rows and sends back their
gradients, 2·(W−1)/W·b·v·d·4 bytes, and takes part in the sum of the gradients, 2·(W−1)/W·P·4 bytes
in a ring. The ids of the rows come on top (8 bytes each, 6 columns).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import tempfile
import time
from pathlib import Path

import torch
import torch.multiprocessing as mp

from contrastive_core import distributed, losses, methods, one_batch
from contrastive_core.encoders import create_encoder
from contrastive_core.optim import create_optimizer
from contrastive_core.types import Batch
from contrastive_core.views import Recipe

SIZE, VIEWS = 32, 2


def worker(rank: int, size: int, port: int, batch: int, steps: int, folder: str) -> None:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    torch.set_num_threads(1)
    world = distributed.join() if size > 1 else distributed.World()
    method = methods.create(
        "simclr",
        encoder=create_encoder("small", 3, SIZE),
        image_shape=(3, SIZE, SIZE),
        n_train=batch,
        recipe=Recipe(),
    )
    one_batch.synchronise_norms(method)
    parameters = list(method.parameters())
    optimizer = create_optimizer("adamw", parameters, 1e-3, 1e-4)
    loss, generator = losses.create("nt_xent"), torch.Generator().manual_seed(rank)
    index = distributed.share(torch.arange(batch), world)
    images = torch.randint(0, 256, (len(index), 3, SIZE, SIZE), dtype=torch.uint8)
    mine = Batch(images, torch.zeros_like(index), index)

    def step() -> None:
        pairs = one_batch.global_pairs(method.pairs(mine, generator), by_label=False)
        optimizer.zero_grad(set_to_none=True)
        one_batch.local_value(loss(pairs)).backward()
        one_batch.sum_gradients(parameters)
        optimizer.step()

    for _ in range(3):
        step()
    distributed.everyone(None)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    seconds = (time.perf_counter() - start) / steps
    if world.first:
        count, dim = sum(p.numel() for p in parameters), method.head.out_dim
        Path(folder, "out.json").write_text(json.dumps([seconds, count, dim]))
    distributed.leave()


def measure(size: int, batch: int, steps: int) -> dict[str, float]:
    """Seconds of a step in `size` processes, images a second, and the bytes that must move."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (size, port, batch, steps, folder), nprocs=size)
        seconds, parameters, dim = json.loads(Path(folder, "out.json").read_text())
    share = 2 * (size - 1) / size
    return {
        "processes": size,
        "batch": batch,
        "seconds": seconds,
        "images_per_s": batch / seconds,
        "rows_bytes": share * batch * VIEWS * dim * 4,
        "gradient_bytes": share * parameters * 4,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--json", action="store_true")
    args = options.parse_args()
    found = {
        "strong": [measure(w, 512, args.steps) for w in (1, 2, 4)],
        "weak": [measure(w, 128 * w, args.steps) for w in (1, 2, 4)],
    }
    if args.json:
        print(json.dumps(found))
        return
    for kind, rows in found.items():
        for row in rows:
            gain = row["images_per_s"] / rows[0]["images_per_s"]
            print(
                f"{kind:<6} {row['processes']:.0f} processes, batch {row['batch']:>4.0f}: "
                f"{1e3 * row['seconds']:6.0f} ms, {row['images_per_s']:6.0f} images/s, "
                f"{gain:.2f} times one process; "
                f"{(row['rows_bytes'] + row['gradient_bytes']) / 1e6:.2f} MB a step"
            )


if __name__ == "__main__":
    main()
