"""The command `compare --duels`: judge the first answers of two models in the terminal, and read the result so far."""

import sys
from argparse import Namespace
from dataclasses import asdict

from contrastive_core.cli import sources
from contrastive_core.cli.output import print_note, print_result, progress_of
from contrastive_core.engine import answers
from contrastive_core.samples import annotations
from contrastive_core.samples.duels import KEYS, MARGIN, Duels

BY = "terminal"
HELP = "l: left, r: right, b: both, n: neither, u: undo, q: stop; then press Enter"


def judge_duels(args: Namespace) -> None:
    """Take decisions from a terminal or from piped lines, then print the difference and whether to stop. Raises
    ValueError."""
    spaces, margin = sources.spaces_of(args), MARGIN if args.margin is None else args.margin / 100
    with progress_of(args) as on_progress:
        sets = [answers.rows_of(space, on_progress, args.device) for space in spaces]
        duels = Duels.of([space.title for space in spaces], sets)
    if not args.json:
        _ask(duels, margin)
    standing = duels.standing(duels.marks())
    (a, b), names = standing.wins, standing.names
    counts = f"{a} for {names[0]}, {b} for {names[1]}, {standing.both} both, {standing.neither} neither"
    head = f"First answers differ on {standing.differing:,} of {standing.queries:,} queries. "
    head += f"Decided: {standing.decided:,} ({counts})."
    record = {
        **asdict(standing),
        "difference": standing.contrast.difference,
        "interval": standing.contrast.interval,
        "margin": margin,
        "is_over": standing.is_over(margin),
        "verdict": standing.sentence(margin),
        "decisions": str(duels.file),
    }
    print_result(args, record, f"{head}\n{standing.sentence(margin)}")


def _ask(duels: Duels, margin: float) -> None:
    """Show one duel after another until the person stops."""
    keys = {key[0]: key for key in KEYS}
    print_note(HELP)
    while (number := duels.next(duels.marks())) is not None:
        left, right = duels.shown(number)
        for name, row in (("query", duels.queries[number]), ("left", left), ("right", right)):
            print_note(f"{name:>5}  {duels.text(int(row))}")
        try:
            key = input("> " if sys.stdin.isatty() else "").strip().lower()[:1]
        except (EOFError, OSError):  # no more lines, or no input at all
            return
        if key == "q":
            return
        if key == "u":
            annotations.undo([duels.file], BY)
        elif key in keys:
            duels.decide(number, keys[key], BY)
            print_note(duels.standing(duels.marks()).sentence(margin))
        else:
            print_note(HELP)
