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
from contrastive_core.base.messages import terminal_line
from contrastive_core.runs.train_config import OPTIONS, flag

UNUSABLE = (ValueError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
PROGRAM = "python -m contrastive_core"

Option = tuple[tuple[str, ...], dict[str, Any]]  # flags and keyword arguments for `argparse`


def option(*flags: str, **settings: Any) -> Option:
    """Return an option. Args: flags, settings: of `argparse`."""
    return flags, settings


def switch(name: str, help: str) -> Option:
    """Return an option without a value."""
    return option(name, action="store_true", help=help)


def setting(help: str) -> Option:
    """Return the option that changes one setting by its name."""
    return option("--set", action="append", default=[], metavar="KEY=VALUE", help=help)


class Command:
    """A command. `run` is a function, or its name, imported on use: `module.function` of this package
    or `package.module:function` of the app."""

    def __init__(self, run: str | Callable[[Any], int | None], help: str, *options: Option) -> None:
        self.run, self.help, self.options = run, help, options


# --- options of several commands -----------------------------------------------------------------------


COMMON = (
    switch("--debug", "show the full traceback of an error"),
    switch("--json", "print one JSON document"),
    option("--progress", metavar="FILE", help="write the progress to FILE, as one JSON object per line"),
)
SOURCE = "a run, a recording, or a file of vectors: .npy, .npz, .parquet, .csv"
RUN = option("run")
RUNS = option("runs", nargs="+", metavar="RUN", help=SOURCE)
DEVICE = option("--device", default="auto", help="device to compute on: auto, cpu, cuda, cuda:N or mps")
ROOT = option("--root", metavar="FOLDER", help="folder of the downloaded data sets")
LAYER = option("--layer", choices=("h", "z"), default="h", help="h: output of the encoder, z: output of the head")
OF_TEST = (option("--split", choices=("train", "test"), default="test"), DEVICE)
SPLITS = "split to use (default: test; for a file: the rows marked test, or all)"
SPLIT = option("--split", choices=("train", "test"), help=SPLITS)
OF_FILE = "--labels, --leave-out, --pictures and --other are for files of vectors; a run uses those of its own data set"
LABELS_HELP = "for a file of vectors: file with one label per row (.npy, .txt, .csv or .tsv)"
LABELS = option("--labels", metavar="FILE", help=LABELS_HELP)
LEAVE_OUT = option(
    "--leave-out",
    metavar="COLUMNS",
    type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
    default=[],
    help="for a table: numeric columns that are not part of the vectors, separated by commas",
)
OTHER_HELP = "second file: the vectors of the other tower or of the first file's texts, or a model that encodes them"
BY_HELP = "column whose equal values pair the rows, or row for their position (default: pair, group, id or else row)"
OTHER = (
    option("--other", metavar="FILE", help=OTHER_HELP),
    option("--towers", metavar="A,B", help="names of the two towers (default: the names of the files)"),
    option("--by", metavar="COLUMN", default="", help=BY_HELP),
)
OF_VECTORS = (LABELS, LEAVE_OUT, *OTHER, SPLIT, DEVICE)
PICTURES = option("--pictures", metavar="FOLDER", help="for a file of vectors: folder of the images that it names")
QRELS_HELP = "relevance judgments: .tsv of BEIR or its folder, a file of TREC, or .json (default: partners)"
QRELS = option("--qrels", metavar="FILE", default="", help=QRELS_HELP)
REFERENCE_HELP = "run on the same images to show beside this one; may be repeated (default: those of `references`)"
REFERENCE = option("--reference", action="append", metavar="RUN", help=REFERENCE_HELP)


# --- commands ------------------------------------------------------------------------------------------


COMMANDS = {
    "train": Command(
        "train.train",
        "train an encoder",
        *(option(flag(name), dest=name, **entry) for name, entry in OPTIONS.items()),
        option("--run", "--name", metavar="NAME", help="name of the run (default: made from the settings)"),
        switch("--resume", "continue the run that --run names"),
        option("--schedule", metavar="FILE", help="JSON list of changes during training, each with step, name and to"),
        option("--weights", metavar="FILE", help="weights to start from, for --encoder or the encoder found in them"),
        option("--processes", type=int, default=1, help="processes on this machine, one GPU each (default: 1)"),
        switch("--download", "download the data set if it is missing"),
        setting("any setting, for example lr=0.01, loss.temperature=0.2 or method.momentum=0.99"),
        DEVICE,
    ),
    "change": Command(
        "train.change",
        "change settings of a run during training, or write its changes to a file for train --schedule",
        RUN,
        option("settings", nargs="*", metavar="KEY=VALUE", help="lr or a setting of the loss: loss.temperature=0.1"),
        option("--out", metavar="FILE", help="write the changes so far to this .json file"),
    ),
    "branch": Command(
        "train.branch",
        "continue from a saved epoch of a run with other settings: each branch is a new run in the queue",
        RUN,
        option("settings", nargs="+", metavar="KEY=VALUE", help="settings of one branch, separated by commas: lr=0.01"),
        option("--epoch", type=int, metavar="N", help="continue from the state after this epoch (default: the newest)"),
    ),
    "embed": Command(
        "export.embed",
        "write the embedding of a data set",
        RUN,
        option("--layer", choices=("h", "z", "towers"), default="h", help="encoder, head, or z of images and captions"),
        *OF_TEST,
        option("--out", help="file to write, .npz or .parquet (default: only store all embeddings for the app)"),
    ),
    "evaluate": Command(
        "evaluate.evaluate",
        "compute the scores of a run, of raw pixels and of an untrained encoder",
        option("run", help=SOURCE),
        option("--train", metavar="FILE", help="training rows of a file of vectors (default: four fifths of the rows)"),
        option("--metrics", help="scores to compute, separated by commas (default: all that apply)"),
        *(*OF_VECTORS, REFERENCE),
        switch("--cost", "for queries and documents: print what fewer dimensions and lower precision cost"),
        option("--qrels", metavar="FILE", default="", help="for --cost: relevance judgments (default: partners)"),
        option("--margin", type=float, default=0.5, help="for --cost: largest acceptable loss, in points (0.5)"),
    ),
    "project": Command(
        "export.project",
        "write a map as a table with the columns id, x, y and label",
        *(option("source", help=SOURCE), *OF_VECTORS),
        option("--method", choices=("umap", "pca"), default="umap"),
        option("--seed", type=int, default=0),
        option("--neighbors", type=int, default=15, help="UMAP: neighbors of each row (default: 15)"),
        option("--min-dist", type=float, default=0.1, help="UMAP: minimum distance of two points (default: 0.1)"),
        option("--metric", choices=("cosine", "euclidean"), default="cosine"),
        option("--out", required=True, help="file to write, .parquet or .csv"),
    ),
    "samples": Command(
        "samples.samples",
        "list every sample with its loss and signs of a wrong label, a duplicate or an outlier",
        option("run", help=SOURCE),
        *(LABELS, LEAVE_OUT, *OTHER, DEVICE),
        option("--split", choices=("train", "test"), help=SPLITS.replace("test", "train")),
        option("--loss", help="loss of the list (default: the run's own)"),
        option("--out", help="file to write, .parquet or .csv (default: only store it for the app)"),
        option("--audit", metavar="FILE", help=".csv file of random rows; your answers estimate how many are wrong"),
        option("--checks", type=int, default=120, help="number of random rows to check (default: 120)"),
        option("--export", metavar="PATH", help="apply your decisions: .csv of labels, .sh with moves or new folder"),
        switch("--move", "move the images into the folder of --export (default: hard links)"),
    ),
    "pairs": Command(
        "samples.pairs",
        "list the mismatched pairs and the false negatives of two towers",
        option("file", metavar="RUN", help="a run of clip, or a file of vectors with one or two towers"),
        option("second", nargs="*", metavar="FILE", help="the other tower, same as --other FILE"),
        *(LABELS, LEAVE_OUT, *OTHER, SPLIT, DEVICE),
        option("--top", type=int, default=10, help="number of entries of each list to print (default: 10)"),
        option("--out", help="file of all pairs and their scores to write, .parquet or .csv"),
        option("--export", metavar="OUT", help="write a file of triplets with your decisions, in its own format"),
    ),
    "threshold": Command(
        "samples.threshold",
        "find the similarity from which a pair of two towers is a match, with a bound on its false-match rate",
        option("file", metavar="RUN", help="a run of clip, or a file of vectors with two towers"),
        *(LABELS, LEAVE_OUT, *OTHER, SPLIT, DEVICE, QRELS),
        option("--rate", type=float, default=1, help="highest false-match rate, in percent (default: 1)"),
        option("--out", metavar="FILE", help="file of the threshold, its basis and the calibration to write, .json"),
    ),
    "query": Command(
        "samples.query",
        "find the images of a run with a text tower that are most similar to a sentence",
        *(option("run", help="a run of clip"), option("text", help="a sentence"), *OF_TEST),
        option("--top", type=int, default=10, help="number of images to print (default: 10)"),
    ),
    "explain": Command(
        "evaluate.explain",
        "show which patches or words make two samples of a run similar",
        *(option("run"), option("ids", nargs=2, metavar="ID", help="an image, or a caption of it: ID#1"), *OF_TEST),
        option("--layer", choices=("h", "z"), default="h", help="backbone, or projection; captions always use z"),
        option("--out", help="picture of the images and their maps to write, .png"),
    ),
    "compare": Command(
        "compare.compare",
        "compare runs, recordings or files of vectors on the same samples",
        *(RUNS, LAYER, *OF_VECTORS, QRELS),
        switch("--differences", "for two spaces: list groups that lie together in one and apart in the other"),
        option("--metrics", help="accuracies to compare, separated by commas: knn, linear_probe (default: both)"),
        option("--adapter", metavar="FILE", help="map from old to new vectors of two models to write, .npz or .onnx"),
        switch("--duels", "for two spaces: judge their differing first answers until one is shown to be better"),
        option("--margin", type=float, help="for queries: smallest relevant difference, in points (0.5; --duels: 2)"),
        option("--top", type=int, default=10, help="for queries: number of changed queries to print (default: 10)"),
    ),
    "report": Command(
        "contrastive_lab.report.document:report",
        "write an HTML report of runs, recordings or files of vectors: maps, scores, verdict and live loss view",
        *(RUNS, LAYER, PICTURES, *OF_VECTORS, QRELS),
        option("--out", required=True, help="file to write, .html"),
        option("--map", choices=("umap", "pca"), default="pca"),
    ),
    "export": Command(
        "export.export",
        "export the encoder of a run as ONNX",
        *(RUN, LAYER),
        option("--out", required=True, help="file to write, .onnx"),
    ),
    "import": Command(
        "import_checkpoint.import_checkpoint",
        "create a run from a checkpoint, from a model of torchvision or timm, or from a run on other images",
        option("file", help="a checkpoint file, torchvision:NAME, timm:NAME or run:NAME"),
        option("--format", choices=("auto",), default="auto", help="format; auto detects it from the content"),
        option("--encoder", help="encoder, if it is not detected: resnet18, timm:NAME, …"),
        option("--dataset", default="shapes", help="data set to evaluate it on (default: shapes)"),
        ROOT,
        option("--run", help="name of the new run"),
        option("--weights", metavar="FILE", help="weights of the model (default: those fetched earlier)"),
        option("--pixels", type=int, default=0, help="image size of the encoder (default: its own, if it is known)"),
        switch("--fetch", "download the model's weights if they are missing"),
        switch("--random", "use random weights, as an untrained baseline"),
        switch("--dry-run", "only describe the model; download nothing"),
    ),
    "example": Command(
        "export.example",
        "write an example: 1,920 questions and answers, their vectors by two models, and relevance judgments",
        option("name", choices=("questions",)),
        option("--out", metavar="FOLDER", help="folder to write (default: a folder with the name of the example)"),
    ),
    "references": Command(
        "evaluate.references",
        "list or set the runs shown beside every run on the same images, such as imported encoders",
        option("runs", nargs="*", metavar="RUN"),
        switch("--remove", "remove these runs from the list"),
    ),
    "sweep": Command(
        "sweep.sweep",
        "train every cell of a sweep file",
        option("file"),
        switch("--dry-run", "only list the cells and estimate the time"),
        option("--most", type=int, metavar="N", help="train at most N cells now"),
        switch("--score", "evaluate the finished cells on the test images"),
        setting("setting to change in every cell"),
    ),
    "advise": Command(
        "train.advise",
        "analyze images and find settings that suit them",
        option("dataset", help="digits, shapes, cifar10, …, folder:PATH or csv:PATH"),
        option("--minutes", type=float, help="time for the search, in minutes (default: 30)"),
        option(
            "--choose",
            metavar="QUESTIONS",
            help="questions, separated by commas: temperature (default), method, augmentation, head, batch; or start, "
            "which asks whether to train at all",
        ),
        option("--method", default="simclr", help="method to train (default: simclr)"),
        option("--methods", nargs="+", metavar="METHOD", help="compare only these methods, at least two"),
        option("--epochs", type=int, default=20, help="most epochs of one training (default: 20)"),
        option("--name", help="name of the adviser; an interrupted one continues"),
        REFERENCE,
        switch("--look", "only analyze the images, without training"),
        switch("--dry-run", "only list what would be tried and estimate the time"),
        *(ROOT, DEVICE),
    ),
    "queue": Command("sweep.queue", "train the runs in the app's queue, one after another"),
    "list": Command("run_listing.list_all", "list runs, methods, losses, metrics and data sets"),
    "verify": Command(
        "run_listing.verify",
        "check the files of every run, and recompute the scores of the shipped runs",
        switch("--files", "only check the files"),
        *(option("runs", nargs="*", metavar="RUN"), DEVICE),
    ),
    "doctor": Command(
        "run_listing.doctor",
        "print the device, versions, folders and free disk space, or check the loss of a training loop",
        option("what", nargs="?", choices=("loop",), help="loop: compare a saved batch with the loss that you declare"),
        option("file", nargs="?", help=".safetensors: z, loss, grad; also ids, labels, other, grad_other, queue"),
        option("--loss", help="loss that the loop should compute, by its name in `list`"),
        option("--positives", choices=("auto", "views", "labels", "keys"), default="auto"),
        option("--accumulate", type=int, default=1, help="number of batches whose gradients are summed (default: 1)"),
        setting("a setting of the loss, for example temperature=0.07"),
    ),
    "analyze": Command(
        "evaluate.analyze",
        "compute what a page needs: scores, a map, a comparison or decoded images",
        *(option("kind"), option("values", help="a JSON object"), DEVICE),
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
    place, is_of_app, function = name.rpartition(":")
    if not is_of_app:
        module, _, function = name.rpartition(".")
        place = f"contrastive_core.cli.{module}"
    try:
        command: Callable[[Any], int | None] = getattr(importlib.import_module(place), function)
    except ModuleNotFoundError as error:
        if is_of_app and error.name == place.split(".")[0]:
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


def error_line(message: str) -> str:
    """Format an error as one line for standard error."""
    return f"error: {terminal_line(' '.join(message.split()))}\n"
