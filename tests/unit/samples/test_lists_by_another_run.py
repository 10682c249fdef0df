"""Lists of wrong labels that rest on the encoder of another run on the same images."""

import json
from pathlib import Path

import numpy as np
import pytest

from contrastive_core import runs
from contrastive_core.cli.main import main
from contrastive_core.engine import jobs
from contrastive_core.samples import run_samples
from contrastive_core.samples.sample_table import request_of


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
