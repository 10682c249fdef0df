"""Published figures follow from the weights, or `verify` says which do not."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

from contrastive_core.evaluation.reproduce import accepted, deviations
from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.records.score import Score
from contrastive_core.storage import json_files


@pytest.fixture
def run(tmp_path) -> Run:
    """The smallest run that comes along, in a folder of its own."""
    source = runs.load("sup_con-digits")
    path = tmp_path / "shipped" / source.name
    shutil.copytree(source.path, path)
    return dataclasses.replace(source, path=path)


def test_the_figures_that_come_along_follow_from_the_weights(run: Run) -> None:
    assert deviations(run) == []


def test_a_figure_that_does_not_follow_is_named(run: Run) -> None:
    record = json_files.read_json(run.path / "evaluation.json")
    record["scores"]["h"]["knn"]["value"] -= 0.02
    record["scores"]["random"]["rankme"]["value"] *= 1.1
    (run.path / "evaluation.json").write_text(json.dumps(record))
    found = deviations(run)
    assert len(found) == 2
    assert "knn of encoder output (h) is" in found[0]
    assert "rankme of untrained encoder is" in found[1]


def test_figures_of_other_weights_are_not_trusted(run: Run) -> None:
    record = json_files.read_json(run.path / "evaluation.json")
    (run.path / "evaluation.json").write_text(json.dumps({**record, "weights": "0" * 64}))
    assert deviations(run) == ["evaluation.json is missing or belongs to other weights"]


def test_what_is_accepted_follows_from_the_interval() -> None:
    share = Score("kNN", value=0.9, interval=(0.88, 0.92), unit="share", extras={"n": 1000})
    assert accepted(share) == pytest.approx(0.004)
    few = dataclasses.replace(share, extras={"n": 100})
    assert accepted(few) == pytest.approx(0.02)  # two of a hundred samples
    assert accepted(Score("Uniformity", value=-2.0, interval=(-2.1, -1.9))) == pytest.approx(0.02)
    assert accepted(Score("RankMe", value=-30.0)) == pytest.approx(0.3)
