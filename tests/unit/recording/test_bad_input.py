"""Bad rows, taken names, full disks: the training goes on, the recording says what it left out."""

import errno
import logging
import shutil
import sys

import numpy as np
import pytest
import torch
from cases import cases

from contrastive_core import losses, pairs, watch
from contrastive_core.base import storage
from contrastive_core.base.json_files import read_object
from contrastive_core.engine.run_folders import damage
from contrastive_core.recording import steps
from contrastive_core.runs.records import CHECK, CHECK_FILE
from contrastive_core.spaces import recorded_rows


def note_of(w) -> str:
    return str(w.run.status()["note"])


def test_rows_that_change_width() -> None:
    with watch("width", loss="nt_xent", every=1) as w:
        for width in (8, 8, 4):
            w.step(torch.randn(6, 2, width))
    assert "From step 3 on, rows have 4 dimensions; before, they had 8." in note_of(w)
    assert [recorded_rows.read(w.run, s).z.shape[1] for s in (1, 2, 3)] == [8, 8, 4]
    assert len(w.run.metrics()) == 3
    assert not damage(w.run)


def test_rows_that_are_not_finite(caplog) -> None:
    z = torch.randn(6, 2, 4)
    z[1, 0, 2], z[4, 1, 0] = torch.nan, torch.inf
    with caplog.at_level(logging.WARNING), watch("nan", loss="nt_xent", every=1) as w:
        w.step(z, ids=torch.arange(6))
        for _ in range(2):
            w.step(torch.full((6, 2, 4), torch.nan))
    rows = recorded_rows.read(w.run, 1)
    assert sorted(set(rows.ids.tolist())) == ["0", "2", "3", "5"]
    assert np.isfinite(rows.loss).all()
    assert "rows (28: not finite, or another view of an image that is not finite)" in note_of(w)
    assert "steps (2: none of its rows is finite)" in note_of(w)
    assert len([r for r in caplog.records if "none of its rows" in r.getMessage()]) == 1  # logged once
    assert len(w.run.metrics()) == 1
    queue = torch.randn(10, 4)
    queue[3] = torch.nan
    with watch("queue", loss="info_nce", every=1, strict=True) as w:
        w.step(torch.randn(5, 4), torch.randn(5, 4), queue=queue)
    assert "rows of the queue (1: not finite)" in note_of(w)
    assert w.run.metrics()[0]["negatives"] == 9


def test_images_whose_id_is_repeated() -> None:
    with watch("repeated", loss="nt_xent", every=1, strict=True) as w:
        w.step(torch.randn(4, 2, 3), ids=["a", "b", "a", "c"])
    rows = recorded_rows.read(w.run, 1)
    assert rows.ids.tolist() == ["a", "a", "b", "b", "c", "c"]
    assert "rows of a sample (2: their image's id is already recorded)" in note_of(w)
    assert w.run.metrics()[0]["n_valid"] == 8  # the loss is of all of them


def test_labels_that_are_missing_in_some_steps() -> None:
    with watch("labels", loss="sup_con", every=1) as w:
        for step in range(4):
            labels = None if step % 2 else torch.arange(8) % 2
            w.step(torch.randn(8, 3), labels=labels)
        w.step(torch.randn(8, 3), labels=torch.rand(8))
    lines = w.run.metrics()
    assert ["loss" in line for line in lines] == [True, False, True, False, False]
    assert ["knn" in line for line in lines] == [True, False, True, False, False]
    assert "steps' labels (3: they were missing)" in note_of(w)
    assert "steps' labels (1: they must be whole numbers of shape (8,))" in note_of(w)
    assert "steps' losses (3: its rows have no views and no labels" in note_of(w)
    assert recorded_rows.steps(w.run) == [1, 2, 3, 4, 5]


def test_a_name_that_exists(caplog) -> None:
    first = watch("taken", loss="nt_xent")
    with first, caplog.at_level(logging.WARNING), watch("taken", loss="nt_xent", every=1) as w:
        w.step(torch.randn(4, 2, 3))
    assert w.run.name == "taken-2"
    assert note_of(w) == "There was a run taken already, so this is taken-2."
    assert caplog.text.count("There was a run taken already") == 1
    with pytest.raises(FileExistsError):
        watch("taken", loss="nt_xent", strict=True)


def test_a_full_disk(monkeypatch, caplog) -> None:
    """What is written meanwhile is lost and counted; once there is room it goes on."""
    full, write = [False], storage.sync_file

    def sync_file(file) -> None:
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file)

    monkeypatch.setattr(storage, "sync_file", sync_file)
    monkeypatch.setattr("contrastive_core.base.json_files.sync_file", sync_file)
    w = watch("full", loss="nt_xent", every=1)
    recorder = w._recorder
    with w, caplog.at_level(logging.WARNING):
        for step in range(1, 7):
            full[0] = step in (2, 3, 4)
            w.step(torch.randn(4, 2, 3))
            recorder.wait()
    assert "steps (3: No space left on device)" in note_of(w)
    assert caplog.text.count("No space left on device") <= 2  # of a step, and of the status
    assert {1, 5, 6} <= {line["step"] for line in w.run.metrics()}
    assert not damage(w.run)


