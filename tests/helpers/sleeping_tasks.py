"""Tasks whose processes sleep, for tests of what waits for them and what ends them."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contrastive_core.base import json_files
from contrastive_core.base.lock import process_start
from contrastive_core.engine import process, queue


@contextmanager
def sleeping_tasks(patch: pytest.MonkeyPatch, names: list[str] | None = None) -> Iterator[Callable[[], None]]:
    """Inside, a task is a process that sleeps; `names` gets its name. The function that is given ends all of them."""
    children: list[subprocess.Popen[bytes]] = []

    def spawn(name: str, arguments: list[str], **about: Any) -> None:
        if names is not None:
            names.append(name)
        if name == queue.RUNNER:
            return
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        children.append(child)
        process._children[child.pid] = child
        about |= {"pid": child.pid, "started": process_start(child.pid), "time": time.time()}
        process.folder().mkdir(parents=True, exist_ok=True)
        json_files.write_json(process.folder() / f"{name}.json", {**about, "command": arguments})

    def end() -> None:
        for child in children:
            child.kill()
            child.wait()

    patch.setattr(process, "spawn", spawn)
    try:
        yield end
    finally:
        end()
