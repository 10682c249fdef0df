"""The command line on a recording: what works, and the sentence where nothing can."""

from __future__ import annotations

import json

import pytest
import torch

from contrastive_core import watch
from contrastive_core.cli import main


@pytest.fixture
def closed() -> str:
    x, y = torch.randn(30, 5, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3
    with watch("watched", loss="sup_con", every=1, strict=True) as w:
        for step in range(2):
            w.step(x, labels=y, ids=torch.arange(30))
            w.probe(lambda x, step=step: x + step, [(x, y, torch.arange(30))])
    return "watched"


def test_its_samples_with_their_losses_over_time(closed: str, capsys) -> None:
    main.main(["samples", closed, "--json"])
    record = json.loads(capsys.readouterr().out)
    assert record["run"] == "recording:watched@probe-2"
    assert record["rows"] == 30
    assert record["loss"] == "sup_con"


def test_it_is_verified_listed_scored_and_mapped(closed: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    main.main(["verify", "--files", closed, "--json"])
    assert json.loads(capsys.readouterr().out)["runs"] == {closed: []}
    main.main(["list", "--json"])
    assert closed in capsys.readouterr().out
    assert main.main(["embed", closed]) != 0
    assert "watched is a recording" in capsys.readouterr().err
    assert main.main(["evaluate", closed]) == 0
    assert main.main(["project", closed, "--out", "map.csv"]) == 0
