"""One embedding, one figure: every command and every page's source gives the recorded score."""

from __future__ import annotations

import dataclasses
import json
import shutil

import numpy as np
import pytest

from contrastive_core.__main__ import main
from contrastive_core.data import datasets
from contrastive_core.embeddings import file_formats
from contrastive_core.engine import answers
from contrastive_core.engine.answers import scores as score_analyses
from contrastive_core.evaluation import embed
from contrastive_core.evaluation import evaluate as evaluation
from contrastive_core.evaluation.evaluate import evaluate
from contrastive_core.records import embedding_ref, runs
from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import cached, path_of
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import read_evaluation, read_published, write_evaluation
from contrastive_core.records.run import Run
from contrastive_core.records.score import scores_from_json
from contrastive_core.storage import atomic, json_files, large_arrays

NAMES = ["knn", "linear_probe"]
ROWS = {"train": 250, "test": 150}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run on digits whose embeddings are there, with overlapping classes."""
    run = runs.create("scored", runs.load("simclr-digits").config)
    atomic.write_bytes(run.weights, b"weights")
    for split in ("train", "test"):
        found = datasets.load("digits", split)
        n = ROWS[split]
        labels = np.asarray(found.labels[:n], np.int64)
        noise = np.random.default_rng([len(labels)]).normal(size=(len(labels), 12))
        x = np.eye(10, 12)[labels] * 2.5 + noise
        for layer in "hz":
            rows = EmbeddingSet(x.astype(np.float32), labels, tuple(found.ids[:n]), split, layer, tuple(found.classes))
            path = path_of(run, split, layer)
            path.parent.mkdir(parents=True, exist_ok=True)
            json_files.write_npz(path, **rows.arrays())
    monkeypatch.setattr(embed, "load_model", lambda *a: pytest.fail("it is embedded already"))
    monkeypatch.setattr(score_analyses, "_references", lambda *a: {})
    few = {}  # raw pixels and the random encoder are beside the point, and slow
    for split in ("train", "test"):
        few[split] = EmbeddingSet.from_arrays(json_files.read_npz(path_of(run, split, "h")))
    monkeypatch.setattr(evaluation, "raw_pixels", lambda dataset: few[dataset.split])
    monkeypatch.setattr(evaluation, "random_encoder", lambda r, d, device, **more: (few[d.split], None))
    return run


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    assert main([*argv, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def twin(run: Run) -> Run:
    """A run with the same files: a comparison takes each run once."""
    shutil.copytree(run.path, run.path.with_name("twin"))
    json_files.write_json(run.path.with_name("twin") / "run.json", {**run.manifest, "name": "twin"})
    return runs.load("twin")


def test_every_command_and_page_shows_the_recorded_figure(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "evaluate", run.name, "--metrics", ",".join(NAMES))["scores"]["h"]
    record = read_evaluation(run)
    assert record is not None
    figures = {name: record.value("h", name) for name in NAMES}  # cards, Runs, Methods, sweeps
    assert figures == {name: said[name]["value"] for name in NAMES}
    assert 0.5 < figures["knn"] < 0.99

    space = embedding_ref.of_run(run)
    scores = answers.make("scores", {"space": space.values}).meta["scores"]  # Explore
    own = scores_from_json(scores["own"])
    assert {name: own[name].value for name in NAMES} == figures

    values = {"names": ["a", "b"], "spaces": [space.values] * 2}
    answer = answers.make("comparison", values)  # Compare
    made = Comparison.of(answer.meta, answer.arrays)
    for name in NAMES:
        assert made.scores[0][name].value == made.accuracy[name][0] == figures[name]
    compared = printed(capsys, "compare", run.name, twin(run).name)
    assert {name: compared["accuracy"][name][0] for name in NAMES} == figures


def test_a_figure_that_came_along_is_shown_though_this_machine_would_round_otherwise(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three samples fall to the other side elsewhere; all places show the one figure."""
    made = evaluate(run, NAMES, device="cpu")
    for name in NAMES:
        score = made.scores["h"][name]
        right = score.arrays["per_sample"].copy()
        right[np.flatnonzero(right == 1)[:3]] = 0
        made.scores["h"][name] = dataclasses.replace(
            score, value=float(right.mean()), arrays={**score.arrays, "per_sample": right}
        )
    write_evaluation(run, made)
    figures = {name: made.value("h", name) for name in NAMES}
    space = embedding_ref.of_run(run)
    answer = answers.make("scores", {"space": space.values})
    own = scores_from_json(answer.meta["scores"]["own"])
    assert {name: own[name].value for name in NAMES} == figures
    assert answer.arrays["knn:per_sample"].mean() == pytest.approx(figures["knn"])
    compared = printed(capsys, "compare", run.name, twin(run).name)
    for name in NAMES:
        assert compared["accuracy"][name] == pytest.approx([figures[name]] * 2)


def test_scores_that_were_not_asked_for_stay_and_splits_do_not_mix(run: Run) -> None:
    evaluate(run, ["knn"], device="cpu")
    before = read_evaluation(run)
    assert before is not None
    evaluate(run, ["uniformity"], device="cpu")
    evaluate(run, ["knn", "rankme"], split="train", device="cpu")
    after = read_evaluation(run)
    assert after is not None
    assert set(after.scores["h"]) == {"knn", "uniformity"}
    assert after.value("h", "knn") == before.value("h", "knn")
    train = read_evaluation(run, "train")
    assert train is not None
    assert "needs training rows" in train.scores["h"]["knn"].missing  # not judged by themselves
    assert train.value("h", "rankme") is not None


def test_what_is_kept_comes_back(run: Run) -> None:
    made = evaluate(run, NAMES, device="cpu")
    again = read_evaluation(run)
    assert again is not None
    assert again.to_json() == json.loads(json.dumps(made.to_json()))
    for layer in "hz":
        for name in NAMES:
            one, two = (e.scores[layer][name].arrays for e in (made, again))
            assert np.array_equal(one["per_sample"], two["per_sample"])
            assert np.array_equal(one["predicted"], two["predicted"])


def test_scores_of_a_shipped_run_are_written_beside_none_of_its_files() -> None:
    run = runs.load("simclr-digits")
    published = read_published(run)
    assert published is not None
    write_evaluation(run, dataclasses.replace(published, n_train=1))
    again, shown = read_published(run), read_evaluation(run)
    assert again is not None
    assert shown is not None
    assert (again.n_train, shown.n_train) == (published.n_train, 1)


def test_embedding_a_shipped_run_writes_to_none_of_its_files() -> None:
    run = runs.load("simclr-digits")
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    embed.embed_run(run, "test", "z", "cpu")
    assert cached(run, "test", "z") is not None
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before


def test_a_large_embedding_is_gathered_in_a_file_that_an_interruption_leaves_nothing_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = runs.load("simclr-digits")
    whole = embed.from_weights(run, embed.data_of(run, "test"), "cpu")
    folder = path_of(run, "test", "h").parent
    monkeypatch.setattr(large_arrays, "MAPPED_ROWS", 0)
    monkeypatch.setattr(embed, "CHUNK", 50)
    monkeypatch.setattr(embed, "cached", lambda *_: None)

    def stop(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed.embed_run(run, "test", "h", "cpu", stop)
    assert list(folder.iterdir()) == []
    rows = embed.embed_run(run, "test", "h", "cpu")
    assert isinstance(rows.features.base, np.memmap)
    assert np.allclose(rows.features, whole["h"].features, atol=1e-5)
    written = file_formats.read(path_of(run, "test", "h"))
    assert written.content_hash == rows.content_hash
    assert len(list(folder.iterdir())) == 2  # h, z
