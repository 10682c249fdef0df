"""The same parts in three hosts: the app, a notebook of a real Jupyter server, and a file."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from notebooks import jupyter, open_notebook, outputs, run_all, write_notebook

from benchmarks import browser as real
from contrastive_core import runs
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest

pytestmark = pytest.mark.skipif(find_spec("jupyterlab") is None, reason="jupyterlab is not installed")

SCRIPT = Path(__file__).with_name("hosts_script.py")
RUN, OTHER = "sup_con-digits", "simclr-digits"
WITHIN = 1e-6
PATIENCE = 120_000  # milliseconds that a notebook may take to open, on a busy machine
FIND = """(name) => {
  const look = (node) => {
    if (node[name]) return node[name];
    for (const child of [...(node.children ?? []), ...(node.shadowRoot ? [node.shadowRoot] : [])]) {
      const state = look(child);
      if (state) return state;
    }
    return null;
  };
  return look(document.body);
}"""
TURN = f"""(position) => new Promise((done) => {{
  const lab = ({FIND})("_lab");
  lab.slider.value = position;
  lab.slider.dispatchEvent(new Event("input"));
  lab.slider.dispatchEvent(new Event("change"));
  requestAnimationFrame(() => requestAnimationFrame(() => done()));
}})"""
FIGURES = f"""() => {{
  const {{ out, value }} = ({FIND})("_lab"), list = (a) => Array.from(a);
  return {{ temperature: value, value: out.value, loss: list(out.loss), pair: list(out.pair),
           grad: list(out.grad), effective: list(out.effective) }};
}}"""
CELLS = [
    "import numpy as np\nfrom contrastive_lab.widgets import circle, loss_view, scatter\n"
    "given = np.load('rows.npz')\nz, y = given['z'], given['labels']",
    "view = loss_view(z, labels=y, loss='sup_con', classes=['<b>zero</b>', *'123456789'])\nview",
    "ring = circle('triplet')\nring",
    "points = scatter(z[:, 0], y)\npoints",
    "print(round(view.temperature, 6), view.anchor, points.selection)",
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows of a shipped run, those that its report shows."""
    folder = tmp_path_factory.mktemp("notebooks")
    batch = load_batch(runs.load(RUN), BatchRequest("z", 32, 2, 0))
    np.savez(folder / "rows.npz", z=batch.rows, labels=batch.labels)
    return folder


@pytest.fixture(scope="module")
def notebook(browser: Any, rows: Path, tmp_path_factory: Any) -> Iterator[Any]:
    """A page with a notebook of which all cells have been run, and the addresses it asked for."""
    write_notebook(rows / "lab.ipynb", CELLS)
    with jupyter(tmp_path_factory.mktemp("jupyter"), rows) as address:
        context = browser.new_context(viewport={"width": 1280, "height": 2600})
        page, asked = context.new_page(), []
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        open_notebook(page, address, "lab.ipynb")
        run_all(page)
        page.wait_for_function(f"() => ({FIND})('_map')?.xy && ({FIND})('_lab')?.out")
        yield page, asked
        context.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two shipped runs, as the command writes it."""
    home = tmp_path_factory.mktemp("report")
    out = home / "report.html"
    done = subprocess.run(
        [sys.executable, "-m", "contrastive_core", "report", RUN, OTHER, "--out", str(out)],
        cwd=real.ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "CONTRASTIVE_LAB_HOME": f"{home}/home"},
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    """The report on a phone without a connection; what it asks for, and what goes wrong."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True, offline=True)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(f"error {error}"))
    page.on("console", lambda said: said.type == "error" and asked.append(said.text))
    page.goto(f"file://{report}")
    page.wait_for_function(f"() => ({FIND})('_lab')?.out && ({FIND})('_map')?.sprite")
    yield page, asked
    context.close()


def figures(page: Any, position: int) -> dict[str, np.ndarray]:
    page.evaluate(TURN, position)
    return {name: np.array(value) for name, value in page.evaluate(FIGURES).items()}


