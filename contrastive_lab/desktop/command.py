# PYTHON_ARGCOMPLETE_OK
"""`contrastive-lab [THING]`: open the app in a window, or run a command of `python -m contrastive_core`.

A thing is a run, a folder of images, a file of vectors, a checkpoint or a sweep. `recognize` looks only at names and is
quick; `prepare` does the rest while the server starts. One that cannot be opened gives a one-sentence error."""

import argparse
import contextlib
import os
import platform
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

from contrastive_core import runs
from contrastive_core.base import storage
from contrastive_core.base.errors import Locked, NoSuchRun, sentence_of
from contrastive_core.base.local_processes import handled_signals
from contrastive_core.base.messages import printable
from contrastive_core.base.storage import BUNDLE, FileStamp, file_stamp, is_regular, read_regular, runs_home
from contrastive_core.cli import main as core
from contrastive_core.cli.command_io import print_note
from contrastive_core.cli.main import (
    COMMANDS,
    LABELS,
    LEAVE_OUT,
    OF_FILE,
    OTHER,
    PICTURES,
    Command,
    Parser,
    error_line,
    option,
)
from contrastive_core.data.image_decoding import ENDINGS
from contrastive_core.engine.run_folders import own_run
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.loaded_vectors import open_vectors, other_tower
from contrastive_core.sweeps import sweep_file
from contrastive_lab import path_input
from contrastive_lab.desktop import serving
from contrastive_lab.desktop.serving import Server

PROGRAM = "contrastive-lab"
PACKAGES = (PROGRAM, "torch", "torchvision", "streamlit", "numpy", "pyarrow")  # whose versions matter


def _playground(args: argparse.Namespace) -> None:
    from contrastive_lab.playground.file import playground  # its imports take seconds

    playground(args)


COMMANDS["playground"] = Command(
    _playground,
    "write an HTML page that trains an encoder in the browser while you drag its temperature",
    option(
        "path",
        nargs="?",
        default="digits",
        help="a folder of images, a file of vectors or a data set (default: digits)",
    ),
    option("--out", required=True, help="file to write, .html"),
)
NAMES = set(COMMANDS)
POLL = 1.0  # seconds between two looks at the server, or at what is at work


