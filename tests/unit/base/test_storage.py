"""What was read of a file stays in memory until it changes; no spreadsheet runs the cells of a table; and where things
lie: in a checkout, once installed, and where the environment says."""

import os
import time
from pathlib import Path

import pytest

from contrastive_core.base import storage
from contrastive_core.base.errors import Damaged
from contrastive_core.base.storage import FileCache

HOMES = ("CONTRASTIVE_LAB_HOME", "CONTRASTIVE_LAB_RUNS")


def old(path: Path, text: str) -> Path:
    """A file that was written some time ago."""
    path.write_text(text)
    os.utime(path, ns=(0, time.time_ns() - int(60e9)))
    return path


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    asked: list[str] = []

    def read(path: Path) -> str:
        asked.append(path.name)
        return path.read_text()

    remembered = FileCache(read, 2)
    a, b, c = (old(tmp_path / name, name) for name in "abc")
    assert [remembered(p) for p in (a, a, b, a)] == ["a", "a", "b", "a"]
    assert asked == ["a", "b"]
    old(a, "A")  # as long, by the same clock: but changed
    assert remembered(a) == "A"
    (tmp_path / "new").write_text("N")
    os.utime(tmp_path / "new", ns=(0, a.stat().st_mtime_ns))
    os.replace(tmp_path / "new", a)  # another file in its place
    assert remembered(a) == "N"
    assert [remembered(p) for p in (c, b)] == ["c", "b"]  # two are kept: b went as c came
    assert asked == ["a", "b", "a", "a", "c", "b"]


def test_what_was_just_written_is_read_again(tmp_path: Path) -> None:
    remembered, path = FileCache(Path.read_text, 9), tmp_path / "a"
    for text in "abc":
        path.write_text(text)
        assert remembered(path) == text


def test_what_cannot_be_read_is_not_kept(tmp_path: Path) -> None:
    def read(path: Path) -> str:
        if (text := path.read_text()) == "bad":
            raise Damaged("bad")
        return text

    remembered, path = FileCache(read, 9), tmp_path / "a"
    with pytest.raises(FileNotFoundError):
        remembered(path)
    for _ in range(2):
        with pytest.raises(Damaged):
            remembered(old(path, "bad"))
    assert remembered(old(path, "good")) == "good"
    path.unlink()
    with pytest.raises(FileNotFoundError):
        remembered(path)


# --- tables for other programs ---


@pytest.mark.parametrize("start", ["", " ", "\t", "\r", "\n", "\r\n ", "\u3000", "\ufeff", "\x00", "\xa0"])
@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe62", "\u207a"])
def test_no_cell_starts_as_a_formula(start: str, sign: str) -> None:
    text = f"{start}{sign}HYPERLINK(1)"
    assert storage.safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["a", "", "a=1", " a", "\u4e2d", "-3", "+1e5", " -0.5", "\u2192"])
def test_other_cells_stay(text: str) -> None:
    assert storage.safe_cell(text) == text


# --- folders ---


def test_a_checkout_keeps_everything_in_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HOMES:
        monkeypatch.delenv(name)
    assert storage.is_checkout()
    assert storage.BUNDLE == storage.ROOT
    assert storage.runs_home() == storage.ROOT / "checkpoints" / "runs"
    assert storage.data_home() == storage.ROOT / ".cache"
