"""`advise`: a first look at some images, and which settings held-out images support."""

from __future__ import annotations

import signal
from argparse import Namespace

from contrastive_core.advice import adviser
from contrastive_core.advice.answer_text import text_of
from contrastive_core.advice.first_look import Look, in_words, look
from contrastive_core.advice.planning import AdviceRequest, plan_advice
from contrastive_core.cli.output import print_note, print_result, progress_of
from contrastive_core.engine.queue import wait_for_device


def advise(args: Namespace) -> None:
    """Say what the images show; then, unless a look is all that was asked for, try settings."""
    with progress_of(args) as on_progress:
        if args.look:
            seen = look(args.dataset, args.root, args.method, args.device, on_progress)
            return print_result(args, seen.to_json(), _text_of_look(seen))
        choose = None if args.choose is None else args.choose.split(",")
        request = AdviceRequest(
            args.dataset, args.minutes, choose, args.name or "", args.method, args.epochs, args.root, args.device
        )
        plan = plan_advice(request, on_progress)
    if args.dry_run:
        record = {"plan": plan.to_json(), "sentence": plan.sentence()}
        return print_result(args, record, plan.sentence())
    print_note(plan.sentence())
    print_note(f"its name is {plan.name}; the same command with --name {plan.name} goes on with it")
    signal.signal(signal.SIGTERM, _interrupt)
    with progress_of(args) as on_progress:
        answer = adviser.advise(plan, on_progress, wait_for_device)
    print_result(args, dict(answer), text_of(answer))


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _text_of_look(seen: Look) -> str:
    """The look for a terminal."""
    lines = [f"{seen.dataset}: {in_words(seen.facts)}"]
    for one in seen.suggestions:
        lines += ["", f"{one.setting}: {one.text}", f"  {one.reason}", f"  to settle it: {one.settle}"]
    return "\n".join(lines)
