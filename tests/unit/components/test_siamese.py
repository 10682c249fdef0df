"""The training on the circle takes the steps that PyTorch takes."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from cases import case
from node import Node
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

RUN = """async ({seed, settings, steps}) => {
  const t = await load("/siamese/training.js"), training = t.begin(seed);
  for (let k = 0; k < steps; k++) t.advance(training, settings);
  const list = (net) => Array.from(net.w), {points} = t.places(training);
  return {encoder: list(training.encoder), predictor: list(training.predictor), target: list(training.target),
          sizes: [t.IMAGES, t.INPUTS, t.HIDDEN, t.PREDICTOR_HIDDEN, t.NOISE], loss: training.loss,
          ...t.spreadOf(points)};
}"""
FIRST = {"method": "simsiam", "predictor": True, "stopGradient": True, "rate": 0.3, "predictorRate": 1, "momentum": 0.9}
CASES = [
    {},
    {"stopGradient": False},
    {"predictor": False},
    {"predictor": False, "stopGradient": False, "rate": 0.1},
    {"method": "byol"},
    {"method": "byol", "momentum": 0.5, "predictorRate": 3},
    {"method": "byol", "predictor": False},
    {"method": "byol", "stopGradient": False},
]


def normals(seed: int) -> Iterator[float]:
    """mulberry32, and normal numbers from it by Box and Muller."""
    low = 0xFFFFFFFF
    state = ((seed + 1) * 0x9E3779B9 & low) ^ 0x5BF03635

    def uniform() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & low
        t = ((state ^ (state >> 15)) * (state | 1)) & low
        t ^= (t + ((t ^ (t >> 7)) * (t | 61) & low)) & low
        return (t ^ (t >> 14)) / 2**32

    while True:
        length = math.sqrt(-2 * math.log(1 - uniform()))
        yield length * math.cos(2 * math.pi * uniform())


def drawn(random: Iterator[float], *shape: int) -> Tensor:
    values = [next(random) for _ in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def network(random: Iterator[float], inputs: int, hidden: int) -> list[Tensor]:
    first, second = (drawn(random, a, b) * (2 / a) ** 0.5 for a, b in ((inputs, hidden), (hidden, 2)))
    return [first, first.new_zeros(hidden), second, first.new_zeros(2)]


def passed(net: list[Tensor], x: Tensor) -> Tensor:
    return torch.relu(x @ net[0] + net[1]) @ net[2] + net[3]


def trained(seed: int, s: dict[str, Any], steps: int, sizes: list[float]) -> dict[str, Any]:
    """The same training by autograd."""
    images, inputs, hidden, wide = (int(n) for n in sizes[:4])
    random = normals(seed)
    x = drawn(random, images, 1, inputs)
    encoder, predictor = network(random, inputs, hidden), network(random, 2, wide)
    target, shown = [w.clone() for w in encoder], drawn(random, images, 2, inputs)
    for _ in range(steps):
        views = x + sizes[4] * drawn(random, images, 2, inputs)
        for w in encoder + predictor:
            w.requires_grad_(True)
        z = passed(encoder, views)
        p = passed(predictor, z) if s["predictor"] else z
        t = z
        if s["stopGradient"]:
            t = (passed(target, views) if s["method"] == "byol" else z).detach()
        loss = -cosine_similarity(p, t.flip(1), dim=-1).mean()
        weights = encoder + (predictor if s["predictor"] else [])
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for k, (w, gradient) in enumerate(zip(weights, gradients, strict=True)):
                w -= (s["rate"] if k < len(encoder) else s["predictorRate"]) * gradient
            target = [s["momentum"] * a + (1 - s["momentum"]) * w for a, w in zip(target, encoder, strict=True)]
    with torch.no_grad():
        rows = normalize(passed(encoder, x + sizes[4] * shown).flatten(0, 1), dim=-1)
    found = {"encoder": encoder, "predictor": predictor, "target": target}
    flat = {name: torch.cat([w.detach().flatten() for w in net]).numpy() for name, net in found.items()}
    spread, resultant = rows.std(0, correction=0).mean() * 2**0.5, rows.mean(0).norm()
    return flat | {"loss": loss.item(), "spread": spread.item(), "resultant": resultant.item()}


def test_steps_are_those_of_pytorch(modules: Node) -> None:
    for changed in CASES:
        settings, seed, steps = FIRST | changed, 4, 60
        found = modules.evaluate(RUN, {"seed": seed, "settings": settings, "steps": steps})
        expected = trained(seed, settings, steps, found["sizes"])
        with case(changed):
            for name, value in expected.items():
                np.testing.assert_allclose(found[name], value, atol=1e-4, rtol=1e-4, err_msg=name)
