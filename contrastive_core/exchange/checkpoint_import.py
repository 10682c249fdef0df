"""Import of a checkpoint: its tensors are converted in a child process with limited memory, matched with those of this
library's encoder and head, and stored as a run.

A pretrained model of torchvision or timm is one too. Its weights come from a file, from an earlier download, on request
from the network, or are random, which is stated everywhere. Downloads are stored in the libraries' own caches, torch
hub's folder of checkpoints and Hugging Face's cache, so that programs share them. Only `fetch` accesses the network."""

import contextlib
import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from contrastive_core import runs
from contrastive_core.base.errors import CannotImport, NotDownloaded, NotRecognized, NotRegular, Refused, explained
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import N_, message, printable, sentence
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.sandbox import Limits, run_sandboxed
from contrastive_core.base.storage import open_regular
from contrastive_core.data import datasets
from contrastive_core.exchange.checkpoint_formats import LIMIT, Recognized, Shapes, convert, fold, recognize
from contrastive_core.models.encoders import ProjectionHead, create_encoder
from contrastive_core.models.libraries import Pretrained, create_network, pretrained, resized, without_numbers
from contrastive_core.runs import checkpoints, default_run_name, free_name
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.settings import facts_of, resolve, with_image_size
from contrastive_core.train.setup import create_method

RUN = "run:"
OPTIONAL = ("num_batches_tracked",)  # missing in old files, and never used
MORE_THAN_TENSORS = N_("it contains more than tensors")
NO_CODE = N_(
    "{what}. Opening it could run code. If you trust it, save only its state dict: "
    'torch.save(checkpoint["state_dict"], …)'
)
LIMITS = Limits(3 * LIMIT, 300, 2 * LIMIT, ("torch", "safetensors.torch"))


@dataclass(frozen=True)
class OpenedCheckpoint:
    """A checkpoint whose tensors are converted to the file `weights`. `missing` and `unlike` are keys of the
    encoder that the file lacks or has with another shape; `unused` are tensors that are not needed."""

    source: Path
    weights: Path
    recognized: Recognized
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unlike: tuple[str, ...]
    unused: tuple[str, ...]

    def report(self) -> dict[str, object]:
        """Describe the checkpoint before its import, as plain values."""
        about = dataclasses.asdict(self.recognized)
        about = {k: v for k, v in about.items() if k not in ("keys", "folds")}
        parts = {k: list(getattr(self, k)) for k in ("missing", "unlike", "unused")}
        return {"file": printable(self.source.name), **about, "matched": len(self.matched), **parts}


@contextmanager
def open_checkpoint(path: str | Path, encoder: str | None = None, pixels: int = 0) -> Iterator[OpenedCheckpoint]:
    """Context with an opened checkpoint, converted in a child process; `run:NAME` opens the encoder of a run.
    `pixels`: side of the images that it was made for, if the file does not tell (0: unknown).
    Raises: CannotImport, NotRecognized, FileNotFoundError; NoSuchRun."""
    name, knobs, source = str(path), dict[str, object](), Path(path).absolute()
    if run := runs.load(name.removeprefix(RUN)) if name.startswith(RUN) else None:
        run.weights_hash()  # raises for a run without weights
        source, encoder, knobs = run.path, str(run.config["encoder"]), dict(run.config.get("encoder_knobs") or {})
        knobs["pixels"] = pixels or knobs.get("pixels") or (run.manifest.get("image_shape") or (0, 0))[1]
    elif pixels:
        knobs = {"pixels": pixels}
    with converted(run.weights if run else source) as (weights, top):
        with safe_open(weights, "numpy") as file:
            shapes = {k: tuple(file.get_slice(k).get_shape()) for k in file.keys()}  # noqa: SIM118
        try:
            recognized = recognize(shapes, top, encoder)
        except NotRecognized as error:
            raise NotRecognized("{name}: {error}", name=printable(source.name), error=error) from None
        every = {**recognized.encoder_knobs, **knobs}
        yield match(source, weights, replace(recognized, encoder_knobs=every), shapes)


@contextmanager
def converted(source: Path) -> Iterator[tuple[Path, list[str]]]:
    """Context with a file's tensors as safetensors and its top-level names. Raises: CannotImport, FileNotFoundError."""
    try:
        open_regular(source, LIMIT).close()
    except (NotRegular, IsADirectoryError) as error:
        raise CannotImport(sentence(error)) from None
    with scratch_folder() as folder:
        weights = folder / "weights.safetensors"
        try:
            top = run_sandboxed(convert, source, weights, limits=LIMITS)
        except Refused as error:
            text = why = str(error)
            if "Unsupported global" in text or "WeightsUnpickler" in text or "weights_only" in text:
                # torch's own sentence advises to open the file unsafely
                kind = text.partition("GLOBAL ")[2].partition(" ")[0]
                what = message("it contains an object of type {kind}", kind=kind) if kind else MORE_THAN_TENSORS
                why = message(NO_CODE, what=what)
            values = {"name": printable(source.name), "why": why if why is not text else text[:300]}
            raise CannotImport("{name} cannot be opened: {why}", **values) from None
        yield weights, top


