"""The stages of the Loss Lab: which one comes first, and where addresses from before there were stages lead."""

from pathlib import Path

import numpy as np
import pytest
from opened_page import opened
from PIL import Image
from streamlit.testing.v1 import AppTest

from contrastive_core.spaces.open_vectors import open_vectors
from contrastive_lab.components.playground import PlaygroundView
from contrastive_lab.playground import stage


def lab(monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    app = opened("loss_lab", monkeypatch, **query)
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
    assert lab(monkeypatch, **({"run": "simclr-shapes"} | query)).query_params["on"] == stage


def test_an_address_of_two_settings_pins_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    app = lab(monkeypatch, run="simclr-shapes", panel="two", second="loss:triplet")
    assert app.query_params["second"] == "loss:triplet"
    assert lab(monkeypatch, run="simclr-shapes", panel="two").query_params["second"] == "same"


def test_the_order_of_the_matrix_stands_in_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    link = {"run": "simclr-shapes", "on": "matrix"}
    assert lab(monkeypatch, **link, arrange="cluster").query_params["arrange"] in ("cluster", ["cluster"])
    assert "arrange" not in lab(monkeypatch, **link, arrange="group").query_params


def test_the_playground_takes_own_images_and_vectors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder or a file by its path, and vectors that were opened before; a file of too few rows is refused."""
    drawn: list[PlaygroundView] = []
    monkeypatch.setattr(stage, "draw_playground", lambda view, _key: drawn.append(view) or "")
    rng = np.random.default_rng(0)
    for i in range(24):
        path = tmp_path / "mine" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (20, 20), np.uint8)).save(path)
    np.save(tmp_path / "points.npy", rng.normal(size=(40, 2)).astype(np.float32))
    np.save(tmp_path / "few.npy", np.eye(3, dtype=np.float32))
    key = open_vectors(str(tmp_path / "points.npy"), "points.npy")
    app = lab(monkeypatch, run="simclr-shapes", on="playground", images=f"vectors:{key}")
    assert drawn[-1].shape == (1, 2)
    for name, shape, classes in (("mine", (16, 16), ("a", "b")), ("points.npy", (1, 2), ())):
        app.text_input(key="path-folder").set_value(str(tmp_path / name)).run()
        app.button(key="play-use-own").click().run()
        assert not app.exception
        assert (drawn[-1].shape, drawn[-1].classes) == (shape, classes)
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
