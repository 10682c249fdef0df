"""A run's metrics are read on from where the last look ended, however long the run is."""

import builtins
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contrastive_core import runs
from contrastive_core.runs import run_metrics
from contrastive_core.runs.run_metrics import KEPT, LAST, MetricsReader


def step(number: int) -> dict[str, Any]:
    return {"step": number, "epoch": number // 100, "loss": 1 / number, "images_per_s": 10.0}


def epoch(number: int) -> dict[str, Any]:
    return {"epoch": number, "step": 100 * number, "loss": 0.5, "seconds": 1.0, "knn_train_sample": 0.9}


def test_what_it_gives_is_what_the_run_has() -> None:
    run = runs.create("short", {"method": "simclr"})
    reader = MetricsReader(run.path / "metrics.jsonl")
    assert reader.update().steps == []
    run.append_metrics([step(1), step(2), epoch(1)])
    reader.update()
    run.append_metrics([step(3), epoch(2)])
    reader.update()
    assert reader.steps == reader.latest == [step(1), step(2), step(3)]
    assert reader.epochs == [epoch(1), epoch(2)]
    assert [*reader.steps[:2], *reader.epochs[:1], *reader.steps[2:], *reader.epochs[1:]] == (run.metrics())


def test_a_second_look_reads_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(step(n)) + "\n" for n in range(1, 5001)))
    reader = MetricsReader(path).update()
    read: list[bytes] = []
    monkeypatch.setattr(run_metrics, "_object", lambda line: read.append(line))
    reader.update()
    assert read == []
    with path.open("a") as file:
        file.write(json.dumps(epoch(50)) + "\n")
    reader.update()
    assert len(read) == 1


def test_of_a_long_run_a_bounded_part_is_kept_and_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, number = tmp_path / "metrics.jsonl", 50_000
    with path.open("w") as file:
        for n in range(1, number + 1):
            file.write(json.dumps(step(n)) + "\n")
            if n % 1000 == 0:
                file.write(json.dumps(epoch(n // 1000)) + "\n")
    parsed = 0
    loads = json.loads

    def counted(line: bytes, **more: Any) -> Any:
        nonlocal parsed
        parsed += 1
        return loads(line, **more)

    monkeypatch.setattr(run_metrics.json_files.json, "loads", counted)
    reader = MetricsReader(path).update()
    assert KEPT / 2 <= len(reader.steps) <= KEPT
    assert [x["epoch"] for x in reader.epochs] == list(range(1, 51))
    assert [x["step"] for x in reader.latest] == list(range(number - LAST + 1, number + 1))
    at = [x["step"] for x in reader.steps]
    assert at[0] == 1
    assert len({b - a for a, b in pairwise(at)}) == 1  # spread evenly
    assert at[-1] > 0.98 * number
    assert parsed < 10 * KEPT


def test_torn_cut_and_replaced_files(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    reader = MetricsReader(path)
    whole = json.dumps(step(1)) + "\n"
    path.write_text(whole + '{"step": 2, "images_')
    assert [x["step"] for x in reader.update().steps] == [1]
    with builtins.open(path, "a") as file:
        file.write('per_s": 1.0}\nnull\n{broken\n')
    assert [x["step"] for x in reader.update().steps] == [1, 2]
    path.write_text(whole)  # cut back to a state
    assert [x["step"] for x in reader.update().steps] == [1]
    other = tmp_path / "other"
    other.write_text("".join(json.dumps(step(n)) + "\n" for n in (7, 8, 9)))
    other.replace(path)
    assert [x["step"] for x in reader.update().steps] == [7, 8, 9]
    path.unlink()
    assert reader.update().steps == []
