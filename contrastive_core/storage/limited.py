"""A function called in a child process with capped memory and time: for files that come from
anybody. Torch-free.

What goes wrong there, a crash of a parser included, ends there and comes back as one sentence. The
function is named by its module, its arguments and its result are plain values; anything large goes
through files that the arguments name.

    python -m contrastive_core.storage.limited    (reads the call from standard input)
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from contrastive_core import errors
from contrastive_core.errors import Refused
from contrastive_core.paths import ROOT

__all__ = ["Limits", "call_limited"]

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS")  # each maps a stack
SAID = "\0said "  # starts the line that holds the result


@dataclass(frozen=True)
class Limits:
    """What a child may take: bytes of memory beyond what its libraries map, seconds of processor
    time (and as many again to wait), bytes of a file it writes. `preload` are modules imported
    before memory is counted."""

    memory: int
    seconds: float = 300
    file: int = 8 << 30
    preload: tuple[str, ...] = ()


def call_limited(function: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """`function(*arguments)` in a process of its own.

    Args: function: of a module's top level; arguments: what JSON can hold, and paths.
    Returns: what it returns, through JSON.
    Raises: the error of `contrastive_core.errors`, or the OSError, that it raised; Refused for
    anything else, for a limit that was reached and for a child that died.
    """
    call = {
        "module": function.__module__, "function": function.__name__,
        "arguments": [str(a) if isinstance(a, Path) else a for a in arguments],
        "limits": asdict(limits),
    }  # fmt: skip
    try:
        completed = subprocess.run(
            [sys.executable, "-m", "contrastive_core.storage.limited"],
            cwd=ROOT,
            env={**os.environ, **dict.fromkeys(THREADS, "1")},
            input=json.dumps(call),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=2 * limits.seconds,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"it took over {2 * limits.seconds:.0f} s") from None
    answers = [line for line in completed.stdout.splitlines() if line.startswith(SAID)]
    if not answers:
        raise Refused("the process that opened it died: it is damaged, or needs too much memory")
    result = json.loads(answers[-1].removeprefix(SAID))
    if "error" in result:
        raise _error(result["error"], result["message"])
    return result["value"]


def _error(kind: str, message: str) -> Exception:
    """The error of that name, if it is one of ours or of the operating system."""
    error_type = getattr(errors, kind, None) if kind in errors.__all__ else None
    if error_type is None and kind in ("FileNotFoundError", "IsADirectoryError", "PermissionError"):
        error_type = {
            e.__name__: e for e in (FileNotFoundError, IsADirectoryError, PermissionError)
        }[kind]
    return error_type(message) if error_type else Refused(message)


# --- in the child ------------------------------------------------------------------------------


def _main() -> None:
    call = json.load(sys.stdin)
    limits = Limits(**call["limits"])
    for name in (call["module"], *limits.preload):
        importlib.import_module(name)
    _cap(limits)
    try:
        function = getattr(sys.modules[call["module"]], call["function"])
        result = {"value": function(*call["arguments"])}
    except MemoryError:
        result = {"error": "Refused", "message": "it needs more memory than opening it may take"}
    except Exception as error:
        kind = type(error).__name__
        ours = kind in errors.__all__ or isinstance(error, OSError)
        text = " ".join(str(error).split())[:10_000]
        result = {"error": kind, "message": text if ours else f"{kind}: {text}"}
    print(f"\n{SAID}{json.dumps(result)}", flush=True)


def _cap(limits: Limits) -> None:
    """No more memory than is mapped by now plus the limit; no long work, no large file."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    with contextlib.suppress(OSError, ValueError):
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + limits.memory,) * 2)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(limits.seconds) + 1,) * 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file,) * 2)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _main()
