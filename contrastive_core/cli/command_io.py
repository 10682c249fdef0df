"""Input and output of commands. Input: the rows that an argument names, of a run, a recording, vectors opened before or
a file of vectors. Output: results as text or JSON, notes, progress and tables. Text from files (names, titles, reasons)
is sanitized here: control characters are escaped and long lines are cut."""

import contextlib
import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import runs
from contrastive_core.base.memory import limit_own_data, most_memory
from contrastive_core.base.messages import printable, terminal_line
from contrastive_core.base.progress import OnProgress, ProgressFile, ignore_progress
from contrastive_core.base.score import Score, Scores
from contrastive_core.cli.main import OF_FILE
from contrastive_core.data import datasets
from contrastive_core.runs.run import Run
from contrastive_core.spaces import file_formats, loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.loaded_vectors import note_of_towers, other_tower
from contrastive_core.spaces.space import TOWERS, Space

NOT_MARKED = "{name} marks no rows as {split}: it needs a column split"
SECONDS = 10.0  # between two lines of a stage without a terminal
REFRESH = 0.1  # seconds between two updates of a bar


# --- rows that an argument names ---


def is_file(name: str) -> bool:
    """Return whether a name is a file of vectors, not a run. Raises ValueError for other files."""
    ending = Path(name).suffix.lower()
    if ending in file_formats.OPENED or (Path(name).is_dir() and file_formats.is_beir(Path(name))):
        return True
    if Path(name).is_file():
        endings = ", ".join(file_formats.OPENED)
        raise ValueError(f"{printable(Path(name).name)} is neither a run nor a file of vectors ({endings})")
    return False


def read_file(args: Namespace, name: str, split: str | None = None) -> EmbeddingSet:
    """Read the rows of a file, or only those of `split`, with the labels and columns given as options.
    Raises ValueError; OSError."""
    limit_own_data(most_memory())
    path = Path(name)
    if args.other or args.towers or args.by or args.labels:
        other = other_tower(args.other, args.towers, args.by)
        rows, _ = loaded_vectors.read_vectors(path, path.name, args.leave_out, args.labels, other)
        if other:
            note_of_towers(rows)  # raises if no pair is usable
    else:
        rows = file_formats.read(path, args.leave_out)
    if split is None:
        return rows
    marked = rows.columns.get("split", np.array([""] * len(rows))) == split
    if not marked.any():
        raise ValueError(NOT_MARKED.format(name=printable(path.name), split=split))
    return rows.take(np.flatnonzero(marked))


def run_of(name: str, args: Namespace) -> Run:
    """Load a run. Raises ValueError, also for options that apply to files only."""
    if args.labels or args.leave_out or args.other:
        raise ValueError(OF_FILE)
    return runs.load(name)


def encoder_of(name: str) -> Run:
    """Load a run for a command that needs its encoder. Raises ValueError for vectors."""
    if Space(name).is_file or is_file(name):
        raise ValueError(f"{printable(name)} holds vectors, and no encoder: this command needs a run")
    return runs.load(name)


def space_of(name: str, args: Namespace, default: str = "test") -> Space:
    """Return the space that a command names; a file is opened as on Explore. Args: default: split if no option sets
    it. Raises: ValueError; OSError."""
    pictures, layer = (vars(args).get(option) for option in ("pictures", "layer"))
    if is_file(name):
        other = other_tower(args.other, args.towers, args.by)
        key = loaded_vectors.open_vectors(name, _title(name, args), pictures, args.leave_out, args.labels, other)
        name = loaded_vectors.PREFIX + key
    elif args.labels or args.leave_out or pictures or args.other:
        raise ValueError(OF_FILE)
    space = Space.of_name(name, args.split or default, layer or "h")
    if args.split and space.is_loaded and not space.splits:
        raise ValueError(NOT_MARKED.format(name=printable(space.title), split=args.split))
    return space


def towers_space(args: Namespace, name: str) -> Space:
    """Return the space of a file, or both towers of a run. Raises ValueError; OSError."""
    space = space_of(name, args)
    return replace(space, layer=TOWERS) if space.run and space.run.has_towers else space


def spaces_of(args: Namespace) -> list[Space]:
    """Return the distinct spaces that a command names. Raises ValueError, also if --other comes with several files."""
    if args.other and len(files := [name for name in args.runs if is_file(name)]) > 1:
        raise ValueError(f"--other goes with one file of vectors; got {', '.join(map(printable, files))}")
    return list(dict.fromkeys(space_of(name, args) for name in args.runs))


def loaded_space(name: str, args: Namespace, default: str = "test") -> Space | None:
    """Return the space of opened vectors or of a recording; None for a run with weights."""
    is_loaded = Space(name).is_loaded or runs.load(name).is_recording
    return space_of(name, args, default) if is_loaded else None


