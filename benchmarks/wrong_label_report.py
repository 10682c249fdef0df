"""The tables of `benchmarks.label_errors`: every set, the means of groups, and what is missed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

__all__ = ["report"]

Figures = dict[str, Any]
VOTERS = ("loss", "neighbors", "probe", "scaled_probe", "discriminant")


def report(known: dict[str, Figures]) -> list[dict[str, Any]]:
    """Print the tables; the lines for the table of all benchmarks."""
    print("average precision; the interval is that of the list less the best peer of the set")
    print(f"{'set':<38}{'wrong':>9}  list   best peer{'':27}interval         first 50/100/n  above 0.5, cleanlab")
    for key, f in known.items():
        print(line(key, f))
    means = {name: mean(known.values(), name) for name in next(iter(known.values()))["lists"]}
    peers = [n for n in means if n != "list" and n not in VOTERS]
    print("\nmean over all sets: average precision, precision of the first 50, 100, n")
    for name in means:
        at = "  ".join(f"{mean(known.values(), name, k):.3f}" for k in ("ap", "50", "100", "n"))
        print(f"{name:<28}{at}")
    print(f"{'chance':<28}{np.mean([f['wrong'] / f['n'] for f in known.values()]):.3f}")
    print("\nby group: the list, the best peer of the group, sets where the list is worse")
    for part, of in PARTS.items():
        for group in dict.fromkeys(of(key) for key in known):
            print(grouped(part, group, [f for k, f in known.items() if of(k) == group], peers))
    worse = [k for k, f in known.items() if f["high"] < 0]
    better = sum(f["low"] > 0 for f in known.values())
    print(
        f"\nworse than the best peer of the set in {len(worse)} of {len(known)}, better in "
        f"{better}, neither in {len(known) - len(worse) - better}"
    )
    print("\n".join(numbers(known.values())))
    best = max(peers, key=means.__getitem__)
    return [
        {
            "name": "wrong labels: mean of all sets",
            "value": means["list"],
            "unit": "average precision",
            "peer": best,
            "peer_value": means[best],
            "ratio": means["list"] / means[best],
            "goal": 1.0,
            "met": means["list"] >= means[best],
        },
        {
            "name": "wrong labels: sets where the best peer of the set is better",
            "value": len(worse),
            "unit": f"of {len(known)} sets",
            "peer": "limit",
            "peer_value": 0,
            "ratio": None,
            "goal": 1.0,
            "met": not worse,
        },
    ]


def line(key: str, f: Figures) -> str:
    """One set."""
    ours, best = f["lists"]["list"], f["lists"][f["best"]]
    at = "/".join(f"{ours[k]:.2f}" for k in ("50", "100", "n"))
    cleanlab = "/".join(f"{v:.0f}" for v in f["cleanlab"].values())
    return (
        f"{key:<38}{f['wrong']:>4}/{f['n']:<4}  {ours['ap']:.3f}  {best['ap']:.3f} {f['best']:<28}"
        f"{f['low']:+.3f} {f['high']:+.3f}  {at}  {f['above']}, {cleanlab}"
    )


def mean(figures: Iterable[Figures], name: str, of: str = "ap") -> float:
    return float(np.mean([f["lists"][name][of] for f in figures]))


PARTS: dict[str, Callable[[str], str]] = {
    "data": lambda key: key.split("-")[0],
    "kind": lambda key: key.split("-")[1],
    "rate": lambda key: key.split("-")[2],
    "encoder": lambda key: key.split(" ", 1)[1],
}


def grouped(part: str, group: str, figures: list[Figures], peers: list[str]) -> str:
    """The sets of one group."""
    best = max(peers, key=lambda name: mean(figures, name))
    worse = sum(f["high"] < 0 for f in figures)
    return (
        f"{part:<8}{group:<12}{mean(figures, 'list'):.3f}  {mean(figures, best):.3f} {best:<28}"
        f"{worse} of {len(figures)}"
    )


def numbers(figures: Iterable[Figures]) -> list[str]:
    """How well the number of labels above 0.5, and their precision, hold."""
    every = list(figures)
    off = np.median([abs(f["above"] / f["wrong"] - 1) for f in every])
    fewer = sum(f["above"] < f["wrong"] / 2 for f in every)
    theirs = {k: np.median([abs(f["cleanlab"][k] / f["wrong"] - 1) for f in every]) for k in every[0]["cleanlab"]}
    known = [f for f in every if f["above"] >= 20]
    gap = [f["precision"] - f["expected"] for f in known]
    suggested = np.nanmean([f["suggested"] for f in known])
    return [
        f"number of labels above 0.5: off by {off:.0%} of the wrong ones in the median set (cleanlab's count: "
        f"{', '.join(f'{v:.0%} {k}' for k, v in theirs.items())}), "
        f"fewer than half of them in {fewer} of {len(every)} sets",
        f"above 0.5 (sets with 20 or more there): {np.mean([f['precision'] for f in known]):.3f} "
        f"are wrong, {np.mean([f['expected'] for f in known]):.3f} expected; the difference lies "
        f"between {np.quantile(gap, 0.1):+.3f} and {np.quantile(gap, 0.9):+.3f} in 80 % of the "
        f"sets; the suggested class is right for {suggested:.3f} of the wrong ones",
    ]
