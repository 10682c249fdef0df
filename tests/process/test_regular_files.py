"""Files from anybody: ordinary ones only, so many bytes, names that a message can hold; and the
child with little memory in which they are parsed."""

import os
import time
from pathlib import Path

import pytest

from contrastive_core.base import errors
from contrastive_core.base.errors import NotRegular, Refused
from contrastive_core.base.messages import printable
from contrastive_core.base.sandbox import Limits, run_sandboxed
from contrastive_core.base.storage import is_regular, open_regular, read_regular


def test_only_ordinary_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "dead").symlink_to("nowhere")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"abc"
    for name in ("pipe", "null"):
        with pytest.raises(NotRegular, match=f"{name} is a pipe, a device or a socket"):
            open_regular(tmp_path / name)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "dead")
    names = ("file", "link", "pipe", "null", "dead", "gone", ".")
    assert [is_regular(tmp_path / name) for name in names] == [True, True] + [False] * 5
    assert not is_regular("a\0b")


def test_whole_files_are_read_up_to_a_size(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100)
    assert read_regular(tmp_path / "f", 100) == b"x" * 100
    with pytest.raises(NotRegular, match="has 100 bytes; at most 99"):
        read_regular(tmp_path / "f", 99)
    assert b"Name:" in read_regular("/proc/self/status", 1 << 20)  # tells no size
    with pytest.raises(NotRegular, match="at most 10"):
        read_regular("/proc/self/status", 10)


def test_names_are_escaped_for_messages() -> None:
    assert printable("plain näme – 日本") == "plain näme – 日本"
    assert printable("a\nb\x1b[31m\x00\u202e") == r"a\nb\x1b[31m\x00\u202e"
    assert printable(os.fsdecode(b"caf\xe9")) == r"caf\udce9"
    assert printable("x" * 1000, 10) == "xxxxxxxxx…"
    printable("\ud800" * 10).encode()


def give(value: object) -> object:
    return value


def fail(name: str) -> None:
    raise getattr(errors, name, KeyError)("the reason")


def eat() -> int:
    return len(bytearray(1 << 30))


def die() -> None:
    os.abort()


def test_a_function_runs_in_a_child_with_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    for function in (give, fail, eat, die):
        monkeypatch.setattr(function, "__module__", "process.test_regular_files")
    limits = Limits(300 << 20, 60)
    assert run_sandboxed(give, {"a": [1, None, "ü"]}, limits=limits) == {"a": [1, None, "ü"]}
    with pytest.raises(errors.UnusableEmbedding, match="the reason"):
        run_sandboxed(fail, "UnusableEmbedding", limits=limits)
    with pytest.raises(Refused, match="KeyError: 'the reason'"):
        run_sandboxed(fail, "nothing of ours", limits=limits)
    with pytest.raises(Refused, match="more memory"):
        run_sandboxed(eat, limits=limits)
    with pytest.raises(Refused, match="crashed: the file is damaged or needs too much memory"):
        run_sandboxed(die, limits=limits)
    with pytest.raises(Refused, match="it took over 2 s"):
        run_sandboxed(time.sleep, 60, limits=Limits(1 << 30, seconds=1))
