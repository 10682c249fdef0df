"""The command line: one clear line for every error, JSON for programs, the same names as DESIGN."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

from contrastive_core import runs
from contrastive_core.cli import output
from contrastive_core.cli.main import main, parser

COMMANDS = "train embed evaluate project samples compare import sweep list verify".split()
QUICK = ["--epochs", "1", "--device", "cpu", "--set", "batch_size=256", "--set", "threads=2"]


def says(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    """Run a command that must succeed; returns its JSON."""
    status = main([*argv, "--json"])
    out = capsys.readouterr()
    assert status == 0, out.err
    return json.loads(out.out)


def fails(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a command that must fail with one line on standard error; returns the line."""
    try:
        status = main(list(argv))
    except SystemExit as exit:
        status = exit.code
    out = capsys.readouterr()
    assert status not in (0, None)
    assert out.out == ""
    lines = out.err.strip().splitlines()
    assert len(lines) == 1, out.err
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        parser().parse_args([command, "--help"])
    assert exit.value.code == 0
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "COMMAND"),
        (["fly"], "invalid choice"),
        (["train", "--method", "byol"], "unknown method 'byol'; known:"),
        (["train", "--dataset", "letters"], "known"),
        (["train", "--run", "../x", *QUICK], "name"),
        (["train", "--resume"], "needs --run NAME"),
        (["train", "--resume", "--run", "nobody"], "nobody"),
        (["train", "--set", "lr"], "key=value"),
        (["train", "--set", "color=3"], "unknown setting"),
        (["train", "--device", "tpu"], "unknown device"),
        (["train", "--set", "batch_size=9999"], "larger than the 1437"),
        (["evaluate", "nobody"], "nobody"),
        (["embed", "nobody", "--out", "x.txt"], "--out must end in .npz or .parquet"),
        (["embed", "nobody", "--out", "/no/where/x.npz"], "there is no folder"),
        (["sweep", "nothing.toml"], "cannot read nothing.toml"),
    ],
)
def test_errors_are_one_line(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in fails(capsys, *argv)


def test_debug_shows_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--method", "byol", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_train_and_list(capsys: pytest.CaptureFixture[str]) -> None:
    made = says(capsys, "train", "--method", "sup_con", "--run", "mine", *QUICK)
    assert made["run"] == "mine"
    assert made["status"] == "done"
    assert 0 < made["knn"] <= 1
    found = says(capsys, "list")
    assert "mine" in [row["run"] for row in found["runs"]]
    assert "nt_xent" in found["losses"]
    assert {"digits", "shapes"} <= set(found["datasets"])
    assert main(["list"]) == 0
    assert "mine" in capsys.readouterr().out
    assert "mine" in fails(capsys, "train", "--run", "mine", *QUICK)  # taken
    assert runs.load("mine").status()["status"] == "done"


def test_embed_evaluate_and_project(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    says(capsys, "train", "--method", "sup_con", "--run", "seen", *QUICK)
    for ending in ("npz", "parquet"):
        made = says(capsys, "embed", "seen", "--out", str(tmp_path / f"e.{ending}"))
        assert made["rows"] == 360
        assert (tmp_path / f"e.{ending}").exists()
    scores = says(capsys, "evaluate", "seen", "--metrics", "knn,uniformity")["scores"]
    assert set(scores) == {"h", "z", "raw", "random"}
    assert set(scores["h"]) == {"knn", "uniformity"}
    assert scores["raw"]["knn"]["value"] > 0.9
    low, high = scores["h"]["knn"]["interval"]
    assert low < scores["h"]["knn"]["value"] < high
    out = tmp_path / "map.parquet"
    made = says(capsys, "project", "seen", "--method", "pca", "--out", str(out))
    assert made["trustworthiness"] > 0.5
    assert pandas.read_parquet(out).columns.tolist() == ["id", "x", "y", "label"]
    assert "kNN accuracy" in _text(capsys, "evaluate", "seen", "--metrics", "knn")


def _text(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(list(argv)) == 0
    return capsys.readouterr().out


def test_verify_computes_the_figures_that_come_along(capsys: pytest.CaptureFixture[str]) -> None:
    assert says(capsys, "verify", "metric-digits", "--device", "cpu")["runs"] == {
        "metric-digits": []
    }


def test_verify_names_the_damaged_file(capsys: pytest.CaptureFixture[str]) -> None:
    says(capsys, "train", "--run", "sound", *QUICK)
    assert says(capsys, "verify", "--files")["runs"]["sound"] == []
    run = runs.load("sound")
    for path in [*run.path.rglob("*.safetensors"), *run.path.rglob("*.npz")]:
        whole = path.read_bytes()
        middle = len(whole) // 2
        for hurt in (whole[:middle], whole[:8] + bytes(64) + whole[72:]):
            path.write_bytes(hurt)
            assert main(["verify", "sound"]) == 1
            assert str(path.relative_to(run.path)) in capsys.readouterr().out
        path.write_bytes(whole)
    lines = (run.path / "metrics.jsonl").read_text()
    (run.path / "metrics.jsonl").write_text(lines + '{"torn": ')
    assert main(["verify", "sound"]) == 0
    (run.path / "metrics.jsonl").write_text("{" + lines)
    assert main(["verify", "sound"]) == 1
    assert "line 1 is damaged" in capsys.readouterr().out
    (run.path / "status.json").write_text("[")
    assert main(["verify", "sound"]) == 1
    assert "status.json" in capsys.readouterr().out


def test_a_line_for_each_epoch_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "--run", "told", *QUICK]) == 0
    out = capsys.readouterr()
    assert "epoch 1/1, loss" in out.err
    assert out.out.strip() == "told: done"


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "contrastive_core", "train", "--method", "byol"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown method 'byol'")


def test_a_table_is_safe_in_a_spreadsheet(tmp_path: Path) -> None:
    output.write_table(tmp_path / "t.csv", {"id": ["=1+1", "a"], "x": [-1.5, 2.0]})
    assert (tmp_path / "t.csv").read_text().splitlines() == ["id,x", "'=1+1,-1.5", "a,2.0"]
