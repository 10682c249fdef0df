"""Between two log lines no step waits for its device, whatever the method: counted on a device made for it."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import waits

ROOT = Path(__file__).resolve().parents[2]
WAITING = """
import torch
from benchmarks import _waiting_device as pretend
pretend.install()
x = pretend.on_device(torch.tensor([1.0, 0.0, 2.0]))
ways = {
    "item": lambda: float(x.sum()),
    "tolist": lambda: x.tolist(),
    "copy": lambda: (torch.arange(3).to(x.device), x.cpu()),
    "constant": lambda: (torch.tensor([1.0], device=x.device), x.new_tensor(2.0)),
    "boolean index": lambda: x[x > 0],
    "index from the CPU": lambda: x[torch.tensor([0])],
    "nonzero": lambda: x.nonzero(),
    "unique": lambda: x.unique(),
}
for name, way in ways.items():
    with pretend.waits() as found:
        way()
    print(name, sorted(line.split(" at ")[0] for line in found.elements()), sep="|")
with pretend.waits() as found:  # what does not wait
    y = torch.arange(3.0).to(x.device, non_blocking=True) * x + torch.zeros(3, device=x.device) + torch.tensor(2.0)
    torch.where(y > 1, y, 0.0).topk(2).values.sum()
print("none", sorted(found), sep="|")
try:
    x + torch.ones(3)
except RuntimeError as error:
    print("mixed", "is on the CPU" in str(error), sep="|")
"""


def python(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout


def test_a_step_between_log_lines_waits_for_nothing() -> None:
    counted = json.loads(python("-m", "benchmarks.waits", "--json"))
    assert counted == {case: {} for case in waits.cases()}


def test_what_waits_is_counted() -> None:
    lines = dict(line.split("|") for line in python("-c", WAITING).splitlines() if "|" in line)
    for kind in ("item", "tolist", "boolean index", "index from the CPU", "nonzero", "unique"):
        assert lines[kind] == str([kind])
    assert lines["copy"] == str(["copy", "copy"])
    assert lines["constant"] == str(["constant", "constant"])
    assert (lines["none"], lines["mixed"]) == ("[]", "True")
