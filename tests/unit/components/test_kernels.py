"""The browser's kernels against the library: every registered loss that has one."""

import base64
import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
import torch
from node import Node

from contrastive_core import losses, pairs
from contrastive_core.losses import LossOutput

TEMPERATURES = (0.01, 0.05, 0.3, 1.0, 10.0)
MARGINS = (0.05, 0.7, 1.2, 2.0)
FURTHER = {  # values of the knobs below the first
    "bias": (-10.0, 1.0),
    "beta": (0.0, 2.0),
    "tau_plus": (0.0, 0.3),
    "q": (0.1, 1.0),
    "negative_margin": (None, -0.1),
    "positive_share": (None, 0.95),
}
WITHIN = 1e-5

ALIKE = (  # of the anatomy, and of the kernel
    ("effective_negatives", "effective"),
    ("active", "active"),
    ("hard", "hard"),
    ("left_out", "leftOut"),
)
RUN = """async (cases) => {
  const kernels = await load("/shared/kernels.js");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const list = (a) => Array.from(a);
  return cases.map(({S, M, n, w, kernel}) => {
    const o = kernels.evaluate(new Float32Array(bytes(S).buffer), bytes(M), n, w, kernel);
    return {loss: list(o.loss), weight: list(o.weight), pair: list(o.pair), grad: list(o.grad),
            effective: list(o.effective), active: list(o.active), hard: list(o.hard), leftOut: list(o.leftOut),
            value: o.value, valid: o.valid};
  });
}"""


@functools.cache
def batches() -> dict[str, pairs.Pairs]:
    """Two views, classes with a lonely and an unlabeled row, a queue, a bank, and two towers in both directions."""
    g = torch.Generator().manual_seed(0)
    z = torch.randn(9, 2, 5, generator=g).double()
    close = torch.nn.functional.normalize(z[:, :1] + 0.3 * z, dim=-1)
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 2, 3, -1])
    queue = torch.nn.functional.normalize(torch.randn(11, 5, generator=g), dim=-1).double()
    captions = close[:, 1].repeat_interleave(torch.tensor([2, 1, 1, 3, 1, 1, 1, 1, 1]), 0)
    of_images = torch.arange(9), torch.tensor([0, 0, 1, 2, 3, 3, 3, 4, 5, 6, 7, -1])
    return {
        "a to b": pairs.from_towers(close[:, 0], captions, *of_images, direction="a_to_b"),
        "b to a": pairs.from_towers(close[:, 0], captions, *of_images, direction="b_to_a"),
        "views": pairs.from_views(close),
        "classes": pairs.from_labels(close[:, 0], labels),
        "classes, views": pairs.from_views(close, labels),
        "queue": pairs.from_queue(close[:, 0], close[:, 1], queue),
        "bank": pairs.from_bank(close[:, 0], torch.arange(9), close[:, 1]),
        "one class": pairs.from_labels(close[:, 0], torch.zeros(9, dtype=torch.long)),
    }


@functools.cache
def settings() -> list[tuple[str, dict[str, Any]]]:
    """Every registered loss with a kernel, at every choice of its knobs and many values."""
    found = []
    for name in losses.names():
        if losses.create(name).kernel() is None:
            continue
        grid: list[dict[str, Any]] = [{}]
        for knob, about in losses.knobs(name).items():
            values = {"temperature": TEMPERATURES, "margin": MARGINS}.get(knob, about.choices)
            if knob == "base_temperature":
                values = (None, 0.07)
            elif knob in FURTHER:
                values = FURTHER[knob]
            elif knob == "temperature":
                values = tuple(t for t in TEMPERATURES if t >= about.low)
            grid = [{**g, knob: v} for g in grid for v in values] if values else grid
        found += [(name, g) for g in grid if losses.create(name, **g).kernel() is not None]
    return found


