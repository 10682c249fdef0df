"""Export of a run's encoder for use without this project: weights as safetensors and a few lines that load them.

The lines need torch and safetensors, torchvision for a ResNet, timm for one of timm's models. A run's files may come
from anyone and these lines are meant to be executed, so every value enters them as a number, a quoted literal, one of
the names known here, or a comment without line breaks. Torch-free."""

import json  # its strings are also Python literals

from contrastive_core.base.errors import Damaged, explained
from contrastive_core.base.messages import printable
from contrastive_core.base.storage import open_regular
from contrastive_core.runs.run import Run

Shapes = dict[str, tuple[int, ...]]  # shapes of tensors by name

COLORS = {  # mean and standard deviation of each channel; a test compares them with encoders.py
    "plain": ((0.5,), (0.25,)),
    "none": ((0.0,), (1.0,)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "solo_learn": ((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),
}
RESNETS = ("resnet18", "resnet34", "resnet50")
MAX_HEAD = 100 << 20  # bytes of a safetensors header

TEXT = """\
# {name}: {method} on {dataset}. h of images (n, {channels}, height, width) with values in [0, 1].
import torch
{imports}from safetensors.torch import load_file
from torch import nn

{network}

weights = load_file({file})
start = "encoder.body."
net.load_state_dict({{k[len(start):]: v.float() if v.is_floating_point() else v
                     for k, v in weights.items() if k.startswith(start)}})
net.eval()
mean, deviation = torch.tensor({mean}).view(-1, 1, 1), torch.tensor({deviation}).view(-1, 1, 1)


@torch.no_grad()
def encode(images):
{resize}    return net((images - mean) / deviation)
"""

RESIZE = """\
    images = nn.functional.interpolate(images, ({side}, {side}), mode="bilinear", antialias=True)
"""

SMALL = """\
layers = []
for c_in, c_out, stride in {sizes}:
    layers += [nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU()]
net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())"""

TORCHVISION = """\
net = models.get_model({name}, weights=None{settings})
last = [k for k, m in net.named_modules() if isinstance(m, (nn.Linear, nn.Conv2d))][-1]
net.set_submodule(last, nn.Identity())"""

FIRST = """
name, conv = next((k, m) for k, m in net.named_modules() if isinstance(m, nn.Conv2d))
shape = conv.kernel_size, conv.stride, conv.padding
bias = conv.bias is not None
net.set_submodule(name, nn.Conv2d({channels}, conv.out_channels, *shape, bias=bias))"""

TIMM = """\
about = timm.models.get_pretrained_cfg({name})
size = {{"img_size": {side}}} if {side} and about and about.fixed_input_size else {{}}
net = timm.create_model({name}, num_classes=0, in_chans={channels}, **size)"""

RESNET = """\
net = models.{name}(weights=None)
net.fc = nn.Identity()"""


def snippet(run: Run, shapes: Shapes) -> str:
    """Return Python code that loads the run's encoder from its exported weights. `shapes`: of the tensors by name, from
    `shapes_of`. Raises: Damaged if the run's settings match no encoder."""
    config = run.config
    try:
        knobs = dict(config.get("encoder_knobs") or {})
        colors = knobs.get("colors", "plain")
        means = COLORS[colors] if isinstance(colors, str) else [[float(x) for x in row] for row in colors]
        mean, deviation = map(list, means)  # per channel
        side = int(knobs.get("pixels") or 0)
        height = int((run.manifest.get("image_shape") or (0, 8 if config.get("dataset") == "digits" else 32))[1])
        body = {k.removeprefix("encoder.body."): v for k, v in shapes.items()}
        encoder, stem = str(config.get("encoder")), str(knobs.get("stem"))
        if encoder.startswith(("torchvision:", "timm:")):
            imports, network, channels = _of_library(encoder, body, side)
        else:
            imports, network, channels = _network(encoder, stem, body, side or height)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        why = printable(explained(error))
        raise Damaged("{name} has settings that match no encoder: {why}", name=run.name, why=why) from None
    return TEXT.format(
        name=printable(run.name),
        file=json.dumps(f"{run.name}.safetensors"),
        method=printable(config.get("method")),
        dataset=printable(config.get("dataset")),
        channels=channels,
        imports=imports,
        network=network,
        mean=mean,
        deviation=deviation,
        resize=RESIZE.format(side=side) if side else "",
    )


def shapes_of(run: Run) -> Shapes:
    """Read the shapes of a run's tensors from the file's header. Raises Damaged, OSError."""
    try:
        with open_regular(run.weights) as file:
            size = int.from_bytes(file.read(8), "little")
            head = json.loads(file.read(min(size, MAX_HEAD)))
        return {str(k): tuple(int(n) for n in v["shape"]) for k, v in head.items() if k != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged("{path} is damaged: {error}", path=run.weights, error=printable(error)) from None


def _of_library(encoder: str, body: Shapes, side: int) -> tuple[str, str, int]:
    """Return the results of `_network` for a model of torchvision or timm."""
    library, _, model = encoder.partition(":")
    first = next((v for k, v in body.items() if k.endswith("weight") and len(v) == 4), (0, 3))
    if library == "timm":
        lines = TIMM.format(name=json.dumps(model), side=side, channels=first[1])
        return "import timm\n", lines, first[1]
    base, settings = model.partition(".")[0], ""
    if side and base.startswith("vit_"):
        settings = f", image_size={side}"
    elif side and base.startswith("maxvit_"):
        settings = f", input_size=({side}, {side})"
    elif base in ("googlenet", "inception_v3"):
        settings = ", aux_logits=False, init_weights=False, transform_input=True"
    lines = TORCHVISION.format(name=json.dumps(base), settings=settings)
    lines += FIRST.format(channels=first[1]) if first[1] != 3 else ""
    return "import torchvision.models as models\n", lines, first[1]


def _network(name: str, stem: str, body: Shapes, side: int) -> tuple[str, str, int]:
    """Return the imports, the lines that create the untrained network `net`, and the number of image channels."""
    if name in RESNETS:
        out, channels, kernel = body["conv1.weight"][:3]
        lines = RESNET.format(name=name)
        if kernel == 3:
            padding = 2 if stem == "padded" else 1
            lines += f"\nnet.conv1 = nn.Conv2d({channels}, {out}, 3, 1, {padding}, bias=False)"
            lines += "\nnet.maxpool = nn.Identity()"
        elif channels != 3:
            lines += f"\nnet.conv1 = nn.Conv2d({channels}, {out}, 7, 2, 3, bias=False)"
        return "import torchvision.models as models\n", lines, channels
    if name != "small":
        raise ValueError(f"there is no encoder {name!r}")
    convolutions = [v for v in body.values() if len(v) == 4]
    ordered = [body[f"{i}.weight"] for i in range(0, 3 * len(convolutions), 3)]
    strides = (1, 2, 2, 1, 2, 1) if side >= 16 else (1, 1, 2, 1, 2, 1)
    sizes = [(v[1], v[0], stride) for v, stride in zip(ordered, strides, strict=True)]
    return "", SMALL.format(sizes=sizes), ordered[0][1]