def main(argv: Sequence[str] | None = None) -> int:
    """Open the app, or run a command; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _complete()
    if arguments and arguments[0] in NAMES:
        signal.signal(signal.SIGTERM, core.stopped)  # until a training's loop listens
        return core.main(arguments, PROGRAM)
    args = parser().parse_args(arguments)
    try:
        with handled_signals(_interrupt):
            return _open(args)
    except KeyboardInterrupt:
        return 0
    except (ValueError, OSError, Locked) as error:
        sys.stderr.write(error_line(sentence_of(error)))
        return 2


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options for opening the app."""
    width = max(map(len, COMMANDS)) + 2
    commands = "\n".join(f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items())
    options = Parser(
        prog=PROGRAM,
        description="Open Contrastive Lab in a window. Its server accepts connections from this computer only.",
        epilog=f"commands (contrastive-lab COMMAND --help):\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    help = "run, folder of images, file of vectors, checkpoint or sweep file to open"
    thing = options.add_argument("thing", nargs="?", metavar="THING", help=help)
    thing.completer = _completions  # type: ignore[attr-defined]
    for flags, settings in (LABELS, LEAVE_OUT, PICTURES, *OTHER):
        options.add_argument(*flags, **settings)
    options.add_argument("--port", type=int, help="port of the server (default: any free port)")
    how = options.add_mutually_exclusive_group()
    how.add_argument("--browser", action="store_true", help="open the app in the browser instead of a window")
    how.add_argument("--no-window", action="store_true", help="only start the server and print its address")
    options.add_argument("--version", action="version", version=_versions())
    return options


# --- opening -------------------------------------------------------------------------------------


def _open(args: argparse.Namespace) -> int:
    thing = recognize(args.thing) if args.thing else None
    serving.check_homes()
    server = serving.begin(args.port)
    try:
        other = other_tower(args.other, args.towers, args.by)
        of_vectors = {"labels": args.labels, "leave_out": args.leave_out, "pictures": args.pictures, "other": other}
        place = prepare(thing, **of_vectors) if thing else "/"  # while it starts
        serving.wait_until_ready(server)
        _show(server, place, args)
    finally:
        serving.stop(server)
    return 0


def _show(server: Server, place: str, args: argparse.Namespace) -> None:
    """Show a window until it is closed, or print the address and wait for Ctrl-C."""
    address = f"{server.address}{place}{'&' if '?' in place else '?'}token={server.token}"
    print_note(f"Contrastive Lab is at {address}")
    with serving.redirecting(address) as link:
        wait = None
        if not args.no_window:
            try:
                wait = serving.open_window(address, link, args.browser)
            except ValueError as error:
                print_note(f"No window opens: {error}.")
        if wait is None:
            print_note("Ctrl-C ends it.")
            while server.is_alive():
                time.sleep(POLL)
            return
        wait()
        if names := serving.at_work():  # the window is closed: active runs keep the server
            print_note(
                f"Running: {', '.join(names[:5])}. The app stays open until they finish. Ctrl-C closes it, "
                "and the runs continue."
            )
        while serving.at_work():
            time.sleep(POLL)


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


# --- completion ----------------------------------------------------------------------------------


def _versions() -> str:
    lines = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            lines.append(f"{package} {metadata.version(package)}")
    return "\n".join(lines)


def _complete() -> None:
    """Answer a shell's request for completions, if this is one (the shell runs the command for it)."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 10**6)]
    words = [*line.split(), *([""] if line[-1:].isspace() else [])]
    is_command = len(words) > 2 and words[1] in NAMES
    argcomplete.autocomplete(core.parser(PROGRAM) if is_command else parser())


def _completions(prefix: str, **_: object) -> list[str]:
    """Return commands, runs and files that complete the typed text."""
    from argcomplete.completers import FilesCompleter

    names = [*COMMANDS, *(run.name for run in runs.list_runs())]
    return [*(n for n in names if n.startswith(prefix)), *FilesCompleter()(prefix)]


# --- things ----------------------------------------------------------------------------------------


CHECKPOINTS = (".pt", ".pth", ".tar", ".ckpt", ".safetensors")
KINDS = {
    **dict.fromkeys(file_formats.OPENED, "vectors"),
    **dict.fromkeys(CHECKPOINTS, "checkpoint"),
    ".toml": "sweep",
}  # of files, by their endings
EXPECTED = (
    f"expected a run, a folder of images, vectors ({', '.join(file_formats.OPENED)}), "
    f"a checkpoint ({', '.join(CHECKPOINTS)}) or a sweep (.toml)"
)
VECTORS = (
    "expected a row of numbers for each sample: an array (n, d) in .npy or .npz, columns of "
    "numbers in .csv, such columns or one of vectors in .parquet"
)
OF_RUNS = ("run.json", "status.json", "metrics.jsonl", "weights.safetensors")
PAUSE = 0.2  # seconds between two looks at a file that may be growing
DEPTH, ENTRIES = 3, 20_000  # of a folder, in which an image is looked for


@dataclass(frozen=True)
class Thing:
    """A target. `kind` is run, folder, vectors, checkpoint or sweep; a run's `path` is its folder."""

    kind: str
    path: Path


def recognize(name: str) -> Thing:
    """Recognize a name on the command line. Raises ValueError with the expected kinds."""
    path = Path(os.path.expanduser(name))
    if not os.path.lexists(path):
        if len(path.parts) > 1 or path.suffix.lower() in KINDS:
            raise ValueError(f"there is no {printable(name)}: {EXPECTED}")
        try:
            return Thing("run", runs.load(name).path.resolve())
        except NoSuchRun:
            raise ValueError(f"there is neither a run nor a file {printable(name)}: {EXPECTED}") from None
    if not path.is_dir() and not is_regular(path):
        raise ValueError(f"{printable(path)} is no ordinary file: {EXPECTED}")
    is_folder, path = path.is_dir(), path.resolve()
    if is_folder and os.path.lexists(path / "run.json"):
        return Thing("run", path)
    if file_formats.is_beir(path):
        return Thing("vectors", path)
    if is_folder and _has_images(path):
        return Thing("folder", path)
    if is_folder:
        raise ValueError(f"{printable(path)} holds neither a run (run.json) nor images: {EXPECTED}")
    if path.name in OF_RUNS and os.path.lexists(path.parent / "run.json"):
        return Thing("run", path.parent)
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{printable(path.name)} cannot be opened: {EXPECTED}")
    return Thing(KINDS[path.suffix.lower()], path)


def prepare(thing: Thing, **of_vectors: Any) -> str:
    """Return the page that shows a target, as a path and query of the server. Args: of_vectors: labels, leave_out,
    pictures and other of a file of vectors, as for `open_vectors`. Raises: ValueError; OSError."""
    if thing.kind != "vectors" and any(of_vectors.values()):
        raise ValueError(OF_FILE)
    stamp = file_stamp(thing.path)
    if thing.kind in ("vectors", "checkpoint"):
        time.sleep(PAUSE)
        _check_whole(thing.path, stamp)
    match thing.kind:
        case "run":
            run = own_run(thing.path)
            if run.path.resolve() != thing.path:
                print_note(
                    f"{printable(thing.path)} was copied to {run.path}. To use its folder of runs instead, "
                    f"set CONTRASTIVE_LAB_RUNS={printable(thing.path.parent)}."
                )
            is_ready = run.is_recording or (run.weights.exists() and not run.is_alive())
            page = "explore" if is_ready else "train"
            query = {"run": run.name} if is_ready else {"run": run.name, "watch": run.name}
        case "vectors":
            try:
                page, query = "explore", {"vectors": open_vectors(thing.path, thing.path.name, **of_vectors)}
            except ValueError as error:
                _check_whole(thing.path, stamp)
                has_texts = thing.path.is_dir() or thing.path.suffix.lower() == ".jsonl"
                raise ValueError(f"{error}" if has_texts else f"{error}; {VECTORS}") from None
            _check_whole(thing.path, stamp)
        case "sweep":
            sweep_file.load(thing.path)
            text, user_sweeps = read_regular(thing.path, sweep_file.LARGEST), runs_home() / ".sweeps"
            by_name = {p.stem: p for folder in (BUNDLE / "sweeps", user_sweeps) for p in folder.glob("*.toml")}
            numbered = (thing.path.stem if n == 1 else f"{thing.path.stem}-{n}" for n in range(1, 10_000))
            name = next(n for n in numbered if n not in by_name or by_name[n].read_bytes() == text)
            if name not in by_name:  # the user's own, under another name if its own is taken
                storage.write_bytes(user_sweeps / f"{name}.toml", text)
            page, query = "runs", {"view": "sweeps", "sweep": name}
        case "folder":
            page, query = "train", {"data": "folder", "folder": path_input.remember(thing.path)}
        case _:
            page, query = "runs", {"view": "import", "file": path_input.remember(thing.path)}
    return f"/{page}?{urlencode(query)}"


def _check_whole(path: Path, stamp: FileStamp | None) -> None:
    """Raise ValueError if the size or content of a file has changed since it had this stamp."""
    now = file_stamp(path)
    if path.is_file() and (now and now[1:3]) != (stamp and stamp[1:3]):
        raise ValueError(f"{printable(path.name)} is still being written: open it when it is whole")


def _has_images(folder: Path) -> bool:
    entries = 0
    for place, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        if any(Path(name).suffix.lower() in ENDINGS for name in files):
            return True
        if len(Path(place).relative_to(folder).parts) >= DEPTH or entries > ENTRIES:
            folders.clear()
    return False
