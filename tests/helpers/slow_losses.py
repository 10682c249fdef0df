"""Every loss as the papers write it: plain Python loops over one anchor's pairs, no tensors.

Each function takes, for one anchor, what it is compared with (`Row`) and the loss's knobs, and
returns (L_i, w_i). Scores are computed here from the rows, by loops, in double precision.
"""

import math
from dataclasses import dataclass
from typing import Any

from contrastive_core.losses.lejepa import directions as lejepa_directions
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs

__all__ = ["FORMULAS", "slow_loss"]

Vector = list[float]


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def squared(a: Vector, b: Vector) -> float:
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def unit(a: Vector) -> Vector:
    length = math.sqrt(dot(a, a))
    return [x / length if length else 0.0 for x in a]


@dataclass
class Row:
    """One anchor: itself, its positives and negatives as rows, and the batch's extras."""

    f: Vector
    positives: list[Vector]
    negatives: list[Vector]
    pairs: Pairs
    row: int = 0  # which anchor it is


def related(pairs: Pairs, i: int) -> tuple[list[int], list[int]]:
    """Candidates (indices, repeats counted) that are positives and negatives of anchor i."""
    width = range(len(pairs.candidates))
    met = list(width) if pairs.columns is None else pairs.columns[i].tolist()
    found: tuple[list[int], list[int]] = ([], [])
    for j in met:
        own = int(pairs.anchor_rows[i])
        if own != NO_ROW and own == int(pairs.candidate_rows[j]):
            continue
        if pairs.across and pairs.anchor_views[i] == pairs.candidate_views[j]:
            continue
        if pairs.positive is not None and pairs.negative is not None:
            for k, mask in enumerate((pairs.positive, pairs.negative)):
                if mask[i, j]:
                    found[k].append(j)
            continue
        g, h = int(pairs.anchor_groups[i]), int(pairs.candidate_groups[j])
        if NO_GROUP in (g, h):
            continue
        if g == h and pairs.as_positive[j]:
            found[0].append(j)
        if g != h and pairs.as_negative[j]:
            found[1].append(j)
    return found


def log_sum(logits: Vector) -> float:
    top = max(logits)
    return top + math.log(sum(math.exp(x - top) for x in logits))


def pair_contrastive(r: Row, margin: float, hinge: str, **_: Any) -> tuple[float, float]:
    total = 0.0
    for p in r.positives:
        total += squared(r.f, p) * (0.5 if hinge == "distance" else 1)
    for k in r.negatives:
        d2 = squared(r.f, k)
        if hinge == "distance":
            total += 0.5 * max(margin - math.sqrt(d2), 0) ** 2
        else:
            total += max(0, margin - d2)
    number = len(r.positives) + len(r.negatives)
    return (total / number, number) if number else (0, 0)


def triplet(r: Row, margin: float, mining: str, average: str, **_: Any) -> tuple[float, float]:
    near = [squared(r.f, k) for k in r.negatives]
    counted = []
    if mining == "hard" and r.positives and near:
        counted = [(max(squared(r.f, p) for p in r.positives), min(near))]
    for p in r.positives if mining != "hard" else []:
        d = squared(r.f, p)
        if mining == "all":
            counted += [(d, k) for k in near]
        elif inside := [k for k in near if d < k < d + margin]:
            counted.append((d, min(inside)))
    hinges = [max(0, p - k + margin) for p, k in counted]
    if average == "active":
        hinges = [h for h in hinges if h > 0]
    return (sum(hinges) / len(hinges), len(hinges)) if hinges else (0, 0)


def lifted_structure(r: Row, margin: float, form: str, **_: Any) -> tuple[float, float]:
    if not r.positives or not r.negatives:
        return 0, 0
    total = 0.0
    for p in r.positives:
        terms = [margin - math.sqrt(squared(e, k)) for e in (r.f, p) for k in r.negatives]
        rest = log_sum(terms) if form == "smooth" else max(terms)
        total += 0.5 * max(0, math.sqrt(squared(r.f, p)) + rest) ** 2
    return total / len(r.positives), len(r.positives)


