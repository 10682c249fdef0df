"""Builders of `Pairs` for the ways in which papers form positives and negatives.

Queue rows get groups of their own, so an old key of the same image is not a positive. Bank and queue rows have no row
id. Views are stored image-major: row = image · views + view."""

import dataclasses
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from contrastive_core.base.device import is_free_to_read
from contrastive_core.base.messages import N_, message
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs, check_comparable, check_labels, check_rows

VIEWS = N_("(images, views, d)")
DIRECTIONS = ("both", "a_to_b", "b_to_a")


def from_views(z: Float[Tensor, "b v d"], labels: Int[Tensor, " b"] | None = None, anchors: str = "all") -> Pairs:
    """Return the pairs of a multi-view batch: all views of an image (or of a class) are positives.

    Args:
        z: embeddings (images, views, d).
        labels: class per image, -1 for none; default: every image is its own group.
        anchors: "all", or "first_view" (all views stay candidates).
    Raises: ValueError for other dimensions or labels, or an unknown `anchors`; TypeError if `z` is no tensor."""
    check_rows("z", z, VIEWS)
    b, v, d = z.shape
    rows = _arange(b * v, z)
    # Without labels every image is its own group.
    groups = rows // max(v, 1) if labels is None else _labels("labels", labels, b, z.device).repeat_interleave(v)
    size = v if labels is None else None
    every = _among(z.reshape(b * v, d), groups, rows % max(v, 1), group_size=size)
    if anchors == "all":
        return every
    if anchors != "first_view":
        raise ValueError(message('anchors must be "all" or "first_view"; got {anchors}', anchors=f"{anchors!r}"))
    first = every.take_anchors(slice(None, None, v))
    # Views of z, whose rows may lie apart; ids lie together, to be searched quickly.
    return dataclasses.replace(
        first, anchor_groups=first.anchor_groups.contiguous(), anchor_rows=first.anchor_rows.contiguous()
    )


def from_labels(
    z: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    ref: Float[Tensor, "m d"] | None = None,
    ref_labels: Int[Tensor, " m"] | None = None,
) -> Pairs:
    """Return the pairs of a labeled batch with one view per image; label -1 belongs to no group.

    Args:
        z: (n, d), the anchors; labels: (n) whole numbers.
        ref: (m, d), the only candidates, such as a gallery or an older batch; default: the batch itself. An anchor's
            own row is never among them.
        ref_labels: (m) labels of `ref`.
    Raises:
        ValueError: a shape differs, or only one of `ref` and `ref_labels` is given.
        TypeError: `z` is not a tensor."""
    check_rows("z", z, "(n, d)")
    groups = _labels("labels", labels, z.shape[0], z.device)
    if ref is None and ref_labels is None:
        return _among(z, groups, torch.zeros_like(groups))
    if ref is None or ref_labels is None:
        raise ValueError(N_("ref and ref_labels must be given together"))
    check_rows("ref", ref, "(m, d)")
    return _between(z, ref, groups, _labels("ref_labels", ref_labels, len(ref), z.device))


def from_queue(
    queries: Float[Tensor, "n d"],
    keys: Float[Tensor, "n d"],
    queue: Float[Tensor, "k d"],
    queue_groups: Int[Tensor, " k"] | None = None,
) -> Pairs:
    """Return MoCo's pairs: the key of the same image is the positive, the queue holds the negatives.

    Args:
        queries, keys: (n, d), row i of both is image i.
        queue: (k, d) older keys.
        queue_groups: by default every queue row is a group of its own.
    Raises: ValueError when the shapes do not match."""
    check_rows("queue", queue, "(k, d)")
    _check_listed(queries=queries, keys=keys)
    n, k, queue = len(queries), len(queue), queue.to(keys.dtype)
    check_comparable(keys=keys, queue=queue)
    images, is_key = _arange(n, queries), _arange(n + k, queries) < n
    groups = torch.cat([images, _arange(k, queries) + n if queue_groups is None else queue_groups])
    every = _between(queries, torch.cat([keys, queue]), images, groups)
    size = 1 if queue_groups is None else None
    return dataclasses.replace(
        every, candidate_views=is_key.long(), as_positive=is_key, as_negative=~is_key, group_size=size
    )


