"""`samples --audit`: rows to check, answers, and what they say."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.cli.main import main


@pytest.fixture
def vectors(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """400 rows in four classes, 32 of them labeled as the next class; and which."""
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 4
    features = (np.eye(4, 8)[truth] + 0.15 * rng.normal(size=(400, 8))).astype(np.float32)
    wrong = np.zeros(400, bool)
    wrong[rng.choice(400, 32, replace=False)] = True
    file = tmp_path / "vectors.npz"
    np.savez(file, features=features, labels=np.where(wrong, (truth + 1) % 4, truth))
    return file, wrong


def answer(file: Path, wrong: np.ndarray, word: dict[bool, str]) -> int:
    """Fill the column as a person would; the number of rows."""
    with file.open(newline="") as f:
        lines = list(csv.DictReader(f))
    for line in lines:
        line["wrong"] = word[bool(wrong[int(line["id"])])]
    with file.open("w", newline="") as f:
        writer = csv.DictWriter(f, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return len(lines)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["samples", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_answers_bound_the_number_of_wrong_labels(
    vectors: tuple[Path, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, wrong = vectors
    audit = tmp_path / "audit.csv"
    first = call(capsys, str(file), "--audit", str(audit), "--checks", "40")
    assert (first["checked"], first["rows_to_check"]) == (0, 40)
    assert answer(audit, wrong, {True: "yes", False: "no"}) == 40
    some = call(capsys, str(file), "--audit", str(audit), "--checks", "120")
    assert some["checked"] == 40
    assert some["wrong_low"] <= wrong.sum() <= some["wrong_high"]
    assert answer(audit, wrong, {True: "1", False: "0"}) == 120
    more = call(capsys, str(file), "--audit", str(audit), "--checks", "400")
    assert more["wrong_low"] <= wrong.sum() <= more["wrong_high"]
    assert more["wrong_high"] - more["wrong_low"] <= some["wrong_high"] - some["wrong_low"]
    answer(audit, wrong, {True: "yes", False: "no"})
    every = call(capsys, str(file), "--audit", str(audit))
    assert every["wrong_labels"] == wrong.sum()
    assert every["may_stop"] is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,wrong\n0,perhaps\n", "must be yes or no; got perhaps"),
        ("id,wrong\nnobody,yes\n", "an id that the data set does not have: nobody"),
        ("id\n0\n", "needs a column 'wrong'"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    vectors: tuple[Path, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    audit = tmp_path / "audit.csv"
    audit.write_text(text)
    assert main(["samples", str(vectors[0]), "--audit", str(audit)]) != 0
    assert said in capsys.readouterr().err
    assert audit.read_text() == text
