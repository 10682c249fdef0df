"""The cut-off on the list of likely wrong labels: what it says, draws and leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sample_desk import Desk, opened, text_of

from contrastive_core.records import runs
from contrastive_core.records.sample_table import SampleTable, reason
from contrastive_core.samples import run_samples as sample_build
from contrastive_lab.components.cut_off import CutOff
from contrastive_lab.samples import bench, cut_off

pytestmark = pytest.mark.usefixtures("no_processes")


def test_what_is_expected_above_a_cut_off() -> None:
    score = np.array([1.0, 0.9, 0.8, 0.3, 0.0])
    said = cut_off.expected(score, 0.5)
    assert said == "About 3 of these 3 labels look wrong to this encoder, and 0 more below the cut-off."
    assert cut_off.expected(score, 1.0) == "No label scores above 1.00."
    assert cut_off.expected(score, 0.95).startswith("About 1 of these 1 labels look wrong")
    assert cut_off.suspects(score, 0.5) == "3 suspects above 0.50"
    assert cut_off.suspects(score, 0.5, False, np.zeros(len(score), bool)) == "3 suspects above 0.50, 0 undecided"
    assert cut_off.suspects(score, 0.95) == "1 suspect above 0.95"
    assert cut_off.suspects(score, 0.5, so_far=True) == "So far 3 above 0.50"


def test_the_histogram_counts_each_score_once_on_its_side_of_the_cut() -> None:
    score = np.concatenate([np.random.default_rng(0).beta(0.3, 2, 500), cut_off.CUTS])
    counts = np.array(cut_off.counts(score))
    assert counts.sum() == len(score)
    for at, cut in enumerate(cut_off.CUTS[1:], 1):  # a score of 0 has no bin below it
        assert counts[at:].sum() == (score > cut).sum(), cut


def test_every_cut_off_counts_and_leaves_what_is_above(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.load("simclr-digits")
    table = sample_build.samples_of_run(run, split="test")
    score = table.score("mislabeled")
    drawn: list[tuple[CutOff, Callable[[], None]]] = []
    monkeypatch.setattr(cut_off, "draw_cut_off", lambda *a: drawn.append((a[0], a[2])))
    app = opened(run=run.name, split="test")
    for cut in (0.02, 0.06, 0.1):
        app = opened(run=run.name, split="test", cut=str(cut))
        shown, _ = drawn[-1]
        assert shown.cut == pytest.approx(cut)
        count = int((score > cut).sum())
        assert count > 0
        assert desk.place == f"1 of {count}"
        assert shown.heads[round(cut * 50)].startswith(f"{count} suspect")
    assert sum(drawn[-1][0].counts) == 360
    opened(run=run.name, split="test", cut="1")
    assert desk.place == "1 of 360"  # nothing above: all, the likeliest first
    opened(run=run.name, split="test", cut="0.02", every="yes")
    assert desk.place == "1 of 360"
    assert "wrong labels among 360. There may be" in text_of(app)
    assert "95 %" not in text_of(app)
    assert not app.exception


def test_false_negatives_and_ambiguous_samples_have_a_cut_off_and_contradict_no_label(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sample_build.samples_of_run(runs.load("simclr-digits"), split="test")
    drawn: list[CutOff] = []
    monkeypatch.setattr(cut_off, "draw_cut_off", lambda *a: drawn.append(a[0]))
    for name in ("false_negative", "ambiguous"):
        app = opened(run="simclr-digits", split="test", list=name)
        assert not app.exception
        score = table.score(name)
        cuts, first = cut_off.cuts_of(name, score[np.isfinite(score)])
        count = int((score > first).sum())
        shown = drawn[-1]
        assert 0 < count < 60
        assert desk.place == f"1 of {count}"
        assert shown.heads[int(np.abs(cuts - first).argmin())].startswith(f"{count} suspects above")
        assert sum(shown.counts) == 360
        for item in desk.bench.items:
            wrong = table.columns["mislabeled"][table.row(item.id)]
            assert item.keep_first == (wrong <= 0.5)
            assert wrong > 0.5 or item.sentence == f"Labeled {item.given}."
            assert item.given not in item.likely
            assert len(item.likely) == 3
    same = [
        table.columns["label"][table.row(str(other))] == label
        for other, label in zip(table.extra["lookalike"], table.columns["label"], strict=True)
    ]
    assert cut_off._of_same_class(table).tolist() == same


def test_the_bench_says_the_probability_in_the_words_of_the_list() -> None:
    for p, told in ((1.0, "100%"), (0.9998, "over 99%"), (0.992, "over 99%"), (0.98, "98%")):
        columns = {"label": np.array(["4"]), "mislabeled": np.array([p])}
        extra = {
            name: np.array(["3"])
            for name in ("suggested", "min_loss_class", "knn_prediction", "probe_prediction", "discriminant_prediction")
        }
        extra["suggested_probability"] = np.array([p])
        table = SampleTable(columns, ("3", "4"), "nt_xent", extra)
        assert bench._sentence(table, "mislabeled", 0, "4", "3").endswith(f" with probability {told}.")
        assert f"wrong with {told}; likely 3 ({told})" in reason(table, "mislabeled", 0)
