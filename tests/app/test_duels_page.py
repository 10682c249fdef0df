"""Duels on Compare: blind answers, one decision a click, and the verdict after each; the threshold of a match."""

import html
import re
from pathlib import Path

import numpy as np
import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core.compare.match_threshold import JudgedPairs, find_threshold
from contrastive_core.samples.duels import OPEN, Duels
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.attached_files import read_qrels
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import joined, towers_of
from contrastive_lab import path_input

N = 40


def spaces(noise: tuple[float, float]) -> list[Space]:
    rng, x = np.random.default_rng(0), np.eye(N, dtype=np.float32)
    texts = [np.array([f"*{name}* {i}" for i in range(N)]) for name in ("why", "because")]
    keys = []
    for own in noise:
        queries = x + own * rng.normal(size=x.shape).astype(np.float32)
        sides = [EmbeddingSet(part, columns={"text": text}) for part, text in zip((queries, x), texts, strict=True)]
        rows = joined(sides[0], sides[1], ("question", "answer"))
        keys.append(loaded_vectors.save_vectors(rows, f"model {own}.npz"))
    return [Space.of_vectors(key) for key in keys]


def said(app: AppTest) -> list[str]:
    return [part.value.replace("\\", "") for part in app.markdown]


def texts_of(app: AppTest) -> list[str]:
    """The texts of rows, as they are read."""
    bodies = (one.proto.body for one in app.get("html") if 'class="said"' in one.proto.body)
    return [html.unescape(re.sub("<[^>]*>", "", body)) for body in bodies]


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def test_a_click_decides_on_the_shown_query_and_the_verdict_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    both = spaces((0.0, 0.6))
    sets = [rows for space in both if (rows := space.rows()) is not None]
    duels = Duels.of([space.title for space in both], sets)
    app = opened("compare", monkeypatch, runs=",".join(space.name for space in both), view="Duels")
    assert not app.exception
    assert OPEN in said(app)
    clicks = 0
    while not any("You can stop" in part for part in said(app)):
        number = duels.next(duels.marks())
        assert number is not None
        query, left, right = texts_of(app)
        assert query == duels.text(int(duels.queries[number]))
        assert [left, right] == [duels.text(row) for row in duels.shown(number)]
        is_left = left == query.replace("why", "because")
        press(app, "Left is better" if is_left else "Right is better")
        assert not app.exception
        clicks += 1
    assert clicks < 20
    found = duels.standing(duels.marks())
    assert (found.wins, found.decided) == ((clicks, 0), clicks)
    assert any(part.startswith("model 0.0.npz is better than model 0.6.npz by") for part in said(app))
    assert any(caption.value.startswith(f"{clicks} decisions. First answers differ on") for caption in app.caption)
    press(app, "Undo")
    assert duels.standing(duels.marks()).decided == clicks - 1
    shown = " ".join([*texts_of(app), *(part.value for part in app.caption)])
    assert "model" not in shown  # nothing names the model of an answer


def test_the_threshold_of_a_match_is_shown_with_its_basis_by_judgments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    both, judged = spaces((0.05, 0.3)), tmp_path / "test.tsv"
    judged.write_text("".join(f"{i}\t{i}\t1\n" for i in range(N)))
    query = {"runs": ",".join(space.name for space in both), "qrels": path_input.remember(judged)}
    app = opened("compare", monkeypatch, view="Match threshold", **query)
    assert not app.exception
    assert any("Judge at least 299 queries (now 40)" in part for part in said(app))
    app.number_input[0].set_value(10.0).run()
    found = find_threshold(JudgedPairs.of(towers_of(both[0].rows()), read_qrels(judged), judged.name), 0.1)
    assert f"● {found.sentence('model 0.05.npz')}" in said(app)
    assert str(found.basis) in [caption.value.replace("\\", "") for caption in app.caption]
    assert not app.exception
