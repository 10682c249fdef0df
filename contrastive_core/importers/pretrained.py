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
from typing import Any

from contrastive_core.errors import CannotImport, NotDownloaded, NotRecognized, explained
from contrastive_core.importers.checkpoint import OpenedCheckpoint, converted, match
from contrastive_core.importers.state_dict_names import Recognized, Shapes
from contrastive_core.importers.weights_files import fetch, find
from contrastive_core.progress import OnProgress, fraction_of, ignore_progress
from contrastive_core.storage.regular import printable

__all__ = ["Wanted", "about", "is_model", "open_model", "source"]

RANDOM = "random weights"
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


def about(wanted: Wanted) -> dict[str, Any]:
    """What is known of a model before anything is opened or fetched: its input, and the host, size
    and license of its weights; `file` where they lie here. Raises: NotRecognized."""
    entry, file = _entry_and_file(wanted)
    record = {k: getattr(entry, k) for k in ("pixels", "host", "license", "size", "size_is_exact")}
    return {**record, "encoder": wanted.name, "weights": entry.name, "file": file and str(file)}


def source(about: dict[str, Any]) -> str:
    """Host, size and license in words, of what `about` says."""
    size = f"{'' if about['size_is_exact'] else 'about '}{about['size'] / 1e6:,.0f} MB"
    return f"{about['host']} ({size}; license: {about['license'] or 'not stated by the library'})"


@contextmanager
def open_model(
    wanted: Wanted, on_progress: OnProgress = ignore_progress
) -> Iterator[OpenedCheckpoint]:
    """A model with its weights, opened while inside; `on_progress` hears of what is fetched, from
    where and under which license, before it is.

    Raises: CannotImport, NotRecognized, NotDownloaded where its weights are not here.
    """
    entry, file = _entry_and_file(wanted)
    if not (wanted.random or file):
        if not (wanted.may_fetch and entry.host):
            raise NotDownloaded(_how_to_get(about(wanted)))
        stage = f"fetching {entry.name} from {source(about(wanted))}"
        on_progress(stage, None)
        file = fetch(entry, fraction_of(on_progress, stage))
    recognized = _recognized(wanted, entry)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        if file is None:
            yield match(Path(RANDOM), path, *_drawn(recognized, path), {})
        else:
            with converted(file.absolute()) as (weights, plain):
                recognized, shapes = _fitted(recognized, weights, path)
            yield match(file, path, recognized, shapes, plain)


# --- where they come from ----------------------------------------------------------------------


def _entry_and_file(wanted: Wanted) -> tuple[Any, Path | None]:
    """Of a model's sets of weights the one to be opened, and its file where it lies here."""
    from contrastive_core.models.libraries import pretrained

    try:
        entries = pretrained(wanted.name)
    except ValueError as error:
        raise NotRecognized(str(error)) from None
    if wanted.weights or wanted.random:
        return entries[0], Path(wanted.weights) if wanted.weights else None
    here = ((entry, find(entry)) for entry in entries)
    return next(((e, f) for e, f in here if f), (entries[0], None))


def _how_to_get(about: dict[str, Any]) -> str:
    where = f", --fetch to fetch them from {source(about)}" if about["host"] else ""
    return (
        f"no weights of {about['encoder']} lie on this computer: give --weights FILE{where}, or "
        "--random for an encoder that has learned nothing"
    )


# --- what is made of them ----------------------------------------------------------------------


def _recognized(wanted: Wanted, entry: Any) -> Recognized:
    """The encoder with its own input size and scale of channels; its keys are known later."""
    library = wanted.name.partition(":")[0]
    notes = [f"images of {entry.pixels} pixels, its own size"]
    if wanted.pixels and wanted.pixels != entry.pixels:
        notes = [f"opened for images of {wanted.pixels} pixels instead of its own {entry.pixels}"]
    if wanted.random:
        notes.append(f"its weights are random (seed {SEED}): it has learned nothing")
    elif not wanted.weights:
        notes.append(f"license: {entry.license or f'not stated by {library}'}")
    knobs = {
        "pixels": wanted.pixels or entry.pixels, "colors": entry.colors, "gray_as_color": True,
    }  # fmt: skip
    kind = f"a {'never trained' if wanted.random else 'pretrained'} model of {library}"
    return Recognized(
        kind,
        "simclr",
        wanted.name,
        knobs,
        3,
        {},
        notes=tuple(notes),
        of_library=True,
        random=wanted.random,
    )


def _drawn(recognized: Recognized, path: Path) -> tuple[Recognized, Shapes]:
    """Random weights of an encoder, written to `path`."""
    import torch
    from safetensors.torch import save_file

    from contrastive_core.models.encoders import create_encoder

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        try:
            encoder = create_encoder(recognized.encoder, 3, 0, **recognized.encoder_knobs)
            _try(encoder.body, recognized.encoder_knobs["pixels"])
        except (ValueError, RuntimeError, AssertionError) as error:
            raise CannotImport(_cannot(recognized, error)) from None
    state = {k: v.contiguous().clone() for k, v in encoder.state_dict().items()}
    save_file(state, path)
    keys = {f"encoder.{k}": k for k in state}
    return dataclasses.replace(recognized, keys=keys), _shapes_of(state)


def _fitted(recognized: Recognized, weights: Path, path: Path) -> tuple[Recognized, Shapes]:
    """A file's tensors under the encoder's names at its image size, written to `path`."""
    from safetensors.torch import load_file, save_file

    from contrastive_core.models.libraries import create_network, resized, without_numbers

    name, pixels = recognized.encoder, int(recognized.encoder_knobs["pixels"])
    try:
        network, _ = without_numbers(lambda: create_network(name, 3, pixels))
        state = _without_start(load_file(weights), set(network.state_dict()))
        state = resized(name, network, state)
        _try(network, pixels)
    except Exception as error:  # of a library that was given foreign tensors
        raise CannotImport(_cannot(recognized, error)) from None
    save_file({k: v.contiguous().clone() for k, v in state.items()}, path)
    keys = {f"encoder.body.{k}": k for k in network.state_dict()}
    return dataclasses.replace(recognized, keys=keys), _shapes_of(state)


def _try(network: Any, pixels: int) -> None:
    """Raises what the network raises for an image of that size; ValueError where it makes more of
    one than a vector, as the parts of timm's that serve language models do."""
    import torch

    device = next(network.parameters()).device  # "meta": only sizes are computed
    with contextlib.suppress(NotImplementedError), torch.no_grad():
        made = network.eval()(torch.zeros(1, 3, pixels, pixels, device=device))
        if not isinstance(made, torch.Tensor) or made.ndim != 2:
            raise ValueError("it gives no single vector for an image")


def _without_start(state: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """The tensors without a training loop's start of their names, where that fits more of them."""

    def cut(start: str) -> dict[str, Any]:
        return {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}

    return max((cut(start) for start in ("", *STARTS)), key=lambda s: len(names & set(s)))


def _shapes_of(state: dict[str, Any]) -> Shapes:
    return {k: tuple(v.shape) for k, v in state.items()}


def _cannot(recognized: Recognized, error: Exception) -> str:
    from contrastive_core.models.libraries import pretrained

    side = recognized.encoder_knobs["pixels"]
    why = printable(explained(error), 200)
    if side != (own := pretrained(recognized.encoder)[0].pixels):
        return (
            f"{recognized.encoder} cannot be made for images of {side} pixels; its own size is "
            f"{own}: {why}"
        )
    return (
        f"{recognized.encoder} cannot be made for images of {side} pixels of these weights: {why}"
    )
