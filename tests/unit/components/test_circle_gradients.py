"""The gradients on the circle are the library's."""

from typing import Any

import numpy as np
import torch
from cases import case
from node import Node

from contrastive_core import losses, pairs

GRADIENT = """async ({angles, mask, kernel, score}) => {
  const parts = {...await load("/shared/kernels.js"), ...await load("/circle/forces.js")};
  const n = angles.length, S = parts.circleScores(angles, score, new Float64Array(n * n));
  const out = parts.evaluate(S, Uint8Array.from(mask), n, n, kernel);
  return {force: Array.from(parts.circleGradient(angles, score, out)), value: out.value};
}"""


def settings(name: str) -> list[dict[str, Any]]:
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
        for knobs in settings(name):
            with case(name, knobs):
                agree(modules, name, knobs)


def agree(modules: Node, name: str, knobs: dict[str, Any]) -> None:
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