def n_pair(r: Row, l2_penalty: float, **_: Any) -> tuple[float, float]:
    if not r.positives:
        return 0, 0
    each = [log_sum([0.0] + [dot(r.f, k) - dot(r.f, p) for k in r.negatives]) for p in r.positives]
    return sum(each) / len(each) + l2_penalty * dot(r.f, r.f), 1


def nce(r: Row, temperature: float, log_z: float | None, **_: Any) -> tuple[float, float]:
    if not r.positives or not r.negatives:
        return 0, 0
    log_z = r.pairs.log_z if log_z is None else log_z
    population = r.pairs.population or len(r.pairs.candidates)
    offset = log_z + math.log(len(r.negatives) / population)

    def log_sigmoid(x: float) -> float:
        return -math.log1p(math.exp(-x)) if x > -30 else x

    found = [-log_sigmoid(dot(r.f, p) / temperature - offset) for p in r.positives]
    noise = [-log_sigmoid(offset - dot(r.f, k) / temperature) for k in r.negatives]
    return sum(found) / len(found) + sum(noise), 1


def trusted_negatives(r: Row, margin: float | None, share: float | None) -> list[Vector]:
    """The negatives, less those more similar than a share of the most similar positive by the margin."""
    if margin is None and share is None:
        return r.negatives
    highest = max(dot(r.f, p) for p in r.positives) * (1 if share is None else share)
    return [k for k in r.negatives if dot(r.f, k) <= highest + (margin or 0)]


def own_denominator(
    r: Row, temperature: float, negative_margin: float | None = None, positive_share: float | None = None, **_: Any
) -> tuple[float, float]:
    if not r.positives:
        return 0, 0
    n = [dot(r.f, k) / temperature for k in trusted_negatives(r, negative_margin, positive_share)]
    p = [dot(r.f, k) / temperature for k in r.positives]
    return sum(log_sum([x, *n]) - x for x in p) / len(p), 1


def shared_denominator(
    r: Row, temperature: float, negative_margin: float | None = None, positive_share: float | None = None, **_: Any
) -> tuple[float, float]:
    if not r.positives:
        return 0, 0
    n = [dot(r.f, k) / temperature for k in trusted_negatives(r, negative_margin, positive_share)]
    p = [dot(r.f, k) / temperature for k in r.positives]
    return log_sum(p + n) - sum(p) / len(p), 1


def nt_xent(r: Row, denominator: str, **knobs: Any) -> tuple[float, float]:
    return (shared_denominator if denominator == "all" else own_denominator)(r, **knobs)


def sup_con(r: Row, temperature: float, form: str, base_temperature: float | None, **knobs: Any) -> tuple[float, float]:
    if not r.positives:
        return 0, 0
    p = [dot(r.f, k) / temperature for k in r.positives]
    value = shared_denominator(r, temperature, **knobs)[0]
    if form == "in":
        value += sum(p) / len(p) - log_sum(p) + math.log(len(p))
    return value * (temperature / base_temperature if base_temperature else 1), 1


def soft_nearest_neighbor(r: Row, temperature: float, distance: str, **_: Any) -> tuple[float, float]:
    if not r.positives:
        return 0, 0

    def f(b: Vector) -> float:
        return squared(r.f, b) if distance == "squared" else 1 - dot(r.f, b)

    p = [-f(b) / temperature for b in r.positives]
    return log_sum(p + [-f(b) / temperature for b in r.negatives]) - log_sum(p), 1


def invariance_spread(r: Row, temperature: float, **_: Any) -> tuple[float, float]:
    """The form of the published code."""
    if not r.positives:
        return 0, 0
    e = [math.exp(dot(r.f, k) / temperature) for k in r.positives + r.negatives]
    p = [x / sum(e) for x in e]
    own = len(r.positives)
    found = -sum(math.log(x) for x in p[:own]) / own
    return found - sum(math.log(1 - x) for x in p[own:]), 1


def instance_softmax(r: Row, temperature: float, **_: Any) -> tuple[float, float]:
    return shared_denominator(r, temperature)


