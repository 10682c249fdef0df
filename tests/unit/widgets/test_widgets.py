"""The widgets in Python: what they take, what they say, what is read and set; a part's modules as one, of which nothing
is left to be fetched."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import traitlets
from cases import cases

from contrastive_core.base.storage import ROOT
from contrastive_lab.components.shared import mount as made
from contrastive_lab.widgets import circle, loss_view, scatter

rng = np.random.default_rng(0)
Z = rng.standard_normal((24, 8)).astype(np.float32)
Y = np.arange(24) % 3


def reports(widget: Any, **said: Any) -> None:
    """What the browser sends when something was let go."""
    widget.reported = {"name": "chosen", "value": {"turn": reports.turn, **said}}
    reports.turn += 1


reports.turn = 0


def test_no_streamlit_and_no_connection() -> None:
    """Imported and made, in a process that may not open a connection."""
    code = """
import sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"{event} {arguments}")
sys.addaudithook(refuse)
from contrastive_lab.widgets import circle, loss_view, scatter
z = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
loss_view(z, labels=[0, 0, 1, 1], loss="sup_con"), circle(), scatter(z)
print(*(m for m in sys.modules if m.split(".")[0] == "streamlit"))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_tensors_lists_and_arrays_are_one() -> None:
    tensor = torch.from_numpy(Z).requires_grad_()
    views = [loss_view(z, labels=Y, loss="sup_con") for z in (Z, tensor, Z.tolist())]
    assert len({v.data for v in views}) == 1
    named = loss_view(Z, labels=np.array(["a<b", "b", "c"])[Y], loss="sup_con")
    assert b"image 1 (a<b)" in named.data
    half = loss_view(torch.from_numpy(Z).bfloat16(), labels=list(Y), loss="sup_con")
    assert half.temperature == views[0].temperature


def test_what_is_let_go_is_read_and_what_is_set_is_sent() -> None:
    view = loss_view(Z, labels=Y, loss="sup_con", temperature=0.2)
    assert (view.temperature, view.margin, view.anchor) == (0.2, None, 0)
    first = view.data
    reports(view, value=0.7, anchor=5)
    assert (view.temperature, view.anchor) == (0.7, 5)
    assert view.data == first  # the browser drew it already
    view.temperature = 0.3
    assert view.data != first
    assert b'"temperature": 0.3' in view.data
    assert view.knobs["temperature"] == 0.3
    second = view.data
    view.anchor = 2
    assert b'"anchor": 2' in view.data
    assert view.data != second


@cases("value", ["0.5", None, float("nan"), float("inf"), True, [1]])
def test_reports_that_make_no_sense_change_nothing(value: Any) -> None:
    view = loss_view(Z, labels=Y, loss="sup_con", temperature=0.2)
    if value is True:  # a number in Python's eyes, within the limits
        return
    reports(view, value=value, anchor="first")
    assert (view.temperature, view.anchor) == (0.2, 0)


def test_views_are_positives_without_labels() -> None:
    view = loss_view(Z.reshape(12, 2, 8), loss="nt_xent")
    assert b"image 1, view a" in view.data
    assert b"image 12, view b" in view.data


