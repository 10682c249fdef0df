"""Optimizers leave norms and biases undecayed; schedules meet their corners; devices say no."""

import sys

import pytest
import torch
from cases import cases
from torch import nn

from contrastive_core import methods
from contrastive_core.base import device
from contrastive_core.base.errors import NoDevice
from contrastive_core.train.optim import LARS, SCHEDULES, create_optimizer, learning_rate
from contrastive_core.train.state import own_kernels


def net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))


@pytest.mark.parametrize("name", ["sgd", "adamw", "lars"])
def test_norms_and_biases_are_not_decayed(name: str) -> None:
    model = net()
    for p in model.parameters():
        nn.init.ones_(p)
        p.grad = torch.zeros_like(p)
    optimizer = create_optimizer(name, model.parameters(), lr=0.1, weight_decay=0.5)
    optimizer.step()
    for p in model.parameters():
        assert (p < 1).all() if p.ndim >= 2 else (p == 1).all()


@pytest.mark.parametrize(("name", "cls"), [("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW), ("lars", LARS)])
def test_it_steps_as_torchs_own_and_imports_no_compiler(name: str, cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = (nn.Parameter(torch.ones(3, 2)) for _ in "ab")
    groups = [{"params": [theirs], "weight_decay": 0.2}]
    reference = cls(groups, lr=0.1, **({} if name == "adamw" else {"momentum": 0.9}))
    for _ in range(3):
        (theirs**2).sum().backward()
        reference.step()
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # to import it is an error
    optimizer = create_optimizer(name, [mine], 0.1, 0.2)
    for _ in range(3):
        (mine**2).sum().backward()
        optimizer.step()
    assert torch.equal(mine, theirs)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    assert mine.grad is None


def test_frozen_parameters_are_left_out() -> None:
    model = net()
    model[0].requires_grad_(False)
    optimizer = create_optimizer("sgd", model.parameters(), 0.1, 0)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert id(model[0].weight) not in held
    model.requires_grad_(False)
    with pytest.raises(ValueError, match="nothing to train"):
        create_optimizer("sgd", model.parameters(), 0.1, 0)
    with pytest.raises(ValueError, match="known: sgd, adamw, lars"):
        create_optimizer("lion", net().parameters(), 0.1, 0)


@cases("schedule", SCHEDULES)
def test_schedules_stay_between_zero_and_the_peak(schedule: str) -> None:
    rates = [learning_rate(s, 100, 0.3, schedule) for s in range(100)]
    assert max(rates) == pytest.approx(0.3, rel=0.01)
    assert min(rates) >= 0
    warm = [learning_rate(s, 100, 0.3, schedule, warmup=10) for s in range(10)]
    assert warm == pytest.approx([0.03 * (s + 1) for s in range(10)])


def test_schedules_at_their_corners() -> None:
    assert learning_rate(50, 100, 1.0, "cosine") == pytest.approx(0.5)
    assert [learning_rate(s, 200, 1.0, "steps") for s in (119, 120, 160)] == pytest.approx([1, 0.1, 0.01])
    assert learning_rate(0, 100, 1.0, "one_cycle") == pytest.approx(0.04)
    assert learning_rate(25, 100, 1.0, "one_cycle") == pytest.approx(1.0)
    assert learning_rate(99, 100, 1.0, "one_cycle") < 0.01
    with pytest.raises(ValueError, match="known: constant"):
        learning_rate(0, 1, 1.0, "linear")


def test_devices() -> None:
    assert device.choose("cpu").type == "cpu"
    assert device.choose().type in ("cpu", "cuda", "mps")
    with pytest.raises(NoDevice, match="known: auto"):
        device.choose("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(NoDevice, match="no cuda device"):
            device.choose("cuda")
    cpu = torch.device("cpu")
    assert isinstance(device.wants_bf16(cpu), bool)
    assert not device.wants_bf16(torch.device("mps"))
    assert "threads" in device.describe(cpu)
    assert device.memory_bytes(cpu) > 1e7


def test_a_saved_state_takes_the_kernels_of_the_device_it_is_loaded_on() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    optimizer = create_optimizer("adamw", [weight], 1e-3, 0.1)
    assert not optimizer.param_groups[0].get("fused")
    saved = [{**g, "fused": True, "lr": 0.5} for g in optimizer.state_dict()["param_groups"]]
    (group,) = own_kernels(saved, optimizer)
    assert (group["fused"], group["lr"]) == (None, 0.5)


@cases(
    ("shape", "flip"),
    [((1, 28, 28), 0.0), ((1, 8, 8), 0.0), ((3, 32, 32), 0.5), ((1, 64, 64), 0.5), ((4, 28, 28), 0.5)],
)
def test_only_images_that_may_be_characters_are_not_mirrored(shape: tuple[int, int, int], flip: float) -> None:
    recipe, reason = methods.get("simclr").defaults(methods.DatasetInfo(shape, 60_000, 10))["recipe"]
    assert recipe.flip == flip
    assert ("mirror" in reason) == (not flip)
