"""How often a training step makes the host wait for its device: every method, no GPU needed.

    python -m benchmarks.waits [--json]
    python -m benchmarks.waits --device cuda     # a GPU's own count, and its first loss beside the CPU's

On a GPU a step of a small encoder is bound by the host, which is ahead of the device as long as it never waits. One
step is taken on a pretended device that counts what would wait (`_waiting_device`): reading a number, boolean indexing,
copies. Figures are read at log lines only, which are not counted here. `--json`: the lines of code, by case.

On CUDA the driver's own warnings are counted, and both devices take the first step in float32 (no TF32) from one seed.
"""

from __future__ import annotations

import argparse
import collections
import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from benchmarks import _waiting_device as pretend
from contrastive_core import losses, methods
from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.captions import Vocabulary
from contrastive_core.data.dataset import Captions
from contrastive_core.losses import _base, _softmax
from contrastive_core.models.encoders import create_encoder
from contrastive_core.ops.collectives import World
from contrastive_core.train.large_batches import GradientBuckets
from contrastive_core.train.loop import compute_step
from contrastive_core.train.optim import create_optimizer
from contrastive_core.train.state import new_totals

__all__ = ["Case", "build", "cases", "counted", "take_step"]

SIZE, N_TRAIN, BATCH = 32, 600, 8
TILED = ", tiled"  # ends the name of a case whose loss takes its scores in tiles, as those of large batches do
VOCABULARY = Vocabulary(("red", "blue", "star", "ring"))

Case = tuple[str, str | None, int, dict[str, Any]]  # method, loss (None: its own), images, settings


def cases() -> dict[str, Case]:
    """Every method with its own loss, and what else takes another way through a step."""
    found: dict[str, Case] = {name: (name, None, BATCH, {}) for name in methods.names()}
    found |= {name + TILED: (name, None, BATCH, {}) for name in ("simclr", "sup_con", "moco_v2", "clip")}
    found |= {
        "moco_v2, symmetric": ("moco_v2", None, BATCH, {"symmetric": True}),
        "moco_v2, split norms": ("moco_v2", None, BATCH, {"bn_splits": 2}),
        "inst_disc, running mean of Z": ("inst_disc", "nce", BATCH, {"noise": 64, "log_z": "ema"}),
        "inst_disc, whole bank": ("inst_disc", "instance_softmax", BATCH, {"noise": 0}),
        "metric, lifted batches": ("metric", "lifted_structure", BATCH, {"batches": "lifted"}),
        "clip, siglip": ("clip", "siglip", BATCH, {}),
    }
    by_label = [name for name in losses.names() if losses.get(name).card.by_label]
    found |= {f"metric, {name}": ("metric", name, BATCH, {}) for name in by_label}
    return found


def counted(name: str, case: Case) -> dict[str, int]:
    """The waits of the second step of a case, by kind and line."""
    _softmax.BLOCK = 1 if name.endswith(TILED) else _base.BLOCK
    with pretend.waits():
        setup, batch = build(case, torch.device(pretend.DEVICE, 0))
        totals = new_totals(batch.images.device)
        take_step(setup, batch, totals)  # makes the optimizer's state
    with pretend.waits() as found:
        take_step(setup, batch, totals)
    return dict(found)


def counted_on_cuda(name: str, case: Case, device: torch.device) -> tuple[pretend.Waits, float]:
    """The waits of the third step of a case by line, and how far the first loss is from the CPU's, relatively."""
    _softmax.BLOCK = 1 if name.endswith(TILED) else _base.BLOCK
    on_cpu, mine = build(case, torch.device("cpu")), build(case, device)
    first = [take_step(*one, new_totals(one[1].images.device)) for one in (on_cpu, mine)]
    totals = new_totals(device)
    take_step(*mine, totals)  # cuDNN has searched
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        take_step(*mine, totals)
    torch.cuda.set_sync_debug_mode("default")
    lines = (f"{Path(w.filename).name}:{w.lineno}" for w in said if "synchroniz" in str(w.message))
    expected, found = (float(loss) for loss in first)
    return collections.Counter(lines), abs(found / expected - 1) if expected else abs(found)


def take_step(setup: Any, batch: Batch, totals: torch.Tensor) -> torch.Tensor:
    """A step between two log lines; returns its loss."""
    step = compute_step(setup, batch, looks=False)
    totals += torch.stack([step.loss, step.gradient_norm, torch.ones_like(step.gradient_norm)]).to(totals)
    setup.optimizer.step()
    setup.method.after_step(step.pairs)
    return step.loss


def build(case: Case, device: torch.device) -> tuple[Any, Batch]:
    """What a step of training asks of its setup, and a batch, on a device."""
    name, loss_name, n, knobs = case
    torch.manual_seed(0)
    cls = methods.get(name)
    encoder = create_encoder("small", 3, SIZE, width=0.25)
    shape = (3, SIZE, SIZE)
    method = methods.create(
        name, encoder=encoder, image_shape=shape, n_train=N_TRAIN, vocabulary=VOCABULARY, **knobs
    ).to(device)
    usual = loss_name in (None, cls.card.default_loss)
    method.use_loss(losses.create(loss_name or cls.card.default_loss, **(cls.card.loss_knobs if usual else {})))
    setup = SimpleNamespace(
        config=SimpleNamespace(amp=False, clip=0.0, micro_batch=None),
        method=method.train(),
        loss=method.loss,
        optimizer=create_optimizer("adamw", method.parameters(), 1e-3, 1e-4),
        generator=torch.Generator().manual_seed(0),
        device=device,
        world=World(),
        buckets=GradientBuckets(method.parameters()),
    )
    return setup, random_batch(n, device)


def random_batch(n: int, device: torch.device) -> Batch:
    """n images on a device, with captions."""
    images = torch.randint(0, 256, (n, 3, SIZE, SIZE), dtype=torch.uint8)
    tensors = (images, torch.arange(n) % 4 // 2, torch.arange(n) % N_TRAIN)
    captions = Captions(tuple(VOCABULARY.words[i % 4] for i in range(n)), np.arange(n))
    moved = map(pretend.on_device, tensors) if device.type == pretend.DEVICE else (x.to(device) for x in tensors)
    return Batch(*moved, None, captions)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true")
    options.add_argument("--device", default=pretend.DEVICE, help="pretend or cuda")
    args = options.parse_args()
    torch.set_num_threads(1)
    if args.device != pretend.DEVICE:
        for name, case in cases().items():
            lines, apart = counted_on_cuda(name, case, torch.device(args.device))
            print(f"{as_line(name, lines)}  first loss apart by {apart:.1e}", flush=True)
        return
    pretend.install()
    found = {name: counted(name, case) for name, case in cases().items()}
    if args.json:
        print(json.dumps(found))
        return
    for name, lines in found.items():
        print(as_line(name, lines))


def as_line(name: str, lines: dict[str, int]) -> str:
    where = ", ".join(f"{k} × {v}" for k, v in sorted(lines.items()))
    return f"{name:<32}{sum(lines.values()):>4}  {where}"


if __name__ == "__main__":
    main()
