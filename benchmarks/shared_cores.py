"""Two processes at once, as an app that scores while it trains: how their threads wait.

    python -m benchmarks.shared_cores [--threads CORES] [--repeats 3]

Both processes do the same: a linear probe of 2,000 × 128 rows, eight classes, on all threads. With
the number of looks that contrastive_core sets for GNU OpenMP, and with OpenMP's own, by turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from benchmarks._machine import cores
from benchmarks._timing import Seconds, figure, summary

SETTING = "GOMP_SPINCOUNT"
OWN = "300000"  # libgomp's where nothing else is said, with as many threads as cores


def probe(threads: int) -> float:
    """Seconds of one fit."""
    import torch

    from contrastive_core.metrics.linear_probe import Logistic

    torch.set_num_threads(threads)
    draw = torch.Generator().manual_seed(0)
    target = torch.randint(0, 8, (2000,), generator=draw)
    centers = torch.randn(8, 128, generator=draw)
    mixed = torch.randn(128, 128, generator=draw) * torch.logspace(0, -2, 128)  # columns go together
    x = (0.7 * centers[target] + torch.randn(2000, 128, generator=draw)) @ mixed
    start = time.perf_counter()
    Logistic(x, target, 8).fit(1.0)
    return time.perf_counter() - start


def pair(looks: str, threads: int) -> float:
    """Seconds until both of two processes at once are done."""
    command = [sys.executable, "-m", "benchmarks.shared_cores", "--one", "--threads", str(threads)]
    environment = {**os.environ, SETTING: looks}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return max(float(p.communicate()[0]) for p in both)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.one:
        print(probe(args.threads))
        return
    ours, own = [], []
    for _ in range(args.repeats):
        ours.append(pair(os.environ[SETTING], args.threads))
        own.append(pair(OWN, args.threads))
        print(f"{ours[-1]:.2f} s, with OpenMP's own number of looks {own[-1]:.2f} s", flush=True)
    about = "a linear probe in each of two processes"
    line = figure(about, Seconds(ours), "OpenMP's own waiting", Seconds(own), 1.0, "s")
    summary("shared_cores", [line])


if __name__ == "__main__":
    main()
