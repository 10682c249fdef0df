"""What the browser computes of losses is the library's: kernels, gradients on the circle, terms over dimensions; and
the order of rows and columns in the live view's matrix."""

import base64
import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from cases import case
from node import Node

from contrastive_core import losses, pairs
from contrastive_core.losses import LossOutput

# --- kernels ---


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
        exact = {kind: exactly(loss, batch) for kind, batch in batches().items() if not loss.check(batch)}
        every = evaluate(modules, list(exact.values()), loss.kernel())
        for (kind, anatomy), found in zip(exact.items(), every, strict=True):
            where = f"{name} {knobs} on {kind}"
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


# --- gradients on the circle ---


GRADIENT = """async ({angles, mask, kernel, score}) => {
  const parts = {...await load("/shared/kernels.js"), ...await load("/circle/forces.js")};
  const n = angles.length, S = parts.circleScores(angles, score, new Float64Array(n * n));
  const out = parts.evaluate(S, Uint8Array.from(mask), n, n, kernel);
  return {force: Array.from(parts.circleGradient(angles, score, out)), value: out.value};
}"""


def dragged_knobs(name: str) -> list[dict[str, Any]]:
    """A loss's knobs: values of what is dragged, with every choice of the others."""
    values = {"temperature": (0.01, 0.05, 0.5, 5.0, 10.0), "margin": (0.0, 0.3, 1.0, 2.0)}
    found: list[dict[str, Any]] = [{}]
    for knob, about in losses.knobs(name).items():
        if tried := [v for v in values.get(knob, ()) if v >= (about.low or 0)] or about.choices:
            found = [{**g, knob: v} for g in found for v in tried]
    return [knobs for knobs in found if losses.create(name, **knobs).kernel() is not None]


WITH_KERNEL = [name for name in losses.names() if losses.create(name).kernel() is not None]


def test_gradients_agree_with_the_library(modules: Node) -> None:
    for name in WITH_KERNEL:
        for knobs in dragged_knobs(name):
            with case(name, knobs):
                gradients_agree(modules, name, knobs)


def gradients_agree(modules: Node, name: str, knobs: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    angles = rng.uniform(0, 2 * np.pi, 18)
    labels = torch.arange(18) % 3
    rows = torch.tensor(np.stack([np.cos(angles), np.sin(angles)], 1))
    loss = losses.create(name, **knobs)
    batch = pairs.from_labels(rows, labels)
    mask = torch.where(labels[:, None] == labels[None], 1, 2).fill_diagonal_(3)
    compare(modules, loss, batch, angles, mask)
    groups = torch.arange(9) % 4  # the same points as two towers, in both directions at once
    batch = pairs.from_towers(rows[:9], rows[9:], groups, groups)
    across = torch.zeros(18, 18, dtype=torch.long)
    across[:9, 9:] = across[9:, :9] = torch.where(groups[:, None] == groups[None], 1, 2)
    compare(modules, loss, batch, angles, across)


def compare(modules: Node, loss: Any, batch: pairs.Pairs, angles: np.ndarray, mask: torch.Tensor) -> None:
    anatomy = loss.anatomy(batch)
    tangent = torch.tensor(np.stack([-np.sin(angles), np.cos(angles)], 1))
    wanted = (anatomy.grad_anchors * tangent).sum(1).numpy()
    found = modules.evaluate(
        GRADIENT,
        {"angles": angles.tolist(), "mask": mask.flatten().tolist(), "kernel": loss.kernel(), "score": loss.score},
    )
    value = float(anatomy.output.value)
    assert abs(found["value"] - value) <= 1e-5 * max(1, abs(value)), loss
    worst = np.abs(np.array(found["force"]) - wanted) / np.maximum(1, np.abs(wanted))
    assert worst.max() <= 1e-4, f"{loss}: {worst.max():.1e}"


# --- losses over dimensions ---


TERMS = """async ({Z, n, d, form, knobs}) => {
  const {dimensionsOf, termsOf} = await load("/shared/dimensions.js");
  const bytes = Uint8Array.from(atob(Z), (c) => c.charCodeAt(0));
  return termsOf(dimensionsOf(new Float32Array(bytes.buffer), n, d, form), knobs);
}"""
WEIGHTS = [
    ("barlow_twins", {}),
    ("barlow_twins", {"off_diagonal": 0.0}),
    ("barlow_twins", {"off_diagonal": 2.5}),
    ("vicreg", {}),
    ("vicreg", {"invariance": 3.0, "variance": 0.0, "covariance": 40.0}),
    ("vicreg", {"invariance": 0.0, "variance": 7.0, "covariance": 0.0, "deviation": 2.0}),
]


def test_terms_and_loss_are_the_librarys(modules: Node) -> None:
    for (name, knobs), (n, d) in itertools.product(WEIGHTS, [(32, 8), (6, 40), (2, 3), (64, 128)]):
        with case(name, knobs, n, d):
            terms_agree(modules, name, knobs, n, d)


def terms_agree(modules: Node, name: str, knobs: dict[str, float], n: int, d: int) -> None:
    rng = np.random.default_rng(n)
    mixed = rng.standard_normal((n, 1, d)) @ rng.standard_normal((d, d)) / np.sqrt(d)
    z = (mixed + 0.4 * rng.standard_normal((n, 2, d))).astype(np.float32)
    loss = losses.create(name, **knobs)
    every = {knob: getattr(loss, knob) for knob in losses.knobs(name)}
    sent = {"Z": base64.b64encode(z.tobytes()).decode(), "n": n, "d": d, "form": loss.card.matrix, "knobs": every}
    found = modules.evaluate(TERMS, sent)
    anatomy = loss.anatomy(pairs.from_views(torch.from_numpy(z)))
    assert sum(term["part"] for term in found) == pytest.approx(float(anatomy.output.value), rel=1e-5)
    names = {"on": "on_diagonal", "off": "off_diagonal"}
    for term in found:
        expected = float(anatomy.extras[names.get(term["key"], term["key"])])
        assert term["value"] == pytest.approx(expected, rel=1e-5, abs=1e-5), term["key"]


# --- the order of the matrix ---


@pytest.mark.parametrize("anchors", [64, 16])
def test_clusters_stand_together(modules: Node, anchors: int) -> None:
    """Groups that came mixed stand together, in a square batch and in a rectangular one."""
    rng = np.random.default_rng(0)
    group = np.arange(64) * 27 % 8
    rows = np.eye(8)[group] + 0.1 * rng.standard_normal((64, 8))
    scores = rows[:anchors] @ rows.T
    names = [f"row {i}" for i in range(64)]
    order, columns = modules.evaluate(
        """async ([S, meta, n]) => {
          const { clustersOf } = await load("/loss_view/order.js");
          return clustersOf({ n, w: 64, S: Float32Array.from(S), meta });
        }""",
        [scores.ravel().tolist(), {"names": names[:anchors], "columnNames": names, "scoreName": "similarity"}, anchors],
    )
    for found, m in ((order, anchors), (columns, 64)):
        assert sorted(found) == list(range(m))
        changes = np.count_nonzero(np.diff(group[found]))
        assert changes == len(np.unique(group[:m])) - 1
