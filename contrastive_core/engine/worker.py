"""The worker: a warm process that computes results for pages, several at once in threads.

It reads requests as pickles from standard input and writes replies to standard output; both ends are this library's own
processes. It ends with its parent process, and after some idle time, which frees its memory.

joblib's loky is unsuitable: its worker makes one call at a time and ends when its memory has grown by 300 MB.
`multiprocessing` imports the program's main module again, which does not exist under Streamlit.

    python -m contrastive_core.engine.worker"""

import contextlib
import importlib
import os
import pickle
import sys
import threading
import time
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, BinaryIO

from contrastive_core.base.memory import limit_own_data, most_memory
from contrastive_core.base.progress import OnProgress
from contrastive_core.engine.client import DONE, FAILED, PROGRESS, TOO_LARGE, NeedsMemory, Request, Stop, Stopped

IDLE = 600.0  # seconds without a request after which the process ends to free its memory
WARM = (  # imported while idle
    "torch contrastive_core.lab.batch contrastive_core.lab.view contrastive_core.engine.answers.previews "
    "contrastive_core.samples.run_samples contrastive_core.compare.evaluate sklearn.linear_model umap"
).split()
STEP = 0.1  # seconds between two reports of one stage

_import_lock = threading.RLock()  # circular imports in two threads can see incomplete modules


@dataclass
class Worker:
    """The running requests, and the pipe for replies."""

    replies: BinaryIO
    at_work: set[int] = field(default_factory=set)
    stopped: set[int] = field(default_factory=set)
    last_request: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, requests: BinaryIO) -> None:
        """Answer requests until the client closes the pipe."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                request = pickle.load(requests)
                self.last_request = time.monotonic()
                if isinstance(request, Stop):
                    self.stopped.add(request.number)
                else:
                    self.at_work.add(request.number)
                    threading.Thread(target=self._answer, args=(request,), daemon=True).start()

    def end_when_idle(self) -> None:
        """End the process after `IDLE` seconds without a running request."""
        while self.at_work or time.monotonic() - self.last_request < IDLE:
            time.sleep(1.0)
        os._exit(0)

    def import_libraries(self) -> None:
        """Import what requests need. A request has priority and imports its own modules."""
        for name in WARM:
            while self.at_work:
                time.sleep(STEP)
            with contextlib.suppress(Exception):  # a request that needs it gets the error
                _import(name)

    def _answer(self, request: Request) -> None:
        try:
            os.environ.update(request.environment)
            module, _, name = request.function.partition(":")
            function = getattr(_import(module), name)
            function = getattr(function, "body", function)  # of `in_worker`
            progress = [self._progress(request.number)] if request.reports else []
            reply = (DONE, function(*request.arguments, *progress))
        except BaseException as error:
            # torch says only in its message that no more memory is available
            is_full = isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error)
            reply = (FAILED, NeedsMemory(TOO_LARGE) if is_full else error)
        self.last_request = time.monotonic()
        self._reply(request.number, *reply)
        self.at_work.discard(request.number)
        self.stopped.discard(request.number)

    def _progress(self, number: int) -> OnProgress:
        """Return an `OnProgress` that reports to the client and raises `Stopped` once the client has asked for it."""
        last_stage, last_time = "", 0.0

        def on_progress(stage: str, fraction: float | None, /) -> None:
            nonlocal last_stage, last_time
            if number in self.stopped:
                raise Stopped
            now = time.monotonic()
            if stage != last_stage or now - last_time >= STEP or fraction == 1.0:
                last_stage, last_time = stage, now
                self._reply(number, PROGRESS, (stage, fraction))

        return on_progress

    def _reply(self, number: int, kind: str, value: Any) -> None:
        try:
            message = pickle.dumps((number, kind, value))
            pickle.loads(message) if isinstance(value, BaseException) else None
        except Exception as error:  # the value cannot be sent
            what = value if isinstance(value, BaseException) else error
            message = pickle.dumps((number, FAILED, RuntimeError(f"{type(what).__name__}: {what}")))
        with self._lock:
            self.replies.write(message)
            self.replies.flush()


def main() -> None:
    """Serve the process that started this one."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with replies
    limit_own_data(most_memory())
    worker = Worker(replies)
    for task in (worker.end_when_idle, worker.import_libraries):
        threading.Thread(target=task, daemon=True).start()
    worker.serve(sys.stdin.buffer)
    os._exit(0)  # the client has ended, so do not wait for the threads


def _import(name: str) -> ModuleType:
    with _import_lock:
        return importlib.import_module(name)


if __name__ == "__main__":
    main()
