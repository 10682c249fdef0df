"""Lists of wrong labels that rest on a frozen encoder instead of the run's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.cli.main import main
from contrastive_core.engine import questions
from contrastive_core.records import runs
from contrastive_core.records.frozen import parse
from contrastive_core.records.sample_request import request_of
from contrastive_core.samples import run_samples


def test_lists_rest_on_the_frozen_encoder_and_the_loss_on_the_run() -> None:
    run = runs.load("simclr-digits")
    own = run_samples.samples_of_run(run, split="test", device="cpu")
    by = parse("run:sup_con-digits")
    found = run_samples.samples_of_run(run, split="test", device="cpu", frozen=by)
    same = run_samples.samples_of_run(run, split="test", device="cpu", frozen=parse("run:simclr-digits"))
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
    assert asked.path("views") == request_of(run.name, "test", own.loss).path("views")
    assert questions.samples(asked).result_path == asked.path()


def test_a_file_that_changed_has_another_table(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    file.write_bytes(b"1")
    asked = request_of("simclr-digits", "test", "nt_xent", parse(str(file)))
    before = asked.path()
    file.write_bytes(b"12")
    assert asked.path() != before
    file.unlink()
    with pytest.raises(ValueError, match="there is no file"):
        asked.path()


def test_the_command_says_which_encoder_and_refuses_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["samples", "simclr-digits", "--split", "test", "--json"]
    assert main([*asked, "--frozen", "run:sup_con-digits", "--out", str(tmp_path / "a.csv")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["frozen"] == "run:sup_con-digits"
    assert record["wrong_low"] <= record["wrong"] <= record["wrong_high"]
    assert (tmp_path / "a.csv").read_text().count("\n") == 361
    np.save(tmp_path / "z.npy", np.eye(4, dtype=np.float32))
    assert main(["samples", str(tmp_path / "z.npy"), "--frozen", "run:simclr-digits"]) == 2
    assert "a file of vectors has no images" in capsys.readouterr().err
    assert main([*asked, "--frozen", "run:a", "--frozen", "run:b"]) == 2
    assert "samples takes one --frozen encoder" in capsys.readouterr().err
