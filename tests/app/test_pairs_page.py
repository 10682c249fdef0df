"""Pairs of two towers on the Samples page: both lists on the same desk, their filters, decisions and files."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from opened_page import opened
from sample_desk import Desk
from streamlit.delta_generator import DeltaGenerator
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.cli.main import main
from contrastive_core.compare.towers import READING
from contrastive_core.engine import answers
from contrastive_core.recording import watch
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.sample_table import request_of
from contrastive_core.samples.tower_pairs import pair_table
from contrastive_core.spaces import example_questions, loaded_vectors, recorded_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.loaded_vectors import OtherTower, open_vectors
from contrastive_core.spaces.towers import joined

N = 30


@pytest.fixture
def name() -> str:
    """Loaded vectors of 30 questions and answers, the third and the sixth answer swapped."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 6))
    sides = [x + 0.3 * rng.normal(size=(N, 6)) for _ in range(2)]
    sides[1][[2, 5]] = sides[1][[5, 2]]
    words = [{"text": np.array([f"{name} <{i}>" for i in range(N)])} for name in ("Ask", "Say")]
    sets = [EmbeddingSet(x.astype(np.float32), columns=w) for x, w in zip(sides, words, strict=True)]
    key = loaded_vectors.save_vectors(joined(sets[0], sets[1], ("question", "answer")), "qa.npz")
    name = loaded_vectors.PREFIX + key
    answers.make("tower_pairs", {"space": request_of(name, "train", pairs=True).embedding.values})
    return name


def marks(name: str, of: str) -> list[dict[str, Any]]:
    file = request_of(name, "train", pairs=True).decisions(f"pairs-{of}")
    return [*sample_annotations.marks(file).values()]


def words(app: AppTest) -> str:
    parts = [*app.caption, *app.markdown, *app.info, *app.button, *app.selectbox, *app.text_input, *app.expander]
    return "\n".join(f"{getattr(p, 'value', '')} {getattr(p, 'label', '')}" for p in parts).replace("\\", "")


def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    """What the page offers to download, by name."""
    found: dict[str, Callable[[], str]] = {}
    monkeypatch.setattr(
        DeltaGenerator, "download_button", lambda self, label, data, name, *a, **k: found.__setitem__(name, data)
    )
    return found


