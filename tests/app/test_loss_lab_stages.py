"""The stages of the Loss Lab: which one comes first, and where addresses from before there were stages lead."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from contrastive_core.base.paths import ROOT


def opened(monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    monkeypatch.chdir(ROOT)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.run()
    app.switch_page("pages/loss_lab.py")
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("query", "stage"),
    [
        ({}, "star"),
        ({"on": "batch"}, "star"),
        ({"on": "batch", "view": "mask"}, "matrix"),
        ({"panel": "grads"}, "curves"),
        ({"panel": "pushes"}, "matrix"),
        ({"trade": "yes"}, "curves"),
        ({"run": "clip-shapes"}, "matrix"),  # captions have no picture
        ({"loss": "vicreg"}, "matrix"),  # over dimensions
        ({"on": "circle"}, "circle"),
        ({"on": "playground", "images": "shapes"}, "playground"),
    ],
)
def test_each_address_leads_to_a_stage(query: dict[str, str], stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(monkeypatch, **({"run": "simclr-shapes"} | query)).query_params["on"] == stage


def test_an_address_of_two_settings_pins_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(monkeypatch, run="simclr-shapes", panel="two", second="loss:triplet")
    assert app.query_params["second"] == "loss:triplet"
    assert opened(monkeypatch, run="simclr-shapes", panel="two").query_params["second"] == "same"


def test_the_order_of_the_matrix_stands_in_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    link = {"run": "simclr-shapes", "on": "matrix"}
    assert opened(monkeypatch, **link, arrange="cluster").query_params["arrange"] in ("cluster", ["cluster"])
    assert "arrange" not in opened(monkeypatch, **link, arrange="group").query_params
