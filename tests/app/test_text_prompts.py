"""Sentences on Explore's tower panel: zero-shot templates that can be edited, and a query that finds images."""

import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core.compare.embed import embed_run
from contrastive_core.engine import answers
from contrastive_core.runs.run import Run
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES


def words(app: AppTest) -> str:
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
    assert "A template needs one pair of braces where the class name goes. Got: a square" in words(app)
    query = next(box for box in app.text_input if box.label.startswith("Find images"))
    query.set_value("a red zebra").run()
    assert not app.exception
    assert "Words that are not in the training captions: zebra." in words(app)
    query = next(box for box in app.text_input if box.label.startswith("Find images"))
    query.set_value("zebra").run()
    assert "The training captions have none of these words: zebra." in words(app)
