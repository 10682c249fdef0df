"""One embedding, one figure: every command and every page shows the score that is kept."""

import json

import numpy as np
import pytest

from contrastive_core import runs
from contrastive_core.__main__ import main
from contrastive_core.base import memory, storage
from contrastive_core.base.errors import UnknownName
from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.score import scores_from_json
from contrastive_core.compare import embed
from contrastive_core.compare.comparison import Comparison, comparison_request
from contrastive_core.compare.evaluation import read_accuracies, read_evaluation
from contrastive_core.data import datasets
from contrastive_core.engine import answers, run_folders
from contrastive_core.engine.answers import scores as score_analyses
from contrastive_core.engine.answers.scores import evaluate
from contrastive_core.runs.run import Run
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space, path_of

NAMES = ["knn", "linear_probe"]
ROWS = {"train": 250, "test": 150}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run on digits whose embeddings are there, with overlapping classes."""
    run = runs.create("scored", runs.load("simclr-digits").config)
    storage.write_bytes(run.weights, b"weights")
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
            write_npz(path, **rows.arrays())
    monkeypatch.setattr(embed, "load_model", lambda *a: pytest.fail("it is embedded already"))
    few = {}  # raw pixels and the random encoder are beside the point, and slow
    for split in ("train", "test"):
        few[split] = EmbeddingSet.from_arrays(read_npz(path_of(run, split, "h")))
    monkeypatch.setattr(score_analyses, "raw_pixels", lambda dataset: few[dataset.split])
    monkeypatch.setattr(score_analyses, "random_encoder", lambda r, d, device, **more: (few[d.split], None))
    return run


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    assert main([*argv, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_every_command_and_page_shows_the_one_figure(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "evaluate", run.name)["scores"]["h"]
    record = read_evaluation(run)
    assert record is not None
    figures = {name: record.value("h", name) for name in NAMES}  # cards, Runs, Methods, sweeps
    assert figures == {name: said[name]["value"] for name in NAMES}
    assert 0.5 < figures["knn"] < 0.99
    assert printed(capsys, "evaluate", run.name, "--metrics", "knn")["scores"]["h"] == {"knn": said["knn"]}
    table = read_accuracies(run)
    assert table is not None
    assert {name: table.value("h", name) for name in NAMES} == figures
    assert set(table.scores["raw"]) == set(NAMES)

    space = Space.of_run(run)
    scores = answers.make("scores", {"space": space.values}).meta["scores"]  # Explore
    own = scores_from_json(scores["own"])
    assert {name: own[name].value for name in NAMES} == figures
    assert (
        scores["raw"] == answers.make("scores", {"space": Space.of_run(run, "test", "z").values}).meta["scores"]["raw"]
    )

    answer = answers.make("comparison", comparison_request([space, space]))  # Compare
    made = Comparison.of(answer.meta, answer.arrays)
    for name in NAMES:
        assert made.scores[0][name].value == made.accuracy[name][0] == figures[name]

    run.set_status("done")
    renamed = read_evaluation(run_folders.rename(run.name, "renamed"))
    assert renamed is not None
    assert {name: renamed.value("h", name) for name in NAMES} == figures


@pytest.mark.parametrize("every_score", [False, True])
def test_tables_of_runs_show_what_a_comparison_has_scored(run: Run, every_score: bool) -> None:
    assert read_accuracies(run) is None
    values = comparison_request([Space.of_run(run), Space.of_run(run)], every_score)
    answer = answers.make("comparison", values)
    made = Comparison.of(answer.meta, answer.arrays)
    table = read_accuracies(run)
    assert table is not None
    assert table.value("h", "knn") == made.accuracy["knn"][0]
    assert table.score("h", "knn").interval is not None
    assert (table.value("h", "linear_probe") is not None) == every_score
    assert (table.n_train, table.n_test) == (ROWS["train"], ROWS["test"])
    assert read_evaluation(run) is None  # it is no evaluation: nothing stands beside it
    evaluate(run, device="cpu")
    assert "raw" in read_accuracies(run).scores


def test_scores_that_were_asked_for_alone_are_no_evaluation_and_splits_do_not_mix(run: Run) -> None:
    found = evaluate(run, device="cpu", metrics=["knn"])
    assert set(found.scores["h"]) == set(found.scores["raw"]) == {"knn"}
    assert read_evaluation(run) is None
    train = evaluate(run, "train", "cpu", metrics=["knn", "rankme"])
    assert "needs training rows" in train.scores["h"]["knn"].missing  # not judged by themselves
    assert train.value("h", "rankme") is not None
    with pytest.raises(UnknownName):
        evaluate(run, metrics=["nothing"])


def test_a_large_embedding_is_gathered_in_a_file_that_an_interruption_leaves_nothing_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = runs.load("simclr-digits")
    shipped = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    whole = embed.from_weights(run, embed.data_of(run, "test"), "cpu")
    folder = path_of(run, "test", "h").parent
    monkeypatch.setattr(memory, "MAPPED_ROWS", 0)
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
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == shipped  # nothing is written there
