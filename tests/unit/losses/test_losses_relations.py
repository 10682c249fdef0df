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


def test_with_one_positive_the_forms_are_one() -> None:
    made = build("views", rows())
    same(loss_of("sup_con", made, form="in"), loss_of("sup_con", made, form="out"))
    kinds = [loss_of("nt_xent", made, denominator=d) for d in ("all", "own_positive")]
    same(*kinds)
    same(kinds[0], loss_of("info_nce", made, temperature=0.5))


def test_soft_nearest_neighbor_is_sup_con_in() -> None:
    unit = torch.nn.functional.normalize(rows(), dim=1)
    made = build("labeled_views", unit)
    number = made.masks().positive.sum(1)
    soft = loss_of("soft_nearest_neighbor", made, temperature=0.6)
    want = loss_of("sup_con", made, temperature=0.3, form="in")
    some = number > 0
    same((soft + number.clamp_min(1).double().log())[some], want[some])


def test_n_pair_on_scaled_rows_is_info_nce() -> None:
    unit, t = torch.nn.functional.normalize(rows(), dim=1), 0.2
    got = loss_of("n_pair", build("labels", unit / math.sqrt(t)))
    same(got, loss_of("info_nce", build("labels", unit), temperature=t))


@pytest.mark.parametrize("name", ["nt_xent", "sup_con", "info_nce"])
def test_one_positive_and_one_negative_is_logistic(name: str) -> None:
    made = pairs.from_queue(on_circle(0), on_circle(30), on_circle(90))
    value = loss_of(name, made, temperature=0.5)
    gap = (math.cos(math.radians(30)) - 0) / 0.5
    assert value.item() == pytest.approx(math.log1p(math.exp(-gap)), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nt_xent", "views"),
        ("sup_con", "labels"),
        ("info_nce", "queue"),
        ("n_pair", "views"),
        ("instance_softmax", "bank"),
    ],
)
def test_identical_candidates_give_the_log_of_their_number(name: str, kind: str) -> None:
    made = build(kind, torch.ones(16, 5, dtype=torch.float64))
    masks, out = made.masks(), losses.create(name)(made)
    number = (masks.positive | masks.negative).sum(1)
    some = out.weight > 0
    same(out.per_anchor[some], number[some].double().log())


@pytest.mark.parametrize("name", ["nt_xent", "sup_con", "info_nce"])
def test_a_cold_softmax_is_a_hinge_on_the_hardest(name: str) -> None:
    made = build("views", rows())
    s, masks = torch.nn.functional.normalize(rows(), dim=1), made.masks()
    s = s @ s.mT
    hardest = s.masked_fill(~masks.negative, -torch.inf).amax(1)
    p = s[masks.positive]
    got = 1e-3 * loss_of(name, made, temperature=0.001)
    torch.testing.assert_close(got, (hardest - p).clamp_min(0), atol=3e-3, rtol=0)


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


def test_lifted_structure_is_half_the_mean_over_unordered_pairs() -> None:
    made = build("labels", rows())
    out = losses.create("lifted_structure")(made)
    d = torch.cdist(made.anchors, made.anchors, compute_mode="donot_use_mm_for_euclid_dist")
    masks, total, number = made.masks(), 0.0, 0
    for i in range(16):
        for p in range(i + 1, 16):
            if masks.positive[i, p]:
                terms = torch.cat([1 - d[i][masks.negative[i]], 1 - d[p][masks.negative[i]]])
                total += float((d[i, p] + terms.logsumexp(0)).clamp_min(0)) ** 2
                number += 1
    assert out.value.item() == pytest.approx(total / (2 * number), rel=1e-10)


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


def test_hard_negatives_without_their_knobs_are_info_nce() -> None:
    for kind in ("views", "labels", "towers"):
        made = build(kind, rows())
        same(loss_of("hard_negative", made, beta=0.0, tau_plus=0.0), loss_of("info_nce", made, temperature=0.5))


def test_decoupled_is_info_nce_without_the_positive_below() -> None:
    made, t = build("towers", rows()), 0.3
    s = torch.nn.functional.normalize(made.anchors, dim=1)
    s = s @ s.mT / t
    masks = made.masks()
    positive = s[masks.positive]
    negatives = s.masked_fill(~masks.negative, -torch.inf).logsumexp(1)
    want = loss_of("info_nce", made, temperature=t) - torch.log1p((positive - negatives).exp())
    same(loss_of("decoupled", made, temperature=t), want)


def test_robust_info_nce_nears_info_nce() -> None:
    made = build("towers", rows())
    got = loss_of("robust_info_nce", made, q=0.001, density_weight=0.01)
    want = loss_of("info_nce", made, temperature=0.5) + math.log(0.01)
    torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)


def test_siglip_of_one_positive_and_one_negative_is_two_logistic_terms() -> None:
    made = pairs.from_queue(on_circle(0), on_circle(30), on_circle(90))
    value = loss_of("siglip", made, temperature=0.5, bias=0.0)
    positive = math.cos(math.radians(30)) / 0.5
    assert value.item() == pytest.approx(math.log1p(math.exp(-positive)) + math.log(2), rel=1e-12)


def test_equal_towers_have_equal_losses_both_ways() -> None:
    z = rows(9)
    out = loss_of("info_nce", pairs.from_towers(z, z.clone()))
    same(out[:9], out[9:])


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
        ({"b": rows(8).float()}, "must have the same width, type and device"),
        ({"b": rows(8), "groups_a": torch.arange(8)}, "need both"),
        ({"b": rows(8), "direction": "down"}, "direction must be one of both, a_to_b, b_to_a"),
    ],
)
def test_towers_that_cannot_be_compared_say_why(arguments: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pairs.from_towers(rows(8), **arguments)


def test_negatives_above_the_margin_are_left_out() -> None:
    made = pairs.from_queue(on_circle(0), on_circle(40), on_circle(10, 45, 120))
    anatomy = losses.create("info_nce", negative_margin=0.1).anatomy(made)
    assert anatomy.extras["left_out"].tolist() == [1]
    assert anatomy.weight[0, 1] == 0
    rest = pairs.from_queue(on_circle(0), on_circle(40), on_circle(45, 120))
    same(anatomy.output.per_anchor, loss_of("info_nce", rest))
