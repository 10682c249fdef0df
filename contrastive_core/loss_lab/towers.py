"""Rows of two towers for the Loss Lab: as many whole groups as the matrix shows, chosen by a seed."""

from typing import Any

import numpy as np

from contrastive_core.errors import UnusableEmbedding
from contrastive_core.messages import N_, join, message
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.lab_towers import LabTower, TowerBatch
from contrastive_core.records.towers import TEXT, Towers
from contrastive_core.storage.regular_files import printable, thousands

NO_PARTNERS = N_("No usable row of {a} has a partner among those of {b}: no value of the column pair is in both.")
SOME = N_("Shown: {n} of {of_n} rows of {a} and {m} of {of_m} rows of {b}. Another batch number draws others.")
LEFT_OUT = (N_("Left out: 1 row without a partner."), N_("Left out: {count} rows without a partner."))
LONGEST = 200  # characters of a row's text
LONGEST_ID = 40


def batch_of_towers(towers: Towers, pictures: Any, most: int, seed: int, only_a: bool = False) -> TowerBatch:
    """Some rows of two towers with their partners, by class where rows have one.

    Args: pictures: (n, c, h, w) uint8 of all rows, or None; most: rows of each tower; only_a: of tower a alone.
    Raises: UnusableEmbedding without partners."""
    sides = towers.usable_sides()
    group_a, group_b = (group[group >= 0] for _, group in sides)
    shared = np.intersect1d(group_a, group_b)
    if not len(shared):
        raise UnusableEmbedding(NO_PARTNERS, a=towers.names[0], b=towers.names[1])
    chosen = _choose(sides, np.random.default_rng(seed).permutation(shared), max(1, most))
    if (labels := towers.rows.labels) is not None:  # groups of a class stand together
        by_class = np.argsort([labels[rows[0]] for rows in chosen[0]], kind="stable")
        chosen = [[groups[g] for g in by_class] for groups in chosen]
    at = [np.concatenate(groups) for groups in chosen]
    numbers = [np.repeat(np.arange(len(groups)), [len(rows) for rows in groups]) for groups in chosen]
    shown, thumbs = _pictures(pictures, at[0], at[1], only_a)
    parts = (thumbs[: len(at[0])], thumbs[len(at[0]) :])
    a, b = (
        LabTower(
            name,
            towers.rows.features[rows],
            group,
            row_names(towers.rows, name, rows),
            row_texts(towers.rows, rows),
            part,
        )
        for name, rows, group, part in zip(towers.names, at, numbers, parts, strict=True)
    )
    return TowerBatch(a, b, shown, _part(towers, a, b))


def row_names(rows: EmbeddingSet, tower: str, at: np.ndarray) -> list[str]:
    """Name rows of a tower by the tower and their id."""
    ids = (printable(rows.ids[i].removeprefix(f"{tower}:"), LONGEST_ID) for i in at.tolist())
    return [message("{tower} {row}", tower=tower, row=row) for row in ids]


def row_texts(rows: EmbeddingSet, at: np.ndarray) -> list[str]:
    """What rows say, on one line, cut where it is long; "" for nothing."""
    texts = rows.columns.get(TEXT)
    if texts is None or texts.dtype.kind != "U":
        return [""] * len(at)
    return [printable(" ".join(str(text)[: 2 * LONGEST].split()), LONGEST) for text in texts[at]]


def _choose(sides: list[tuple[np.ndarray, np.ndarray]], order: np.ndarray, most: int) -> list[list[np.ndarray]]:
    """Row numbers of a and of b, group by group in this order, until a tower has `most`; of the last group some."""
    ends = []
    for _, group in sides:
        by_group = np.argsort(group, kind="stable")
        ends.append((by_group, *(np.searchsorted(group[by_group], order, side) for side in ("left", "right"))))
    chosen: list[list[np.ndarray]] = [[], []]
    left = [most, most]
    for g in range(len(order)):
        if not min(left):
            break
        for side, ((at, _), (by_group, start, stop)) in enumerate(zip(sides, ends, strict=True)):
            chosen[side].append(at[by_group[start[g] : stop[g]]][: left[side]])
            left[side] -= len(chosen[side][-1])
    return chosen


def _pictures(pictures: Any, a: np.ndarray, b: np.ndarray, only_a: bool) -> tuple[np.ndarray | None, list[int]]:
    """Pictures (k, c, h, w) of rows of a and b, and which each row has, -1 for none. A picture of a single color stands
    for none, as where a file lacks some."""
    rows = a if only_a else np.concatenate([a, b])
    numbers = np.full(len(a) + len(b), -1)
    if pictures is None:
        return None, numbers.tolist()
    shown = np.asarray(pictures[rows])
    flat = shown.reshape(len(shown), -1)
    differ = np.flatnonzero(flat.min(1) < flat.max(1))
    numbers[differ] = np.arange(len(differ))
    return (shown[differ] if len(differ) else None), numbers.tolist()


def _part(towers: Towers, a: LabTower, b: LabTower) -> str:
    """Which rows these are of all rows of the towers; "" for all."""
    alone = sum(towers.without_partner)
    of_n, of_m = (int((group >= 0).sum()) for group in (towers.group_a, towers.group_b))
    parts = []
    if len(a.rows) < of_n or len(b.rows) < of_m:
        counts = thousands(n=len(a.rows), m=len(b.rows), of_n=of_n, of_m=of_m)
        parts.append(message(SOME, a=towers.names[0], b=towers.names[1], **counts))
    if alone:
        parts.append(message(LEFT_OUT[alone > 1], **thousands(count=alone)))
    return join(" ", parts)
