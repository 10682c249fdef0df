"""Other libraries as independent witnesses, where they compute the same formula.

Where they deviate, the test says how: other means, other factors, and a logarithm with a tiny
constant inside, which saturates where a log-sum-exp does not.
"""

import pytest
import torch

from contrastive_core import losses, pairs

peer = pytest.importorskip("pytorch_metric_learning.losses")
reducers = pytest.importorskip("pytorch_metric_learning.reducers")
distances = pytest.importorskip("pytorch_metric_learning.distances")
lightly = pytest.importorskip("lightly.loss")

LABELS = torch.tensor([0, 0, 1, 1, 1, 2, 2, 0, 3, 3, 1, 2])


def rows(n: int = 12, d: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def agree(ours: torch.Tensor, theirs: torch.Tensor, within: float = 1e-6) -> None:
    assert ours.item() == pytest.approx(theirs.item(), rel=within)


@pytest.mark.parametrize("temperature", [0.1, 0.5])
def test_nt_xent_is_lightlys(temperature: float) -> None:
    z = rows().view(6, 2, 6)
    theirs = lightly.NTXentLoss(temperature)(z[:, 0], z[:, 1])
    agree(losses.create("nt_xent", temperature=temperature)(pairs.from_views(z)).value, theirs)


def test_nt_xent_gradient_is_lightlys() -> None:
    z = rows().view(6, 2, 6).requires_grad_()
    (ours,) = torch.autograd.grad(losses.create("nt_xent")(pairs.from_views(z)).value, z)
    (theirs,) = torch.autograd.grad(lightly.NTXentLoss(0.5)(z[:, 0], z[:, 1]), z)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)


def test_sup_con_is_pytorch_metric_learnings() -> None:
    theirs = peer.SupConLoss(temperature=0.1)(rows(), LABELS)
    agree(losses.create("sup_con")(pairs.from_labels(rows(), LABELS)).value, theirs)


def test_own_positive_is_pytorch_metric_learnings_nt_xent_averaged_over_pairs() -> None:
    """It averages over positive pairs, not over anchors: unequal classes weigh differently."""
    made = pairs.from_labels(rows(), LABELS)
    out = losses.create("nt_xent", denominator="own_positive", temperature=0.5)(made)
    number = made.masks().positive.sum(1)
    ours = (out.per_anchor * number).sum() / number.sum()
    agree(ours, peer.NTXentLoss(temperature=0.5)(rows(), LABELS))


def test_pytorch_metric_learnings_nt_xent_saturates_where_ours_does_not() -> None:
    z = torch.tensor([[1.0, 0.0], [-1.0, 0.01], [1.0, 0.01], [-1.0, 0.0]])
    labels = torch.tensor([0, 0, 1, 1])
    theirs = peer.NTXentLoss(temperature=0.01)(z, labels)
    ours = losses.create("nt_xent", temperature=0.01)(pairs.from_labels(z, labels)).value
    assert ours.item() == pytest.approx(200, rel=0.01)
    assert theirs.item() < 100


def test_triplets_are_pytorch_metric_learnings() -> None:
    distance = distances.LpDistance(normalize_embeddings=True, p=2, power=2)
    theirs = peer.TripletMarginLoss(margin=0.2, distance=distance, reducer=reducers.MeanReducer())
    agree(losses.create("triplet")(pairs.from_labels(rows(), LABELS)).value, theirs(rows(), LABELS))
    active = peer.TripletMarginLoss(margin=0.2, distance=distance)
    ours = losses.create("triplet", average="active")(pairs.from_labels(rows(), LABELS)).value
    agree(ours, active(rows(), LABELS))


def test_lifted_structure_is_pytorch_metric_learnings() -> None:
    distance = distances.LpDistance(normalize_embeddings=False)
    theirs = peer.LiftedStructureLoss(neg_margin=1.0, pos_margin=0.0, distance=distance)
    ours = losses.create("lifted_structure")(pairs.from_labels(rows(), LABELS)).value
    agree(ours, theirs(rows(), LABELS))


def test_pairs_are_pytorch_metric_learnings_squared_hinge() -> None:
    """Theirs averages positives and negatives each by themselves, here put together again."""
    squared = distances.LpDistance(normalize_embeddings=False, power=2)
    theirs = peer.ContrastiveLoss(pos_margin=0, neg_margin=1.2, distance=squared, reducer=reducers.MeanReducer())(
        rows(), LABELS
    )
    made = pairs.from_labels(rows(), LABELS)
    out = losses.create("pair_contrastive", hinge="squared_distance")
    masks = made.masks()
    scores = torch.cdist(made.anchors, made.anchors, compute_mode="donot_use_mm_for_euclid_dist")
    d = scores.square()
    ours = d[masks.positive].mean() + (1.2 - d[masks.negative]).clamp_min(0).mean()
    agree(ours, theirs)
    each = torch.where(masks.positive, d, (1.2 - d).clamp_min(0)) * (masks.positive | masks.negative)
    agree(out(made).value, each.sum() / (masks.positive | masks.negative).sum())


def test_negative_cosine_is_lightlys() -> None:
    z = rows().view(6, 2, 6)
    made = pairs.from_views(z, anchors="first_view")
    agree(losses.create("negative_cosine", form="cosine")(made).value, lightly.NegativeCosineSimilarity()(*z.unbind(1)))


def test_barlow_twins_is_lightlys() -> None:
    z = rows().view(6, 2, 6)
    agree(losses.create("barlow_twins")(pairs.from_views(z)).value, lightly.BarlowTwinsLoss()(*z.unbind(1)))


def test_vicreg_is_lightlys() -> None:
    z = rows().view(6, 2, 6)
    agree(losses.create("vicreg")(pairs.from_views(z)).value, lightly.VICRegLoss()(*z.unbind(1)))


@pytest.mark.parametrize("weighting", ["none", "von_mises"])
def test_decoupled_is_lightlys(weighting: str) -> None:
    z = rows().view(6, 2, 6).requires_grad_()
    theirs = (lightly.DCLLoss if weighting == "none" else lightly.DCLWLoss)(temperature=0.1)(z[:, 0], z[:, 1])
    ours = losses.create("decoupled", weighting=weighting)(pairs.from_views(z)).value
    agree(ours, theirs)
    (mine,), (want,) = (torch.autograd.grad(x, z, retain_graph=True) for x in (ours, theirs))
    torch.testing.assert_close(mine, want, rtol=1e-5, atol=1e-8)
