"""Files are old or new, whatever kills the writer; locks know the dead; damage and wrong values are named."""

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest
from cases import cases

from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import Damaged
from contrastive_core.base.json_files import one_of, problem, schema_of
from contrastive_core.base.lock import lock, lock_holder
from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.storage import data_home


def test_writes_and_reads(tmp_path: Path) -> None:
    json_files.write_json(tmp_path / "a" / "b.json", {"x": [1, float("nan"), np.float32(2)]})
    assert json_files.read_json(tmp_path / "a" / "b.json") == {"x": [1, None, 2.0]}
    json_files.append_lines(tmp_path / "l", [{"a": 1}, {"a": 2}])
    assert json_files.read_lines(tmp_path / "l") == [{"a": 1}, {"a": 2}]
    write_npz(tmp_path / "n.npz", x=np.arange(3))
    assert read_npz(tmp_path / "n.npz")["x"].tolist() == [0, 1, 2]
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_torn_last_line_is_left_out_and_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "l"
    json_files.append_lines(path, [{"a": 1}])
    first = path.read_bytes()
    json_files.append_lines(path, [{"a": 2}])
    both = path.read_bytes()
    for cut in range(len(first), len(both) - 1):
        path.write_bytes(both[:cut])
        assert json_files.read_lines(path) == [{"a": 1}]
        assert json_files.damaged_lines(path) == []
        json_files.append_lines(path, [{"a": 3}])
        assert json_files.read_lines(path) == [{"a": 1}, {"a": 3}]
    path.write_bytes(both[:-1])
    assert json_files.read_lines(path) == [{"a": 1}, {"a": 2}]
    json_files.append_lines(path, [{"a": 3}])
    assert json_files.read_lines(path) == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_what_a_person_edits_is_read(tmp_path: Path) -> None:
    (tmp_path / "l").write_text('{"a": 7}\n\n  {"a": 2}\n')
    assert json_files.read_lines(tmp_path / "l") == [{"a": 7}, {"a": 2}]


def test_a_long_last_line_is_cut_off_where_it_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "l"
    json_files.append_lines(path, [{"a": 1}])
    first = path.read_bytes()
    for length in (json_files.TAIL - 1, json_files.TAIL, 20 * json_files.TAIL):
        path.write_bytes(first + b'{"a": "' + b"x" * length)
        json_files.append_lines(path, [{"a": 3}])
        assert json_files.read_lines(path) == [{"a": 1}, {"a": 3}]


NO_OBJECTS = (
    "null",
    "[]",
    "3",
    '"x"',
    "true",
    "",
    "{",
    '{"a": NaN}',
    '{"a": 1e999}',
    '{"a": "\\ud800"}',
    '{"a": ' + "[" * 40 + "]" * 40 + "}",
    '{"a": ' + "[" * 100_000,
    "\xff",
)


@cases("content", NO_OBJECTS)
def test_what_is_no_usable_object_is_damaged(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(Damaged, match=r"a\.json is damaged"):
        json_files.read_object(path)
    path.write_text(content.replace("\n", "") + "\n{}\n", encoding="latin-1")
    assert json_files.read_lines(path) == [{}]
    assert json_files.damaged_lines(path) == ([1] if content else [])


def test_only_regular_files_of_a_sane_size_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "folder.json").mkdir()
    for path in tmp_path.iterdir():
        with pytest.raises(Damaged, match="not a file"):
            json_files.read_json(path)
        with pytest.raises(Damaged, match="not a file"):
            json_files.read_lines(path)
    json_files.write_json(tmp_path / "large.json", {"x": "x" * 100})
    monkeypatch.setattr(json_files, "MAX_JSON", 50)
    with pytest.raises(Damaged, match="bytes; at most 50 are read"):
        json_files.read_json(tmp_path / "large.json")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_and_folders_are_their_owners_alone(tmp_path: Path, umask: int) -> None:
    pid = os.fork()
    if pid == 0:  # pragma: no cover
        os.umask(umask)
        storage.write_bytes(tmp_path / "a" / "b" / "file", b"x")
        json_files.append_lines(tmp_path / "a" / "lines", [{"a": 1}])
        with lock(tmp_path / "a" / "lock"):
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    modes = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.rglob("*")}
    told = {p.name: 0o600 for p in (data_home() / "locks").iterdir()}  # who held it
    assert len(told) == 1
    assert modes.pop("home") == modes.pop("locks") == 0o700
    assert modes == {"a": 0o700, "b": 0o700, "file": 0o600, "lines": 0o600, "lock": 0o600} | told
    storage.write_bytes(tmp_path / "asked-for", b"x", shared=True)
    assert (tmp_path / "asked-for").stat().st_mode & 0o777 == 0o644


def write_in_parts(path: Path, number: int) -> None:
    with storage.writing(path) as file:
        for part in range(4):
            file.write(f"{number} part {part}\n".encode() * 2000)


def append(path: Path, number: int) -> None:
    json_files.append_lines(path, [{"number": number, "end": number}, {"number": number, "end": number}])


