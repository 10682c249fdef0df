"""Imports as tasks: a checkpoint from elsewhere becomes a run, whatever becomes of its page. A training that starts
from a run in the making waits for it (cli/train.py). Torch-free."""

import time
from collections.abc import Sequence
from itertools import pairwise

from contrastive_core.engine import client, process, training
from contrastive_core.engine.training import Task
from contrastive_core.errors import BadSetting, NoSuchRun
from contrastive_core.messages import message
from contrastive_core.paths import runs_home
from contrastive_core.progress import OnProgress, prefixed
from contrastive_core.records import runs
from contrastive_core.storage.json_files import JsonObject

POLL_SECONDS = 0.5


def preview(*arguments: str) -> JsonObject:
    """What an import with these arguments would make. Raises: ValueError, OSError with the reason why it cannot."""
    return dict(client.call("contrastive_core.cli.import_checkpoint:preview", *arguments))


def begin(name: str, arguments: Sequence[str]) -> None:
    """Import as a run of this name, in a process of its own.
    Args: arguments: of the command line after `import`, without `--run`. Raises: BadName; FileExistsError when the
    name is taken, also by what is about to be a run."""
    runs.check_free(name)
    if training.is_taken(name):
        raise FileExistsError(message("a run {name} is being made; choose another name", name=f"{name!r}"))
    _task(name, ("import", *arguments, "--run", name)).start(label=message("Importing {name}", name=name))


def task_of(name: str) -> Task | None:
    """The import that was begun last under a name; None where none was."""
    words = record["command"] if (record := process.record_of(name)) else []
    return _task(name, tuple(words)) if words[:1] == ["import"] else None


def at_work() -> list[str]:
    """The names of the runs that are being made."""
    return [name for name in process.keys_of("import") if process.pid_of(name)]


def wait_for(name: str, on_progress: OnProgress) -> None:
    """Wait while a run is being made by an import. Raises: BadSetting where it did not come about, with the reason."""
    task = task_of(name)
    while task and (now := task.progress()):
        prefixed(on_progress, name)(now.stage, now.fraction)
        time.sleep(POLL_SECONDS)
    try:
        runs.load(name)
    except NoSuchRun:
        if task and (why := task.failure()):
            raise BadSetting("{name}, to start from, was not imported: {why}", name=name, why=why) from None
        raise


def waited_for(training_name: str) -> Task | None:
    """Return the running import that the training of that name starts from, or None."""
    words = record["command"] if (record := process.record_of(training_name)) else []
    starts = [b for a, b in pairwise(words) if a == "--start"]
    task = task_of(starts[-1]) if starts else None
    return task if task and task.is_running() else None


def _task(name: str, arguments: tuple[str, ...]) -> Task:
    """Its result, the run's weights, is the last but the run's status."""
    return Task(name, arguments, runs_home() / name / "weights.safetensors")
