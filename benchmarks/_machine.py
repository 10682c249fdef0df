"""The machine that a benchmark runs on: its processor, and how many cores this process may use."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

__all__ = ["about", "cores", "short"]

NOISE = re.compile(r"\((?:R|TM)\)|\bProcessor\b|\bCPU\b|@.*$")  # said of every processor


def cores() -> int:
    """Cores that this process may use: a `taskset` takes some away."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The processor's name as the system has it."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    return model


def about() -> str:
    """As it stands in a record: processor, cores, system, Python."""
    count = cores()
    number = f"{count} core{'' if count == 1 else 's'}"
    return f"{processor()}, {number}, {platform.system()}, Python {platform.python_version()}"


def short(machine: str) -> str:
    """Processor and cores of `about()`, as a title has it: "Intel Xeon, 2 cores"."""
    model, number = machine.split(", ")[:2]
    return f"{' '.join(NOISE.sub(' ', model).split())}, {number}"
