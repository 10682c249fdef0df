"""Frozen encoders on pages: as marks and columns beside a run's scores, in the popover, as a start on Train."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from opened_page import opened
from sample_desk import Desk, text_of
from sample_desk import opened as desk_opened
from streamlit.testing.v1 import AppTest

from contrastive_core.engine import client, results
from contrastive_core.engine.results import Result
from contrastive_core.records import frozen, runs
from contrastive_core.records.comparison import Difference
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.frozen import parse
from contrastive_core.records.sample_table import keep_table, path_of
from contrastive_core.records.score import Score, scores_to_json
from contrastive_core.samples.run_samples import samples_of_run
from contrastive_lab import frozen_encoders
from contrastive_lab.explore import strip
from contrastive_lab.samples import encoder_quality

ENCODER = "run:simclr-shapes"


def scored(value: float = 0.95) -> None:
    """The named encoder has its scores on the digits."""
    run = runs.load("simclr-digits")
    knn = Score("kNN accuracy", "", value, (value - 0.02, value + 0.02), unit="share")
    values = frozen.request(parse(ENCODER), run.config, str(run.manifest["data_fingerprint"]))
    results.write(frozen.KIND, values, Result({"scores": scores_to_json({"knn": knn}), "title": ENCODER, "notes": []}))


def test_its_scores_are_known_by_its_name() -> None:
    run = runs.load("simclr-digits")
    assert frozen_encoders.known(run) == {}
    frozen.add(parse(ENCODER))
    assert frozen_encoders.known(run) == {}
    scored()
    assert frozen_encoders.known(run)[f"frozen:{ENCODER}"]["knn"].value == 0.95


def test_it_is_a_mark_of_the_strip() -> None:
    own = Score("kNN accuracy", "", 0.9, unit="share")
    html = strip.markup({"own": {"knn": own}, "frozen:timm:<x>": {"knn": Score("kNN accuracy", "", 0.5, unit="share")}})
    assert '<i class="frozen" style="left:50.00%">' in html
    assert "timm:&lt;x&gt;, frozen: 50.0" in html
    assert "<x>" not in html


def test_explore_shows_it_and_names_and_forgets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen.add(parse(ENCODER))
    scored()
    app = opened("explore", monkeypatch, run="simclr-digits", more="All scores")
    assert not app.exception
    assert f"{ENCODER}, frozen" in "".join(h.proto.body for h in app.get("html"))
    assert f"{ENCODER}, frozen" in list(app.dataframe[0].value.columns)
    remove = next(b for b in app.button if b.label == "Remove")
    remove.click().run()
    assert frozen.read_list() == []


@pytest.mark.parametrize("text", ["timm:", "/nowhere/weights.pt", "run:nonesuch"])
def test_a_text_that_names_nothing_is_refused_in_the_popover(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(function: str, encoder: object) -> str:
        from contrastive_core.importers.frozen_encoders import check_frozen

        assert function == frozen_encoders.CHECK
        return check_frozen(encoder)  # type: ignore[arg-type]

    frozen.add(parse(ENCODER))
    scored()
    monkeypatch.setattr(client, "call", check)
    app = opened("explore", monkeypatch, run="simclr-digits", more="All scores")
    next(t for t in app.text_input if t.label == "Add an encoder").set_value(text)
    next(b for b in app.button if b.label == "Add").click().run()
    assert len(app.error) == 1
    assert not app.exception
    assert [e.text for e in frozen.read_list()] == [ENCODER]


def test_samples_name_it_where_it_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(encoder_quality.st, "caption", said.append)
    monkeypatch.setattr(encoder_quality.st, "info", said.append)
    frozen.add(parse(ENCODER))
    own = Score("kNN accuracy", "", 0.9, unit="share")
    for value, count in ((0.91, 1), (0.95, 2)):
        said.clear()
        scored(value)
        encoder_quality._show_frozen(runs.load("simclr-digits"), own)
        assert len(said) == count, said
    assert said[1].replace("\\", "") == "run:simclr-shapes scores higher than this encoder."


def test_lists_of_samples_rest_on_the_one_that_is_chosen(desk: Desk, no_processes: list[str]) -> None:
    """A table of the same samples with other wrong labels is shown, its basis said; one of no file says so."""
    run, by = runs.load("simclr-digits"), parse("run:sup_con-digits")
    own = samples_of_run(run, split="test", device="cpu")
    scores = np.linspace(1, 0, len(own))
    keep_table(
        replace(own, columns={**own.columns, "mislabeled": scores}), path_of(run, "samples", own.loss, "test", by)
    )
    app = desk_opened(run=run.name, split="test", list="mislabeled")
    assert not [s for s in app.selectbox if s.label == "Lists by"]  # nothing to choose from
    frozen.add(by)
    frozen.add(parse("/nowhere/weights.pt"))
    app = desk_opened(run=run.name, split="test", list="mislabeled")
    box = next(s for s in app.selectbox if s.label == "Lists by")
    assert box.options == ["This run's encoder", "run:sup_con-digits, frozen", "nowhere/weights.pt, frozen"]
    assert "rests on" not in text_of(app)
    box.set_value(by.text).run()
    assert not app.exception
    assert "This list rests on run:sup_con-digits, frozen" in text_of(app).replace("\\", "")
    assert desk.item.id == str(own.columns["id"][0])
    next(s for s in app.selectbox if s.label == "Lists by").set_value("/nowhere/weights.pt").run()
    assert [w.value.replace("\\", "") for w in app.warning] == [
        "there is no file /nowhere/weights.pt; correct the path of the frozen encoder"
    ]
    assert not app.exception
    assert no_processes == []


def test_a_missing_table_by_a_frozen_encoder_is_asked_of_the_engine(desk: Desk, no_processes: list[str]) -> None:
    frozen.add(parse(ENCODER))
    app = desk_opened(run="simclr-digits", split="test", by=ENCODER)
    assert not app.exception
    (key,) = set(no_processes)
    assert "-by-" in key


def test_train_starts_from_a_named_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastive_core.paths import SHIPPED
    from contrastive_lab.train import encoder as fields

    frozen.add(parse(str(SHIPPED / "simclr-digits" / "weights.safetensors")))
    looked_up = {"encoder": "small", "matched": 40, "missing": [], "unlike": []}
    monkeypatch.setattr(fields, "preview_import", lambda *words: looked_up)
    app = opened("train", monkeypatch, data="digits", method="simclr")
    start = next(s for s in app.selectbox if s.label == "Start from")
    name = next(option for option in start.options if "frozen" in option)
    start.set_value(name).run()
    assert not app.exception
    assert "Training goes on from its weights" in text_of(app)
    begun: list[tuple[str, ...]] = []
    monkeypatch.setattr(fields.importing, "begin", lambda name, words: begun.append(tuple(words)))
    made = fields._of_frozen(frozen.read_list()[0])
    assert fields.opened_weights(made, "digits")[0] == "--start"
    assert begun[0][0].endswith("weights.safetensors")
    assert begun[0][1:] == ("--dataset", "digits")


def test_compare_tests_each_run_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen.add(parse(ENCODER))
    space = EmbeddingRef("simclr-digits", "test", "h")
    app = AppTest.from_function(draw_differences)
    assert not app.run().dataframe  # no scores yet
    scored()
    values = {
        "spaces": [space.values],
        "names": ["simclr-digits"],
        "frozen": frozen_encoders.values_of(parse(ENCODER), runs.load("simclr-digits")),
    }
    ones = [("knn", 0.031, (0.006, 0.058), 0.01), ("linear_probe", -0.02, (-0.05, 0.01), 0.4)]
    found = [asdict(Difference(m, "simclr-digits", ENCODER, v, i, p, p, 3, 1)) for m, v, i, p in ones]
    results.write(frozen.DIFFERENCES, values, Result({"differences": found}))
    app.run()
    assert not app.exception
    rows = app.dataframe[0].value
    assert list(rows["result"]) == ["✓ run better", "no difference shown"]
    assert list(rows["difference"]) == [3.1, -2.0]
    assert list(rows["95 %"]) == ["0.6 to 5.8", "-5.0 to 1.0"]


def draw_differences() -> None:
    from contrastive_core.records.embedding_ref import EmbeddingRef
    from contrastive_lab.compare import frozen_differences

    frozen_differences.draw([EmbeddingRef("simclr-digits", "test", "h")])
