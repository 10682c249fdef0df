"""Samples of runs and of loaded vectors: tables in processes of their own, and what they rest on."""

import functools
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
from contrastive_core.compare.embed import load_model
from contrastive_core.data import datasets
from contrastive_core.engine import client, jobs
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples import run_samples as sample_build
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
    os.kill(client.call("os:getpid"), signal.SIGKILL)
    wait_for(lambda: task.progress() is None)
    assert "ended by another program" in (task.failure() or "")
    task.start()
    wait_for(lambda: task.progress() is None)
    assert task.failure() is None
    table = request.table()
    assert table is not None
    exact, _ = sample_losses.per_sample(sample_losses.LossInputs(blobs(), "sup_con"))
    np.testing.assert_allclose(table.columns["loss"], exact, rtol=1e-5)
    made = sample_build.explain_sample(request, "4")
    assert made.loss == pytest.approx(exact[4], rel=1e-5)
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
    request, told = request_of("changed", "train"), list[str]()
    make = functools.partial(sample_build.make_table, request)
    shares: list[float] = []
    table = make(lambda *one: (told.append(one[0]), shares.append(one[1])))
    assert shares == sorted(shares)  # one bar
    assert (shares[0], len({*told})) == (0, 5)
    assert 0.8 < shares[-1] <= 1
    assert len(table) == len(digits) - 1
    assert table.row(digits.ids[0]) is None
    assert table.columns["label"][table.row(digits.ids[1])] == "7"
    stages = {"embedding the train images", "augmented views", "loss of every sample", "issues"}
    assert set(told) >= stages
    again = make(lambda what, share: pytest.fail("made twice"))
    np.testing.assert_array_equal(again.columns["loss"], table.columns["loss"])
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
    for most, step in ((sample_build.MOST, 1), (10 * 768, 2), (1, 32)):  # one pixel at least
        monkeypatch.setattr(sample_build, "MOST", most)
        expected = images[:, :, ::step, ::step].reshape(10, -1) / 255
        np.testing.assert_allclose(sample_build.pixel_rows(images)[0], expected, rtol=1e-6)
