"""Small files that would fill the memory, each read in a child process that may take 1 GiB more than its libraries."""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from contrastive_core.base import memory, sandbox
from contrastive_core.base.errors import Refused
from contrastive_core.base.sandbox import Limits, Sandbox, run_sandboxed
from contrastive_core.base.storage import ROOT
from contrastive_core.engine import client
from contrastive_core.engine.client import NeedsMemory

MEMORY = 1 << 30
LARGE = 3 << 30  # bytes that a bomb becomes
READER = """
import json, os, resource, sys
from pathlib import Path
from contrastive_core import runs
from contrastive_core.base import json_files, memory
from contrastive_core.data import image_decoding
from contrastive_core.exchange import checkpoint_formats
from contrastive_core.runs import run_metrics
from contrastive_core.spaces import file_formats, attached_files, tables
READERS = {
    "vectors": lambda path: file_formats.read(path),
    "arrays": lambda path: memory.read_npz(path),
    "image": lambda path: image_decoding.decode_image(path, 32, 3),
    "header": lambda path: image_decoding.read_header(path),
    "checkpoint": lambda path: checkpoint_formats.convert(path, path.with_name("out.safetensors")),
    "lines": lambda path: json_files.read_lines(path),
    "metrics": lambda path: run_metrics.MetricsReader(path).update(),
    "json": lambda path: json_files.read_object(path, limit=json_files.MAX_RECORD),
    "snapshot": lambda path: runs.load("bomb").snapshot(1),
}
kind, path = sys.argv[1], Path(sys.argv[2])
mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (mapped + (1 << 30),) * 2)
try:
    READERS[kind](path)
    said = None
except (ValueError, OSError) as error:
    said = str(error)
print(json.dumps([said, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]), flush=True)
os._exit(0)  # a thread of Arrow may still read, as in a sandbox, which is killed
"""


