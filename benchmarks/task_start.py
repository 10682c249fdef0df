"""How soon a small task of the app is done: forked from a prepared process, and started anew.

    python -m benchmarks.task_start [--repeats 5]

The task embeds the 360 test images of a shipped run, in a child process as the app starts it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from benchmarks._timing import Seconds, figure, summary


def seconds() -> float:
    """From the start of the task to its result, which is removed again."""
    from contrastive_core import runs
    from contrastive_core.jobs import results

    task = results.embedding(runs.load("simclr-digits"), "test")
    began = time.perf_counter()
    task.start()
    while task.is_running():
        time.sleep(0.005)
    taken = time.perf_counter() - began
    if reason := task.failure():
        raise SystemExit(reason)
    for path in Path(os.environ["CONTRASTIVE_LAB_HOME"]).rglob("*.npz"):
        path.unlink()
    return taken


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=5)
    args = options.parse_args()
    from contrastive_core.jobs import fork_server

    forked, anew = [], []
    with tempfile.TemporaryDirectory() as home:
        os.environ["CONTRASTIVE_LAB_HOME"] = os.environ["CONTRASTIVE_LAB_RUNS"] = home
        for _ in range(args.repeats):
            anew.append(seconds())
            fork_server.enable()
            fork_server.prepare(after=0)
            while not fork_server.is_ready():
                time.sleep(0.02)
            forked.append(seconds())
            fork_server.disable()
            print(f"{forked[-1]:.2f} s, started anew {anew[-1]:.2f} s", flush=True)
    about = "a small task of the app, start to end"
    summary("task_start", [figure(about, Seconds(forked), "new process", Seconds(anew), 2.0, "s")])


if __name__ == "__main__":
    main()
