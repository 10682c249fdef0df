"""Encoding, pairs and loss of every method are one graph for a compiler: nothing in them returns to Python, as CUDA
graphs and tuned kernels need. What is random (views, noise, directions) is drawn before."""

import json
import subprocess
import sys

import pytest

from contrastive_core import methods
from contrastive_core.base.storage import ROOT


@pytest.fixture(scope="module")
def graphs() -> dict[str, dict[str, object]]:
    command = [sys.executable, "-m", "tests.helpers.one_graph"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert not done.returncode, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one.pop("name"): one for one in found}


@pytest.mark.parametrize("name", methods.names())
def test_a_step_is_one_graph(name: str, graphs: dict[str, dict[str, object]]) -> None:
    assert "error" not in graphs[name], graphs[name]["error"]
    assert graphs[name]["compiled"] == pytest.approx(graphs[name]["plain"], rel=1e-4)
