"""Pages on a recording: each shows what it has, and says what a recording does not hold."""

import re

import pytest
import torch
from opened_page import page_on
from test_pages import text_of

from contrastive_core import losses, pairs, runs, watch
from contrastive_core.cli.main import main
from contrastive_core.engine import queue, run_folders, training
from contrastive_core.engine.run_folders import damage
from contrastive_core.runs.records import CHECK_FILE
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import recorded_rows
from contrastive_core.spaces.space import Space
from contrastive_lab import recordings
from contrastive_lab.desktop import command
from contrastive_lab.explore import space_map
from contrastive_lab.runs import table

PAGES = ("home", "explore", "loss_lab", "compare", "samples", "runs", "train", "methods")


def make(name: str = "watched", steps: int = 3, probe: bool = True, queue: bool = False, **how):
    """A recording of a few steps, the probe set after each."""
    generator = torch.Generator().manual_seed(0)
    w = watch(name, loss="nt_xent", temperature=0.2, every=1, strict=True, **how)
    x, y = torch.randn(40, 6, generator=generator), torch.arange(40) % 4
    for step in range(steps):
        z = torch.randn(16, 2, 6, generator=generator)
        rows = (z[:, 0], z[:, 1]) if queue else (z,)
        keys = torch.randn(50, 6, generator=generator) if queue else None
        w._recorder.wait()  # so that none is dropped, however slow the machine
        w.step(*rows, labels=torch.arange(16) % 4, ids=torch.arange(16), queue=keys)
        if probe:
            w.probe(lambda x, step=step: x + step * torch.eye(4, 6)[y], [(x, y, torch.arange(40))])
    return w


@pytest.fixture
def closed() -> str:
    make().close()
    return "watched"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_on_a_recording(page: str, closed: str, monkeypatch) -> None:
    app = page_on(page, monkeypatch, run=closed)
    assert not app.exception
    assert not app.error
    if page in ("explore", "loss_lab", "samples"):
        assert "no weights" in text_of(app)


def test_every_page_opens_on_one_that_has_no_rows_yet(monkeypatch) -> None:
    with watch("empty", loss="nt_xent"):
        for page in PAGES:
            app = page_on(page, monkeypatch, run="empty")
            assert not app.exception, page
            assert not app.error, page


@pytest.mark.parametrize("page", ["explore", "runs"])
def test_a_fault_of_the_loop_is_shown(page: str, monkeypatch, tmp_path) -> None:
    ids = torch.tensor([0, 0, 1, 2])
    with watch("faulty", loss="nt_xent", temperature=0.5, every=1, strict=True) as w:
        for _ in range(3):
            z = torch.randn(4, 2, 6, requires_grad=True)
            loss = losses.create("nt_xent", temperature=0.5)(pairs.from_views(z)).value
            w.step(z, ids=ids, caller_loss=loss)
            w._recorder.wait()
    app = page_on(page, monkeypatch, run="faulty")
    assert "negatives of each other" in text_of(app)
    assert "Found in 3 of 3 checked steps" in text_of(app)
    report = tmp_path / "report.html"
    assert main(["report", "faulty", "--out", str(report), "--device", "cpu"]) == 0
    assert "negatives of each other" in report.read_text()
    (w.run.path / CHECK_FILE).write_text("[]")
    assert "doctor.json" in str(damage(w.run))
    app = page_on(page, monkeypatch, run="faulty")
    assert not app.exception
    assert not app.error


def test_two_recordings_are_drawn_in_one_picture(monkeypatch) -> None:
    for name in ("first", "second"):
        make(name, probe=False).close()
    both = [runs.load(name) for name in ("first", "second")]
    monkeypatch.setattr(table, "table", lambda *_: (both, both))
    app = page_on("runs", monkeypatch)
    assert not app.exception
    assert "Both recordings state the same settings" in text_of(app)
    drawn = "".join(str(chart.proto) for chart in app.get("plotly_chart"))
    assert "first: recorded" in drawn
    assert "second: recorded" in drawn


@pytest.mark.parametrize("page", ["explore", "runs"])
def test_a_loop_that_has_turned_says_so(page: str, monkeypatch, caplog, tmp_path) -> None:
    generator, y = torch.Generator().manual_seed(0), torch.arange(200) % 4
    with watch("turned", loss="nt_xent", every=1, strict=True) as w:
        for step in range(40):
            spread = 0.3 if step < 20 else 3.0
            x = torch.eye(4)[y] + spread * torch.randn(200, 4, generator=generator)
            w.step(torch.randn(8, 2, 4, generator=generator))
            w.probe(lambda x: x, [(x, y, torch.arange(200))])
            w._recorder.wait()
    assert caplog.text.count("has fallen significantly") == 1
    app = page_on(page, monkeypatch, run="turned")
    [sentence] = [warning.value for warning in app.warning if "has fallen significantly" in warning.value]
    assert 2 <= int(re.search(r"kNN of the probe set was best at step (\d+)", sentence)[1]) <= 20
    report = tmp_path / "report.html"
    assert main(["report", "turned", "--out", str(report), "--device", "cpu"]) == 0
    assert re.search(r"kNN of the probe set was best at step \d+ \([\d.]+ %\) and has fallen", report.read_text())


