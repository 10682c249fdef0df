"""Function calls in a child process with limited memory and time: the one place that opens foreign files.

If a parser crashes, only the child dies, and the caller gets a message. The function is given by its module and name;
arguments and results are JSON. Large data go through files named in the arguments.
loky and `concurrent.futures` send pickles, and one crash breaks their whole pool.

    python -m contrastive_core.base.sandbox    (reads calls as lines of JSON)"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from contrastive_core.base.errors import LabError, Refused
from contrastive_core.base.memory import HAS_LIMITS, MemoryWatch, most_memory
from contrastive_core.base.messages import N_
from contrastive_core.base.storage import ROOT

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS")  # each thread maps memory for a stack
ANSWER = "\0answer "  # starts a line that holds a result
TOO_LARGE = N_("opening it needs more memory than is allowed")
CRASHED = N_("the process that opened it crashed: the file is damaged or needs too much memory")
OURS = {error.__name__: error for error in LabError.__subclasses__()}  # errors that are raised unchanged


class Crashed(Refused):
    """The child process died."""


@dataclass(frozen=True)
class Limits:
    """Limits of a child process: bytes of memory beyond its loaded libraries, at most half of the machine's; seconds of
    CPU time per call (twice as many of waiting); bytes per written file. `preload` lists modules to import before
    memory is measured."""

    memory: int
    seconds: float = 300
    file: int = 8 << 30
    preload: tuple[str, ...] = ()


def run_sandboxed(function: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """Run `function(*arguments)` in a child process and return its result, passed as JSON.
    Args: function: a top-level function of a module; arguments: JSON values and paths.
    Raises: errors of `contrastive_core.base.errors` and OSError as in the child; Refused for other errors, for an
    exceeded limit and for a crash."""
    with contextlib.closing(Sandbox(function, limits)) as sandbox:
        return sandbox.call(*arguments)


class Sandbox:
    """A child process that calls one function repeatedly and is restarted after a crash."""

    def __init__(self, function: Callable[..., Any], limits: Limits | None = None) -> None:
        self._memory = min(limits.memory, most_memory()) if limits else most_memory()
        self._start = [function.__module__, function.__name__, limits and {**asdict(limits), "memory": self._memory}]
        self._patience = 2 * limits.seconds if limits else threading.TIMEOUT_MAX
        self._process: subprocess.Popen[str] | None = None
        self._watch: MemoryWatch | None = None

    def call(self, *arguments: Any) -> Any:
        """Call the function once. Raises: Crashed if the child died; otherwise like `run_sandboxed`."""
        is_late = threading.Event()
        try:
            process = self._process or self._begin()

            def end() -> None:
                is_late.set()
                process.kill()

            timer = threading.Timer(self._patience, end)
            timer.daemon = True
            timer.start()
            try:
                answer = self._ask(process, [str(a) if isinstance(a, Path) else a for a in arguments])
            finally:
                timer.cancel()
        except (OSError, ValueError):
            is_large = self._watch is not None and self._watch.is_exceeded
            self.close()
            if is_large:
                raise Refused(TOO_LARGE) from None
            if is_late.is_set():
                raise Refused("it took over {seconds} s", seconds=f"{self._patience:.0f}") from None
            raise Crashed(CRASHED) from None
        if "errno" in answer:
            raise OSError(answer["errno"], answer["strerror"], answer["filename"])
        if "error" in answer:
            ours: type[Exception] = OURS.get(answer["error"], Refused)
            raise ours(answer["message"])
        return answer["value"]

    def close(self) -> None:
        """End the child process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _begin(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "contrastive_core.base.sandbox"],
            cwd=ROOT,
            env={**os.environ, **dict.fromkeys(THREADS, "1")},
            text=True,
            errors="replace",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._watch = MemoryWatch(self._process, self._memory, not HAS_LIMITS)
        self._send(self._process, self._start)
        return self._process

    def _ask(self, process: subprocess.Popen[str], arguments: list[Any]) -> dict[str, Any]:
        self._send(process, arguments)
        assert process.stdout is not None
        while line := process.stdout.readline():
            if line.startswith(ANSWER):
                answer: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                return answer
        raise ValueError(N_("no answer"))

    def _send(self, process: subprocess.Popen[str], value: object) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(value) + "\n")
        process.stdin.flush()


# --- in the child ------------------------------------------------------------------------------


def _main() -> None:
    """Read a function from the first input line and call it with the arguments in each further line."""
    module, name, limits = json.loads(sys.stdin.readline())
    function = getattr(importlib.import_module(module), name)
    if limits:
        for library in limits["preload"]:
            importlib.import_module(library)
        _cap(Limits(**limits))
    for line in sys.stdin:
        if limits:  # from now on
            with contextlib.suppress(ImportError, OSError, ValueError):
                import resource

                most = int(time.process_time() + limits["seconds"]) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        print(f"\n{ANSWER}{json.dumps(_answer(function, json.loads(line)))}", flush=True)


def _answer(function: Callable[..., Any], arguments: list[Any]) -> dict[str, Any]:
    try:
        return {"value": function(*arguments)}
    except MemoryError:
        return {"error": "Refused", "message": TOO_LARGE}
    except Exception as error:
        kind = type(error).__name__
        text = " ".join(str(error).split())[:10_000]
        answer: dict[str, Any] = {"error": kind, "message": text if kind in OURS else f"{kind}: {text}"}
        if isinstance(error, OSError) and error.errno is not None:
            filename = None if error.filename is None else str(error.filename)
            answer |= {"errno": error.errno, "strerror": error.strerror or "", "filename": filename}
        return answer


def _cap(limits: Limits) -> None:
    """Limit this process's memory to its current size plus the limit, and the size of the files that it writes."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    with contextlib.suppress(OSError, ValueError):
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + limits.memory,) * 2)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file,) * 2)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _main()
