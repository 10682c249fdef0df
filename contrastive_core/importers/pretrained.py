"""A model of torchvision or timm as an encoder that was not trained here. Its weights come from a file, from what was
fetched before (weights_files.py), or, only where that is asked for, from the network; or they are random, and
everything says so. Every file is opened as `open_checkpoint` opens one: in a child process, weights only."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

import torch
from safetensors.torch import load_file, save_file

from contrastive_core.errors import CannotImport, NotDownloaded, NotRecognized, explained
from contrastive_core.importers.checkpoint import OpenedCheckpoint, converted, match
from contrastive_core.importers.state_dict_names import Recognized
from contrastive_core.importers.weights_files import fetch, find
from contrastive_core.messages import N_, message, sentence
from contrastive_core.models.encoders import create_encoder
from contrastive_core.models.libraries import Pretrained, create_network, pretrained, resized, without_numbers
from contrastive_core.progress import OnProgress, fraction_of, ignore_progress
from contrastive_core.storage.regular_files import printable

Tensors = dict[str, torch.Tensor]
RANDOM = N_("random weights")
STARTS = ("", "module.", "model.", "backbone.", "encoder.", "module.backbone.", "module.encoder.")
SEED = 0  # of random weights


@dataclass(frozen=True)
class Wanted:
    """Which model, and where its weights are to come from: `weights`, a file; else, `random`; else what lies on this
    computer; else, with `may_fetch`, the network. `pixels`: side of the images that it is opened for (0: its own)."""

    name: str
    weights: str = ""
    pixels: int = 0
    random: bool = False
    may_fetch: bool = False


def is_model(name: str) -> bool:
    """Whether a name is that of a library's model, not a file's."""
    return name.startswith(("torchvision:", "timm:"))


class ModelFacts(TypedDict):
    """Facts on a model: its input; host, size and license of its weights; `file` if they are on this computer."""

    encoder: str
    weights: str
    pixels: int
    host: str
    license: str
    size: int
    size_is_exact: bool
    file: str | None


def about(wanted: Wanted) -> ModelFacts:
    """Return facts on a model without opening or downloading anything. Raises: NotRecognized."""
    entry, file = _entry_and_file(wanted)
    facts: Any = {name: getattr(entry, name) for name in ("pixels", "host", "license", "size", "size_is_exact")}
    facts |= {"encoder": wanted.name, "weights": entry.name, "file": str(file) if file else None}
    return cast(ModelFacts, facts)


def source(about: ModelFacts) -> str:
    """Host, size and license in words, of what `about` says."""
    megabytes = f"{about['size'] / 1e6:,.0f}"
    size = (
        message("{size} MB", size=megabytes) if about["size_is_exact"] else message("about {size} MB", size=megabytes)
    )
    license = about["license"] or N_("not stated by the library")
    return message("{host} ({size}; license: {license})", host=about["host"], size=size, license=license)


@contextmanager
def open_model(wanted: Wanted, on_progress: OnProgress = ignore_progress) -> Iterator[OpenedCheckpoint]:
    """A model with its weights, opened while inside; `on_progress` hears of what is fetched, from where and under which
    license, before it is. Raises: CannotImport, NotRecognized, NotDownloaded where its weights are not here."""
    entry, file = _entry_and_file(wanted)
    if not (wanted.random or file):
        if not (wanted.may_fetch and entry.host):
            where = f", --fetch to fetch them from {source(about(wanted))}" if entry.host else ""
            help = f"give --weights FILE{where}, or --random for an encoder that has learned nothing"
            raise NotDownloaded(f"no weights of {wanted.name} lie on this computer: {help}")
        stage = message("fetching {name} from {source}", name=entry.name, source=source(about(wanted)))
        on_progress(stage, None)
        file = fetch(entry, fraction_of(on_progress, stage))
    recognized = _recognized(wanted, entry)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        if file is None:
            state, keys = _random_weights(recognized)
        else:
            with converted(file.absolute()) as (weights, _):
                state, keys = _fit_weights(recognized, load_file(weights))
        save_file({k: v.contiguous().clone() for k, v in state.items()}, path)
        shapes = {k: tuple(v.shape) for k, v in state.items()}
        yield match(file or Path(RANDOM), path, dataclasses.replace(recognized, keys=keys), shapes)


def _entry_and_file(wanted: Wanted) -> tuple[Pretrained, Path | None]:
    """Of a model's sets of weights the one to be opened, and its file where it lies here."""
    try:
        entries = pretrained(wanted.name)
    except ValueError as error:
        raise NotRecognized(sentence(error)) from None
    if wanted.weights or wanted.random:
        return entries[0], Path(wanted.weights) if wanted.weights else None
    here = ((entry, find(entry)) for entry in entries)
    return next(((e, f) for e, f in here if f), (entries[0], None))


