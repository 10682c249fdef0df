"""Every command that reads rows takes every kind of them: it works, or says in one plain sentence why it does not."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from cases import cases

from contrastive_core import runs, watch
from contrastive_core.cli.main import COMMANDS, main
from contrastive_core.spaces.loaded_vectors import open_vectors
from contrastive_lab.desktop.command import prepare, recognize

rng = np.random.default_rng(0)
FILES = ("rows.npy", "rows.npz", "rows.parquet", "rows.csv")
KINDS = (*FILES, "rows.jsonl", "vectors", "recording", "run")
COMMAND = {
    "embed": ["embed", "NAME", "--out", "out.npz"],
    "evaluate": ["evaluate", "NAME", "--metrics", "knn"],
    "project": ["project", "NAME", "--method", "pca", "--out", "out.csv"],
    "samples": ["samples", "NAME", "--out", "out.csv"],
    "compare": ["compare", "NAME", "other.npy", "--metrics", "knn"],
    "report": ["report", "NAME", "other.npy", "--out", "out.html"],
}
REFUSED = {(name, "rows.jsonl"): "rows.jsonl: line 1 has no anchor" for name in COMMAND}
REFUSED |= {("embed", kind): "holds vectors, and no encoder" for kind in (*FILES, "rows.jsonl", "vectors")}
REFUSED |= {("embed", "recording"): "recording", ("compare", "run"): "in common"}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """The name of rows of a kind: 60 of three classes, 8 wide."""
    monkeypatch.chdir(tmp_path)
    label = np.arange(60) % 3
    x = (np.eye(8)[label] * 3 + rng.normal(size=(60, 8))).astype(np.float32)
    table = pd.DataFrame(x, columns=[f"d{i}" for i in range(8)]).assign(price=1.0, label=label)
    np.save("rows.npy", x)
    np.savez("rows.npz", features=x, label=label)
    table.to_parquet("rows.parquet")
    table.to_csv("rows.csv", index=False)
    table.to_json("rows.jsonl", orient="records", lines=True)
    np.save("other.npy", x + 1)
    np.save("label.npy", label)

    def name(kind: str) -> str:
        if kind == "vectors":
            return f"vectors:{open_vectors(tmp_path / 'rows.npz', 'rows.npz')}"
        if kind == "recording":
            with watch("rec", loss="sup_con", every=1, strict=True) as recording:
                recording.step(torch.from_numpy(x), labels=torch.from_numpy(label), ids=np.arange(60))
        return {"recording": "rec", "run": "simclr-digits"}.get(kind, kind)

    return cache(name)


@cases("command", COMMAND)
@cases("kind", KINDS)
def test_a_command_takes_rows_or_says_why_not(
    command: str, kind: str, source: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [source(kind) if part == "NAME" else part for part in COMMAND[command]]
    status = main([*arguments, "--device", "cpu"])
    said = capsys.readouterr()
    *_, last = ["", *said.err.strip().splitlines()]
    if (sentence := REFUSED.get((command, kind))) is None:
        assert status == 0, last
    else:
        assert status == 2
        assert last.startswith("error: ")
        assert sentence in last
        assert "Error:" not in last  # no type of an exception: nobody foresaw that


@cases("kind", FILES)
def test_opening_takes_what_the_page_asks_for(kind: str, source: Callable[[str], str]) -> None:
    place = prepare(recognize(source(kind)), labels="label.npy", leave_out=[], pictures=None)
    assert place.startswith("/explore?vectors=")
    with pytest.raises(ValueError, match="are for files of vectors"):
        prepare(recognize("simclr-digits"), labels="label.npy")
    assert runs.load("simclr-digits")


@cases("command", ["evaluate", "project", "samples", "compare", "report"])
def test_the_options_of_the_page_are_those_of_the_command(command: str, source: Callable[[str], str]) -> None:
    flags = {flag for names, _ in COMMANDS[command].options for flag in names}
    assert {"--labels", "--leave-out", "--split"} <= flags
    arguments = [source("rows.csv") if part in ("NAME", "other.npy") else part for part in COMMAND[command]]
    assert main([*arguments, "--leave-out", "no", "--device", "cpu"]) == 2
    if command in ("project", "samples"):
        assert main([*arguments, "--leave-out", "price", "--labels", "label.npy", "--device", "cpu"]) == 0
        assert main([*arguments, "--split", "train", "--device", "cpu"]) == 2


PAIRED = [  # the arguments, and what is said
    ("evaluate a.npy --other b.npy", "Recall@10, a → b"),
    ("project a.npy --other b.npy --method pca --out out.csv", "120 points"),
    ("samples a.npy --other b.npy --out out.csv", "120 samples"),
    ("pairs a.npy b.npy --top 1", "a.npy + b.npy: 60 pairs of b and a"),
    ("pairs a.npy --other b.npy --towers question,answer", "pairs of answer and quest"),
]
REFUSED_PAIRS = [
    ("pairs a.npy", "holds one tower"),
    ("pairs a.npy b.npy --other b.npy", "one file, or two with a tower each; got a.npy, b.npy, b.npy"),
    ("pairs a.npy narrow.npy", "rows of a have 8 numbers and rows of narrow 7"),
    ("evaluate a.npy --other short.npy", "a has 60 rows and short 50"),
    ("pairs a.npy none.npy", "none.npy"),
    ("evaluate simclr-digits --other b.npy", "are for files of vectors"),
    ("compare a.npy b.npy --other b.npy", "--other goes with one file"),
    ("evaluate a.npy --other b.npy --metrics knn", "go with one tower"),
    ("pairs a.npy b.npy --towers x", "--towers needs two names"),
    ("evaluate a.npy --by id", "--towers and --by need --other FILE"),
]


@cases(("command", "words"), [*PAIRED, *REFUSED_PAIRS])
def test_a_second_tower_goes_with_every_command_that_reads_a_file(
    command: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(1).normal(size=(60, 8)).astype(np.float32)
    for file, rows in {"a": x, "b": x + 0.3, "narrow": x[:, :7], "short": x[:50]}.items():
        np.save(f"{file}.npy", rows)
    arguments = command.split()
    has_device = any("--device" in flags for flags, _ in COMMANDS[arguments[0]].options)
    status = main([*arguments, *(["--device", "cpu"] if has_device else [])])
    said = capsys.readouterr()
    if (command, words) in PAIRED:
        assert status == 0, said.err
        assert words in said.out
    else:
        assert status == 2
        assert words in said.err
        assert said.err.startswith("error: ")
