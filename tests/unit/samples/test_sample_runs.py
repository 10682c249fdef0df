"""Samples of runs and of loaded vectors: tables in processes of their own, lists by another run, decisions, time."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sample_sets import blobs

from contrastive_core import runs
from contrastive_core.base.storage import SHIPPED
from contrastive_core.cli.main import main
from contrastive_core.compare.embed import load_model
from contrastive_core.data import datasets
from contrastive_core.engine import client, jobs
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples import run_samples
from contrastive_core.samples import run_samples as sample_build
from contrastive_core.samples.sample_lists import LISTS
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import loaded_vectors


def test_loaded_vectors_are_listed_by_a_process_that_can_be_stopped() -> None:
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(blobs(), "mine.npz")
    request = request_of(name, "train", "sup_con")
    assert request.table() is None
    task = jobs.samples(request)
    assert task.failure() is None
    task.start()
    task.stop()
    wait_for(lambda: task.progress() is None)
    assert task.failure() == "It was stopped."
    task.forget()
    task.start()
    os.kill(client.worker_pid() or 0, signal.SIGKILL)
    wait_for(lambda: task.progress() is None)
    assert "ended by another program" in (task.failure() or "")
    task.start()
    wait_for(lambda: task.progress() is None)
    assert task.failure() is None
    table = request.table()
    assert table is not None
    exact, _ = sample_losses.per_sample(sample_losses.LossInputs(blobs(), "sup_con"))
    np.testing.assert_allclose(table.columns["loss"], exact, rtol=1e-5)
    assert table.knob == "temperature"
    made = sample_build.explain_sample(request, "4")
    assert made.loss == pytest.approx(exact[4], rel=1e-5)
    sample_annotations.add(request.marked, "4", "drop")
    assert sample_annotations.export(request.marked)[0] == "--exclude"
    with pytest.raises(ValueError, match="no sample 'x'"):
        sample_build.explain_sample(request, "x")


def wait_for(done: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_runs_table_follows_what_it_was_trained_on(tmp_path: Path) -> None:
    """Relabeled samples carry the new class, excluded ones are gone; the rest is cached."""
    source = SHIPPED / "simclr-digits"
    digits = datasets.load("digits", "train")
    run = runs.create("changed", {**runs.load("simclr-digits").config, **changed(tmp_path, digits)})
    shutil.copy(source / "weights.safetensors", run.weights)
    told: list[str] = []
    shares: list[float] = []
    table = sample_build.samples_of_run(run, on_progress=lambda *one: (told.append(one[0]), shares.append(one[1])))
    assert shares == sorted(shares)  # one bar
    assert (shares[0], len({*told})) == (0, 7)
    assert 0.8 < shares[-1] <= 1
    assert len(table) == len(digits) - 1
    assert table.row(digits.ids[0]) is None
    assert table.columns["label"][table.row(digits.ids[1])] == "7"
    stages = {"embedding the train images", "augmented views", "loss of every sample", "issues"}
    assert set(told) >= stages
    assert table.extra["loss_by_draw"].shape == (len(table), 2)
    assert 0 < table.facts["variance_share"] < 1
    assert next(iter(LISTS["mislabeled"].facts(table))).endswith("averaged with those of 4 augmented views of it.")
    again = sample_build.samples_of_run(run, on_progress=lambda what, share: pytest.fail("made twice"))
    np.testing.assert_array_equal(again.columns["loss"], table.columns["loss"])
    request = request_of("changed", "train", "nt_xent")
    first = sample_build.explain_sample(request, digits.ids[1])
    assert [p.id for p in first.weakest_positives] == [digits.ids[1]]
    assert first.kernel is not None
    assert first.mask.tolist().count(2) == 2 * (len(table) - 1)
    assert first.views is not None
    dataset = sample_build.rows_of(run, "train")[0]  # the views that are shown are those that the loss compares
    method, kept = load_model(run, dataset, "cpu"), sample_build.kept_views(run, "train", dataset)
    with torch.no_grad():
        z = method.project(method.features(torch.from_numpy(first.views).float() / 255))
    np.testing.assert_allclose(z.numpy(), kept[dataset.ids.index(digits.ids[1])], rtol=0.05, atol=0.05)


def changed(folder: Path, digits: datasets.Dataset) -> dict[str, str]:
    (folder / "gone.txt").write_text(f"{digits.ids[0]}\n")
    (folder / "new.csv").write_text(f"id,label\n{digits.ids[1]},7\n")
    return {"exclude": str(folder / "gone.txt"), "relabel": str(folder / "new.csv")}


def test_pixels_are_thinned_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).integers(0, 256, (10, 3, 32, 32), dtype=np.uint8)
    whole = sample_build.pixel_rows(images)[0]
    np.testing.assert_allclose(whole, images.reshape(10, -1) / 255, rtol=1e-6)
    monkeypatch.setattr(sample_build, "MOST", 10 * 768)
    np.testing.assert_allclose(
        sample_build.pixel_rows(images)[0], images[:, :, ::2, ::2].reshape(10, -1) / 255, rtol=1e-6
    )
    monkeypatch.setattr(sample_build, "MOST", 1)
    assert sample_build.pixel_rows(images)[0].shape == (10, 3)  # one pixel at least


def test_lists_rest_on_the_other_encoder_and_the_loss_on_the_run() -> None:
    run, by = runs.load("simclr-digits"), "sup_con-digits"
    own = run_samples.samples_of_run(run, split="test", device="cpu")
    found = run_samples.samples_of_run(run, split="test", device="cpu", by=by)
    same = run_samples.samples_of_run(run, split="test", device="cpu", by="simclr-digits")
    assert list(found.columns["id"]) == list(own.columns["id"])
    np.testing.assert_allclose(found.columns["loss"], own.columns["loss"], rtol=1e-4)
    assert not np.allclose(found.columns["mislabeled"], own.columns["mislabeled"])
    np.testing.assert_allclose(same.columns["mislabeled"], own.columns["mislabeled"], atol=1e-3)
    asked = request_of(run.name, "test", own.loss, by)
    kept, of_run = asked.table(), request_of(run.name, "test", own.loss).table()
    assert kept is not None  # each in a file of its own
    assert of_run is not None
    np.testing.assert_array_equal(kept.columns["mislabeled"], found.columns["mislabeled"])
    np.testing.assert_array_equal(of_run.columns["mislabeled"], own.columns["mislabeled"])
    assert jobs.samples(asked).result_path == asked.path()


def test_the_command_says_which_encoder_and_refuses_other_images(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["samples", "simclr-digits", "--split", "test", "--json"]
    assert main([*asked, "--lists-by", "sup_con-digits", "--out", str(tmp_path / "a.csv")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["lists_by"] == "sup_con-digits"
    assert not [key for key in record if key.startswith("wrong")]  # no number without a random check
    assert (tmp_path / "a.csv").read_text().count("\n") == 361
    np.save(tmp_path / "z.npy", np.eye(4, dtype=np.float32))
    assert main(["samples", str(tmp_path / "z.npy"), "--lists-by", "simclr-digits"]) == 2
    assert "a file of vectors has no images" in capsys.readouterr().err
    assert main([*asked, "--lists-by", "simclr-shapes"]) == 2
    assert "simclr-shapes is a run on different images" in capsys.readouterr().err
