"""The command `advise`: a first look at images, and a search for settings supported by held-out images."""

import signal
from argparse import Namespace

from contrastive_core.advice import search
from contrastive_core.advice.candidates import AdviceRequest, plan_advice
from contrastive_core.advice.first_look import in_words, look
from contrastive_core.advice.plan import CRITERION, Answer, AnswerRow
from contrastive_core.cli.output import counted, print_note, print_result, progress_of
from contrastive_core.engine.queue import wait_for_device


def advise(args: Namespace) -> None:
    """Describe the images; then, unless `--look` is set, search for settings."""
    with progress_of(args) as on_progress:
        if args.look:
            seen = look(args.dataset, args.root, args.method, args.device, on_progress)
            lines = [f"{seen.dataset}: {in_words(seen.facts)}"]
            for one in seen.suggestions:
                lines += ["", f"{one.setting}: {one.text}", f"  {one.reason}", f"  to settle it: {one.settle}"]
            return print_result(args, seen.to_json(), "\n".join(lines))
        request = AdviceRequest(
            dataset=args.dataset,
            minutes=args.minutes,
            choose=None if args.choose is None else args.choose.split(","),
            name=args.name or "",
            method=args.method,
            epochs=args.epochs,
            root=args.root,
            device=args.device,
            references=args.reference,
            methods=[name for text in args.methods or () for name in text.split(",") if name] or None,
        )
        plan = plan_advice(request, on_progress)
    if args.dry_run:
        return print_result(args, {"plan": plan.to_dict(), "sentence": plan.sentence()}, plan.sentence())
    print_note(plan.sentence())
    print_note(f"its name is {plan.name}; the same command with --name {plan.name} goes on with it")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with progress_of(args) as on_progress:
        answer = search.advise(plan, on_progress, wait_for_device)
    print_result(args, dict(answer), text_of(answer))


def text_of(answer: Answer) -> str:
    """Format an answer for a terminal."""
    held_out, rest = (int(str(answer["plan"][name])) for name in ("held_out", "train"))
    lines = [f"{CRITERION}: {held_out:,} of {held_out + rest:,} training images, which are not used for training", ""]
    for row in answer["rows"]:
        label = f"{row['label']} (default)" if row["is_default"] else row["label"]
        took = f"{counted(row['epochs'], 'epoch')}, {row['seconds']:.0f} s, {counted(row['seeds'], 'seed')}"
        lines.append(f"{_figure(row)} {label}, {took}")
    lines += [f"{_figure(row)} {row['label']}" for row in answer["references"]]
    lines += [f"  failed: {label}: {why}" for label, why in answer["failed"].items()]
    lines += [f"  no time for: {', '.join(answer['untried'])}"] if answer["untried"] else []
    lines += ["", *(f"  {one}" for one in answer["comparisons"]), "", answer["verdict"]]
    return "\n".join([*lines, "", answer["test"]] if answer["test"] else lines)


def _figure(row: AnswerRow) -> str:
    """Format a mean with its interval and the interval's basis, in columns."""
    ends = row["interval"]
    interval = f" ({100 * ends[0]:.1f} to {100 * ends[1]:.1f}, over {row['basis']})" if ends else ""
    return f"{100 * row['mean']:7.1f}{interval:<40}"
