"""Text of `evaluate --cost`, what compressed vectors lose, and of `compare --adapter`, what mapped vectors keep."""

from argparse import Namespace
from dataclasses import replace

from contrastive_core.base.json_files import JsonObject
from contrastive_core.cli import sources
from contrastive_core.cli.output import out_path, print_result, progress_of
from contrastive_core.compare.adapter import KINDS, Adapter, adapter_request, title_of
from contrastive_core.compare.comparison import judgments_request
from contrastive_core.compare.compression import METRICS, best_by_size, scores_of, smallest
from contrastive_core.compare.judged_queries import FIGURES
from contrastive_core.engine import answers
from contrastive_core.exchange.exporters import save_adapter
from contrastive_core.spaces.space import TOWERS, Space


def towers_space(args: Namespace, name: str) -> Space:
    """Return the space of a file, or both towers of a run. Raises ValueError; OSError."""
    space = sources.space_of(name, args)
    return replace(space, layer=TOWERS) if space.run and space.run.has_towers else space


def print_cost(args: Namespace) -> None:
    """Print recall@10 and nDCG@10 by the bytes of a vector, and the smallest vectors that lose at most --margin."""
    values = {"space": towers_space(args, args.run).values, **judgments_request(args.qrels)}
    with progress_of(args) as on_progress:
        made = answers.make("compression", values, on_progress, args.device).meta
    cells = cost_cells(made)
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in cells]
    head, best, *said = cost_sentences(made, args.margin)
    kept = smallest(scores_of(made["scores"]), args.margin / 100)
    record = {**made, "margin": args.margin, "smallest": [vars(one) for one in kept], "against": said}
    print_result(args, record, "\n".join([head, "", *lines, "", best, *said]))


def cost_cells(made: JsonObject) -> list[tuple[str, ...]]:
    """Return a table of the best vectors of each size, the heads first. Args: made: of the analysis "compression"."""
    titles = [f"{FIGURES[m]}{part}" for m in METRICS for part in ("", ", change (95 %)")]
    cells = [("vector", "bytes", *titles)]
    scores = scores_of(made["scores"])
    full = scores[: len(METRICS)]
    for of_vector in [*(best for best in best_by_size(scores) if best[0].size < full[0].size), full]:
        row = ["full vectors" if of_vector is full else str(of_vector[0].contrast.first), f"{of_vector[0].size:,g}"]
        for one in of_vector:
            low, high = (f"{100 * end:+.1f}" for end in one.interval)
            row += [f"{100 * one.value:.1f}", f"{100 * one.loss:+.1f} ({low} to {high})"]
        cells.append(tuple(row))
    return cells


def cost_sentences(made: JsonObject, margin: float) -> list[str]:
    """Describe the rows, then the smallest vectors that lose at most `margin` points and their metrics."""
    counts = {k: f"{made[k]:,}" for k in ("queries", "of", "documents", "width")}
    head = "{queries} of {of} queries, {documents} documents, {width} dimensions; the best vectors of each size:"
    kept, points = smallest(scores_of(made["scores"]), margin / 100), f"{margin:g}"
    text = f"The smallest vectors that lose at most {points} points have {{size:,g}} of {4 * made['width']:,} bytes."
    best = text.format(size=kept[0].size) if kept else f"No vectors are shown to lose at most {points} points."
    return [head.format(**counts), best, *(str(one.contrast.against(margin / 100)) for one in kept)]


def write_adapter(args: Namespace) -> None:
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
