"""One bad file harms nobody else: each JSON file of a run mutated by hundreds, beside a good run.

The readers of a run return what they say or, for its manifest, list the run as damaged with the
reason; nothing else is raised, whatever stands in the file.
"""

import copy
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from mutation import mutated

from contrastive_core import runs
from contrastive_core.base.errors import Damaged
from contrastive_core.base.json_files import problem
from contrastive_core.base.memory import npz_bytes
from contrastive_core.base.storage import ROOT
from contrastive_core.compare import verify as run_verify
from contrastive_core.runs.records import CONFIG, FORMAT
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import cost_of
from contrastive_core.runs.train_config import TrainConfig, settings_of
from contrastive_core.sweeps import sweep_file
from contrastive_core.sweeps.sweep_file import Axis, Sweep

MUTATIONS = 300
VALUES: list[Any] = [
    None,
    True,
    [],
    {},
    "",
    "x",
    0,
    -1,
    2.5,
    10**30,
    10**400,
    float("nan"),
    float("inf"),
    [None],
    {"a": [1]},
    "\ud800",
    "\x00\x1b",
    [[[]]],
    "x" * 10_000,
    {"": {"": ""}},
    [1, "a"],
]
DEEP = '{"a":' * 50_000


def changed(value: Any, rng: random.Random) -> Any:
    """The same document with one place in it another value, missing, doubled or renamed."""
    value = copy.deepcopy(value)
    holder, key = rng.choice(list(places(value)))
    kind = rng.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    elif kind == 2 and isinstance(holder, dict):
        holder[rng.choice(["weights", "status", "epoch", "", "__proto__"])] = rng.choice(VALUES)
    else:
        holder[key] = rng.choice(VALUES)
    return value


def places(value: Any) -> Any:
    """Every (list or object, key) of a document."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def mutation(whole: bytes, rng: random.Random) -> bytes:
    """A file's content, changed in its bytes or in what it says."""
    kind = rng.randrange(10)
    if kind == 0:
        return mutated(whole, rng)
    if kind == 1:
        odd = ("null", "[]", "3", '"x"', "", "\n\n", "{}", "[{}]", "\ufeff{}", DEEP, "{" * 50)
        return rng.choice([*(x.encode() for x in odd), b"\xff\xfe\x00{", b"\x00" * 50])
    lines = whole.split(b"\n") if b"\n{" in whole.strip() else [whole]  # of a .jsonl
    at = rng.randrange(len(lines) - (len(lines) > 1))
    lines[at] = json.dumps(changed(json.loads(lines[at]), rng)).encode()
    return b"\n".join(lines)


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    """A manifest with all settings, as trainings write it."""
    config = TrainConfig("simclr", "digits", recipe={"crop": 1.0}, loss_knobs={"temperature": 0.5})
    return {
        "config": config.to_dict(),
        "more": {
            "classes": ["a", "b"],
            "n_train": 3,
            "image_shape": [1, 8, 8],
            "processes": 1,
            "reasons": {"lr": "why"},
            "imported": {"kind": "x"},
        },
    }


def make(name: str, rows: dict[str, Any]) -> Run:
    run = runs.create(name, rows["config"], "f" * 64, **rows["more"])
    run.write("weights.safetensors", (20).to_bytes(8, "little") + b'{"__metadata__": {}}')
    run.set_status("done", epoch=3, epochs=3, step=30, note="n")
    run.set_meta(title="t", note="n", tags=["a", "b"])
    step = {"loss": 0.5, "lr": 0.1, "images_per_s": 9.0, "memory_mb": 30}
    epochs = [{"epoch": e, "step": 3 * e, "loss": 0.4, "seconds": 2.0, "knn_train_sample": 0.5} for e in (1, 2, 3)]
    run.append_metrics([{"step": 1, "epoch": 0, **step}, *epochs])
    return run


def read_all(run: Run) -> None:
    """Everything that a page reads of a run, used as the pages use it."""
    status = run.status()
    assert status["status"] in ("queued", "running", "done", "stopped", "failed")
    assert isinstance(status["status"] + status.get("reason", ""), str)
    assert float(status.get("updated") or 0) + int(status.get("step") or 0) >= 0
    meta = run.meta()
    assert "".join([str(meta.get("title") or ""), *meta.get("tags", [])]).encode() is not None
    for line in run.metrics():
        assert all(v is None or float(v) <= 1e300 for v in line.values())
    settings_of(run.config)
    assert int(run.config.get("seed") or 0) + int(run.config.get("epochs") or 1) >= 0
    assert json.dumps(run.manifest, ensure_ascii=False).encode()
    cost_of(run)


@pytest.mark.parametrize("name", ["run.json", "status.json", "meta.json", "metrics.jsonl"])
def test_no_mutation_of_a_file_harms_its_readers_or_another_run(
    name: str, rows: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrastive_core.runs.run.SHIPPED", tmp_path / "none")
    bad, good = make("bad", rows), make("good", rows)
    path, rng = bad.path / name, random.Random(name)
    whole, outcomes = path.read_bytes(), Counter[str]()
    sweep = Sweep("", "t", {"method": "simclr"}, (Axis("m", (("bad", {}, {}),)),), (0,), "table", None)
    for _ in range(MUTATIONS):
        path.write_bytes(mutation(whole, rng))
        listed = {run.name: run for run in runs.list_runs()}
        assert "good" in listed
        if "bad" in listed:
            read_all(listed["bad"])
            outcomes["read"] += 1
            if outcomes["read"] % 10 == 0:
                assert runs.damaged() == {}
                sweep_file.status(sweep)
        else:
            assert runs.damaged()["bad"].encode()
            with pytest.raises(Damaged):
                runs.load("bad")
            outcomes["listed as damaged"] += 1
        outcomes["named"] += bool(run_verify.damaged_records(bad))
    path.write_bytes(whole)
    assert run_verify.damaged_records(bad) == []
    assert runs.load("bad").meta() == {"title": "t", "note": "n", "tags": ["a", "b"]}
    read_all(good)
    assert outcomes["named"] > MUTATIONS / 4, outcomes  # they do bite
    assert (outcomes["listed as damaged"] > 0) == (name == "run.json")


def test_null_as_notes_costs_nothing_but_the_notes(rows: dict[str, Any]) -> None:
    run = make("noted", rows)
    (run.path / "meta.json").write_text("null")
    assert run.meta() == {}
    assert run_verify.damaged_records(run) == ["meta.json is damaged: it is null, not an object"]
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
        assert run_verify.damage(run) == []
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
def test_a_run_of_another_format_or_shape_is_damaged(rows: dict[str, Any], change: dict[str, Any], why: str) -> None:
    run = make("other", rows)
    (run.path / "run.json").write_text(json.dumps({**run.manifest, **change}))
    with pytest.raises(Damaged, match=why):
        runs.load("other")
    assert why in runs.damaged()["other"]
