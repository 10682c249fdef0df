"""The Loss Lab: which stage comes first, and the playground; a file of two towers, one direction at a time; to Train,
where a loss and the knobs that were dragged arrive."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened_page import field, opened, page_on
from PIL import Image
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.engine import catalog
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.loaded_vectors import open_vectors
from contrastive_core.spaces.small_samples import SmallImages
from contrastive_core.spaces.towers import joined
from contrastive_lab.loss_lab import batch, controls, lesson_panel, simulations
from contrastive_lab.loss_setting import dragged
from contrastive_lab.report.button import job_of

# --- stages ---


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


def test_sup_con_begins_with_labels_and_says_what_it_is_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    app = lab(monkeypatch, run="simclr-shapes")
    field(app, "Loss").set_value("sup_con").run()
    assert field(app, "Positives are").value == "classes"
    field(app, "Positives are").set_value("views").run()
    assert [c.value for c in app.caption if "equals NT-Xent" in c.value]
    field(app, "Loss").set_value("nt_xent").run()
    assert field(app, "Positives are").value == "views"
    assert not [c.value for c in app.caption if "equals NT-Xent" in c.value]


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


# --- two towers ---


def tower(noise: float, n: int = 40) -> EmbeddingSet:
    x = np.random.default_rng(0).normal(size=(n, 6)) + noise * np.random.default_rng(1).normal(size=(n, 6))
    return EmbeddingSet(x.astype(np.float32), columns={"text": np.array([f"text <b> {i}" for i in range(n)])})


def at_file(found: EmbeddingSet, monkeypatch: pytest.MonkeyPatch, **address: str) -> AppTest:
    key = loaded_vectors.save_vectors(found, "pairs.npz")
    return opened("loss_lab", monkeypatch, run="simclr-shapes", rows="file", file=key, **address)


def words(app: AppTest) -> str:
    parts: list[Any] = [*app.caption, *app.selectbox, *app.warning, *app.expander, *app.info]
    return "\n".join(str(getattr(part, "value", "")) + str(getattr(part, "label", "")) for part in parts)


def test_the_page_offers_both_directions_and_losses_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    app = at_file(joined(tower(0.0), tower(0.4), ("question", "answer")), monkeypatch, size="16")
    assert not app.exception
    box = app.selectbox(key="loss_lab-direction")
    assert box.options == ["question → answer", "answer → question"]
    (loss,) = [box for box in app.selectbox if box.label == "Loss"]
    assert loss.value == "info_nce"
    assert not {"VICReg", "Barlow Twins", "LeJEPA"} & {*loss.options}
    assert "SigLIP" in loss.options
    said = words(app).replace("\\", "")
    assert "Not for two towers: Barlow Twins, VICReg, LeJEPA." in said
    assert "Shown: 16 of 40 rows of question and 16 of 40 rows of answer." in said
    box.set_value("b_to_a").run()
    assert not app.exception
    assert box.value == "b_to_a"
    assert app.query_params["direction"] == "b_to_a"


def test_what_is_shown_is_the_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    found = joined(tower(0.0), tower(0.4), ("question", "answer"))
    app = at_file(found, monkeypatch, size="16", on="curves", temperature="0.05")
    assert not app.exception
    key = loaded_vectors.save_vectors(found, "pairs.npz")
    assert app.button(key=f"make-{job_of([f'vectors:{key}'], 'test', 'h').key}")
    (trade,) = app.get("plotly_chart")
    assert "trained at" not in str(trade.proto)
    run = opened("loss_lab", monkeypatch, run="simclr-shapes", on="curves", temperature="0.05")
    assert run.button(key=f"make-{job_of(['simclr-shapes'], 'test', 'h').key}")
    assert "trained at" in str(run.get("plotly_chart")[0].proto)


def chip(app: AppTest) -> str:
    """The label of the Loss Lab's settings."""
    return next(block.proto.popover.label for block in blocks(app) if " · " in block.proto.popover.label)


def blocks(app: AppTest) -> Iterator[Any]:
    open_nodes: list[Any] = [app._tree]
    while open_nodes:
        node = open_nodes.pop()
        open_nodes += getattr(node, "children", {}).values()
        if hasattr(getattr(node, "proto", None), "popover"):
            yield node


def to_page(app: AppTest, page: str, **query: str) -> AppTest:
    app.switch_page("pages/methods.py").run()  # a link is read on arrival
    app.query_params.clear()
    app.switch_page(f"pages/{page}.py")
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def test_a_file_shown_on_one_page_is_the_subject_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, others = (joined(tower(0.0), tower(noise), ("question", "answer")) for noise in (0.4, 0.5))
    key, other = loaded_vectors.save_vectors(pairs, "pairs.npz"), loaded_vectors.save_vectors(others, "others.npz")
    app = opened("explore", monkeypatch, vectors=key)
    assert chip(to_page(app, "loss_lab")) == "pairs.npz · InfoNCE"
    assert app.query_params["file"] == key
    assert app.selectbox(key="run-instead-of-vectors").placeholder == "pairs.npz, no run"
    assert chip(to_page(app, "loss_lab", vectors=other)) == "others.npz · InfoNCE"
    to_page(app, "samples")
    assert app.query_params["on"] == f"vectors:{other}"
    assert app.selectbox(key="run-instead-of-vectors").placeholder == "others.npz, no run"
    assert to_page(app, "explore").query_params["vectors"] == other
    to_page(app, "loss_lab")
    app.selectbox(key="run-instead-of-vectors").set_value("sup_con-shapes").run()
    assert chip(app).startswith("sup_con-shapes · ")
    assert "vectors" not in to_page(app, "explore").query_params
    assert to_page(app, "samples").query_params["on"] == "sup_con-shapes"
    assert chip(to_page(app, "loss_lab", run="simclr-shapes", rows="file", file=key)) == "pairs.npz · InfoNCE"
    assert to_page(app, "samples").query_params["on"] == f"vectors:{key}"


def test_a_loss_that_does_not_run_between_towers_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    app = at_file(joined(tower(0.0), tower(0.4), ("question", "answer")), monkeypatch, loss="vicreg", size="16")
    assert not app.exception
    assert app.query_params["loss"] == "info_nce"


@pytest.mark.parametrize("has_towers", [True, False])
def test_no_word_of_images_where_rows_are_texts(has_towers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = joined(tower(0.0), tower(0.4), ("question", "answer")) if has_towers else tower(0.0)
    labels = np.arange(len(found)) % 4
    rows = EmbeddingSet(found.features, labels, columns=found.columns)
    app = at_file(rows, monkeypatch, size="16", on="curves", loss="sup_con")
    assert not app.exception
    asked = [box for box in app.selectbox if box.label not in ("Vectors from", "Lessons")]
    options = [option for box in asked for option in box.options]
    assert "image" not in "\n".join([words(app), *options]).lower()


# --- to Train ---


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
