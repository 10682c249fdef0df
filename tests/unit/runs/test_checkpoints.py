"""What a run keeps of its model: a damaged state is named, and the one before it is taken."""

from types import SimpleNamespace

import pytest
import torch
from cases import cases

from contrastive_core import runs
from contrastive_core.base.errors import Damaged
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run

CONFIG = {"method": "simclr", "dataset": "digits", "seed": 0}


def state(run: Run, step: int) -> None:
    checkpoints.save_state(run, {"x": torch.full((4, 3), float(step))}, {"step": step})


def kept(run: Run) -> list[int]:
    return [int(path.stem) for path in checkpoints.state_manifests(run)]


def test_states_before_the_last_two_are_spread_over_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("long", CONFIG)
    for step in range(1, 101):
        state(run, step)
    assert kept(run) == [18, 26, 40, 49, 62, 79, 99, 100]
    assert len(list((run.path / "state").iterdir())) == 3 * 8
    size = sum(path.stat().st_size for path in (run.path / "state").glob("000100.[sj]*[ns]"))
    monkeypatch.setattr(checkpoints, "ROOM", 3 * size)
    state(run, 101)
    assert kept(run)[-2:] == [100, 101]
    assert len(kept(run)) == 5
    monkeypatch.setattr(checkpoints.shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    state(run, 102)
    assert kept(run) == [101, 102]


def test_a_damaged_state_gives_way_to_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MOST", 2)
    run = runs.create("state", CONFIG)
    with pytest.raises(ValueError, match="no saved state"):
        checkpoints.load_state(run)
    for step in (1, 2, 3):
        state(run, step)
    files = sorted((run.path / "state").glob("*.safetensors"))
    assert len(files) == 2
    assert checkpoints.load_state(run)[1] == {"step": 3, "damaged": []}
    data = bytearray(files[-1].read_bytes())
    data[-1] ^= 1
    files[-1].write_bytes(data)
    tensors, plain = checkpoints.load_state(run)
    assert plain == {"step": 2, "damaged": ["state/000003.safetensors"]}
    assert torch.equal(tensors["x"], torch.full((4, 3), 2.0))
    data[-1] ^= 1
    files[-1].write_bytes(data)
    values = files[1].with_suffix(".json")
    values.write_text(values.read_text().replace('"step": 3', '"step": 2'))  # valid, but not ours
    assert checkpoints.load_state(run)[1]["damaged"] == ["state/000003.json"]
    manifest = files[1].with_suffix(".sha256")
    manifest.write_text(manifest.read_text()[:40])
    assert checkpoints.load_state(run)[1]["damaged"] == ["state/000003.sha256"]
    files[0].write_bytes(b"")
    with pytest.raises(ValueError, match="damaged"):
        checkpoints.load_state(run)


@cases(
    ("old", "new"),
    [
        ("000001.json", "000011.json"),
        ("000001.json", "000001.safetensors"),
        ("  ", " *"),
        ("\n", ""),
        ("\n", "\x0b"),
        ("000001.safetensors", "../state/000001.safetensors"),
    ],
)
def test_a_states_manifest_names_the_two_files_beside_it_and_nothing_else(old, new) -> None:
    run = runs.create("named", CONFIG)
    state(run, 1)
    (manifest,) = checkpoints.state_manifests(run)
    text = manifest.read_text()
    assert old in text
    manifest.write_text(text.replace(old, new, 1))
    with pytest.raises(Damaged, match=r"000001\.sha256 is damaged: it must have a line"):
        checkpoints.read_state(manifest)
    manifest.write_text("".join(reversed(text.splitlines(keepends=True))))
    with pytest.raises(Damaged, match=r"000001\.sha256 is damaged"):
        checkpoints.read_state(manifest)


def test_weights_keep_their_values() -> None:
    run = runs.create("weights", CONFIG)
    with pytest.raises(ValueError, match="no weights yet"):
        checkpoints.load_weights(run)
    w = {"a": torch.randn(3, 4).t(), "n": torch.tensor(7)}
    checkpoints.save_weights(run, w)
    found = checkpoints.load_weights(run)
    assert torch.equal(found["a"], w["a"])
    checkpoints.save_weights(run, w, half=True)
    assert checkpoints.load_weights(run)["a"].dtype == torch.float32
    data = bytearray(run.weights.read_bytes())
    data[-3] ^= 4  # a flipped bit that the format does not notice
    run.weights.write_bytes(data)
    with pytest.raises(Damaged, match="checksum does not match"):
        checkpoints.load_weights(run)
    run.weights.write_bytes(b"no")
    with pytest.raises(Damaged, match=r"weights\.safetensors"):
        checkpoints.load_weights(run)
