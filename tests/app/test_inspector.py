"""Beside Explore's map: the answer on the whole encoder, a sample's vote, and exactly one primary next step."""

import re

import numpy as np
import pytest
from opened_page import opened
from sample_sets import blobs
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.score import Score
from contrastive_core.compare.representation_similarity import procrustes_align
from contrastive_core.engine import answers
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.results import MAP_DEFAULTS
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, embedding_map, state
from contrastive_lab.components.scatter import ScatterData
from contrastive_lab.explore.inspector import vote
from contrastive_lab.score_strip import _answer


def knn(value: float, interval: tuple[float, float] | None = None) -> dict[str, Score]:
    return {"knn": Score("kNN accuracy", "", value, unit="share", interval=interval)}


@pytest.mark.parametrize(
    ("interval", "raw", "said"),
    [
        ((0.82, 0.87), 0.42, "Better than raw pixels: kNN 85.0 %, on the pixels alone 42.0 %."),
        ((0.82, 0.87), 0.84, "Not significantly better than raw pixels: kNN 85.0 %, on the pixels alone 84.0 %."),
        ((0.82, 0.87), 0.95, "Worse than raw pixels: kNN 85.0 %, on the pixels alone 95.0 %."),
        (None, 0.42, "kNN 85.0 %; raw pixels reach 42.0 %."),
        (None, None, "kNN 85.0 %."),
    ],
)
def test_the_answer_says_no_more_than_the_interval(
    interval: tuple[float, float] | None, raw: float | None, said: str
) -> None:
    scores = {"own": knn(0.85, interval)} | ({} if raw is None else {"raw": knn(raw)})
    assert _answer(scores).replace("\xa0", " ").replace("\\", "") == said


def links(app: AppTest) -> list[str]:
    return [element.proto.label for element in app.get("page_link")]


def test_a_run_has_its_question_and_its_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("explore", monkeypatch, run="simclr-digits")
    assert not app.exception
    assert "Is it a good encoder?" in [header.value for header in app.header]
    assert [label for label in links(app) if label.endswith("→")] == ["Find wrong labels →"]
    app.pills(key="explore-more").set_value("All scores").run()
    assert not app.exception
    assert any("scrollIntoView" in element.proto.body for element in app.get("html"))


def test_a_selected_sample_has_its_vote_and_its_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "selection", lambda *_: [3])
    app = opened("explore", monkeypatch, run="simclr-digits")
    assert not app.exception
    assert [label for label in links(app) if label.endswith("→")] == ["Open in Samples →"]
    assert any(str(button.label).endswith("✕") for button in app.button)
    assert any('class="vote"' in element.proto.body for element in app.get("html"))


def test_several_selected_samples_are_reviewed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "selection", lambda *_: [3, 5])
    app = opened("explore", monkeypatch, run="simclr-digits")
    assert not app.exception
    link = next(one.proto for one in app.get("page_link") if one.proto.label == "Review the 2 selected →")
    assert {"selected=yes", "split=test", "run=simclr-digits"} <= set(link.query_string.split("&"))
    for row in (5, 3):
        (box,) = (one for one in app.selectbox if one.label == "Neighbors of")
        assert box.set_value(row).run().selectbox(box.key).value == row


def test_the_vote_counts_the_nearest_and_says_whether_knn_is_right() -> None:
    space = Space.of_run(runs.load("simclr-shapes"))
    rows = space.rows()
    assert rows is not None
    assert rows.labels is not None
    answer = cache.result("scores", {"space": space.values})
    assert answer is not None
    wrong = answer.arrays["knn:predicted"] != rows.labels
    for i in (int(wrong.argmax()), int((~wrong).argmax())):
        near = cache.nearest(rows.content_hash, i, 11, rows)[0]
        text = vote(space, rows, i, near)
        assert ("kNN is right" in text) is not bool(wrong[i])
        counts = [int(n) for n in re.findall(r"flex:(\d+)", text)]
        assert sum(counts) == len(near) == 11
        assert counts == sorted(counts, reverse=True)
        assert f"{rows.class_name(int(rows.labels[near[0]]))} " in text


def test_the_umap_of_z_is_turned_like_that_of_h() -> None:
    made = {}
    for layer in "hz":
        rows = (space := Space.of_run(runs.load("simclr-shapes"), "test", layer)).rows()
        assert rows is not None
        made[layer] = embedding_map.map_of(space, "umap", MAP_DEFAULTS, rows, aligned=True)
    as_made = cache.result("map", embedding_map.question(space, "umap", MAP_DEFAULTS))
    assert as_made is not None
    assert np.allclose(made["z"].xy, procrustes_align(as_made.arrays["xy"], made["h"].xy))
    assert not np.allclose(made["z"].xy, as_made.arrays["xy"])
    assert made["z"].settings == {**as_made.meta["settings"], "aligned to": "h"}
    assert "aligned to" not in made["h"].settings


def test_new_samples_are_placed_on_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    base, new = (loaded_vectors.save_vectors(blobs(n), name) for n, name in ((60, "base.npy"), (12, "new.npy")))
    values = embedding_map.question(Space.of_vectors(base), "umap", MAP_DEFAULTS)
    places = answers.make("placed", {"map": values, "new": Space.of_vectors(new).values}).arrays["xy"]
    drawn: list[ScatterData] = []
    monkeypatch.setattr(embedding_map, "draw_scatter", lambda data, selection, **_: drawn.append(data))
    app = opened("explore", monkeypatch, vectors=base, map="umap")
    (box,) = (one for one in app.selectbox if one.label == "Place on this map")
    assert len(drawn[-1].ids) == 60
    box.set_value("new.npy").run()
    assert not app.exception
    assert list(drawn[-1].names) == ["a", "b", "c", "new.npy"]
    assert np.array_equal(drawn[-1].xy[60:], places)
    assert np.array_equal(np.flatnonzero(drawn[-1].color == 3), np.arange(60, 72))
