"""A thousand mutated files over the readers that test_readers.py does not try: a sentence or sense.

Each is cut, flipped, doubled or filled. What is raised is an error that the command line shows as
one line, never a crash, and never other numbers where the file carries a hash.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mutation import mutated
from PIL import Image
from safetensors.torch import save_file

from contrastive_core import runs
from contrastive_core.data import image_folder, overrides
from contrastive_core.embeddings import attached_images  # fmt: skip
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.errors import NoSuchRun, NotRecognized
from contrastive_core.evaluation import evaluate
from contrastive_core.importers import recognize, sandbox
from contrastive_core.paths import data_home
from contrastive_core.runs import checkpoints, export_weights
from contrastive_core.runs import verify as run_verify
from contrastive_core.storage import records

CONFIG = {"method": "simclr", "dataset": "digits", "seed": 0}
SENTENCES = (ValueError, OSError)  # Damaged, BadSetting, CannotImport and such are ValueErrors


def fuzz(path: Path, read: Callable[[], Any], times: int, also: tuple[type, ...] = ()) -> int:
    """Mutate the file so often; returns how often it was refused."""
    whole, rng, refused = path.read_bytes(), random.Random(path.name), 0
    for _ in range(times):
        path.write_bytes(mutated(whole, rng))
        try:
            read()
        except (*SENTENCES, *also):
            refused += 1
    path.write_bytes(whole)
    return refused


@pytest.mark.parametrize("new", [True, False])
def test_checkpoints_from_elsewhere(tmp_path: Path, new: bool) -> None:
    """In this process: in use a child opens them, so that even a crash would end there."""
    state = {"conv1.weight": torch.randn(8, 3, 3, 3), "bn1.weight": torch.ones(8)}
    path = tmp_path / f"{new}.pth"
    torch.save({"state_dict": state, "epoch": 3}, path, _use_new_zipfile_serialization=new)

    def read() -> None:
        about = sandbox.main(path, tmp_path / "out")
        assert json.dumps(about)

    assert fuzz(path, read, 120, (Exception,)) > 30


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"conv1.weight": torch.randn(8, 3, 3, 3)}, path)
    assert fuzz(path, lambda: sandbox.main(path, tmp_path / "out"), 120, (Exception,)) > 30


def test_names_of_tensors() -> None:
    rng = random.Random(0)
    parts = (
        "module. encoder_q. backbone. encoder. conv1.weight bn1.bias layer1.0.conv3.weight fc.0."
    )
    for _ in range(150):
        count = rng.randrange(1, 12)
        names = {
            "".join(rng.sample(parts.split(), 3)): tuple(
                rng.choices(range(1, 70), k=rng.randrange(5))
            )
            for _ in range(count)
        }
        with contextlib.suppress(NotRecognized):
            assert recognize(names).encoder


def test_manifests_and_states() -> None:
    run = runs.create("fuzzed", CONFIG)
    checkpoints.save_state(run, {"x": torch.randn(9)}, {"place": {"epoch": 1}})
    checkpoints.save_state(run, {"x": torch.randn(9)}, {"place": {"epoch": 2}})
    checkpoints.save_weights(run, {"encoder.body.0.weight": torch.randn(4, 1, 3, 3)})

    def list_them() -> None:
        runs.list_runs()
        runs.damaged()
        if runs.load("fuzzed").manifest != run.manifest:
            raise AssertionError("other settings than were written")

    assert fuzz(run.path / "run.json", list_them, 120, (NoSuchRun,)) > 90

    def state() -> None:
        assert checkpoints.load_state(run)[1]["place"]["epoch"] in (1, 2)

    newest = max((run.path / "state").glob("*.json"))
    assert fuzz(newest, state, 60) == 0  # the one before is there
    assert fuzz(newest.with_suffix(".safetensors"), state, 60) == 0
    held = checkpoints.load_weights(run)["encoder.body.0.weight"]

    def weights() -> None:
        export_weights.shapes_of(run)
        found = checkpoints.load_weights(run)
        assert torch.equal(found["encoder.body.0.weight"], held)

    assert fuzz(run.weights, weights, 100) > 70


def test_status_notes_and_metrics_never_hide_a_run() -> None:
    run = runs.create("seen", CONFIG)
    run.set_status("done", epoch=3)
    run.set_meta(title="t", tags=["a"])
    run.append_metrics([{"step": i, "loss": 0.5 + i, "lr": 0.001} for i in range(9)])
    records.write_json(run.path / "evaluation.json", {"scores": {"h": {"knn": {"value": 0.5}}}})
    readers = {
        "status.json": run.status,
        "meta.json": run.meta,
        "evaluation.json": lambda: evaluate.read_evaluation(run),
        "metrics.jsonl": run.metrics,
    }
    for name, read in readers.items():
        assert fuzz(run.path / name, read, 60) == 0
    assert "seen" in {r.name for r in runs.list_runs()}


def test_other_words_and_numbers_than_were_written_are_seen() -> None:
    """An object is refused, a line is left out and named; what is read was written."""
    run = runs.create("sealed", CONFIG)
    run.set_status("done", epoch=3)
    run.set_meta(title="t", tags=["a"])
    lines = [{"step": i, "loss": 0.5 + i, "lr": 0.001} for i in range(9)]
    run.append_metrics(lines)
    for name in ("run.json", "status.json", "meta.json"):
        path, refused = run.path / name, 0
        held = records.read_json(path)

        def unlike(path: Path = path, held: Any = held) -> None:
            assert records.read_json(path) == held

        refused = fuzz(path, unlike, 300)
        assert refused > 250
    path, named = run.path / "metrics.jsonl", 0
    whole, rng = path.read_bytes(), random.Random(0)
    for _ in range(500):
        path.write_bytes(mutated(whole, rng))
        assert all(line in lines for line in run.metrics())
        named += any("metrics.jsonl" in said for said in run_verify.damaged_records(run))
    assert named > 250  # the others are cut at a line's end, or torn as a kill does
    path.write_bytes(whole)
    assert run_verify.damage(run) == []


def test_a_changed_digit_or_letter_is_named_and_nothing_else_is_lost() -> None:
    run = runs.create("by-hand", CONFIG)
    run.set_status("done", epoch=3)
    run.set_meta(note="a note")
    run.append_metrics([{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}])
    for name, old, new in (
        ("status.json", '"epoch": 3', '"epoch": 8'),
        ("meta.json", "a note", "a vote"),
        ("metrics.jsonl", '"loss": 0.5', '"loss": 0.7'),
        ("metrics.jsonl", '"seal"', '"sea1"'),
        ("metrics.jsonl", '"loss": 0.25', '"loss": 0.75'),
        ("meta.json", '"seal"', '"sea1"'),
    ):
        path = run.path / name
        whole = path.read_text()
        path.write_text(whole.replace(old, new, 1))
        (said,) = run_verify.damage(run)
        assert said.startswith(name)
        assert path.read_text() != whole  # it is left as it is
        path.write_text(whole)
    assert run_verify.damage(run) == []
    path = run.path / "metrics.jsonl"
    path.write_text(path.read_text().replace("0.5", "0.7", 1))
    assert "line 1 is damaged" in run_verify.damage(run)[0]
    assert run.metrics() == [{"step": 2, "loss": 0.25}]
    note = run.path / "meta.json"
    note.write_text(note.read_text().replace("a note", "a vote"))
    assert run.meta() == {}
    run.set_meta(note="new")
    assert "a vote" in (run.path / "meta.damaged.json").read_text()
    held = json.loads(note.read_text())
    del held["seal"]  # a person changes it, and says so
    note.write_text(json.dumps({**held, "note": "by hand"}))
    assert run.meta() == {"note": "by hand"}


def test_lists_of_samples(tmp_path: Path) -> None:
    files = {
        "a.csv": b"id,label\nx,1\ny,2\n",
        "b.json": b'{"x": "1", "y": "2"}',
        "c.txt": b"x\ny\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        fuzz(path, lambda path=path: overrides.read_ids(str(path)), 40)
        if name != "c.txt":
            fuzz(path, lambda path=path: overrides.read_labels(str(path)), 40)


def test_images(tmp_path: Path) -> None:
    """A damaged image is left out with its reason; the others are read."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (8, 8, 3), np.uint8)
    for ending in ("png", "jpg", "gif", "bmp", "webp", "tif"):
        Image.fromarray(pixels).save(tmp_path / f"bad.{ending}")
        Image.fromarray(pixels).save(tmp_path / f"good.{ending}")
    for path in sorted(tmp_path.glob("bad.*")):
        whole, chance = path.read_bytes(), random.Random(path.name)
        for _ in range(25):
            path.write_bytes(mutated(whole, chance))
            _, make = image_folder.plan(str(tmp_path), "train", data_home())
            data_home().mkdir(parents=True, exist_ok=True)
            found = make()
            assert len(found["images"]) + len(found.get("skipped", [])) == 10
            rows = EmbeddingSet(
                np.zeros((1, 2), np.float32), columns={"path": np.array([path.name])}
            )
            attached_images.pictures_of(tmp_path / "v.csv", rows)
        path.write_bytes(whole)


def test_arrays(tmp_path: Path) -> None:
    records.write_npz(tmp_path / "a.npz", x=np.arange(50), y=np.ones((3, 4)))
    assert fuzz(tmp_path / "a.npz", lambda: records.read_npz(tmp_path / "a.npz"), 100) > 60
