"""Damaged files of a run are named, and what a user wrote is kept beside them; shipped runs are whole. Mutated files
are read in tests/process/test_readers.py."""

import json
from typing import Any

import numpy as np
import pytest
from cases import cases
from hostile.run_files import broken_run

from contrastive_core import runs
from contrastive_core.base.errors import Damaged
from contrastive_core.base.json_files import problem
from contrastive_core.base.memory import npz_bytes
from contrastive_core.base.storage import ROOT
from contrastive_core.engine import run_folders
from contrastive_core.runs.records import CONFIG, FORMAT
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.sweeps import sweep_file


def test_null_as_notes_costs_nothing_but_the_notes() -> None:
    run = broken_run("noted")
    (run.path / "meta.json").write_text("null")
    assert run.meta() == {}
    assert run_folders.damaged_records(run) == ["meta.json is damaged: it is null, not an object"]
    run.set_meta(title="new")
    assert run.meta() == {"title": "new"}
    assert (run.path / "meta.damaged.json").read_text() == "null"


@cases(
    "change",
    [
        {"index": None},
        {"h": np.zeros(3)},
        {"z": np.zeros((2, 2))},
        {"labels": np.array(["a"] * 3)},
        {"h": np.array([["a"]] * 3)},
        {"index": np.zeros((3, 1), int)},
    ],
)
def test_a_snapshot_of_another_shape_is_damaged(change: dict[str, Any]) -> None:
    run = runs.create("shots", {})
    whole: dict[str, Any] = {"index": np.arange(3), "labels": np.arange(3), "h": np.ones((3, 2)), "z": np.ones((3, 2))}
    run.save_snapshot(1, **whole)
    assert run.snapshot(1)["h"].shape == (3, 2)
    arrays = {k: v for k, v in {**whole, **change}.items() if v is not None}
    run.write("snapshots/epoch-0001.npz", npz_bytes(**arrays))
    (run.path / "snapshots" / "epoch-last.npz").write_bytes(b"")
    assert run.snapshots() == [1]
    with pytest.raises(Damaged, match=r"epoch-0001\.npz is damaged"):
        run.snapshot(1)


def test_the_shapes_know_every_setting_of_a_training() -> None:
    """What `train` can write is read again, and each setting of the wrong type is refused."""
    config = TrainConfig().to_dict()
    assert problem(config, CONFIG) == ""
    for name in config:
        assert name in problem({**config, name: ["no setting is a list"]}, CONFIG)


def test_every_shipped_run_has_the_present_format() -> None:
    shipped = [run for run in runs.list_runs() if run.shipped]
    cells = sweep_file.load(ROOT / "checkpoints" / "shipped.toml").cells()
    assert {run.name for run in shipped} == {cell.run for cell in cells}
    for run in shipped:
        assert run.manifest["format"] == FORMAT
        assert run_folders.damage(run) == []
        text = "".join(p.read_text() for p in run.path.glob("*.json*"))
        assert '"seal"' not in text
        assert not any(word in text for word in ("grey", "colour", "neighbour", "normalis"))


@cases(
    ("change", "why"),
    [
        ({"format": FORMAT + 1}, "has the run format 2; this version reads 1"),
        ({"config": {"seed": "0"}}, "seed is text, not a whole number"),
    ],
    homes=True,
)
def test_a_run_of_another_format_or_shape_is_damaged(change: dict[str, Any], why: str) -> None:
    run = broken_run("other")
    (run.path / "run.json").write_text(json.dumps({**run.manifest, **change}))
    with pytest.raises(Damaged, match=why):
        runs.load("other")
    assert why in runs.damaged()["other"]