def _recognized(wanted: Wanted, entry: Pretrained) -> Recognized:
    """The encoder with its own input size and scale of channels; its keys are known later."""
    library = wanted.name.partition(":")[0]
    pixels = wanted.pixels or entry.pixels
    if pixels == entry.pixels:
        notes = [message("images of {pixels} pixels, its own size", pixels=pixels)]
    else:
        sides = {"pixels": pixels, "entry_pixels": entry.pixels}
        notes = [message("opened for images of {pixels} pixels instead of its own {entry_pixels}", **sides)]
    if wanted.random:
        kind = message("a never trained model of {library}", library=library)
        notes.append(message("its weights are random (seed {seed}): it has learned nothing", seed=SEED))
    else:
        kind = message("a pretrained model of {library}", library=library)
        if not wanted.weights:
            license = entry.license or message("not stated by {library}", library=library)
            notes.append(message("license: {license}", license=license))
    knobs = {"pixels": pixels, "colors": entry.colors, "gray_as_color": True}
    of_library = Recognized(kind, "simclr", wanted.name, knobs, 3, {}, notes=tuple(notes), of_library=True)
    return dataclasses.replace(of_library, random=wanted.random)


def _random_weights(recognized: Recognized) -> tuple[Tensors, dict[str, str]]:
    """Random weights of an encoder, and its keys to their names."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        try:
            encoder = create_encoder(recognized.encoder, 3, 0, **recognized.encoder_knobs)
            _check_network(encoder.body, recognized.encoder_knobs["pixels"])
        except (ValueError, RuntimeError, AssertionError) as error:
            raise CannotImport(_cannot(recognized, error)) from None
    return encoder.state_dict(), {f"encoder.{k}": k for k in encoder.state_dict()}


def _fit_weights(recognized: Recognized, tensors: Tensors) -> tuple[Tensors, dict[str, str]]:
    """A file's tensors under the encoder's names at its image size, and its keys to these names."""
    name, pixels = recognized.encoder, int(recognized.encoder_knobs["pixels"])
    try:
        network, _ = without_numbers(lambda: create_network(name, 3, pixels))
        names = set(network.state_dict())
        # without a training loop's start of their names, where that fits more of them
        cut = [{k.removeprefix(p): v for k, v in tensors.items() if k.startswith(p)} for p in STARTS]
        state = resized(name, network, max(cut, key=lambda part: len(names & set(part))))
        _check_network(network, pixels)
    except Exception as error:  # of a library that was given foreign tensors
        raise CannotImport(_cannot(recognized, error)) from None
    return state, {f"encoder.body.{k}": k for k in names}


def _check_network(network: Any, pixels: int) -> None:
    """Raises what the network raises for an image of that size; ValueError where it gives more than a vector."""
    device = next(network.parameters()).device  # "meta": only sizes are computed
    with contextlib.suppress(NotImplementedError), torch.no_grad():
        made = network.eval()(torch.zeros(1, 3, pixels, pixels, device=device))
        if not isinstance(made, torch.Tensor) or made.ndim != 2:
            raise ValueError(N_("it gives no single vector for an image"))


def _cannot(recognized: Recognized, error: Exception) -> str:
    side, own = recognized.encoder_knobs["pixels"], pretrained(recognized.encoder)[0].pixels
    values = {"encoder": recognized.encoder, "side": side, "own": own, "why": printable(explained(error), 200)}
    if side != own:
        return message("{encoder} cannot be made for images of {side} pixels; its own size is {own}: {why}", **values)
    return message("{encoder} cannot be made for images of {side} pixels of these weights: {why}", **values)
