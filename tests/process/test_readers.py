"""Thousands of hostile files over every reader, each group in a child with 1 GiB of memory.

HOSTILE_ALL=1 tries ten times as many.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contrastive_core.base.storage import ROOT

TIMES = 10 if os.environ.get("HOSTILE_ALL") else 1
# of each group: mutations of each file, its files, and their structures, at least
GROUPS = {"data_files": (120, 21, 110), "checkpoint_files": (120, 5, 20), "run_files": (60, 5, 470)}


@pytest.mark.parametrize("group", GROUPS)
def test_every_file_makes_sense_or_is_refused_with_a_sentence(
    group: str, tmp_path: Path, record_property: object
) -> None:
    """Nothing else is raised, no code of a pickle runs, nothing is written outside, and memory
    stays below the limit."""
    count, files, structures = GROUPS[group]
    folder = tmp_path / "attack"
    folder.mkdir()
    homes = {"CONTRASTIVE_LAB_HOME": f"{folder}/home", "CONTRASTIVE_LAB_RUNS": f"{folder}/runs"}
    done = subprocess.run(
        [sys.executable, "tests/helpers/hostile/attack.py", group, str(folder), str(count * TIMES)],
        cwd=ROOT,
        env={**os.environ, **homes, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    record_property("hostile", [group, outcome["refused"], outcome["read"]])  # type: ignore[operator]
    assert outcome["faults"] == []
    assert outcome["refused"] + outcome["read"] >= count * TIMES * files + structures
    assert not (tmp_path / "touched").exists()
