"""Four real trainings, killed at random moments again and again, end bit-equal to one in one go."""

import os
import random
import time
from pathlib import Path

import pytest
import torch
from clip_runs import captioned_folder
from worlds import forks

from contrastive_core import runs
from contrastive_core.base.memory import read_npz
from contrastive_core.base.storage import runs_home
from contrastive_core.engine import run_folders
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train import loop
from contrastive_core.train.setup import prepare

KILLS = 3
RATES = {2: 0.001, 9: 0.002, 14: 0.0005}  # learning rates from these steps on


def config(method: str) -> TrainConfig:
    """Six steps an epoch, saved after every epoch; one thread, so that sums have one order."""
    images = os.environ["CONTRASTIVE_LAB_HOME"]
    return TrainConfig(
        method,
        f"folder:{images}/captioned" if method == "clip" else "digits",
        epochs=4,
        batch_size=8 if method == "clip" else 240,
        threads=1,
        device="cpu",
        save_seconds=0.0,
        sample=200,
        encoder_knobs={"width": 0.25},
    )


def work(method: str, name: str, environment: dict[str, str]) -> None:
    """Begin the run, or go on with it, as the command line does."""
    os.environ.update(environment)
    torch.set_num_threads(1)
    prepared = prepare(config(method))
    known = (runs_home() / name).exists()
    planned = [{"step": step, "name": "lr", "to": rate} for step, rate in RATES.items()]
    run = runs.load(name) if known else runs.create(name, prepared.config.to_dict(), schedule=planned)
    loop.train(prepared, run, resume=known)


@pytest.mark.parametrize("method", ["simclr", "moco_v2", "inst_disc", "clip"])
def test_a_training_killed_again_and_again_ends_bit_equal(method: str) -> None:
    homes = {k: os.environ[k] for k in ("CONTRASTIVE_LAB_RUNS", "CONTRASTIVE_LAB_HOME")}
    context = forks()
    if method == "clip":
        captioned_folder(Path(homes["CONTRASTIVE_LAB_HOME"]) / "captioned", 16, 2)
    begun = time.monotonic()
    work(method, "whole", homes)
    seconds = time.monotonic() - begun
    rng = random.Random(method)
    for _ in range(KILLS):
        child = context.Process(target=work, args=(method, "killed", homes))
        child.start()
        while not (runs_home() / "killed" / "run.json").exists() and child.is_alive():
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.5 * seconds))
        child.kill()
        child.join()
        run = runs.load("killed")
        assert run.status()["status"] in ("failed", "done")
        assert run_folders.damage(run) == []
    work(method, "killed", homes)
    one, two = (checkpoints.load_state(runs.load(n)) for n in ("whole", "killed"))
    assert one[0].keys() == two[0].keys()
    bits = [{k: v.numpy().tobytes() for k, v in tensors.items()} for tensors, _ in (one, two)]
    assert [k for k in bits[0] if bits[0][k] != bits[1][k]] == []
    assert one[1]["place"] == two[1]["place"]
    assert one[1]["changes"] == two[1]["changes"] == runs.load("killed").changes() != []
    losses = [[x["loss"] for x in runs.load(n).metrics()] for n in ("whole", "killed")]
    assert losses[0] == losses[1]


def test_a_run_killed_before_its_first_state_starts_anew_when_resumed() -> None:
    prepared = prepare(config("simclr"))
    run = runs.create("early", prepared.config.to_dict())
    run.append_metrics([{"step": 1, "epoch": 0, "loss": 1.0, "images_per_s": 1.0}])
    assert loop.train(prepared, run, resume=True) == "done"
    assert next(x["step"] for x in run.metrics() if "images_per_s" in x) == 1
    assert not list(run.path.glob(".*.part"))


def test_the_state_before_a_damaged_one_is_taken_and_both_are_named() -> None:
    work("simclr", "hurt", {})
    run = runs.load("hurt")
    newest = max((run.path / "state").glob("*.safetensors"))
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 16
    newest.write_bytes(data)
    before = {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()}
    assert any(newest.name in line for line in run_folders.damage(run))
    _, plain = checkpoints.load_state(run)
    assert plain["place"]["epoch"] == 3
    assert plain["damaged"] == [f"state/{newest.name}"]
    assert {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()} == before
    assert loop.train(prepare(config("simclr")), run, resume=True) == "done"
    assert f"{newest.name} is damaged; continued from the state before it" in run.status()["note"]


def test_a_flipped_bit_in_any_file_is_named_or_changes_nothing() -> None:
    """Every file that carries a hash, a flip at many places: never silently other numbers."""
    work("simclr", "sound", {})
    run, rng = runs.load("sound"), random.Random(0)
    files = [run.weights, *run.path.glob("state/*"), *run.path.glob("snapshots/*")]
    assert len(files) == 1 + 4 * 3 + 4
    for path in files:
        whole = path.read_bytes()
        for _ in range(30):
            data = bytearray(whole)
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
            named = run_folders.damage(run)
            if not named:  # a bit that nothing depends on
                assert same(path, whole, bytes(data)), path
            else:
                assert all(path.stem in line for line in named)
        path.write_bytes(whole)
    assert run_folders.damage(run) == []


def same(path, whole: bytes, data: bytes) -> bool:
    """Whether two versions of a file say the same to whoever reads it."""
    said = []
    for version in (whole, data):
        path.write_bytes(version)
        if path.suffix == ".sha256":
            said.append(version.decode().split())
        elif path.suffix == ".npz":
            said.append(repr({k: v.tolist() for k, v in read_npz(path).items()}))
        else:
            from safetensors.torch import load

            said.append(repr({k: v.tolist() for k, v in load(version).items()}))
    return said[0] == said[1]
