"""The command for the day a GPU is there, whole, at tiny sizes on a CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import gpu
from benchmarks._gpu_step import Event, shares


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for split, count in (("train", 8), ("test", 4)):
        for name in ("red", "blue"):
            (place := tmp_path / "images" / split / name).mkdir(parents=True)
            for i in range(count):
                color = np.array([200, 0, 0] if name == "red" else [0, 0, 200])
                pixels = color + rng.integers(0, 50, (32, 32, 3))
                Image.fromarray(pixels.astype(np.uint8)).save(place / f"{i}.jpg")
    return tmp_path / "images"


def test_every_part_gives_its_rows_on_a_cpu(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gpu.md"
    sizes = "--encoder small --epochs 1 --batch 8 --rows 64 --steps 2 --repeats 1 --workers 0 --no-compile"
    gpu.main(["--images", str(folder), "--device", "cpu", "--out", str(out), *sizes.split()])
    table = out.read_text()
    assert table.startswith("# cpu")
    assert "Error" not in table
    for said in ("NT-Xent, 64 rows | ", "8 images, plain: kernels", "bf16 | ", "16 JPEG files", "1 epochs of 16"):
        assert said in table
    assert "| stopped and resumed, largest difference of a weight | 0  |  |  | the same run twice: 0 |" in table
    found = {cells[1].strip(): cells for cells in (line.split("|") for line in table.splitlines()) if len(cells) > 5}
    scores = [cells for work, cells in found.items() if work.endswith(": knn")]
    assert len(scores) == 1
    assert 0 <= float(scores[0][2].split()[0]) <= 100
    assert table.splitlines()[-1] in capsys.readouterr().out


def test_a_part_that_fails_gives_its_reason_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    out = tmp_path / "gpu.md"
    sizes = "--only step loss --rows 64 --encoder small --steps 2"
    gpu.main(["--images", str(tmp_path / "empty"), "--device", "cpu", "--out", str(out), *sizes.split()])
    first, *others = out.read_text().splitlines()[6:]
    assert first.startswith("| step | – | ")
    assert str(tmp_path / "empty") in first
    assert len(others) == 2


def test_shares_of_a_step_are_kernels_launches_and_waits() -> None:
    events = [
        Event("conv", True, 4, 0.0, 6000.0),
        Event("aten::convolution", False, 4, 900.0, 0.0),
        Event("cudaLaunchKernel", False, 20, 400.0, 0.0),
        Event("cudaStreamSynchronize", False, 6, 1000.0, 0.0),
        Event("cudaDeviceSynchronize", False, 1, 5000.0, 0.0),
    ]
    assert shares(events, 2) == (3.0, 0.2, 0.5, 3.0)
    assert shares(events[1:2], 1).work == 0.9


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (gpu.Row("a", "ms", 2.0, "b", 5.0), "2.50×"),
        (gpu.Row("a", "images/s", 6.0, "b", 2.0), "3.00×"),
        (gpu.Row("a", "%", 90.0, "b", 91.5), "-1.5"),
        (gpu.Row("a", "ms", 2.0, "b", None, "out of memory"), "b – |  | out of memory"),
    ],
)
def test_ours_is_put_beside_the_peer(row: gpu.Row, said: str) -> None:
    assert said in gpu.line(row)
