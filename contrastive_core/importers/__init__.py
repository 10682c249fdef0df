"""Checkpoints from elsewhere: looked at, matched, turned into a run. Nothing in them is trusted.

A child process opens the file (`_child.py`), so that what goes wrong there ends there; names and
shapes tell what it is (`_names.py`); the weights become the run's safetensors.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.errors import CannotImport, NotRecognized
from contrastive_core.importers.sandbox import LIMIT, SECONDS
from contrastive_core.importers.state_dict_names import Found, recognize
from contrastive_core.paths import ROOT
from contrastive_core.runs import Run

__all__ = ["Found", "NotRecognized", "Opened", "adopt", "opened", "recognize"]

MADE_UP = ("num_batches_tracked",)  # missing in old files, and used by nothing


@dataclass(frozen=True)
class Opened:
    """A checkpoint whose tensors lie converted in `weights`. `missing` and `unlike` are keys of the
    encoder that the file lacks or has in another shape; `unused` is what nothing here needs."""

    source: Path
    weights: Path
    found: Found
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unlike: tuple[str, ...]
    unused: tuple[str, ...]
    plain: dict[str, Any]

    def report(self) -> dict[str, Any]:
        """What to show before it is imported, as plain values."""
        about = {k: v for k, v in dataclasses.asdict(self.found).items() if k != "keys"}
        parts = {k: list(getattr(self, k)) for k in ("missing", "unlike", "unused")}
        return {"file": self.source.name, **about, "matched": len(self.matched), **parts}


@contextmanager
def opened(path: str | Path, encoder: str | None = None) -> Iterator[Opened]:
    """A checkpoint, opened in a child process, while inside.

    Raises: CannotImport, NotRecognized, FileNotFoundError.
    """
    source = Path(path)
    size = source.stat().st_size
    if not source.is_file():
        raise CannotImport(f"{source} is not a file")
    if size > LIMIT:
        raise CannotImport(f"{source.name} has {size:,} bytes; at most {LIMIT:,} are read")
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.safetensors"
        plain = _open(source, weights)
        shapes = _shapes(weights)
        try:
            found = recognize(shapes, plain.get("top", ()), encoder)
        except NotRecognized as error:
            raise NotRecognized(f"{source.name}: {error}") from None
        yield _matched(source, weights, found, shapes, plain)


def adopt(
    it: Opened, dataset: str = "shapes", name: str | None = None, root: str | None = None
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
    if images.images.shape[1] != it.found.channels:
        raise CannotImport(
            f"{it.source.name} takes images of {it.found.channels} channels and {dataset} has "
            f"{images.images.shape[1]}; choose another data set with --dataset"
        )
    config = TrainConfig(
        method=it.found.method,
        dataset=dataset,
        root=root,
        epochs=1,
        encoder=it.found.encoder,
        encoder_knobs=it.found.encoder_knobs,
        method_knobs=it.found.head,
    )
    config, _ = resolve(config, images, torch.device("cpu"))
    state = create_method(config, images).state_dict()
    file = load_file(it.weights)
    for own in it.matched:
        state[own] = file[it.found.keys[own]].to(state[own].dtype)
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
    run.set_status("done", f"imported from {it.source.name} ({it.found.kind})", pid=0)
    return run


# --- parts -------------------------------------------------------------------------------------


def _open(source: Path, weights: Path) -> dict[str, Any]:
    """Let the child convert the file. Raises CannotImport with what it said."""
    command = [sys.executable, "-m", "contrastive_core.importers.sandbox"]
    try:
        done = subprocess.run(
            [*command, str(source.resolve()), str(weights)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise CannotImport(f"{source.name}: opening it took over {SECONDS} s") from None
    if done.returncode:
        said = [x for x in done.stderr.splitlines() if x.startswith("refused: ")]
        why = said[-1].removeprefix("refused: ") if said else "the process that opened it died"
        raise CannotImport(f"{source.name} cannot be opened: {_plainer(why)}")
    return dict(json.loads(done.stdout))


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
    source: Path, weights: Path, found: Found, shapes: dict[str, tuple[int, ...]], plain: Any
) -> Opened:
    """Hold the file's tensors to those that our encoder and head have."""
    own = _own_shapes(found)
    have = {k: found.keys[k] for k in own if k in found.keys}
    matched = tuple(k for k, theirs in have.items() if shapes[theirs] == own[k])
    unlike = tuple(f"{k} {shapes[have[k]]}, not {own[k]}" for k in have if k not in matched)
    missing = tuple(k for k in own if k not in have and not k.endswith(MADE_UP))
    used = {found.keys[k] for k in have}
    unused = tuple(k for k in shapes if k not in used)
    return Opened(source, weights, found, matched, missing, unlike, unused, plain)


def _own_shapes(found: Found) -> dict[str, tuple[int, ...]]:
    """Keys of our encoder and head with their shapes, without making their numbers."""
    import torch

    from contrastive_core.models.encoders import ProjectionHead, create_encoder

    knobs = {"out_dim": found.head.get("dim", 64), "hidden": found.head.get("hidden", 256)}
    try:
        with torch.device("meta"):
            encoder = create_encoder(found.encoder, found.channels, 32, **found.encoder_knobs)
            head = ProjectionHead(found.head["head"], int(encoder.out_dim), **knobs)  # type: ignore[arg-type]
    except ValueError as error:
        raise CannotImport(str(error)) from None
    parts = (("encoder", encoder), ("head", head))
    return {f"{p}.{k}": tuple(v.shape) for p, m in parts for k, v in m.state_dict().items()}


def _refuse(it: Opened) -> None:
    bad = [*it.missing, *it.unlike]
    if bad:
        raise CannotImport(
            f"{it.source.name} looks like {it.found.kind} with {it.found.encoder}, but "
            f"{len(bad)} of its tensors are missing or of another shape, such as {bad[0]}"
        )


def _name(source: Path) -> str:
    """A free run name made from the file's."""
    import re

    from contrastive_core import runs

    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", source.name.split(".")[0]).strip("-._")[:50] or "import"
    known = {run.name for run in runs.list_runs()}
    return next(n for n in (stem, *(f"{stem}-{i}" for i in range(2, 10_000))) if n not in known)
