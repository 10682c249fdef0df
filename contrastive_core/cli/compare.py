"""The command `compare`: which of several spaces is better, how similar they are, and on which samples they differ.
`--differences` lists groups of samples, `--duels` asks for decisions, `--adapter` maps old vectors to new ones."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.progress import OnProgress
from contrastive_core.base.score import recall_text, scores_from_json
from contrastive_core.cli.command_io import (
    out_path,
    print_note,
    print_result,
    progress_of,
    score_beside_chance,
    spaces_of,
    table_lines,
    towers_space,
)
from contrastive_core.compare.adapter import KINDS, Adapter, adapter_request, title_of
from contrastive_core.compare.comparison import Comparison, check_accuracies, comparison_request
from contrastive_core.compare.differences import EXAMPLES, NONE, Differences, differences_request
from contrastive_core.compare.representation_similarity import MEASURES
from contrastive_core.compare.towers import answers_of
from contrastive_core.compare.verdicts import ACCURACIES
from contrastive_core.engine import answers
from contrastive_core.exchange.exporters import save_adapter
from contrastive_core.samples import annotations
from contrastive_core.samples.duels import KEYS, MARGIN, Duels
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import TEXT, towers_of

BY = "terminal"  # the source of decisions
HELP = "l: left, r: right, b: both, n: neither, u: undo, q: stop; then press Enter"
SHOWN = 60  # characters of a text
Cells = tuple[str, float, float, tuple[float, float], float]  # title, of a, of b, interval of the difference, p


def compare(args: Namespace) -> None:
    """Compare runs on the same samples: which one is better, how similar their embeddings are, or what differs."""
    for is_chosen, command in ((args.adapter, _adapter), (args.differences, _differences), (args.duels, _duels)):
        if is_chosen:
            return command(args)
    metrics = [name.strip() for name in args.metrics.split(",")] if args.metrics else [*ACCURACIES]
    check_accuracies(metrics)
    spaces = spaces_of(args)
    with progress_of(args) as on_progress:
        values = {**comparison_request(spaces, every_score=False, qrels=args.qrels), "metrics": metrics}
        values |= {"is_scored_only": True} if args.qrels else {}
        made = answers.make("comparison", values, on_progress, args.device)
        comparison, by_chance, recalls = Comparison.of(made.meta, made.arrays), {}, {}
        if not args.qrels:
            by_chance = answers.make("calibration", {"spaces": values["spaces"]}, on_progress, args.device).arrays
            recalls = _recalls(spaces, comparison.names, args.device, on_progress)
        sets = [answers.rows_of(space, on_progress, args.device) for space in spaces[:2]]
    lines = [*comparison.verdicts.values()] or [comparison.verdict]
    lines += [d.contrast.sentence for d in comparison.differences if len(comparison.names) > 2]
    if by_chance and len(comparison.names) == 2:
        for m in MEASURES:
            limit, calibrated, p = (by_chance[f"{name}:{m}"][0, 1] for name in ("chance", "calibrated", "p"))
            value = getattr(comparison, m)[0, 1]
            lines.append(f"{m} {value:.3f}, by chance {limit:.3f}, calibrated {calibrated:.3f}, p = {p:.3f}")
    if note := recall_text(comparison.recall):
        lines.append(f"shared neighbors: {note}")
    for m, made_of in comparison.made_of.items():
        named = zip(comparison.names, made_of, strict=True)
        lines += [f"{comparison.titles[m]} of {name}: {text}" for name, text in named if text]
    for name, found in recalls.items():
        own, chance = scores_from_json(found["own"]), scores_from_json(found["chance"])
        lines += [f"{own[key].title} of {name}: {score_beside_chance(own, chance, key)}" for key in chance]
        lines += [f"{name}: {warning}" for warning in found["warnings"]]
    record: dict[str, object] = {
        **{name: getattr(comparison, name) for name in ("verdict", "verdicts", "accuracy", "made_of", "recall")},
        "runs": comparison.names,
        "towers": recalls,
        "differences": [{**vars(d), "claimed": d.claimed} for d in comparison.differences],
        **{m: getattr(comparison, m).tolist() for m in MEASURES},
        "by_chance": {m: np.where(np.isnan(v), np.array(None), v).tolist() for m, v in by_chance.items()},
    }
    if any(m not in ACCURACIES for m in comparison.correct):
        said, of_queries = query_figures(comparison, sets, 0.5 if args.margin is None else args.margin, args.top)
        lines += said
        record |= of_queries
    print_result(args, record, "\n".join(lines))


def _recalls(
    spaces: Sequence[Space], names: Sequence[str], device: str, on_progress: OnProgress
) -> dict[str, JsonObject]:
    """Return the recall between two towers, the chance level and warnings, by the name of the space."""
    found: dict[str, JsonObject] = {}
    for name, space in zip(names, spaces, strict=True):
        if run := space.run:
            if not run.has_towers:
                continue
            space = Space.of_run(run, space.split, TOWERS)
        elif towers_of(answers.rows_of(space, on_progress, device)) is None:
            continue
        meta = answers.make("towers", {"space": space.values}, on_progress, device).meta
        found[name] = {**meta["scores"], "warnings": [str(text) for text in meta["warnings"]]}
    return found


# --- metrics of queries ---


def query_figures(
    comparison: Comparison, sets: Sequence[EmbeddingSet], margin: float, top: int
) -> tuple[list[str], JsonObject]:
    """Return the comparison of query metrics as lines of text and as plain values: `against`, a sentence for each
    metric; `groups`; `changed`, queries with a value and an answer of each space; and the values `per_query`.
    Args: sets: rows of the first two spaces; margin: relevant difference in points; top: number of queries to list."""
    first, (a, b) = next(iter(comparison.correct)), comparison.names[:2]
    pair = [d for d in comparison.differences if (d.a, d.b) == (a, b)]
    against = [d.contrast.against(margin / 100) for d in pair]
    groups = [(sets[0].class_name(d.label), d) for d in comparison.by_class(first)]
    values = [comparison.accuracy[d.metric] for d in pair]
    rows = [(d.title, own[0], own[1], d.interval, d.p_corrected) for own, d in zip(values, pair, strict=True)]
    lines = [*_table("", a, b, rows), "", *against]
    if groups:
        rows = [(f"{name} ({d.n:,})", *d.accuracies, d.interval, d.p) for name, d in groups]
        lines += _table(comparison.titles[first], a, b, rows)
    rows_changed, judged = comparison.changed(first), comparison.judged[first]
    shown = rows_changed[: max(top, 0)].tolist()
    ids = [comparison.ids[q] for q in shown]
    text_of, changed = dict(zip(sets[0].ids, sets[0].columns.get(TEXT, ()), strict=False)), list[JsonObject]()
    for q, name, *answers_of_both in zip(shown, ids, *(answers_of(rows, ids) for rows in sets), strict=True):
        own = comparison.correct[first][:2, q].astype(float).tolist()
        changed.append({"id": name, "text": str(text_of.get(name, "")), "values": own, "answers": answers_of_both})
    if changed:
        head = f"{comparison.titles[first]} differs on {len(rows_changed):,} of {judged.sum():,} queries, most on:"
        lines += ["", head]
    for row in changed:
        lines.append(f"  {row['id']}  {_short(row['text'])}".rstrip())
        for value, answer in zip(row["values"], row["answers"], strict=True):
            lines.append(f"    {value:.2f}  {_short(answer)}")
    return lines, {
        "margin": margin,
        "against": against,
        "groups": [vars(d) | {"group": name} for name, d in groups],
        "changed": changed,
        "queries": [name for name, is_judged in zip(comparison.ids, judged, strict=True) if is_judged],
        "per_query": {m: comparison.correct[m][:, judged].astype(float).tolist() for m in comparison.correct},
    }


def _table(head: str, a: str, b: str, rows: Sequence[Cells]) -> list[str]:
    """Format the metrics of two spaces as table lines: values in percent, difference in points with interval, and p."""
    cells = [(head, a, b, "A − B", "95 %", "p, corrected")]
    for name, one, two, (low, high), p in rows:
        values = (f"{100 * one:.1f}", f"{100 * two:.1f}", f"{100 * (one - two):+.1f}")
        cells.append((name, *values, f"{100 * low:+.1f} to {100 * high:+.1f}", f"{p:.2g}"))
    return ["", *table_lines(cells)]


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


# --- groups that differ, and decisions between first answers ---


def _differences(args: Namespace) -> None:
    """Print the groups in which two spaces differ, and the basis of the result. Raises ValueError."""
    spaces = spaces_of(args)
    values = differences_request(spaces)
    with progress_of(args) as on_progress:
        found = Differences.of(answers.make("differences", values, on_progress, args.device).meta)
        ids = answers.rows_of(spaces[0], on_progress, args.device).ids
    names, notes, groups = values["names"], [str(note) for note in found.notes], []
    lines = [] if found.groups else [NONE]
    for group in found.groups:
        a, b = (f"{100 * share:.0f} %" for share in group.cohesion)
        members, said = [ids[row] for row in group.rows], str(group.sentence(names))
        lines += [said, f"   nearer to a member than to a stranger: {a} in {names[0]}, {b} in {names[1]}"]
        lines += [f"   {', '.join(members[:EXAMPLES])}"]
        groups.append({**asdict(group), "ids": members, "sentence": said, "gap": group.gap})
    record = {"names": names, **asdict(found), "groups": groups, "notes": notes}
    print_result(args, record, "\n".join([*lines, *notes]))


def _duels(args: Namespace) -> None:
    """Take decisions from a terminal or from piped lines, then print the difference and whether to stop. Raises
    ValueError."""
    spaces, margin = spaces_of(args), MARGIN if args.margin is None else args.margin / 100
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


# --- an adapter ---


def _adapter(args: Namespace) -> None:
    """Write a map from old vectors to new ones, and print the recall it keeps. Raises ValueError."""
    out = out_path(args.adapter, ".npz", ".onnx", option="--adapter")
    if len(args.runs) != 2:
        raise ValueError(f"--adapter takes two spaces, the old model's and the new one's; got {len(args.runs)}")
    old, new = (towers_space(args, name) for name in args.runs)
    with progress_of(args) as on_progress:
        made = answers.make("adapter", adapter_request(old, new), on_progress, args.device)
    meta = made.meta
    save_adapter(Adapter(meta["kind"], made.arrays["matrix"], made.arrays["offset"], meta["setting"]), out)
    heads, *rows = adapter_sentences(meta)
    lines = [f"{out}: {heads}", *rows]
    groups = [one for one in meta["groups"] if one["difference"] < 0][: max(args.top, 0)]
    lines += ["Groups of queries that keep least:"] if groups else []
    for one in groups:
        text = f"  {one['name']} ({one['n']:,})  {100 * one['value']:.1f} %, {100 * one['difference']:+.1f} points"
        lines.append(f"{text} from the others, p = {one['p']:.2g}")
    print_result(args, {"out": str(out), **meta}, "\n".join(lines))


def adapter_sentences(meta: JsonObject) -> list[str]:
    """Describe the map between two models, then in a line each what every map keeps, old queries, and what is kept if
    some documents are encoded again. Args: meta: of the analysis "adapter"."""
    low, high = meta["old"][1]
    lines = [
        f"{KINDS[meta['kind']]} map from {meta['widths'][0]} to {meta['widths'][1]} dimensions, fitted on "
        f"{meta['fitted']:,} documents; {meta['queries']:,} queries on {meta['held']:,} held-out documents.",
        f"Recall@{meta['k']} kept of the new model's answers (lower bound, 95 %, for all maps together):",
    ]
    for one in sorted(meta["kept"], key=lambda one: -one["value"]):
        name = title_of(one["kind"], one["setting"])
        lines.append(f"  {name:<24} {100 * one['value']:5.1f} %  at least {100 * one['bound']:.1f} %")
    lines.append(f"  {'old queries':<24} {100 * meta['old'][0]:5.1f} %  ({100 * low:.1f} to {100 * high:.1f})")
    lines.append("Kept if a share of the documents is encoded again, frequent answers first (in random order):")
    lines += [f"  {100 * share:3.0f} %  {100 * a:5.1f} %  ({100 * b:.1f} %)" for share, a, b in meta["partial"]]
    return lines
