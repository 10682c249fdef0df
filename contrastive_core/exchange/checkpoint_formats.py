"""Checkpoints of other projects: the conversion of their tensors to safetensors, and the recognition of the project and
its tensors from names and shapes.

The conversion runs in the child process of `base/sandbox.py`. Only `torch.load(weights_only=True)` is used. It gets a
few classes that only hold settings, each replaced by an inert shell that runs no code; any other class ends the import.

The formats are taken from the source code of each project: MoCo `module.encoder_q.`, SupContrast `encoder.` and
`head.` with `shortcut`, SimCLR by sthalles `backbone.` with `backbone.fc.0`, lightly `backbone.` often as a numbered
Sequential, solo-learn `backbone.` with `projector.`, torchvision and timm without a prefix.

Projection heads are converted to this library's form: linear, or linear, ReLU, linear, all with biases. Others add
batch norm after a linear layer, or omit its bias. In evaluation mode, batch norm scales and shifts each value, so it
can be folded exactly into the linear layer before it."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from contrastive_core.base.errors import NotRecognized, Refused
from contrastive_core.base.messages import N_, message, thousands
from contrastive_core.base.registry import Knobs
from contrastive_core.base.storage import expands, open_regular

# --- conversion to safetensors, in a child process ---


LIMIT = 4 << 30  # maximum bytes of the file, unpacked, and of its tensors
MAX_TENSORS = 100_000
STATES = ("state_dict", "model", "model_state_dict", "net", "teacher", "student", "encoder")
SETTINGS = (  # classes that hold settings in Lightning's, solo-learn's and SupContrast's files
    *"argparse.Namespace typing.Any collections.defaultdict".split(),
    *(f"builtins.{kind}" for kind in "dict list str int float bool".split()),
    *(f"omegaconf.{kind}" for kind in "dictconfig.DictConfig listconfig.ListConfig".split()),
    *(f"omegaconf.base.{kind}" for kind in "ContainerMetadata Metadata".split()),
    *(f"omegaconf.nodes.{kind}Node" for kind in "Any String Integer Float Boolean Enum Bytes Path".split()),
    "pytorch_lightning.utilities.parsing.AttributeDict",
    "lightning.fabric.utilities.data.AttributeDict",
    "lightning_fabric.utilities.data.AttributeDict",
)


class _Shell(dict[Any, Any]):
    """Inert replacement for a class of settings: accepts any arguments and does nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> _Shell:
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()


def convert(source: str | Path, out: str | Path) -> list[str]:
    """Write the tensors of `source` to `out`; return its top-level names. Raises: Refused, NotRegular, OSError."""
    with open_regular(source) as file:
        start = file.read(9)
        is_safetensors = start[8:] == b"{"
        if not is_safetensors and not start.startswith((b"PK", b"\x80")):  # a zip file; an old pickle
            raise Refused(N_("it is neither a safetensors file nor one that torch.save wrote"))
        file.seek(0)
        stored = os.fstat(file.fileno()).st_size
        if is_safetensors:
            value: Any = load_file(source)
        else:
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    _check_size(sum(entry.file_size for entry in archive.infolist()), stored)
            file.seek(0)
            with torch.serialization.safe_globals([(_Shell, name) for name in SETTINGS]):
                value = torch.load(file, map_location="cpu", weights_only=True)
    top, state = value if isinstance(value, dict) else {}, dict[str, Tensor]()
    for part in (*(top[k] for k in STATES if isinstance(top.get(k), dict)), top):
        tensors = {k: v for k, v in part.items() if isinstance(k, str) and isinstance(v, Tensor)}
        if state := {k: v.detach() for k, v in tensors.items() if not v.is_quantized}:
            break
    if not state:
        raise Refused(N_("it contains no named tensors; a checkpoint or a state dict is needed"))
    if len(state) > MAX_TENSORS:
        counts = thousands(state=len(state), max_tensors=MAX_TENSORS)
        raise Refused("it contains {state} tensors; at most {max_tensors} are read", **counts)
    # a stored number may be expanded to a large tensor
    _check_size(sum(t.numel() * t.element_size() for t in state.values()), stored)
    save_file({k: v.contiguous().clone() for k, v in state.items() if v.layout is torch.strided}, out)
    return [str(k)[:80] for k in list(top)[:50]]