def compressed_npz(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as file,
    ):
        shape = (LARGE // 4096, 1024)
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        for _ in range(LARGE >> 24):
            file.write(bytes(1 << 24))


def lying_npz(path: Path) -> None:
    """An array whose header declares more than its member holds."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (LARGE // 4, 2)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", head.getvalue() + bytes(100))


def sparse_npy(path: Path, shape: tuple[int, ...] = (LARGE // 4096, 1024), kind: str = "<f4") -> None:
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
        file.truncate(file.tell() + int(np.prod(shape)) * np.dtype(kind).itemsize)


def sparse_image(path: Path) -> None:
    sparse_npy(path, (8000, 8000, 16), "<f8")


def deep_image(path: Path) -> None:
    """A whole array of the largest size, of the type that takes most."""
    np.save(path, np.zeros((4600, 4600, 3), np.float64))


def repeated_lists(path: Path) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(4 << 20, np.int32)), pa.array([1.0]))
    lists = pa.FixedSizeListArray.from_arrays(values.dictionary_decode(), 1024)
    with pq.ParquetWriter(path, pa.schema({"embedding": lists.type})) as file:
        for _ in range(60):
            file.write_table(pa.table({"embedding": lists}))


def repeated_texts(path: Path) -> None:
    texts = pa.array(["x" * 500] * 100_000)
    with pq.ParquetWriter(
        path, pa.schema({"id": pa.string(), "text": pa.string(), "a": pa.float32(), "b": pa.float32()})
    ) as file:
        for _ in range(40):
            ones = pa.array(np.ones(len(texts), np.float32))
            file.write_table(pa.table({"id": texts, "text": texts, "a": ones, "b": ones}))


def strided_checkpoint(path: Path) -> None:
    torch.save({"state_dict": {"conv1.weight": torch.zeros(1).expand(LARGE // 4)}}, path)


def compressed_checkpoint(path: Path) -> None:
    whole = io.BytesIO()
    torch.save({"state_dict": {"conv1.weight": torch.zeros(100 << 20)}}, whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))


def empty_lines(path: Path) -> None:
    path.write_bytes(b'{"a":1}\n' * (8 << 20))


def one_line(path: Path) -> None:
    path.write_bytes(b'{"epoch": "' + b"x" * (600 << 20))


def large_record(path: Path) -> None:
    path.write_bytes(b'{"config": [' + b"[]," * (8 << 20) + b"[]]}")


def wide_record(path: Path) -> None:
    path.write_bytes(b'{"config": [' + b"[]," * (1 << 20) + b"[]]}")


def snapshot(path: Path) -> None:
    from contrastive_core import runs

    run = runs.create("bomb", {"method": "simclr", "dataset": "digits"})
    arrays = {"h": np.zeros((60_000, 8192), np.float16), "z": np.zeros((60_000, 1), np.float16)}
    place = run.path / "snapshots" / "epoch-0001.npz"
    place.parent.mkdir()
    np.savez_compressed(place, index=np.arange(60_000), labels=np.zeros(60_000, np.int64), **arrays)


BOMBS: list[tuple[str, str, Callable[[Path], None], bool]] = [
    ("vectors", "a.npz", compressed_npz, True),
    ("arrays", "a.npz", compressed_npz, True),
    ("vectors", "a.npz", lying_npz, True),
    ("arrays", "a.npz", lying_npz, True),
    ("vectors", "a.npy", sparse_npy, True),
    ("image", "a.npy", sparse_image, True),
    ("header", "a.npy", sparse_image, True),
    ("image", "a.npy", deep_image, False),
    ("vectors", "a.parquet", repeated_lists, True),
    ("vectors", "a.parquet", repeated_texts, True),
    ("checkpoint", "a.pth", strided_checkpoint, True),
    ("checkpoint", "a.pth", compressed_checkpoint, True),
    ("lines", "metrics.jsonl", one_line, False),
    ("metrics", "metrics.jsonl", empty_lines, False),
    ("metrics", "metrics.jsonl", one_line, False),
    ("json", "run.json", large_record, True),
    ("json", "run.json", wide_record, False),
    ("snapshot", "none", snapshot, True),
]


@pytest.mark.parametrize(("kind", "name", "make", "is_refused"), BOMBS, ids=[f"{b[0]}-{b[2].__name__}" for b in BOMBS])
def test_no_reader_expands_a_small_file(
    kind: str,
    name: str,
    make: Callable[[Path], None],
    is_refused: bool,
    tmp_path: Path,
    record_property: Callable[..., None],
) -> None:
    make(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", READER, kind, str(tmp_path / name)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said, taken = json.loads(done.stdout.splitlines()[-1])
    assert bool(said) == is_refused, said
    assert "Unable to allocate" not in str(said), "refused by the system only"
    assert taken < 700 << 10, f"{taken >> 10} MB"
    record_property("hostile", ["expansion", int(is_refused), int(not is_refused)])


def hold(size: int) -> int:
    kept = [np.ones(1 << 24, np.uint8) for _ in range(0, size, 1 << 24)]
    time.sleep(1.0)
    return len(kept) << 24


def test_a_sandbox_takes_half_of_the_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(sandbox, "most_memory", lambda: 1 << 28)
    assert run_sandboxed(hold, 1 << 26, limits=Limits(8 << 30)) == 1 << 26
    with pytest.raises(Refused, match="needs more"):
        run_sandboxed(hold, 1 << 29, limits=Limits(8 << 30))


def test_where_the_system_has_no_limit_the_parent_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows: the child's own limit has no effect."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(sandbox, "HAS_LIMITS", False)
    with contextlib.closing(Sandbox(hold, Limits(8 << 30))) as child:
        child._memory = 3 << 29
        assert child.call(1 << 26) == 1 << 26
        with pytest.raises(Refused, match="needs more"):
            child.call(1 << 31)


def test_the_worker_refuses_what_would_take_half_of_the_memory() -> None:
    assert client.call("numpy:zeros", 10).shape == (10,)
    pid = client.call("os:getpid")
    with pytest.raises(NeedsMemory, match="half of this computer's"):
        client.call("numpy:zeros", memory.most_memory() // 4 + 1000)
    assert client.call("os:getpid") == pid, "others go on"
    assert client.call("numpy:zeros", 10).shape == (10,)
    assert psutil.Process(pid).memory_info().rss < memory.most_memory()
    client.end_worker()
