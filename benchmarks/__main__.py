"""Run the benchmarks one after the other and write benchmarks/RESULTS.md.

    python -m benchmarks [--only losses knn ...] [--report]

Each script's output and last line go to benchmarks/results/NAME.json beside the machine and the
versions; RESULTS.md is made of these files, so a part can be run again alone. `--report` only
writes the text again. What is known of a missed goal stands in missed.toml.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from contrastive_core.storage import atomic
from contrastive_core.storage.records import write_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS, REPORT = ROOT / "benchmarks/results", ROOT / "benchmarks/RESULTS.md"
NAMES = (
    "losses", "dataset_losses", "triplet", "lifted", "augment", "train_step", "digits", "knn",
    "probe", "umap", "compare", "planted_errors", "label_errors", "label_worth", "start",
    "pages", "task_start", "watch", "loss_lab", "scatter", "adviser", "images",
    "scale", "neighbors",
)  # fmt: skip
VERSIONS = (
    "torch", "torchvision", "numpy", "scikit-learn", "umap-learn", "streamlit", "lightly",
    "pytorch-metric-learning", "faiss-cpu", "kornia", "cleanlab",
)  # fmt: skip
Record = dict[str, Any]


def run(name: str) -> Record:
    """One script's output, its last line, and where and when it ran."""
    before, start = os.getloadavg()[0], time.perf_counter()
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    return {
        **json.loads(lines[-1]),
        "text": lines[:-1],
        "seconds": time.perf_counter() - start,
        "load_before": before,
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": versions(),
    }


def machine() -> str:
    model = platform.processor() or platform.machine()
    about = Path("/proc/cpuinfo")
    if about.exists():
        names = [
            x.split(":")[1].strip() for x in about.read_text().splitlines() if "model name" in x
        ]
        model = names[0] if names else model
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )


def versions() -> dict[str, str]:
    found = {}
    for name in VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def table(records: list[Record]) -> str:
    """A line for each goal: ours, the peer's, how many times as much the peer takes."""
    head = "| work | ours | peer | ratio | goal | |\n| --- | ---: | ---: | ---: | ---: | --- |"
    lines = [row(line) for record in records for line in record.get("lines", [record])]
    return "\n".join([head, *lines])


def row(line: Record) -> str:
    unit, peer = line["unit"], line["peer"]
    low, high = line.get("range", (line["ratio"], line["ratio"]))
    if peer == "limit":
        ratio, goal, theirs = "", f"≤ {number(line['peer_value'])} {unit}", ""
    else:
        spread = "" if low == high else f" ({low:.2f} to {high:.2f})"
        ratio, theirs = f"{line['ratio']:.2f}×{spread}", f"{peer} {number(line['peer_value'])}"
        goal = f"≥ {line['goal']:.2f}×" if isinstance(line["goal"], int | float) else ""
    met = "met" if line["met"] else "missed"
    return (
        f"| {line['name']} | {number(line['value'])} {unit} | {theirs} | {ratio} | {goal} | {met} |"
    )


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def report(records: list[Record]) -> str:
    """RESULTS.md: the table, then what each script printed."""
    made = "python -m benchmarks"
    text = [
        "# Benchmarks",
        "",
        f"Made by `{made}`. A ratio says how many times as long the named peer takes for the same",
        "work; both sides alternate in the same run. A goal is met only if every round meets it.",
        "",
        table(records),
        "",
        *missed(records),
    ]
    for record in records:
        where = f"{record['machine']}; {record['date']}; load before {record['load_before']:.1f}"
        packages = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
        own = [f"## {record['name']}", "", f"`python -m benchmarks.{record['name']}`, {where}."]
        text += ["", *own, f"{packages}.", "", "```", *record["text"], "```"]
    return "\n".join(text) + "\n"


def missed(records: list[Record]) -> list[str]:
    """What was missed, by how much, and why as far as it is known (missed.toml)."""
    why = tomllib.loads((ROOT / "benchmarks/missed.toml").read_text())
    found = []
    for record in records:
        lines = [line for line in record.get("lines", [record]) if not line["met"]]
        found += [f"- **{line['name']}**: {far(line)}" for line in lines]
        if lines and (known := why.get(record["name"])):
            found += ["", known, ""]
    return ["## Missed", "", *found] if found else ["Every goal was met."]


def far(line: Record) -> str:
    """By how much a goal is missed."""
    if line["peer"] == "limit":
        return f"{number(line['value'])} {line['unit']}, not {number(line['peer_value'])}"
    low, high = line.get("range", (line["ratio"], line["ratio"]))
    return f"{low:.2f} to {high:.2f} times {line['peer']}, not {line['goal']:.2f}"


def write(records: list[Record]) -> None:
    """RESULTS.md, from the records."""
    atomic.write_bytes(REPORT, report(records).encode())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    options.add_argument("--report", action="store_true", help="only write the text again")
    args = options.parse_args()
    for name in () if args.report else args.only:
        print(f"{name} …", flush=True)
        try:
            record = run(name)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            continue
        write_json(RESULTS / f"{name}.json", record)
        print("\n".join(record["text"]), flush=True)
    paths = [RESULTS / f"{name}.json" for name in NAMES]
    write([json.loads(path.read_text()) for path in paths if path.exists()])


if __name__ == "__main__":
    main()
