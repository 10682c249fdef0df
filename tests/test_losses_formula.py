"""Each loss against a plain loop of its formula, in float64, on batches with unequal classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from contrastive_core import losses, pairs
from contrastive_core.types import Pairs

LABELS = torch.tensor([0, 0, 0, 1, 1, 2, -1, 1, 2, 2, 2, 3])  # class 3 alone, one without label


def rows(n: int = 12, d: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit(z: Tensor) -> np.ndarray:
    return (z / z.norm(dim=1, keepdim=True)).numpy()


def relations(p: Pairs, i: int) -> tuple[list[int], list[int]]:
    masks = p.masks()
    return masks.positive[i].nonzero()[:, 0].tolist(), masks.negative[i].nonzero()[:, 0].tolist()


def check(p: Pairs, name: str, formula, **knobs) -> None:
    """`formula(i, P, N)` gives (loss, weight) or None where the loss is undefined."""
    out = losses.create(name, **knobs)(p)
    total = weights = 0.0
    for i in range(len(p)):
        found = formula(i, *relations(p, i))
        value, weight = (0.0, 0.0) if found is None else found
        assert float(out.weight[i]) == pytest.approx(weight, abs=1e-12), i
        assert float(out.per_anchor[i]) == pytest.approx(value, rel=1e-9, abs=1e-9), i
        total, weights = total + weight * value, weights + weight
    assert float(out.value) == pytest.approx(total / weights, rel=1e-9)
    assert out.n_valid == int((out.weight > 0).sum())


@pytest.mark.parametrize("hinge", ["distance", "squared_distance"])
def test_pair_contrastive(hinge: str) -> None:
    z, margin = rows(), 2.5
    p, x = pairs.from_labels(z, LABELS), z.numpy()

    def formula(i, positives, negatives):
        if not positives + negatives:
            return None
        terms = []
        for j in positives:
            d = np.linalg.norm(x[i] - x[j])
            terms.append(d * d / 2 if hinge == "distance" else d * d)
        for j in negatives:
            d = np.linalg.norm(x[i] - x[j])
            gap = max(margin - d, 0) ** 2 / 2
            terms.append(gap if hinge == "distance" else max(0, margin - d * d))
        return np.mean(terms), len(terms)

    check(p, "pair_contrastive", formula, margin=margin, hinge=hinge)


@pytest.mark.parametrize("mining", ["all", "semi_hard", "hard"])
@pytest.mark.parametrize("average", ["all", "active"])
def test_triplet(mining: str, average: str) -> None:
    z, margin = rows(seed=3), 0.4
    p, x = pairs.from_labels(z, LABELS), unit(z)

    def formula(i, positives, negatives):
        if not positives or not negatives:
            return None
        d = ((x[i] - x) ** 2).sum(1)
        hinges = []
        if mining == "hard":
            hinges = [max(0, max(d[positives]) - min(d[negatives]) + margin)]
        else:
            for q in positives:
                inside = [k for k in negatives if d[q] < d[k] < d[q] + margin]
                chosen = negatives if mining == "all" else sorted(inside, key=lambda k: d[k])[:1]
                hinges += [max(0, d[q] - d[k] + margin) for k in chosen]
        counted = [h for h in hinges if h > 0] if average == "active" else hinges
        return (float(np.mean(counted)), len(counted)) if counted else None

    check(p, "triplet", formula, margin=margin, mining=mining, average=average)


@pytest.mark.parametrize("form", ["smooth", "hard"])
def test_lifted_structure(form: str) -> None:
    z, margin = rows(seed=1), 1.0
    p, x = pairs.from_labels(z, LABELS), z.numpy()

    def formula(i, positives, negatives):
        if not positives or not negatives:
            return None
        terms = []
        for q in positives:
            gaps = [margin - np.linalg.norm(x[e] - x[k]) for e in (i, q) for k in negatives]
            far = math.log(sum(map(math.exp, gaps))) if form == "smooth" else max(gaps)
            terms.append(max(0, np.linalg.norm(x[i] - x[q]) + far) ** 2 / 2)
        return np.mean(terms), len(positives)

    check(p, "lifted_structure", formula, margin=margin, form=form)


def softmax_formula(x: np.ndarray, temperature: float, denominator: str = "all", form: str = "out"):
    def formula(i, positives, negatives):
        if not positives:
            return None
        e = np.exp(x[i] @ x.T / temperature)
        whole = sum(e[j] for j in positives + negatives)
        if form == "in":
            return -math.log(np.mean([e[q] / whole for q in positives])), 1
        own = [e[q] + sum(e[k] for k in negatives) for q in positives]
        below = [whole] * len(positives) if denominator == "all" else own
        return np.mean([-math.log(e[q] / b) for q, b in zip(positives, below, strict=True)]), 1

    return formula


@pytest.mark.parametrize("denominator", ["all", "own_positive"])
def test_nt_xent(denominator: str) -> None:
    z = rows()
    p = pairs.from_views(z.view(4, 3, 5))
    knobs = {"temperature": 0.3, "denominator": denominator}
    check(p, "nt_xent", softmax_formula(unit(z), 0.3, denominator), **knobs)


@pytest.mark.parametrize("form", ["out", "in"])
@pytest.mark.parametrize("base", [None, 0.07])
def test_sup_con(form: str, base: float | None) -> None:
    z = rows()
    plain = softmax_formula(unit(z), 0.2, form=form)

    def formula(i, positives, negatives):
        found = plain(i, positives, negatives)
        return None if found is None else (found[0] * (0.2 / base if base else 1), 1)

    knobs = {"temperature": 0.2, "form": form, "base_temperature": base}
    check(pairs.from_labels(z, LABELS), "sup_con", formula, **knobs)


@pytest.mark.parametrize("critic", ["cosine", "dot"])
def test_info_nce(critic: str) -> None:
    z = rows()
    x = unit(z) if critic == "cosine" else z.numpy()
    p = pairs.from_labels(z, LABELS)
    formula = softmax_formula(x, 0.5, "own_positive")
    check(p, "info_nce", formula, temperature=0.5, critic=critic)
    out = losses.create("info_nce", temperature=0.5, critic=critic)(p)
    seen = [math.log(1 + len(relations(p, i)[1])) for i in range(12) if relations(p, i)[0]]
    bound = np.mean(seen) - float(out.value)
    assert out.extras["mutual_information_bound"] == pytest.approx(bound)


def test_n_pair() -> None:
    z = rows() / 2
    x, plain = z.numpy(), softmax_formula(z.numpy(), 1.0, "own_positive")

    def formula(i, positives, negatives):
        found = plain(i, positives, negatives)
        return None if found is None else (found[0] + 0.3 * (x[i] ** 2).sum(), 1)

    check(pairs.from_labels(z, LABELS), "n_pair", formula, l2_penalty=0.3)


@pytest.mark.parametrize("distance", ["squared", "cosine"])
def test_soft_nearest_neighbour(distance: str) -> None:
    z = rows()

    def formula(i, positives, negatives):
        if not positives:
            return None
        x = z.numpy() if distance == "squared" else unit(z)
        f = ((x[i] - x) ** 2).sum(1) if distance == "squared" else 1 - x @ x[i]
        e = np.exp(-f / 0.7)
        return -math.log(e[positives].sum() / e[positives + negatives].sum()), 1

    p = pairs.from_labels(z, LABELS)
    check(p, "soft_nearest_neighbour", formula, temperature=0.7, distance=distance)


def test_instance_softmax_over_a_bank() -> None:
    bank, f, index = rows(9, 4, 1), rows(3, 4, 2), torch.tensor([4, 0, 8])
    v, u = unit(bank), unit(f)

    def formula(i, positives, negatives):
        e = np.exp(v @ u[i] / 0.2)
        return -math.log(e[int(index[i])] / e.sum()), 1

    check(pairs.from_bank(f, index, bank), "instance_softmax", formula, temperature=0.2)


def test_nce_with_noise() -> None:
    bank, f, index = rows(9, 4, 1), rows(3, 4, 2), torch.tensor([4, 0, 8])
    noise = torch.tensor([[1, 1, 2], [3, 5, 8], [0, 2, 2]])
    v, u, log_z = unit(bank), unit(f), 1.3

    def formula(i, positives, negatives):
        own = noise[i].tolist()

        def logit(j):
            return v[j] @ u[i] / 0.5 - log_z - math.log(len(own) / 9)

        def sigma(t):
            return 1 / (1 + math.exp(-t))

        lost = -sum(math.log(1 - sigma(logit(k))) for k in own)
        return -math.log(sigma(logit(int(index[i])))) + lost, 1

    p = pairs.from_bank(f, index, bank, noise, log_z)
    check(p, "nce", formula, temperature=0.5)


def test_nce_estimates_its_normaliser() -> None:
    z = rows()
    p = pairs.from_labels(z, LABELS)
    s = torch.from_numpy(unit(z) @ unit(z).T) / 0.5
    log_z = math.log(12) + float(s.exp().mean().log())
    fixed, free = (losses.create("nce", temperature=0.5, log_z=v)(p) for v in (log_z, None))
    torch.testing.assert_close(fixed.per_anchor, free.per_anchor)


@pytest.mark.parametrize("form", ["source", "paper"])
def test_invariance_spread(form: str) -> None:
    z, t = rows(8), 0.4
    x = unit(z)
    s = np.exp(x @ x.T / t)
    first = list(range(0, 8, 2))

    def source(i):
        others = [k for k in range(8) if k != i]
        p = {j: s[i, j] / s[i, others].sum() for j in others}
        partner = i ^ 1
        return -math.log(p[partner]) - sum(math.log(1 - p[j]) for j in others if j != partner)

    def paper(i):
        if i % 2:
            return None
        own = s[i, i + 1] / s[first, i + 1].sum()
        spread = [math.log(1 - s[i, j] / s[first, j].sum()) for j in first if j != i]
        return -math.log(own) - sum(spread)

    def formula(i, positives, negatives):
        found = source(i) if form == "source" else paper(i)
        return None if found is None else (found, 1)

    check(pairs.from_views(z.view(4, 2, 5)), "invariance_spread", formula, temperature=t, form=form)


# --- relations ---------------------------------------------------------------------------------


def per_anchor(name: str, p: Pairs, **knobs) -> Tensor:
    return losses.create(name, **knobs)(p).per_anchor


def test_relations_between_losses() -> None:
    z = rows()
    views, labelled = pairs.from_views(z.view(4, 3, 5)), pairs.from_labels(z, LABELS)
    ids = pairs.from_labels(z, torch.arange(4).repeat_interleave(3))
    close = torch.testing.assert_close
    close(
        per_anchor("nt_xent", views, temperature=0.3), per_anchor("sup_con", ids, temperature=0.3)
    )
    two = pairs.from_views(z.view(6, 2, 5))
    close(per_anchor("sup_con", two, form="in"), per_anchor("sup_con", two, form="out"))
    both = [per_anchor("nt_xent", two, denominator=d) for d in ("all", "own_positive")]
    close(*both)
    u = torch.from_numpy(unit(z))
    on_sphere = pairs.from_labels(u, LABELS)
    soft = per_anchor("soft_nearest_neighbour", on_sphere, temperature=0.6)
    number = labelled.masks().positive.sum(1)
    defined = number > 0
    expected = per_anchor("sup_con", on_sphere, temperature=0.3, form="in")
    close((soft + number.clamp_min(1).log())[defined], expected[defined])
    scaled = pairs.from_labels(u / math.sqrt(0.3), LABELS)
    close(per_anchor("n_pair", scaled), per_anchor("info_nce", on_sphere, temperature=0.3))


@pytest.mark.parametrize("name", ["nt_xent", "sup_con", "info_nce", "n_pair"])
def test_identical_candidates_give_the_log_of_their_number(name: str) -> None:
    p = pairs.from_views(torch.ones(6, 2, 4, dtype=torch.float64))
    assert float(losses.create(name)(p).value) == pytest.approx(math.log(11))


def test_one_positive_and_one_negative_is_logistic() -> None:
    """pytorch-metric-learning gives 0 here; the formula does not."""
    a = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    c = torch.tensor([[0.6, 0.8], [0.8, -0.6]], dtype=torch.float64)
    p = pairs.from_mask(a, c, torch.tensor([[True, False]]), torch.tensor([[False, True]]))
    expected = math.log1p(math.exp((0.8 - 0.6) / 0.5))
    for name in ("nt_xent", "sup_con", "info_nce"):
        out = losses.create(name, temperature=0.5)(p)
        assert float(out.value) == pytest.approx(expected), name


def test_small_temperature_leaves_the_hardest_negative() -> None:
    z = rows()
    p, x = pairs.from_views(z.view(6, 2, 5)), unit(z)
    s = x @ x.T
    got = per_anchor("nt_xent", p, temperature=0.001) * 0.001
    for i in range(12):
        positives, negatives = relations(p, i)
        hardest = max(0, s[i, negatives].max() - s[i, positives[0]])
        assert float(got[i]) == pytest.approx(hardest, abs=0.003)


def test_large_temperature_makes_all_negatives_weigh_alike() -> None:
    a = losses.create("nt_xent", temperature=100.0).anatomy(pairs.from_views(rows().view(6, 2, 5)))
    number = a.extras["effective_negatives"]
    torch.testing.assert_close(number, torch.full_like(number, 10.0), rtol=1e-3, atol=0)