def exactly(loss: Any, batch: pairs.Pairs) -> Any:
    """The anatomy in float64, at the scores that the browser gets, which are float32.

    At τ = 0.01 a score's last float32 digit moves a gradient by more than what is allowed here.
    """
    anatomy = loss.anatomy(batch)
    unit = loss.rows(batch)
    scores = anatomy.scores.float().double().requires_grad_()
    masks = unit.masks()
    per_anchor, weight = loss.per_anchor(scores, masks, unit)
    per_anchor = torch.where(weight > 0, per_anchor, 0.0)
    (grad,) = torch.autograd.grad(per_anchor.sum(), scores)
    fixed = scores.detach()
    return dataclasses.replace(
        anatomy,
        scores=fixed,
        weight=loss.pair_weight(fixed, masks, unit),
        grad_scores=grad,
        output=LossOutput(per_anchor.detach(), weight),
        extras=loss.details(fixed, masks, unit),
    )


def evaluate(modules: Node, anatomies: list[Any], kernel: Any) -> list[Any]:
    """What the browser's kernel makes of each of these scores and masks."""
    cases = []
    for anatomy in anatomies:
        mask = torch.zeros(anatomy.scores.shape, dtype=torch.uint8)
        for number, part in enumerate((anatomy.positive, anatomy.negative, anatomy.self_pair), 1):
            mask[part] = number
        n, w = mask.shape
        S, M = (base64.b64encode(a.numpy().tobytes()).decode() for a in (anatomy.scores.float(), mask))
        cases.append({"S": S, "M": M, "n": n, "w": w, "kernel": kernel})
    return modules.evaluate(RUN, cases)


def agree(mine: Any, theirs: torch.Tensor, what: str) -> None:
    mine, wanted = np.asarray(mine, np.float64), theirs.double().numpy().ravel()
    allowed = WITHIN * np.maximum(1, np.abs(wanted))
    worst = np.max(np.abs(mine - wanted) / allowed, initial=0)
    assert np.isfinite(mine).all(), f"{what}: not finite"
    assert worst <= 1, f"{what}: {worst:.2f} times what is allowed"


@pytest.mark.parametrize("name", sorted({name for name, _ in settings()}))
def test_kernels_agree_with_the_library(modules: Node, name: str) -> None:
    tried = 0
    for knobs in [k for n, k in settings() if n == name]:
        loss = losses.create(name, **knobs)
        exact = {case: exactly(loss, batch) for case, batch in batches().items() if not loss.check(batch)}
        every = evaluate(modules, list(exact.values()), loss.kernel())
        for (case, anatomy), found in zip(exact.items(), every, strict=True):
            where = f"{name} {knobs} on {case}"
            agree(found["loss"], anatomy.output.per_anchor, f"{where}: loss")
            agree(found["weight"], anatomy.output.weight, f"{where}: weight")
            agree(found["pair"], anatomy.weight, f"{where}: weight on pairs")
            agree(found["grad"], anatomy.grad_scores, f"{where}: gradients")
            agree([found["value"]], anatomy.output.value, f"{where}: value")
            assert found["valid"] == anatomy.output.n_valid, where
            for theirs, mine in ALIKE:
                if theirs in anatomy.extras:
                    agree(found[mine], anatomy.extras[theirs], f"{where}: {theirs}")
            tried += 1
    assert tried >= 5


def test_extreme_scores_stay_finite(modules: Node) -> None:
    """Identical rows, opposite rows, zero rows, one row, at τ = 0.001."""
    e = torch.eye(2).double()
    loss = losses.create("sup_con", temperature=0.001)
    for rows in (e[:1].repeat(6, 1), torch.cat([e, -e, 0 * e]), torch.zeros(6, 2), e[:1]):
        labels = torch.arange(len(rows)) // 2
        anatomy = exactly(loss, pairs.from_labels(rows, labels))
        (found,) = evaluate(modules, [anatomy], loss.kernel())
        agree(found["loss"], anatomy.output.per_anchor, "loss")
        agree(found["effective"], anatomy.extras["effective_negatives"], "effective negatives")
        assert math.isfinite(found["value"])
