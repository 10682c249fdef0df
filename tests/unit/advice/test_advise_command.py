"""`advise` on the command line: real trainings of a small folder, stopped and gone on with."""

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrastive_core import runs
from contrastive_core.advice import candidates, plan, search
from contrastive_core.base.errors import CannotGoOn
from contrastive_core.cli.main import main
from contrastive_core.sweeps import training
from contrastive_core.sweeps.sweep_file import Cell


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two classes that differ; a home of runs besides."""
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    rng = np.random.default_rng(0)
    for split, count in (("train", 40), ("test", 10)):
        for label in range(2):
            place = tmp_path / "images" / split / "ab"[label]
            place.mkdir(parents=True)
            for i in range(count):
                array = rng.normal(60 + 60 * label, 40, (8, 8)).clip(0, 255).astype(np.uint8)
                Image.fromarray(array).save(place / f"{i}.png")
    return f"folder:{tmp_path / 'images'}"


def test_it_trains_judges_answers_and_goes_on(folder: str, capsys, monkeypatch) -> None:
    for module in (plan, candidates, search):  # so that little time is enough
        monkeypatch.setattr(module, "OVERHEAD", 1.0)
    asked = ["advise", folder, "--choose", "head", "--epochs", "2", "--device", "cpu"]
    assert main([*asked, "--minutes", "2", "--name", "mine", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["done"]
    assert {r["label"] for r in found["rows"]} <= {"nonlinear head", "linear head", "no head"}
    assert len(found["rows"]) >= 2
    assert found["test"].startswith("On the test images (evaluation number 1), by kNN: nonlinear head ")
    name = found["rows"][0]["runs"][0]
    assert runs.load(name).status()["status"] == "done"
    assert runs.load(name).manifest["n_train"] == 64  # a fifth of 80 is set aside
    scored = sorted(p.name for p in (plan.folder_of("mine") / "scores").glob("*.json"))
    assert main([*asked, "--minutes", "2", "--name", "mine", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["verdict"] == found["verdict"]
    assert again["rows"] == found["rows"]
    assert again["references"] == found["references"] != []
    assert scored == sorted(p.name for p in (plan.folder_of("mine") / "scores").glob("*.json"))
    assert main(["advise", "digits", "--name", "mine"]) == 2
    assert "mine was planned with dataset folder:" in capsys.readouterr().err


def test_a_stop_that_comes_as_a_try_ends_is_heard(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The try is whole; the adviser ends all the same."""
    trained: list[str] = []

    def train(setup, run, resume=False, on_lines=None, stop_requested=None) -> str:
        with training.loop.stop_signals(stop_requested):
            signal.raise_signal(signal.SIGTERM)  # too late: the last epoch is done
        run.set_status("done")
        trained.append(run.name)
        return "done"

    monkeypatch.setattr(training.loop, "train", train)
    cell = Cell("a-0123ab-e2-s0", {}, {"method": "simclr", "dataset": folder, "epochs": 2}, 0)
    with pytest.raises(CannotGoOn, match="was stopped"):
        training.train_cell(cell, "cpu")
    assert training.train_cell(cell, "cpu") == ""  # done: it is not trained again
    assert trained == [cell.run]


def test_a_look_and_a_dry_run_train_nothing(folder: str, capsys) -> None:
    assert main(["advise", folder, "--look", "--device", "cpu"]) == 0
    text = capsys.readouterr().out
    assert "80 training and 20 test images of 8 × 8 pixels, in gray; 2 classes" in text
    assert "to settle it: contrastive-lab advise" in text
    assert main(["advise", folder, "--dry-run", "--minutes", "20", "--device", "cpu"]) == 0
    assert "16 of 80 training images are held out" in capsys.readouterr().out
    assert runs.list_runs() == [r for r in runs.list_runs() if r.shipped]
    shutil.rmtree(Path(folder.removeprefix("folder:")) / "test")  # of one image per class none is kept for the test
    for image in Path(folder.removeprefix("folder:")).rglob("*.png"):
        if image.stem != "0":
            image.unlink()
    for option in ("--look", "--dry-run"):
        assert main(["advise", folder, option, "--device", "cpu"]) != 0
        assert "has no images for test" in capsys.readouterr().err
