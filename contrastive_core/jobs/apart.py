"""What a page needs at once and only torch can say: computed in a process apart from the server,
which never imports torch (550 MB that no closed tab would give back).

One process for all pages, started when it is first asked and ended when nobody has for a while. It
is joblib's (loky): it needs no main module that it could import again, which Streamlit does not
have, and one that was killed is replaced. What takes longer than a moment is a task (task.py).
Torch-free.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psutil

from contrastive_core.jobs.task import KILLED

__all__ = ["call"]

IDLE = 300  # seconds without a question, after which it ends and its memory is free
OURS = "CONTRASTIVE_LAB_"  # variables that say where runs and caches lie

R = TypeVar("R")


def call(function: Callable[..., R], *arguments: Any) -> R:
    """What a function returns, or raises, in that process.

    Args: function: one that its module has by its name; arguments: what pickle can hand over.
    Raises: ValueError where the process was ended from outside, or had too little memory.
    """
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    process = get_reusable_executor(
        max_workers=1, timeout=IDLE, initializer=_end_with, initargs=(os.getpid(),)
    )
    ours = {name: value for name, value in os.environ.items() if name.startswith(OURS)}
    try:
        answer: R = process.submit(_in, ours, function, arguments).result()
    except BrokenProcessPool:
        raise ValueError(KILLED) from None
    return answer


def _in(environment: dict[str, str], function: Callable[..., R], arguments: tuple[Any, ...]) -> R:
    """Call it with the asker's homes, which may be others than at the start."""
    os.environ.update(environment)
    return function(*arguments)


def _end_with(asker: int) -> None:
    """End with the process that asks, however that ends; loky would wait for the idle time."""

    def wait() -> None:
        try:
            process = psutil.Process(asker)
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                time.sleep(1)
        finally:
            os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
