"""The table of benchmarks/methods_table.py, made of the runs that are kept in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from contrastive_core import methods
from contrastive_core.base.memory import read_npz
from contrastive_core.compare.verdicts import SettingScores, contrast, interval_and_basis

SCORES = {"knn": "kNN", "linear_probe": "probe"}
TITLES = {"frozen": "simclr-shapes, frozen"}
Runs = dict[tuple[str, str], dict[int, dict[str, np.ndarray]]]  # by side and method, then by seed


def read(folder: Path) -> dict[str, Runs]:
    """The runs of each data set."""
    found: dict[str, Runs] = {}
    for path in sorted(folder.glob("*--*--*--*.npz")):
        dataset, side, name, seed = path.stem.split("--")
        found.setdefault(dataset, {}).setdefault((side, name), {})[int(seed)] = read_npz(path)
    return found


def setting(label: str, by_seed: dict[int, dict[str, np.ndarray]], score: str) -> SettingScores:
    """What a method scored, by seed."""
    right = {seed: made[score].astype(float) for seed, made in by_seed.items()}
    return SettingScores(label, {seed: float(r.mean()) for seed, r in right.items()}, right)


def percent(made: SettingScores | None) -> str:
    """Mean and 95 % interval in per cent, over seeds and images; of images alone where one seed is all there is."""
    if made is None:
        return ""
    ends = interval_and_basis(made)[0] if len(made.scores) != 2 else None
    text = f"{100 * made.mean:.1f}"
    return (
        f"{text} [{max(0.0, 100 * ends[0]):.1f}, {min(100.0, 100 * ends[1]):.1f}]"
        if ends
        else f"{text} ({len(made.scores)} seeds)"
    )


def mean(runs: dict[int, dict[str, np.ndarray]], of: str) -> float:
    return float(np.mean([made[of] for made in runs.values()]))


def rate(runs: dict[int, dict[str, np.ndarray]]) -> float:
    """Images per second of processor time."""
    return mean(runs, "images") / mean(runs, "seconds")


def cells(runs: Runs, name: str, pools: dict[str, list[SettingScores]], tests: int) -> list[str]:
    """The cells of one method: ours, lightly's and the difference of each score; speed; memory."""
    mine, peer = runs.get(("ours", name)), runs.get(("lightly", name))
    row = [methods.get(name).card.title]
    for score in SCORES:
        one, two = (setting(f"{s} {name}", r, score) if r else None for s, r in (("ours", mine), ("lightly", peer)))
        row += [percent(one), percent(two), ""]
        if one and two:
            made = contrast(one, two, pools[score], tests)
            low, high = made.interval or (0.0, 0.0)
            sign = f" [{100 * low:+.1f}, {100 * high:+.1f}]" if made.interval else ""
            row[-1] = f"{100 * made.difference:+.1f}{sign}"
    rates = [rate(r) if r else 0.0 for r in (mine, peer)]
    row += [f"{r:,.0f}" if r else "" for r in rates] + [f"{rates[0] / rates[1]:.1f}" if all(rates) else ""]
    return row + [f"{mean(r, 'memory'):,.0f}" if r else "" for r in (mine, peer)]


def line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def of_set(dataset: str, runs: Runs) -> list[str]:
    """The lines of a data set's table."""
    names = list(dict.fromkeys(n for side, n in runs if side == "ours" or ("ours", n) in runs))
    peers = [n for n in names if ("lightly", n) in runs]
    order = peers + [n for n in names if n not in peers]
    pools = {s: [setting(f"{side} {n}", r, s) for (side, n), r in runs.items() if side != "reference"] for s in SCORES}
    if not order:
        return []
    counts = sorted({len(r) for (side, _), r in runs.items() if side != "reference"})
    seeds = " to ".join(map(str, sorted({counts[0], counts[-1]})))
    seconds = mean(runs["ours", order[0]], "seconds")
    head = ["", *(f"{t}, {c}" for t in SCORES.values() for c in ("ours", "lightly", "difference"))]
    head += ["images/s, ours", "lightly", "ratio", "MB, ours", "lightly"]
    lines = [
        f"### {dataset}: {seconds:.0f} s, seeds: {seeds}",
        "",
        line(head),
        line(["---"] + ["---:"] * (len(head) - 1)),
    ]
    for (side, name), made in runs.items():
        if side == "reference":
            figures = [percent(setting(name, made, s)) for s in SCORES]
            lines.append(line([TITLES.get(name, name), figures[0], "", "", figures[1], *[""] * 7]))
    tests = max(1, len(peers))
    return [*lines, *(line(cells(runs, name, pools, tests)) for name in order), ""]


def verdict(runs: Runs, dataset: str) -> list[str]:
    """Which methods miss the two goals on a data set: not below lightly's, and twice its speed."""
    peers = [n for side, n in runs if side == "lightly" and ("ours", n) in runs]
    texts = []
    for score, title in SCORES.items():
        pool = [setting(f"{side} {n}", r, score) for (side, n), r in runs.items() if side != "reference"]
        below = [n for n in peers if _sign(runs, n, score, pool, len(peers)) < 0]
        texts.append(f"{title} significantly below lightly's: {_names(below)}")
    slow = [n for n in peers if rate(runs["ours", n]) < 2 * rate(runs["lightly", n])]
    return [f"- {dataset}: {'; '.join(texts)}; less than twice its speed: {_names(slow)}."]


def _sign(runs: Runs, name: str, score: str, pool: list[SettingScores], tests: int) -> int:
    mine, peer = (setting(f"{side} {name}", runs[side, name], score) for side in ("ours", "lightly"))
    return contrast(mine, peer, pool, tests).sign


def _names(names: Sequence[str]) -> str:
    return ", ".join(methods.get(n).card.title for n in names) or "none"


def report(folder: Path) -> str:
    """The tables of every data set as Markdown, and what they say of the goals."""
    found = read(folder)
    lines = [text for dataset, runs in found.items() for text in of_set(dataset, runs)]
    return "\n".join([*lines, *(text for d, runs in found.items() for text in verdict(runs, d))])
