"""Run folders of the first format become present ones: once, whole, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contrastive_core import runs
from contrastive_core.cli.main import main
from contrastive_core.errors import Damaged, Locked, OldFormat
from contrastive_core.paths import runs_home
from contrastive_core.runs import checkpoints, verify
from contrastive_core.runs import migrate as migration
from contrastive_core.runs.migrate import migrate, outdated
from contrastive_core.storage import records

OLD = {
    "method": "simclr", "dataset": "folder:/data/grey-colours", "seed": 0,
    "loss": "soft_nearest_neighbour", "loss_knobs": {"normalise": True},
    "recipe": {"grey": 0.2, "crop": 1.0},
}  # fmt: skip


def seal(value: dict[str, Any]) -> str:
    return json.dumps({**value, "seal": "0123456789abcdef" * 2})


def old_run(name: str) -> Path:
    """A folder as the first format had it."""
    run = runs.create(name, OLD, classes=["grey", "colour"], reasons={"recipe": "grey figures"})
    run.set_status("done", epoch=2)
    checkpoints.save_weights(run, {"encoder.x": torch.randn(3)})
    checkpoints.save_state(run, {"x": torch.arange(3.0)}, {"place": {"epoch": 2}})
    path = run.path
    manifest = {k: v for k, v in run.manifest.items() if k != "format"}
    (path / "run.json").write_text(seal(manifest))
    (path / "status.json").write_text(seal(json.loads((path / "status.json").read_text())))
    (path / "meta.json").write_text(seal({"note": "my grey colours"}))
    lines = [{"step": 1, "epoch": 1, "loss": 0.5}, {"step": 2, "epoch": 2, "loss": 0.25}]
    text = "".join(json.dumps({**x, "seal": "01234567"}) + "\n" for x in lines)
    (path / "metrics.jsonl").write_text(text)
    score = {"title": "Neighbour stability", "value": 0.5, "settings": {"neighbours": 5}}
    record = {"weights": run.weights_hash(), "scores": {"h": {"neighbour_stability": score}}}
    (path / "evaluation.json").write_text(seal(record))
    meta = np.frombuffer(json.dumps({"settings": {"neighbours": 15}}).encode(), np.uint8)
    records.write_npz(path / "maps" / "m.npz", xy=np.zeros((2, 2)), meta=meta)
    state = path / "state" / "000001.json"
    digest = hashlib.sha256(state.with_suffix(".safetensors").read_bytes()).hexdigest()
    state.write_text(seal({"sha256": digest, "plain": {"place": {"epoch": 2}}}))
    state.with_suffix(".sha256").unlink()
    return path


def content(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_an_old_run_is_brought_to_the_present_format(capsys: pytest.CaptureFixture[str]) -> None:
    path = old_run("old")
    before = content(path)
    with pytest.raises(OldFormat, match="migrate old"):
        runs.load("old")
    assert main(["migrate", "--dry-run"]) == 0
    assert "run.json" in capsys.readouterr().out
    assert content(path) == before
    assert main(["migrate"]) == 0
    run = runs.load("old")
    assert run.config["recipe"] == {"gray": 0.2, "crop": 1.0}
    assert run.config["loss"] == "soft_nearest_neighbor"
    assert run.config["loss_knobs"] == {"normalize": True}
    assert run.config["dataset"] == "folder:/data/grey-colours"  # a path is somebody's own
    assert run.manifest["classes"] == ["grey", "colour"]
    assert run.manifest["reasons"] == {"recipe": "gray figures"}
    assert run.meta() == {"note": "my grey colours"}
    assert [line["loss"] for line in run.metrics()] == [0.5, 0.25]
    record = json.loads((path / "evaluation.json").read_text())
    assert record["scores"]["h"]["neighbor_stability"]["settings"] == {"neighbors": 5}
    meta = json.loads(records.read_npz(path / "maps" / "m.npz")["meta"].tobytes())
    assert meta == {"settings": {"neighbors": 15}}
    tensors, plain = checkpoints.load_state(run)
    assert plain == {"place": {"epoch": 2}, "damaged": []}
    assert torch.equal(tensors["x"], torch.arange(3.0))
    assert verify.damage(run) == []
    assert not any(
        "seal" in text.decode() for name, text in content(path).items() if "json" in name
    )
    assert list((runs_home() / ".before-migration").iterdir()) == []
    after = content(path)
    assert outdated() == migrate("old") == []
    assert main(["migrate"]) == 0
    assert content(path) == after


def test_what_does_not_pass_is_put_back() -> None:
    path = old_run("hurt")
    data = bytearray((path / "state" / "000001.safetensors").read_bytes())
    data[-1] ^= 1
    (path / "state" / "000001.safetensors").write_bytes(data)
    before = content(path)
    with pytest.raises(Damaged, match=r"hurt is as it was, for state/000001\.safetensors"):
        migrate("hurt")
    assert {k: v for k, v in content(path).items() if k != "lock"} == before
    assert list((runs_home() / ".before-migration").iterdir()) == []


def test_a_run_at_work_is_left_alone() -> None:
    path = old_run("busy")
    with migration.lock(path / "lock"), pytest.raises(Locked):
        migrate("busy")
    assert outdated() == ["busy"]


def test_a_migration_cut_off_anywhere_is_finished_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After each file that it writes, one after the other."""
    for point in range(20):
        name = f"cut-{point}"
        old_run(name)
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            left, write = [point], migration.atomic.write_bytes

            def cut(*args: Any, left: list[int] = left, write: Any = write) -> None:
                if not left[0]:
                    os._exit(9)
                left[0] -= 1
                write(*args)

            monkeypatch.setattr(migration.atomic, "write_bytes", cut)
            migrate(name)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        migrate(name)
        assert list((runs_home() / ".before-migration").iterdir()) == []
        run = runs.load(name)
        assert verify.damage(run) == []
        assert run.config["recipe"] == {"gray": 0.2, "crop": 1.0}
        assert checkpoints.load_state(run)[1]["place"] == {"epoch": 2}
        if code == 0:
            break
    assert point > 5
