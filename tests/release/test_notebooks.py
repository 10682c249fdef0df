"""The notebooks of the documentation run from top to bottom and are stored without outputs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from contrastive_core.base.storage import ROOT

pytest.importorskip("anywidget", reason="the extra `notebook` is not installed")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
RESULTS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "losses_on_a_batch": lambda names: names["shares"][0.02] > 2 * names["shares"][0.5],
    "compare_two_encoders": lambda names: "simclr-digits is better than cpc-digits" in names["comparison"].verdict,
    "label_errors": lambda names: names["found"] == len(names["changed"]) == 10,
}


def test_there_are_three_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} == RESULTS.keys()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Any) -> None:
    """In this process: a kernel of its own would import PyTorch once more for each notebook."""
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        exec(compile("".join(cell["source"]), f"{path.stem}, {cell['id']}", "exec"), names)
    assert RESULTS[path.stem](names)