def again(page: Any) -> str:
    """What the last cell prints when it is run again."""
    page.evaluate(
        """async () => {
          const book = jupyterapp.shell.currentWidget.content;
          book.activeCellIndex = book.widgets.length - 1;
          await jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )
    return outputs(page)[-1].strip()


def test_all_hosts_give_the_same_figures(
    page: Any, serve: Callable[..., str], notebook: Any, opened: Any, rows: Path
) -> None:
    """At three values of τ, to 1e-6, every loss, weight and gradient."""
    page.goto(serve(SCRIPT, str(rows / "rows.npz")))
    page.wait_for_function(f"() => ({FIND})('_lab')?.out")
    for position in (333, 120, 800):
        in_app = figures(page, position)
        assert in_app["value"] > 0
        for host in (notebook[0], opened[0]):
            there = figures(host, position)
            for name, wanted in in_app.items():
                np.testing.assert_allclose(there[name], wanted, WITHIN, WITHIN, err_msg=name)


def test_a_notebook_reads_and_sets_what_is_chosen(notebook: Any) -> None:
    page, _ = notebook
    assert "<b>zero</b>" in page.locator(".lab .barside h2:visible").first.inner_text()  # text, not HTML
    state = figures(page, 500)
    assert again(page) == f"{json.dumps(round(float(state['temperature']), 6))} 0 []"
    page.locator(".matrix").click(position={"x": 160, "y": 160})
    anchor = page.evaluate(f"() => ({FIND})('_lab').anchor")
    assert anchor > 0
    page.locator(".map canvas").first.focus()
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    chosen = page.evaluate(f"() => ({FIND})('_map').picked")
    assert len(chosen) == 1
    assert again(page).endswith(f" {anchor} {chosen}")
    page.evaluate(
        """async () => {
          const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
          await kernel.requestExecute(
            { code: 'view.temperature = 0.25; points.selection = [4, 2]; ring.margin = 0.5' }).done;
        }"""
    )
    page.wait_for_function(
        f"""() => ({FIND})('_lab').kernel.temperature === 0.25
          && ({FIND})('_ring').kernel.margin === 0.5
          && String(({FIND})('_map').picked) === '4,2'"""
    )


def test_a_notebook_asks_nobody_but_its_server(notebook: Any) -> None:
    _, asked = notebook
    assert len(asked) > 20
    assert [url for url in asked if not real.is_local(url)] == []


def test_a_theme_of_the_notebook_is_followed(notebook: Any) -> None:
    page, _ = notebook
    paper = f"() => ({FIND})('_lab').paper"
    light = page.evaluate(paper)
    change = "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })"
    page.evaluate(change, "JupyterLab Dark")
    page.wait_for_function(f"(light) => ({FIND})('_lab').paper !== light", arg=light)
    page.wait_for_function(f"() => ({FIND})('_lab').matrix.width > 0 && ({FIND})('_ring').canvas.width > 0")
    page.evaluate(change, "JupyterLab Light")
    page.wait_for_function(f"(light) => ({FIND})('_lab').paper === light", arg=light)


def test_a_report_opens_on_a_phone_without_a_connection(opened: Any, report: Path) -> None:
    page, asked = opened
    assert asked == [f"file://{report}"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    text = page.locator("main").inner_text()
    for words in ("360 samples that all share", "98.9 %", "97.2 to 99.6", "batch size"):
        assert words in text
    before = page.locator(".loss").first.inner_text()
    page.locator(".knob input").first.evaluate("e => { e.value = 100; e.dispatchEvent(new Event('input')); }")
    page.wait_for_function("(before) => document.querySelector('.loss').textContent !== before", arg=before)
    pictures = "() => [...document.querySelectorAll('[data-part=scatter] > div')].map((d) => d._map)"
    page.wait_for_function(f"() => ({pictures})().every((map) => map.sprite?.width > 32)")
    assert page.evaluate(f"() => new Set(({pictures})().map((map) => map.sprite.width)).size") == 1


def test_a_report_is_dark_on_white_on_paper(browser: Any, report: Path) -> None:
    context = browser.new_context(color_scheme="dark", offline=True)
    page = context.new_page()
    page.goto(f"file://{report}")
    page.wait_for_function(f"() => ({FIND})('_lab')?.out")
    ink = f"() => ({FIND})('_lab').ink"
    assert page.evaluate(ink) == "rgb(232, 234, 237)"
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(ink) == "rgb(31, 35, 40)"
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == ("rgb(255, 255, 255)")
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(ink) == "rgb(232, 234, 237)"
    assert page.pdf(format="A4")[:5] == b"%PDF-"
    context.close()
