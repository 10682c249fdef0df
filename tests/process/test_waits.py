"""Between two log lines no step waits for its device, whatever the method: counted on a device made for it."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import waits

ROOT = Path(__file__).resolve().parents[2]


def python(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout


def test_a_step_between_log_lines_waits_for_nothing() -> None:
    counted = json.loads(python("-m", "benchmarks.waits", "--json"))
    assert counted == {case: {} for case in waits.cases()}


def test_what_waits_is_counted() -> None:
    code = """
import torch
from benchmarks import _waiting_device as pretend
pretend.install()
x = pretend.on_device(torch.ones(3))
with pretend.waits() as found:
    float(x.sum()), x[x > 0], torch.arange(3).to(x.device), torch.zeros(3, device=x.device) + x
print(*sorted(line.split(" at ")[0] for line in found.elements()), sep="|")
"""
    assert python("-c", code).strip() == "boolean index|copy|item"