def _title(name: str, args: Namespace) -> str:
    """Return the name of a file, with its folder if another file has the same name."""
    path = Path(name).absolute()
    names: Sequence[str] = getattr(args, "runs", [name])
    is_shared = len([other for other in names if Path(other).name == path.name]) > 1
    return f"{path.parent.name}/{path.name}" if is_shared else path.name


# --- results, notes and progress ---


def print_result(args: Namespace, record: Mapping[str, object], text: str) -> None:
    """Print `record` as JSON with `--json`, else `text`."""
    if args.json:
        print(json.dumps(record, indent=1, default=str))
    else:
        print("\n".join(map(terminal_line, text.split("\n"))))


def print_note(text: str) -> None:
    """Print a line on standard error."""
    with _lost_where_nobody_reads():
        print(terminal_line(text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def _lost_where_nobody_reads() -> Iterator[None]:
    """Context in which a closed standard error does not stop the work: further output goes to the null device."""
    try:
        yield
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stderr.fileno())


def note_left_out(run: Run, split: str) -> None:
    """Print which files a run's data set leaves out; nothing if the data are missing."""
    with contextlib.suppress(ValueError, OSError):
        if left_out := datasets.of_config(run.config, split).left_out:
            print_note(left_out)


def counted(count: int, noun: str) -> str:
    """Format a number with its noun: 1 epoch, 2 epochs."""
    return f"{count:,} {noun}" + "s" * (count != 1)


class Terminal:
    """An `OnProgress` for people: on a terminal a bar followed by `detail`, elsewhere an occasional line."""

    def __init__(self) -> None:
        self.detail = ""
        self._stage, self._time = "", 0.0
        self._bar: Any = None

    def __call__(self, stage: str, fraction: float | None, /) -> None:
        now, is_new, is_terminal = time.monotonic(), stage != self._stage, sys.stderr.isatty()
        pause = REFRESH if is_terminal else SECONDS
        if not is_new and fraction != 1.0 and now - self._time < pause:
            return
        self._stage, self._time = stage, now
        if is_terminal:
            with _lost_where_nobody_reads():
                self._draw(stage, fraction)
        elif is_new or fraction != 1.0:
            print_note(stage if not fraction else f"{stage} {100 * fraction:.0f} %")

    def _draw(self, stage: str, fraction: float | None) -> None:
        from tqdm import tqdm

        if self._bar is None:
            form = "{desc} |{bar:20}| {percentage:3.0f} %{postfix}"
            self._bar = tqdm(total=1.0, bar_format=form, leave=False, file=sys.stderr)
        self._bar.n = fraction or 0.0
        self._bar.set_description_str(terminal_line(stage), refresh=False)
        self._bar.set_postfix_str(self.detail, refresh=False)
        self._bar.refresh()

    def line(self, text: str) -> None:
        """Print a permanent line above the bar."""
        if self._bar is not None:
            with _lost_where_nobody_reads():
                self._bar.clear()
        print_note(text)

    def close(self) -> None:
        if self._bar is not None:
            with _lost_where_nobody_reads():
                self._bar.close()


@contextlib.contextmanager
def progress_of(args: Namespace, speaks: bool = True) -> Iterator[OnProgress]:
    """Context that reports progress to the file of `--progress`, or else to the user.
    Args: speaks: False for all processes of a group except the first."""
    if args.progress or not speaks:
        yield ProgressFile(Path(args.progress)) if speaks else ignore_progress
        return
    with contextlib.closing(Terminal()) as terminal:
        yield terminal


def score_text(score: Score) -> str:
    """Format a score with unit and interval, shares in percent, or the reason why it is missing."""
    if score.value is None:
        return f"—  ({score.missing})"
    percent = score.unit == "share"
    text = f"{100 * score.value:.1f} %" if percent else f"{score.value:.3f} {score.unit}"
    if score.interval is not None:
        low, high = (100 * v if percent else v for v in score.interval)
        text += f"  [{low:.1f}, {high:.1f}]" if percent else f"  [{low:.3f}, {high:.3f}]"
    return text + (f"  ({score.approximation})" if score.approximation else "")


def score_beside_chance(scores: Scores, chance: Scores, key: str) -> str:
    """Format a score, with the chance level if known."""
    beside = f"  chance {score_text(chance[key])}" if key in chance else ""
    return score_text(scores[key]) + beside


def table_lines(cells: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of a table, the first to the left. Args: cells: rows of texts, the heads first."""
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in cells]


def out_path(path: str, *endings: str, option: str = "--out") -> Path:
    """Check the path of a file to write, before any work starts. Args: option: that names it. Raises ValueError."""
    out = Path(path)
    folder = out.resolve().parent
    if out.suffix not in endings:
        raise ValueError(f"{option} must end in {' or '.join(endings)}; got {path!r}")
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder} to write {out.name} into")
    if out.is_dir():
        raise ValueError(f"{out} is a folder, not a file to write")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"nothing can be written into the folder {folder}")
    return out
