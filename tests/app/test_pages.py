"""Every page, without a browser: with nothing, with a shipped run, with a damaged one."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from opened_page import opened, page_on
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.memory import write_npz
from contrastive_core.base.storage import ROOT, SHIPPED
from contrastive_core.engine import client
from contrastive_core.engine.jobs import Job
from contrastive_core.spaces.space import Space, path_of
from contrastive_lab import cache, forming_map, stage
from contrastive_lab.compare import overview

PAGES = ("home", "explore", "loss_lab", "train", "compare", "samples", "runs", "methods")
SHIPPED = sorted(p.parent.name for p in SHIPPED.glob("*/run.json"))


def text_of(app: AppTest) -> str:
    parts = [*app.title, *app.header, *app.subheader, *app.markdown, *app.info, *app.caption]
    bars = [bar.proto.text for bar in app.get("progress")]
    return " ".join([*(str(p.value) for p in [*parts, *app.warning]), *bars])


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_without_any_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrastive_core.runs.run.SHIPPED", Path("/nowhere"))
    app = page_on(page, monkeypatch)
    assert not app.exception
    assert text_of(app)


def test_while_a_run_is_prepared_explore_shows_the_map_that_train_showed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("just-trained", runs.load("simclr-digits").config)
    for part in ("weights.safetensors", "snapshots"):
        copy = shutil.copytree if part == "snapshots" else shutil.copyfile
        copy(runs.load("simclr-digits").path / part, run.path / part)
    run.set_status("done")
    projected: list[int] = []
    pca = forming_map.pca
    monkeypatch.setattr(forming_map, "pca", lambda *a, **k: projected.append(1) or pca(*a, **k))
    monkeypatch.setattr(Job, "start", lambda question, label="": None)  # it is not prepared meanwhile
    app = page_on("explore", monkeypatch, run="just-trained")
    assert not app.exception
    assert "the map of the Train page after epoch 40" in text_of(app)
    app.run()
    assert projected == [1] * len(run.snapshots())  # what was projected once is not projected again


def test_a_run_that_cannot_be_prepared_says_why_and_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("elsewhere", {"method": "simclr", "dataset": "folder:/nowhere"})
    run.weights.write_bytes(b"weights")
    started: list[str] = []
    monkeypatch.setattr(Job, "start", lambda job, **about: started.append(job.key))
    monkeypatch.setattr(Job, "failure", lambda job: "there is no folder /nowhere")
    app = page_on("explore", monkeypatch, run="elsewhere")
    app.run()
    assert not app.exception
    assert len(started) == 1
    assert any("there is no folder /nowhere" in w.value for w in app.warning)
    assert any(b.label == "Try again" for b in app.button)


@pytest.mark.parametrize(
    ("page", "name", "value", "said"),
    [
        ("methods", "run", "no*pe", r"There is no run no\*pe."),
        ("explore", "vectors", "0123456789abcdef", "The vectors in this link are no longer stored here"),
        ("loss_lab", "lesson", "99", "There is no lesson 99."),
        ("loss_lab", "loss", "foo", "There is no loss foo."),
    ],
)
def test_an_address_of_nothing_says_so_once(
    page: str, name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(page, monkeypatch, **{name: value})
    assert not app.exception
    (toast,) = app.toast
    assert said in toast.value
    assert not app.run().toast


def test_a_damaged_run_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("broken", {"method": "simclr", "dataset": "digits"})
    run.set_status("failed", reason="the disk is full")
    runs.create("worse", {"method": "simclr"}).path.joinpath("run.json").write_text("{")
    app = page_on("explore", monkeypatch, run="broken")
    assert not app.exception
    assert "the disk is full" in text_of(app)
    assert not page_on("runs", monkeypatch).exception


def test_two_data_sets_get_a_sentence_and_no_empty_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    digits, shapes = (next(n for n in SHIPPED if data in n) for data in ("digits", "shapes"))
    app = page_on("compare", monkeypatch)
    assert any("Tables" in group.options for group in app.segmented_control)
    app.multiselect[0].set_value([digits, shapes]).run()
    assert not app.exception
    assert "no samples in common" in text_of(app)
    assert not any("Tables" in group.options for group in app.segmented_control)
    next(b for b in app.button if b.label.startswith("Compare ")).click().run()  # A with one of its own data set
    assert not app.exception
    assert all(digits.split("-")[1] in name for name in app.multiselect[0].value)


def test_maps_are_drawn_while_scores_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedded runs without scores: their maps stand below what is being prepared."""
    drawn: list[int] = []
    monkeypatch.setattr(overview.scatter, "draw_scatter", lambda data, *_, **__: drawn.append(len(data.ids)))
    monkeypatch.setattr(cache, "scores", lambda run: None)
    app = page_on("compare", monkeypatch)
    assert not app.exception
    assert "Comparing" in text_of(app)
    assert len(drawn) == 1
    monkeypatch.setattr(cache, "embedding", lambda space: None)
    app.run()
    assert not app.exception
    assert len(drawn) == 1


