"""What a loss asks of positives by their group, instead of over the n×m matrix; for pairs related by id."""

import dataclasses

import torch
from torch import Tensor

from contrastive_core.device import is_free_to_read
from contrastive_core.ops.similarity import deterministic_gather
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs


def relation_counts(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """|P(i)| and |N(i)| of every anchor (n) int64; of pairs not related by id from their masks."""
    if not pairs.by_id:
        masks = pairs.masks()
        return masks.positive.sum(1), masks.negative.sum(1)
    order, first, last = pairs.group_places
    so_far = torch.stack([pairs.as_positive, pairs.as_negative])[:, order].cumsum(1)  # (2, m)
    so_far = torch.nn.functional.pad(so_far, (1, 0))
    positive, same = so_far[:, last] - so_far[:, first]  # of the group
    positive, negative = positive - _own_candidate(pairs)[0], _possible_negatives(pairs) - same
    in_group = pairs.anchor_groups != NO_GROUP
    return torch.where(in_group, positive, 0), torch.where(in_group, negative, 0)


def _possible_negatives(pairs: Pairs) -> Tensor:
    """How many candidates each anchor is compared with that are negatives of some anchor; () or (n)."""
    possible = pairs.as_negative & (pairs.candidate_groups != NO_GROUP)
    if not pairs.across:
        return possible.sum()
    second = (possible & (pairs.candidate_views == 1)).sum()
    return torch.stack([second, possible.sum() - second])[pairs.anchor_views]


def mean_of_positives(pairs: Pairs, scale: float) -> Tensor:
    """mean over P(i) of scale · a_i·c_p, by the sums of the groups, in O((n + m)·d); (n)."""
    number = relation_counts(pairs)[0]
    itself, own = _own_candidate(pairs)
    total = (pairs.anchors * _in_group(pairs, pairs.candidates * pairs.as_positive[:, None])).sum(1)
    total = total - itself * (pairs.anchors * deterministic_gather(pairs.candidates, own)).sum(1)
    return torch.where(number > 0, scale * total / number.clamp_min(1), 0.0)


def most_in_a_group(pairs: Pairs) -> int | None:
    """The number of candidates of the largest group that an anchor is in; None where counting would wait for a
    device."""
    if pairs.group_size is not None:
        return pairs.group_size
    if not is_free_to_read(pairs.candidate_groups):
        return None
    first, last = pairs.group_places[1:]
    return int((last - first).max()) if len(pairs) else 0


def beside_positives(pairs: Pairs) -> tuple[Pairs, Tensor]:
    """The pairs where each anchor meets only the candidates of its group, and which of these (n, k) are positives."""
    order, first, last = pairs.group_places
    most = most_in_a_group(pairs)
    assert most is not None
    at = first[:, None] + torch.arange(most, device=first.device)  # (n, k)
    near = dataclasses.replace(pairs, columns=order[at.clamp_max(len(order) - 1)])
    return near, near.masks().positive & (at < last[:, None])


def _in_group(pairs: Pairs, x: Tensor) -> Tensor:
    """Σ of the candidates' x (m, k) over each anchor's group, itself included: (n, k)."""
    wanted, groups = pairs.group_keys
    known = groups.sort().values
    of_anchor, of_candidate = (torch.searchsorted(known, ids.contiguous()) for ids in (wanted, groups))
    sums = x.new_zeros(len(groups) + 1, x.shape[1]).index_add_(0, of_candidate, x)  # a group's: at its first place
    present = torch.searchsorted(known, wanted.contiguous(), right=True) > of_anchor
    return deterministic_gather(sums, torch.where(present, of_anchor, len(groups)))  # the last is of no group


def _own_candidate(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Whether each anchor stands as a positive among its group's candidates (1 or 0), and where; (n) each."""
    rows, order = pairs.candidate_rows.sort()
    at = torch.searchsorted(rows, pairs.anchor_rows.contiguous()).clamp_max(len(rows) - 1)
    own = order[at]
    present = (rows[at] == pairs.anchor_rows) & (pairs.anchor_rows != NO_ROW)
    wanted, groups = pairs.group_keys
    in_group = groups[own] == wanted
    return (present & in_group & pairs.as_positive[own]).long(), own
