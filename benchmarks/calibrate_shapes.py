"""Is `shapes` a fair test? Raw pixels and a random encoder must fall short of trained encoders.

    python -m benchmarks.calibrate_shapes [--seeds 0 1 2] [--epochs 24] [--threads 1] [--out FILE]

Trains SimCLR and SupCon with their defaults, and SimCLR once more with the crop as its only
augmentation, and scores the backbone features h of the test images by kNN (k = 20, τ 0.07). The
figures are of the last epoch. Prints a table and writes every figure as JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contrastive_core import metrics, runs
from contrastive_core.data import datasets
from contrastive_core.runs.train_config import TrainConfig, with_settings
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.train.loop import train
from contrastive_core.train.monitor import embed
from contrastive_core.train.setup import TrainSetup, prepare

CROP_ONLY = {"flip": 0.0, "jitter": 0.0, "gray": 0.0, "blur": 0.0, "rotation": 0.0, "noise": 0.0}
TRAINED: dict[str, dict[str, Any]] = {
    "SimCLR": {"method": "simclr"},
    "SupCon": {"method": "sup_con"},
    "SimCLR, crop only": {"method": "simclr", "recipe": CROP_ONLY},
}
ROWS = ("raw pixels", "random encoder", *TRAINED)


def knn(train_rows: np.ndarray, test_rows: np.ndarray, sets: tuple[Any, Any]) -> dict[str, Any]:
    """kNN accuracy in per cent with its 95 % interval."""
    rows = [
        EmbeddingSet(f.astype(np.float32), s.labels, split=s.split)
        for f, s in zip((train_rows, test_rows), sets, strict=True)
    ]
    found = metrics.create("knn", k=20)(*rows)
    assert found.interval is not None
    return {"knn": 100 * found.value, "interval": [100 * v for v in found.interval]}


def of_encoder(p: TrainSetup, sets: tuple[Any, Any]) -> dict[str, Any]:
    """kNN of an encoder's h."""
    h = [embed(p.method, torch.from_numpy(np.asarray(s.images)).to(p.device))[0] for s in sets]
    return knn(*h, sets)


def one_seed(seed: int, args: argparse.Namespace, sets: tuple[Any, Any]) -> dict[str, Any]:
    """Every row of the table for one seed."""
    flat = [s.images.reshape(len(s.labels), -1) / 255 - 0.5 for s in sets]
    base = TrainConfig(dataset="shapes", epochs=args.epochs, seed=seed, threads=args.threads, device=args.device)
    base = with_settings(base, args.set)
    rows = {"raw pixels": knn(*flat, sets), "random encoder": of_encoder(prepare(base), sets)}
    for name, settings in TRAINED.items():
        if args.only and name not in args.only:
            continue
        p = prepare(dataclasses.replace(base, **settings))
        run = runs.create(f"{settings['method']}-{len(rows)}-{seed}", p.config.to_dict())
        start = time.perf_counter()
        train(p, run, on_lines=partial(tell, name, seed))
        seconds = time.perf_counter() - start
        rows[name] = {**of_encoder(p, sets), "seconds": seconds, "config": p.config.to_dict()}
        print(f"seed {seed}, {name}: {rows[name]['knn']:.1f} %, {seconds:.0f} s", flush=True)
    return rows


def tell(name: str, seed: int, lines: list[dict[str, Any]]) -> None:
    for line in lines:
        if "knn_train_sample" in line and line["epoch"] % 4 == 0:
            print(
                f"  seed {seed}, {name}, epoch {line['epoch']}: loss {line['loss']:.3f}, "
                f"kNN on the sample {100 * line['knn_train_sample']:.1f} %, {line['seconds']:.0f} s",
                flush=True,
            )


def table(found: dict[int, dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    seeds = list(found)
    head = ["kNN (k = 20), %", *(f"seed {s}" for s in seeds), "mean", "s"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for name in ROWS:
        rows = [found[s][name] for s in seeds if name in found[s]]
        if not rows:
            continue
        values = [r["knn"] for r in rows]
        took = [r["seconds"] for r in rows if "seconds" in r]
        clock = f"{np.mean(took):.0f}" if took else ""
        lines.append([name, *(f"{v:.1f}" for v in values), f"{np.mean(values):.1f}", clock])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdicts(rows: dict[str, Any]) -> dict[str, bool]:
    """What has to hold for one seed."""
    score = {name: row["knn"] for name, row in rows.items()}
    highest = max(score["raw pixels"], score["random encoder"])
    held = {"raw <= 60": score["raw pixels"] <= 60, "random <= 45": score["random encoder"] <= 45}
    for name in ("SimCLR", "SupCon"):
        if name in score:
            held[f"{name} >= 80"] = score[name] >= 80
            held[f"{name} 20 above both"] = score[name] - highest >= 20
    if {"SimCLR", "SimCLR, crop only"} <= set(score):
        held["crop only 30 below"] = score["SimCLR"] - score["SimCLR, crop only"] >= 30
    return held


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--epochs", type=int, default=24)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--device", default="cpu")
    options.add_argument("--only", nargs="*", default=[], help="rows to train")
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options.add_argument("--out", type=Path, help="JSON file")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    sets = (datasets.load("shapes", "train"), datasets.load("shapes", "test"))
    found: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONTRASTIVE_LAB_RUNS"] = folder
        for seed in args.seeds:
            found[seed] = one_seed(seed, args, sets)
            if args.out:
                record = {"threads": args.threads, "epochs": args.epochs, "seeds": found}
                args.out.write_text(json.dumps(record, indent=1, default=str))
    print(table(found))
    for seed, rows in found.items():
        missed = [name for name, held in verdicts(rows).items() if not held]
        print(f"seed {seed}: {'everything held' if not missed else 'missed: ' + ', '.join(missed)}")


if __name__ == "__main__":
    main()
