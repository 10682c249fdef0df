"""What `watch(every=50)` costs a training loop: time of its steps, and memory over many of them.

    python -m benchmarks.watch [--threads CORES] [--device cpu] [--repeats 3] [--steps 50]

The loop is plain PyTorch: 128 color images of 32×32 in two views that lie ready, the small
encoder with its head, NT-Xent, AdamW. A round is `--steps` steps bare, twice as many watched, with
labels and ids, and again as many bare, so that a machine whose pace changes slows both alike;
every 50th of those watched is recorded, not at an end, so that the recording thread's work falls
within them. Where the machine's own pace changes by more than 3 % this says little; so the time
within `step` and the recording thread's processor time are counted too: were no core free, the
loop would lose no more than both. Memory: steps of 1,024 rows as fast as they are taken, each
recorded or dropped.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time

import torch

from benchmarks._machine import cores
from benchmarks._timing import Seconds, figure, limit, resident, summary
from benchmarks._training import synchronize
from benchmarks.train_step import SIZE, TAU, model
from contrastive_core import losses, pairs, watch
from contrastive_core.recording.watch import Watch

BATCH = 128  # as most methods take by default
EVERY, AFTER = 50, 25  # steps between two that are recorded; steps left in a round after the last
WARM, RECORDED, DROPPED = 10, 100, 2000  # of memory: rounds before it is looked at, and after


class Loop:
    """Somebody's training loop."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.model = device, model(device)
        self.views = torch.randn(2 * BATCH, 3, SIZE, SIZE, device=device)
        self.labels = torch.arange(BATCH) % 10
        self.ids = torch.arange(BATCH)
        self.loss = losses.create("nt_xent", temperature=TAU)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.handing = 0.0  # seconds within `step` of the recording

    def run(self, steps: int, recording: Watch | None = None, first: int = 0) -> None:
        for step in range(first, first + steps):
            self.optimizer.zero_grad(set_to_none=True)
            z = torch.stack(self.model(self.views).chunk(2), 1)
            loss = self.loss(pairs.from_views(z)).value
            loss.backward()
            self.optimizer.step()
            if recording is not None:
                began = time.perf_counter()
                recording.step(z, labels=self.labels, ids=self.ids, step=step)
                self.handing += time.perf_counter() - began
        synchronize(self.device)


def growth() -> float:
    """Megabytes that a process grows over many recorded steps, and many more that are dropped:
    the median of the last tenth over that of the first, since buffers come and go."""
    z, ids, seen = torch.randn(512, 2, 128), torch.arange(512), []
    with watch("memory", loss="nt_xent", temperature=TAU, every=1) as recording:
        for number in range(WARM + RECORDED):
            for _ in range(DROPPED // RECORDED):
                recording.step(z, labels=ids % 10, ids=ids)
            recording._recorder.wait()
            if number >= WARM:
                seen.append(resident())
    tenth = len(seen) // 10
    return statistics.median(seen[-tenth:]) - statistics.median(seen[:tenth])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--device", default="cpu")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--steps", type=int, default=EVERY)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONTRASTIVE_LAB_RUNS"] = folder
        loop, at = Loop(torch.device(args.device)), [EVERY * 2 - AFTER]
        with watch("loop", loss="nt_xent", temperature=TAU, every=EVERY) as recording:
            loop.run(1, recording)  # the first step is recorded whatever its number

            def seconds(is_watched: bool) -> float:
                began = time.perf_counter()
                loop.run(args.steps, recording if is_watched else None, at[0])
                at[0] += args.steps * is_watched
                return time.perf_counter() - began

            seconds(True)
            clock = time.pthread_getcpuclockid(recording._recorder._thread.ident or 0)
            thread, handing = time.clock_gettime(clock), loop.handing
            without, with_it = [], []
            for _ in range(args.repeats):
                a, b, c, d = (seconds(is_watched) for is_watched in (False, True, True, False))
                without.append((a + d) / 2)
                with_it.append((b + c) / 2)
            recording._recorder.wait()
            thread, handing = time.clock_gettime(clock) - thread, loop.handing - handing
            kept = recording.omissions.note or "nothing was left out"
        most = max(0.0, growth())
    bare, taken = Seconds(without), Seconds(with_it)
    over = [100 * (b / a - 1) for a, b in zip(bare.rounds, taken.rounds, strict=True)]
    print(f"a step of {BATCH} images in two views, {args.threads} threads, {args.device}:")
    print(f"  bare     {1e3 * bare / args.steps:8.2f} ms")
    print(f"  watched  {1e3 * taken / args.steps:8.2f} ms; of the recording: {kept}")
    print("  more, by round:", ", ".join(f"{o:+.2f} %" for o in over))
    share = 100 * (thread + handing) / (2 * sum(taken.rounds))
    print(
        f"  of {2 * sum(taken.rounds):.1f} s of watched steps {1e3 * handing:.1f} ms went into "
        f"handing over, and {thread:.2f} s of processor time into recording: {share:.2f} %"
    )
    print(f"  {DROPPED:,} steps of {2 * 512:,} rows, recorded or dropped: {most:.1f} MB more")
    summary(
        "watch",
        [
            figure("training steps under watch(every=50)", taken, "bare", bare, 1 / 1.03, "s"),
            limit("time of handing over and recording, of watched steps", share, "%", 3.0),
            limit("memory over 2,000 steps, recorded or dropped", most, "MB", 32.0),
        ],
    )


if __name__ == "__main__":
    main()