def take_lock(path: Path, number: int) -> None:
    with lock(path):
        pass


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "bytes": lambda path, n: storage.write_bytes(path, f"{n}\n".encode() * 8000),
    "parts": write_in_parts,
    "json": lambda path, n: json_files.write_json(path, {"n": n, "x": "x" * 20_000, "end": n}),
    "npz": lambda path, n: write_npz(path, a=np.full(3000, n), b=np.full(3000, n)),
    "lines": append,
    "lock": take_lock,
}


def whole(path: Path, kind: str) -> int:
    """The number that every part of the file holds. Fails if the file is something in between."""
    if not path.exists():
        return 0
    if kind in ("bytes", "parts"):
        lines = path.read_text().splitlines()
        assert len(lines) == 8000
        found = {int(line.split()[0]) for line in lines}
    elif kind == "json":
        value = json_files.read_json(path)
        found = {value["n"], value["end"]}
    elif kind == "npz":
        found = set(np.concatenate(list(read_npz(path).values())).tolist())
    elif kind == "lines":
        lines = json_files.read_lines(path)
        assert all(x["number"] == x["end"] for x in lines)
        numbers = [x["number"] for x in lines]
        assert numbers == sorted(numbers)
        return numbers[-1] if numbers else 0
    else:
        assert lock_holder(path) is None
        with lock(path):  # a dead process's lock keeps nobody out
            return 0
    assert len(found) == 1
    return int(found.pop())


CALLS = ("fdopen", "fsync", "chmod", "replace", "open", "close", "unlink", "truncate")


@cases("kind", WRITERS)
def test_a_kill_at_each_failpoint_leaves_the_old_file_or_the_new(tmp_path: Path, kind: str) -> None:
    """Before and after every call to the system that a writer makes, one after the other."""
    killed = 0
    for point in range(100):
        path = tmp_path / str(point) / "file"
        path.parent.mkdir()
        WRITERS[kind](path, 1)
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            kill_at(point)
            WRITERS[kind](path, 2)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        assert whole(path, kind) in ((0,) if kind == "lock" else (1, 2))
        if os.WIFEXITED(status):  # it came to its end: all points were tried
            assert whole(path, kind) == (0 if kind == "lock" else 2)
            break
        killed += 1
    assert killed >= (2 if kind == "lines" else 6)


def kill_at(point: int) -> None:
    """End this process, by SIGKILL, at its `point`-th failpoint from now."""
    left = [point]

    def reached() -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def with_points(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            reached()
            found = call(*args, **kwargs)
            reached()
            return found

        return wrapped

    for name in CALLS:
        setattr(os, name, with_points(getattr(os, name)))
    opened = Path.open
    Path.open = with_points(opened)  # type: ignore[method-assign]


@cases("kind", [k for k in WRITERS if k != "lock"])
def test_a_full_disk_keeps_the_old_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    WRITERS[kind](path, 1)
    pid = os.fork()
    if pid == 0:  # pragma: no cover
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        full = path.stat().st_size + 10 if kind == "lines" else 1000
        resource.setrlimit(resource.RLIMIT_FSIZE, (full, full))
        try:
            WRITERS[kind](path, 2)
        except OSError:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert whole(path, kind) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    WRITERS[kind](path, 2)  # with room again all is well
    assert whole(path, kind) == 2


class Job(TypedDict, total=False):
    state: Annotated[str, one_of("waiting", "done")]
    epochs: Annotated[int | None, json_files.whole(1)]
    tags: list[str]
    figures: dict[str, float | None]
    free: dict[str, Any]


@dataclass
class Row:
    name: str
    job: Job
    share: float = 0.0
    is_last: bool = False
    more: dict[str, int] = field(default_factory=dict)


GOOD = {"name": "a", "job": {"state": "done", "epochs": 3, "figures": {"x": None, "y": 1}, "free": {"k": [None]}}}


@cases(
    ("change", "why"),
    [
        ({}, ""),
        ({"other": {"deep": [1]}}, ""),
        ({"name": None}, "name is null, not text"),
        ({"share": "half"}, "share is text, not a number"),
        ({"is_last": 1}, "is_last is a whole number, not true or false"),
        ({"more": {"k": -1}}, "more.k is too large, too small or not a number"),
        ({"job": {"state": "lost"}}, "job.state must be one of waiting, done"),
        ({"job": {"epochs": 0}}, "job.epochs is too large, too small or not a number"),
        ({"job": {"tags": ("a", 3)}}, "job.tags[1] is a whole number, not text"),
        ({"job": {"figures": {"x": [1]}}}, "job.figures.x is a list, not a number"),
    ],
)
def test_a_type_says_what_a_file_may_hold(change: dict[str, Any], why: str) -> None:
    assert problem({**GOOD, **change}, schema_of(Row)) == why


def test_a_member_without_a_default_is_required() -> None:
    assert problem({"name": "a"}, schema_of(Row)) == "it has no 'job'"
    assert problem({}, schema_of(Job)) == ""
