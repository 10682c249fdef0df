"""Pairs of two towers on the Samples page: both lists, filters, decisions with undo, and no word of images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core.engine import answers
from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.evaluation.towers import READING
from contrastive_core.recording import watch
from contrastive_core.records import embedding_ref, loaded_vectors, recorded_rows, runs
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_request import pair_decisions_path
from contrastive_core.records.towers import joined

N = 30


@pytest.fixture
def key() -> str:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 6))
    sides = [x + 0.3 * rng.normal(size=(N, 6)) for _ in range(2)]
    sides[1][[2, 5]] = sides[1][[5, 2]]
    words = [{"text": np.array([f"{name} <{i}>" for i in range(N)])} for name in ("Ask", "Say")]
    sets = [EmbeddingSet(x.astype(np.float32), columns=w) for x, w in zip(sides, words, strict=True)]
    key = loaded_vectors.save_vectors(joined(sets[0], sets[1], ("question", "answer")), "qa.npz")
    answers.make("tower_pairs", {"space": embedding_ref.of_vectors(key).values})
    return key


def words(app: AppTest) -> str:
    parts = [*app.caption, *app.markdown, *app.info, *app.button, *app.selectbox, *app.text_input, *app.expander]
    return "\n".join(f"{getattr(p, 'value', '')} {getattr(p, 'label', '')}" for p in parts).replace("\\", "")


def test_the_swapped_pair_stands_first_with_its_evidence(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("samples", monkeypatch, on=f"vectors:{key}")
    assert not app.exception
    said = words(app)
    assert "30 pairs of answer and question. " in f"{said} "
    assert "Files of your decisions" not in said  # nothing is decided
    assert "Say <2>" in said or "Say <5>" in said
    assert "Ask <2>" in said
    assert "Ask <5>" in said  # its partner, and the one that fits
    assert "Cosine" in said
    assert "Margin -" in said
    assert "image" not in said.lower()
    assert "Loss" not in [box.label for box in app.selectbox]  # no loss changes these lists
    (rank,) = [box for box in app.number_input if box.label == "Own rank at least"]
    assert "Recall also accepts the partner of an equal caption" in rank.help
    assert "own rank on Samples counts only the row's own partner" in READING


def test_decisions_are_kept_counted_and_undone(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("samples", monkeypatch, on=f"vectors:{key}")
    file = pair_decisions_path(embedding_ref.of_vectors(key), "pairs-mismatched")
    for what in ("drop", "relabel", "keep"):
        app.button(key=f"pair-{what}").click().run()
    assert not app.exception
    marks = sample_annotations.marks(file)
    assert sorted(mark["what"] for mark in marks.values()) == ["drop", "keep", "relabel"]
    (true,) = [mark for mark in marks.values() if mark["what"] == "relabel"]
    assert true["label"] == true["suggested"] != true["given"]
    assert "1 kept, 1 mismatched, 1 with another partner" in words(app)
    assert "4 of 30" in words(app)
    app.button(key="pair-undo").click().run()
    assert [mark["what"] for mark in sample_annotations.marks(file).values()] == ["drop", "relabel"]
    assert "3 of 30" in words(app)
    assert "Files of your decisions" in words(app)
    assert "Train again" not in words(app)


def test_filters_and_the_other_list(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("samples", monkeypatch, on=f"vectors:{key}", **{"pair-text": "say <7>"})
    assert not app.exception
    assert not app.error, [e.value for e in app.error]
    assert "The filter leaves 1 of 30." in words(app)
    app = opened("samples", monkeypatch, on=f"vectors:{key}", **{"pair-text": "nowhere"})
    assert "No pair passes these filters." in words(app)
    app = opened("samples", monkeypatch, on=f"vectors:{key}", pairs="false_negatives", **{"pair-order": "margin"})
    assert not app.exception
    assert "answer of the similar pair" in words(app)
    app.button(key="pair-relabel").click().run()
    marks = sample_annotations.marks(pair_decisions_path(embedding_ref.of_vectors(key), "pairs-false_negatives"))
    assert [mark["what"] for mark in marks.values()] == ["relabel"]
    assert not sample_annotations.marks(pair_decisions_path(embedding_ref.of_vectors(key), "pairs-mismatched"))


def test_single_rows_are_still_listed(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("samples", monkeypatch, on=f"vectors:{key}", of="rows")
    assert not app.exception
    assert "30 pairs" not in words(app)
    assert "Loss" in [box.label for box in app.selectbox]


def test_the_shipped_run_opens_on_pairs_of_its_test_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which come with it; no process is needed."""
    monkeypatch.setattr(
        "contrastive_core.engine.client.Question.start", lambda *_, **__: pytest.fail("nothing is asked")
    )
    app = opened("samples", monkeypatch, run="clip-shapes")
    assert not app.exception
    assert app.button_group(key="samples-split").value == "test"
    assert [control.label for control in app.button_group if control.key == "samples-split"] == ["Pairs"]
    assert "pairs of caption and image" in words(app)


def test_a_recording_of_two_towers_has_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 6))
    sides = [torch.from_numpy(x + 0.3 * rng.normal(size=(N, 6))) for _ in range(2)]
    with watch("two", loss="info_nce", every=1, towers=("image", "text")) as recording:
        recording.step(*sides, ids=[f"{i}" for i in range(N)])
    (step,) = recorded_rows.steps(runs.load("two"))
    space = embedding_ref.of_name(f"recording:two@step-{step}", "", "z")
    answers.make("tower_pairs", {"space": space.values})
    app = opened("samples", monkeypatch, run="two")
    assert not app.exception
    assert f"{N} pairs" in words(app)
    app.button(key="pair-drop").click().run()
    assert not app.exception
    assert [mark["what"] for mark in sample_annotations.marks(pair_decisions_path(space, "pairs-mismatched")).values()]