def _check_size(total: int, stored: int) -> None:
    if total > LIMIT:
        raise Refused(
            "it would unpack to {total} bytes; at most {limit} are read", **thousands(total=total, limit=LIMIT)
        )
    if expands(total, stored):
        raise Refused("it would unpack from {stored} to {total} bytes", **thousands(total=total, stored=stored))


# --- recognition by names and shapes ---


Shapes = Mapping[str, tuple[int, ...]]
EPS = 1e-5  # of PyTorch's batch norm, which none of the projects changes
FORM = re.compile(r"LB?(\.LB?)?")  # linear, batch norm; an activation (without tensors) before the second
LARGEST = 9  # highest layer number


@dataclass(frozen=True)
class Fold:
    """A linear layer without a bias, or followed by batch norm (`norm` is "" for none), as prefixes of tensor names."""

    linear: str
    norm: str = ""


@dataclass(frozen=True)
class Head:
    """A matched head: its `settings`, `keys` from our names to the file's (including folds), and a note."""

    settings: Knobs
    keys: dict[str, str]
    folds: tuple[Fold, ...] = ()
    note: str = ""


NONE = Head({"head": "none"}, {})


def match_head(shapes: Shapes, prefixes: Sequence[str]) -> Head:
    """Return the head of the first of `prefixes` that has tensors."""
    found = ((p, {k.removeprefix(p) for k in shapes if k.startswith(p)}) for p in prefixes)
    prefix, names = next(((p, names) for p, names in found if names), ("", set[str]()))
    if not names:
        return NONE
    layers = [Fold(prefix)] if names <= {"weight", "bias"} else _layers(names, prefix, shapes)
    if not layers or not _fit(layers, shapes):
        some = ", ".join(sorted(names)[:4])
        text = N_("its projection head ({prefix}: {some}, …) has an unknown structure and is ignored: z is h")
        return replace(NONE, note=message(text, prefix=prefix, some=some))
    widths = [shapes[f"{layer.linear}weight"][0] for layer in layers]
    settings: Knobs = {"head": "linear", "dim": widths[-1]}
    if len(layers) == 2:
        settings = {"head": "nonlinear", "dim": widths[-1], "hidden": widths[0]}
    note = N_("the batch norm of its head is folded into the linear layers, as in evaluation mode")
    return Head(
        settings,
        keys={f"head.layers.{2 * i}.{k}": layers[i].linear + k for i in range(len(layers)) for k in ("weight", "bias")},
        folds=tuple(layer for layer in layers if layer.norm or f"{layer.linear}bias" not in shapes),
        note=note if any(layer.norm for layer in layers) else "",
    )


def _layers(names: set[str], prefix: str, shapes: Shapes) -> list[Fold]:
    """Return each linear layer with its batch norm, in order; [] for any other sequence."""
    numbered = [re.fullmatch(r"(\d{1,3})\.\w+", name) for name in names]
    numbers = {int(match[1]) for match in numbered if match}
    if not all(numbered) or max(numbers) > LARGEST:
        return []
    form = ["?" if number in numbers else "." for number in range(max(numbers) + 1)]
    for number in numbers:
        if f"{number}.running_mean" in names:
            form[number] = "B"
        elif len(shapes.get(f"{prefix}{number}.weight", ())) == 2:
            form[number] = "L"
    if not FORM.fullmatch("".join(form)):
        return []
    found = re.finditer("L(B?)", "".join(form))
    return [Fold(f"{prefix}{m.start()}.", f"{prefix}{m.start() + 1}." if m[1] else "") for m in found]


def _fit(layers: Sequence[Fold], shapes: Shapes) -> bool:
    """Return whether all tensors have consistent shapes."""
    width = None
    for layer in layers:
        weight = shapes.get(f"{layer.linear}weight", ())
        if len(weight) != 2 or width not in (None, weight[1]):
            return False
        width = weight[0]
        sides = [f"{layer.linear}bias"]
        sides += [f"{layer.norm}{k}" for k in ("weight", "bias", "running_mean", "running_var") if layer.norm]
        if any(shapes.get(side, (width,)) != (width,) for side in sides):
            return False
        if layer.norm and f"{layer.norm}running_var" not in shapes:
            return False
    return True


