"""Archives of any size: NumPy's format, streamed out, large arrays mapped back in."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cases import cases

from contrastive_core.base import json_files
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
    monkeypatch.setattr(json_files, "MAPPED", request.param)
    return request.param


def equal(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)


def test_who_reads_says_what_is_mapped(tmp_path: Path) -> None:
    json_files.write_npz(tmp_path / "a.npz", **ARRAYS)
    found = json_files.read_npz(tmp_path / "a.npz", mapped=50_000)
    assert equal(found, ARRAYS)
    assert {k for k, v in found.items() if isinstance(v, np.memmap)} == {"features"}


def test_what_is_written_is_read(mapped: int, tmp_path: Path) -> None:
    json_files.write_npz(tmp_path / "a.npz", **ARRAYS)
    assert equal(json_files.read_npz(tmp_path / "a.npz"), ARRAYS)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as theirs:
        assert equal(dict(theirs), ARRAYS)
    (tmp_path / "b.npz").write_bytes(json_files.npz_bytes(**ARRAYS))
    assert (tmp_path / "b.npz").read_bytes() == (tmp_path / "a.npz").read_bytes()


def test_files_of_numpy_are_read(mapped: int, tmp_path: Path) -> None:
    for name, save in (("plain", np.savez), ("packed", np.savez_compressed)):
        save(tmp_path / f"{name}.npz", **ARRAYS)
        assert equal(json_files.read_npz(tmp_path / f"{name}.npz"), ARRAYS)


def test_large_arrays_are_maps_that_are_aligned_and_cost_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    json_files.write_npz(tmp_path / "a.npz", **ARRAYS)
    with pytest.raises(Damaged, match="would unpack to"):
        json_files.read_npz(tmp_path / "a.npz", limit=60_000)
    monkeypatch.setattr(json_files, "MAPPED", 60_000)
    arrays = json_files.read_npz(tmp_path / "a.npz", limit=60_000)
    features = arrays["features"]
    assert isinstance(features, np.memmap)
    assert features.ctypes.data % json_files.ALIGNED == 0
    assert not features.flags.writeable
    assert not isinstance(arrays["labels"], np.memmap)
    (tmp_path / "a.npz").unlink()  # who reads keeps what it opened
    assert np.array_equal(features, ARRAYS["features"])


@cases("where", [60, 200, -10, -200, -2000])
def test_a_file_that_is_cut_off_is_damaged(mapped: int, tmp_path: Path, where: int) -> None:
    content = bytes(json_files.npz_bytes(**ARRAYS))
    (tmp_path / "a.npz").write_bytes(content[:where])
    with pytest.raises(Damaged, match=r"a\.npz is damaged"):
        json_files.read_npz(tmp_path / "a.npz")


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
        json_files.read_npz(tmp_path / "a.npz")


def test_objects_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        json_files.write_npz(tmp_path / "a.npz", x=np.array([object()]))
    assert not list(tmp_path.iterdir())
