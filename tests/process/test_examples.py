"""The scripts in `examples/` run, stay short, and print what they promise."""

import runpy

import pytest

from contrastive_core.base.storage import ROOT

SCRIPTS = {
    "losses_on_a_batch": ((), "nt_xent"),
    "train_and_evaluate": ((1,), "trained encoder"),
    "compare_embeddings": (([],), "pixels.npz"),
    "find_wrong_labels": ((), "have a changed label"),
    "watch_a_loop": ((40,), "recorded in"),
}


def test_every_script_is_tested_and_short():
    scripts = {path.stem: path for path in (ROOT / "examples").glob("*.py")}
    assert scripts.keys() == SCRIPTS.keys()
    assert all(len(path.read_text().splitlines()) < 60 for path in scripts.values())


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name, capsys):
    arguments, expected = SCRIPTS[name]
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"](*arguments)
    assert expected in capsys.readouterr().out
