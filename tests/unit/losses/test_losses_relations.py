"""What must hold between losses, closed forms, and single losses' own promises."""

import dataclasses
import math

import pytest
import torch
from losses_setup import build

from contrastive_core import losses, pairs
from contrastive_core.losses import triplet


def rows(n: int = 16, d: int = 5, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def on_circle(*degrees: float) -> torch.Tensor:
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], 1)


def loss_of(name: str, made, **knobs) -> torch.Tensor:
    return losses.create(name, **knobs)(made).per_anchor


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_sup_con_on_image_ids_is_nt_xent() -> None:
    made = build("four_views", rows())
    same(loss_of("sup_con", made, temperature=0.3), loss_of("nt_xent", made, temperature=0.3))


def test_a_hot_softmax_weighs_all_negatives_alike() -> None:
    anatomy = losses.create("nt_xent", temperature=100.0).anatomy(build("views", rows()))
    weight = anatomy.weight[anatomy.negative]
    assert (weight.max() / weight.min()).item() == pytest.approx(1, abs=0.05)
    assert anatomy.extras["effective_negatives"].min().item() == pytest.approx(14, rel=1e-3)


def test_effective_negatives_by_hand() -> None:
    made = pairs.from_queue(on_circle(0), on_circle(10), on_circle(90, 180))
    anatomy = losses.create("info_nce", temperature=1.0).anatomy(made)
    p = 1 / (1 + math.exp(-1))
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert anatomy.extras["negative_entropy"].item() == pytest.approx(entropy)
    assert anatomy.extras["effective_negatives"].item() == pytest.approx(math.exp(entropy))


def test_info_nce_bound() -> None:
    made = build("queue", rows())
    out = losses.create("info_nce")(made)
    bound = out.extras["mutual_information_bound"]
    assert bound == pytest.approx(math.log(7) - out.value.item())
    assert out.extras["mutual_information_bound_limit"] == pytest.approx(math.log(7))


@pytest.mark.parametrize("form", ["source", "paper"])
def test_invariance_spread_by_loops(form: str) -> None:
    z, t, m = torch.nn.functional.normalize(rows(12), dim=1).view(6, 2, 5), 0.2, 6
    made = pairs.from_views(z.reshape(6, 2, 5))
    got = losses.create("invariance_spread", form=form, temperature=t)(made)
    e = (torch.einsum("ivd,jwd->ivjw", z, z) / t).exp()
    if form == "paper":
        f, h = z[:, 0], z[:, 1]
        for i in range(m):
            own = (f[i] @ h[i] / t).exp() / (f @ h[i] / t).exp().sum()
            others = [(f[i] @ f[j] / t).exp() / (f @ f[j] / t).exp().sum() for j in range(m)]
            want = -own.log() - sum((1 - others[j]).log() for j in range(m) if j != i)
            same(got.per_anchor[2 * i], want)
            assert got.weight[2 * i : 2 * i + 2].tolist() == [1, 0]
        return
    for i in range(m):
        for v in range(2):
            total = e[i, v].sum() - e[i, v, i, v]
            others = [(j, w) for j in range(m) for w in range(2) if j != i]
            spread = sum((1 - e[i, v, j, w] / total).log() for j, w in others)
            same(got.per_anchor[2 * i + v], -(e[i, v, i, 1 - v] / total).log() - spread)


def test_pair_gradient_is_the_papers() -> None:
    x1, x2, e = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.3, 0.4]]), 1.2
    for same_pair, want in ((True, x1 - x2), (False, -(e - 0.5) * (x1 - x2) / 0.5)):
        made = pairs.from_pairs(x1, x2, torch.tensor([same_pair]))
        anatomy = losses.create("pair_contrastive", margin=e).anatomy(made)
        torch.testing.assert_close(anatomy.grad_anchors, want)
    for other in (x1, x1 + 2):  # D = 0, and D beyond the margin
        made = pairs.from_pairs(x1, other, torch.tensor([False]))
        assert (losses.create("pair_contrastive").anatomy(made).grad_anchors == 0).all()


def test_triplets_counted_by_hand() -> None:
    z = on_circle(0, 20, 25, 90)  # D² is 2 − 2cos
    made = pairs.from_labels(z, torch.tensor([0, 0, 1, 1]))
    anatomy = losses.create("triplet", margin=0.2).anatomy(made)
    d = {k: 2 - 2 * math.cos(math.radians(k)) for k in (5, 20, 25, 65, 70, 90)}
    # anchor 0: positive at 20°, negatives at 25° (semi-hard) and 90° (easy)
    assert anatomy.output.per_anchor[0].item() == pytest.approx((d[20] - d[25] + 0.2) / 2)
    assert anatomy.extras["active"].tolist() == [1, 1, 2, 1]
    assert anatomy.extras["semi_hard"].tolist()[0] == 1
    assert anatomy.extras["hard"].tolist() == [0, 1, 2, 0]


def test_ties_in_hard_mining_share_the_gradient() -> None:
    z = on_circle(0, 90, 40, -40)
    made = pairs.from_labels(z, torch.tensor([0, 0, 1, 2]))
    anatomy = losses.create("triplet", mining="hard", margin=4.0).anatomy(made)
    assert anatomy.grad_scores[0, 2].item() == pytest.approx(anatomy.grad_scores[0, 3].item())
    assert anatomy.grad_scores[0, 2].item() == pytest.approx(-0.5)


