"""Pretrained models of torchvision or timm as encoders.
Their weights come from a file, from an earlier download, on request from the network, or are random, which is stated
everywhere. Every file is opened like a checkpoint (`open_checkpoint`): in a child process, weights only.

Downloads are stored in the libraries' own caches, torch hub's folder of checkpoints and Hugging Face's cache, so that
programs share them. Only `fetch` accesses the network."""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from contrastive_core.base.errors import CannotImport, NotDownloaded, NotRecognized, explained
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import N_, message, printable, sentence
from contrastive_core.base.progress import OnFraction, OnProgress, fraction_of, ignore_fraction, ignore_progress
from contrastive_core.exchange.checkpoint_formats import Recognized
from contrastive_core.exchange.checkpoint_import import OpenedCheckpoint, converted, match
from contrastive_core.models.encoders import create_encoder
from contrastive_core.models.libraries import Pretrained, create_network, pretrained, resized, without_numbers

LOOK = 0.5  # seconds between two checks of a file's size


def find(entry: Pretrained) -> Path | None:
    """Return the file of some weights in the caches of Hugging Face and torch hub, if it exists."""
    if entry.repo:
        from huggingface_hub import try_to_load_from_cache

        paths = (try_to_load_from_cache(entry.repo, name) for name in entry.files)
        if cached := next((p for p in paths if isinstance(p, str)), None):
            return Path(cached)
    if not entry.url:
        return None
    path = _hub_file(entry)
    return path if path.is_file() else None


def _hub_file(entry: Pretrained) -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints" / entry.url.rsplit("/", 1)[-1]


def fetch(entry: Pretrained, on_fraction: OnFraction = ignore_fraction) -> Path:
    """Download weights to their library's cache; a second thread calls `on_fraction`. Raises: CannotImport."""
    try:
        if entry.repo:
            return _from_hugging_face(entry, on_fraction)
        path = _hub_file(entry)
        path.parent.mkdir(parents=True, exist_ok=True)
        match = torch.hub.HASH_REGEX.search(path.name)  # type: ignore[attr-defined]
        with _watched(path.parent, f"{path.name}.*.partial", entry.size, on_fraction):
            torch.hub.download_url_to_file(entry.url, str(path), match and match.group(1), progress=False)
        return path
    except Exception as error:  # network errors differ by client
        why = printable(explained(error), 200)
        values = {"name": entry.name, "host": entry.host, "why": why}
        raise CannotImport("{name} cannot be fetched from {host}: {why}", **values) from None


def _from_hugging_face(entry: Pretrained, on_fraction: OnFraction) -> Path:
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    folder = Path(constants.HF_HUB_CACHE) / f"models--{entry.repo.replace('/', '--')}" / "blobs"
    with _watched(folder, "*.incomplete", entry.size, on_fraction):
        for name in entry.files:
            try:
                return Path(hf_hub_download(entry.repo, name))
            except EntryNotFoundError:
                continue
    raise CannotImport("{repo} has none of {files}", repo=entry.repo, files=", ".join(entry.files))


@contextlib.contextmanager
def _watched(folder: Path, files: str, size: int, on_fraction: OnFraction) -> Iterator[None]:
    """Context that reports the downloaded share of `size` bytes from the newest of the unfinished files."""
    over = threading.Event()

    def look() -> None:
        while size and not over.wait(LOOK):
            with contextlib.suppress(OSError):
                found = [path.stat() for path in folder.glob(files)]
                newest = max(found, key=lambda about: about.st_mtime, default=None)
                on_fraction(min(1.0, newest.st_size / size) if newest else 0.0)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


Tensors = dict[str, torch.Tensor]
RANDOM = N_("random weights")
STARTS = ("", "module.", "model.", "backbone.", "encoder.", "module.backbone.", "module.encoder.")
SEED = 0  # of random weights


@dataclass(frozen=True)
class Wanted:
    """A model and the source of its weights: the file `weights`, else random ones with `random`, else a cached
    download, else with `may_fetch` the network. `pixels`: side of the images that it is opened for (0: its own)."""

    name: str
    weights: str = ""
    pixels: int = 0
    random: bool = False
    may_fetch: bool = False


def is_model(name: str) -> bool:
    """Return whether a name is that of a library's model, not of a file."""
    return name.startswith(("torchvision:", "timm:"))


