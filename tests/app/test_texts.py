"""Texts of rows: their words that a query has are marked, long ones fold, and each has its own direction."""

import re

import numpy as np
import pytest
from cases import cases
from opened_page import opened

from contrastive_core.lab.batch import row_texts
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import joined
from contrastive_lab import state, texts
from contrastive_lab.components.shared.mount import style_sheet
from contrastive_lab.embedding_map import hints_of
from contrastive_lab.texts import el


@cases(
    ("query", "text", "marked"),
    [
        ("How do I CLEAN a pan?", "Clean a pan. Cleaned panels, pans.", ["Clean", "pan", "Cleaned"]),
        ("how was the best of 5", "The best was 5 or 50.", ["best", "5"]),
        ("STRASSE", "die Straße", ["Straße"]),
        ("如何清洗平底锅？", "清洗平底锅时用温水。", ["清洗平底锅"]),
        ("锅", "平底锅", ["锅"]),
        ("パンを洗う", "フライパンを洗う。", ["パンを洗う"]),
        ("서울의 날씨", "서울에서", ["서울"]),
        ("GPU加速", "用GPU加速器", ["GPU加速"]),
        ("ทำความสะอาดกระทะ", "กระทะเหล็ก", ["กระทะ"]),
        ("איך מנקים מחבת", "מנקים מחבת עם מים", ["מנקים", "מחבת"]),
        ("हिन्दी सीखना", "यह हिन्दी है", ["हिन्दी"]),
        ("", "nothing", []),
    ],
)
def test_the_words_of_a_query_are_marked(query: str, text: str, marked: list[str]) -> None:
    said = texts.said(text, query)
    assert str(said) == text
    assert list(said.pieces[1::2]) == marked


@cases(
    ("text", "is_long"),
    [
        ("x" * texts.LONG, False),
        ("x" * (texts.LONG + 1), True),
        ("字" * (texts.LONG // 2 + 1), True),  # twice as wide
        ("a\n" * (texts.LINES - 1), False),
        ("a\n" * texts.LINES, True),
    ],
)
def test_a_long_text_folds_and_can_be_opened(text: str, is_long: bool) -> None:
    body = texts.markup(text)
    assert ("<details><summary><span>Show all</span><span>Show less</span></summary></details>" in body) == is_long
    assert text.strip() in body
    assert f"-webkit-line-clamp: {texts.LINES};" in style_sheet("texts")


def test_markup_is_escaped_and_has_its_own_direction() -> None:
    body = texts.answers("<b> query", [("<i>", "a <b> QUERY")], "id")
    assert body.count('<p dir="auto">') == 2
    assert body.count("<bdi>") == 2
    assert "a &lt;b&gt; <mark>QUERY</mark>" in body
    assert "<b>" not in body
    assert "<i>" not in body


def test_letters_that_join_words_are_kept_and_marks_that_turn_them_are_not() -> None:
    persian, turned = "می\u200cخواهم", "abc\u202edef"
    assert el("p", persian) == f"<p>{persian}</p>"
    assert "\u202e" not in el("p", turned)
    rows = EmbeddingSet(np.eye(2, dtype=np.float32), columns={"text": np.array([persian, turned])})
    assert row_texts(rows, np.arange(2)) == [persian, "abc\\u202edef"]


def test_the_pointed_row_keeps_the_direction_of_its_text_and_says_that_it_is_cut() -> None:
    rows = EmbeddingSet(np.eye(2, dtype=np.float32), columns={"text": np.array(["שלום.", "a" * 500])})
    first, second = hints_of(rows)
    assert first == "text: \u2068שלום.\u2069"
    assert second.endswith("a…")
    assert len(second) < 200


def test_neighbors_that_are_texts_are_listed_with_the_words_of_the_chosen_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    sides = [
        EmbeddingSet(x, columns={"text": np.array([f"{name} lamp {i} <b>" for i in range(12)])})
        for name in ("why", "because")
    ]
    key = loaded_vectors.save_vectors(joined(*sides, ("question", "answer")), "pairs.npz")
    app = opened("explore", monkeypatch, vectors=key, map="pca")
    app.session_state["selection"] = {state.place_of(Space.of_vectors(key)): [3]}
    app.run()
    assert not app.exception
    own, near = (one.proto.body for one in app.get("html") if 'class="answers"' in one.proto.body)
    assert re.search("question</bdi>.*why lamp 3 &lt;b&gt;", own)
    assert re.search("answer</bdi>.*because <mark>lamp</mark> <mark>3</mark>", own)
    assert near.count("<mark>lamp</mark>") == near.count('class="said"') >= 5
    assert "<small><bdi>answer · " in near
