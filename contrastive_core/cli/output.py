"""Output of commands: results as text or JSON, progress, one-line errors, and tables. Text from files (names,
titles, reasons) is sanitized here: control characters are escaped and long lines are cut."""

import contextlib
import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contrastive_core.base.progress import OnProgress, ProgressFile, ignore_progress
from contrastive_core.base.safe_files import escape
from contrastive_core.base.score import Score, Scores
from contrastive_core.data import datasets
from contrastive_core.runs.run import Run

LONGEST = 2000  # characters of a line
SECONDS = 10.0  # between two lines of a stage without a terminal
REFRESH = 0.1  # seconds between two updates of a bar


def print_result(args: Namespace, record: Mapping[str, object], text: str) -> None:
    """Print `record` as JSON with `--json`, else `text`."""
    if args.json:
        print(json.dumps(record, indent=1, default=str))
    else:
        print("\n".join(map(_harmless, text.split("\n"))))


def print_note(text: str) -> None:
    """Print a line on standard error."""
    with _lost_where_nobody_reads():
        print(_harmless(text), file=sys.stderr, flush=True)


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


def error_line(message: str) -> str:
    """Format an error as one line for standard error."""
    return f"error: {_harmless(' '.join(message.split()))}\n"


def _harmless(line: str) -> str:
    """Escape control characters and lone surrogates in a line, and cut it if too long."""
    shortened = line[:LONGEST] + (f" … ({len(line):,} characters)" if len(line) > LONGEST else "")
    return escape(shortened)


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
        self._bar.set_description_str(_harmless(stage), refresh=False)
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
