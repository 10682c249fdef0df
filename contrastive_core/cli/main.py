"""The command line: `python -m contrastive_core COMMAND`.

What each command does is in train.py and, for those that only read, in inspect.py.

Errors go to standard error as one clear line, and the exit status is 2 for input that cannot be
used, 1 for what went wrong on the way, 130 for Ctrl-C. `--debug` shows the trace.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

__all__ = ["main", "parser", "stopped"]

COMMANDS = ("train", "sweep", "queue", "list", "verify")  # of train.py


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"error: {message} (see {self.prog} --help)\n")
        raise SystemExit(2)


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = _Parser(prog="python -m contrastive_core", description="Contrastive Lab.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _Parser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the whole trace of an error")
    common.add_argument("--json", action="store_true", help="print one JSON document")
    device = _Parser(add_help=False)
    device.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")

    def add(name: str, text: str, *parents: _Parser) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common, *parents])

    _add_train(add("train", "train an encoder", device))
    embed = add("embed", "write the embedding of a data set", device)
    embed.add_argument("run")
    _add_split(embed)
    embed.add_argument("--which", choices=("h", "z"), default="h", help="backbone or projection")
    embed.add_argument("--out", required=True, help=".npz or .parquet")
    evaluate = add("evaluate", "score a run beside raw pixels and a random encoder", device)
    evaluate.add_argument("run", help="a run, or a file of vectors: .npy, .npz, .parquet, .csv")
    evaluate.add_argument(
        "--train", metavar="FILE", help="training rows for a file; default: four fifths of it"
    )
    evaluate.add_argument("--metrics", help="comma-separated; default: all that apply")
    _add_split(evaluate)
    present = add("present", "make what the pages show of a run: embeddings, scores, maps", device)
    present.add_argument("run")
    _add_split(present)
    project = add("project", "make a map (columns id, x, y, label)", device)
    project.add_argument("source", help="a run, or a file of embeddings")
    project.add_argument("--method", choices=("umap", "pca"), default="umap")
    _add_split(project)
    project.add_argument("--seed", type=int, default=0)
    project.add_argument("--neighbors", type=int, default=15, help="UMAP: of each row (15)")
    project.add_argument("--min-dist", type=float, default=0.1, help="UMAP: of two points (0.1)")
    project.add_argument("--metric", choices=("cosine", "euclidean"), default="cosine")
    project.add_argument("--out", required=True, help=".parquet or .csv")
    answer = add("answer", "make what a page waits for: scores, a map, a comparison")
    answer.add_argument("kind")
    answer.add_argument("values", help="a JSON object")
    samples = add("samples", "list every sample with its loss and what is odd about it", device)
    samples.add_argument("run", help="a run, or a file of embeddings")
    samples.add_argument("--loss", help="default: the run's own")
    _add_split(samples, "train")
    samples.add_argument("--out", help=".parquet or .csv; default: kept for the app only")
    compare = add("compare", "compare runs on the same samples", device)
    compare.add_argument("runs", nargs="+", metavar="RUN")
    _add_split(compare)
    imported = add("import", "import a checkpoint that was trained elsewhere")
    imported.add_argument("file")
    imported.add_argument(
        "--format", choices=("auto",), default="auto", help="told from the file's content"
    )
    imported.add_argument("--encoder", help="where it cannot be told: resnet18, timm:NAME, …")
    imported.add_argument(
        "--dataset", default="shapes", help="what to judge it on (default: shapes)"
    )
    imported.add_argument("--root", metavar="FOLDER", help="where downloaded data sets lie")
    imported.add_argument("--run", help="name of the run to make")
    imported.add_argument("--dry-run", action="store_true", help="only say what it is")
    sweep = add("sweep", "train every cell of a sweep file")
    sweep.add_argument("file")
    sweep.add_argument("--dry-run", action="store_true", help="show the cells and the time only")
    sweep.add_argument("--most", type=int, metavar="N", help="train at most N cells now")
    sweep.add_argument("--score", action="store_true", help="score the done cells' test images")
    sweep.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="changed in every cell"
    )
    add("queue", "start the runs that wait in the app's queue, one after the other")
    add("list", "list runs, methods, losses, metrics and data sets")
    verify = add("verify", "check every file of every run, and the figures that come along", device)
    verify.add_argument("--files", action="store_true", help="files only: compute no figure")
    verify.add_argument("runs", nargs="*", metavar="RUN")
    return top


def _add_train(train: argparse.ArgumentParser) -> None:
    train.add_argument("--method", help="default: simclr")
    train.add_argument("--dataset", help="digits (default), shapes, cifar10, …, folder:PATH")
    train.add_argument("--epochs", type=int, help="default: 20")
    train.add_argument("--seed", type=int, help="default: 0")
    train.add_argument("--run", "--name", metavar="NAME", help="name of the run; default: made up")
    train.add_argument("--resume", action="store_true", help="go on with --run NAME")
    train.add_argument(
        "--processes", type=int, default=1, help="on this machine, a GPU each (default: 1)"
    )
    train.add_argument("--loss", help="another loss than the method's own")
    train.add_argument("--encoder", help="small (default), resnet18, resnet50, timm:NAME")
    train.add_argument("--exclude", metavar="FILE", help="ids of samples to leave out")
    train.add_argument("--relabel", metavar="FILE", help="CSV or JSON of ids and their classes")
    train.add_argument("--root", metavar="FOLDER", help="where downloaded data sets lie")
    train.add_argument("--download", action="store_true", help="fetch the data set if missing")
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any setting, e.g. lr=0.01, loss.temperature=0.2, method.momentum=0.99",
    )


def _add_split(command: argparse.ArgumentParser, default: str = "test") -> None:
    command.add_argument("--split", choices=("train", "test"), default=default)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    args = parser().parse_args(argv)
    try:
        return _run(args)
    except KeyboardInterrupt:
        return _failed(args, "interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, FileNotFoundError, FileExistsError, IsADirectoryError) as error:
        return _failed(args, str(error) or type(error).__name__, 2)
    except Exception as error:
        if type(error).__name__ == "Elsewhere":  # another process says why
            return 2
        known = type(error).__name__ in ("CannotGoOn", "Locked")
        text = str(error) if known else f"{type(error).__name__}: {error} (--debug shows where)"
        return _failed(args, text, 1)


def _run(args: argparse.Namespace) -> int:
    room = "train" if args.command in COMMANDS else "inspect"
    module = importlib.import_module(f"contrastive_core.cli.{room}")
    command: Callable[[Any], int | None] = getattr(module, f"do_{args.command}")
    return command(args) or 0


def _failed(args: argparse.Namespace, message: str, status: int) -> int:
    if args.debug:
        import traceback

        traceback.print_exc()
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return status


def stopped(number: int, frame: object) -> NoReturn:
    sys.exit("error: it was asked to stop")
