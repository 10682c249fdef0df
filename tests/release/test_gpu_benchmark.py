"""The command for the day a GPU is there, whole, at tiny sizes on a CPU."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import gpu


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
    sizes = (
        "--encoder small --epochs 1 --batch 8 --rows 64 --steps 2 --first-steps 1 --modes plain "
        "--repeats 1 --workers 0 --label-epochs 1 --label-batch 8"
    )
    gpu.main(["--images", str(folder), "--device", "cpu", "--out", str(out), *sizes.split()])
    table = out.read_text()
    assert table.startswith("# cpu")
    assert "Error" not in table
    for said in ("NT-Xent, 64 rows | ", "8 images, plain: kernels", "bf16 | ", "16 JPEG files", "1 epochs of 16"):
        assert said in table
    assert "| stopped and resumed, largest difference of a weight | 0  |  |  | the same run twice: 0 |" in table
    found = {cells[1].strip(): cells for cells in (line.split("|") for line in table.splitlines()) if len(cells) > 5}
    scores = [cells for work, cells in found.items() if work.endswith((": knn", ": accuracy"))]
    assert (
        len(scores) == 4
    )  # with labels and by kNN, of the files and of the recompressed ones; lightly's has ours' name
    assert all("%" in cells[2] + cells[3] for cells in scores)
    lines = [json.loads(text) for text in out.with_suffix(".jsonl").read_text().splitlines()]
    assert len(lines) == len(table.splitlines()) - 6
    assert {line["theirs"] is None for line in lines if line["work"].endswith(": knn")} == {True, False}
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
