"""The command line: one clear line for every error, JSON for programs, the same names as DESIGN."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from cases import cases

from contrastive_core import runs
from contrastive_core.base.progress import read_progress
from contrastive_core.base.storage import SHIPPED
from contrastive_core.cli import train
from contrastive_core.cli.main import COMMANDS, main, parser

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


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as exit:
            parser().parse_args([command, "--help"])
        assert exit.value.code == 0
        assert "--json" in capsys.readouterr().out


@cases(
    ("argv", "sentence"),
    [
        ([], "COMMAND"),
        (["fly"], "invalid choice"),
        (["train", "--method", "byoll"], "unknown method 'byoll'; known:"),
        (["train", "--dataset", "letters"], "known"),
        (["train", "--run", "../x", *QUICK], "name"),
        (["train", "--resume"], "needs --run NAME"),
        (["train", "--resume", "--run", "nobody"], "nobody"),
        (["train", "--resume", "--run", "nobody", "--schedule", "x.json"], "--schedule is for a new run"),
        (["train", "--schedule", "nothing.json", *QUICK], "nothing.json"),
        (["change", "nobody", "lr=0.1"], "nobody"),
        (["change", "simclr-digits", "tau"], "key=value"),
        (["change", "simclr-digits", "loss.tau=1"], "'loss.tau' cannot be changed"),
        (["train", "--set", "lr"], "key=value"),
        (["train", "--set", "color=3"], "unknown setting"),
        (["train", "--device", "tpu"], "unknown device"),
        (["train", "--set", "batch_size=9999"], "between 2 and the 1437"),
        (["evaluate", "nobody"], "nobody"),
        (["embed", "nobody", "--out", "x.txt"], "--out must end in .npz or .parquet"),
        (["embed", "nobody", "--out", "/no/where/x.npz"], "there is no folder"),
        (["sweep", "nothing.toml"], "cannot read nothing.toml"),
    ],
)
def test_errors_are_one_line(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sentence in fails(capsys, *argv)


def test_debug_shows_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--method", "byoll", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_train_and_list(capsys: pytest.CaptureFixture[str]) -> None:
    made = says(capsys, "train", "--method", "sup_con", "--run", "mine", *QUICK)
    assert made["run"] == "mine"
    assert made["status"] == "done"
    assert 0 < made["knn_train_sample"] <= 1
    found = says(capsys, "list")
    assert "mine" in [row["run"] for row in found["runs"]]
    assert "nt_xent" in found["losses"]
    assert {"digits", "shapes"} <= set(found["datasets"])
    assert main(["list"]) == 0
    assert "mine" in capsys.readouterr().out
    assert "mine" in fails(capsys, "train", "--run", "mine", *QUICK)  # taken
    assert runs.load("mine").status()["status"] == "done"
    assert "mine is not running (done)" in fails(capsys, "change", "mine", "loss.temperature=0.3")


def test_a_schedule_changes_a_training_and_verify_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, planned = tmp_path / "plan.json", [{"step": 2, "name": "loss.temperature", "to": 0.5}]
    path.write_text(json.dumps(planned))
    says(capsys, "train", "--run", "mine", "--schedule", str(path), *QUICK)
    assert main(["verify", "mine"]) == 0
    said = "mine: whole; changed while it trained: loss.temperature 0.2 → 0.5 at step 2\n"
    assert capsys.readouterr().out == said
    assert [c["from"] for c in says(capsys, "change", "mine", "--out", str(tmp_path / "out.json"))["changes"]] == [0.2]
    assert json.loads((tmp_path / "out.json").read_text()) == planned
    (runs.load("mine").path / "changes.jsonl").write_text("no\n")
    assert main(["verify", "--files", "mine"]) == 1
    assert "changes.jsonl: damaged lines" in capsys.readouterr().out


@pytest.mark.parametrize("given", [["--progress", "{file}"], ["--progress={file}"]])
def test_where_there_is_no_terminal_epochs_are_lines_and_progress_goes_into_its_file(
    given: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word.format(file=tmp_path / "progress") for word in given]
    monkeypatch.setattr("sys.argv", ["contrastive-lab", "train", *words, "--run", "told", *QUICK])
    assert main() == 0
    out = capsys.readouterr()
    assert "epoch 1/1, loss" in out.err
    assert out.out.strip() == "told: done"
    assert read_progress(tmp_path / "progress") is not None
    assert runs.load("told").manifest["command"] == shlex.join(["contrastive-lab", "train", "--run", "told", *QUICK])


def test_a_file_is_scored_as_in_the_app(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every row but where a metric needs training rows, without rows that are not finite."""
    x = np.random.default_rng(0).normal(size=(103, 4)).astype(np.float32)
    x[[3, 7, 9]] = np.nan
    np.savez(tmp_path / "nan.npz", features=x, label=[-1] * 13 + [0, 1] * 45)
    assert main(["evaluate", str(tmp_path / "nan.npz"), "--metrics", "knn,hubness", "--json", "--device", "cpu"]) == 0
    said = capsys.readouterr()
    assert "3 rows left out: values that are not finite\n" in said.err
    assert json.loads(said.out)["rows"] == {"knn": 18, "hubness": 100}


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
    assert says(capsys, "verify", "metric-digits", "--device", "cpu")["runs"] == {"metric-digits": []}


