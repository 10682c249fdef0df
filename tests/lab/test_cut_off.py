"""The cut-off on the list of likely wrong labels: what it says, draws and leaves."""

from __future__ import annotations

import numpy as np
import pytest
from test_sample_page import heading, opened, text_of

from contrastive_core import runs
from contrastive_core.jobs import process
from contrastive_core.paths import ROOT
from contrastive_core.samples import build as sample_build
from contrastive_lab import plots
from contrastive_lab.samples import cut_off


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(process, "spawn", lambda *a, **k: None)


def test_what_is_expected_above_a_cut_off() -> None:
    score = np.array([1.0, 0.9, 0.8, 0.3, 0.0])
    said = cut_off.expected(score, 0.5)
    assert said.startswith("3 of 5 labels score above 0.50; 90% of them are expected to be wrong")
    spread = 1.96 * np.sqrt(0.9 * 0.1 + 0.8 * 0.2) / 3
    assert f"(95 %: {0.9 - spread:.0%} to 100%), and 0 more below it." in said
    assert cut_off.expected(score, 1.0) == "No label scores above 1.00."


def test_the_histogram_counts_each_score_once_on_its_side_of_the_cut() -> None:
    score = np.random.default_rng(0).beta(0.3, 2, 500)
    for cut in (0.0, 0.31, 0.5, 1.0):
        below, above = plots.histogram(score, cut, "score", "samples", 50).data
        assert below.y.sum() == (score <= cut).sum()
        assert above.y.sum() == (score > cut).sum()
        assert not above.y[np.asarray(above.x) < cut - 0.02].any()


def test_every_cut_off_counts_and_leaves_what_is_above() -> None:
    run = runs.load("simclr-digits")
    table = sample_build.samples_of_run(run, split="test")
    score = table.score("mislabeled")
    app = opened(run=run.name, split="test")
    told = {text_of(app)}
    cuts = [float(q) for q in (0.02, 0.3, 0.9)]
    for cut in cuts:
        next(s for s in app.slider if s.label == "Cut-off").set_value(cut).run()
        assert f"{(score > cut).sum():,} of 360 labels score above {cut:.2f}" in text_of(app)
        told.add(text_of(app))
    assert len(told) == 1 + len(cuts)
    next(s for s in app.slider if s.label == "Cut-off").set_value(0.02).run()
    next(t for t in app.toggle if t.label == "Only those above the cut-off").set_value(True).run()
    assert heading(app).startswith(f"1 of {(score > 0.02).sum()}:")
    assert not app.exception