def negative_cosine(r: Row, form: str, **_: Any) -> tuple[float, float]:
    if not r.positives:
        return 0, 0
    s = sum(dot(r.f, p) for p in r.positives) / len(r.positives)
    return (2 - 2 * s if form == "squared" else -s), 1


def swapped_prediction(r: Row, temperature: float, **_: Any) -> tuple[float, float]:
    return shared_denominator(r, temperature)


def two_views(r: Row) -> tuple[list[tuple[Vector, Vector]], tuple[Vector, Vector] | None]:
    """The first two views of every image, and those of this anchor's image if it is one of them."""
    z, view = r.pairs.candidates.tolist(), r.pairs.candidate_views.tolist()
    firsts = [j for j in range(len(z) - 1) if (view[j], view[j + 1]) == (0, 1)]
    ids = r.pairs.candidate_rows.tolist()
    own = [j for j in firsts if int(r.pairs.anchor_rows[r.row]) in ids[j : j + 2]]
    return [(z[j], z[j + 1]) for j in firsts], (z[own[0]], z[own[0] + 1]) if own else None


def moments(rows: list[Vector], ddof: int) -> tuple[list[Vector], list[Vector]]:
    """Rows less their mean, and their covariance (d, d)."""
    n, d = len(rows), range(len(rows[0]))
    mean = [sum(x[j] for x in rows) / n for j in d]
    centered = [[x[j] - mean[j] for j in d] for x in rows]
    return centered, [[sum(x[i] * x[j] for x in centered) / (n - ddof) for j in d] for i in d]


def barlow_twins(r: Row, off_diagonal: float, **_: Any) -> tuple[float, float]:
    views, own = two_views(r)
    if own is None or len(views) < 2:
        return 0, 0
    scaled = []
    for rows in ([a for a, _ in views], [b for _, b in views]):
        centered, cov = moments(rows, 0)
        scaled.append([[x[j] / math.sqrt(cov[j][j] + 1e-5) for j in range(len(x))] for x in centered])
    total, d = 0.0, range(len(own[0]))
    for i in d:
        for j in d:
            c = sum(a[i] * b[j] for a, b in zip(*scaled, strict=True)) / len(views)
            total += (1 - c) ** 2 if i == j else off_diagonal * c**2
    return total, 1


def vicreg(
    r: Row, invariance: float, variance: float, covariance: float, deviation: float, **_: Any
) -> tuple[float, float]:
    views, own = two_views(r)
    if own is None or len(views) < 2:
        return 0, 0
    d, total = len(own[0]), invariance * squared(*own) / len(own[0])
    for rows in ([a for a, _ in views], [b for _, b in views]):
        _, cov = moments(rows, 1)
        hinges = [max(0, deviation - math.sqrt(cov[j][j] + 1e-4)) for j in range(d)]
        total += variance * sum(hinges) / d / 2
        total += covariance * sum(cov[i][j] ** 2 for i in range(d) for j in range(d) if i != j) / d
    return total, 1


def lejepa(r: Row, trade_off: float, directions: int, **_: Any) -> tuple[float, float]:
    views, own = two_views(r)
    if own is None or len(views) < 2:
        return 0, 0
    mean = [(x + y) / 2 for x, y in zip(*own, strict=True)]
    total = (1 - trade_off) * sum(squared(z, mean) for z in own) / (2 * len(mean))
    u = lejepa_directions(r.pairs.candidates, directions, r.pairs.seed).T.tolist()
    for rows in ([a for a, _ in views], [b for _, b in views]):
        for direction in u:
            for k in range(17):
                t = 3 * k / 16
                x = [t * dot(z, direction) for z in rows]
                real, imaginary = (sum(map(f, x)) / len(x) for f in (math.cos, math.sin))
                weight = (1 if k in (0, 16) else 2) * 3 / 16 * math.exp(-(t**2) / 2)
                error = (real - math.exp(-(t**2) / 2)) ** 2 + imaginary**2
                total += trade_off / 2 * len(x) * weight * error / len(u)
    return total, 1


