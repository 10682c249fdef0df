"""The trade-off of τ, in the Loss Lab: said for the batch and the τ that are chosen."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from contrastive_core.paths import ROOT


def opened(monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    monkeypatch.chdir(ROOT)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.query_params["run"] = "simclr-digits"
    app.run()
    app.switch_page("pages/loss_lab.py")
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def caption(app: AppTest) -> str:
    return next(str(c.value) for c in app.caption if "At τ" in str(c.value))


def test_it_follows_the_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    spread, own = [], []
    for temperature in ("0.05", "0.2", "1.0"):
        app = opened(monkeypatch, trade="yes", temperature=temperature)
        assert not app.exception
        text = caption(app)
        assert text.startswith(f"At τ {float(temperature):g} the push covers")
        found = re.match(r".*covers (\d+) % of the negatives; (\d+) % of it falls", text)
        spread.append(int(found[1]))
        own.append(int(found[2]))
    assert spread == sorted(spread)
    assert own == sorted(own, reverse=True)


def test_every_choice_counts_and_a_margin_has_no_such_figure(monkeypatch) -> None:
    app = opened(monkeypatch)
    for is_on in (True, False, True):
        toggle = next(t for t in app.toggle if t.label == "The trade-off of τ")
        toggle.set_value(is_on).run()
        assert not app.exception
        assert any("At τ" in str(c.value) for c in app.caption) == is_on
    app = opened(monkeypatch, loss="triplet")
    assert "The trade-off of τ" not in [t.label for t in app.toggle]


def test_a_queue_stands_beside_without_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(monkeypatch, trade="yes", pairing="queue")
    assert not app.exception
    assert "own class" not in caption(app)
