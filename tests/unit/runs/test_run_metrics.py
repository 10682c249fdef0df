"""Metrics are read on from where the last look ended; a training that has turned says so in time."""

import builtins
import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from cases import cases

from contrastive_core.runs import create, run_metrics
from contrastive_core.runs.run_metrics import KEPT, LAST, LEAST, WINDOW, MetricsReader, fall, turned
from contrastive_core.train.loop import MetricsLog
from contrastive_core.train.setup import TrainSetup
from contrastive_core.train.state import TrainPosition


def step(number: int) -> dict[str, Any]:
    return {"step": number, "epoch": number // 100, "loss": 1 / number, "images_per_s": 10.0}


def epoch(number: int) -> dict[str, Any]:
    return {"epoch": number, "step": 100 * number, "loss": 0.5, "seconds": 1.0, "knn_train_sample": 0.9}


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


def plateau(steps: int) -> np.ndarray:
    return 0.8 - 0.6 * np.exp(-np.arange(steps) / 8)


@cases("correlation", [None, 0.0, 0.5])
def test_false_alarms_in_whole_trainings(correlation: float | None) -> None:
    """At most 5 of 100, each looked at after every step; None: shares of 256 rows that differ from step to step."""
    rng, steps, alarms = np.random.default_rng(0), 60, 0
    for _ in range(100):
        if correlation is None:
            x, n = rng.binomial(256, plateau(steps)) / 256, None
        else:
            noise = np.zeros(steps)
            for i in range(1, steps):
                noise[i] = correlation * noise[i - 1] + rng.normal() * 0.01 * (1 - correlation**2) ** 0.5
            x, n = plateau(steps) + noise, 1000
        alarms += any(fall(x[:t].tolist(), n, LEAST) for t in range(4 * WINDOW, steps + 1))
    assert alarms <= 5


def test_a_fall_is_told_with_its_steps() -> None:
    rng, steps = np.random.default_rng(0), np.arange(60)
    shares = plateau(60) - 0.005 * np.clip(steps - 30, 0, None)
    lines = [{"step": 10 * i, "probe_knn": rng.binomial(2000, p) / 2000} for i, p in enumerate(shares)]
    first = next(t for t in range(61) if turned(lines[:t], 2000))
    assert 35 < first <= 52  # a fall of 10 points in noise of 1
    text = str(turned(lines, 2000))
    assert text.startswith("kNN of the probe set was best at step ")
    assert text.endswith("% by step 590")
    assert not turned(lines[:30], 2000)


def test_a_fall_of_fewer_rows_than_chance_moves_is_none() -> None:
    x = [0.75] * 30 + [0.70] * 10
    assert fall(x) is not None
    assert fall(x, n=40) is None


def test_without_labels_rank_and_uniformity_count_together() -> None:
    def lines(rank: float, uniformity: float) -> list[dict[str, float]]:
        return [
            {"step": i, "rankme": rank if i > 20 else 40.0, "uniformity": uniformity if i > 20 else -3.0}
            for i in range(30)
        ]

    assert "effective rank was 40.0 at step" in str(turned(lines(5.0, -0.5)))
    assert not turned(lines(5.0, -3.0))  # rows are as uniform as before
    assert not turned(lines(30.0, -0.5))
    assert not turned([{"step": i} for i in range(30)])


def test_a_run_of_the_app_says_so_in_its_status() -> None:
    """Its kNN of the training sample rises for ten epochs and falls for ten, also where it is resumed between."""
    setup = Mock(spec=TrainSetup, world=SimpleNamespace(is_rank0=True), loss=None, device=torch.device("cpu"))
    setup.method = SimpleNamespace(card=SimpleNamespace(needs_labels=True))
    setup.config = SimpleNamespace(epochs=20)
    setup.sample = SimpleNamespace(labels=np.arange(1000) % 10)
    run = create("falls", {})
    knn = [*np.linspace(0.4, 0.9, 10), *np.linspace(0.85, 0.4, 10)]
    for begin, end in ((0, 12), (12, 20)):
        log = MetricsLog(setup, run, lambda lines: None)
        log.start(TrainPosition(epoch=begin, step=begin), "")
        for epoch in range(begin, end):
            log.epoch(TrainPosition(epoch=epoch, step=epoch + 1), {"knn_train_sample": knn[epoch]})
        log.status("running")
    status = run.status()
    assert status["is_warned"]
    assert "kNN of the training sample was best at epoch 10" in str(status["note"])
