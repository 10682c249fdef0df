"""`advise`: a first look at some images, and which settings held-out images support."""

import signal
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from contrastive_core.advice import adviser
from contrastive_core.advice.first_look import in_words, look
from contrastive_core.advice.planning import AdviceRequest, plan_advice
from contrastive_core.cli.output import counted, print_note, print_result, progress_of
from contrastive_core.engine.queue import wait_for_device
from contrastive_core.records.advice import AGREEMENT, OPTIONS
from contrastive_core.records.advice_answer import Answer, Decision, Regime


def advise(args: Namespace) -> None:
    """Say what the images show; then, unless a look is all that was asked for, try settings."""
    with progress_of(args) as on_progress:
        if args.look:
            seen = look(args.dataset, args.root, args.method, args.device, on_progress)
            lines = [f"{seen.dataset}: {in_words(seen.facts)}"]
            for one in seen.suggestions:
                lines += ["", f"{one.setting}: {one.text}", f"  {one.reason}", f"  to settle it: {one.settle}"]
            return print_result(args, seen.to_json(), "\n".join(lines))
        choose = None if args.choose is None else args.choose.split(",")
        about = (args.dataset, args.minutes, choose, args.name or "", args.method, args.epochs, args.root, args.device)
        methods = [name for text in args.methods or () for name in text.split(",") if name]
        request = AdviceRequest(*about, args.frozen, methods or None)
        plan = plan_advice(request, on_progress)
    if args.dry_run:
        record = {"plan": plan.to_json(), "sentence": plan.sentence()}
        return print_result(args, record, plan.sentence())
    print_note(plan.sentence())
    print_note(f"its name is {plan.name}; the same command with --name {plan.name} goes on with it")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with progress_of(args) as on_progress:
        answer = adviser.advise(plan, on_progress, wait_for_device)
    print_result(args, dict(answer), text_of(answer))


def text_of(found: Answer) -> str:
    """The answer for a terminal."""
    is_labeled = bool(found["plan"]["labeled"])
    points = 100 if is_labeled else 1
    held_out, rest = (int(str(found["plan"][name])) for name in ("held_out", "train"))
    lines = [f"{found['criterion']}: {held_out:,} of {held_out + rest:,} training images, which no try trains on", ""]
    if decision := found.get("decision"):
        return "\n".join([*lines, *_decision_lines(decision), *_failed(found), "", found["verdict"]])
    if regimes := found.get("regimes"):
        beside = [*_failed(found), *_untrained(found), *_untried(found)]
        return "\n".join([*lines, *_regime_lines(regimes, points), *beside, "", found["verdict"]])
    for row in found["rows"]:
        against = f"  {points * row['difference']:+.1f} to the default, {row['shown']}" if "difference" in row else ""
        label = f"{row['label']} (default)" if row["is_default"] else row["label"]
        against += f"  {points * row['on_curve']:.1f} on the curve" if "on_curve" in row else ""
        lines.append(f"{_figure(row, points)} {label}, {counted(row['epochs'], 'epoch')}, {_seeds(row)}{against}")
    lines += [*_failed(found), *_untrained(found), *_untried(found)]
    lines += ["", found["verdict"], *([] if is_labeled else [AGREEMENT])]
    for at in found["why"].get("effective_negatives", []):
        lines.append(f"at τ {at['value']:g} the push is spread over {at['negatives']:.0f} of {at['of']} rows")
    if found["test"]:
        lines += ["", found["test"]["sentence"]]
    return "\n".join(lines)


def _untrained(found: Answer) -> list[str]:
    return [f"{100 * share:7.1f}{'':<18} {name}" for name, share in found["baselines"].items()]


def _untried(found: Answer) -> list[str]:
    return [f"  no time for: {', '.join(found['untried'])}"] if found["untried"] else []


def _figure(row: Mapping[str, Any], points: int) -> str:
    """A mean with its interval, in columns."""
    interval = " ({:.1f} to {:.1f})".format(*(points * end for end in row["interval"])) if row["interval"] else ""
    return f"{points * row['mean']:7.1f}{interval:<18}"


def _seeds(row: Mapping[str, Any]) -> str:
    """How many seeds a mean is of, or what its interval is over."""
    seeds = counted(row["seeds"], "seed") if row["seeds"] else ""
    return f"95 % over {row['basis']}" if row.get("basis") else seeds


def _regime_lines(regimes: Sequence[Regime], points: int) -> list[str]:
    """Methods at equal epochs, then at equal time."""
    lines = []
    for regime in regimes:
        lines.append(f"{regime['title']}:")
        for row in regime["rows"]:
            tried = f"{counted(row['epochs'], 'epoch')}, {row['seconds']:.0f} s, {_seeds(row)}"
            lines.append(f"{_figure(row, points)} {row['label']}, {tried}")
    return lines


def _failed(found: Answer) -> list[str]:
    return [f"  failed: {label}: {why}" for label, why in found["failed"].items()]


def _decision_lines(decision: Decision) -> list[str]:
    """Every option with its score, and the comparisons that the answer rests on."""
    lines = []
    for row in decision["rows"]:
        option = f": {OPTIONS[row['option']]}" if row["is_chosen"] else ""
        seeds = ", ".join(filter(None, [row["label"], _seeds(row)]))
        lines.append(f"{_figure(row, 100)} {seeds}{option}")
    for pair in decision["pairs"]:
        if pair["interval"]:
            low, high = (100 * end for end in pair["interval"])
            difference = f"{100 * pair['difference']:+.1f} points ({low:+.1f} to {high:+.1f})"
            lines.append(f"  {pair['a']} to {pair['b']}: {difference}, {pair['shown']}")
    return lines
