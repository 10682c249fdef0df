"""What the browser computes of a loss over dimensions is the library's loss."""

import base64
import itertools

import numpy as np
import pytest
import torch
from cases import case
from node import Node

from contrastive_core import losses, pairs

RUN = """async ({Z, n, d, form, knobs}) => {
  const {dimensionsOf, termsOf} = await load("/shared/dimensions.js");
  const bytes = Uint8Array.from(atob(Z), (c) => c.charCodeAt(0));
  return termsOf(dimensionsOf(new Float32Array(bytes.buffer), n, d, form), knobs);
}"""
CASES = [
    ("barlow_twins", {}),
    ("barlow_twins", {"off_diagonal": 0.0}),
    ("barlow_twins", {"off_diagonal": 2.5}),
    ("vicreg", {}),
    ("vicreg", {"invariance": 3.0, "variance": 0.0, "covariance": 40.0}),
    ("vicreg", {"invariance": 0.0, "variance": 7.0, "covariance": 0.0, "deviation": 2.0}),
]


def test_terms_and_loss_are_the_librarys(modules: Node) -> None:
    for (name, knobs), (n, d) in itertools.product(CASES, [(32, 8), (6, 40), (2, 3), (64, 128)]):
        with case(name, knobs, n, d):
            agree(modules, name, knobs, n, d)


def agree(modules: Node, name: str, knobs: dict[str, float], n: int, d: int) -> None:
    rng = np.random.default_rng(n)
    mixed = rng.standard_normal((n, 1, d)) @ rng.standard_normal((d, d)) / np.sqrt(d)
    z = (mixed + 0.4 * rng.standard_normal((n, 2, d))).astype(np.float32)
    loss = losses.create(name, **knobs)
    every = {knob: getattr(loss, knob) for knob in losses.knobs(name)}
    sent = {"Z": base64.b64encode(z.tobytes()).decode(), "n": n, "d": d, "form": loss.card.matrix, "knobs": every}
    found = modules.evaluate(RUN, sent)
    anatomy = loss.anatomy(pairs.from_views(torch.from_numpy(z)))
    assert sum(term["part"] for term in found) == pytest.approx(float(anatomy.output.value), rel=1e-5)
    names = {"on": "on_diagonal", "off": "off_diagonal"}
    for term in found:
        expected = float(anatomy.extras[names.get(term["key"], term["key"])])
        assert term["value"] == pytest.approx(expected, rel=1e-5, abs=1e-5), term["key"]
