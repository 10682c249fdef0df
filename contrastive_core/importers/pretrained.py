"""A model of torchvision or timm as an encoder that was not trained here.

Its weights come from a file, from what was fetched before (weights_files.py), or, only where that
is asked for, from the network; or they are random, and everything says so. Every file is opened as
`open_checkpoint` opens one: in a child process, weights only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from safetensors.torch import load_file, save_file

from contrastive_core.errors import CannotImport, NotDownloaded, NotRecognized, explained
from contrastive_core.importers.checkpoint import OpenedCheckpoint, converted, match
from contrastive_core.importers.state_dict_names import Recognized, Shapes
from contrastive_core.importers.weights_files import fetch, find
from contrastive_core.messages import N_, message, sentence
from contrastive_core.models.encoders import create_encoder
from contrastive_core.models.libraries import create_network, pretrained, resized, without_numbers
from contrastive_core.progress import OnProgress, fraction_of, ignore_progress
from contrastive_core.storage.regular_files import printable

__all__ = ["ModelFacts", "Wanted", "about", "is_model", "open_model", "source"]

Tensors = dict[str, torch.Tensor]
RANDOM = N_("random weights")
STARTS = ("module.", "model.", "backbone.", "encoder.", "module.backbone.", "module.encoder.")
SEED = 0  # of random weights


@dataclass(frozen=True)
class Wanted:
    """Which model, and where its weights are to come from: `weights`, a file; else, `random`; else
    what lies on this computer; else, with `may_fetch`, the network. `pixels`: side of the images
    that it is opened for (0: its own)."""

    name: str
    weights: str = ""
    pixels: int = 0
    random: bool = False
    may_fetch: bool = False


def is_model(name: str) -> bool:
    """Whether a name is that of a library's model, not a file's."""
    return name.startswith(("torchvision:", "timm:"))


class ModelFacts(TypedDict):
    """Facts on a model: its input, and the host, size and license of its weights; `file` if they are
    on this computer."""

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
    return ModelFacts(
        encoder=wanted.name,
        weights=entry.name,
        pixels=entry.pixels,
        host=entry.host,
        license=entry.license,
        size=entry.size,
        size_is_exact=entry.size_is_exact,
        file=str(file) if file else None,
    )


def source(about: ModelFacts) -> str:
    """Host, size and license in words, of what `about` says."""
    size = (
        message("{size} MB", size=f"{about['size'] / 1000000.0:,.0f}")
        if about["size_is_exact"]
        else message("about {size} MB", size=f"{about['size'] / 1000000.0:,.0f}")
    )
    return message(
        "{host} ({size}; license: {license})",
        host=about["host"],
        size=size,
        license=about["license"] or N_("not stated by the library"),
    )


@contextmanager
def open_model(wanted: Wanted, on_progress: OnProgress = ignore_progress) -> Iterator[OpenedCheckpoint]:
    """A model with its weights, opened while inside; `on_progress` hears of what is fetched, from
    where and under which license, before it is.

    Raises: CannotImport, NotRecognized, NotDownloaded where its weights are not here.
    """
    entry, file = _entry_and_file(wanted)
    if not (wanted.random or file):
        if not (wanted.may_fetch and entry.host):
            raise NotDownloaded(_how_to_get(about(wanted)))
        stage = message("fetching {name} from {source}", name=entry.name, source=source(about(wanted)))
        on_progress(stage, None)
        file = fetch(entry, fraction_of(on_progress, stage))
    recognized = _recognized(wanted, entry)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        if file is None:
            yield match(Path(RANDOM), path, *_random_weights(recognized, path))
        else:
            with converted(file.absolute()) as (weights, _):
                recognized, shapes = _fit_weights(recognized, weights, path)
            yield match(file, path, recognized, shapes)


# --- where they come from ----------------------------------------------------------------------


def _entry_and_file(wanted: Wanted) -> tuple[Any, Path | None]:
    """Of a model's sets of weights the one to be opened, and its file where it lies here."""
    try:
        entries = pretrained(wanted.name)
    except ValueError as error:
        raise NotRecognized(sentence(error)) from None
    if wanted.weights or wanted.random:
        return entries[0], Path(wanted.weights) if wanted.weights else None
    here = ((entry, find(entry)) for entry in entries)
    return next(((e, f) for e, f in here if f), (entries[0], None))


def _how_to_get(about: ModelFacts) -> str:
    where = f", --fetch to fetch them from {source(about)}" if about["host"] else ""
    return (
        f"no weights of {about['encoder']} lie on this computer: give --weights FILE{where}, or "
        "--random for an encoder that has learned nothing"
    )


