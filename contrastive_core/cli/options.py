"""Options that several commands share, for `argparse`."""

from typing import Any

from contrastive_core.base.json_files import JsonObject

Option = tuple[tuple[str, ...], JsonObject]  # flags and keyword arguments for `argparse`


def option(*flags: str, **settings: Any) -> Option:
    """Return an option. Args: flags, settings: of `argparse`."""
    return flags, settings


def switch(name: str, help: str) -> Option:
    """Return an option without a value."""
    return option(name, action="store_true", help=help)


COMMON = (
    switch("--debug", "show the whole trace of an error"),
    switch("--json", "print one JSON document"),
    option("--progress", metavar="FILE", help="write how far it is into FILE, as lines of JSON"),
)
DEVICE = option("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
PROCESSES = option("--processes", type=int, default=1, help="on this machine, a GPU each (default: 1)")
OF_FILE = (
    "--labels, --leave-out, --pictures and --other go with a file of vectors; what a run was trained on has its own"
)
LABELS = option("--labels", metavar="FILE", help="of a file of vectors: a label for each row, .npy, .txt, .csv or .tsv")
LEAVE_OUT = option(
    "--leave-out",
    metavar="COLUMNS",
    type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
    default=[],
    help="of a table: columns of numbers that are no part of the vectors, comma-separated",
)
OTHER = (
    option(
        "--other",
        metavar="FILE",
        help="a second file of vectors: the other tower, or of the first file's texts; or a model to encode them",
    ),
    option("--towers", metavar="A,B", help="names of the two towers; default: those of the files"),
    option(
        "--by",
        metavar="COLUMN",
        default="",
        help="which rows of both files belong together: a column of both, or row, for rows of the same number; "
        "default: the first of pair, group and id that both have, else row",
    ),
)
PICTURES = option("--pictures", metavar="FOLDER", help="of a file of vectors: where the file names in it start from")
QRELS = option(
    "--qrels",
    metavar="FILE",
    default="",
    help="relevance judgments of queries and documents: .tsv as of BEIR, TREC's, or .json; default: partners",
)
REFERENCE = option(
    "--reference",
    action="append",
    metavar="RUN",
    help="a run on the same images beside it, such as an imported encoder, repeatable; or none (default: those of the "
    "command references)",
)
LAYER = option("--layer", choices=("h", "z"), default="h", help="backbone or projection")
ROOT = option("--root", metavar="FOLDER", help="folder of downloaded data sets")


RUN = option("run")
SOURCE = "a run, a recording, or a file of vectors: .npy, .npz, .parquet, .csv"
RUNS = option("runs", nargs="+", metavar="RUN", help=SOURCE)
OF_TEST = (option("--split", choices=("train", "test"), default="test"), DEVICE)
SPLIT = option("--split", choices=("train", "test"), help="default: test; of a file: all rows, or those marked as such")
OF_VECTORS = (LABELS, LEAVE_OUT, *OTHER, SPLIT, DEVICE)


def setting(help: str) -> Option:
    """Return the option that changes one setting by its name."""
    return option("--set", action="append", default=[], metavar="KEY=VALUE", help=help)
