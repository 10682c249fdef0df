"""The gradients that the site prints are those of the code."""

import sys

import pytest
import torch
from cases import cases

from contrastive_core import losses, pairs
from contrastive_core.base.storage import ROOT
from contrastive_core.losses._two_views import TwoViewLoss, Views
from contrastive_core.ops.similarity import compare

sys.path.append(str(ROOT / "docs"))

from figures import batch
from gradients import GRADIENTS


def row_gradients(loss, batch_pairs, scores):
    """The derivative of each anchor's loss by the scores of its own row (n, m)."""
    leaf = scores.clone().requires_grad_()
    values, _ = loss.per_anchor(leaf, batch_pairs.masks(), batch_pairs)
    rows = [torch.autograd.grad(value, leaf, retain_graph=True)[0][i] for i, value in enumerate(values)]
    return torch.stack(rows)


def test_every_loss_has_a_gradient():
    assert set(GRADIENTS) == set(losses.names())


def over_dimensions(name):
    return issubclass(losses.get(name), TwoViewLoss)


@pytest.mark.parametrize("name", filter(over_dimensions, losses.names()))
def test_gradient_by_rows(name):
    z = torch.randn(9, 2, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    loss, made = losses.create(name), pairs.from_views(z)
    (gradient,) = torch.autograd.grad(loss(made).value, z)
    a, b = z.detach().unbind(1)
    views = Views(a, b, torch.ones(9, dtype=z.dtype))
    torch.testing.assert_close(GRADIENTS[name][1](loss, views), gradient[:, 0], rtol=1e-6, atol=1e-9)


@cases("name", [name for name in losses.names() if not over_dimensions(name)])
def test_gradient(name):
    z, labels = batch()
    z = z.double()
    if name in ("instance_softmax",):  # an anchor's only positive is its slot
        labels = torch.arange(len(z)) // 2
    loss, rows = losses.create(name), pairs.from_labels(z, labels)
    rows = loss.rows(rows)
    scores, masks = compare(rows, loss.score), rows.masks()
    more = {"log_z": rows.log_z, "population": loss.population(rows)} if name == "nce" else {}
    formula = GRADIENTS[name][1](scores, masks.positive, masks.negative, loss, **more)
    compared = masks.positive | masks.negative
    torch.testing.assert_close((formula * compared).double(), row_gradients(loss, rows, scores), rtol=1e-6, atol=1e-9)