def from_bank(
    features: Float[Tensor, "n d"],
    index: Int[Tensor, " n"],
    bank: Float[Tensor, "m d"],
    noise: Int[Tensor, "n k"] | None = None,
    log_z: float | None = None,
) -> Pairs:
    """Return Inst Disc's pairs: the bank slot of the same image is the positive, other slots are negatives.

    Args:
        features: (n, d); index: (n) each image's slot; bank: (m, d).
        noise: (n, k) slots drawn per anchor, repeats allowed; default: the whole bank.
        log_z: the bank's estimate of the log normalizer, for `nce`.
    Raises: ValueError for shapes that differ or an index outside the bank."""
    check_comparable(features=features, bank=bank)
    check_labels("index", index, len(features), "row")
    n, m = len(features), len(bank)
    if n and is_free_to_read(index) and (int(index.min()) < 0 or int(index.max()) >= m):
        text = N_("index must lie in 0..{last}; got {low}..{high}")
        raise ValueError(message(text, last=m - 1, low=int(index.min()), high=int(index.max())))
    if noise is not None and (noise.ndim != 2 or noise.shape[0] != n):
        raise ValueError(message("noise must be ({n}, k) slots; got shape {shape}", n=n, shape=tuple(noise.shape)))
    slots = _arange(m, features)
    return dataclasses.replace(
        _between(features, bank, index.long(), slots),
        candidate_views=torch.ones_like(slots),
        columns=None if noise is None else torch.cat([index[:, None], noise], dim=1).long(),
        population=m,
        group_size=1,
        log_z=log_z,
    )


def from_pairs(a: Float[Tensor, "n d"], b: Float[Tensor, "n d"], same: Bool[Tensor, " n"]) -> Pairs:
    """Return the pairs of two lists: row i of `a` is compared with row i of `b` only.

    Args: a, b: (n, d); same: (n), true (or 1) where the two belong together.
    Raises: ValueError when the shapes do not match."""
    _check_listed(a=a, b=b)
    if same.shape != a.shape[:1]:
        raise ValueError(message("same must be ({n},); got shape {shape}", n=len(a), shape=tuple(same.shape)))
    rows = _arange(len(a), a)
    every = _between(a, b, 2 * rows, 2 * rows + (~same.bool()).long())
    return dataclasses.replace(every, candidate_views=torch.ones_like(rows), columns=rows[:, None])


def from_mask(
    anchors: Float[Tensor, "n d"],
    candidates: Float[Tensor, "m d"],
    positive: Bool[Tensor, "n m"],
    negative: Bool[Tensor, "n m"],
) -> Pairs:
    """Return pairs with explicit masks. A pair in neither mask is not compared.

    When `anchors is candidates`, the diagonal is a self pair.

    Args:
        anchors: (n, d); candidates: (m, d).
        positive, negative: (n, m), true where the pair is one.
    Raises: ValueError when shapes do not match or a pair is in both masks."""
    check_comparable(anchors=anchors, candidates=candidates)
    n, m = len(anchors), len(candidates)
    for name, mask in (("positive", positive), ("negative", negative)):
        if mask.shape != (n, m):
            text = N_("{name} must be {expected}; got shape {shape}{hint}")
            raise ValueError(message(text, name=name, expected=(n, m), shape=tuple(mask.shape), hint=""))
    if is_free_to_read(positive) and bool((positive.bool() & negative.bool()).any()):
        raise ValueError(N_("a pair cannot be positive and negative at once"))
    none = [torch.full((count,), NO_GROUP, device=anchors.device) for count in (n, m)]
    every = _between(anchors, candidates, *none)
    rows = every.anchor_rows if anchors is candidates else every.candidate_rows
    return dataclasses.replace(every, candidate_rows=rows, positive=positive.bool(), negative=negative.bool())


