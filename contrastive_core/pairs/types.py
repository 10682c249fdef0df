"""Relations of anchors and candidates, stored as ids instead of n×m masks. Masks are derived tile by tile, so a loss
over 100,000 rows needs only a few megabytes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from contrastive_core.base.device import is_free_to_read
from contrastive_core.base.messages import N_, message

NO_GROUP = -1  # a label that belongs to no group: neither positive nor negative of anything
NO_ROW = -1  # a candidate that is nobody's own row (memory bank, queue)

Rows = slice | Tensor  # some rows: a slice, or their numbers

BUILDERS = {
    2: N_("pairs.from_labels(z, labels) takes rows (n, d)"),
    3: N_("pairs.from_views(z) takes views (images, views, d)"),
}


class Masks(NamedTuple):
    """Boolean masks of the relations between anchors (rows) and candidates (columns)."""

    positive: Bool[Tensor, "n m"]
    negative: Bool[Tensor, "n m"]
    self_pair: Bool[Tensor, "n m"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Anchors, candidates, and the masks of their positives and negatives.

    A candidate is a positive of an anchor if both are in the same group and it is `as_positive`, and a negative if both
    are in different groups and it is `as_negative`. Equal row ids make a self pair, which is neither. A row has the
    same group as anchor and as candidate. With `columns`, anchor i is compared only with the candidates `columns[i]`
    (repeats count each time). Explicit `positive`/`negative` masks replace the groups. `across` compares only rows of
    different views (0 and 1): two towers. `log_z` and `population` are for noise-contrastive estimation; `temperature`
    and `bias` are learned; `seed` is that of a loss's random numbers; `targets` are each anchor's target shares of the
    candidates. `group_size` is the number of candidates in the largest group, if known without counting. A loss that
    processes anchors in blocks keeps `block` scores at a time; None: the fastest number."""

    anchors: Float[Tensor, "n d"]
    candidates: Float[Tensor, "m d"]
    anchor_groups: Int[Tensor, " n"]
    candidate_groups: Int[Tensor, " m"]
    anchor_rows: Int[Tensor, " n"]
    candidate_rows: Int[Tensor, " m"]
    anchor_views: Int[Tensor, " n"]
    candidate_views: Int[Tensor, " m"]
    as_positive: Bool[Tensor, " m"]
    as_negative: Bool[Tensor, " m"]
    columns: Int[Tensor, "n k"] | None = None
    positive: Bool[Tensor, "n m"] | None = None
    negative: Bool[Tensor, "n m"] | None = None
    population: int | None = None
    log_z: float | Float[Tensor, ""] | None = None
    across: bool = False
    temperature: Float[Tensor, ""] | None = None
    bias: Float[Tensor, ""] | None = None
    seed: int = 0
    targets: Float[Tensor, "n m"] | None = None
    group_size: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        check_comparable(anchors=self.anchors, candidates=self.candidates)
        of_anchors = (self.anchor_groups, self.anchor_rows, self.anchor_views)
        of_candidates = (self.candidate_groups, self.candidate_rows, self.candidate_views)
        roles = (self.as_positive, self.as_negative)
        for name, ids, n in (
            ("anchor", of_anchors, len(self.anchors)),
            ("candidate", of_candidates + roles, len(self.candidates)),
        ):
            if wrong := [tuple(x.shape) for x in ids if x.shape != (n,)]:
                raise ValueError(
                    message("{name} ids must be ({n},); got shape {shape}", name=name, n=n, shape=wrong[0])
                )

    def __len__(self) -> int:
        return self.anchors.shape[0]

    @property
    def width(self) -> int:
        """The number of candidates per anchor: m, or k with `columns`."""
        return self.candidates.shape[0] if self.columns is None else self.columns.shape[1]

    @property
    def by_id(self) -> bool:
        """Return whether ids alone define the relations of all n×m pairs."""
        return self.columns is None and self.positive is None

    @property
    def symmetric(self) -> bool:
        """Return whether anchors and candidates are the same rows in the same roles."""
        return (
            self.by_id
            and self.anchors is self.candidates
            and self.anchor_groups is self.candidate_groups
            and self.anchor_rows is self.candidate_rows
        )

    @cached_property
    def views(self) -> int | None:
        """The number of consecutive rows that are the views of each image, if every row is compared with all others;
        else None."""
        size, n = self.group_size, len(self)
        if not size or n % size or self.across or not self.symmetric or not is_free_to_read(self.anchors):
            return None
        rows = torch.arange(n)
        in_order = torch.equal(self.anchor_rows, rows) and torch.equal(self.anchor_groups, rows // size)
        return size if in_order and bool((self.as_positive & self.as_negative).all()) else None

    @property
    def group_keys(self) -> tuple[Tensor, Tensor]:
        """The group numbers (n) of anchors and (m) of candidates, equal if both share a group. Across towers they are
        equal only for a row and its partner."""
        if not self.across:
            return self.anchor_groups.contiguous(), self.candidate_groups
        return 2 * self.anchor_groups + 1 - self.anchor_views, 2 * self.candidate_groups + self.candidate_views

    @cached_property
    def group_places(self) -> tuple[Tensor, Tensor, Tensor]:
        """The candidates sorted by group (m), and the start and end of each anchor's group in that order; (n) each."""
        wanted, groups = self.group_keys
        groups, order = groups.sort(stable=True)
        return order, torch.searchsorted(groups, wanted), torch.searchsorted(groups, wanted, right=True)

    @cached_property
    def own_candidate(self) -> tuple[Tensor, Tensor]:
        """For each anchor, 1 if its own row is a positive candidate in its group (else 0), and the index of that
        candidate; (n) each."""
        rows, order = self.candidate_rows.sort()
        at = torch.searchsorted(rows, self.anchor_rows.contiguous()).clamp_max(len(rows) - 1)
        own, (wanted, groups) = order[at], self.group_keys
        present = (rows[at] == self.anchor_rows) & (self.anchor_rows != NO_ROW)
        return (present & (groups[own] == wanted) & self.as_positive[own]).long(), own

    @cached_property
    def relation_counts(self) -> tuple[Tensor, Tensor]:
        """|P(i)| and |N(i)| of every anchor, (n) int64; counted in the masks if ids do not define the relations."""
        if not self.by_id:
            masks = self.masks()
            return masks.positive.sum(1), masks.negative.sum(1)
        if self.views:
            own, rows = self.views, self.anchor_rows
            return torch.full_like(rows, own - 1), torch.full_like(rows, len(self) - own)
        order, first, last = self.group_places
        so_far = torch.stack([self.as_positive, self.as_negative])[:, order].cumsum(1)  # (2, m)
        so_far = torch.nn.functional.pad(so_far, (1, 0))
        positive, same = so_far[:, last] - so_far[:, first]  # of the group
        possible = self.as_negative & (self.candidate_groups != NO_GROUP)  # negatives of some anchor
        compared = possible.sum()
        if self.across:
            second = (possible & (self.candidate_views == 1)).sum()
            compared = torch.stack([second, compared - second])[self.anchor_views]
        in_group = self.anchor_groups != NO_GROUP
        positive, negative = positive - self.own_candidate[0], compared - same
        return torch.where(in_group, positive, 0), torch.where(in_group, negative, 0)

    def with_rows(self, anchors: Float[Tensor, "n d"], candidates: Float[Tensor, "m d"]) -> Pairs:
        """Return the same relations between other vectors, row for row."""
        return dataclasses.replace(self, anchors=anchors, candidates=candidates)

    def take_anchors(self, rows: Rows) -> Pairs:
        """Return the pairs of some anchors with all their candidates."""
        names = "anchors anchor_groups anchor_rows anchor_views columns positive negative targets".split()
        parts: dict[str, Any] = {k: x[rows] for k in names if (x := getattr(self, k)) is not None}
        return dataclasses.replace(self, **parts)

    def take_candidates(self, rows: Rows) -> Pairs:
        """Return the pairs of all anchors with some candidates. Raises ValueError if `columns` refers to candidates."""
        if self.columns is not None:
            raise ValueError(N_("candidates referenced by columns cannot be removed"))
        names = ("candidates", "candidate_groups", "candidate_rows", "candidate_views", "as_positive", "as_negative")
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        if self.positive is not None and self.negative is not None:
            parts |= {"positive": self.positive[:, rows], "negative": self.negative[:, rows]}
        return dataclasses.replace(self, **parts)

    def among_candidates(self) -> Pairs:
        """Return pairs with every candidate as an anchor in place of its partner, so it is compared with the candidates
        of that group's anchors. For pairs related by id."""
        return dataclasses.replace(
            self,
            anchors=self.candidates,
            anchor_groups=self.candidate_groups,
            anchor_rows=self.candidate_rows,
            anchor_views=1 - self.candidate_views if self.across else self.candidate_views,
        )

    def tower_weight(self) -> Tensor | None:
        """1/(2n) for an anchor of the first tower and 1/(2m) for one of the second, or 1 for towers of equal size;
        (anchors). None unless the pairs are `across`."""
        if not self.across:
            return None
        m = self.candidate_views.sum()
        sizes = torch.stack([self.candidates.shape[0] - m, m])
        each = torch.where(sizes[0] == sizes[1], 1.0, 0.5 / sizes.clamp_min(1).to(self.anchors.dtype))
        return each[self.anchor_views]

    def masks(self, rows: slice = slice(None), cols: slice = slice(None)) -> Masks:
        """Return the relations of anchors `rows` to candidates (or columns) `cols`: bool (r, c) each."""
        g_i, r_i = self.anchor_groups[rows, None], self.anchor_rows[rows, None]
        j = (None, cols) if self.columns is None else (self.columns[rows, cols],)  # (1, c) or (r, c)
        g_j, r_j = self.candidate_groups[j], self.candidate_rows[j]
        self_pair = torch.where(r_i == NO_ROW, NO_ROW - 1, r_i) == r_j
        comparable = ~self_pair
        if self.across:
            comparable &= self.anchor_views[rows, None] != self.candidate_views[j]
        if self.positive is not None and self.negative is not None:
            positive, negative = self.positive[rows, cols], self.negative[rows, cols]
            return Masks(positive & comparable, negative & comparable, self_pair)
        grouped = g_i != NO_GROUP
        same = torch.where(grouped, g_i, NO_GROUP - 1) == g_j
        negative = grouped & (self.as_negative[j] & (g_j != NO_GROUP))
        negative &= comparable & ~same
        positive = same & self.as_positive[j]
        positive &= comparable
        return Masks(positive, negative, self_pair)


def describe(x: Any) -> str:
    """Describe the type of `x`, with its shape if it has one."""
    if isinstance(x, Tensor):
        return message("a tensor of shape {shape}", shape=tuple(x.shape))
    if hasattr(x, "__array__") and hasattr(x, "shape"):
        return message("a {module} array of shape {shape}", module=type(x).__module__, shape=tuple(x.shape))
    return f"a {type(x).__name__}"


def how_to_build(*arguments: Any) -> str:
    """Explain why the arguments are not Pairs, and name the builder to use."""
    if len(arguments) > 1:
        hint = N_(
            "two views of the same images: pairs.from_views(torch.stack([a, b], 1)); a list of "
            "pairs: pairs.from_pairs(a, b, same); two encoders: pairs.from_towers(a, b)"
        )
    else:
        ndim = getattr(arguments[0], "ndim", None)
        hint = BUILDERS.get(ndim, "; ".join(BUILDERS.values()))  # type: ignore[arg-type]
    got = " and ".join(describe(x) for x in arguments)
    return message("a loss takes Pairs; got {got}: {hint}", got=got, hint=hint)


def check_rows(name: str, z: Any, shape: str) -> None:
    """Check that `z` is a floating-point tensor with the dimensions named in `shape`. Raises TypeError, ValueError."""
    if not isinstance(z, Tensor):
        hint = N_("; convert it with torch.from_numpy") if hasattr(z, "__array__") else ""
        text = N_("{name} must be a torch tensor {shape}; got {z}{hint}")
        raise TypeError(message(text, name=name, shape=shape, z=describe(z), hint=hint))
    if z.ndim != shape.count(",") + 1:
        hint = f": {BUILDERS[z.ndim]}" if name == "z" and z.ndim in BUILDERS else ""
        text = N_("{name} must be {expected}; got shape {shape}{hint}")
        raise ValueError(message(text, name=name, expected=shape, shape=tuple(z.shape), hint=hint))
    if not z.is_floating_point():
        raise ValueError(message("{name} must hold floating-point numbers; got {dtype}", name=name, dtype=z.dtype))


def check_comparable(**rows: Any) -> None:
    """Check that tensors (n, d), by their names, have the same width and device, and float64 only with float64.
    Raises TypeError, ValueError."""
    for name, z in rows.items():
        check_rows(name, z, "(n, d)")
    is_mixed = len({z.dtype for z in rows.values()}) > 1 and any(z.dtype == torch.float64 for z in rows.values())
    if is_mixed or len({(z.shape[1], z.device) for z in rows.values()}) > 1:
        got = ", ".join(f"{name} {tuple(z.shape)} {z.dtype} on {z.device}" for name, z in rows.items())
        text = N_("{names} must have the same width and device, and float64 only with float64; got {got}")
        raise ValueError(message(text, names=" and ".join(rows), got=got))


def check_labels(name: str, labels: Any, n: int, each: str) -> None:
    """Check that `labels` are n whole numbers, one per `each`. Raises TypeError, ValueError."""
    if not isinstance(labels, Tensor):
        text = N_("{name} must be a torch tensor ({n},); got {labels}; convert it with torch.as_tensor")
        raise TypeError(message(text, name=name, n=n, labels=describe(labels)))
    if labels.shape != (n,):
        text = N_("{name} must be ({n},), one per {each}; got shape {shape}")
        raise ValueError(message(text, name=name, n=n, each=each, shape=tuple(labels.shape)))
    if labels.is_floating_point() or labels.is_complex():
        text = N_("{name} must be whole numbers, -1 for none; got {dtype}")
        raise ValueError(message(text, name=name, dtype=labels.dtype))