# --- what is made of them ----------------------------------------------------------------------


def _recognized(wanted: Wanted, entry: Any) -> Recognized:
    """The encoder with its own input size and scale of channels; its keys are known later."""
    library = wanted.name.partition(":")[0]
    notes = [message("images of {pixels} pixels, its own size", pixels=entry.pixels)]
    if wanted.pixels and wanted.pixels != entry.pixels:
        notes = [
            message(
                "opened for images of {pixels} pixels instead of its own {entry_pixels}",
                pixels=wanted.pixels,
                entry_pixels=entry.pixels,
            )
        ]
    if wanted.random:
        notes.append(message("its weights are random (seed {seed}): it has learned nothing", seed=SEED))
    elif not wanted.weights:
        notes.append(
            message("license: {license}", license=entry.license or message("not stated by {library}", library=library))
        )
    knobs = {"pixels": wanted.pixels or entry.pixels, "colors": entry.colors, "gray_as_color": True}
    kind = (
        message("a never trained model of {library}", library=library)
        if wanted.random
        else message("a pretrained model of {library}", library=library)
    )
    return Recognized(
        kind, "simclr", wanted.name, knobs, 3, {}, notes=tuple(notes), of_library=True, random=wanted.random
    )


def _random_weights(recognized: Recognized, path: Path) -> tuple[Recognized, Shapes]:
    """Random weights of an encoder, written to `path`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        try:
            encoder = create_encoder(recognized.encoder, 3, 0, **recognized.encoder_knobs)
            _check_network(encoder.body, recognized.encoder_knobs["pixels"])
        except (ValueError, RuntimeError, AssertionError) as error:
            raise CannotImport(_cannot(recognized, error)) from None
    state = {k: v.contiguous().clone() for k, v in encoder.state_dict().items()}
    save_file(state, path)
    keys = {f"encoder.{k}": k for k in state}
    return dataclasses.replace(recognized, keys=keys), _shapes_of(state)


def _fit_weights(recognized: Recognized, weights: Path, path: Path) -> tuple[Recognized, Shapes]:
    """A file's tensors under the encoder's names at its image size, written to `path`."""
    name, pixels = recognized.encoder, int(recognized.encoder_knobs["pixels"])
    try:
        network, _ = without_numbers(lambda: create_network(name, 3, pixels))
        state = _without_prefix(load_file(weights), set(network.state_dict()))
        state = resized(name, network, state)
        _check_network(network, pixels)
    except Exception as error:  # of a library that was given foreign tensors
        raise CannotImport(_cannot(recognized, error)) from None
    save_file({k: v.contiguous().clone() for k, v in state.items()}, path)
    keys = {f"encoder.body.{k}": k for k in network.state_dict()}
    return dataclasses.replace(recognized, keys=keys), _shapes_of(state)


def _check_network(network: Any, pixels: int) -> None:
    """Raises what the network raises for an image of that size; ValueError where it makes more of
    one than a vector, as the parts of timm's that serve language models do."""
    device = next(network.parameters()).device  # "meta": only sizes are computed
    with contextlib.suppress(NotImplementedError), torch.no_grad():
        made = network.eval()(torch.zeros(1, 3, pixels, pixels, device=device))
        if not isinstance(made, torch.Tensor) or made.ndim != 2:
            raise ValueError(N_("it gives no single vector for an image"))


def _without_prefix(state: Tensors, names: set[str]) -> Tensors:
    """The tensors without a training loop's start of their names, where that fits more of them."""

    def cut(start: str) -> Tensors:
        return {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}

    return max((cut(start) for start in ("", *STARTS)), key=lambda s: len(names & set(s)))


def _shapes_of(state: Tensors) -> Shapes:
    return {k: tuple(v.shape) for k, v in state.items()}


def _cannot(recognized: Recognized, error: Exception) -> str:
    side = recognized.encoder_knobs["pixels"]
    why = printable(explained(error), 200)
    if side != (own := pretrained(recognized.encoder)[0].pixels):
        return message(
            "{encoder} cannot be made for images of {side} pixels; its own size is {own}: {why}",
            encoder=recognized.encoder,
            side=side,
            own=own,
            why=why,
        )
    return message(
        "{encoder} cannot be made for images of {side} pixels of these weights: {why}",
        encoder=recognized.encoder,
        side=side,
        why=why,
    )
