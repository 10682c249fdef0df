"""Import of a library's model on Runs: what would be fetched stands there before, with a tick."""

from pathlib import Path
from typing import Any

import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.storage import data_home
from contrastive_lab import state
from contrastive_lab.runs import import_form, table

ABOUT = {
    "pixels": 224,
    "host": "example.org",
    "source": "example.org (about 22 MB; license: cc-by-nc-4.0)",
    "encoder": "timm:vit",
    "weights": "timm:vit.a",
    "file": None,
}
REPORT: dict[str, Any] = {
    "kind": "an untrained model of timm",
    "encoder": "timm:vit",
    "matched": 3,
    "missing": [],
    "unlike": [],
    "unused": [],
    "method": "simclr",
    "head": {"head": "none"},
    "notes": ["random"],
    "of_library": True,
    "random": True,
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What the page asks the command line for."""
    asked: list[tuple[str, ...]] = []

    def preview(*arguments: str) -> dict[str, Any]:
        asked.append(("import", *arguments, "--dry-run"))
        return REPORT if "--random" in arguments else ABOUT

    monkeypatch.setattr(import_form, "preview_import", preview)
    monkeypatch.setattr(import_form, "begin", lambda name, words: asked.append((name, *words)))
    return asked


def form(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    app = opened("runs", monkeypatch, view="import", source="model")
    next(t for t in app.text_input if t.label == "Model").set_value("vit").run()
    assert not app.exception
    return app


def labeled(elements: Any, start: str) -> Any:
    """The one whose label begins so; of several the shortest."""
    return min((e for e in elements if e.label.startswith(start)), key=lambda e: len(e.label))


def test_it_is_fetched_only_with_a_tick(calls: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    app = form(monkeypatch)
    assert calls == [("import", "timm:vit", "--dry-run")]
    tick = labeled(app.checkbox, "Fetch")
    said = app.info[-1].value.replace("\\", "")
    assert said.endswith("Or fetch them from example.org (about 22 MB; license: cc-by-nc-4.0).")
    assert labeled(app.button, "Import").disabled
    tick.check().run()
    labeled(app.button, "Import").click().run()
    assert calls[-1] == ("vit", "timm:vit", "--fetch", "--dataset", "shapes")


@pytest.mark.parametrize("name", ["../mine", "/absolute", "simclr-shapes", ""])
def test_a_name_is_checked_before_it_is_a_path(
    name: str, calls: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Other folders than those of earlier uploads stay, and nothing is written outside of theirs."""
    others = [data_home() / "mine" / "run.json", tmp_path / "absolute" / "run.json"]
    for file in (*others, data_home() / "uploads" / "earlier" / "a.pt"):
        file.parent.mkdir(parents=True)
        file.touch()
    monkeypatch.setattr(import_form, "preview_import", lambda *words: {**REPORT, "file": "cat.pt", "of_library": False})
    app = opened("runs", monkeypatch, view="import")
    app.file_uploader[0].upload("cat.pt", b"tensors").run()
    typed = f"{tmp_path}{name}" if name.startswith("/") else name
    labeled(app.text_input, "Name of the run").set_value(typed).run()
    labeled(app.button, "Import").click().run()
    assert not app.exception
    files = sorted(path for path in (data_home() / "uploads").rglob("*") if path.is_file())
    assert all(file.exists() for file in others)
    if name:
        assert app.error[-1].value.startswith("Not imported.")
        assert [file.parent.name for file in files] == ["earlier"]
    else:
        assert [file.read_bytes() for file in files] == [b"tensors"]
        assert calls[-1] == ("cat", str(data_home() / "uploads" / "cat" / "cat.pt"), "--dataset", "shapes")


def test_random_weights_and_another_size(calls: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    app = form(monkeypatch)
    labeled(app.checkbox, "Random weights").check().run()
    labeled(app.number_input, "Image size").set_value(96).run()
    chosen = ("timm:vit", "--pixels", "96", "--random")
    assert calls[-1] == ("import", *chosen, "--dry-run")
    heads = [h.value.replace("\\", "") for h in app.header]
    assert heads[-1:] == ["an untrained model of timm, timm:vit"]
    labeled(app.button, "Import").click().run()
    assert calls[-1] == ("vit-random", *chosen, "--dataset", "shapes")


def test_what_was_not_trained_here_is_marked() -> None:
    config = {"method": "simclr", "dataset": "digits", "epochs": 1}
    marks = {"a": None, "b": {"kind": "MoCo"}, "c": {"kind": "x", "random": True}}
    for name, imported in marks.items():
        more = {"imported": imported} if imported else {}
        runs.create(name, config, **more).set_status("done")
    rows = {name: table.row(runs.load(name)) for name in marks}
    assert [r["trained"] for r in rows.values()] == ["here", "not trained here", "no, random weights"]
    assert [r["epochs"] for r in rows.values()] == [1, None, None]
    labels = [state._label(runs.load(name)) for name in marks]
    assert labels == ["a", "b · not trained here", "c · random weights"]


class Place:
    """A selectbox in which `typed` stands, or its first option."""

    def __init__(self, typed: str | None) -> None:
        self.typed, self.options = typed, [""]

    def selectbox(self, label: str, options: list[str], **more: Any) -> str:
        self.options = options
        return self.typed or options[0]


@pytest.mark.parametrize(
    ("typed", "asked"),
    [(None, "folder:/my/pets"), ("/my/cats", "folder:/my/cats"), ("~/l.csv", "csv:~/l.csv"), ("digits", "digits")],
)
def test_my_own_images_come_first_and_a_path_is_enough(typed: str | None, asked: str) -> None:
    runs.create("mine", {"method": "simclr", "dataset": "folder:/my/pets"}).set_status("done")
    place = Place(typed)
    assert import_form.judged_on(place) == asked
    assert place.options[:2] == ["folder:/my/pets", "shapes"]
