"""Room for large arrays: zeros in memory, or in a file without a name that goes with them."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.base import large_arrays
from contrastive_core.base.large_arrays import mapped_zeros


def test_small_arrays_are_in_memory_and_large_ones_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = mapped_zeros((3, 4), np.float32, tmp_path)
    assert not isinstance(small, np.memmap)
    monkeypatch.setattr(large_arrays, "MAPPED", 3 * 4 * 8)
    large = mapped_zeros((3, 4), np.float64, tmp_path / "new")
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

    monkeypatch.setattr(large_arrays, "MAPPED", 1)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space"):
        mapped_zeros((10,), np.float32, tmp_path)


def test_where_no_room_can_be_set_aside_zeros_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_arrays, "MAPPED", 1)
    monkeypatch.setattr(large_arrays, "ZEROS", 7)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    made = mapped_zeros((5, 5), np.int32, tmp_path)
    made[4, 4] = 3
    assert made.sum() == 3
