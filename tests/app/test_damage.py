"""Pages of damaged runs; test_hostile_pages.py draws those of a healthy run beside a damaged one."""

import dataclasses
import html
import json
import shutil

import pytest
from kept_scores import keep_scores
from opened_page import page_on
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.memory import write_npz
from contrastive_core.base.score import Score
from contrastive_core.base.storage import SHIPPED
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.spaces.space import cached, path_of
from contrastive_lab import stage

PICTURE = "![x](http://example.org/x.png)"
BROKEN = {
    "meta.json": (None, [], "text", {"title": ["a"], "tags": 3}),
    "status.json": (None, [], {"status": {}, "reason": []}),
}
CONFIGS = (None, [], {"method": [], "dataset": {}}, {"method": "simclr", "loss_knobs": "x"})


@pytest.fixture(autouse=True)
def damaged(homes) -> list[str]:
    """A home of runs with one of each damage."""
    names = []
    source = SHIPPED / "simclr-digits"
    for file, contents in BROKEN.items():
        for content in contents:
            names.append(f"broken-{len(names)}")
            run = runs.create(names[-1], runs.load("simclr-digits").config)
            shutil.copy(source / "weights.safetensors", run.weights)
            (run.path / file).write_text(json.dumps(content))
    for config in CONFIGS:
        names.append(f"broken-{len(names)}")
        run = runs.create(names[-1], {"method": "simclr"})
        manifest = json.loads((run.path / "run.json").read_text())
        (run.path / "run.json").write_text(json.dumps({**manifest, "config": config}))
        shutil.copy(source / "weights.safetensors", run.weights)
    return names


def strip_of(app: AppTest) -> str:
    """The HTML of the strip of scores."""
    return next(e.proto.body for e in app.get("html") if 'class="scores"' in e.proto.body)


def test_a_damaged_run_is_said_to_be_so(damaged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_on("explore", monkeypatch, run=damaged[0])
    for name in damaged:
        app.session_state["run"] = name
        assert not app.run().exception, name


def test_damage_is_named_beside_the_run() -> None:
    run = runs.create("hurt", {"method": "simclr", "dataset": "digits", "epochs": 1, "seed": 0})
    run.set_status("done")
    run.set_meta(note="precious")
    run.append_metrics([{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.4}])
    (run.path / "meta.json").write_text("null")
    metrics = run.path / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace("0.5", '"low"'))

    def page() -> None:
        from contrastive_core import runs
        from contrastive_lab.runs import detail

        detail.details(runs.load("hurt"))

    app = AppTest.from_function(page, default_timeout=90).run()
    assert not app.exception
    said = "\n".join(str(part.value) for part in [*app.warning, *app.error, *app.info, *app.caption]).replace("\\", "")
    assert "meta.json is damaged: it is null, not an object" in said
    assert "metrics.jsonl: damaged lines are skipped and the others are read: 1" in said


def test_a_title_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("titled", {"method": "simclr", "dataset": PICTURE})
    run.set_meta(title=PICTURE)
    run.set_status("failed", reason=PICTURE)
    app = page_on("explore", monkeypatch, run="titled")
    assert not app.exception
    shown = [*app.title, *app.caption, *app.warning, *app.markdown]
    assert any("example" in e.value for e in shown)
    assert not any(PICTURE in e.value for e in shown)


@pytest.mark.parametrize("page", ["explore", "methods", "runs"])
def test_what_a_file_of_scores_says_is_no_markup(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles, readings, reasons and names of classes, on the pages that show scores."""
    run = runs.create("scored", runs.load("simclr-digits").config)
    run.set_status("done")
    shutil.copy(SHIPPED / "simclr-digits" / "weights.safetensors", run.weights)
    record = read_evaluation(runs.load("simclr-digits"))
    assert record is not None
    for scores in record.scores.values():
        for number, (name, score) in enumerate(scores.items()):
            scores[name] = dataclasses.replace(score, title=PICTURE, reading=PICTURE, unit=PICTURE)
            if number % 2:
                scores[name] = Score(PICTURE, PICTURE, missing=PICTURE)
    rows = cached(runs.load("simclr-digits"), "test", "h")
    assert rows is not None
    path_of(run, "test", "h").parent.mkdir(parents=True, exist_ok=True)
    write_npz(path_of(run, "test", "h"), **rows.arrays())  # so that no page waits
    keep_scores(run, record.scores)
    app = page_on(page, monkeypatch, run="scored")
    assert not app.exception
    shown = [app.title, app.caption, app.warning, app.markdown, app.info, app.metric, app.header, app.subheader]
    texts = [str(t) for es in shown for e in es for t in (e.value, e.proto)]
    if page == "explore":
        assert "example" in strip_of(app)
        assert "<img" not in strip_of(app)
        texts.append(strip_of(app).replace(html.escape(PICTURE), ""))
    assert not any(PICTURE in text for text in texts)


def test_what_is_drawn_on_its_own_says_why_it_is_not() -> None:
    def script() -> None:
        from contrastive_lab import stage

        with stage.on_its_own("one"):
            raise KeyError("scores")
        with stage.on_its_own("two"):
            raise ZeroDivisionError  # a fault of the program is not hidden

    app = AppTest.from_function(script, default_timeout=90).run()
    assert "one is damaged: 'scores' is missing" in app.warning[0].value.replace("\\", "")
    assert app.exception
    assert ZeroDivisionError not in stage.DAMAGE
