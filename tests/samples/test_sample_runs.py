"""Samples of runs and of loaded vectors: tables in processes of their own, decisions, time."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sample_sets import blobs

from benchmarks import planted_errors
from contrastive_core.data import datasets
from contrastive_core.engine import client, questions
from contrastive_core.evaluation import embed
from contrastive_core.paths import SHIPPED
from contrastive_core.records import loaded_vectors, runs, sample_table
from contrastive_core.records.sample_request import request_of
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples import explanation as sample_explain
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples import run_samples as sample_build


def test_loss_over_snapshots() -> None:
    run, rows = runs.create("seen", {"method": "sup_con", "loss": "sup_con"}), blobs()
    for epoch, noise in ((1, 3.0), (2, 0.0)):
        z = rows.features + noise * np.random.default_rng(0).normal(size=rows.features.shape)
        run.save_snapshot(epoch, index=np.arange(300), h=z, z=z, labels=rows.labels)
    found = sample_build.loss_over_snapshots(run, str(run.config["loss"]))
    assert found["epochs"].tolist() == [1, 2]
    assert found["loss"].shape == (2, 300)
    assert found["loss"][1].mean() < found["loss"][0].mean()


def test_snapshots_without_classes_say_so_and_stop_nothing() -> None:
    run = runs.create("unlabeled", {"method": "simclr", "loss": "nt_xent"})
    (run.path / "weights.safetensors").write_bytes(b"weights")
    z = blobs().features
    none = np.full(300, -1)
    run.save_snapshot(1, index=np.arange(300), h=z, z=z, labels=none)
    with pytest.raises(ValueError, match="no classes"):
        sample_build.loss_over_snapshots(run, str(run.config["loss"]))
    sample_build.update_snapshot_losses(run, "nt_xent")
    kept = sample_table.read_arrays(request_of("unlabeled", "train", "nt_xent").path("snapshots"))
    assert kept is not None
    assert "no classes" in str(kept["why"])


def test_loaded_vectors_are_listed_by_a_process_that_can_be_stopped() -> None:
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(blobs(), "mine.npz")
    request = request_of(name, "train", "sup_con")
    assert request.table() is None
    task = questions.samples(request)
    assert task.failure() is None
    task.start()
    task.stop()
    wait_for(lambda: task.progress() is None)
    assert task.failure() == "It was stopped."
    task.forget()
    task.start()
    os.kill(client.worker_pid() or 0, signal.SIGKILL)
    wait_for(lambda: task.progress() is None)
    assert "ended from outside" in (task.failure() or "")
    task.start()
    wait_for(lambda: task.progress() is None)
    assert task.failure() is None
    table = request.table()
    assert table is not None
    exact, _ = sample_losses.per_sample(sample_losses.LossInputs(blobs(), "sup_con"))
    np.testing.assert_allclose(table.columns["loss"], exact, rtol=1e-5)
    assert table.knob == "temperature"
    made = sample_explain.explain_sample(request, "4")
    assert made.loss == pytest.approx(exact[4], rel=1e-5)
    sample_annotations.add(request.marked, "4", "drop")
    assert sample_annotations.export(request.marked)[0] == "--exclude"
    with pytest.raises(ValueError, match="no sample 'x'"):
        sample_explain.explain_sample(request, "x")


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
    table = sample_build.samples_of_run(run, on_progress=lambda what, share: told.append(what))
    assert len(table) == len(digits) - 1
    assert table.row(digits.ids[0]) is None
    assert table.columns["label"][table.row(digits.ids[1])] == "7"
    stages = {"embedding the train images", "augmented views", "loss of every sample", "issues"}
    assert set(told) >= stages
    assert table.extra["loss_by_draw"].shape == (len(table), 2)
    assert 0 < table.facts["variance_share"] < 1
    again = sample_build.samples_of_run(run, on_progress=lambda what, share: pytest.fail("made twice"))
    np.testing.assert_array_equal(again.columns["loss"], table.columns["loss"])
    request = request_of("changed", "train", "nt_xent")
    first = sample_explain.explain_sample(request, digits.ids[1])
    assert [p.id for p in first.weakest_positives] == [digits.ids[1]]
    assert first.kernel is not None
    assert first.mask.tolist().count(2) == 2 * (len(table) - 1)


def changed(folder: Path, digits: datasets.Dataset) -> dict[str, str]:
    (folder / "gone.txt").write_text(f"{digits.ids[0]}\n")
    (folder / "new.csv").write_text(f"id,label\n{digits.ids[1]},7\n")
    return {"exclude": str(folder / "gone.txt"), "relabel": str(folder / "new.csv")}


def test_planted_errors_come_first_as_with_the_peer() -> None:
    """Real digits with 5 % flips, 1 % copies of test images and 1 % noise."""
    pytest.importorskip("cleanlab")
    run, digits = runs.load("simclr-digits"), datasets.load("digits", "train")
    method, random = embed.load_model(run, digits, "cpu"), embed.random_encoder_of(run, digits)
    outcome = planted_errors.outcome("digits", 0, method, random, hard=False)
    found = outcome.precision
    assert found["mislabeled"]["ours"] > 0.95
    assert found["duplicate"]["ours"] > 0.99
    assert found["outlier"]["ours"] > 0.99
    table = planted_errors.best_of([found])
    mine, theirs = (np.mean([row[i] for row in table.values()]) for i in (0, 1))
    assert mine >= theirs - planted_errors.SLACK


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
