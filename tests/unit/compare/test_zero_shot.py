"""Zero-shot accuracy by templates, images for a sentence, and both in a run's record."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from cases import cases
from kept_scores import keep_scores

from contrastive_core import runs
from contrastive_core.__main__ import main
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.score import scores_from_json
from contrastive_core.compare import evaluate
from contrastive_core.compare.embed import embed_run, encode_texts, load_model
from contrastive_core.compare.evaluate import deviations, zero_shot_scores
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.compare.towers import tower_scores
from contrastive_core.engine import answers
from contrastive_core.engine.answers import scores as answers_of_scores
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import Towers, towers_of
from contrastive_lab.runs import table


def both(run: Run) -> Towers:
    towers = towers_of(embed_run(run, "test", "towers"))
    assert towers is not None
    return towers


def test_a_class_is_the_mean_of_its_prompts(clip_run: Run) -> None:
    towers, templates = both(clip_run), ("a {} square", "number 1 is {}")
    own, chance = zero_shot_scores(towers, lambda: load_model(clip_run), templates)
    rows, method = towers.rows, load_model(clip_run)
    means = []
    for name in rows.classes:
        z = encode_texts(method, [template.format(name) for template in templates])
        means.append((z / np.linalg.norm(z, axis=1, keepdims=True)).mean(0))
    means = np.array(means) / np.linalg.norm(means, axis=1, keepdims=True)
    x = rows.features[towers.a] / np.linalg.norm(rows.features[towers.a], axis=1, keepdims=True)
    right = (x @ means.T).argmax(1) == rows.labels[towers.a]
    score = own["zero_shot"]
    assert score.value == pytest.approx(right.mean())
    assert score.interval is not None
    assert score.interval[0] <= score.value <= score.interval[1]
    assert score.settings == {"templates": list(templates)}
    assert chance["zero_shot"].value == pytest.approx(1 / 3)


def three_classes() -> Towers:
    """Five images of three classes, the last without a label."""
    eye, labels = np.eye(3, dtype=np.float32), np.array([0, 1, 2, 1, -1])
    rows = EmbeddingSet(np.concatenate([eye, eye[:1], eye[:1]]), labels, classes=("red_car", "{x}", "c"))
    return Towers(rows, np.arange(5), np.arange(0), np.arange(5), np.arange(0), ("image", "caption"))


def test_prompts_take_the_name_as_words_and_nearest_class_counts(monkeypatch) -> None:
    """Three classes with two templates; the fourth image is of class 1 and lies at class 0, the fifth has no label."""
    eye, asked = np.eye(3, dtype=np.float32), list[str]()
    method = SimpleNamespace(text_tower=SimpleNamespace(known_words=lambda name: [name]))
    prompts = np.repeat(eye, 2, axis=0) * np.float32([[1], [2]] * 3)
    monkeypatch.setattr(evaluate, "encode_texts", lambda _, texts: asked.extend(texts) or prompts)
    towers = three_classes()
    own, chance = zero_shot_scores(towers, lambda: method, ["a {}", " {}", " "])
    assert asked == ["a red car", "red car", "a {x}", "{x}", "a c", "c"]
    assert (own["zero_shot"].value, own["zero_shot"].number("n")) == (0.75, 4)
    assert chance["zero_shot"].value == pytest.approx(1 / 3)
    unlabeled = dataclasses.replace(towers, rows=dataclasses.replace(towers.rows, labels=np.full(5, -1)))
    assert "named classes" in zero_shot_scores(unlabeled, lambda: method)[0]["zero_shot"].missing


@cases(
    ("templates", "sentence"),
    [
        ([], "one to 50 templates are needed; got 0"),
        (["", "  "], "got 0"),
        (["a photo"], "one pair of braces where the class name goes; got 'a photo'"),
        (["{} and {}"], "one pair of braces"),
        (["{} " + "x" * 300], "one pair of braces"),
        (["{}"] * 51, "got 51"),
    ],
)
def test_templates_that_cannot_be_used_are_one_sentence(templates: list[str], sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        zero_shot_scores(three_classes(), lambda: None, templates)


def test_class_names_that_the_tower_never_read_have_no_accuracy(clip_run: Run) -> None:
    towers = both(clip_run)
    object.__setattr__(towers.rows, "classes", ("red", "n01440764", "blue"))
    own, chance = zero_shot_scores(towers, lambda: load_model(clip_run))
    assert own["zero_shot"].value is None
    assert "has not learned these class names: 'n01440764'" in own["zero_shot"].missing
    assert chance == {}


def test_a_sentence_finds_images_and_names_unknown_words(clip_run: Run) -> None:
    space = Space.of_run(clip_run, "test", "towers").values
    found = answers.make("text_query", {"space": space, "text": "A RED square, zebra!", "most": 3})
    towers, z = both(clip_run), encode_texts(load_model(clip_run), ["A RED square, zebra!"])[0]
    x = towers.rows.features[:12]
    s = x @ z / np.linalg.norm(x, axis=1) / np.linalg.norm(z)
    assert found.arrays["rows"].tolist() == np.argsort(-s)[:3].tolist()
    assert found.meta["unknown"] == ["zebra"]
    nothing = answers.make("text_query", {"space": space, "text": "zebra, !", "most": 3})
    assert nothing.arrays["rows"].tolist() == []


def test_the_record_and_the_command_hold_recall_and_zero_shot(clip_run: Run, capsys, monkeypatch) -> None:
    monkeypatch.setattr("contrastive_core.metrics.names", lambda: ["uniformity"])  # the others are beside the point
    capsys.readouterr()
    assert main(["evaluate", clip_run.name, "--json"]) == 0
    scores = scores_from_json(json.loads(capsys.readouterr().out)["scores"]["towers"])
    assert {"zero_shot", "recall_1_forth", "recall_10_back", "modality_gap"} <= set(scores)
    record = read_evaluation(clip_run)
    assert record is not None
    assert record.score("towers", "zero_shot").value == scores["zero_shot"].value
    space = Space.of_run(clip_run, "test", "towers").values
    templates = scores["zero_shot"].settings["templates"]
    shown = answers.make("zero_shot", {"space": space, "templates": templates}).meta["scores"]["own"]
    assert scores_from_json(shown)["zero_shot"].value == scores["zero_shot"].value
    assert main(["evaluate", clip_run.name]) == 0
    said = capsys.readouterr().out
    assert "image and text z:" in said
    assert "Zero-shot accuracy" in said
    assert "Recall@1, caption → image" in said


def test_verify_checks_the_scores_of_towers_and_the_runs_table_shows_them(clip_run: Run) -> None:
    towers, model = both(clip_run), load_model(clip_run)
    scores = zero_shot_scores(towers, lambda: model)[0] | tower_scores(towers)[0]
    keep_scores(clip_run, {"towers": scores})
    assert deviations(clip_run) == []
    shown = table.row(clip_run)
    assert shown["Zero-shot %"] == 100 * scores["zero_shot"].value
    assert shown["Recall@1 to images, %"] == 100 * scores["recall_1_back"].value
    false = dataclasses.replace(scores["zero_shot"], value=scores["zero_shot"].value - 0.5, interval=None)
    keep_scores(clip_run, {"towers": {**scores, "zero_shot": false}})
    (said,) = deviations(clip_run)
    assert "zero_shot of image and text z is" in said
    simclr = table.row(runs.load("simclr-digits"))
    assert [simclr[column] for column in table.OF_TOWERS.values()] == [None] * 3


def test_a_model_stays_open_for_the_next_sentence(clip_run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    space = Space.of_run(clip_run, "test", "towers").values
    before = answers_of_scores._open_model.cache_info().misses
    for text in ("red", "a green square"):
        answers.make("text_query", {"space": space, "text": text, "most": 3})
    answers.make("zero_shot", {"space": space, "templates": ["{} square"]})
    assert answers_of_scores._open_model.cache_info().misses == before + 1
    capsys.readouterr()
    assert main(["query", clip_run.name, "a red zebra", "--top", "2"]) == 0
    said = capsys.readouterr()
    assert [line.split()[1].split("/")[0] for line in said.out.splitlines()] == ["red", "red"]
    assert "not in the training captions: zebra" in said.err
    assert main(["query", clip_run.name, "zebra"]) == 2
    assert "have none of these words: zebra" in capsys.readouterr().err
