"""Checkpoints from elsewhere: looked at, matched, turned into a run. Nothing in them is trusted.

A child process with limited memory converts the file (conversion.py), so that what goes wrong there
ends there; names and shapes tell what it is (state_dict_names.py, heads.py); the weights become the
run's safetensors.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.errors import CannotImport, NotRecognized, NotRegular, Refused
from contrastive_core.importers.conversion import LIMIT, convert
from contrastive_core.importers.heads import fold
from contrastive_core.importers.state_dict_names import Recognized, recognize
from contrastive_core.runs import Run
from contrastive_core.storage.limited import Limits, call_limited
from contrastive_core.storage.regular import open_regular, printable

__all__ = ["NotRecognized", "OpenedCheckpoint", "Recognized", "create_run", "open_checkpoint",
           "recognize"]  # fmt: skip

OPTIONAL = ("num_batches_tracked",)  # missing in old files, and used by nothing
LIMITS = Limits(3 * LIMIT, 300, 2 * LIMIT, ("torch", "safetensors.torch"))


@dataclass(frozen=True)
class OpenedCheckpoint:
    """A checkpoint whose tensors lie converted in `weights`. `missing` and `unlike` are keys of the
    encoder that the file lacks or has in another shape; `unused` is what nothing here needs."""

    source: Path
    weights: Path
    recognized: Recognized
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unlike: tuple[str, ...]
    unused: tuple[str, ...]
    plain: dict[str, Any]

    def report(self) -> dict[str, Any]:
        """What to show before it is imported, as plain values."""
        about = dataclasses.asdict(self.recognized)
        about = {k: v for k, v in about.items() if k not in ("keys", "folds")}
        parts = {k: list(getattr(self, k)) for k in ("missing", "unlike", "unused")}
        return {"file": printable(self.source.name), **about, "matched": len(self.matched), **parts}


@contextmanager
def open_checkpoint(path: str | Path, encoder: str | None = None) -> Iterator[OpenedCheckpoint]:
    """A checkpoint, opened in a child process, while inside.

    Raises: CannotImport, NotRecognized, FileNotFoundError.
    """
    source = Path(path).absolute()
    try:
        with open_regular(source) as file:
            size = os.fstat(file.fileno()).st_size
    except (NotRegular, IsADirectoryError) as error:
        raise CannotImport(str(error)) from None
    name = printable(source.name)
    if size > LIMIT:
        raise CannotImport(f"{name} has {size:,} bytes; at most {LIMIT:,} are read")
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.safetensors"
        try:
            plain = call_limited(convert, source, weights, limits=LIMITS)
            shapes = _shapes(weights)
            recognized = recognize(shapes, plain.get("top", ()), encoder)
        except NotRecognized as error:
            raise NotRecognized(f"{name}: {error}") from None
        except Refused as error:
            raise CannotImport(f"{name} cannot be opened: {_plainer(str(error))}") from None
        yield _matched(source, weights, recognized, shapes, plain)


def create_run(
    it: OpenedCheckpoint, dataset: str = "shapes", name: str | None = None, root: str | None = None
) -> Run:
    """Make a run of an opened checkpoint, to be judged on `dataset`.

    Raises: CannotImport when tensors are missing, or the images have other channels.
    """
    import torch
    from safetensors.torch import load_file

    from contrastive_core import runs
    from contrastive_core.data import datasets
    from contrastive_core.runs import checkpoints
    from contrastive_core.training.config import TrainConfig
    from contrastive_core.training.defaults import resolve
    from contrastive_core.training.setup import create_method

    _refuse(it)
    images = datasets.load(dataset, "train", root)
    if images.images.shape[1] != it.recognized.channels:
        raise CannotImport(
            f"{it.source.name} takes images of {it.recognized.channels} channels and {dataset} has "
            f"{images.images.shape[1]}; choose another data set with --dataset"
        )
    config = TrainConfig(
        method=it.recognized.method,
        dataset=dataset,
        root=root,
        epochs=1,
        encoder=it.recognized.encoder,
        encoder_knobs=it.recognized.encoder_knobs,
        method_knobs=it.recognized.head,
    )
    config, _ = resolve(config, images, torch.device("cpu"))
    state = create_method(config, images).state_dict()
    tensors = fold(load_file(it.weights), it.recognized.folds)
    for key in it.matched:
        state[key] = tensors[it.recognized.keys[key]].to(state[key].dtype)
    run = runs.create(
        name or _name(it.source),
        config.to_dict(),
        images.fingerprint,
        imported=it.report(),
        classes=list(images.classes),
        n_train=len(images),
    )
    checkpoints.save_weights(
        run, {k: v for k, v in state.items() if k.startswith(("encoder.", "head."))}
    )
    run.set_status("done", f"imported from {it.source.name} ({it.recognized.kind})", pid=0)
    return run


# --- parts -------------------------------------------------------------------------------------


def _plainer(why: str) -> str:
    """torch's long advice is to open the file without care; ours is not."""
    if "Unsupported global" in why or "WeightsUnpickler" in why or "weights_only" in why:
        words = why.split("GLOBAL ")[1].split(" ")[0] if "GLOBAL " in why else ""
        what = f"it holds an object of {words}" if words else "it holds more than tensors"
        return (
            f"{what}, which could run code when opened. Save its state dict alone, with "
            'torch.save(checkpoint["state_dict"], …), where you trust it'
        )
    return why[:300]


