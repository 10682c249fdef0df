"""Files of a folder that are left out: counted, with the reason, wherever the folder is used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.cli import analyses
from contrastive_core.cli.main import main
from contrastive_core.data import datasets
from contrastive_core.jobs import process
from contrastive_core.paths import ROOT

SMALL = ["batch_size=8", "sample=16", "encoder.width=0.25", "recipe.crop=0"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Two classes, two links and a file that is no picture."""
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        for number in range(24):
            path = tmp_path / "images" / split / "ab"[number % 2] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(path)
    (tmp_path / "images/train/a/link.png").symlink_to(tmp_path / "images/train/b/1.png")
    (tmp_path / "images/train/c").symlink_to(tmp_path / "images/train/b")
    (tmp_path / "images/train/b/torn\x1b[31m.png").write_bytes(b"no")
    return f"folder:{tmp_path / 'images'}"


def test_the_sentence_counts_each_reason(folder: str) -> None:
    text = datasets.load(folder, "train").left_out
    assert text.startswith("3 files were left out of folder:")
    assert "2 for this: a link, which is followed only where CONTRASTIVE_LAB_FOLLOW_LINKS" in text
    assert "1 for this: no picture in one of the formats" in text
    assert text.isprintable()
    assert datasets.load(folder, "test").left_out == ""


def test_commands_and_pages_say_it(folder: str, capsys, monkeypatch) -> None:
    assert main(["decode", folder]) == 0
    assert "3 files were left out" in capsys.readouterr().out
    assert main(["decode", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"].startswith("3 files")
    setting = [part for value in SMALL for part in ("--set", value)]
    train = ["train", "--dataset", folder, "--run", "r", "--epochs", "1", "--device", "cpu"]
    assert main([*train, *setting]) == 0
    assert capsys.readouterr().err.count("3 files were left out") == 1
    for split, count in (("train", 1), ("test", 0)):
        assert main(["embed", "r", "--split", split, "--device", "cpu"]) == 0
        assert capsys.readouterr().err.count("files were left out") == count
        assert main(["samples", "r", "--split", split, "--device", "cpu"]) == 0
        assert capsys.readouterr().err.count("files were left out") == count
    asked = {"method": "simclr", "dataset": folder, "set": []}
    assert analyses.make("views", asked).meta["left_out"].startswith("3 files")
    assert runs.load("r").manifest["left_out"].startswith("3 files")

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(process, "spawn", lambda *a, **k: None)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.query_params["run"] = "r"
    app.run()
    assert not app.exception
    assert any("3 files were left out" in c.value for c in app.caption)
    app.query_params["split"] = "train"
    app.switch_page("pages/samples.py").run()
    assert not app.exception
    assert any("3 files were left out" in c.value for c in app.caption)
