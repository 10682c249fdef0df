"""Why two samples are alike, once it is asked, where pairs are met: Explore, the Loss Lab, Samples."""

from typing import Any

import pytest
from opened_page import opened
from sample_desk import Desk
from sample_desk import opened as samples_page
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.engine import answers
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, pictures, progress, state


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the component is given; analyses are answered at once."""
    every: list[dict[str, Any]] = []
    monkeypatch.setattr(pictures, "draw_alike", lambda sides, *more: every.append({"names": [s.name for s in sides]}))

    def answer(kind: str, values: dict[str, Any], *_about: Any) -> Any:
        every.append(values)
        return answers.make(kind, values, device="cpu")

    monkeypatch.setattr(progress, "answer_or_wait", answer)
    return every


def turn_on(app: AppTest) -> str:
    """What is said once the switch is on."""
    next(one for one in app.toggle if one.label == "Why are they alike?").set_value(True).run()
    assert not app.exception
    (said,) = [part.value for part in app.caption if "Covering those with the largest parts" in part.value]
    return str(said).replace("\\", "")


def test_a_neighbor_on_explore_is_explained_in_the_layer_of_the_map(
    drawn: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    space = Space.of_run(runs.load("simclr-shapes"), "test")
    app = opened("explore", monkeypatch, run=space.name, map="pca")
    app.session_state["selection"] = {state.data_of(space): [3]}
    app.run()
    rows = space.rows()
    assert rows is not None
    near = int(cache.nearest(rows.content_hash, 3, 11, rows)[0][0])
    said = turn_on(app)
    assert drawn[-1]["names"] == [rows.ids[3], rows.ids[near]]
    found = answers.make("likeness", drawn[-2], device="cpu")
    assert f"The similarity {found.meta['similarity']:.2f} is an exact sum over pairs of patches" in said
    assert "effect is not clear" not in said


@pytest.mark.parametrize("run", ["simclr-shapes", "clip-shapes"])
def test_a_pair_clicked_in_the_loss_lab_is_explained(
    run: str, drawn: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from contrastive_lab.loss_lab import batch

    monkeypatch.setattr(batch, "reported", lambda key: {"candidate": 5})
    app = opened("loss_lab", monkeypatch, run=run, on="matrix", anchor="2")
    said = turn_on(app)
    assert "they are integrated jacobians" in said.lower()
    values = drawn[-2]
    assert values["space"]["layer"] == "z"
    assert (values["rows"][0], isinstance(values["rows"][1], str)) == (2, run == "clip-shapes")
    assert drawn[-1]["names"][0].startswith("image ")


@pytest.mark.usefixtures("no_processes")
def test_a_suspect_is_explained_beside_the_nearest_of_the_suggested_class(
    desk: Desk, drawn: list[dict[str, Any]]
) -> None:
    run = runs.load("simclr-shapes")
    make_table(request_of(run.name, "test"))
    app = samples_page(run=run.name, split="test", list="mislabeled")
    turn_on(app)
    values = drawn[-2]
    assert values["ids"][0] == desk.item.id
    assert desk.item.suggested
    assert desk.item.evidence[0].title.endswith(desk.item.suggested)
    assert f"({desk.item.suggested})" in drawn[-1]["names"][1]
