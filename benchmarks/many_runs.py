"""What a page reads of thousands of runs: their manifests and accuracies, beside the bare files.

    python -m benchmarks.many_runs [--runs 2000]

The runs are copies of shipped ones without their rows. A page asks for all of them at every draw,
the strip of activity each second: what was read stays in memory until its file changes. The peer
is `json.loads` of the same files, which checks nothing, each time anew.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._timing import alternate, figure, summary

FILES = ("run.json", "status.json", "evaluation.json", "weights.safetensors")


def copies(home: Path, count: int) -> None:
    """Folders of runs, each under a name and an id of its own, written a minute ago."""
    from contrastive_core.paths import SHIPPED

    shipped = sorted(path for path in SHIPPED.iterdir() if (path / "evaluation.json").exists())
    before = time.time() - 60
    for number in range(count):
        source, target = shipped[number % len(shipped)], home / f"run-{number:05d}"
        target.mkdir(parents=True)
        for name in FILES:
            shutil.copyfile(source / name, target / name)
        manifest = json.loads((source / "run.json").read_text())
        manifest |= {"name": target.name, "id": f"{number:032x}"}
        manifest.pop("seal", None)
        (target / "run.json").write_text(json.dumps(manifest))
        for name in FILES:
            os.utime(target / name, (before, before))


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=2000)
    count = options.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "runs"
        os.environ |= {"CONTRASTIVE_LAB_RUNS": str(home), "CONTRASTIVE_LAB_HOME": folder}
        from contrastive_core import runs
        from contrastive_core.evaluation.record import read_accuracies

        copies(home, count)

        def bare(name: str) -> list[Any]:
            return [json.loads(path.read_text()) for path in home.glob(f"*/{name}")]

        def accuracies() -> list[Any]:
            return [read_accuracies(run) for run in listed]

        first = seconds(runs.list_runs)
        listed = [run for run in runs.list_runs() if not run.shipped]
        assert len(listed) == count
        of_accuracies = seconds(accuracies)
        assert all(accuracies())
        print(f"{count:,} runs, for the first time: listed in {first:.2f} s, "
              f"accuracies of all in {of_accuracies:.2f} s")  # fmt: skip
        took = alternate(
            ours=runs.list_runs, theirs=lambda: bare("run.json"), scores=accuracies,
            their_scores=lambda: bare("evaluation.json"),
        )  # fmt: skip
    peer = "json.loads of each file"
    lines = [
        figure(f"{count:,} runs listed again", took["ours"], peer, took["theirs"], 1.0),
        figure("their accuracies again", took["scores"], peer, took["their_scores"], 1.0),
    ]
    for line in lines:
        print(f"{line['name']:<32}{line['value']:8.1f} ms   {peer}: {line['peer_value']:.1f} ms")
    summary("many_runs", lines)


if __name__ == "__main__":
    main()
