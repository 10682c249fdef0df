"""Pretrained models of torchvision or timm as encoders.
Their weights come from a file, from an earlier download, on request from the network, or are random, which is stated
everywhere. Every file is opened like a checkpoint (`open_checkpoint`): in a child process, weights only.

Downloads are stored in the libraries' own caches, torch hub's folder of checkpoints and Hugging Face's cache, so that
programs share them. Only `fetch` accesses the network."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from contrastive_core.base.errors import CannotImport, NotDownloaded, NotRecognized, explained
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import N_, message, printable, sentence
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.exchange.checkpoint_formats import Recognized
from contrastive_core.exchange.checkpoint_import import OpenedCheckpoint, converted, match
from contrastive_core.models.encoders import create_encoder
from contrastive_core.models.libraries import Pretrained, create_network, pretrained, resized, without_numbers

RANDOM = N_("random weights")
STARTS = ("", "module.", "model.", "backbone.", "encoder.", "module.backbone.", "module.encoder.")
SEED = 0  # of random weights


def find(entry: Pretrained) -> Path | None:
    """Return the file of some weights in the caches of Hugging Face and torch hub, if it exists."""
    if entry.repo:
        from huggingface_hub import try_to_load_from_cache

        paths = (try_to_load_from_cache(entry.repo, name) for name in entry.files)
        if cached := next((p for p in paths if isinstance(p, str)), None):
            return Path(cached)
    path = _hub_file(entry)
    return path if entry.url and path.is_file() else None


def _hub_file(entry: Pretrained) -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints" / entry.url.rsplit("/", 1)[-1]


def fetch(entry: Pretrained) -> Path:
    """Download weights to their library's cache. Raises: CannotImport."""
    try:
        if not entry.repo:
            path = _hub_file(entry)
            path.parent.mkdir(parents=True, exist_ok=True)
            match = torch.hub.HASH_REGEX.search(path.name)  # type: ignore[attr-defined]
            torch.hub.download_url_to_file(entry.url, str(path), match and match.group(1), progress=False)
            return path
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError

        for name in entry.files:
            with contextlib.suppress(EntryNotFoundError):
                return Path(hf_hub_download(entry.repo, name))
        raise CannotImport("{repo} has none of {files}", repo=entry.repo, files=", ".join(entry.files))
    except Exception as error:  # network errors differ by client
        why = printable(explained(error), 200)
        values = {"name": entry.name, "host": entry.host, "why": why}
        raise CannotImport("{name} cannot be fetched from {host}: {why}", **values) from None


@dataclass(frozen=True)
class Wanted:
    """A model and the source of its weights: the file `weights`, else random ones with `random`, else a cached
    download, else with `may_fetch` the network. `pixels`: side of the images that it is opened for (0: its own)."""

    name: str
    weights: str = ""
    pixels: int = 0
    random: bool = False
    may_fetch: bool = False

    def entry_and_file(self) -> tuple[Pretrained, Path | None]:
        """Choose the set of weights; return it with its file, if that is on this computer. Raises NotRecognized."""
        try:
            entries = pretrained(self.name)
        except ValueError as error:
            raise NotRecognized(sentence(error)) from None
        if self.weights or self.random:
            return entries[0], Path(self.weights) if self.weights else None
        here = ((entry, find(entry)) for entry in entries)
        return next(((e, f) for e, f in here if f), (entries[0], None))


def is_model(name: str) -> bool:
    """Return whether a name is that of a library's model, not of a file."""
    return name.startswith(("torchvision:", "timm:"))


def about(wanted: Wanted) -> dict[str, object]:
    """Describe a model without opening or downloading it: its input; host, size and license of its weights;
    `file` if they are on this computer. Raises: NotRecognized."""
    entry, file = wanted.entry_and_file()
    facts = {name: getattr(entry, name) for name in ("pixels", "host", "license", "size", "size_is_exact")}
    said = {"encoder": wanted.name, "weights": entry.name, "file": str(file) if file else None}
    return {**facts, **said, "source": _source(entry)}


def _source(entry: Pretrained) -> str:
    """Describe the host, size and license of weights in words."""
    size = f"{entry.size / 1e6:,.0f}"
    return message(
        "{host} ({size}; license: {license})",
        host=entry.host,
        size=message(N_("{size} MB") if entry.size_is_exact else N_("about {size} MB"), size=size),
        license=entry.license or N_("not stated by the library"),
    )