def fold(tensors: dict[str, Tensor], folds: Sequence[Fold]) -> dict[str, Tensor]:
    """Fold each batch norm into the linear layer before it; return the tensors with the new weights and biases."""
    folded = dict(tensors)
    for layer in folds:
        weight = tensors[f"{layer.linear}weight"].double()  # (out, in)
        bias = tensors.get(f"{layer.linear}bias", torch.zeros(len(weight))).double()  # (out)
        if layer.norm:
            mean, variance = (tensors[f"{layer.norm}running_{k}"].double() for k in ("mean", "var"))  # (out)
            scale = tensors.get(f"{layer.norm}weight", torch.ones(len(weight))).double()
            shift = tensors.get(f"{layer.norm}bias", torch.zeros(len(weight))).double()
            scale = (variance + EPS).rsqrt() * scale
            weight, bias = weight * scale[:, None], (bias - mean) * scale + shift
        folded[f"{layer.linear}weight"], folded[f"{layer.linear}bias"] = weight, bias
    return folded


OURS = "encoder.body."
PREFIXES = (
    *"module.encoder_q. encoder_q. encoder.module. module.encoder.".split(),
    *(OURS, "encoder.", "module.backbone.", "backbone.", "module.", "model.", ""),
)
STEMS = ("conv1.weight", "0.weight", "patch_embed.proj.weight")
DEPTHS: dict[tuple[tuple[int, ...], bool], str] = {  # blocks of each stage, and whether they are bottlenecks
    ((2, 2, 2, 2), False): "resnet18",
    ((3, 4, 6, 3), False): "resnet34",
    ((3, 4, 6, 3), True): "resnet50",
    ((3, 4, 23, 3), True): "timm:resnet101",
    ((3, 8, 36, 3), True): "timm:resnet152",
}
VITS = {192: "tiny", 384: "small", 768: "base", 1024: "large"}


@dataclass(frozen=True)
class Recognized:
    """A recognized checkpoint. `keys` maps our encoder's and head's keys to the file's."""

    kind: str  # in words
    method: str
    encoder: str
    encoder_knobs: Knobs
    channels: int
    keys: dict[str, str]
    head: Knobs = field(default_factory=lambda: NONE.settings)
    folds: tuple[Fold, ...] = ()
    notes: tuple[str, ...] = ()
    of_library: bool = False  # a model of torchvision or timm, selected by name
    random: bool = False  # such a model with random weights


def recognize(shapes: Shapes, top: Sequence[str] = (), encoder: str | None = None) -> Recognized:
    """Recognize a checkpoint. `shapes`: of its tensors by name; `top`: names at the file's top level; `encoder`: a name
    for `create_encoder`, if the tensors do not determine it. Raises: NotRecognized."""
    prefix = next((p for p in PREFIXES if any(p + s in shapes for s in STEMS)), None)
    if prefix is None and encoder is None:
        raise NotRecognized("it contains no known encoder; its tensor names: {some}", some=_some(shapes))
    prefix = prefix or ""
    own = [k.removeprefix(prefix) for k in shapes if k.startswith(prefix)]
    stages = sorted({int(n.split(".")[0]) for n in own if re.match(r"\d+\.\d+\.conv1\.", n)})
    table: dict[str, str] = {}  # of a ResNet as a numbered Sequential, to torchvision's names
    if stages and prefix != OURS:
        table = {"0": "conv1", "1": "bn1"} | {str(s): f"layer{i}" for i, s in enumerate(stages, 1)}
    names = {}  # torchvision's, to the file's
    for name in own:
        first, dot, rest = name.partition(".")
        names[f"{table.get(first, first)}{dot}{rest}".replace(".shortcut.", ".downsample.")] = name
    architecture, knobs, channels = _architecture({n: shapes[prefix + k] for n, k in names.items()}, encoder, shapes)
    kind, method, heads = _kind(shapes, top, prefix)
    head, note = match_head(shapes, heads), ""
    if head.settings["head"] == "linear" and method == "moco_v2":
        method = "moco_v1"
    is_small = knobs.get("stem") == "small"
    match kind:  # the color normalization of the project's training, and solo-learn's small stem
        case "Contrastive Lab":
            pass
        case "SimCLR by sthalles":
            knobs = {**knobs, "colors": "none"}
        case "solo-learn" if is_small:
            knobs = {**knobs, "stem": "padded", "colors": "solo_learn"}
        case "SupContrast" if is_small:
            note = N_(
                "it is assumed to use CIFAR-10's color normalization; SupContrast uses others for other data sets"
            )
            knobs = {**knobs, "colors": "cifar10"}
        case _:
            knobs = {**knobs, "colors": "imagenet"}
            if kind == "solo-learn":
                note = N_("it is assumed to use ImageNet's color normalization; solo-learn uses another for STL-10")
    return Recognized(
        kind=kind,
        method=method,
        encoder=architecture,
        encoder_knobs=knobs,
        channels=channels,
        keys={f"encoder.body.{n}": prefix + k for n, k in names.items()} | head.keys,
        head=head.settings,
        folds=head.folds,
        notes=tuple(text for text in (note, head.note) if text),
    )


