# PYTHON_ARGCOMPLETE_OK
"""`contrastive-lab [THING]`: the app in a window; and the commands of `python -m contrastive_core`."""

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

from contrastive_core.cli import main as core
from contrastive_core.cli.main import COMMANDS, LABELS, LEAVE_OUT, OTHER, PICTURES, Parser
from contrastive_core.cli.output import error_line, print_note
from contrastive_core.engine.vectors import other_tower
from contrastive_core.errors import sentence_of
from contrastive_core.records import Locked, runs
from contrastive_lab.desktop import serving, shortcut, things, tickets, window
from contrastive_lab.desktop.serving import Server

PROGRAM = "contrastive-lab"
NAMES = set(COMMANDS)
PACKAGES = ("contrastive-lab", "torch", "torchvision", "streamlit", "numpy", "pyarrow")
POLL = 1.0  # seconds between two looks at the server, or at what is at work


def main(argv: Sequence[str] | None = None) -> int:
    """Open the app, or run a command; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _complete()
    if arguments and arguments[0] in NAMES:
        signal.signal(signal.SIGTERM, core.stopped)  # until a training's loop listens
        return core.main(arguments, PROGRAM)
    args = parser().parse_args(arguments)
    try:
        with _ends_cleanly():
            return shortcut.install() if args.install_shortcut else _open(args)
    except KeyboardInterrupt:
        return 0
    except (ValueError, OSError, Locked) as error:
        sys.stderr.write(error_line(sentence_of(error)))
        return 2


def parser() -> argparse.ArgumentParser:
    """The options of opening the app."""
    commands = "\n".join(f"  {name:<10}{command.help}" for name, command in COMMANDS.items())
    options = Parser(
        prog=PROGRAM,
        description="Open Contrastive Lab, on this computer only, in a window.",
        epilog=f"commands (contrastive-lab COMMAND --help):\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    help = "a run, a folder of images, vectors, a checkpoint or a sweep file: it opens on the page that shows it"
    thing = options.add_argument("thing", nargs="?", metavar="THING", help=help)
    thing.completer = _things  # type: ignore[attr-defined]
    for flags, settings in (LABELS, LEAVE_OUT, PICTURES, *OTHER):
        options.add_argument(*flags, **settings)
    options.add_argument("--port", type=int, help="of the server; default: any that is free")
    how = options.add_mutually_exclusive_group()
    how.add_argument("--browser", action="store_true", help="in the browser, not in a window")
    how.add_argument("--no-window", action="store_true", help="only serve it, and say where")
    options.add_argument("--install-shortcut", action="store_true", help="put it among the programs")
    options.add_argument("--version", action="version", version=_versions())
    return options


# --- opening -------------------------------------------------------------------------------------


def _open(args: argparse.Namespace) -> int:
    thing = things.recognize(args.thing) if args.thing else None
    if thing is not None and thing.home is not None:
        os.environ["CONTRASTIVE_LAB_RUNS"] = str(thing.home)
    serving.check_homes()
    server, started = serving.begin(args.port)
    try:
        other = other_tower(args.other, args.towers, args.by)
        of_vectors = {"labels": args.labels, "leave_out": args.leave_out, "pictures": args.pictures, "other": other}
        place = things.prepare(thing, **of_vectors) if thing else "/"  # while it starts
        serving.wait_until_ready(server)
        if not started and args.port not in (None, server.port):
            print_note(f"It runs already, at port {server.port}.")
        _show(server, place, args)
    finally:
        if serving.let_go(server, started):
            serving.stop(server)
    return 0


def _show(server: Server, place: str, args: argparse.Namespace) -> None:
    """A window until it is closed; else the address, until Ctrl-C for whoever holds the server."""
    join = "&" if "?" in place else "?"
    with_token = f"{server.address}{place}{join}token={server.token}"
    wait = None
    if args.no_window:
        print_note(f"Contrastive Lab is at {with_token}")
    else:
        ticket = f"{server.address}{place}{join}ticket={tickets.issue()}"
        try:
            wait = window.open_window(ticket, args.browser)
        except ValueError as error:
            print_note(f"No window, since {error}: Contrastive Lab is at {with_token}")
    if wait is not None:
        serving.hold(server)
        wait()
        if names := serving.at_work():  # the window is closed: active runs keep the server
            print_note(
                f"Running: {', '.join(names[:5])}. The app stays open until they finish. Ctrl-C closes it, "
                "and the runs continue."
            )
        while serving.at_work():
            time.sleep(POLL)
    elif serving.hold(server, only_if_free=True):
        print_note("Ctrl-C ends it.")
        while server.is_alive():
            time.sleep(POLL)


@contextlib.contextmanager
def _ends_cleanly() -> Iterator[None]:
    """A signal to end is what Ctrl-C is."""

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
    """Answer the shell that asks how a word goes on (it runs the command for that), if it does."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 10**6)]
    words = [*line.split(), *([""] if line[-1:].isspace() else [])]
    is_command = len(words) > 2 and words[1] in NAMES
    argcomplete.autocomplete(core.parser(PROGRAM) if is_command else parser())


def _things(prefix: str, **_: object) -> list[str]:
    """Commands, runs and files that go on from what was typed."""
    from argcomplete.completers import FilesCompleter

    names = [*COMMANDS, *(run.name for run in runs.list_runs())]
    return [*(n for n in names if n.startswith(prefix)), *FilesCompleter()(prefix)]
