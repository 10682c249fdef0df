"""The tables of a data set's splits as one list. Torch-free."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from math import hypot

import numpy as np

from contrastive_core.messages import N_
from contrastive_core.records.sample_table import SampleTable

__all__ = ["merged_table"]

COUNT = ("wrong", "wrong_low", "wrong_high")


def merged_table(tables: Mapping[str, SampleTable]) -> SampleTable:
    """The rows of all splits, one split after the other, with two more columns in `extra`: `split`,
    and `own_id`, the id in it. Where splits share an id, `id` names the split before it.

    The number of wrong labels is the sum; its interval is by the method of variance estimates
    recovery (Zou & Donner 2008, Stat. Med. 27), for independent splits. Raises ValueError for none.
    """
    if not tables:
        raise ValueError(N_("there is no table to join"))
    parts, names = list(tables.values()), list(tables)
    if len(parts) == 1:  # as it lies in its file: a million rows are not copied
        split = np.broadcast_to(np.array(names[0]), len(parts[0]))
        extra = {**parts[0].extra, "split": split, "own_id": parts[0].columns["id"]}
        return dataclasses.replace(parts[0], extra=extra)
    split = np.concatenate([np.full(len(t), s) for s, t in tables.items()])
    own = np.concatenate([t.columns["id"] for t in parts]).astype(str)
    _, where, times = np.unique(own, return_inverse=True, return_counts=True)
    ids = np.array([f"{s}/{i}" if n > 1 else str(i) for s, i, n in zip(split, own, times[where], strict=True)])
    columns = {k: np.concatenate([t.columns[k] for t in parts]) for k in parts[0].columns}
    extra = {
        k: np.concatenate([t.extra[k] for t in parts])
        for k, v in parts[0].extra.items()
        if all(k in t.extra and t.extra[k].shape[1:] == v.shape[1:] for t in parts)
    }
    return dataclasses.replace(
        parts[0],
        columns={**columns, "id": ids},
        extra={**extra, "split": split, "own_id": own},
        facts=_together(parts),
        knob="",
        grid=np.zeros(0),
    )


def _together(parts: list[SampleTable]) -> dict[str, float]:
    """The facts that can be added up."""
    known = [[t.facts[k] for k in COUNT] for t in parts if all(k in t.facts for k in COUNT)]
    if len(known) < len(parts):
        return {}
    number, low, high = np.array(known).T
    total = float(number.sum())
    return {
        "wrong": total,
        "wrong_low": max(0.0, total - hypot(*(number - low))),
        "wrong_high": total + hypot(*(high - number)),
    }
