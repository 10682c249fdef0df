"""From the Loss Lab to Train: a loss and the knobs that were dragged arrive in the form. From a run to the Loss Lab."""

from typing import Any

import pytest
from opened_page import page_on
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.engine import catalog
from contrastive_lab.loss_lab import batch, controls, lesson_panel
from contrastive_lab.loss_setting import dragged

RELEASED = {
    "temperature": 0.0732,
    "margin": 0.35,
    "negative_margin": -0.125,
    "positive_share": 0.9,
    "tau_plus": 0.07,
    "q": 0.25,
    "sigma": 0.3,
}
ON_TRAIN = {
    "nt_xent": "simclr-shapes",
    "hard_negative": "simclr-digits",
    "triplet": "metric-digits",
    "vicreg": "vicreg-shapes",
}


def pressed(loss: str, run: str, knobs: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Train, after its button in the lab, where the browser has let these knobs go."""
    live = next((n for n in ("temperature", "margin") if n in knobs), "")
    report = {"of": loss, "value": knobs.get(live), "more": {n: v for n, v in knobs.items() if n != live}, "report": 3}
    monkeypatch.setattr(controls, "reported_state", lambda key, state: report)
    app = page_on("home", monkeypatch, run=run, **{lesson_panel.ONWARD: lesson_panel.WITH_THIS})
    app.switch_page("pages/loss_lab.py")
    app.query_params["loss"] = loss
    return app.run()


@pytest.mark.parametrize("loss", ON_TRAIN)
def test_each_dragged_knob_arrives(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    about = catalog.read()["losses"][loss]
    knobs = {name: RELEASED.get(name, 1.75) for name in dragged(about)}
    app = pressed(loss, ON_TRAIN[loss], knobs, monkeypatch)
    assert not app.exception
    method, data = ON_TRAIN[loss].split("-")
    fields: dict[str, Any] = {field.label: field.value for field in [*app.selectbox, *app.number_input, *app.text_area]}
    assert (fields["Method"], fields["Data"], fields["Loss"]) == (method, data, loss)
    assert fields.get("Temperature τ") == knobs.get("temperature")
    lines = set(fields["Further settings, one per line"].splitlines())
    assert {f"loss.{name}={value:g}" for name, value in knobs.items() if name != "temperature"} <= lines
    assert not app.button(key="start").disabled
    shown = " ".join(caption.value for caption in app.caption).replace("\\", "")
    assert all(f"{value:g}" in shown for value in knobs.values())


def test_what_cannot_be_trained_so_offers_a_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[Any] = []
    monkeypatch.setattr(batch, "draw_loss_view", lambda view, *more: offered.append(view.forward))
    for run in ("clip-shapes", "simclr-shapes"):
        assert not page_on("loss_lab", monkeypatch, run=run).exception
    assert [one["number"] for one in offered] == [1, lesson_panel.WITH_THIS]
    imported = runs.load("simclr-shapes")
    imported.manifest["imported"] = {"encoder": "small"}
    assert not batch.can_train(imported)