@cases(
    ("make", "sentence"),
    [
        (lambda: loss_view(Z), "these rows have no positives: give labels"),
        (lambda: loss_view(Z, labels=Y[1:]), r"labels must be \(24,\), one for each row"),
        (lambda: loss_view(Z, labels=Y + 0.5), "labels must be whole numbers"),
        (lambda: loss_view(Z, labels=Y, classes=["a"]), "labels go up to 2, but there are 1"),
        (lambda: loss_view(Z[:1], labels=Y[:1]), "needs at least 2 rows; got 1"),
        (lambda: loss_view(np.where(Z > 1.5, np.nan, Z), labels=Y), "hold values that are not fin"),
        (lambda: loss_view(np.full((4, 2), 1e300), labels=[0, 0, 1, 1]), "4 of the 4 rows of z"),
        (lambda: loss_view([[1.0], [1.0, 2.0]], labels=[0, 0]), "not equally long"),
        (lambda: loss_view(["a", "b"], labels=[0, 0]), "z must be numbers"),
        (lambda: loss_view(np.ones((4, 0)), labels=[0] * 4), "no columns"),
        (lambda: loss_view(np.ones((2000, 2)), labels=[0] * 2000), "at most 1,024 rows"),
        (lambda: loss_view(Z, labels=Y, loss="nothing"), "unknown loss 'nothing'"),
        (lambda: loss_view(Z, labels=Y, loss="sup_con", margin=1), "no setting 'margin'"),
        (lambda: loss_view(Z, labels=Y, images=np.ones((3, 2))), "images must be"),
        (lambda: loss_view(Z, labels=Y, anchor=24), "anchor must be from 0 to 23"),
        (lambda: circle("triplet", points=1000), "points must be from 2 to 400"),
        (lambda: circle("nce"), "the browser cannot move points under NCE"),
        (lambda: scatter(Z, ids=["a"]), "ids must be 24"),
        (lambda: scatter(Z, color=["red"] * 24), "color must be"),
        (lambda: scatter(Z.reshape(12, 2, 8)), "a map has one row each"),
        (lambda: scatter(np.zeros((1_000_001, 2))), "at most 1,000,000 rows"),
        (lambda: scatter(np.zeros((50_001, 2)), images=np.zeros((50_001, 1, 1), np.uint8)), "at most 50,000 images"),
    ],
)
def test_bad_input_has_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises((ValueError, traitlets.TraitError), match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_values_out_of_range_are_refused_and_nothing_changes() -> None:
    view, ring, points = loss_view(Z, labels=Y, loss="sup_con"), circle("triplet"), scatter(Z)
    for widget, name, value in (
        (view, "temperature", 99),
        (view, "temperature", float("nan")),
        (view, "margin", 0.1),
        (ring, "margin", -1),
        (ring, "temperature", 0.1),
        (points, "selection", [24]),
    ):
        before = getattr(widget, name)
        with pytest.raises(traitlets.TraitError):
            setattr(widget, name, value)
        assert getattr(widget, name) == before


def test_a_selection_is_read_and_set() -> None:
    points = scatter(Z, labels=Y)
    reports(points, rows=[3, 1])
    assert points.selection == [3, 1]
    reports(points, bits="BQAB")
    assert points.selection == [0, 2, 16]
    points.selection = [7]
    assert b'"selection": {"rows": [7]}' in points.data


def test_a_large_selection_travels_packed() -> None:
    points = scatter(np.random.default_rng(0).normal(size=(50_000, 2)))
    small = len(points.data)
    points.selection = list(range(0, 50_000, 2))
    assert len(points.data) - small < 10_000  # a bit for each row, as base64
    assert not [k for k, v in points.get_state().items() if isinstance(v, list)]
    with pytest.raises(traitlets.TraitError, match="rows are 0 to 49999; got 50000"):
        points.selection = [0, 50_000]
    with pytest.raises(traitlets.TraitError, match="whole numbers"):
        points.selection = [0.5]


# --- bundles ---


OWN_ENTRIES = ("main.js", "notebook.js", "file.js", "worker.js")
ENTRIES = sorted(
    str(path.relative_to(made.COMPONENTS))
    for name in OWN_ENTRIES[:2]
    for path in made.COMPONENTS.rglob(name)
    if path.parent.name != "shared"
)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(made, "COMPONENTS", tmp_path.resolve())
    made.bundle.cache_clear()
    yield tmp_path.resolve()
    made.bundle.cache_clear()


@cases("entry", ENTRIES)
def test_a_bundle_asks_for_nothing(entry: str) -> None:
    text = made.bundle(entry)
    assert not re.search(r"^\s*import\b|^export (?!default)|\bimport\(|\bimport\.meta", text, re.M)
    assert text.count("export default") == 1
    for path in (made.COMPONENTS / entry).parent.glob("*.js"):
        if path.name not in OWN_ENTRIES:
            assert path.read_text().splitlines()[0] in text  # each module stands in it, once
            assert text.count(path.read_text().splitlines()[0]) == 1


def test_names_of_modules_do_not_meet(parts: Path) -> None:
    (parts / "a.js").write_text('import { x as y } from "./b.js";\n\nconst x = 1;\n\nexport default x + y;\n')
    (parts / "b.js").write_text("export const x = 2;\n")
    text = made.bundle("a.js")
    assert "const { x: y } = $module0;" in text
    assert "const $default = x + y;" in text
    assert text.rstrip().endswith("export default $module1.default;")


@cases(
    "line",
    [
        'import * as b from "./b.js";',
        'import "./b.js";',
        'export { x } from "./b.js";',
        "export let y = 1;",
        "export class C {}",
        "export default class {}",
        'const b = await import("./b.js");',
        "const here = import.meta.url;",
        'import { missing } from "./b.js";',
        'import { z } from "./b.js";',
    ],
)
def test_other_forms_are_refused(parts: Path, line: str) -> None:
    (parts / "a.js").write_text(f"{line}\n\nexport default 1;\n")
    (parts / "b.js").write_text("export const x = 2,\n  z = 3;\n")
    with pytest.raises(ValueError, match=r"cannot be bundled|does not export"):
        made.bundle("a.js")


def test_a_circle_of_imports_is_refused(parts: Path) -> None:
    (parts / "a.js").write_text('import { b } from "./b.js";\n\nexport const a = b;\n')
    (parts / "b.js").write_text('import { a } from "./a.js";\n\nexport const b = a;\n')
    with pytest.raises(ValueError, match="imports itself"):
        made.bundle("a.js")
