"""The command line: `python -m contrastive_core COMMAND`; options.py lists the commands. Errors go to standard error
as one clear line, and the exit status is 2 for input that cannot be used, 1 for what went wrong on the way, 130 for
Ctrl-C. `--debug` shows the trace."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from contrastive_core.cli.options import PROGRAM, parser
from contrastive_core.cli.output import error_line
from contrastive_core.errors import Elsewhere, LabError, sentence_of

UNUSABLE = (ValueError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)


def main(argv: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Run one command; returns the exit status. program: what it was called by."""
    args = parser(program).parse_args(argv)
    try:
        return _command(args.run_command)(args) or 0
    except KeyboardInterrupt:
        return _failed(args, "interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Elsewhere:  # another process of the group says why
        return 2
    except Exception as error:
        is_foreseen = isinstance(error, (LabError, OSError, *UNUSABLE))
        text = sentence_of(error) if is_foreseen else f"{type(error).__name__}: {error} (--debug shows where)"
        return _failed(args, text, 2 if isinstance(error, UNUSABLE) else 1)


def _command(name: str) -> Callable[[Any], int | None]:
    """The function that `Command.run` names. Raises ValueError where the app is not installed."""
    place, colon, function = name.rpartition(":")
    if not colon:
        module, _, function = name.rpartition(".")
        place = f"contrastive_core.cli.{module}"
    try:
        command: Callable[[Any], int | None] = getattr(importlib.import_module(place), function)
    except ModuleNotFoundError as error:
        if colon and error.name == place.split(".")[0]:
            raise ValueError(f"this command needs {error.name}, which is not installed") from None
        raise
    return command


def _failed(args: argparse.Namespace, message: str, status: int) -> int:
    if args.debug:
        traceback.print_exc()
    sys.stderr.write(error_line(message))
    return status


def stopped(number: int, frame: object) -> NoReturn:
    """For SIGTERM, until a training's loop listens."""
    sys.exit("error: it was asked to stop")
