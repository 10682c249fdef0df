"""Every loss, with its defaults, is the paper's formula; tests/unit/losses tries all settings on all builders."""

import pytest
import torch
from losses_setup import build, knobs_of, make, usable
from slow_losses import slow_loss

from contrastive_core import losses


@pytest.mark.parametrize("name", losses.names())
def test_the_defaults_are_the_papers_loop(name: str) -> None:
    loss, met = make(name, {}, directions=8), 0
    for kind in ("views", "labels", "bank", "towers"):
        z = torch.randn(16, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        made = build(kind, z.requires_grad_())
        if not usable(loss, made) or (name == "nce" and made.log_z is None):
            continue
        out = loss(made)
        value, weight = slow_loss(name, made, **knobs_of(loss))
        torch.testing.assert_close(out.weight, torch.tensor(weight, dtype=torch.float64), rtol=0, atol=0, msg=kind)
        torch.testing.assert_close(out.per_anchor, torch.tensor(value, dtype=torch.float64), rtol=1e-10, atol=1e-10)
        (grad,) = torch.autograd.grad(out.value, z)
        assert grad.isfinite().all()
        assert grad.abs().sum() > 0
        met += 1
    assert met
