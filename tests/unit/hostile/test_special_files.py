"""Pipes, devices, links, folders and sparse files in place of the files of a run: no reader waits for one."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile.run_files import broken_run

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import NotRegular
from contrastive_core.base.storage import open_regular
from contrastive_core.runs import checkpoints, run_metrics
from contrastive_core.runs.run import Run

SECONDS = 20.0
SPARSE = 6 << 30


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def folder(path: Path) -> None:
    path.mkdir()


def circle(path: Path) -> None:
    path.symlink_to(path)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"step": 1')
        file.truncate(SPARSE)


KINDS = (pipe, endless, terminal, folder, circle, sparse)
FILES = ("run.json", "status.json", "meta.json", "metrics.jsonl", "weights.safetensors")
STATES = ("state/000001.sha256", "state/000001.json", "state/000001.safetensors", "snapshots/epoch-0001.npz")


def reads(run: Run) -> list[Callable[[], Any]]:
    """All that a page or a training reads of a run."""
    metrics = run_metrics.MetricsReader(run.path / "metrics.jsonl")
    return [
        runs.list_runs,
        run.status,
        run.meta,
        run.metrics,
        run.weights_hash,
        metrics.update,
        lambda: metrics.update().epochs,
        lambda: run_metrics.cost_of(run),
        lambda: run_metrics.labeled_images(run),
        lambda: checkpoints.load_weights(run),
        lambda: checkpoints.load_state(run),
        lambda: run.snapshot(1),
        lambda: run.set_meta(note="again"),
        lambda: run.set_status("done"),
    ]


def in_time(read: Callable[[], Any]) -> None:
    """The read ends, with a value or a sentence."""
    faults: list[BaseException] = []

    def call() -> None:
        try:
            read()
        except (ValueError, OSError) as error:
            faults.extend([error] * (not str(error)))
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "it waits"
    assert not faults, faults


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES + STATES)
def test_no_reader_of_a_run_waits(
    kind: Callable[[Path], None], name: str, record_property: Callable[..., None]
) -> None:
    run = broken_run("attacked")
    runs.create("healthy", run.config)
    checkpoints.save_state(run, {"x": torch.ones(3)}, {"place": {"epoch": 1}})
    arrays = {"h": np.ones((3, 2)), "z": np.ones((3, 2)), "index": np.arange(3), "labels": np.arange(3)}
    run.save_snapshot(1, **arrays)
    (run.path / name).unlink()
    kind(run.path / name)
    every = reads(run)
    for read in every:
        in_time(read)
    assert "healthy" in {other.name for other in runs.list_runs()}
    record_property("hostile", ["special files", 0, len(every)])


def test_a_sparse_file_is_refused_and_a_whole_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    sparse(path)
    with pytest.raises(NotRegular, match="stores only"):
        open_regular(path)
    path.write_bytes(bytes(1000))
    assert open_regular(path).read() == bytes(1000)


def test_a_metrics_file_of_one_endless_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"epoch": 1, "loss": 1}\n' + b"x" * (40 << 20) + b'\n{"epoch": 2, "loss": 1}\n')
    reader = run_metrics.MetricsReader(path).update()
    assert [line["epoch"] for line in reader.epochs] == [1, 2]
    json_files.append_lines(path, [{"epoch": 3, "loss": 1}])
    assert [line["epoch"] for line in reader.update().epochs] == [1, 2, 3]
