"""`advise`: a first look at some images, and which settings held-out images support."""

import signal
from argparse import Namespace
from collections.abc import Sequence

from contrastive_core.advice import adviser
from contrastive_core.advice.first_look import in_words, look
from contrastive_core.advice.planning import AdviceRequest, plan_advice
from contrastive_core.cli.output import print_note, print_result, progress_of
from contrastive_core.engine.queue import wait_for_device
from contrastive_core.records.advice import AGREEMENT, OPTIONS, Answer, Decision, Regime


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
        request = AdviceRequest(*about, args.frozen)
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
    lines = [f"{found['criterion']}, {found['plan']['held_out']:,} images set aside", ""]
    if decision := found.get("decision"):
        return "\n".join([*lines, *_decision_lines(decision), *_failed(found), "", found["verdict"]])
    if regimes := found.get("regimes"):
        beside = [*_failed(found), *_untrained(found), *_untried(found)]
        return "\n".join([*lines, *_regime_lines(regimes, points), *beside, "", found["verdict"]])
    for row in found["rows"]:
        interval = " ({:.1f} to {:.1f})".format(*(points * end for end in row["interval"])) if row["interval"] else ""
        against = f"  {points * row['difference']:+.1f} to the default, {row['shown']}" if "difference" in row else ""
        label = f"{row['label']} (default)" if row["is_default"] else row["label"]
        against += f"  {points * row['on_curve']:.1f} on the curve" if "on_curve" in row else ""
        tried = f"{row['epochs']} epochs, {row['seeds']} seed" + "s" * (row["seeds"] > 1)
        lines.append(f"{points * row['mean']:7.1f}{interval:<18} {label}, {tried}{against}")
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


def _regime_lines(regimes: Sequence[Regime], points: int) -> list[str]:
    """Methods at equal epochs, then at equal time."""
    lines = []
    for regime in regimes:
        lines.append(f"{regime['title']}:")
        for row in regime["rows"]:
            low, high = (points * end for end in row["interval"]) if row["interval"] else (None, None)
            interval = "" if low is None else f" ({low:.1f} to {high:.1f})"
            tried = f"{row['epochs']} epochs, {row['seconds']:.0f} s, {row['seeds']} seed" + "s" * (row["seeds"] > 1)
            lines.append(f"{points * row['mean']:7.1f}{interval:<18} {row['label']}, {tried}")
    return lines


def _failed(found: Answer) -> list[str]:
    return [f"  failed: {label}: {why}" for label, why in found["failed"].items()]


def _decision_lines(decision: Decision) -> list[str]:
    """Every option with its score, and the comparisons that the answer rests on."""
    lines = []
    for row in decision["rows"]:
        low, high = (100 * end for end in row["interval"]) if row["interval"] else (None, None)
        interval = "" if low is None else f" ({low:.1f} to {high:.1f})"
        seeds = f", {row['seeds']} seed" + "s" * (row["seeds"] > 1) if row["seeds"] else ""
        option = f": {OPTIONS[row['option']]}" if row["is_chosen"] else ""
        lines.append(f"{100 * row['mean']:7.1f}{interval:<18} {row['label']}{seeds}{option}")
    for pair in decision["pairs"]:
        if pair["interval"]:
            low, high = (100 * end for end in pair["interval"])
            difference = f"{100 * pair['difference']:+.1f} points ({low:+.1f} to {high:+.1f})"
            lines.append(f"  {pair['a']} to {pair['b']}: {difference}, {pair['shown']}")
    return lines
