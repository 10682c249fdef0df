"""The stages of the Loss Lab: which one comes first, the trade-off of τ under the curves, and the playground."""

from pathlib import Path

import numpy as np
import pytest
from opened_page import opened
from PIL import Image
from streamlit.testing.v1 import AppTest

from contrastive_core.spaces.loaded_vectors import open_vectors
from contrastive_core.spaces.small_samples import SmallImages
from contrastive_lab.loss_lab import simulations


def lab(monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    app = opened("loss_lab", monkeypatch, **query)
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("query", "stage"),
    [
        ({}, "star"),
        ({"run": "clip-shapes"}, "matrix"),  # captions have no picture
        ({"loss": "vicreg"}, "matrix"),  # over dimensions
        ({"on": "circle"}, "circle"),
        ({"on": "playground", "images": "shapes"}, "playground"),
    ],
)
def test_each_address_leads_to_a_stage(query: dict[str, str], stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab(monkeypatch, **({"run": "simclr-shapes"} | query)).query_params["on"] == stage


def test_the_order_of_the_matrix_stands_in_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    link = {"run": "simclr-shapes", "on": "matrix"}
    assert lab(monkeypatch, **link, arrange="cluster").query_params["arrange"] in ("cluster", ["cluster"])
    assert "arrange" not in lab(monkeypatch, **link, arrange="group").query_params


def test_the_playground_takes_own_images_and_vectors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder or a file by its path, and vectors that were opened before; a file of too few rows is refused."""
    drawn: list[SmallImages] = []
    monkeypatch.setattr(simulations, "pack_playground", lambda small, *_more: drawn.append(small) or b"")
    rng = np.random.default_rng(0)
    for i in range(24):
        path = tmp_path / "mine" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (20, 20), np.uint8)).save(path)
    np.save(tmp_path / "points.npy", rng.normal(size=(40, 2)).astype(np.float32))
    np.save(tmp_path / "few.npy", np.eye(3, dtype=np.float32))
    key = open_vectors(str(tmp_path / "points.npy"), "points.npy")
    app = lab(monkeypatch, run="simclr-shapes", on="playground", images=f"vectors:{key}")
    assert drawn[-1].images.shape[1:] == (1, 2)
    for name, shape, classes in (("mine", (16, 16), ("a", "b")), ("points.npy", (1, 2), ())):
        app.text_input(key="path-folder").set_value(str(tmp_path / name)).run()
        app.button(key="play-use-own").click().run()
        assert not app.exception
        assert (drawn[-1].images.shape[1:], drawn[-1].classes) == (shape, classes)
    again = lab(monkeypatch, **{k: v[0] if isinstance(v, list) else v for k, v in app.query_params.items()})
    assert str(tmp_path / "points.npy") in again.selectbox(key="loss_lab-images").options
    count = len(drawn)
    app.text_input(key="path-folder").set_value(str(tmp_path / "few.npy")).run()
    app.button(key="play-use-own").click().run()
    (error,) = app.error
    assert error.value.replace("\\", "") == "few.npy has 3 readable samples; at least 20 are needed"
    assert len(drawn) == count + 1  # the one before, until the button was pressed


def test_the_list_of_lessons_leads_to_the_playground(monkeypatch: pytest.MonkeyPatch) -> None:
    app = lab(monkeypatch, lesson="3")
    app.button(key="lab-playground").click().run()
    assert (app.query_params["on"], "lesson" in app.query_params) == ("playground", False)
    assert not app.exception


def test_it_stands_under_the_curves_and_a_margin_has_no_such_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    for on, loss, has_figure in (
        ("curves", "nt_xent", True),
        ("matrix", "nt_xent", False),
        ("curves", "triplet", False),
    ):
        app = opened("loss_lab", monkeypatch, run="simclr-digits", on=on, loss=loss)
        assert not app.exception
        assert any("At τ" in str(c.value) for c in app.caption) == has_figure


def test_the_temperature_stays_when_the_loss_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was set; else the run's own, whatever loss it was trained with."""
    for asked, wanted in (({"temperature": "0.13"}, "0.13"), ({}, "0.2")):
        app = opened("loss_lab", monkeypatch, run="simclr-digits", on="matrix", **asked)
        for loss in ("hard_negative", "siglip", "triplet", "info_nce"):
            next(box for box in app.selectbox if box.label == "Loss").set_value(loss).run()
            assert not app.exception
            assert app.query_params.get("temperature") == (None if loss == "triplet" else wanted), loss