def test_verify_names_the_damaged_file(capsys: pytest.CaptureFixture[str]) -> None:
    says(capsys, "train", "--run", "sound", *QUICK)
    assert says(capsys, "verify", "--files")["runs"]["sound"] == []
    run = runs.load("sound")
    whole = run.weights.read_bytes()
    run.weights.write_bytes(whole[: len(whole) // 2])
    assert main(["verify", "sound"]) == 1
    assert "weights.safetensors" in capsys.readouterr().out
    run.weights.write_bytes(whole)
    lines = (run.path / "metrics.jsonl").read_text()
    (run.path / "metrics.jsonl").write_text(lines + '{"torn": ')
    assert main(["verify", "sound"]) == 0
    (run.path / "metrics.jsonl").write_text("{" + lines)
    assert main(["verify", "sound"]) == 1
    assert "damaged lines" in capsys.readouterr().out
    (run.path / "status.json").write_text("[")
    assert main(["verify", "sound"]) == 1
    assert "status.json" in capsys.readouterr().out


def test_messages_hold_no_control_characters_and_are_not_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    """What a name or a file says can neither colour nor clear a terminal, nor fill it."""
    line = fails(capsys, "evaluate", "\x1b[2J\x07evil\u202e\udcff")
    assert "\\x1b[2J\\x07evil\\u202e\\udcff" in line
    assert line.isprintable()
    assert len(fails(capsys, "train", "--dataset", "x" * 1_000_000)) < 2500
    run = runs.create("told", {"method": "sup\x1b[31m", "dataset": "y" * 100_000})
    run.set_status("failed", reason="\x1b]0;title\x07")
    out = _text(capsys, "list")
    assert "\x1b" not in out
    assert "\x07" not in out
    assert max(map(len, out.splitlines())) < 2500


# The smallest thing each command can be asked for that makes it write into the folder of runs or
# the cache. `list` and `verify --files` write nothing.
WRITERS = {
    "train": ["train", "--run", "new", *QUICK],
    "embed": ["embed", "simclr-shapes", "--split", "train"],
    "evaluate": ["evaluate", "simclr-shapes", "--split", "train"],
    "project": ["project", "simclr-shapes", "--method", "pca", "--out", "map.csv"],
    "samples": ["samples", "simclr-digits", "--split", "test"],
    "compare": ["compare", "simclr-digits", "sup_con-digits"],
    "sweep": ["sweep", "{sweep}"],
    "queue": ["queue"],
    "import": ["import", "{weights}", "--dataset", "digits"],
    "analyze": ["analyze", "views", '{"method": "simclr", "dataset": "digits", "set": []}'],
}


@cases("errno", [28, 30, 13])
@cases("command", WRITERS)
def test_a_disk_that_takes_nothing_is_said_in_one_sentence(
    command: str, errno: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sweep = tmp_path / "s.toml"
    sweep.write_text('[base]\nmethod = "sup_con"\nepochs = 1\n')
    monkeypatch.chdir(tmp_path)
    words = {28: "the disk is full", 30: "the disk is read-only", 13: "permission denied"}

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno, os.strerror(errno), "/a/file")

    for name in ("mkstemp", "mkdtemp"):
        monkeypatch.setattr(f"tempfile.{name}", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    if command == "queue":  # it looks before it writes
        monkeypatch.setattr("contrastive_core.engine.queue.queue", refuse)
    files = {"{sweep}": str(sweep), "{weights}": str(SHIPPED / "simclr-digits/weights.safetensors")}
    status = main([files.get(part, part) for part in WRITERS[command]])
    lines = capsys.readouterr().err.strip().splitlines()
    assert status in (1, 2)
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1
    assert words[errno] in errors[0]
    assert "/a/file" in errors[0]
    assert ("free some space and try again" in errors[0]) == (errno == 28)
    assert "Traceback" not in "".join(lines)


def test_an_errors_class_says_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastive_core.base import errors
    from contrastive_core.cli import run_listing

    wanted = {
        errors.NoSuchRun("x"): 2,
        errors.Locked("x"): 1,
        errors.CannotGoOn("x"): 1,
        errors.Elsewhere("x"): 2,
        OSError(28, "x", "y"): 1,
        FileNotFoundError(2, "x", "y"): 2,
        KeyError("x"): 1,
    }
    for error, status in wanted.items():

        def raises(args: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(run_listing, "list_all", raises)
        assert main(["list"]) == status


def test_the_first_epoch_is_seen_to_move() -> None:
    told: list[tuple[str, float | None]] = []
    report = train._Report(2, 4, lambda stage, share: told.append((stage, share)), False)
    for step in range(1, 6):
        report([{"epoch": (step - 1) // 4, "step": step, "loss": 1.0, "images_per_s": 9.0}])
        if step == 4:
            report([{"epoch": 1, "step": step, "loss": 1.0}])
    assert told == [*[("epoch 1 of 2", k / 8) for k in range(1, 5)], ("epoch 2 of 2", 5 / 8)]
    resumed = train._Report(2, 4, lambda stage, share: told.append((stage, share)), False)
    resumed([{"epoch": 1, "step": 7, "loss": 1.0, "images_per_s": 9.0}])
    assert told[-1] == ("epoch 2 of 2", 7 / 8)  # the steps before it was stopped count


def test_commands_that_read_run_in_one_process(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "evaluate runs in one process" in fails(capsys, "evaluate", "vectors.npz")


def test_torch_does_not_spin_for_long() -> None:
    """It reads the setting when it is loaded."""
    code = "import os, sys, contrastive_core; print(os.environ['GOMP_SPINCOUNT'], 'torch' in sys.modules)"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GOMP_", "OMP_"))}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True) == "1000 False\n"
