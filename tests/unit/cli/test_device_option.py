"""`--device`: a command or analysis computes on the device that it is given, and nowhere else."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import cases
from PIL import Image

from contrastive_core import runs
from contrastive_core.base import device
from contrastive_core.cli.main import main
from contrastive_core.compare import projection
from contrastive_core.compare.comparison import comparison_request
from contrastive_core.compare.embed import data_of
from contrastive_core.engine import answers
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.spaces.space import Space
from contrastive_core.train.setup import prepare

ASKED = "cuda:1"


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Two untrained runs on 36 pictures in three classes."""
    rng = np.random.default_rng(0)
    for number in range(36):
        folder = tmp_path / "images" / ("test" if number % 3 == 0 else "train") / "abc"[number % 4 % 3]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    config = TrainConfig(
        "simclr",
        f"folder:{tmp_path / 'images'}",
        encoder_knobs={"width": 0.25},
        batch_size=8,
        device="cpu",
        sample=20,
        threads=1,
    )
    for seed, name in enumerate(("one", "two")):
        setup = prepare(config)
        torch.manual_seed(seed)
        run = runs.create(name, setup.config.to_dict())
        checkpoints.save_weights(run, setup.method.state_dict())
        for epoch in (1, 2):
            z = rng.normal(size=(20, 6)).astype(np.float32)
            run.save_snapshot(epoch, index=np.arange(20), h=z, z=z, labels=setup.sample.labels)
    return ["one", "two"]


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the devices that were asked for; the CPU stands for all of them."""
    asked: list[str] = []

    def choose(name: str = "auto") -> torch.device:
        asked.append(name)
        return torch.device("cpu")

    def layout(features: np.ndarray, *_: object, **settings: object) -> np.ndarray:
        return projection.pca(features)  # the layout itself is the CPU's, and slow to compile

    for name in ("compare", "evaluate", "export", "samples", "train"):
        importlib.import_module(f"contrastive_core.cli.{name}")
    own = [module for name, module in sys.modules.items() if name.startswith("contrastive_core")]
    for name, stand_in, real in (("umap", layout, projection.umap), ("choose", choose, device.choose)):
        for module in own:
            if vars(module).get(name) is real:
                monkeypatch.setattr(module, name, stand_in)
    return asked


@cases(
    "command",
    [
        "embed one",
        "evaluate one",
        "compare one two",
        "samples one --split test",
        "samples one --split train",
        "project one --method pca --out map.csv",
        "project one --method umap --neighbors 4 --out map.csv",
        "verify one",
        "evaluate rows.npz",
        "samples rows.npz",
        "project rows.npz --out map.csv",
    ],
)
def test_a_command_computes_on_its_device(
    command: str, names: list[str], chosen: list[str], monkeypatch, tmp_path: Path, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("rows.npz", features=np.random.default_rng(0).normal(size=(40, 6)), labels=np.arange(40) % 2)
    assert main([*command.split(), "--device", ASKED]) == 0, capsys.readouterr().err
    if command != "verify one":  # which has no figures to compute anew
        assert set(chosen) == {ASKED}
    assert set(chosen) <= {ASKED}


@pytest.mark.parametrize("kind", answers.KINDS)
def test_so_does_every_analysis(kind: str, names: list[str], chosen: list[str], capsys) -> None:
    one, two = (Space.of_run(runs.load(name), "test").values for name in names)
    config = runs.load("one").config
    of_images = {"dataset": config["dataset"], "method": "simclr"}
    values = {
        "scores": {"space": one},
        "loss": {"space": one},
        "map": {"space": one, "kind": "pca"},
        "placed": {"map": {"space": one, "kind": "pca"}, "new": two},
        "comparison": comparison_request([Space.of_run(runs.load(name), "test") for name in names]),
        "views": {"method": "simclr", "dataset": "digits", "set": []},
        "folder": {"path": config["dataset"].removeprefix("folder:")},
        "look": of_images,
        "advice_plan": {"dataset": "digits", "method": "simclr", "minutes": 60, "choose": ["temperature"]},
        "towers": {"space": one},
        "tower_pairs": {"space": one},
        "compression": {"space": one},
        "adapter": {"old": one, "new": two},
        "zero_shot": {"space": one, "templates": ["a {}"]},
        "text_query": {"space": one, "text": "a", "most": 3},
        "likeness": {"space": one, "ids": data_of(runs.load("one"), "test").ids[:2]},
        "calibration": {"spaces": [one, two]},
        "centered": {"space": one},
        "differences": {"spaces": [one, two], "names": names, "seeds": []},
    }[kind]
    status, said = main(["analyze", kind, json.dumps(values), "--device", ASKED]), capsys.readouterr().err
    if kind in "towers tower_pairs compression zero_shot text_query centered".split():  # of two towers
        assert status != 0
        assert "not belong to two towers" in said
    elif kind == "adapter":
        assert "at least 60 documents that both models encoded; got 9" in said
    elif kind == "differences":
        assert "at least 50 shared rows; got 12" in said
    else:
        assert status == 0, said
    on_the_cpu = kind in ("views", "folder")
    stood_in = {"cpu"} if kind == "advice_plan" else set()  # a training names what it was given
    assert set(chosen) - stood_in == (set() if on_the_cpu else {ASKED})


@cases(
    ("name", "said"),
    [
        ("cuda:99", "there is no cuda:99; this machine has 2 GPUs"),
        ("cuda:x", "unknown device 'cuda:x'"),
        ("tpu", "unknown device 'tpu'; known: auto, cpu, cuda, cuda:N, mps"),
        ("mps", "this machine has no mps device"),
    ],
)
@cases("command", ["compare simclr-digits sup_con-digits", "evaluate rows.npz"])
def test_a_device_that_is_not_there_gets_a_sentence(
    command: str, name: str, said: str, monkeypatch, tmp_path: Path, capsys
) -> None:
    """Where all embeddings are there already, too."""
    monkeypatch.chdir(tmp_path)
    np.savez("rows.npz", features=np.eye(8, dtype=np.float32), labels=np.arange(8) % 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert main([*command.split(), "--device", name]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in error