def test_a_disk_that_is_full_from_the_start(monkeypatch, caplog) -> None:
    def no_room(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    module = sys.modules["contrastive_core.recording.watch"]  # the name is the function's, too
    monkeypatch.setattr(module, "create", no_room)
    with watch("never", loss="nt_xent", every=1) as w, caplog.at_level(logging.WARNING):
        w.step(torch.randn(4, 2, 3))
        w.probe(lambda x: x, [torch.randn(4, 3)])
    assert w.run is None
    assert "No space left on device" in w.omissions.note
    with pytest.raises(OSError, match="No space"):
        watch("never", loss="nt_xent", strict=True)


def test_a_folder_that_is_deleted_meanwhile() -> None:
    with watch("deleted", loss="nt_xent", every=1) as w:
        w.step(torch.randn(4, 2, 3))
        shutil.rmtree(w.run.path, ignore_errors=True)
        for _ in range(3):
            w.step(torch.randn(4, 2, 3))
    assert "the recording's folder was moved or deleted" in w.omissions.note
    assert not w.run.path.exists() or not (w.run.path / "run.json").exists()


@cases(
    ("given", "why"),
    [
        ({}, "step takes rows"),
        ({"views": [torch.arange(4)]}, "floating-point"),
        ({"views": [torch.randn(4, 3), torch.randn(5, 3)]}, "of the same shape"),
        ({"views": ["no rows"]}, "must be a tensor"),
        ({"views": [torch.randn(4, 3, device="meta")]}, "rows have no values: they are on the device meta"),
        ({"views": [torch.randn(4, 2, 3)], "ids": [1, 2]}, "ids must be (4,)"),
        ({"views": [torch.zeros(0, 2, 3)]}, "it has no rows"),
        ({"views": [torch.randn(4, 3)]}, "no views and no labels"),
        ({"views": [torch.randn(4, 2, 3)], "losses": torch.rand(3)}, "their shape must be (4,) or (8,)"),
        *(({"views": [torch.randn(4, 2, 3)], "caller_loss": x}, "one number; got a") for x in (torch.ones(3), "much")),
    ],
)
def test_what_are_no_rows(given: dict, why: str) -> None:
    views, more = given.get("views", []), {k: v for k, v in given.items() if k != "views"}
    with watch("wrong", loss="nt_xent", every=1) as w:
        w.step(*views, **more)
    assert why in note_of(w)
    if "losses" in given or "caller_loss" in given:  # left out with a sentence; the loss itself is recorded
        assert "loss" in w.run.metrics()[0]


def test_a_batch_beyond_what_is_looked_at(monkeypatch) -> None:
    monkeypatch.setattr(steps, "MOST_ROWS", 16)
    with watch("large", loss="nt_xent", every=1, strict=True) as w:
        w.step(torch.randn(30, 2, 3), ids=torch.arange(30))
    assert recorded_rows.read(w.run, 1).ids.tolist()[::2] == [str(i) for i in range(0, 30, 4)]
    assert "rows (44: the step has more rows than the limit)" in note_of(w)


def test_a_probe_that_cannot_be_followed() -> None:
    data = torch.utils.data.TensorDataset(torch.randn(12, 3))
    with watch("probe", loss="nt_xent", every=1) as w:
        w.probe(lambda x: x, torch.utils.data.DataLoader(data, 4, shuffle=True))
        w.probe(lambda x: "rows", [torch.randn(4, 3)])
        w.probe(lambda x: x, [])
    note = note_of(w)
    assert "the probe's loader shuffles and returns no ids" in note
    assert "encode must give rows" in note
    assert "returns no batches" in note
    assert w.run.snapshots() == []


def test_a_probe_set_that_changes() -> None:
    x = torch.eye(6, 4)
    batches = [(x, torch.arange(6) % 2, torch.arange(6))]
    with watch("changes", loss="nt_xent", every=1) as w:
        w.step(torch.randn(4, 2, 3))
        w.probe(lambda x: x, batches)
        w.step(torch.randn(4, 2, 3))
        other = torch.tensor([3, 1, 9, 3])
        rows = x[:4].clone()
        rows[1] = torch.nan
        w.probe(lambda x: x, [(rows, other % 2, other)])
    assert w.run.snapshots() == [1]  # of the second only one row can be used
    note = note_of(w)
    assert "rows of the probe set (1: the first probe had no such ids)" in note
    assert "rows of the probe set (1: their id is already recorded)" in note
    assert "rows of the probe set (1: not finite)" in note


def test_a_loop_without_gradients(caplog) -> None:
    """The value is compared, and the recording says that the gradient is not."""
    for mode in (torch.no_grad, torch.inference_mode):
        with watch(mode.__name__, loss="nt_xent", temperature=0.5, every=1, strict=True) as w:
            for _ in range(3):
                with mode():
                    z = torch.randn(8, 2, 4)
                    w.step(z, caller_loss=losses.create("nt_xent", temperature=0.5)(pairs.from_views(z)).value)
                w._recorder.wait()
        record = read_object(w.run.path / CHECK_FILE, CHECK)
        assert str(record["problem"]).startswith("Only the loss value is compared: no gradient reached the rows.")
        assert record["faults"] == []
    assert not caplog.records