@contextmanager
def open_model(wanted: Wanted, on_progress: OnProgress = ignore_progress) -> Iterator[OpenedCheckpoint]:
    """Context with an opened model and its weights. `on_progress` reports the source and license before a download.
    Raises: CannotImport, NotRecognized, NotDownloaded if its weights are not on this computer."""
    entry, file = wanted.entry_and_file()
    if not (wanted.random or file):
        if not (wanted.may_fetch and entry.host):
            where = f", --fetch to fetch them from {_source(entry)}" if entry.host else ""
            help = f"give --weights FILE{where}, or --random for an encoder that has learned nothing"
            raise NotDownloaded(f"no weights of {wanted.name} lie on this computer: {help}")
        on_progress(message("fetching {name} from {source}", name=entry.name, source=_source(entry)), None)
        file = fetch(entry)
    library = wanted.name.partition(":")[0]
    pixels = wanted.pixels or entry.pixels
    if pixels == entry.pixels:
        notes = [message("images of {pixels} pixels, its own size", pixels=pixels)]
    else:
        sides = {"pixels": pixels, "entry_pixels": entry.pixels}
        notes = [message("opened for images of {pixels} pixels instead of its own {entry_pixels}", **sides)]
    kind = message("a pretrained model of {library}", library=library)
    if wanted.random:
        kind = message("an untrained model of {library}", library=library)
        notes.append(message("its weights are random (seed {seed}): it has learned nothing", seed=SEED))
    elif not wanted.weights:
        license = entry.license or message("not stated by {library}", library=library)
        notes.append(message("license: {license}", license=license))
    knobs = {"pixels": pixels, "colors": entry.colors, "gray_as_color": True}
    recognized = Recognized(kind, "simclr", wanted.name, knobs, 3, {}, notes=tuple(notes), of_library=True)
    with scratch_folder() as folder:
        path = folder / "weights.safetensors"
        if file is None:
            state = _fitted(recognized, None)
        else:
            with converted(file.absolute()) as (weights, _):
                state = _fitted(recognized, load_file(weights))
        save_file({k: v.contiguous().clone() for k, v in state.items()}, path)
        start = "encoder." if file is None else "encoder.body."
        recognized = replace(recognized, random=wanted.random, keys={f"{start}{k}": k for k in state})
        yield match(file or Path(RANDOM), path, recognized, {k: tuple(v.shape) for k, v in state.items()})


def _fitted(recognized: Recognized, tensors: dict[str, torch.Tensor] | None) -> dict[str, torch.Tensor]:
    """Return a file's tensors, renamed and resized for the encoder, or random ones for None."""
    name, pixels = recognized.encoder, int(recognized.encoder_knobs["pixels"])
    try:
        if tensors is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(SEED)
                encoder = create_encoder(name, 3, 0, **recognized.encoder_knobs)
            network: Any = encoder.body
            state = encoder.state_dict()
        else:
            network, _ = without_numbers(lambda: create_network(name, 3, pixels))
            # remove a prefix of the names if more of them match then
            cut = [{k.removeprefix(p): v for k, v in tensors.items() if k.startswith(p)} for p in STARTS]
            names = network.state_dict().keys()
            state = resized(name, network, max(cut, key=lambda part: len(names & part.keys())))
        device = next(network.parameters()).device  # "meta": computes only sizes
        with contextlib.suppress(NotImplementedError), torch.no_grad():
            made = network.eval()(torch.zeros(1, 3, pixels, pixels, device=device))
            if not isinstance(made, torch.Tensor) or made.ndim != 2:
                raise ValueError(N_("it does not output a single vector for each image"))
        return state
    except Exception as error:  # from a library, for foreign tensors and sizes
        own = pretrained(name)[0].pixels
        values = {"encoder": name, "side": pixels, "own": own, "why": printable(explained(error), 200)}
        text = N_("{encoder} cannot be built for images of {side} pixels with these weights: {why}")
        if pixels != own:
            text = N_("{encoder} cannot be built for images of {side} pixels; its own size is {own}: {why}")
        raise CannotImport(text, **values) from None
