"""Which faults of a training loop `watch` names, and how often it reports one in a healthy loop.

    python -m benchmarks.loop_doctor [--seeds 5] [--only NAME ...] [--plain]

Each fault is planted in a plain PyTorch loop or in one around a loss of lightly, pytorch-metric-learning,
sentence-transformers or open_clip (`uv run --with open-clip-torch`): a small encoder on noisy views of random points,
SGD, up to 20 steps that are all recorded. A fault is named rightly if it is among at most two names three steps after
the first report. Healthy loops are the same without a fault, in float32 and under autocast to bfloat16 and to float16
with a scaled loss, with gradient clipping, accumulated batches, a queue and a learned τ. In two processes
the rows of both are gathered. The cost is the time within `step` and the backward pass, and the memory, of a checked
step over a recorded one.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

from benchmarks import _two_processes
from benchmarks._plain_loops import HEALTHY, PLANTED, VIEWS, Loop, Step, nt_xent
from benchmarks._timing import extra_memory, limit, summary
from contrastive_core import watch

STEPS, MORE = 20, 3  # steps after the first report of a fault
LARGE = 2048  # rows of the largest batch that is checked
KINDS = {"": None, ", bfloat16": torch.bfloat16, ", float16": torch.float16}


def reported(step: Step, declared: dict[str, Any], seed: int) -> tuple[list[str], int]:
    """Names that the recording reports after its steps, and after how many steps it did first."""
    loop, first = Loop(seed), 0
    with watch(f"loop-{time.monotonic_ns()}", every=1, strict=True, **declared) as w:
        for number in range(STEPS):
            step(loop, w)
            if w._recorder is not None:
                w._recorder.wait()
                if not first and w._recorder.findings.confirmed():
                    first = number + 1
            if first and number + 1 >= first + MORE:
                break
            recorder = w._recorder
    assert recorder is not None
    return recorder.findings.confirmed(), first


def recorded_steps(
    check: bool | None, images: int = 256, steps: int = STEPS, factor: float = 1.0
) -> Callable[[], tuple[float, float]]:
    """Record two rows of each image at each step. Returns milliseconds of processor time of a step, the median in the
    loop and the mean in the recorder's thread. Args: check: None for few rows, which load what it needs. factor: of the
    loss; a fault where it is not 1."""

    def work() -> tuple[float, float]:
        torch.manual_seed(0)
        spent = []
        with watch("cost", every=1, check=check is not False, **VIEWS) as w:
            assert w._recorder is not None
            clock = time.pthread_getcpuclockid(w._recorder._thread.ident or 0)
            began = time.clock_gettime(clock)
            for _ in range(steps):
                z = torch.randn(8 if check is None else images, 2, 128, requires_grad=True) * 1
                loss = factor * nt_xent(torch.cat(z.unbind(1)))
                start = time.thread_time()
                w.step(z, caller_loss=loss)
                loss.backward()
                spent.append(1e3 * (time.thread_time() - start))
                w._recorder.wait()
            return median(spent), 1e3 * (time.clock_gettime(clock) - began) / steps

    return work


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--only", nargs="+", default=[], help="faults by name; no healthy loops then")
    options.add_argument("--plain", action="store_true", help="no loops of libraries")
    args = options.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("contrastive_core.watch").setLevel(logging.ERROR)
    faults, loops = dict(PLANTED), dict(HEALTHY)
    if not args.plain:
        from benchmarks import _library_loops

        faults |= {title: (name, make(), declared) for title, (name, make, declared) in _library_loops.PLANTED.items()}
        loops |= _library_loops.HEALTHY
    faults = {title: fault for title, fault in faults.items() if not args.only or fault[0] in args.only}
    right = alarms = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONTRASTIVE_LAB_RUNS"] = folder
        for title, (name, step, declared) in faults.items():
            each = [reported(step, declared, seed) for seed in range(args.seeds)]
            hits = [name in names and len(names) <= 2 for names, _ in each]
            right += sum(hits)
            others = sorted({other for names, _ in each for other in names} - {name})
            also = f"; also {', '.join(others)}" if others else ""
            print(f"  {title:<50}{sum(hits)} of {len(hits)}, from step {max(s for _, s in each)}{also}", flush=True)
        for title, (make, declared) in {} if args.only else loops.items():
            for kind, dtype in KINDS.items():
                each = [reported(make(dtype), declared, seed) for seed in range(args.seeds)]
                alarms += sum(bool(names) for names, _ in each)
                names = sorted({name for found, _ in each for name in found})
                print(f"  {title + kind:<50}{', '.join(names) or 'silent'}", flush=True)
        planted, healthy = args.seeds * len(faults), args.seeds * len(KINDS) * len(loops)
        for title, each in {} if args.only else _two_processes.found(folder, args.seeds).items():
            name = _two_processes.FAULTS[title]
            if name:
                right, planted = right + sum(name in names and len(names) <= 2 for names in each), planted + len(each)
            else:
                alarms, healthy = alarms + sum(map(bool, each)), healthy + len(each)
            names = sorted({name for found in each for name in found})
            print(f"  {title:<50}{', '.join(names) or 'silent'}", flush=True)
        (bare_ms, bare_thread_ms), (step_ms, thread_ms) = (recorded_steps(check)() for check in (False, True))
        memory = partial(extra_memory, recorded_steps)
        large = [median(memory(check, LARGE // 2, 2, 1.7) for _ in range(3)) for check in (False, True)]
    print(f"  {right} of {planted} planted faults are named, by {args.seeds} seeds")
    print(f"  {alarms} of {healthy} healthy loops have a report")
    more = f"{step_ms - bare_ms:.2f} ms more in the loop, {thread_ms - bare_thread_ms:.0f} ms in the recorder's thread"
    print(f"  a checked step of 512 rows: {more}; of {LARGE:,} with a fault: {large[1] - large[0]:.0f} MB more")
    summary(
        "loop_doctor",
        [
            limit("planted faults that are not named", 100 * (1 - right / planted), "%", 10.0),
            limit("healthy loops with a reported fault", 100 * alarms / healthy, "%", 2.0),
            limit("a checked step, more in the training thread", step_ms - bare_ms, "ms", 1.2),
            limit("checked steps of 2,048 rows with a fault, extra memory", large[1] - large[0], "MB", 50.0),
        ],
    )


if __name__ == "__main__":
    main()
