# PYTHON_ARGCOMPLETE_OK
"""`contrastive-lab [THING]`: open the app in a window, or run a command of `python -m contrastive_core`."""

import argparse
import contextlib
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import NoReturn

from contrastive_core import runs
from contrastive_core.base.errors import Locked, sentence_of
from contrastive_core.cli import main as core
from contrastive_core.cli.main import COMMANDS, Command, Parser
from contrastive_core.cli.options import LABELS, LEAVE_OUT, OTHER, PICTURES
from contrastive_core.cli.output import error_line, print_note
from contrastive_core.spaces.other_tower import other_tower
from contrastive_lab.desktop import serving, things, window
from contrastive_lab.desktop.serving import Server

PROGRAM = "contrastive-lab"


def _playground(args: argparse.Namespace) -> None:
    from contrastive_lab.playground.file import playground  # its imports take seconds

    playground(args)


COMMANDS["playground"] = Command(
    _playground,
    "write an HTML page that trains an encoder in the browser while you drag its temperature",
    (
        ("path",),
        {
            "nargs": "?",
            "default": "digits",
            "help": "a folder of images, a file of vectors or a data set (default: digits)",
        },
    ),
    (("--out",), {"required": True, "help": "file to write, .html"}),
)
NAMES = set(COMMANDS)
PACKAGES = ("contrastive-lab", "torch", "torchvision", "streamlit", "numpy", "pyarrow")
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
        with _ends_cleanly():
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
    thing.completer = _things  # type: ignore[attr-defined]
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
    thing = things.recognize(args.thing) if args.thing else None
    serving.check_homes()
    server = serving.begin(args.port)
    try:
        other = other_tower(args.other, args.towers, args.by)
        of_vectors = {"labels": args.labels, "leave_out": args.leave_out, "pictures": args.pictures, "other": other}
        place = things.prepare(thing, **of_vectors) if thing else "/"  # while it starts
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
                wait = window.open_window(address, link, args.browser)
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


@contextlib.contextmanager
def _ends_cleanly() -> Iterator[None]:
    """Treat termination signals like Ctrl-C."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    names = [getattr(signal, n) for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)]
    before = {name: signal.signal(name, interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


# --- versions and completion ---------------------------------------------------------------------


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


def _things(prefix: str, **_: object) -> list[str]:
    """Return commands, runs and files that complete the typed text."""
    from argcomplete.completers import FilesCompleter

    names = [*COMMANDS, *(run.name for run in runs.list_runs())]
    return [*(n for n in names if n.startswith(prefix)), *FilesCompleter()(prefix)]