def test_nce_takes_its_log_z_from_knob_then_pairs_then_batch() -> None:
    made = build("bank", rows())
    same(loss_of("nce", made, log_z=2.5), loss_of("nce", made))
    free = dataclasses.replace(made, log_z=None)
    loss = losses.create("nce")
    s = torch.nn.functional.normalize(made.anchors, dim=1)
    s = s @ torch.nn.functional.normalize(made.candidates, dim=1).mT / 0.07
    want = math.log(11) + s.exp().mean().log().item()
    assert loss.estimate_log_z(loss.unit_rows(free)) == pytest.approx(want)


@pytest.mark.parametrize("average", ["all", "active"])
def test_triplets_one_by_one_are_the_sorted_ones(average, monkeypatch) -> None:
    loss, found = losses.create("triplet", average=average), []
    for most in (1 << 20, 0):
        monkeypatch.setattr(triplet, "TRIPLETS", most)
        z = rows(60).requires_grad_()
        out = loss(pairs.from_labels(z, torch.arange(60) % 7 - 1))
        found.append((out.per_anchor, out.weight, *torch.autograd.grad(out.value, z)))
    for a, b in zip(*found, strict=True):
        same(a, b)


def towers(n: int = 12, m: int | None = None, d: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    return rows(n, d), rows(n if m is None else m, d, seed=1)


@pytest.mark.parametrize("temperature", [0.01, 0.07])
def test_info_nce_across_towers_is_clips(temperature: float) -> None:
    """open_clip's ClipLoss as published: cross entropy over the rows and over the columns of the logits, halved."""
    a, b = (x.requires_grad_() for x in towers())
    x, y = (torch.nn.functional.normalize(z, dim=1) for z in (a, b))
    logits, target = x @ y.mT / temperature, torch.arange(12)
    cross = torch.nn.functional.cross_entropy
    want = (cross(logits, target) + cross(logits.mT, target)) / 2
    got = losses.create("info_nce", temperature=temperature)(pairs.from_towers(a, b)).value
    same(got, want)
    for mine, theirs in zip(torch.autograd.grad(got, (a, b)), torch.autograd.grad(want, (a, b)), strict=True):
        same(mine, theirs)


def test_siglip_is_open_clips_with_learned_temperature_and_bias() -> None:
    """open_clip's SigLipLoss as published: −Σ log σ(y (s·scale + bias)) / n; both directions give it."""
    a, b = (x.requires_grad_() for x in towers())
    tau, bias = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.1, -7.0))
    x, y = (torch.nn.functional.normalize(z, dim=1) for z in (a, b))
    logits = x @ y.mT / tau + bias
    want = -torch.nn.functional.logsigmoid((2 * torch.eye(12) - 1) * logits).sum() / 12
    for direction in ("both", "a_to_b", "b_to_a"):
        got = losses.create("siglip")(pairs.from_towers(a, b, direction=direction), temperature=tau, bias=bias).value
        same(got, want)
        leaves = (a, b, tau, bias)
        grads = torch.autograd.grad(got, leaves), torch.autograd.grad(want, leaves, retain_graph=True)
        for mine, theirs in zip(*grads, strict=True):
            same(mine, theirs)
    with pytest.raises(ValueError, match="has no bias to learn"):
        losses.create("info_nce")(pairs.from_towers(a, b), bias=bias)


def test_towers_of_other_sizes_weigh_alike() -> None:
    a, b = towers(4, 7)
    groups = torch.arange(4), torch.tensor([0, 0, 1, 2, 3, 3, 3])
    out = losses.create("info_nce")(pairs.from_towers(a, b, *groups))
    ways = [losses.create("info_nce")(pairs.from_towers(a, b, *groups, direction=d)) for d in ("a_to_b", "b_to_a")]
    same(out.value, (ways[0].value + ways[1].value) / 2)
    same(out.per_anchor, torch.cat([way.per_anchor for way in ways]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"b": rows(7)}, "need both groups_a and groups_b"),
        ({"b": rows(8).float()}, "must have the same width and device, and float64 only with float64"),
        ({"a": rows(8).half(), "b": rows(8).float()}, r"torch.float16 and torch.float32: convert one"),
        ({"b": rows(8), "groups_a": torch.arange(8)}, "need both"),
        ({"b": rows(8), "direction": "down"}, "direction must be one of both, a_to_b, b_to_a"),
    ],
)
def test_towers_that_cannot_be_compared_say_why(arguments: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pairs.from_towers(**{"a": rows(8), **arguments})


def test_negatives_above_the_margin_are_left_out() -> None:
    made = pairs.from_queue(on_circle(0), on_circle(40), on_circle(10, 45, 120))
    anatomy = losses.create("info_nce", negative_margin=0.1).anatomy(made)
    assert anatomy.extras["left_out"].tolist() == [1]
    assert anatomy.weight[0, 1] == 0
    rest = pairs.from_queue(on_circle(0), on_circle(40), on_circle(45, 120))
    same(anatomy.output.per_anchor, loss_of("info_nce", rest))
