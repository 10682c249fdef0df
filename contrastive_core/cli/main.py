"""The command line, `python -m contrastive_core COMMAND`: every command with its options and its function.

The options of `train` are the fields of `TrainConfig` that define one. Errors are printed as one line on standard
error. The exit status is 2 for unusable input, 1 for other errors and 130 for Ctrl-C. `--debug` adds the traceback."""

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from contrastive_core.base.errors import BadSetting, Elsewhere, LabError, sentence_of
from contrastive_core.base.local_processes import run_processes
from contrastive_core.cli.options import (
    COMMON,
    DEVICE,
    LABELS,
    LAYER,
    LEAVE_OUT,
    OF_TEST,
    OF_VECTORS,
    OTHER,
    PICTURES,
    PROCESSES,
    QRELS,
    REFERENCE,
    ROOT,
    RUN,
    RUNS,
    SOURCE,
    SPLIT,
    Option,
    option,
    setting,
    switch,
)
from contrastive_core.cli.output import error_line
from contrastive_core.runs.train_config import OPTIONS, flag

UNUSABLE = (ValueError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
PROGRAM = "python -m contrastive_core"


class Command:
    """A command. `run` is a function, or its name, imported on use: `module.function` of this package
    or `package.module:function` of the app."""

    def __init__(self, run: str | Callable[[Any], int | None], help: str, *options: Option) -> None:
        self.run, self.help, self.options = run, help, options


COMMANDS = {
    "train": Command(
        "train.train",
        "train an encoder",
        *(option(flag(name), dest=name, **entry) for name, entry in OPTIONS.items()),
        option("--run", "--name", metavar="NAME", help="name of the run; default: made up"),
        switch("--resume", "go on with --run NAME"),
        option("--schedule", metavar="FILE", help="JSON list of changes while it trains: step, name and to of each"),
        option("--weights", metavar="FILE", help="start from these weights of --encoder, or of what the file holds"),
        PROCESSES,
        switch("--download", "fetch the data set if missing"),
        setting("any setting, e.g. lr=0.01, loss.temperature=0.2, method.momentum=0.99"),
        DEVICE,
    ),
    "change": Command(
        "changes.change",
        "change settings of a run while it trains, or write its changes as a file for train --schedule",
        RUN,
        option("settings", nargs="*", metavar="KEY=VALUE", help="lr, or a knob of its loss: loss.temperature=0.1"),
        option("--out", metavar="FILE", help=".json of the changes so far"),
    ),
    "branch": Command(
        "changes.branch",
        "go on from a saved epoch of a run with other values, as runs of their own in the queue",
        RUN,
        option("settings", nargs="+", metavar="KEY=VALUE", help="of each branch, comma-separated: lr=0.01 or more"),
        option("--epoch", type=int, metavar="N", help="go on from the state after this epoch (default: the newest)"),
    ),
    "embed": Command(
        "inspect.embed",
        "write the embedding of a data set",
        RUN,
        option(
            "--layer",
            choices=("h", "z", "towers"),
            default="h",
            help="backbone, projection, or z of images and captions",
        ),
        *OF_TEST,
        option("--out", help=".npz or .parquet; default: all are kept for the app only"),
    ),
    "evaluate": Command(
        "inspect.evaluate",
        "score a run beside raw pixels and a random encoder",
        option("run", help=SOURCE),
        option("--train", metavar="FILE", help="training rows for a file; default: four fifths"),
        option("--metrics", help="comma-separated; default: all that apply"),
        *(*OF_VECTORS, REFERENCE),
    ),
    "project": Command(
        "inspect.project",
        "make a map (columns id, x, y, label)",
        *(option("source", help=SOURCE), *OF_VECTORS),
        option("--method", choices=("umap", "pca"), default="umap"),
        option("--seed", type=int, default=0),
        option("--neighbors", type=int, default=15, help="UMAP: of each row (15)"),
        option("--min-dist", type=float, default=0.1, help="UMAP: of two points (0.1)"),
        option("--metric", choices=("cosine", "euclidean"), default="cosine"),
        option("--out", required=True, help=".parquet or .csv"),
    ),
    "samples": Command(
        "samples.samples",
        "list every sample with its loss and what is odd about it",
        option("run", help=SOURCE),
        *(LABELS, LEAVE_OUT, *OTHER, DEVICE),
        option("--split", choices=("train", "test"), help="default: train; of a file: all rows, or those marked"),
        option("--loss", help="default: the run's own"),
        option("--out", help=".parquet or .csv; default: kept for the app only"),
        option("--lists-by", metavar="RUN", help="another run on the same images, on whose encoder the lists rest"),
        option("--audit", metavar="FILE", help=".csv of random rows to check; your answers say how many are wrong"),
        option("--checks", type=int, default=120, help="rows to check (120)"),
        option(
            "--export",
            metavar="PATH",
            help="apply the decisions: .csv of all labels, .sh that moves the files, or a new folder of images",
        ),
        switch("--move", "move the images into the folder of --export; default: hard links"),
    ),
    "pairs": Command(
        "pairs.pairs",
        "list mismatched pairs of two towers, and false negatives across them",
        option("file", metavar="RUN", help="a run of clip, or a file of vectors with two towers, or with one"),
        option("second", nargs="*", metavar="FILE", help="of a file with one: the other tower, as --other FILE"),
        *(LABELS, LEAVE_OUT, *OTHER, SPLIT, DEVICE),
        option("--top", type=int, default=10, help="of each list to print (10)"),
        option("--out", help=".parquet or .csv of all pairs with their evidence"),
    ),
    "threshold": Command(
        "threshold.threshold",
        "find the similarity from which a pair of two towers is a match, with a bound on its false-match rate",
        option("file", metavar="RUN", help="a run of clip, or a file of vectors with two towers"),
        *(LABELS, LEAVE_OUT, *OTHER, SPLIT, DEVICE, QRELS),
        option("--rate", type=float, default=1, help="pairs that are no match and may reach it, in percent (1)"),
        option("--out", metavar="FILE", help=".json of the threshold, its basis and the calibration"),
    ),
    "query": Command(
        "pairs.query",
        "find the images of a run with a text tower that are most similar to a sentence",
        *(option("run", help="a run of clip"), option("text", help="a sentence"), *OF_TEST),
        option("--top", type=int, default=10, help="images to print (10)"),
    ),
    "explain": Command(
        "explain.explain",
        "show which patches make two images of a run similar",
        *(option("run"), option("ids", nargs=2, metavar="ID"), *OF_TEST),
        option("--out", help="a picture: .png of both images and their maps"),
    ),
    "compare": Command(
        "inspect.compare",
        "compare runs, recordings or files of vectors on the same samples",
        *(RUNS, LAYER, *OF_VECTORS, QRELS),
        switch("--differences", "of two: name the groups of samples that lie together in one and apart in the other"),
        option("--metrics", help="knn, linear_probe; default: both"),
        switch("--duels", "of two: judge their first answers where they differ, until it is known which is better"),
        option("--margin", type=float, help="of queries: points from which a difference matters (0.5; 2 with --duels)"),
        option("--top", type=int, default=10, help="of two files of queries: queries that changed most (10)"),
    ),
    "report": Command(
        "contrastive_lab.report.document:report",
        "write one HTML file of runs, recordings or files of vectors: maps, scores, verdict, the live loss view",
        *(RUNS, LAYER, PICTURES, *OF_VECTORS, QRELS),
        option("--out", required=True, help=".html"),
        option("--map", choices=("umap", "pca"), default="pca"),
    ),
    "export": Command(
        "inspect.export",
        "write a run for another tool: its encoder as ONNX, or a log for TensorBoard",
        *(RUN, LAYER, *OF_TEST),
        option("--to", choices=("onnx", "tensorboard"), required=True),
        option("--out", required=True, help="a file .onnx, or a new folder"),
    ),
    "import": Command(
        "import_checkpoint.import_checkpoint",
        "make a run of a checkpoint from elsewhere, of a model of torchvision or timm, or of a run on other images",
        option("file", help="a file, torchvision:NAME, timm:NAME or run:NAME"),
        option("--format", choices=("auto",), default="auto", help="told from its content"),
        option("--encoder", help="where it cannot be told: resnet18, timm:NAME, …"),
        option("--dataset", default="shapes", help="what to judge it on (default: shapes)"),
        ROOT,
        option("--run", help="name of the run to make"),
        option("--weights", metavar="FILE", help="of the model; default: what was fetched before"),
        option("--pixels", type=int, default=0, help="image size that the encoder was made for (its own, if known)"),
        switch("--fetch", "fetch the model's weights where they are not here"),
        switch("--random", "random weights: a model that has learned nothing"),
        switch("--dry-run", "only say what it is; fetch nothing"),
    ),
    "example": Command(
        "example.example",
        "write an example: 1,920 questions and answers, their vectors by two models, and relevance judgments",
        option("name", choices=("questions",)),
        option("--out", metavar="FOLDER", help="default: a folder with the name of the example"),
    ),
    "references": Command(
        "inspect.references",
        "name runs that stand beside every run on the same images, such as imported encoders, or list them",
        option("runs", nargs="*", metavar="RUN"),
        switch("--remove", "leave these out from now on"),
    ),
    "sweep": Command(
        "sweep.sweep",
        "train every cell of a sweep file",
        option("file"),
        switch("--dry-run", "show the cells and the time only"),
        option("--most", type=int, metavar="N", help="train at most N cells now"),
        switch("--score", "score the done cells' test images"),
        setting("changed in every cell"),
    ),
    "advise": Command(
        "advise.advise",
        "say what images show, and try which settings suit them",
        option("dataset", help="digits, shapes, cifar10, …, folder:PATH, csv:PATH"),
        option("--minutes", type=float, help="time it may take (30)"),
        option(
            "--choose",
            metavar="QUESTIONS",
            help="comma-separated: temperature (default), method, augmentation, head, batch; or start: whether to "
            "train at all",
        ),
        option("--method", default="simclr", help="default: simclr"),
        option("--methods", nargs="+", metavar="METHOD", help="compare only these, two or more; default: all that fit"),
        option("--epochs", type=int, default=20, help="of the default at most (20)"),
        option("--name", help="of the adviser; one that was begun goes on"),
        REFERENCE,
        switch("--look", "only look at the images: nothing is trained"),
        switch("--dry-run", "say what would be tried, and how long it takes"),
        *(ROOT, DEVICE),
    ),
    "queue": Command("sweep.queue", "start the runs that wait in the app's queue, one after the other"),
    "list": Command("run_listing.list_all", "list runs, methods, losses, metrics and data sets"),
    "verify": Command(
        "run_listing.verify",
        "check every file of every run, and the figures that come along",
        switch("--files", "files only: compute no figure"),
        option("runs", nargs="*", metavar="RUN"),
        DEVICE,
    ),
    "doctor": Command(
        "run_listing.doctor",
        "say what there is: device, threads, versions, folders, free disk, window; or check the loss of a loop",
        option("what", nargs="?", choices=("loop",), help="loop: compare a saved batch with the loss that you declare"),
        option("file", nargs="?", help=".safetensors with z, loss and grad; and ids, labels, other, grad_other, queue"),
        option("--loss", help="what the loop is meant to compute, a name of `list`"),
        option("--positives", choices=("auto", "views", "labels", "keys"), default="auto"),
        option("--accumulate", type=int, default=1, help="batches whose gradients add up (1)"),
        setting("a setting of the loss, e.g. temperature=0.07"),
    ),
    "analyze": Command(
        "inspect.analyze",
        "make what a page waits for: scores, a map, a comparison, decoded images",
        option("kind"),
        option("values", help="a JSON object"),
        DEVICE,
    ),
}


class Parser(argparse.ArgumentParser):
    """Parser that reports a wrong command in one line."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(error_line(f"{message} (see {self.prog} --help)"))
        raise SystemExit(2)


def parser(program: str = PROGRAM) -> argparse.ArgumentParser:
    """Return the parser of all commands. Args: program: name in the usage text."""
    top = Parser(prog=program, description="Contrastive Lab.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command_parser = commands.add_parser(name, help=command.help, description=command.help)
        for flags, settings in (*COMMON, *command.options):
            command_parser.add_argument(*flags, **settings)
        command_parser.set_defaults(run_command=command.run)
    return top


def main(argv: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Run one command and return the exit status. Args: program: name in the usage text."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for number, stream, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, stream) is None:  # closed: otherwise the next file would get its number and the output
            nowhere = open(os.devnull, mode)  # noqa: SIM115
            os.dup2(nowhere.fileno(), number)
            setattr(sys, stream, nowhere)
    args = parser(program).parse_args(arguments)
    try:
        if getattr(args, "processes", 1) > 1 and "RANK" not in os.environ:
            return run_processes(args.processes, arguments)
        if args.command != "train" and "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", 1)) > 1:
            raise BadSetting("{command} runs in one process; start it without torchrun", command=args.command)
        return _command(args.run_command)(args) or 0
    except KeyboardInterrupt:
        return _failed(args, "interrupted", 130) if _speaks() else 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Elsewhere:  # another process of the group reports the reason
        return 2
    except Exception as error:
        is_foreseen = isinstance(error, (LabError, OSError, *UNUSABLE))
        text = sentence_of(error) if is_foreseen else f"{type(error).__name__}: {error} (--debug shows where)"
        return _failed(args, text, 2 if isinstance(error, UNUSABLE) else 1)


def _command(name: str | Callable[[Any], int | None]) -> Callable[[Any], int | None]:
    """Return the function that `Command.run` names. Raises ValueError if the app is not installed."""
    if callable(name):
        return name
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
    """Handle SIGTERM until the training loop installs its own handler: exit with an error."""
    sys.exit("error: it was asked to stop" if _speaks() else 1)


def _speaks() -> bool:
    """Return whether this process reports signals that all processes of the command receive."""
    return os.environ.get("RANK", "0") == "0"
