"""The Loss Lab on a file of two towers: one direction at a time, losses that do not run between towers, bad files."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined
from contrastive_lab.report.button import job_of


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
    assert app.selectbox(key="run-instead-of-vectors").placeholder == "no run: pairs.npz is shown"
    assert chip(to_page(app, "loss_lab", vectors=other)) == "others.npz · InfoNCE"
    to_page(app, "samples")
    assert app.query_params["on"] == f"vectors:{other}"
    assert app.selectbox(key="run-instead-of-vectors").placeholder == "no run: others.npz is shown"
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
