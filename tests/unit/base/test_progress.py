"""Progress: calls become lines, and the last whole line is what a reader gets."""

import time
from pathlib import Path

import pytest

from contrastive_core.base.progress import Progress, ProgressFile, fraction_of, prefixed, read_progress


def test_a_reader_gets_the_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    assert read_progress(path) is None
    write = ProgressFile(path)
    write("embedding", None)
    assert read_progress(path) == Progress("embedding", None)
    fraction_of(prefixed(write, "1 of 2"), "UMAP's layout")(1.0)
    assert read_progress(path) == Progress("1 of 2: UMAP's layout", 1.0)
    with path.open("a") as file:
        file.write('{"stage": "cut in the mid')
    assert read_progress(path) == Progress("1 of 2: UMAP's layout", 1.0)


def test_a_stage_is_written_at_most_ten_times_a_second_and_its_end_always(tmp_path: Path) -> None:
    write = ProgressFile(tmp_path / "progress")
    for done in range(10_001):
        write("rows", done / 10_000)
    lines = (tmp_path / "progress").read_text().splitlines()
    assert len(lines) < 5_000
    assert read_progress(tmp_path / "progress") == Progress("rows", 1.0)


def test_a_stretch_begins_where_fractions_start_to_rise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = ProgressFile(tmp_path / "progress")
    starts = []
    reports = [("starting", None), ("decoding", 0.0), ("decoding", 1.0), ("epoch 3 of 4", 0.6), ("epoch 4 of 4", 0.9)]
    for at, report in enumerate(reports):
        monkeypatch.setattr(time, "time", lambda at=at: 100.0 + at)
        write(*report)
        starts.append((now := read_progress(tmp_path / "progress")) and (now.since, now.begun))
    assert starts == [(100.0, 0.0), (101.0, 0.0), (101.0, 0.0), (103.0, 0.6), (103.0, 0.6)]


def test_lines_that_are_no_progress_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    good = '{"stage": "rows", "fraction": 7}\n'
    path.write_text(good + 'null\n[1]\n{"fraction": 0.5}\n{"stage": "x", "fraction": "half"}\n\n')
    assert read_progress(path) == Progress("rows", 1.0)
    path.write_text('{"stage": "rows", "fraction": NaN}\n')
    assert read_progress(path) == Progress("rows", None)


def test_work_goes_on_where_nothing_can_be_written(tmp_path: Path) -> None:
    ProgressFile(tmp_path / "missing" / "progress")("rows", 0.5)
    assert read_progress(tmp_path / "missing" / "progress") is None
