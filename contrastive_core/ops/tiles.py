"""Row sums over an n×m matrix of logits that is never stored, tile by tile: Σ e^ℓ, its logarithm, and Σ log(1 + e^ℓ).

A tile is computed, summed and freed; the backward pass computes it again. Small batches keep their tiles for it, which
saves one product of four. If anchors and candidates are the same rows, a tile serves its rows and its columns, which
halves the products: across two towers a·bᵀ is computed once for both directions. Excluded entries are listed by group
if they are few; otherwise masks are derived from ids, for the tiles that need one. Measured for NT-Xent with 1,024
images, forward and backward: 1.2, 1.6 and 1.35 times as long without each of the three."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastive_core.base.device import is_free_to_read
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.ops.similarity import full_precision
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs

TILE = 512  # rows of a tile: 1 MB in float32, about a second-level cache
CUDA_TILE = 8192
LOOK_FROM = CUDA_TILE**2  # scores on a device from which on the tiles left out are worth waiting for their ids
LARGEST = {torch.float32: 40.0, torch.float64: 300.0}  # |logit| whose exponentials can be summed as they are
KEPT = 1 << 22  # entries, up to which tiles are kept for the backward pass: 16 MB in float32
LISTED = 32  # entries an anchor, on average, up to which those of its group are listed


class Ids(NamedTuple):
    """The ids of a row: group, row, view, and whether it may be a negative or a positive of every anchor."""

    group: int
    row: int
    view: int
    as_negative: int = 0
    as_positive: int = 0


@dataclass(frozen=True)
class Stripe:
    """Consecutive rows, with the lowest and the highest of their ids."""

    rows: slice
    first: Ids
    last: Ids

    def __len__(self) -> int:
        return self.rows.stop - self.start

    @property
    def start(self) -> int:
        return self.rows.start

    @property
    def view(self) -> int | None:
        """The view of all rows; None if they have several."""
        return self.first.view if self.first.view == self.last.view else None


class Tiles:
    """The tiles of all pairs, with the entries of each that count."""

    def __init__(self, pairs: Pairs, scale: float | Tensor, relation: str, limits: Tensor | None = None) -> None:
        """Split the pairs into tiles. Args: relation: "negative" or "compared"; limits: (n), logits above which a
        candidate is excluded."""
        self.pairs, self.scale, self.relation, self.limits = pairs, scale, relation, limits
        self.looks = is_free_to_read(pairs.anchors) or len(pairs) * pairs.width > LOOK_FROM
        if not self.looks:  # every tile is masked: to know more of it would wait for the device
            self.mirrored, self.unwanted, all_columns = False, None, _unknown(pairs.width)
            self.stripes = [(i, all_columns) for i in _unknown(len(pairs))]
            return
        if pairs.views:
            self.mirrored = limits is None
            n, v = len(pairs), pairs.views
            parts = [slice(start, min(n, start + TILE)) for start in range(0, n, TILE)]
            ends = ((rows, rows.start, rows.stop - 1) for rows in parts)  # no id need be read
            columns = [Stripe(rows, Ids(i // v, i, 0, 1, 1), Ids(j // v, j, v - 1, 1, 1)) for rows, i, j in ends]
            stripes = columns
        else:
            roles = torch.stack([pairs.as_negative, pairs.as_positive]).long()
            ids = (pairs.candidate_groups, pairs.candidate_rows, pairs.candidate_views)
            columns = _stripes(torch.stack([*ids, *roles]), pairs)
            self.mirrored = pairs.symmetric and bool(roles.all()) and limits is None
            every = torch.ones_like(pairs.anchor_rows)
            ids = (pairs.anchor_groups, pairs.anchor_rows, pairs.anchor_views)
            stripes = columns if self.mirrored else _stripes(torch.stack([*ids, every, every]), pairs)
        self.stripes = []
        for k, i in enumerate(stripes):
            met, is_one_tower = columns[k:] if self.mirrored else columns, pairs.across and i.view is not None
            self.stripes.append((i, [j for j in met if not (is_one_tower and i.view == j.view)]))
        self.unwanted = self._list_unwanted(stripes, columns)

    @property
    def size(self) -> int:
        """The number of entries of all tiles."""
        return sum(len(i) * len(j) for i, columns in self.stripes for j in columns)

    def logits(self, a: Tensor, c: Tensor, i: Stripe, j: Stripe, bias: Tensor | None = None) -> Tensor:
        """Return ℓ, plus a bias, of a tile (r, c); −inf for excluded entries."""
        logits = (self.scale * a[i.rows]) @ c[j.rows].mT
        if bias is not None:
            logits.add_(bias)
        if self.limits is not None:
            logits.masked_fill_(logits > self.limits[i.rows, None], -torch.inf)
        grouped = i.first.group != NO_GROUP and j.first.group != NO_GROUP
        crossed = not self.pairs.across or (i.view is not None and j.view is not None and i.view != j.view)
        all_count = j.first.as_negative and (self.relation == "negative" or j.first.as_positive)
        if grouped and crossed and all_count:  # unwanted are, at most, pairs of one group and self pairs
            if self.unwanted is not None:
                entries = self.unwanted.get((i.start, j.start))
                if entries is not None:
                    logits.view(-1).index_fill_(0, entries, -torch.inf)
                return logits
            strangers = j.last.row == NO_ROW or i.last.row < j.first.row or j.last.row < i.first.row
            groups_differ = i.last.group < j.first.group or j.last.group < i.first.group
            if strangers and (self.relation == "compared" or groups_differ):
                return logits
        masks = self.pairs.masks(i.rows, j.rows)
        wanted = masks.negative if self.relation == "negative" else masks.negative | masks.positive
        return logits.masked_fill_(~wanted, -torch.inf)

    def gradients(self, a: Tensor, c: Tensor) -> tuple[Tensor, Tensor | None]:
        """Allocate gradients of anchors and candidates; mirrored tiles add both to those of the anchors."""
        return torch.zeros_like(a), None if self.mirrored else torch.zeros_like(c)

    def add_gradients(
        self, h: Tensor, rows: tuple[Tensor, Tensor], grads: tuple[Tensor, Tensor | None], at: "Tile"
    ) -> None:
        """Backpropagate h (r, c), the gradient ∂/∂ℓ of a tile, to anchors and candidates."""
        (a, c), (grad_a, grad_c), (i, j) = rows, grads, at
        alpha = self.scale
        if isinstance(alpha, Tensor):  # of a learned τ, which stays on its device
            h, alpha = alpha * h, 1.0
        grad_a[i.rows].addmm_(h, c[j.rows], alpha=alpha)
        if i is not j or grad_c is not None:
            (grad_a if grad_c is None else grad_c)[j.rows].addmm_(h.mT, a[i.rows], alpha=alpha)

    def _list_unwanted(self, stripes: list[Stripe], columns: list[Stripe]) -> dict[tuple[int, int], Tensor] | None:
        """List each tile's excluded entries (k) as flat indices: pairs within a group, or self pairs. None for many."""
        pairs = self.pairs
        if pairs.views and self.relation == "compared":
            return {(i.start, i.start): torch.arange(len(i)) * (len(i) + 1) for i in stripes}
        if not stripes or not columns:
            return None
        order, first, last = pairs.group_places
        number = torch.where(pairs.anchor_groups == NO_GROUP, 0, last - first)  # (n): candidates of the anchor's group
        if (total := int(number.sum())) > LISTED * len(pairs):
            return None
        row = torch.arange(len(pairs), device=order.device).repeat_interleave(number, output_size=total)
        within = torch.arange(total, device=order.device) - (number.cumsum(0) - number)[row]
        column = order[first[row] + within]
        if self.relation == "compared":
            themselves = (pairs.anchor_rows[row] == pairs.candidate_rows[column]) & (pairs.anchor_rows[row] != NO_ROW)
            row, column = row[themselves], column[themselves]
        (first_i, i), (first_j, j) = _place_in(stripes, row), _place_in(columns, column)
        widths = torch.tensor([len(one) for one in columns], device=row.device)
        tile, in_order = (i * len(columns) + j).sort()
        flat = ((row - first_i) * widths[j] + column - first_j)[in_order]
        tiles, sizes = tile.unique_consecutive(return_counts=True)
        found = zip(tiles.tolist(), flat.split(sizes.tolist()), strict=True)
        return {(stripes[k // len(columns)].start, columns[k % len(columns)].start): part for k, part in found}


Tile = tuple[Stripe, Stripe]


def _unknown(n: int) -> list[Stripe]:
    """Return stripes of n rows on a device without reading their ids."""
    first, last = Ids(NO_GROUP, NO_ROW, 0), Ids(NO_GROUP, n, 1)
    return [Stripe(slice(start, min(n, start + CUDA_TILE)), first, last) for start in range(0, n, CUDA_TILE)]


def _place_in(stripes: list[Stripe], row: Tensor) -> tuple[Tensor, Tensor]:
    """Return the start of the stripe of each row (k), and the index of that stripe."""
    starts = torch.tensor([one.start for one in stripes], device=row.device)
    which = torch.searchsorted(starts, row, right=True) - 1
    return starts[which], which


def _stripes(ids: Tensor, pairs: Pairs) -> list[Stripe]:
    """Split rows with the ids (5, n) into stripes: groups, row ids, views, as negative, as positive. A stripe holds
    rows of one tower."""
    n, size = ids.shape[1], TILE if pairs.anchors.device.type == "cpu" else CUDA_TILE
    changes = (ids[2].diff().nonzero()[:, 0] + 1).tolist() if pairs.across else []
    ends = [*changes, n] if len(changes) <= n // size else [n]
    stripes: list[Stripe] = []
    for start, stop in zip([0, *ends], ends, strict=False):
        if start == stop:
            continue
        of_tower = ids[:, start:stop]
        padded = torch.cat([of_tower, of_tower[:, -1:].expand(-1, (start - stop) % size)], dim=1).view(5, -1, size)
        low, high = padded.aminmax(dim=2)
        for k, numbers in enumerate(torch.cat([low, high]).mT.tolist()):  # one transfer
            rows = slice(start + k * size, min(stop, start + (k + 1) * size))
            stripes.append(Stripe(rows, Ids(*numbers[:5]), Ids(*numbers[5:])))
    return stripes


class Summand(NamedTuple):
    """A function of the logits, computed in place: `prepare` makes a tile that may be kept, `value` and `slope` are
    computed from it, and `slope_` is the slope in place from the logits."""

    prepare: Callable[[Tensor], Tensor]
    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    slope_: Callable[[Tensor], Tensor]


EXP = Summand(torch.exp_, lambda e: e, lambda e: e, torch.exp_)
SOFTPLUS = Summand(lambda x: x, lambda x: -logsigmoid(-x), torch.sigmoid, torch.sigmoid_)


def tiled_sum(
    tiles: Tiles, summand: Summand, bias: Tensor | None = None, on_fraction: OnFraction = ignore_fraction
) -> Tensor:
    """Return Σ f(scale · a·c + bias) of every anchor (n) over its counted candidates. `bias`: a number, with
    gradient."""
    a, c = tiles.pairs.anchors, tiles.pairs.candidates
    learns = torch.is_grad_enabled() and (a.requires_grad or c.requires_grad)
    keep: dict[tuple[int, int], Tensor] | None = {} if learns and tiles.size <= (tiles.pairs.block or KEPT) else None
    return _TiledSum.apply(a, c, bias, tiles, summand, keep, on_fraction)


class _TiledSum(torch.autograd.Function):
    """Saves rows, and the tiles of a small batch. All steps can be differentiated again."""

    @staticmethod
    def forward(a: Tensor, c: Tensor, bias: Tensor | None, tiles: Tiles, f: Summand, keep: Any, on: Any) -> Tensor:
        sums = a.new_zeros(len(a))
        for done, (i, columns) in enumerate(tiles.stripes, 1):
            for j in columns:
                tile = f.prepare(tiles.logits(a, c, i, j, bias))
                if keep is not None:
                    keep[i.start, j.start] = tile
                values = f.value(tile)
                sums[i.rows] += values.sum(1)
                if tiles.mirrored and i is not j:
                    sums[j.rows] += values.sum(0)
            on(done / len(tiles.stripes))
        return sums

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.tiles, ctx.summand, ctx.kept = inputs[3:6]
        ctx.save_for_backward(*inputs[:3])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        a, c, bias = ctx.saved_tensors
        tiles, f = ctx.tiles, ctx.summand
        grads = tiles.gradients(a, c)
        is_last = not torch.is_grad_enabled()  # nobody differentiates again: a tile's memory serves all its steps
        kept = (ctx.kept or {}) if is_last else {}
        grad_bias = torch.zeros_like(bias) if ctx.needs_input_grad[2] else None
        with full_precision(a.device):
            for i, columns in tiles.stripes:
                for j in columns:
                    tile, per_entry = kept.pop((i.start, j.start), None), g[i.rows, None]
                    if tiles.mirrored:
                        per_entry = per_entry + g[j.rows]
                    if tile is None and is_last:
                        h = f.slope_(tiles.logits(a, c, i, j, bias)).mul_(per_entry)  # (r, c): ∂/∂ℓ
                    else:
                        tile = f.prepare(tiles.logits(a, c, i, j, bias)) if tile is None else tile
                        h = f.slope(tile).mul_(per_entry) if is_last else f.slope(tile) * per_entry
                    tiles.add_gradients(h, (a, c), grads, (i, j))
                    if grad_bias is not None:
                        grad_bias = grad_bias + h.sum() / (2 if tiles.mirrored and i is j else 1)
        return *grads, grad_bias, None, None, None, None


def tiled_logsumexp(
    pairs: Pairs, scale: float, relation: str, on_fraction: OnFraction = ignore_fraction, limits: Tensor | None = None
) -> Tensor:
    """Return log Σ e^(scale · a·c) of every anchor (n) over its negatives, or over all compared candidates.

    Args: pairs: related by id; relation: "negative" or "compared"; limits: (n), logits above which a candidate is
    excluded. −inf, with zero gradient, for an anchor without candidates."""
    tiles = Tiles(pairs, scale, relation, limits)
    if limits is None and tiles.looks:
        a, c = pairs.anchors, pairs.candidates
        lengths = [float(z.detach().norm(dim=1).amax()) if len(z) else 0.0 for z in ((a,) if a is c else (a, c))]
        if abs(float(scale)) * lengths[0] * lengths[-1] <= LARGEST[a.dtype]:  # no logit is larger
            total = tiled_sum(tiles, EXP, on_fraction=on_fraction)
            some = total > 0
            return torch.where(some, torch.where(some, total, 1.0).log(), -torch.inf)
    return _TiledLogSumExp.apply(pairs.anchors, pairs.candidates, tiles, on_fraction)


class _TiledLogSumExp(torch.autograd.Function):
    """Saves rows and their log-sum-exps. All steps can be differentiated again."""

    @staticmethod
    def forward(a: Tensor, c: Tensor, tiles: Tiles, on_fraction: OnFraction) -> Tensor:
        sums, tops = a.new_zeros(len(a)), a.new_full((len(a),), -torch.inf)
        for done, (i, columns) in enumerate(tiles.stripes, 1):
            for j in columns:
                logits = tiles.logits(a, c, i, j)
                _add(sums[i.rows], tops[i.rows], logits, 1)
                if tiles.mirrored and i is not j:
                    _add(sums[j.rows], tops[j.rows], logits, 0)
            on_fraction(done / len(tiles.stripes))
        return sums.log() + tops

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.tiles = inputs[2]
        ctx.save_for_backward(*inputs[:2], output)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        a, c, lse = ctx.saved_tensors
        tiles = ctx.tiles
        grads = tiles.gradients(a, c)
        some = lse > -torch.inf
        g, lse = torch.where(some, g, 0.0), torch.where(some, lse, 0.0)
        with full_precision(a.device):
            for i, columns in tiles.stripes:
                for j in columns:
                    logits = tiles.logits(a, c, i, j)
                    h = g[i.rows, None] * (logits - lse[i.rows, None]).exp()  # (r, c): ∂/∂ℓ
                    if tiles.mirrored:  # each entry is that of its column's row, too
                        h += g[j.rows] * (logits - lse[j.rows]).exp()
                    tiles.add_gradients(h, (a, c), grads, (i, j))
        return *grads, None, None


def _add(sums: Tensor, tops: Tensor, logits: Tensor, dim: int) -> None:
    """Add Σ e^ℓ over `dim` to sums · e^tops, in place, with the running maximum subtracted for stability."""
    peak = torch.maximum(tops, logits.amax(dim))
    safe = torch.where(peak == -torch.inf, 0.0, peak)
    sums.mul_((tops - safe).exp()).add_((logits - safe.unsqueeze(dim)).exp_().sum(dim))
    tops.copy_(peak)