def from_towers(
    a: Float[Tensor, "n d"],
    b: Float[Tensor, "m d"],
    groups_a: Int[Tensor, " n"] | None = None,
    groups_b: Int[Tensor, " m"] | None = None,
    direction: str = "both",
) -> Pairs:
    """Return the pairs between the rows of two encoders, such as images and captions (CLIP, arXiv 2103.00020).

    Anchors and candidates are the n + m rows together, `a` first (view 0, then view 1). Only rows of the other tower
    are compared. The value of a loss is the mean of both directions, also where n and m differ.

    Args:
        a: (n, d); b: (m, d).
        groups_a, groups_b: (n), (m) whole numbers, equal where rows belong together (several captions of one image),
            -1 for none; default: row i belongs to row i.
        direction: "both", or "a_to_b", "b_to_a" for the anchors of one tower only.
    Raises: ValueError for widths, types or numbers that differ, groups of one tower alone, or an unknown direction;
        TypeError if a tower is no tensor."""
    check_comparable(a=a, b=b)
    if a.dtype != b.dtype:
        text = N_("the towers have different types, {a} and {b}: convert one, for example with z.float()")
        raise ValueError(message(text, a=a.dtype, b=b.dtype))
    if (groups_a is None) != (groups_b is None) or (groups_a is None and len(a) != len(b)):
        text = N_("towers of {n} and {m} rows need both groups_a and groups_b, which say which rows belong together")
        raise ValueError(message(text, n=len(a), m=len(b)))
    if direction not in DIRECTIONS:
        values = {"choices": ", ".join(DIRECTIONS), "direction": f"{direction!r}"}
        raise ValueError(message("direction must be one of {choices}; got {direction}", **values))
    n, m = len(a), len(b)
    z = torch.cat([a, b])
    rows = _arange(n + m, z)
    if groups_a is None or groups_b is None:
        groups = rows % max(n, 1)
    else:
        groups = torch.cat([_labels("groups_a", groups_a, n, z.device), _labels("groups_b", groups_b, m, z.device)])
    size = 1 if groups_a is None else None
    every = _among(z, groups, (rows >= n).long(), across=True, group_size=size)
    if direction == "both":
        return every
    return every.take_anchors(slice(n) if direction == "a_to_b" else slice(n, None))


def _check_listed(**rows: Any) -> None:
    """Check that two lists of rows, by their names, can be compared row by row. Raises TypeError, ValueError."""
    check_comparable(**rows)
    if len({len(z) for z in rows.values()}) > 1:
        text = N_("{names} must have equally many rows; got {got}")
        raise ValueError(message(text, names=" and ".join(rows), got=" and ".join(str(len(z)) for z in rows.values())))


def _among(z: Tensor, groups: Tensor, views: Tensor, **further: Any) -> Pairs:
    """Return the pairs of rows z (n, d) with each other."""
    rows, allowed = _arange(len(z), z), torch.ones(len(z), dtype=torch.bool, device=z.device)
    return Pairs(
        anchors=z,
        candidates=z,
        anchor_groups=groups,
        candidate_groups=groups,
        anchor_rows=rows,
        candidate_rows=rows,
        anchor_views=views,
        candidate_views=views,
        as_positive=allowed,
        as_negative=allowed,
        **further,
    )


def _between(a: Tensor, b: Tensor, groups_a: Tensor, groups_b: Tensor) -> Pairs:
    """Return the pairs of rows a (n, d) with all rows of b (m, d), none of which is an anchor's own row."""
    allowed = torch.ones(len(b), dtype=torch.bool, device=a.device)
    return Pairs(
        anchors=a,
        candidates=b,
        anchor_groups=groups_a,
        candidate_groups=groups_b,
        anchor_rows=_arange(len(a), a),
        candidate_rows=torch.full_like(groups_b, NO_ROW),
        anchor_views=torch.zeros_like(groups_a),
        candidate_views=torch.zeros_like(groups_b),
        as_positive=allowed,
        as_negative=allowed,
    )


def _labels(name: str, labels: Tensor, n: int, device: torch.device) -> Tensor:
    check_labels(name, labels, n, "row" if name.startswith(("ref", "groups")) else "image")
    return labels.to(device=device, dtype=torch.long)


def _arange(n: int, like: Tensor) -> Tensor:
    return torch.arange(n, device=like.device)
