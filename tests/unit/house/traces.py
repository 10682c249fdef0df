"""Traces of real calls: which files of the packages an action passes through.

An action is Python code that runs in a process of its own, under a profiler. A file counts if one of
its functions is called. Every module is imported before, so imports do not count.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from contrastive_core.base.storage import ROOT

__all__ = ["trace"]

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
