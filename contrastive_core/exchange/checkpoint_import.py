"""Import of a checkpoint: its tensors are converted in a child process with limited memory, matched with those of this
library's encoder and head, and stored as a run."""

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from contrastive_core import runs
from contrastive_core.base.errors import CannotImport, NotRecognized, NotRegular, Refused, explained
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import N_, message, printable, sentence
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.sandbox import Limits, run_sandboxed
from contrastive_core.base.storage import open_regular
from contrastive_core.data import datasets
from contrastive_core.exchange.checkpoint_formats import LIMIT, Recognized, Shapes, convert, fold, recognize
from contrastive_core.models.encoders import ProjectionHead, create_encoder
from contrastive_core.models.libraries import without_numbers
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