def test_the_swapped_pair_stands_first_with_its_evidence(
    name: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = files(monkeypatch)
    app = opened("samples", monkeypatch, on=name)
    assert not app.exception
    assert "30 pairs of answer and question" in words(app)
    first, second = desk.bench.items[:2]  # type: ignore[union-attr]
    assert {str(first.text), str(second.text)} == {"Say <2>", "Say <5>"}
    assert {str(one.body) for one in first.evidence[0].near} == {
        "Ask <2>",
        "Ask <5>",
    }  # its partner, and the one that fits
    assert first.sentence == "Are the two of this pair a match?"
    assert "margin -" in str(first.evidence[0].near[1].text)
    assert [choice.text for choice in desk.bench.choices] == ["Is a match", "Is no match", "The other is the match"]
    assert "image" not in words(app).lower()
    assert "Loss" not in [box.label for box in app.selectbox]  # no loss changes these lists
    (rank,) = [box for box in app.number_input if box.label == "Own rank at least"]
    assert "Recall also accepts the partner of an equal caption" in rank.help
    assert "own rank on Samples counts only the row's own partner" in READING
    (line, *_rest) = csv.DictReader(io.StringIO(saved["mismatched.csv"]()))
    assert line["answer, text"].startswith("Say")  # each column is named by the tower that it holds
    assert line["question, text"].startswith("Ask")
    assert line["other question, text"].startswith("Ask")
    assert line["other question"] == first.suggested
    assert "query" not in line


def test_decisions_are_kept_counted_and_undone(name: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = files(monkeypatch)
    app = opened("samples", monkeypatch, on=name)
    ids, other = [item.id for item in desk.bench.items], desk.bench.items[1].suggested  # type: ignore[union-attr]
    desk.events(("drop", ids[0], ""), ("relabel", ids[1], other), ("keep", ids[2], ""))
    desk.report["at"] = ids[3]
    app.run()
    assert not app.exception
    assert [mark["what"] for mark in marks(name, "mismatched")] == ["drop", "relabel", "keep"]
    moved = marks(name, "mismatched")[1]
    assert moved["label"] == moved["suggested"] == other != moved["given"]
    assert "1 match, 1 no match, 1 matched with the other" in words(app)
    assert desk.place == "4 of 30"
    lines = list(csv.DictReader(io.StringIO(saved["mismatched_decisions.csv"]())))
    assert [(line["decision"], line["matched with"]) for line in lines] == [
        ("no match", ""),
        ("matched with the other", other),
        ("match", ""),
    ]
    file = request_of(name, "train", pairs=True).decisions("pairs-mismatched")
    changed = sample_annotations.changes(file, runs.load("clip-shapes"), "partner")[0]["relabel"].decode()
    assert changed.splitlines() == ["id,partner", f"{ids[1]},{other}"]
    desk.events(("undo", "", ""))
    app.run()
    assert [mark["what"] for mark in marks(name, "mismatched")] == ["drop", "relabel"]
    assert "Train again" not in words(app)


def test_filters_and_the_other_list(name: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("samples", monkeypatch, on=name, text="say <7>")
    assert not app.exception
    assert "The filter leaves 1 of 30." in words(app)
    app = opened("samples", monkeypatch, on=name, text="nowhere")
    assert "No sample passes these filters." in words(app)
    app = opened("samples", monkeypatch, on=name, list="false_negatives")
    assert not app.exception
    assert [choice.text for choice in desk.bench.choices] == ["Is a match", "Is no match"]  # type: ignore[union-attr]
    assert "answer of the similar pair" in desk.item.evidence[0].near[2].text
    desk.events(("relabel", desk.item.id, desk.item.suggested), ("drop", desk.item.id, ""))  # the last is not offered
    app.run()
    assert [mark["what"] for mark in marks(name, "false_negatives")] == ["relabel"]
    assert not marks(name, "mismatched")
    space = request_of(name, "train", pairs=True).embedding
    found, rows = answers.make("tower_pairs", {"space": space.values}), space.rows()
    assert rows is not None
    table = pair_table(rows, found.arrays, found.meta)
    is_out, listed = table.extra["twin_cosine"] > 0.95 * table.extra["own_cosine"], table.ranked("false_negatives")
    assert 0 < is_out[listed].sum() < len(listed)
    said = f"leaves out {is_out[listed].sum()} of these {len(listed)} pairs. Of those you decided, it leaves out "
    assert f"{said}{int(is_out[table.row(desk.item.id)])} of 1 matches and 0 of 0 others." in words(app)


def test_single_rows_are_still_listed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("samples", monkeypatch, on=name, of="rows")
    assert not app.exception
    assert "30 pairs" not in words(app)
    assert "Loss" in [box.label for box in app.selectbox]


def test_the_shipped_run_opens_on_pairs_of_its_test_split(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which come with it; no process is needed."""
    monkeypatch.setattr("contrastive_core.engine.jobs.Job.start", lambda *_, **__: pytest.fail("nothing is asked"))
    app = opened("samples", monkeypatch, run="clip-shapes")
    assert not app.exception
    assert app.selectbox(key="samples-split").value == "test"
    assert [control.label for control in app.selectbox if control.key == "samples-split"] == ["Pairs"]
    assert "pairs of caption and image" in words(app)
    assert desk.item.text
    assert all(one.picture >= 0 for one in desk.item.evidence[0].near)  # images stand beside a caption


def test_a_recording_of_two_towers_has_pairs(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 6))
    sides = [torch.from_numpy(x + 0.3 * rng.normal(size=(N, 6))) for _ in range(2)]
    with watch("two", loss="info_nce", every=1, towers=("image", "text")) as recording:
        recording.step(*sides, ids=[f"{i}" for i in range(N)])
    (step,) = recorded_rows.steps(runs.load("two"))
    name = f"recording:two@step-{step}"
    answers.make("tower_pairs", {"space": request_of(name, "", pairs=True).embedding.values})
    app = opened("samples", monkeypatch, run="two")
    assert not app.exception
    assert f"{N} pairs" in words(app)
    desk.events(("drop", desk.item.id, ""))
    app.run()
    assert not app.exception
    assert [mark["what"] for mark in marks(name, "mismatched")] == ["drop"]


def test_a_file_of_triplets_is_saved_with_its_decisions(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    vectors, path = example_questions.write(tmp_path)[0], tmp_path / "questions.jsonl"
    other = OtherTower(str(vectors), vectors.name)
    name = loaded_vectors.PREFIX + open_vectors(path, path.name, other=other)
    answers.make("tower_pairs", {"space": request_of(name, "train", pairs=True).embedding.values})
    saved = files(monkeypatch)
    app = opened("samples", monkeypatch, on=name, list="given_negatives")
    assert not app.exception
    assert "Documents that are only given negatives:" in words(app)
    asked, negative = desk.item.front  # what the question is about, and not the answer
    assert asked.text.endswith("query")
    assert str(asked.body) == str(desk.item.text)
    assert negative.text == f"{desk.item.suggested} · given as a negative"
    assert [near.text.endswith("answer") for near in desk.item.evidence[0].near] == [True]
    assert "Save decisions" in [popover.proto.popover.label for popover in app.get("popover")]
    desk.events(("relabel", desk.bench.items[0].id, desk.bench.items[0].suggested))  # type: ignore[union-attr]
    app.run()
    assert not app.exception
    before, after = (len(text) for text in (path.read_bytes(), saved["questions_clean.jsonl"]()))
    assert 0 < before - after < 500  # one text is missing
    out = tmp_path / "clean.jsonl"
    assert main(["pairs", str(path), str(vectors), "--export", str(out)]) == 0
    assert out.stat().st_size == after
