"""The trade-off of τ, in the Loss Lab: said for the batch and the τ that are chosen."""

import re

import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest


def caption(app: AppTest) -> str:
    return next(str(c.value) for c in app.caption if "At τ" in str(c.value))


def test_it_follows_the_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    spread, own = [], []
    for temperature in ("0.05", "0.2", "1.0"):
        app = opened("loss_lab", monkeypatch, run="simclr-digits", on="curves", temperature=temperature)
        assert not app.exception
        text = caption(app)
        assert text.startswith(f"At τ {float(temperature):g} the push covers")
        found = re.match(r".*covers (\d+) % of the negatives; (\d+) % of it is on", text)
        spread.append(int(found[1]))
        own.append(int(found[2]))
    assert spread == sorted(spread)
    assert own == sorted(own, reverse=True)


def test_it_stands_under_the_curves_and_a_margin_has_no_such_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage, loss, has_figure in (
        ("curves", "nt_xent", True),
        ("matrix", "nt_xent", False),
        ("curves", "triplet", False),
    ):
        app = opened("loss_lab", monkeypatch, run="simclr-digits", on=stage, loss=loss)
        assert not app.exception
        assert any("At τ" in str(c.value) for c in app.caption) == has_figure


def test_a_queue_stands_beside_without_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("loss_lab", monkeypatch, run="simclr-digits", trade="yes", pairing="queue")
    assert not app.exception
    assert "own class" not in caption(app)


def test_the_temperature_stays_when_the_loss_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was set; else the run's own, whatever loss it was trained with."""
    for asked, wanted in (({"temperature": "0.13"}, "0.13"), ({}, "0.2")):
        app = opened("loss_lab", monkeypatch, run="simclr-digits", on="matrix", **asked)
        for loss in ("hard_negative", "siglip", "triplet", "info_nce"):
            next(box for box in app.selectbox if box.label == "Loss").set_value(loss).run()
            assert not app.exception
            assert app.query_params.get("temperature") == (None if loss == "triplet" else wanted), loss
