"""A walk from an action to its formula passes few files, and none may grow: CONTRIBUTING tells them.

An action is Python code that runs in a process of its own, under a profiler, with every module imported before. A file
counts if one of its functions is called. The limits are what was reached; lower one when a walk becomes shorter.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from contrastive_core.base.storage import ROOT

PROFILER = """
import collections, importlib, json, os, pkgutil, sys, threading
roots = tuple(os.path.join(sys.argv[1], name) + os.sep for name in ("contrastive_core", "contrastive_lab", "pages"))
calls = collections.Counter()
def count(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(roots) and code.co_flags & 1:  # no module or class body
        calls[os.path.relpath(code.co_filename, sys.argv[1])] += 1
def load(package):
    for module in pkgutil.walk_packages([os.path.join(sys.argv[1], package)], package + "."):
        if not module.name.endswith(("lightning", "transformers", "__main__")):
            importlib.import_module(module.name)
def start():
    threading.setprofile(count)
    sys.setprofile(count)
def stop():
    sys.setprofile(None)
    threading.setprofile(None)
    with open(sys.argv[2], "w") as file:
        json.dump(calls, file)
"""
TRAIN = """
from contrastive_core.cli.main import main
from contrastive_core.base import storage
from contrastive_core.train import loop
storage.FRESH = -1  # else a new run's manifest is read again for the first two seconds
loop.FLUSH_SECONDS = loop.STATUS_SECONDS = 3600  # these calls grow with the time, not with the steps
small = ["--set", "encoder.width=0.25", "--set", "batch_size=16", "--set", "threads=1", "--device", "cpu"]
small += ["--set", "save_seconds=3600"]  # so does saving
start()
for epochs in "12":
    before = calls.copy()
    assert main(["train", "--dataset", "digits", "--epochs", epochs, "--run", "walk" + epochs, *small]) == 0
calls -= before + before  # what two epochs call more than one
stop()
"""
DRAG = """
load("contrastive_core")
from contrastive_core import runs
from contrastive_core.lab.batch import BatchRequest, load_batch
from contrastive_core.lab.view import compute_view
batch = load_batch(runs.load("simclr-digits"), BatchRequest("z", 32, 2, 0))
compute_view(batch, "views", "nt_xent", {"temperature": 0.5})
start()
compute_view(batch, "views", "nt_xent", {"temperature": 0.1})
stop()
"""
FILE = """
import numpy
load("contrastive_core")
from contrastive_core.cli.main import main
path = sys.argv[2] + ".npz"
rng = numpy.random.default_rng(0)
numpy.savez(path, features=rng.normal(size=(300, 8)).astype("float32"), labels=numpy.arange(300) % 3)
start()
"""
SAMPLES = FILE + 'assert main(["samples", path, "--loss", "sup_con", "--out", path + ".csv"]) == 0\nstop()'
MAP = FILE + 'assert main(["project", path, "--method", "pca", "--out", path + ".csv"]) == 0\nstop()'

COMPARE = """
load("contrastive_core")
from contrastive_core.cli.main import main
start()
assert main(["compare", "simclr-digits", "cpc-digits"]) == 0
stop()
"""


def trace(code: str, home: Path) -> Counter[str]:
    """Calls by file, relative to the repository, between `start()` and `stop()` of the code."""
    out = home / "calls.json"
    places = {"CONTRASTIVE_LAB_RUNS": str(home / "runs"), "CONTRASTIVE_LAB_HOME": str(home / "data")}
    done = subprocess.run(
        [sys.executable, "-c", f"{PROFILER}\n{code}", str(ROOT), str(out)],
        env={**os.environ, **places, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return Counter(json.loads(out.read_text()))


def files_of_text(title: str) -> set[str]:
    """The Python files that CONTRIBUTING names in one of its walks."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    walk = text[text.index(f"**{title}.**") :].split("\n\n")[0]
    return set(re.findall(r"`([a-z_/]+\.py)`", walk))


def check(title: str, files: set[str], most: int) -> None:
    """The walk is no longer than that, and those files that CONTRIBUTING names are on it."""
    assert len(files) <= most, f"{title} passes {len(files)} files, at most {most}: {' '.join(sorted(files))}"
    short = {name.removeprefix("contrastive_core/") for name in files}
    assert files_of_text(title) <= short, f"not passed: {files_of_text(title) - short}"


def test_a_training_batch(tmp_path: Path) -> None:
    """The files that are called at least once more for each step more."""
    more = trace(TRAIN, tmp_path)
    steps = more["contrastive_core/train/optim.py"] // 2  # the rate is computed, and set
    assert steps == 90
    check("One training batch", {name for name in more if more[name] >= steps}, 22)


def test_a_temperature_drag(tmp_path: Path) -> None:
    check("One temperature drag", set(trace(DRAG, tmp_path)), 12)


def test_a_table_of_samples(tmp_path: Path) -> None:
    check("One table of samples", set(trace(SAMPLES, tmp_path)), 24)


def test_vectors_to_their_map(tmp_path: Path) -> None:
    check("A file of vectors to its map", set(trace(MAP, tmp_path)), 15)


def test_a_comparison_of_two_runs(tmp_path: Path) -> None:
    check("A comparison of two runs", set(trace(COMPARE, tmp_path)), 20)
