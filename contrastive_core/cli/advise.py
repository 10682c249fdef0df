"""`advise`: a first look at some images, and which settings held-out images support."""

from __future__ import annotations

import signal
from argparse import Namespace
from typing import Any

from contrastive_core.cli.output import print_note, print_result, progress_of
from contrastive_core.jobs import fork_server

__all__ = ["advise"]


def advise(args: Namespace) -> None:
    """Say what the images show; then, unless a look is all that was asked for, try settings."""
    from contrastive_core.advice import advise as advisers
    from contrastive_core.advice.answer_text import text_of
    from contrastive_core.advice.first_look import look

    with progress_of(args) as on_progress:
        if args.look:
            seen = look(args.dataset, args.root, args.method, args.device, on_progress)
            return print_result(args, seen.to_json(), _seen(seen))
        plan = advisers.planned(
            args.dataset, args.minutes,
            None if args.choose is None else args.choose.split(","), args.name or "",
            args.method, args.epochs, args.root, args.device, on_progress,
        )  # fmt: skip
    if args.dry_run:
        record = {"plan": plan.to_json(), "sentence": plan.sentence()}
        return print_result(args, record, plan.sentence())
    print_note(plan.sentence())
    print_note(f"its name is {plan.name}; the same command with --name {plan.name} goes on with it")
    signal.signal(signal.SIGTERM, _interrupt)
    with progress_of(args) as on_progress:
        on_progress("getting ready", None)
        fork_server.start()  # a training then begins in tenths of a second, not in several seconds
        try:
            found = advisers.advise(plan, on_progress)
        finally:
            fork_server.disable()
    print_result(args, found, text_of(found))


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _seen(seen: Any) -> str:
    """The look for a terminal."""
    from contrastive_core.advice.first_look import in_words

    lines = [f"{seen.dataset}: {in_words(seen.facts)}"]
    for one in seen.suggestions:
        lines += [
            "",
            f"{one.setting}: {one.text}",
            f"  {one.reason}",
            f"  to settle it: {one.settle}",
        ]
    return "\n".join(lines)