def about(wanted: Wanted) -> dict[str, object]:
    """Describe a model without opening or downloading it: its input; host, size and license of its weights;
    `file` if they are on this computer. Raises: NotRecognized."""
    entry, file = _entry_and_file(wanted)
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
    entry, file = _entry_and_file(wanted)
    if not (wanted.random or file):
        if not (wanted.may_fetch and entry.host):
            where = f", --fetch to fetch them from {_source(entry)}" if entry.host else ""
            help = f"give --weights FILE{where}, or --random for an encoder that has learned nothing"
            raise NotDownloaded(f"no weights of {wanted.name} lie on this computer: {help}")
        stage = message("fetching {name} from {source}", name=entry.name, source=_source(entry))
        on_progress(stage, None)
        file = fetch(entry, fraction_of(on_progress, stage))
    recognized = _recognized(wanted, entry)
    with scratch_folder() as folder:
        path = folder / "weights.safetensors"
        if file is None:
            state, keys = _random_weights(recognized)
        else:
            with converted(file.absolute()) as (weights, _):
                state, keys = _fit_weights(recognized, load_file(weights))
        save_file({k: v.contiguous().clone() for k, v in state.items()}, path)
        shapes = {k: tuple(v.shape) for k, v in state.items()}
        yield match(file or Path(RANDOM), path, dataclasses.replace(recognized, keys=keys), shapes)


def _entry_and_file(wanted: Wanted) -> tuple[Pretrained, Path | None]:
    """Choose the set of weights for a model; return it with its file, if that is on this computer."""
    try:
        entries = pretrained(wanted.name)
    except ValueError as error:
        raise NotRecognized(sentence(error)) from None
    if wanted.weights or wanted.random:
        return entries[0], Path(wanted.weights) if wanted.weights else None
    here = ((entry, find(entry)) for entry in entries)
    return next(((e, f) for e, f in here if f), (entries[0], None))


def _recognized(wanted: Wanted, entry: Pretrained) -> Recognized:
    """Describe a library's model as a recognized encoder, with its input size and color scale, but without keys."""
    library = wanted.name.partition(":")[0]
    pixels = wanted.pixels or entry.pixels
    if pixels == entry.pixels:
        notes = [message("images of {pixels} pixels, its own size", pixels=pixels)]
    else:
        sides = {"pixels": pixels, "entry_pixels": entry.pixels}
        notes = [message("opened for images of {pixels} pixels instead of its own {entry_pixels}", **sides)]
    if wanted.random:
        kind = message("an untrained model of {library}", library=library)
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
    """Return random weights of an encoder, and the mapping of its keys to their names."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        try:
            encoder = create_encoder(recognized.encoder, 3, 0, **recognized.encoder_knobs)
            _check_network(encoder.body, recognized.encoder_knobs["pixels"])
        except (ValueError, RuntimeError, AssertionError) as error:
            raise CannotImport(_cannot(recognized, error)) from None
    return encoder.state_dict(), {f"encoder.{k}": k for k in encoder.state_dict()}


def _fit_weights(recognized: Recognized, tensors: Tensors) -> tuple[Tensors, dict[str, str]]:
    """Rename and resize a file's tensors for the encoder; return them and the mapping of its keys to their names."""
    name, pixels = recognized.encoder, int(recognized.encoder_knobs["pixels"])
    try:
        network, _ = without_numbers(lambda: create_network(name, 3, pixels))
        names = set(network.state_dict())
        # remove a prefix of the names if more of them match then
        cut = [{k.removeprefix(p): v for k, v in tensors.items() if k.startswith(p)} for p in STARTS]
        state = resized(name, network, max(cut, key=lambda part: len(names & set(part))))
        _check_network(network, pixels)
    except Exception as error:  # from a library, for foreign tensors
        raise CannotImport(_cannot(recognized, error)) from None
    return state, {f"encoder.body.{k}": k for k in names}


def _check_network(network: Any, pixels: int) -> None:
    """Raise the network's error for an image of this size, or ValueError if the output is not a vector per image."""
    device = next(network.parameters()).device  # "meta": computes only sizes
    with contextlib.suppress(NotImplementedError), torch.no_grad():
        made = network.eval()(torch.zeros(1, 3, pixels, pixels, device=device))
        if not isinstance(made, torch.Tensor) or made.ndim != 2:
            raise ValueError(N_("it does not output a single vector for each image"))


def _cannot(recognized: Recognized, error: Exception) -> str:
    side, own = recognized.encoder_knobs["pixels"], pretrained(recognized.encoder)[0].pixels
    values = {"encoder": recognized.encoder, "side": side, "own": own, "why": printable(explained(error), 200)}
    if side != own:
        return message("{encoder} cannot be built for images of {side} pixels; its own size is {own}: {why}", **values)
    return message("{encoder} cannot be built for images of {side} pixels with these weights: {why}", **values)