def siglip(r: Row, temperature: float, bias: float, **_: Any) -> tuple[float, float]:
    signed = [-(dot(r.f, p) / temperature + bias) for p in r.positives]
    signed += [dot(r.f, k) / temperature + bias for k in r.negatives]
    return (sum(log_sum([0.0, x]) for x in signed), 1) if signed else (0, 0)


def decoupled(r: Row, temperature: float, weighting: str, sigma: float, **_: Any) -> tuple[float, float]:
    if not r.positives or not r.negatives:
        return 0, 0
    s = [dot(r.f, p) for p in r.positives]
    c = [1.0] * len(s)
    if weighting == "von_mises":
        z = [[unit(x) for x in rows.tolist()] for rows in (r.pairs.anchors, r.pairs.candidates)]
        every = [dot(z[0][i], z[1][j]) for i in range(len(r.pairs)) for j in related(r.pairs, i)[0]]
        mean = sum(math.exp(x / sigma) for x in every) / len(every)
        c = [2 - math.exp(x / sigma) / mean for x in s]
    pull = sum(w * x for w, x in zip(c, s, strict=True)) / (temperature * len(s))
    return log_sum([dot(r.f, k) / temperature for k in r.negatives]) - pull, 1


def hard_negative(r: Row, temperature: float, beta: float, tau_plus: float, **_: Any) -> tuple[float, float]:
    if not r.positives:
        return 0, 0
    n = [dot(r.f, k) / temperature for k in r.negatives]
    total = 0.0
    for p in r.positives:
        x, g = dot(r.f, p) / temperature, -math.inf
        if n:
            mean = log_sum([(1 + beta) * v for v in n]) - log_sum([beta * v for v in n])  # log Σ ω e^ℓ
            left = 1 - tau_plus * math.exp(min(x - mean, 500))
            corrected = mean + math.log(left) - math.log(1 - tau_plus) if left > 0 else -math.inf
            g = math.log(len(n)) + max(corrected, -1 / temperature)
        total += log_sum([x, g]) - x
    return total / len(r.positives), 1


def robust_info_nce(r: Row, temperature: float, q: float, density_weight: float, **_: Any) -> tuple[float, float]:
    if not r.positives:
        return 0, 0
    n = [math.exp(dot(r.f, k) / temperature) for k in r.negatives]
    p = [math.exp(dot(r.f, k) / temperature) for k in r.positives]
    return sum(((density_weight * (x + sum(n))) ** q - x**q) / q for x in p) / len(p), 1


FORMULAS = {
    f.__name__: f
    for f in (
        pair_contrastive,
        triplet,
        lifted_structure,
        n_pair,
        nce,
        nt_xent,
        sup_con,
        soft_nearest_neighbor,
        invariance_spread,
        instance_softmax,
        negative_cosine,
        swapped_prediction,
        barlow_twins,
        vicreg,
        lejepa,
        siglip,
        decoupled,
        hard_negative,
        robust_info_nce,
    )
} | {"info_nce": own_denominator}


def tower_weight(pairs: Pairs, i: int) -> float:
    """1/(2n) or 1/(2m) for the anchors of towers with n and m rows, where these differ."""
    second = int(pairs.candidate_views.sum())
    sizes = (len(pairs.candidates) - second, second)
    return 1 if not pairs.across or sizes[0] == sizes[1] else 1 / (2 * sizes[int(pairs.anchor_views[i])])


def slow_loss(name: str, pairs: Pairs, **knobs: Any) -> tuple[list[float], list[float]]:
    """`per_anchor` and `weight` of a loss, one anchor at a time."""
    ready = unit if knobs.get("normalize") else list
    anchors = [ready(a) for a in pairs.anchors.tolist()]
    candidates = [ready(c) for c in pairs.candidates.tolist()]
    found = []
    for i, f in enumerate(anchors):
        positives, negatives = ([candidates[j] for j in js] for js in related(pairs, i))
        value, weight = FORMULAS[name](Row(f, positives, negatives, pairs, i), **knobs)
        found.append((value, weight * tower_weight(pairs, i)))
    return [v for v, _ in found], [w for _, w in found]
