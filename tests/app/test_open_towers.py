"""A second file or labels are given in "Open my embeddings": Explore shows them, or one sentence says why not."""

from pathlib import Path

import numpy as np
import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.loaded_vectors import open_vectors
from contrastive_core.spaces.towers import towers_of


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    x = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    np.save(tmp_path / "question.npy", x)
    np.save(tmp_path / "answer.npy", x + 0.1)
    np.save(tmp_path / "narrow.npy", x[:, :5])
    return opened("explore", monkeypatch, vectors=open_vectors(tmp_path / "question.npy", "question.npy"), map="pca")


def asked(app: AppTest, **fields: str) -> AppTest:
    """The popover's fields, typed in, and its button."""
    number = app.session_state.get("vectors-opened", 0)
    for name, value in fields.items():
        app.text_input(key=f"vectors-{name.replace('_', '-')}-{number}").input(value)
    app.run()
    next(button for button in app.button if button.label == "Look at it").click()
    return app.run()


def test_a_second_file_makes_two_towers(app: AppTest, tmp_path: Path) -> None:
    files = {"path": str(tmp_path / "question.npy"), "other_path": str(tmp_path / "answer.npy")}
    for first, names in (("", ("question", "answer")), ("Ask", ("Ask", "answer"))):
        asked(app, **files, tower_a=first)
        assert not app.exception
        assert not app.error
        towers = towers_of(loaded_vectors.rows(app.session_state["vectors"]))
        assert towers is not None
        assert towers.names == names
    assert app.title[0].value.replace("\\", "") == "question.npy + answer.npy"
    assert any("paired row by row" in caption.value for caption in app.caption)
    assert not app.warning


def test_a_bad_second_file_is_one_sentence_and_the_first_stays(app: AppTest, tmp_path: Path) -> None:
    """Each field of the form says which columns are read."""
    helps = {f.proto.label: f.proto.help for f in app.get("file_uploader")}
    for label in ("A file", "File of the other tower"):
        assert "column named text" in helps[label]
    before = app.session_state["vectors"]
    for name, words in (("narrow.npy", "rows of narrow 5"), ("none.npy", "no file"), ("", "vector files must end in")):
        asked(app, path=str(tmp_path / "question.npy"), other_path=str(tmp_path / name))
        assert not app.exception
        assert len(app.error) == 1
        assert words in app.error[0].value
        assert app.session_state["vectors"] == before


def test_labels_of_a_file_of_their_own_count_or_are_refused(app: AppTest, tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("1\n2\n")
    asked(app, path=str(tmp_path / "question.npy"), label_path=str(tmp_path / "short.csv"))
    (error,) = app.error
    assert "has 2 labels, but there are 30 rows of embeddings" in error.value
    field = next(field for field in app.file_uploader if field.label.startswith("Labels of its rows"))
    field.upload("names.csv", b"label\n" + b"cat\ndog\nowl\n" * 10).run()
    asked(app, path=str(tmp_path / "question.npy"), label_path="")
    assert not app.exception
    assert not app.error
    rows = loaded_vectors.rows(app.session_state["vectors"])
    assert rows.labels is not None
    assert (rows.labels.tolist(), rows.classes) == ([0, 1, 2] * 10, ("cat", "dog", "owl"))
