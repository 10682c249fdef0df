"""Chance and calibrated similarity are those of the package of the paper."""

import numpy as np
import pytest
import torch
from calibrated_similarity import calibrate as published

from contrastive_core.compare import representation_similarity as ours


def near(x: np.ndarray) -> np.ndarray:
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return np.argsort(-(unit @ unit.T) + 9 * np.eye(len(x)), axis=1)[:, :5]


MEASURES = {
    "cka": lambda a, b: float(ours.ckas([a.numpy(), b.numpy()])[0, 1]),
    "overlap": lambda a, b: float(ours.overlaps([near(a.numpy()), near(b.numpy())])[0, 1]),
    "procrustes": lambda a, b: 1 - ours.procrustes(a.numpy(), b.numpy()),
}


@pytest.mark.parametrize("noise", [0.5, 2.0, 50.0])
def test_it_is_that_of_the_paper(noise: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 12)).astype(np.float32)
    y = (x[:, :7] + noise * rng.normal(size=(80, 7))).astype(np.float32)
    found = ours.calibrate([x, y], [near(x), near(y)])
    for name, measure in MEASURES.items():
        drawn = np.random.default_rng(0)
        drawn.choice(80, 80, replace=False)
        value, p, limit = published(
            *map(torch.from_numpy, (x, y)),
            measure,
            perm_fn=lambda n, _, drawn=drawn: torch.tensor(drawn.permutation(n)),
        )
        chance = found[f"chance:{name}"][0, 1]
        assert (1 - chance if name == "procrustes" else chance) == pytest.approx(float(limit), abs=1e-5)
        assert found[f"calibrated:{name}"][0, 1] == pytest.approx(float(value), abs=1e-5)
        assert found[f"p:{name}"][0, 1] == pytest.approx(float(p), abs=1e-6)
