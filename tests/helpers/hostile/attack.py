"""One attack on one group of readers, in a process of its own with little memory.

    python tests/helpers/hostile/attack.py GROUP FOLDER COUNT    (prints the outcome as JSON)

Every file is made whole, then read COUNT times with a mutation drawn from a fixed seed, and once
for each structure that its kind can be given. What is read makes sense or is refused with a
sentence; an audit hook watches that no other program is started, nobody is called, and nothing is
written outside of the folder.
"""

import importlib
import json
import os
import random
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MEMORY = 1 << 30  # bytes beyond what the libraries map
FORBIDDEN = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "socket.connect",
    "socket.getaddrinfo",
    "shutil.rmtree",
    "os.remove",
)


@dataclass(frozen=True)
class Target:
    """A file, how it is read, and what else than ValueError and OSError may refuse it."""

    path: Path
    read: Callable[[], Any]
    refusals: tuple[type[BaseException], ...] = (ValueError, OSError)
    structures: tuple[bytes, ...] = ()


@dataclass
class Outcome:
    """What became of the files, and of what nothing should have come."""

    refused: int = 0
    read: int = 0
    faults: list[str] = field(default_factory=list)

    def attack(self, target: Target, count: int) -> None:
        from mutation import mutated

        whole, rng = target.path.read_bytes(), random.Random(target.path.name)
        for data in (*target.structures, *(mutated(whole, rng) for _ in range(count))):
            target.path.write_bytes(data)
            try:
                target.read()
                self.read += 1
            except target.refusals as error:
                self.refused += 1
                if isinstance(error, (ValueError, OSError)) and not str(error).strip():
                    self.faults.append(f"{target.path.name}: {type(error).__name__} says nothing")
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"[:200]
                self.faults.append(f"{target.path.name}: {said} for {data[:80]!r}")
        target.path.write_bytes(whole)


def watch(folder: Path, outcome: Outcome) -> None:
    """Note whatever no reader may do."""
    home = os.path.realpath(folder)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(FORBIDDEN) and not str(arguments[:1]).startswith(f"('{home}"):
            outcome.faults.append(f"{event} {arguments!r}"[:300])
        if event != "open" or not isinstance(arguments[0], (str, bytes)):
            return
        path, _, flags = arguments
        writes = (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        inside = os.path.realpath(os.fsdecode(path)).startswith((home, "/dev/null"))
        if writes and not inside and "__pycache__" not in os.fsdecode(path):
            outcome.faults.append(f"written: {path!r}")

    sys.addaudithook(hook)


def main(group: str, folder: Path, count: int) -> Outcome:
    targets: Iterator[Target] = importlib.import_module(f"hostile.{group}").targets(folder)
    ready = list(targets)  # imports and whole files come before memory is counted
    for target in ready:
        target.read()
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY,) * 2)
    outcome = Outcome()
    watch(folder, outcome)
    for target in ready:
        outcome.attack(target, count)
    return outcome


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]
    print(json.dumps(asdict(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))))
