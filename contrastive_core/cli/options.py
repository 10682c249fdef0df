"""The parts of a command for `argparse`: its options, most of them shared by commands, and the parser."""

import argparse
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import terminal_line

Option = tuple[tuple[str, ...], JsonObject]  # flags and keyword arguments for `argparse`


def option(*flags: str, **settings: Any) -> Option:
    """Return an option. Args: flags, settings: of `argparse`."""
    return flags, settings


def switch(name: str, help: str) -> Option:
    """Return an option without a value."""
    return option(name, action="store_true", help=help)


COMMON = (
    switch("--debug", "show the full traceback of an error"),
    switch("--json", "print one JSON document"),
    option("--progress", metavar="FILE", help="write the progress to FILE, as one JSON object per line"),
)
DEVICE = option("--device", default="auto", help="device to compute on: auto, cpu, cuda, cuda:N or mps")
PROCESSES = option(
    "--processes", type=int, default=1, help="number of processes on this machine, one GPU each (default: 1)"
)
OF_FILE = "--labels, --leave-out, --pictures and --other are for files of vectors; a run uses those of its own data set"
LABELS = option(
    "--labels", metavar="FILE", help="for a file of vectors: file with one label per row (.npy, .txt, .csv or .tsv)"
)
LEAVE_OUT = option(
    "--leave-out",
    metavar="COLUMNS",
    type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
    default=[],
    help="for a table: numeric columns that are not part of the vectors, separated by commas",
)
OTHER = (
    option(
        "--other",
        metavar="FILE",
        help="second file, with the vectors of the other tower or of the first file's texts; or a model that encodes "
        "those texts",
    ),
    option("--towers", metavar="A,B", help="names of the two towers (default: the names of the files)"),
    option(
        "--by",
        metavar="COLUMN",
        default="",
        help="column whose equal values pair the rows of both files, or row to pair them by position "
        "(default: the first of pair, group and id that both files have, otherwise row)",
    ),
)
PICTURES = option("--pictures", metavar="FOLDER", help="for a file of vectors: folder of the images that it names")
QRELS = option(
    "--qrels",
    metavar="FILE",
    default="",
    help="relevance judgments: .tsv of BEIR or its folder, a file of TREC, or .json (default: partners)",
)
REFERENCE = option(
    "--reference",
    action="append",
    metavar="RUN",
    help="run on the same images to show beside this one, such as an imported encoder; repeat it for several, or give "
    "none (default: the runs listed by the command references)",
)
LAYER = option("--layer", choices=("h", "z"), default="h", help="h: output of the encoder, z: output of the head")
ROOT = option("--root", metavar="FOLDER", help="folder of the downloaded data sets")


RUN = option("run")
SOURCE = "a run, a recording, or a file of vectors: .npy, .npz, .parquet, .csv"
RUNS = option("runs", nargs="+", metavar="RUN", help=SOURCE)
OF_TEST = (option("--split", choices=("train", "test"), default="test"), DEVICE)
SPLIT = option(
    "--split", choices=("train", "test"), help="split to use (default: test; for a file: the rows marked test, or all)"
)
OF_VECTORS = (LABELS, LEAVE_OUT, *OTHER, SPLIT, DEVICE)


def setting(help: str) -> Option:
    """Return the option that changes one setting by its name."""
    return option("--set", action="append", default=[], metavar="KEY=VALUE", help=help)


class Command:
    """A command. `run` is a function, or its name, imported on use: `module.function` of this package
    or `package.module:function` of the app."""

    def __init__(self, run: str | Callable[[Any], int | None], help: str, *options: Option) -> None:
        self.run, self.help, self.options = run, help, options


class Parser(argparse.ArgumentParser):
    """Parser that reports a wrong command in one line."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(error_line(f"{message} (see {self.prog} --help)"))
        raise SystemExit(2)


def error_line(message: str) -> str:
    """Format an error as one line for standard error."""
    return f"error: {terminal_line(' '.join(message.split()))}\n"
