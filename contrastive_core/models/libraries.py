"""Encoders of torchvision and timm, without their classifier: `torchvision:NAME` and `timm:NAME`, with a tag of weights
after a dot (`torchvision:resnet50.IMAGENET1K_V2`). This module reads no file and makes no network request."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlparse

import torch
from torch import Tensor, nn

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_

LIBRARIES = ("torchvision", "timm")
FIXED = {"vit_": 224, "maxvit_": 224}  # torchvision's whose parameters depend on the images' size
HUGGING_FACE = "huggingface.co"
HF_FILES = ("model.safetensors", "pytorch_model.bin")
OLD_DENSENET = re.compile(r"^(.*denselayer\d+\.(?:norm|relu|conv))\.([12]\.(?:weight|bias|running_mean|running_var))$")


@dataclass(frozen=True)
class Pretrained:
    """Description of pretrained weights. `files` are names in `repo` at Hugging Face, or the last part of `url`; `size`
    is in bytes, estimated from the parameters unless `size_is_exact`."""

    name: str
    pixels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    url: str = ""
    repo: str = ""
    files: tuple[str, ...] = ()
    license: str = ""
    size: int = 0
    size_is_exact: bool = False

    @property
    def host(self) -> str:
        """The host that serves the weights; "" if there is none."""
        return HUGGING_FACE if self.repo else urlparse(self.url).netloc

    @property
    def colors(self) -> list[list[float]]:
        """Mean and standard deviation of the channels, for the argument `colors` of `create_encoder`."""
        return [list(self.mean), list(self.std)]


@lru_cache(64)
def pretrained(name: str) -> list[Pretrained]:
    """Return all known weights of an encoder, the default ones first; for an encoder without weights, one entry without
    a source. Raises ValueError."""
    library, _, model = name.partition(":")
    if library == "timm":
        return _of_timm(model)
    base, enum = _torchvision_weights(model)
    tag = model.partition(".")[2]
    if tag and tag not in enum.__members__:
        members = ", ".join(enum.__members__)
        raise BadSetting("{base} has no weights {tag}; it has: {members}", base=base, tag=f"{tag!r}", members=members)
    entries = []
    for weights in [enum[tag]] if tag else dict.fromkeys([enum.DEFAULT, *enum]):
        images = weights.transforms()
        entry = Pretrained(
            f"torchvision:{base}.{weights.name}",
            images.crop_size[0],
            tuple(images.mean),
            tuple(images.std),
            weights.url,
            files=(weights.url.rsplit("/", 1)[-1],),
            license=weights.meta.get("license", ""),
            size=round(weights.meta.get("_file_size", 0) * 2**20),
            size_is_exact=True,
        )
        entries.append(entry)
    return entries


def create_network(name: str, channels: int, pixels: int = 0) -> tuple[nn.Module, int]:
    """Return an untrained network without its classifier, and the width of its output. `pixels`: side of the images,
    for networks whose parameters depend on it (0: the network's default). Raises ValueError."""
    library, _, model = name.partition(":")
    if library == "timm":
        return _timm_network(model, channels, pixels)
    from torchvision import models

    base, _ = _torchvision_weights(model)
    settings: dict[str, object] = {}
    if base in ("googlenet", "inception_v3"):
        settings = {"aux_logits": False, "init_weights": False, "transform_input": True}
    elif base.startswith("vit_") and pixels:
        settings = {"image_size": pixels}
    elif base.startswith("maxvit_") and pixels:
        settings = {"input_size": (pixels, pixels)}
    net = models.get_model(base, weights=None, **settings)
    last_name, last = [(k, m) for k, m in net.named_modules() if isinstance(m, (nn.Linear, nn.Conv2d))][-1]
    net.set_submodule(last_name, nn.Identity())
    if base.startswith("mnasnet"):  # its own loads no tensors that come without its version
        net._load_from_state_dict = partial(nn.Module._load_from_state_dict, net)  # type: ignore[method-assign]
    first_name, first = next((k, m) for k, m in net.named_modules() if isinstance(m, nn.Conv2d))
    if first.in_channels != channels:
        size: Any = (first.kernel_size, first.stride, first.padding)
        other = nn.Conv2d(channels, first.out_channels, *size, bias=first.bias is not None)  # type: ignore[misc]
        net.set_submodule(first_name, other)
    return net, int(last.in_features if isinstance(last, nn.Linear) else last.in_channels)


def fixed_pixels(name: str) -> int:
    """Return the side in pixels of the images that an encoder requires; 0 for any size. Raises ValueError."""
    library, _, model = name.partition(":")
    if library == "torchvision":
        return next((side for start, side in FIXED.items() if model.startswith(start)), 0)
    config = _timm(model).get_pretrained_cfg(model)
    return int(config.input_size[-1]) if config is not None and config.fixed_input_size else 0


def resized(name: str, network: nn.Module, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename a file's tensors for the network and resize its position embeddings, with the library's own functions."""
    library, _, model = name.partition(":")
    if library == "timm":
        module = sys.modules[_timm(model).model_entrypoint(model).__module__]
        adapt = getattr(module, "checkpoint_filter_fn", None)
        return adapt(state, network) if adapt else state
    if model.startswith("densenet"):  # files of before torchvision 0.3
        return {OLD_DENSENET.sub(r"\1\2", k): v for k, v in state.items()}
    if model.startswith("vit_") and "encoder.pos_embedding" in state:
        from torchvision.models.vision_transformer import interpolate_embeddings

        side: Any = network
        return dict(interpolate_embeddings(side.image_size, side.patch_size, state))  # type: ignore[arg-type]
    return state


def without_numbers(make: Callable[[], Any]) -> Any:
    """Call `make`, which builds a module, on the meta device if possible, so that parameters take no memory."""
    try:
        with torch.device("meta"):
            return make()
    except NotImplementedError:  # it computes with numbers while it is made
        return make()


def _torchvision_weights(name: str) -> tuple[str, Any]:
    """Return the model's name without its tag, and torchvision's enum of its weights. Raises BadSetting."""
    from torchvision import models

    base = name.partition(".")[0]
    if base not in models.list_models(module=models):
        if base in models.list_models():
            raise BadSetting(
                "torchvision's {base} is not an image classifier; only image classifiers can be encoders here",
                base=base,
            )
        raise BadSetting(
            "torchvision has no model {base}; torchvision.models.list_models() lists them", base=f"{base!r}"
        )
    return base, models.get_model_weights(base)


def _timm(name: str) -> Any:
    """Import timm and check that it has the model `name`. Raises ValueError."""
    try:
        import timm
    except ImportError:
        raise ValueError(N_("timm is not installed: pip install timm, or choose another encoder")) from None
    if not timm.is_model(name):
        raise BadSetting("timm has no model {name}; timm.list_models() lists them", name=f"{name!r}")
    return timm


def _of_timm(model: str) -> list[Pretrained]:
    try:
        config = _timm(model).get_pretrained_cfg(model)
    except RuntimeError as error:  # of an unknown tag
        raise ValueError(str(error)[:300]) from None
    net, _ = without_numbers(lambda: _timm_network(model, 3, 0))
    size = 4 * sum(p.numel() for p in net.parameters())
    if config is None:
        return [Pretrained(f"timm:{model}", 224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), size=size)]
    entry = Pretrained(
        name=f"timm:{config.architecture}" + (f".{config.tag}" if config.tag else ""),
        pixels=int(config.input_size[-1]),
        mean=tuple(config.mean),
        std=tuple(config.std),
        url="" if config.custom_load else str(config.url or ""),
        repo=str(config.hf_hub_id or ""),
        files=tuple(filter(None, (config.hf_hub_filename, *HF_FILES))),
        license=str(config.license or ""),
        size=size,
    )
    return [entry]


def _timm_network(name: str, channels: int, pixels: int) -> tuple[nn.Module, int]:
    timm = _timm(name)
    config = timm.get_pretrained_cfg(name)
    size = {"img_size": pixels} if pixels and config is not None and config.fixed_input_size else {}
    try:
        net = timm.create_model(name, pretrained=False, num_classes=0, in_chans=channels, **size)
    except TypeError as error:
        if "img_size" not in str(error):
            raise
        raise BadSetting("timm:{name} accepts only its own image size", name=name) from None
    return net, int(getattr(net, "head_hidden_size", net.num_features))
