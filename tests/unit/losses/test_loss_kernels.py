"""The browser's kernels, written as loops from the metadata alone."""

import math
from typing import Any

import torch
from losses_setup import build, every_setting, make


@every_setting()
def test_kernel_computes_the_loss(name: str, chosen: dict[str, Any]) -> None:
    loss, made = (
        make(name, chosen, base_temperature=0.07),
        build("labeled_views", torch.randn(16, 5, generator=torch.Generator().manual_seed(4), dtype=torch.float64)),
    )
    kernel = loss.kernel()
    if kernel is None:
        return
    anatomy = loss.anatomy(made)
    got = [_kernel(kernel, anatomy, i) for i in range(len(made))]
    torch.testing.assert_close(torch.tensor(got, dtype=torch.float64), anatomy.output.per_anchor, rtol=1e-9, atol=1e-9)


def _lse(x: list[float]) -> float:
    return max(x) + math.log(sum(math.exp(v - max(x)) for v in x)) if x else -math.inf


def _kernel(k: dict[str, Any], anatomy: Any, i: int) -> float:
    s = anatomy.scores[i].tolist()
    p = [x for x, m in zip(s, anatomy.positive[i], strict=True) if m]
    n = [x for x, m in zip(s, anatomy.negative[i], strict=True) if m]
    if k["family"] == "hinge":
        return _hinge(k, p, n)
    if k["family"] == "sigmoid":
        signed = [-(x / k["temperature"] + k["bias"]) for x in p] + [x / k["temperature"] + k["bias"] for x in n]
        return sum(max(x, 0) + math.log1p(math.exp(-abs(x))) for x in signed)
    if not p or (k.get("positive") == "out" and not n):
        return 0.0
    if "negative_margin" in k or "positive_share" in k:
        n = [x for x in n if x <= k.get("positive_share", 1) * max(p) + k.get("negative_margin", 0)]
    c = _positive_weights(k, anatomy, p)
    p, n = ([k["sign"] * x / k["temperature"] for x in part] for part in (p, n))
    if k["family"] == "robust":
        q, weight = k["q"], k["density_weight"]
        each = [((weight * math.exp(_lse([x, *n]))) ** q - math.exp(q * x)) / q for x in p]
        return sum(each) / len(each)
    return _softmax(k, p, n, c)


def _positive_weights(k: dict[str, Any], anatomy: Any, p: list[float]) -> list[float]:
    if k.get("weighting") != "von_mises":
        return [1.0] * len(p)
    mean = (anatomy.scores[anatomy.positive] / k["sigma"]).exp().mean().item()
    return [2 - math.exp(x / k["sigma"]) / mean for x in p]


def _softmax(k: dict[str, Any], p: list[float], n: list[float], c: list[float]) -> float:
    if k.get("positive") == "out":
        value = sum(_lse(n) - w * x for x, w in zip(p, c, strict=True)) / len(p)
    elif k.get("negatives") == "hard":
        value = sum(_lse([x, _hard_negatives(k, x, n)]) - x for x in p) / len(p)
    elif k["denominator"] == "own_positive":
        value = sum(_lse([x, *n]) - x for x in p) / len(p)
    elif k["aggregate"] == "out":
        value = _lse(p + n) - sum(p) / len(p)
    else:
        value = _lse(p + n) - _lse(p) + (math.log(len(p)) if k["aggregate"] == "in" else 0)
    return value * (k["temperature"] / k["base"] if k["scale"] == "tau_over_base" else 1)


def _hard_negatives(k: dict[str, Any], x: float, n: list[float]) -> float:
    if not n:
        return -math.inf
    weights = [math.exp(k["beta"] * v) for v in n]
    mean = sum(w * math.exp(v) for w, v in zip(weights, n, strict=True)) / sum(weights)
    estimate = (mean - k["tau_plus"] * math.exp(x)) / (1 - k["tau_plus"])
    return math.log(len(n) * max(estimate, math.exp(-1 / k["temperature"])))


def _hinge(k: dict[str, Any], p: list[float], n: list[float]) -> float:
    e = k["margin"]
    if k["form"] == "triplet":
        chosen = {
            "all": [(a, b) for a in p for b in n],
            "hard": [(max(p), min(n))] if p and n else [],
            "semi_hard": [(a, min(x)) for a in p if (x := [b for b in n if a < b < a + e])],
        }[k["mining"]]
        each = [max(0, a - b + e) for a, b in chosen]
        each = [x for x in each if x > 0] if k["average"] == "active" else each
    elif k["squared"]:
        each = [x * x for x in p] + [max(0, e - x * x) for x in n]
    else:
        each = [x * x / 2 for x in p] + [max(0, e - x) ** 2 / 2 for x in n]
    return sum(each) / len(each) if each else 0.0
