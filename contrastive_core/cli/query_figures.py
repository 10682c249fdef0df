"""Text of `compare` for queries: metrics such as nDCG@10, groups of queries, and the queries that changed most."""

from collections.abc import Sequence

from contrastive_core.base.json_files import JsonObject
from contrastive_core.compare.comparison import Comparison
from contrastive_core.compare.towers import answers_of
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import TEXT

SHOWN = 60  # characters of a text
Cells = tuple[str, float, float, tuple[float, float], float]  # title, of a, of b, interval of the difference, p


def query_figures(
    comparison: Comparison, sets: Sequence[EmbeddingSet], margin: float, top: int
) -> tuple[list[str], JsonObject]:
    """Return the comparison of query metrics as lines of text and as plain values.
    Args: sets: rows of the first two spaces; margin: relevant difference in points; top: number of queries to list."""
    first, (a, b) = next(iter(comparison.correct)), comparison.names[:2]
    pair = [d for d in comparison.differences if (d.a, d.b) == (a, b)]
    against = [d.contrast.against(margin / 100) for d in pair]
    groups = [(sets[0].class_name(d.label), d) for d in comparison.by_class(first, 0, 1)]
    values = [comparison.accuracy[d.metric] for d in pair]
    rows = [(d.title, own[0], own[1], d.interval, d.p_corrected) for own, d in zip(values, pair, strict=True)]
    lines = _table("", a, b, rows)
    lines += ["", *against]
    if groups:
        rows = [(f"{name} ({d.n:,})", *d.accuracies, d.interval, d.p) for name, d in groups]
        lines += _table(comparison.titles[first], a, b, rows)
    at, judged = comparison.changed(first), comparison.judged[first]
    changed = _changed(comparison, first, sets, [int(q) for q in at[: max(top, 0)]])
    if changed:
        lines += ["", f"{comparison.titles[first]} differs on {len(at):,} of {judged.sum():,} queries, most on:"]
    for row in changed:
        both = (f"    {value:.2f}  {_short(said)}" for value, said in zip(row["values"], row["answers"], strict=True))
        lines += [f"  {row['id']}  {_short(row['text'])}".rstrip(), *both]
    return lines, {
        "margin": margin,
        "against": against,
        "groups": [vars(d) | {"group": name} for name, d in groups],
        "changed": changed,
        "queries": [name for name, is_judged in zip(comparison.ids, judged, strict=True) if is_judged],
        "per_query": {m: comparison.correct[m][:, judged].astype(float).tolist() for m in comparison.correct},
    }


def _changed(comparison: Comparison, metric: str, sets: Sequence[EmbeddingSet], at: Sequence[int]) -> list[JsonObject]:
    """Return the id, text, metric values and top documents of some queries."""
    ids = [comparison.ids[q] for q in at]
    said = [answers_of(rows, ids) for rows in sets]
    texts = dict(zip(sets[0].ids, sets[0].columns.get(TEXT, ()), strict=False))
    return [
        {
            "id": name,
            "text": str(texts.get(name, "")),
            "values": comparison.correct[metric][:2, q].astype(float).tolist(),
            "answers": list(both),
        }
        for q, name, *both in zip(at, ids, *said, strict=True)
    ]


def _table(head: str, a: str, b: str, rows: Sequence[Cells]) -> list[str]:
    """Format the metrics of two spaces as table lines: values in percent, difference in points with interval, and p."""
    cells = [(head, a, b, "A − B", "95 %", "p, corrected")]
    for name, one, two, (low, high), p in rows:
        values = (f"{100 * one:.1f}", f"{100 * two:.1f}", f"{100 * (one - two):+.1f}")
        cells.append((name, *values, f"{100 * low:+.1f} to {100 * high:+.1f}", f"{p:.2g}"))
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["", *("  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in cells)]


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
