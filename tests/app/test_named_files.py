"""Pages opened on a file that the command line named: the address has its id, not its path."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from opened_page import field, page_at, press, queued, revisit

from contrastive_core import runs
from contrastive_core.base.score import Score
from contrastive_core.data.folder_selection import values_of
from contrastive_core.engine import jobs
from contrastive_core.engine.jobs import Job
from contrastive_core.spaces import results
from contrastive_core.spaces.results import Result
from contrastive_lab import path_input
from contrastive_lab.samples import retrain

LOOK = {
    "ids": [],
    "labels": [],
    "classes": [],
    "side": 0,
    "left_out": [],
    "n_left_out": 0,
    "sizes": [],
    "remarks": [],
    "same": [],
    "same_counts": {},
    "channels": 0,
    "compared": 9000,
    "captions": [0, 0, 0],
    "caption_problem": "",
}  # at a folder without faults


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "my images"
    place.mkdir()
    return place


def test_a_link_has_the_folder_by_its_id(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = path_input.remember(folder)
    app = page_at("train", monkeypatch, data="folder", folder=identity)
    assert not app.exception
    assert app.selectbox(key="train-data").value.startswith("folder of images")
    assert app.text_input(key="path-folder").value == str(folder)
    app.text_input(key="path-folder").set_value("/another").run()
    assert app.text_input(key="path-folder").value == "/another"


def test_what_was_typed_outlasts_a_visit_of_another_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="folder")
    app.text_input(key="path-folder").set_value(str(folder)).run()
    for epochs in (3, 7, 5):
        app.number_input(key="train-epochs").set_value(epochs).run()
    revisit(app, "train")
    assert app.text_input(key="path-folder").value == str(folder)
    assert app.number_input(key="train-epochs").value == 5


@pytest.mark.parametrize("dataset", ["folder:{}", "csv:{}/list.csv#kind", "shapes"])
def test_links_choose_a_runs_data_on_train(dataset: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, links = runs.create("weak", {"method": "simclr", "dataset": dataset.format(folder), "epochs": 5}), []
    scores = {"h": Score("kNN", "", 0.31, (0.28, 0.34)), "raw": Score("kNN", "", 0.43, (0.4, 0.46))}
    record = SimpleNamespace(n_test=90, score=lambda source, _name: scores[source])
    with monkeypatch.context() as bare:
        bare.setattr(retrain.cache, "scores", lambda _run: record)
        row = SimpleNamespace(page_link=lambda _page, query_params, **_: links.append(query_params))
        bare.setattr(retrain.st, "container", lambda **_: row)
        retrain.show_encoder(run, retrain.st)
    assert [(a.get("epochs"), a.get("encoder")) for a in links] == [("20", None), (None, "other")]
    app = page_at("train", monkeypatch, **links[0])
    assert not app.exception
    if dataset == "shapes":
        assert app.selectbox(key="train-data").value == "shapes"
    else:
        assert app.text_input(key="path-folder").value == dataset.format(folder).partition(":")[2]


@pytest.mark.parametrize("asked", ["/etc", "../..", "A" * 22])
def test_an_address_alone_opens_no_path(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="folder", folder=asked)
    assert app.text_input(key="path-folder").value == ""
    app = page_at("runs", monkeypatch, view="import", file=asked)
    assert app.text_input(key="path-file").value == ""


def test_train_shows_what_the_folder_holds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meta = {
        "ids": ["a/1.png"],
        "labels": [0],
        "classes": ["a"],
        "counts": [[4, 1]],
        "left_out": [["b.png", "a link"]],
        "n_left_out": 1,
        "same": [],
    }
    images = np.zeros((1, 3, 8, 8), np.uint8)
    results.write("folder", values_of(str(folder)), Result(LOOK | meta, {"images": images}))
    app = page_at("train", monkeypatch, data="folder", folder=path_input.remember(folder))
    assert not app.exception
    shown = " ".join(m.value.replace("\\", "") for m in app.markdown)
    assert "5 images · 1 class · 4 train, 1 test · 1 left out: b.png" in shown


def test_why_a_folder_is_of_no_use_is_said_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In red, where the training would be started; the way to try again stands beside."""
    (folder / "a").mkdir()
    why = f"{folder} has no images for train. It needs one folder per class"
    task = jobs.analysis("folder", values_of(str(folder)))
    failure = Job.failure
    monkeypatch.setattr(Job, "failure", lambda asked: why if asked.key == task.key else failure(asked))
    monkeypatch.setattr(Job, "start", lambda asked, label="": None)  # a worker may still be at it below
    app = page_at("train", monkeypatch, data="folder", folder=path_input.remember(folder))
    app.run()
    assert not app.exception
    said = [one.value.replace("\\", "") for one in (*app.error, *app.warning)]
    assert [one for one in said if "has no images" in one] == [f"{why}."]
    assert "Try again" in [b.label for b in app.button]


def test_the_size_of_a_folders_images_reaches_the_training(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meta = {"counts": [[1500, 500]]}
    images = np.zeros((0, 3, 96, 96), np.uint8)
    results.write("folder", values_of(str(folder)), Result(LOOK | meta, {"images": images}))
    app = page_at("train", monkeypatch, data="folder", folder=path_input.remember(folder))
    started = queued(monkeypatch)
    press(app, "Start")
    app.button(key="new-run").click().run()
    field(app, "Image size in pixels").set_value(128)
    field(app, "Resize").set_value("pad")
    press(app, "Start")
    assert not app.exception
    app.button(key="new-run").click().run()
    assert "--image-size" not in started[0]  # the encoder's
    at = started[1].index("--image-size")
    assert started[1][at + 1] == "128"
    assert started[1][started[1].index("--resize") + 1] == "pad"


def test_a_list_of_images_names_the_column_of_its_classes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "list.csv").write_text("file,label,kind\na.png,x,y\n")
    app = page_at("train", monkeypatch, data="folder", folder=path_input.remember(folder / "list.csv"))
    meta = {"counts": [[4, 1]]}
    for name in ("list.csv", "list.csv#kind"):
        images = np.zeros((0, 3, 8, 8), np.uint8)
        results.write("folder", values_of(str(folder / name)), Result(LOOK | meta, {"images": images}))
    started = queued(monkeypatch)
    for column, ending in (("kind", "#kind"), ("label", "")):
        app.selectbox(key="train-label-column").set_value(column).run()
        press(app, "Start")
        assert not app.exception
        app.button(key="new-run").click().run()
        words = started[-1]
        assert words[words.index("--dataset") + 1] == f"csv:{folder / 'list.csv'}{ending}"


def test_the_import_view_looks_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "contrastive_lab.runs.import_form.preview_import",
        lambda *a, **k: asked.append(a[0]) or (_ for _ in ()).throw(ValueError("no checkpoint")),
    )
    path = tmp_path / "größe 1.pth"
    app = page_at("runs", monkeypatch, view="import", file=path_input.remember(path))
    assert asked == [str(path)]
    assert "no checkpoint" in app.error[0].value