def test_explore_shows_any_step(closed: str, monkeypatch) -> None:
    app = page_on("explore", monkeypatch, run=closed)
    slider = app.select_slider[0]
    assert list(slider.options) == ["1", "2", "3", "newest"]
    for step in ("1", "2", "3"):
        slider = app.select_slider[0].set_value(step).run().select_slider[0]
        assert slider.value == step
        assert not app.exception
    app.segmented_control[0].set_value("step").run()
    assert not app.exception
    app.toggle[0].set_value(True).run()
    assert not app.exception
    assert {"Loss", "RankMe"} <= {m.label for m in app.metric}


def test_the_loss_lab_takes_rows_of_a_step(closed: str, monkeypatch) -> None:
    app = page_on("loss_lab", monkeypatch, run=closed)
    for step in ("1", "2", "3"):
        app.select_slider[0].set_value(step).run()
        assert not app.exception
        assert app.select_slider[0].value == step
        assert not app.warning
    for source in ("snapshot:1", "snapshot:3"):
        next(s for s in app.selectbox if s.label == "Vectors from").set_value(source).run()
        assert not app.exception
        assert not app.warning


def test_the_loss_lab_takes_the_queue(monkeypatch) -> None:
    make("moco", queue=True, probe=False).close()
    app = page_on("loss_lab", monkeypatch, run="moco")
    assert next(s for s in app.selectbox if s.label == "Positives are").value == "queue"
    assert not app.exception
    assert not app.warning
    assert "keys were recorded with this step" in text_of(app)


def test_a_growing_recording_is_followed(monkeypatch) -> None:
    with make("grows") as w:
        w._recorder.wait()
        assert command.prepare(command.recognize("grows")) == "/explore?run=grows"
        for page in ("explore", "runs"):
            app = page_on(page, monkeypatch, run="grows")
            assert not app.exception
            assert "growing" in text_of(app)
        assert training.working() == []  # nothing of ours, and nothing that waits for it
        with pytest.raises(ValueError, match="is a recording"):
            training.stop("grows")
        with pytest.raises(ValueError, match="is running"):
            run_folders.delete("grows")


def test_rows_that_come_while_the_page_is_drawn_are_not_missed(monkeypatch) -> None:
    with make("grows") as w:
        w._recorder.wait()
        before, draw, drawn = recorded_rows.kinds_of(runs.load("grows")), space_map.draw, []

        def draw_slowly(*args):
            w.step(torch.randn(16, 2, 6), labels=torch.arange(16) % 4, ids=torch.arange(16))
            w._recorder.wait()
            return draw(*args)

        monkeypatch.setattr(space_map, "draw", draw_slowly)
        monkeypatch.setattr(recordings, "follow", lambda _name, kinds: drawn.append(kinds))
        assert not page_on("explore", monkeypatch, run="grows").exception
        assert drawn == [before]  # which the next look compares with what is there then
        assert recorded_rows.kinds_of(runs.load("grows")) != before


def test_what_a_recording_refuses(closed: str) -> None:
    with pytest.raises(ValueError, match="continue its training where you started it"):
        queue.resume(closed)
    with pytest.raises(ValueError, match="no weights"):
        runs.load(closed).weights_hash()
    assert not damage(runs.load(closed))
    assert run_folders.rename(closed, "renamed").is_recording


def test_rows_are_named_and_stay_the_same(closed: str) -> None:
    space = Space.of_name(closed)
    assert space.name == "recording:watched@probe-3"
    assert space.title == "watched, probe set at step 3"
    rows = space.rows()
    assert rows is not None
    assert rows.ids == tuple(map(str, range(40)))
    step = Space.of_name("recording:watched@step-2").rows()
    assert step is not None
    assert len(step) == 32
    for wrong in ("recording:watched", "recording:watched@probe-9", "recording:nobody@step-1"):
        with pytest.raises(ValueError):  # noqa: PT011
            Space.of_name(wrong).rows()
    assert request_of(space.name, "train", "nt_xent").split == ""
    assert recorded_rows.newest(runs.load(closed)).kind == recorded_rows.PROBE


def test_ids_of_a_data_set_bring_its_images() -> None:
    from contrastive_core.data import datasets

    data = datasets.load("digits", "train")
    with watch("digits", loss="nt_xent", every=1, dataset="digits", strict=True) as w:
        w.step(torch.randn(8, 2, 4), ids=torch.arange(8))
    space = Space.of_name("digits")
    rows, images = space.rows(), space.images()
    assert rows is not None
    assert images is not None
    assert rows.ids[::2] == tuple(data.ids[:8])
    assert (images[0] == data.images[0]).all()
