"""Lists of wrong labels that rest on a frozen encoder instead of the run's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.cli.main import main
from contrastive_core.records import runs
from contrastive_core.records.frozen import parse
from contrastive_core.samples import run_samples


def test_lists_rest_on_the_frozen_encoder_and_the_loss_on_the_run() -> None:
    run = runs.load("simclr-digits")
    own = run_samples.samples_of_run(run, split="test", device="cpu")
    found = run_samples.samples_by_frozen(run, parse("run:sup_con-digits"), split="test", device="cpu")
    same = run_samples.samples_by_frozen(run, parse("run:simclr-digits"), split="test", device="cpu")
    assert list(found.columns["id"]) == list(own.columns["id"])
    np.testing.assert_allclose(found.columns["loss"], own.columns["loss"], rtol=1e-4)
    assert not np.allclose(found.columns["mislabeled"], own.columns["mislabeled"])
    np.testing.assert_allclose(same.columns["mislabeled"], own.columns["mislabeled"], atol=1e-3)


def test_the_command_says_which_encoder_and_refuses_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["samples", "simclr-digits", "--split", "test", "--json"]
    assert main([*asked, "--frozen", "run:sup_con-digits", "--out", str(tmp_path / "a.csv")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["frozen"] == "run:sup_con-digits"
    assert record["wrong_low"] <= record["wrong"] <= record["wrong_high"]
    assert (tmp_path / "a.csv").read_text().count("\n") == 361
    assert main([*asked, "--frozen", "run:a", "--frozen", "run:b"]) == 2
    assert "samples takes one --frozen encoder" in capsys.readouterr().err
