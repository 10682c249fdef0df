"""A loop of two processes under DistributedDataParallel with a planted fault, and without: each has half of the batch,
and `watch(gather=True)` records both."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import Tensor
from torch.distributed.nn import all_gather, all_reduce
from torch.nn.functional import batch_norm, cross_entropy, normalize
from torch.nn.parallel import DistributedDataParallel

from benchmarks._plain_loops import TAU, VIEWS, Loop
from contrastive_core import watch

PROCESSES, STEPS = 2, 4
FAULTS = {  # by title
    "two processes": "",
    "two processes, rows of their own": "",
    "two processes, Barlow Twins standardized in each": "",
    "two processes, negatives of the other unused": "processes_apart",
    "two processes, gathered without gradient": "gathered_detached",
    "two processes, gradient off by their number": "gradient_scaled",
}


def _together(z: Tensor, with_gradient: bool = True) -> Tensor:
    """Rows of both processes."""
    if with_gradient:
        return torch.cat(all_gather(z))
    parts = [torch.zeros_like(z) for _ in range(PROCESSES)]
    dist.all_gather(parts, z.detach())
    parts[dist.get_rank()] = z
    return torch.cat(parts)


def loss_of(rows: Tensor, fault: str) -> Tensor:
    """NT-Xent of this process's rows (n, 2, d) against those of both."""
    unit = normalize(rows, dim=-1)
    every = (
        unit if fault == "processes_apart" else _together(unit, fault not in ("gathered_detached", "gradient_scaled"))
    )
    own = every if fault == "gradient_scaled" else unit  # the loss of the whole batch, in each process
    first = 0 if len(own) == len(every) else dist.get_rank() * len(own)
    a, b = own.flatten(0, 1), every.flatten(0, 1)
    at = torch.arange(len(a)) + 2 * first
    scores = (a @ b.T / TAU).index_put((torch.arange(len(a)), at), torch.tensor(-torch.inf))
    return cross_entropy(scores, at ^ 1)


def barlow_twins(rows: Tensor) -> Tensor:
    """Barlow Twins of rows (n, 2, d): each process standardizes its own, as lightly does; the correlation is of all."""
    a, b = (batch_norm(z, None, None, training=True) for z in rows.unbind(1))
    c = all_reduce(a.T @ b / len(a) / PROCESSES)
    return (c.diagonal() - 1).square().sum() + 0.005 * (c - torch.diag(c.diagonal())).square().sum()


def reported(title: str, seed: int) -> list[str]:
    """What the first process reports; nothing in the other."""
    loop, fault = Loop(seed), FAULTS[title]
    model = DistributedDataParallel(loop.model)
    torch.manual_seed(100 * seed + dist.get_rank())
    is_apart, is_barlow, recorder = title.endswith("of their own"), "Barlow" in title, None
    declared = {"loss": "barlow_twins"} if is_barlow else VIEWS
    with watch(f"processes-{time.monotonic_ns()}", every=1, gather=not is_apart, strict=True, **declared) as w:
        for _ in range(STEPS):
            index, x = loop.batch()
            rows = torch.stack(model(x).chunk(2), 1)
            loss = barlow_twins(rows) if is_barlow else loss_of(rows, "processes_apart" if is_apart else fault)
            w.step(rows, ids=index * PROCESSES + dist.get_rank(), caller_loss=loss)
            loop.learn(loss)
            recorder = w._recorder or recorder
            if recorder is not None:
                recorder.wait()
    return [] if recorder is None else recorder.findings.confirmed()


def _work(rank: int, folder: str, seeds: int) -> None:
    os.environ["CONTRASTIVE_LAB_RUNS"] = folder
    torch.set_num_threads(1)
    logging.getLogger("contrastive_core.watch").setLevel(logging.ERROR)
    store = dist.FileStore(f"{folder}/store", PROCESSES)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=PROCESSES)
    found = {title: [reported(title, seed) for seed in range(seeds)] for title in FAULTS}
    if rank == 0:
        Path(folder, "found.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def found(folder: str, seeds: int) -> dict[str, list[list[str]]]:
    """What each loop reports, by title and seed."""
    torch.multiprocessing.spawn(_work, (folder, seeds), PROCESSES)
    names: dict[str, Any] = json.loads(Path(folder, "found.json").read_text())
    return names