def match(source: Path, weights: Path, recognized: Recognized, shapes: Shapes) -> OpenedCheckpoint:
    """Match the file's tensors with those of our encoder and head. Raises CannotImport if these cannot be built."""
    name, head = recognized.encoder, recognized.head

    def make() -> dict[str, nn.Module]:
        encoder = create_encoder(name, recognized.channels, 32, **recognized.encoder_knobs)
        dim, hidden = head.get("dim", 64), head.get("hidden", 256)
        projection = ProjectionHead(head["head"], int(encoder.out_dim), out_dim=dim, hidden=hidden)  # type: ignore[arg-type]
        return {"encoder": encoder, "head": projection}

    try:
        parts = without_numbers(make)  # allocates no weights
    except ValueError as error:
        raise CannotImport(sentence(error)) from None
    except Exception as error:  # from a library, for sizes of a damaged file
        values = {"name": name, "why": printable(explained(error))}
        raise CannotImport("{name} cannot be built with the sizes in the file: {why}", **values) from None
    ours = {f"{p}.{k}": tuple(v.shape) for p, module in parts.items() for k, v in module.state_dict().items()}
    theirs = dict(shapes)
    for part in recognized.folds:  # folding adds a missing bias
        theirs[f"{part.linear}bias"] = theirs[f"{part.linear}weight"][:1]
    common = {k: recognized.keys[k] for k in ours if recognized.keys.get(k) in theirs}
    others = {k: theirs[name] for k, name in common.items() if theirs[name] != ours[k]}
    used, norms = set(common.values()), tuple(part.norm for part in recognized.folds if part.norm)
    return OpenedCheckpoint(
        source=source,
        weights=weights,
        recognized=recognized,
        matched=tuple(k for k in common if k not in others),
        missing=tuple(k for k in ours if k not in common and not k.endswith(OPTIONAL)),
        unlike=tuple(message("{k} {theirs}, not {ours}", k=k, theirs=s, ours=ours[k]) for k, s in others.items()),
        unused=tuple(k for k in shapes if k not in used and not k.startswith(norms)),
    )


def create_run(
    checkpoint: OpenedCheckpoint,
    dataset: str = "shapes",
    name: str | None = None,
    root: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Run:
    """Create a run from an opened checkpoint, to be evaluated on `dataset`, whose images are decoded first. An
    interruption leaves no run. Raises: CannotImport if tensors are missing or the images have other channels; the
    errors of `datasets.load`."""
    it = checkpoint.recognized
    if bad := [*checkpoint.missing, *checkpoint.unlike]:
        raise CannotImport(
            "{name} looks like {kind} with {encoder}, but {bad} tensors are missing or have another shape, for "
            "example {first}",
            name=printable(checkpoint.source.name),
            kind=it.kind,
            encoder=it.encoder,
            bad=len(bad),
            first=bad[0],
        )
    on_progress(N_("reading the images"), None)
    config = TrainConfig(method=it.method, dataset=dataset, root=root, epochs=1, encoder=it.encoder)
    config = with_image_size(replace(config, encoder_knobs={**it.encoder_knobs}, method_knobs={**it.head}))
    images = datasets.of_config(config.to_dict(), on_progress=on_progress)
    channels = images.images.shape[1]
    if (it.channels, channels) == (3, 1):
        config = replace(config, encoder_knobs={**config.encoder_knobs, "gray_as_color": True})
    elif channels != it.channels:
        values = {"name": checkpoint.source.name, "takes": it.channels, "images": images.name, "channels": channels}
        raise CannotImport(
            "{name} expects images with {takes} channels, but {images} has {channels}; choose another data "
            "set with --dataset",
            **values,
        )
    on_progress(N_("creating the run"), None)
    config = resolve(config, facts_of(images)).config
    state = create_method(config, images).state_dict()
    tensors = fold(load_file(checkpoint.weights), it.folds)
    state |= {key: tensors[it.keys[key]].to(state[key].dtype) for key in checkpoint.matched}
    report = checkpoint.report()
    about = {"imported": report, "classes": list(images.classes), "n_train": len(images)}
    run = runs.create(name or free_name(default_run_name(report)), config.to_dict(), images.fingerprint, **about)
    try:
        checkpoints.save_weights(run, {k: v for k, v in state.items() if k.startswith(("encoder.", "head."))})
        note = message("imported from {name} ({kind})", name=checkpoint.source.name, kind=it.kind)
        run.set_status("done", note, pid=0)
    except BaseException:  # an interruption, or a full disk
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    return run


# --- pretrained models ------------------------------------------------------------------------------

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
