"""Large arrays: zeros in memory or in a file without a name; archives in NumPy's format, mapped back in."""

import gc
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cases import cases

from contrastive_core.base import memory
from contrastive_core.base.errors import Damaged

ARRAYS = {
    "features": np.random.default_rng(0).normal(size=(700, 33)).astype(np.float32),
    "ids": np.array([f"images/{i}.png" for i in range(700)]),
    "labels": np.arange(700) % 7,
    "meta": np.frombuffer(b"{}", np.uint8),
    "empty": np.zeros((0, 4), np.float32),
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "alone": np.array(3.5),
}


@pytest.fixture(params=[1, 3000, 1 << 30], ids=["all mapped", "some mapped", "none mapped"])
def mapped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(memory, "MAPPED_WHEN_READ", request.param)
    return request.param


def equal(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)


def test_what_is_written_is_read(mapped: int, tmp_path: Path) -> None:
    memory.write_npz(tmp_path / "a.npz", **ARRAYS)
    assert equal(memory.read_npz(tmp_path / "a.npz"), ARRAYS)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as theirs:
        assert equal(dict(theirs), ARRAYS)
    (tmp_path / "b.npz").write_bytes(memory.npz_bytes(**ARRAYS))
    assert (tmp_path / "b.npz").read_bytes() == (tmp_path / "a.npz").read_bytes()


def test_files_of_numpy_are_read(mapped: int, tmp_path: Path) -> None:
    for name, save in (("plain", np.savez), ("packed", np.savez_compressed)):
        save(tmp_path / f"{name}.npz", **ARRAYS)
        assert equal(memory.read_npz(tmp_path / f"{name}.npz"), ARRAYS)


def test_large_arrays_are_maps_that_are_aligned_and_cost_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write_npz(tmp_path / "a.npz", **ARRAYS)
    with pytest.raises(Damaged, match="would unpack"):
        memory.read_npz(tmp_path / "a.npz", limit=60_000)
    monkeypatch.setattr(memory, "MAPPED_WHEN_READ", 60_000)
    arrays = memory.read_npz(tmp_path / "a.npz", limit=60_000)
    features = arrays["features"]
    assert isinstance(features, np.memmap)
    assert features.ctypes.data % memory.ALIGNED == 0
    assert not features.flags.writeable
    assert {k for k, v in arrays.items() if isinstance(v, np.memmap)} == {"features"}
    small = memory.read_npz(tmp_path / "a.npz", mapped=1000)  # who reads says what is mapped
    assert isinstance(small["labels"], np.memmap)
    (tmp_path / "a.npz").unlink()  # who reads keeps what it opened
    assert np.array_equal(features, ARRAYS["features"])


@cases("where", [60, 200, -10, -200, -2000])
def test_a_file_that_is_cut_off_is_damaged(mapped: int, tmp_path: Path, where: int) -> None:
    content = bytes(memory.npz_bytes(**ARRAYS))
    (tmp_path / "a.npz").write_bytes(content[:where])
    with pytest.raises(Damaged, match=r"a\.npz is damaged"):
        memory.read_npz(tmp_path / "a.npz")


def member(header: str, data: bytes = bytes(64)) -> bytes:
    """An archive with one `.npy` that claims what stands in the header."""
    text = header.encode() + b" " * (-(len(header) + 11) % 64) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        start = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little")
        archive.writestr("x.npy", start + text + data)
    return buffer.getvalue()


@cases(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (8,)}",
        "{'descr': 'nothing', 'fortran_order': False, 'shape': (16,)}",
        "{'shape': (16,)}",
    ],
)
def test_a_header_that_lies_is_damage(mapped: int, tmp_path: Path, header: str) -> None:
    (tmp_path / "a.npz").write_bytes(member(header))
    with pytest.raises(Damaged):
        memory.read_npz(tmp_path / "a.npz")


def test_objects_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        memory.write_npz(tmp_path / "a.npz", x=np.array([object()]))
    assert not list(tmp_path.iterdir())


# --- arrays in a file that goes with them ---


def test_small_arrays_are_in_memory_and_large_ones_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = memory.mapped_zeros((3, 4), np.float32, tmp_path)
    assert not isinstance(small, np.memmap)
    monkeypatch.setattr(memory, "MAPPED", 3 * 4 * 8)
    large = memory.mapped_zeros((3, 4), np.float64, tmp_path / "new")
    assert isinstance(large, np.memmap)
    assert large.dtype == np.float64
    assert not large.any()
    large[1] = [1, 2, 3, 4]
    assert large.sum() == 10
    assert list((tmp_path / "new").iterdir()) == []  # no kill leaves it behind
    del large
    gc.collect()


def test_a_full_disk_is_an_error_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory, "MAPPED", 1)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space"):
        memory.mapped_zeros((10,), np.float32, tmp_path)


def test_where_no_room_can_be_set_aside_zeros_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAPPED", 1)
    monkeypatch.setattr(memory, "ZEROS", 7)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    made = memory.mapped_zeros((5, 5), np.int32, tmp_path)
    made[4, 4] = 3
    assert made.sum() == 3