def _shapes(weights: Path) -> dict[str, tuple[int, ...]]:
    from safetensors import safe_open

    with safe_open(weights, "numpy") as file:
        return {k: tuple(file.get_slice(k).get_shape()) for k in file.keys()}  # noqa: SIM118


def _matched(
    source: Path, weights: Path, recognized: Recognized, shapes: dict[str, tuple[int, ...]],
    plain: dict[str, Any],
) -> OpenedCheckpoint:  # fmt: skip
    """Hold the file's tensors to those that our encoder and head have."""
    ours, keys = _our_shapes(recognized), recognized.keys
    theirs = dict(shapes)
    for part in recognized.folds:  # gives a bias where there is none
        theirs[f"{part.linear}bias"] = theirs[f"{part.linear}weight"][:1]
    common = {k: keys[k] for k in ours if keys.get(k) in theirs}
    matched = tuple(k for k, name in common.items() if theirs[name] == ours[k])
    unlike = tuple(f"{k} {theirs[common[k]]}, not {ours[k]}" for k in common if k not in matched)
    missing = tuple(k for k in ours if k not in common and not k.endswith(OPTIONAL))
    norms = tuple(part.norm for part in recognized.folds if part.norm)
    used = set(common.values())
    unused = tuple(k for k in shapes if k not in used and not (norms and k.startswith(norms)))
    return OpenedCheckpoint(source, weights, recognized, matched, missing, unlike, unused, plain)


def _our_shapes(recognized: Recognized) -> dict[str, tuple[int, ...]]:
    """Keys of our encoder and head with their shapes, without making their numbers."""
    import torch

    from contrastive_core.models.encoders import ProjectionHead, create_encoder

    head = recognized.head
    knobs = {"out_dim": head.get("dim", 64), "hidden": head.get("hidden", 256)}
    name = recognized.encoder
    try:
        with torch.device("meta"):
            encoder = create_encoder(name, recognized.channels, 32, **recognized.encoder_knobs)
            projection = ProjectionHead(head["head"], int(encoder.out_dim), **knobs)  # type: ignore[arg-type]
    except ValueError as error:
        raise CannotImport(str(error)) from None
    except Exception as error:  # of a library that was given a damaged file's sizes
        why = printable(f"{type(error).__name__}: {error}")
        raise CannotImport(f"{name} with the file's sizes cannot be made: {why}") from None
    parts = (("encoder", encoder), ("head", projection))
    return {f"{p}.{k}": tuple(v.shape) for p, m in parts for k, v in m.state_dict().items()}


def _refuse(it: OpenedCheckpoint) -> None:
    bad = [*it.missing, *it.unlike]
    if bad:
        raise CannotImport(
            f"{printable(it.source.name)} looks like {it.recognized.kind} with "
            f"{it.recognized.encoder}, but {len(bad)} of its tensors are missing or of another "
            f"shape, such as {bad[0]}"
        )


def _name(source: Path) -> str:
    """A free run name made from the file's."""
    import re

    from contrastive_core import runs

    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", source.name.split(".")[0]).strip("-._")[:50] or "import"
    used_names = {run.name for run in runs.list_runs()}
    return next(
        n for n in (stem, *(f"{stem}-{i}" for i in range(2, 10_000))) if n not in used_names
    )