def _architecture(body: Shapes, encoder: str | None, shapes: Shapes) -> tuple[str, Knobs, int]:
    """Return the encoder's name, its settings, and the number of image channels."""
    stem = next((body[name] for name in STEMS if name in body), None)
    channels = stem[1] if stem and len(stem) == 4 else 3
    if encoder is not None:
        return encoder, {}, channels
    if not stem or len(stem) != 4:
        raise NotRecognized(
            "its first layer is not a convolution over images; its tensor names: {some}", some=_some(shapes)
        )
    if "patch_embed.proj.weight" in body:
        size, positions = VITS.get(stem[0]), body.get("pos_embed", ())
        patches = round(max(positions[1] - 1, 0) ** 0.5) if len(positions) == 3 else 0  # per side of the images
        pixels = patches * stem[2] if len(positions) == 3 else 224
        if size is None or "pos_embed" not in body:
            raise NotRecognized("its vision transformer (stem {stem}) is unknown: name it with --encoder", stem=stem)
        return f"timm:vit_{size}_patch{stem[2]}_{pixels}", {"pixels": pixels}, channels
    if "conv1.weight" not in body:  # this library's `small`
        return "small", {"width": stem[0] / 16}, channels
    counts = tuple(len({n.split(".")[1] for n in body if n.startswith(f"layer{i}.")}) for i in (1, 2, 3, 4))
    resnet = DEPTHS.get((counts, "layer1.0.conv3.weight" in body))
    if resnet is None or stem[0] != 64 or stem[2] not in (3, 7):
        raise NotRecognized(
            f"its encoder is no ResNet that is known (blocks {counts}, stem {stem}); its names: "
            f"{_some(shapes)}. Name it with --encoder timm:NAME if it is one of timm's"
        )
    knobs = {} if resnet.startswith("timm:") else {"stem": "small" if stem[2] == 3 else "imagenet"}
    return resnet, knobs, channels


def _kind(shapes: Shapes, top: Sequence[str], prefix: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the project in words, our closest method, and the prefixes of the head's tensors."""
    starts = {k.removeprefix("module.").split(".")[0] for k in shapes}
    by_momentum = "moco_v2" if starts & {"momentum_backbone", "backbone_momentum"} else "simclr"
    if prefix == OURS:
        return "Contrastive Lab", "simclr", ("head.layers.",)
    if "encoder_q" in starts:
        return "MoCo", "moco_v2", (f"{prefix}fc.",)
    if prefix.endswith(("encoder.", "encoder.module.")) and "head" in starts:
        return "SupContrast", "sup_con", ("head.", "head.module.", "module.head.")
    if starts & {"projector", "momentum_projector", "momentum_backbone"}:
        return "solo-learn", by_momentum, ("projector.",)
    if "projection_head" in starts:
        return "lightly", by_momentum, ("projection_head.layers.",)
    if prefix.endswith("backbone.") and f"{prefix}fc.0.weight" in shapes:
        return N_("SimCLR by sthalles"), "simclr", (f"{prefix}fc.",)
    if "pytorch-lightning_version" in top:
        return N_("a Lightning checkpoint"), "simclr", ()
    return N_("a state dict of torchvision or timm"), "simclr", ()


def _some(shapes: Shapes) -> str:
    return ", ".join(repr(k[:60]) for k in list(shapes)[:4]) + (", …" if len(shapes) > 4 else "")
