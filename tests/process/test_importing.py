"""Imports as tasks: names that are taken, and a training that waits for the run it starts from."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sleeping_tasks import sleeping_tasks

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, NoSuchRun
from contrastive_core.base.progress import ProgressFile
from contrastive_core.engine import process, queue, training


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Tasks are processes that sleep; called, it ends them."""
    with sleeping_tasks(monkeypatch) as end:
        yield end


def test_a_name_is_taken_while_its_run_is_being_made(kill: Callable[[], None]) -> None:
    training.start_import("w", ["w.pt"])
    task = training.import_of("w")
    assert task is not None
    assert task.arguments == ("import", "w.pt", "--run", "w")
    assert training.importing() == ["w"]
    assert queue.free_name("w") == "w-2"
    for name in ("w", "simclr-digits"):
        with pytest.raises(FileExistsError, match="choose another name"):
            training.start_import(name, ["w.pt"])
    kill()
    assert training.importing() == []
    assert training.import_of("other") is None


def test_a_training_waits_for_the_run_it_starts_from(
    kill: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    training.start_import("w", ["w.pt"])
    ProgressFile(process.progress_path("w"))("decoding", 0.5)
    process.spawn("t", ["train", "--start", "w"])
    assert (task := training.import_waited_for("t"))
    assert task.key == "w"

    heard: list[tuple[str, float | None]] = []

    def over(*told: Any) -> None:
        heard.append(told)
        kill()
        runs.create("w", {"method": "simclr"})

    monkeypatch.setattr(training, "POLL_SECONDS", 0.0)
    training.wait_for_import("w", over)
    assert heard == [("w: decoding", 0.5)]
    assert training.import_waited_for("t") is None


def test_a_run_that_did_not_come_about_is_said_with_the_reason(kill: Callable[[], None]) -> None:
    training.start_import("w", ["w.pt"])
    kill()
    (process.folder() / "w.log").write_text("error: w.pt cannot be opened\n")
    with pytest.raises(BadSetting, match=r"the run to start from, w, was not imported: w\.pt cannot be"):
        training.wait_for_import("w", lambda *_: None)
    with pytest.raises(NoSuchRun):
        training.wait_for_import("nobody", lambda *_: None)
