"""The table of methods at equal time: which goals it says are missed, and what stands where runs are missing."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import _methods_report
from contrastive_core.base.memory import write_npz

N = 1000


def write(folder: Path, side: str, name: str, seed: int, share: float, images: int) -> None:
    right = np.random.default_rng(seed).permutation(N) < share * N
    made = {"images": np.array(images), "seconds": np.array(10.0), "memory": np.array(80.0)} if images else {}
    write_npz(folder / f"digits--{side}--{name}--{seed}.npz", knn=right, linear_probe=right, **made)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed in range(3):
        write(tmp_path, "ours", "byol", seed, 0.80 + 0.01 * seed, 9000)
        write(tmp_path, "lightly", "byol", seed, 0.90 + 0.01 * seed, 2000)
        write(tmp_path, "ours", "vicreg", seed, 0.90 - 0.01 * seed, 3000)
        write(tmp_path, "lightly", "vicreg", seed, 0.90 + 0.01 * seed, 2000)
    write(tmp_path, "ours", "simclr", 0, 0.95, 5000)
    write(tmp_path, "reference", "raw pixels", 0, 0.97, 0)
    return tmp_path


def test_a_method_below_the_peer_and_a_slow_one_are_named(folder: Path) -> None:
    last = _methods_report.report(folder).splitlines()[-1]
    assert "kNN significantly below lightly's: BYOL;" in last
    assert "less than twice its speed: VICReg." in last


def test_one_seed_has_no_verdict_and_a_method_without_a_peer_no_difference(folder: Path) -> None:
    for path in folder.glob("*--[12].npz"):
        path.unlink()
    text = _methods_report.report(folder)
    (byol,) = [line for line in text.splitlines() if line.startswith("| BYOL")]
    assert "| -10.0 |" in byol
    assert "kNN significantly below lightly's: none;" in text
    (simclr,) = [line for line in text.splitlines() if line.startswith("| SimCLR")]
    assert "95.0 [93." in simclr
