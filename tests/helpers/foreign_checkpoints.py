"""Checkpoints as other projects write them: their names, with random weights."""

import argparse
import importlib.util
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
import torchvision.models as models
from torch import nn


def resnet18(small: bool, padding: int = 1) -> nn.Module:
    torch.manual_seed(0)
    net = models.resnet18()
    if small:
        net.conv1 = nn.Conv2d(3, 64, 3, 1, padding, bias=False)
        net.maxpool = nn.Identity()
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.running_mean, -0.1, 0.1)
    net.fc = nn.Identity()
    return net.eval()


def mlp(start: str) -> dict[str, torch.Tensor]:
    """A head of two layers, as all of them name it."""
    found = {}
    for name, shape in (("0", (512, 512)), ("2", (128, 512))):
        found[f"{start}{name}.weight"] = torch.randn(shape) * 0.05
        found[f"{start}{name}.bias"] = torch.zeros(shape[0])
    return found


def under(prefix: str, net: nn.Module) -> dict[str, torch.Tensor]:
    return {prefix + k: v for k, v in net.state_dict().items()}


def moco(version: int) -> dict:
    net = resnet18(False)
    state = under("module.encoder_q.", net) | under("module.encoder_k.", net)
    if version == 2:
        state |= mlp("module.encoder_q.fc.") | mlp("module.encoder_k.fc.")
    else:
        head = {"weight": torch.randn(128, 512), "bias": torch.zeros(128)}
        state |= {f"module.encoder_{e}.fc.{k}": v for e in "qk" for k, v in head.items()}
    state |= {"module.queue": torch.randn(128, 64), "module.queue_ptr": torch.zeros(1).long()}
    return {"epoch": 200, "arch": "resnet18", "state_dict": OrderedDict(state), "optimizer": {}}


def sup_contrast() -> dict:
    names = resnet18(True).state_dict().items()
    state = {f"encoder.module.{k.replace('downsample', 'shortcut')}": v for k, v in names}
    opt = argparse.Namespace(model="resnet18", dataset="cifar10", temp=0.1)
    return {"opt": opt, "model": state | mlp("head."), "optimizer": {}, "epoch": 1000}


def sthalles() -> dict:
    state = under("backbone.", resnet18(False)) | mlp("backbone.fc.")
    return {"epoch": 100, "arch": "resnet18", "state_dict": state, "optimizer": {}}


def lightly() -> dict:
    """`nn.Sequential(*list(resnet.children())[:-1])` with a MoCo head, saved by Lightning."""
    body = nn.Sequential(*list(resnet18(False).children())[:-1])
    state = under("backbone.", body) | under("backbone_momentum.", body)
    state |= mlp("projection_head.layers.") | mlp("projection_head_momentum.layers.")
    about = {"pytorch-lightning_version": "2.4.0", "global_step": 9, "epoch": 4, "loops": {}}
    return {**about, "state_dict": state, "hyper_parameters": {"lr": 0.06}}


def lightly_own() -> dict:
    """lightly's own ResNet: stem of 3×3, no pooling, `shortcut`, stages at 2 to 5."""
    table = {"conv1": "0", "bn1": "1", **{f"layer{i}": str(i + 1) for i in (1, 2, 3, 4)}}
    state = {}
    for key, value in resnet18(True).state_dict().items():
        first, _, rest = key.partition(".")
        state[f"backbone.{table[first]}.{rest.replace('downsample', 'shortcut')}"] = value
    state |= under("projection_head.layers.", simclr_head())
    return {"pytorch-lightning_version": "2.4.0", "state_dict": state}


def simclr_head() -> nn.Sequential:
    """lightly's SimCLR head: no biases, batch norm behind both layers."""
    torch.manual_seed(1)
    head = nn.Sequential(
        nn.Linear(512, 96, bias=False), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 32, bias=False), nn.BatchNorm1d(32)
    )
    for norm in (head[1], head[4]):
        for tensor in (norm.weight, norm.bias, norm.running_mean):
            nn.init.uniform_(tensor, -0.5, 0.5)
        nn.init.uniform_(norm.running_var, 0.1, 2)
    return head.eval()


def solo_learn() -> dict:
    state = under("backbone.", resnet18(True, padding=2)) | mlp("projector.")
    state |= {"classifier.weight": torch.randn(10, 512), "classifier.bias": torch.zeros(10)}
    hyper = settings_class("omegaconf.dictconfig", "DictConfig")()
    hyper._content = {"name": "simclr"}
    about = {"pytorch-lightning_version": "1.9.5", "hyper_parameters": hyper}
    return {**about, "state_dict": state}


def settings_class(module: str, name: str) -> type:
    """A class of that name, which a pickle will ask for and no reader here has."""
    parent = module.partition(".")[0]  # pickle imports it, too
    if parent not in sys.modules and importlib.util.find_spec(parent) is None:
        sys.modules[parent] = types.ModuleType(parent)
    made = sys.modules.setdefault(module, types.ModuleType(module))
    cls = type(name, (), {"__module__": module})
    setattr(made, name, cls)
    return cls


def torchvision_supervised() -> dict:
    state = resnet18(False).state_dict()
    return state | {"fc.weight": torch.randn(1000, 512), "fc.bias": torch.zeros(1000)}


def here(function: Callable[..., Any], *arguments: Any, limits: object) -> Any:
    """In place of a child, which imports torch anew: seconds each."""
    return function(*arguments)