def test_of_many_pictures_those_of_the_drawn_rows_are_sent() -> None:
    import io

    from PIL import Image

    from contrastive_lab import cache

    images = np.arange(12, dtype=np.uint8)[:, None, None, None].repeat(4, 2).repeat(4, 3) * 20
    rows = np.array([1, 4, 11], np.int64)
    sheet = cache._thumbnails("x", rows.tobytes(), images)
    pixels = np.asarray(Image.open(io.BytesIO(sheet.picture)))
    tile, across = sheet.tile, sheet.across
    middles = [pixels[i // across * tile + 5, i % across * tile + 5, 0] for i in range(3)]
    assert middles == [20, 80, 220]


def in_a_fresh_process(script: str) -> None:
    """Run a script to its end, with nothing imported before."""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_first_page_needs_no_torch_and_no_pandas() -> None:
    script = (
        "import sys; from streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file('app.py', default_timeout=60).run()\n"
        "assert not app.exception, app.exception\n"
        "heavy = {'torch', 'sklearn', 'umap', 'torchvision', 'pandas', 'pyarrow'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    in_a_fresh_process(script)


@pytest.mark.usefixtures("made_catalog")
def test_no_page_brings_torch_into_the_server() -> None:
    """Of a server's memory torch would be two thirds, and no closed tab gives it back."""
    script = (
        "import sys; from streamlit.testing.v1 import AppTest\n"
        "from contrastive_core.engine import process\n"
        "process.spawn = lambda *a, **k: None\n"
        "app = AppTest.from_file('app.py', default_timeout=90).run()\n"
        f"for page in {PAGES!r}:\n"
        "    app.switch_page(f'pages/{page}.py').run()\n"
        "    assert not app.exception, (page, app.exception)\n"
        "    heavy = {'torch', 'sklearn', 'umap', 'torchvision'} & set(sys.modules)\n"
        "    assert not heavy, (page, heavy)"
    )
    in_a_fresh_process(script)


def test_an_embedded_run_has_its_map_while_it_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = runs.load("simclr-digits")
    run = runs.create("embedded", shipped.config)
    shutil.copyfile(shipped.weights, run.weights)
    run.set_status("done")
    rows = Space.of_run(shipped).rows()
    assert rows is not None
    place = path_of(run, "test", "h")
    place.parent.mkdir(parents=True, exist_ok=True)
    write_npz(place, **rows.arrays())
    app = page_on("explore", monkeypatch, run="embedded")
    assert not app.exception
    assert any(e.proto.body for e in app.get("html"))
    assert "Scores (once)" in text_of(app).replace("\\", "")
    assert "UMAP map of " in text_of(app)
    assert [s.label for s in app.selectbox if s.label == "Color by"]


ASKED = {"compare": {"comparison"}, "train": {"contrastive_core.engine.client:resolved_settings", "views", "look"}}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_page_opens_on_a_shipped_run_and_nothing_is_computed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare asks the worker for its verdict, Train for its settings, views and a first look; all else came along."""
    begun: list[str] = []
    monkeypatch.setattr(client, "call", lambda function, *_: begun.append(function))
    monkeypatch.setattr(Job, "start", lambda job, label="": begun.append(job.kind or job.key))
    app = page_on("home", monkeypatch, run=name)
    for page in PAGES:
        app.query_params.clear()  # as the menu does
        app.switch_page(f"pages/{page}.py").run()
        assert not app.exception, page
        assert set(begun) == ASKED.get(page, set()), page
        begun.clear()


def test_styles_hold_no_sign_for_which_the_browser_part_leaves_them_out() -> None:
    """Streamlit's sanitizer drops a style whose text could begin a tag, and with it every rule of the page."""
    for page in PAGES:
        style = stage.style("dark", page).removeprefix("<style>").removesuffix("</style>")
        assert ".st-key-toolbar" in style
        assert not re.search("<[A-Za-z/!]", style)
