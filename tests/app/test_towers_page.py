"""Explore of two towers: their scores, what is said of a chosen row, and no word of images where rows are texts; the
templates of zero-shot classes, and a query that finds images."""

import html
import re
from pathlib import Path

import numpy as np
import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core.compare.comparison import judgments_request
from contrastive_core.compare.embed import embed_run
from contrastive_core.engine import answers
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES, joined
from contrastive_lab import path_input, state


def tower(name: str, noise: float, n: int = 40) -> EmbeddingSet:
    x = np.random.default_rng(0).normal(size=(n, 6)) + noise * np.random.default_rng(1).normal(size=(n, 6))
    return EmbeddingSet(x.astype(np.float32), columns={"text": np.array([f"{name} <b> {i}" for i in range(n)])})


@pytest.fixture
def key() -> str:
    both = joined(tower("Why", 0.0), tower("Because", 0.4), ("question", "answer"))
    return loaded_vectors.save_vectors(both, "pairs.npz")


def words(app: AppTest) -> str:
    parts = [*app.caption, *app.markdown, *app.header, *app.selectbox, *app.button]
    said = [str(getattr(part, "value", "")) + str(getattr(part, "label", "")) for part in parts]
    bodies = [html.unescape(re.sub("</?(div|p|small|bdi|mark)[^>]*>", "", one.proto.body)) for one in app.get("html")]
    return "\n".join([*said, *(body for body in bodies if "<style>" not in body)])


def test_scores_of_the_towers_are_asked_for_and_drawn(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("explore", monkeypatch, vectors=key, map="pca")
    assert not app.exception
    assert "image" not in words(app).lower().replace(":material/image_search:", "")
    answers.make("towers", {"space": Space.of_vectors(key).values})
    (strip,) = [block.proto.body for block in app.run().get("html") if "scores" in block.proto.body]
    for title in ("Recall@1, question → answer", "Recall@10, answer → question", "Gap between the towers"):
        assert title in strip
    assert strip.count('class="interval"') == 6
    assert strip.count('<i class="chance"') == 6 + 1  # and in the key
    assert "chance: 2.5" in strip  # of 40 rows one


def test_recall_without_the_means_stands_beside_recall_as_it_is(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = answers.make("centered", {"space": Space.of_vectors(key).values}).meta["differences"]
    answers.make("towers", {"space": Space.of_vectors(key).values})
    app = opened("explore", monkeypatch, vectors=key, map="pca", centered="yes")
    assert not app.exception
    frame = app.dataframe[0].value
    assert list(frame.columns) == ["score", "as they are", "minus the means", "difference", "95 %"]
    assert frame["difference"].iloc[-1] == f"{made['modality_gap'][0]:+.3f}"


def test_a_chosen_row_has_its_text_its_partner_and_both_ranks(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("explore", monkeypatch, vectors=key, map="pca")
    place = state.place_of(Space.of_vectors(key))
    app.session_state["selection"] = {place: [3]}
    app.run()
    assert not app.exception
    said = words(app).replace("\\", "")
    assert "questionWhy <b> 3answerBecause <b> 3" in said
    assert "Rank from question to answer: " in said
    assert "Rank from answer to question: " in said
    app.button(key="partners-3").click().run()
    assert app.session_state["selection"][place] == [3, 43]


def test_both_towers_of_a_run_are_a_layer_beside_h_and_z(clip_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    embed_run(clip_run, "test", "towers")
    space = Space.of_run(clip_run, "test", "towers")
    answers.make("towers", {"space": space.values})
    app = opened("explore", monkeypatch, run=clip_run.name, features="towers", map="pca")
    assert not app.exception
    assert [*app.segmented_control(key="explore-features").options] == ["h", "z", "image and text z"]
    (strip,) = [block.proto.body for block in app.get("html") if "scores" in block.proto.body]
    assert "Recall@1, caption → image" in strip
    assert app.selectbox(key=next(box.key for box in app.selectbox if box.label == "Color by")).value == "tower"
    app.session_state["selection"] = {state.place_of(space): [12]}
    app.run()
    assert not app.exception
    assert "captiona blue square" in words(app)
    app.segmented_control(key="explore-features").set_value("h").run()
    assert not app.exception
    assert "selected" not in words(app)  # row 12 of h is another


def captions_of(app: AppTest) -> str:
    return "\n".join(str(part.value) for part in [*app.caption, *app.warning]).replace("\\", "")


def test_templates_and_a_query_are_answered(clip_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    embed_run(clip_run, "test", "towers")
    space = Space.of_run(clip_run, "test", "towers").values
    for templates in ([*DEFAULT_TEMPLATES], ["a {} square"]):
        answers.make("zero_shot", {"space": space, "templates": templates})
    for text in ("a red zebra", "zebra"):
        answers.make("text_query", {"space": space, "text": text, "most": 12})
    answers.make("towers", {"space": space})
    app = opened("explore", monkeypatch, run=clip_run.name, features="towers", map="pca")
    assert not app.exception
    (strip,) = [block.proto.body for block in app.get("html") if "scores" in block.proto.body]
    assert "Zero-shot accuracy" in strip
    assert "33.3" in strip  # chance of three classes
    (area,) = [area for area in app.text_area if area.label.startswith("Templates")]
    area.set_value("a {} square").run()
    assert not app.exception
    (area,) = [area for area in app.text_area if area.label.startswith("Templates")]
    area.set_value("a square").run()
    assert "A template needs one pair of braces where the class name goes. Got: a square" in captions_of(app)
    query = next(box for box in app.text_input if box.label.startswith("Find images"))
    query.set_value("a red zebra").run()
    assert not app.exception
    assert "Words that are not in the training captions: zebra." in captions_of(app)
    query = next(box for box in app.text_input if box.label.startswith("Find images"))
    query.set_value("zebra").run()
    assert "The training captions have none of these words: zebra." in captions_of(app)


def test_the_panel_names_the_smallest_vectors_by_the_judgments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 32)).astype(np.float32)
    sides = [EmbeddingSet(x, ids=tuple(f"{name}{i}" for i in range(60))) for name in "qd"]
    key = loaded_vectors.save_vectors(joined(*sides, ("query", "document")), "pairs.npz")
    judged = tmp_path / "qrels.tsv"
    judged.write_text("".join(f"q{i}\td{i}\t1\n" for i in range(50)))
    answers.make("compression", {"space": Space.of_vectors(key).values, **judgments_request(judged)})
    app = opened("explore", monkeypatch, vectors=key, qrels=path_input.remember(judged))
    app.button_group(key="explore-more").set_value("Compression").run()
    assert not app.exception
    assert any("50 of 50 queries among 60 documents" in c.value for c in app.caption)
    assert any("instead of 128 bytes per vector" in m.value for m in app.markdown)
    table = app.dataframe[-1].value
    assert len(table) == 4 * (3 + 3 + 2)
    assert table["Recall@10, change (95 %)"].str.match(r"[+-]\d+\.\d \([+-].*\)").all()
    assert table["bytes"].is_monotonic_increasing
    app.button_group(key="explore-kind").set_value("random").run()
    assert not app.exception
