"""Published figures follow from the weights, or `verify` says which do not."""

import dataclasses
from pathlib import Path

import pytest

from contrastive_core import runs
from contrastive_core.base.score import Score
from contrastive_core.compare import evaluate
from contrastive_core.compare.evaluate import accepted, deviations
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.runs.run import Run


@pytest.fixture
def run() -> Run:
    """The smallest run that comes along."""
    return runs.load("sup_con-digits")


def test_the_figures_that_come_along_follow_from_the_weights(run: Run) -> None:
    assert deviations(run) == []


def test_a_figure_that_does_not_follow_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    record = read_evaluation(run)
    assert record is not None
    knn, rankme = record.scores["h"]["knn"], record.scores["random"]["rankme"]
    record.scores["h"]["knn"] = dataclasses.replace(knn, value=(knn.value or 0) - 0.02)
    record.scores["random"]["rankme"] = dataclasses.replace(rankme, value=(rankme.value or 0) * 1.1)
    monkeypatch.setattr(evaluate, "read_evaluation", lambda run: record)
    found = deviations(run)
    assert len(found) == 2
    assert "knn of encoder output (h) is" in found[0]
    assert "rankme of untrained encoder is" in found[1]


def test_figures_of_other_weights_are_not_trusted(run: Run, tmp_path: Path) -> None:
    other = dataclasses.replace(run, path=tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(b"other")
    assert deviations(other) == ["its scores are missing or belong to other weights"]


def test_what_is_accepted_follows_from_the_interval() -> None:
    share = Score("kNN", value=0.9, interval=(0.88, 0.92), unit="share", extras={"n": 1000})
    assert accepted(share) == pytest.approx(0.004)
    few = dataclasses.replace(share, extras={"n": 100})
    assert accepted(few) == pytest.approx(0.02)  # two of a hundred samples
    assert accepted(Score("Uniformity", value=-2.0, interval=(-2.1, -1.9))) == pytest.approx(0.02)
    assert accepted(Score("RankMe", value=-30.0)) == pytest.approx(0.3)
