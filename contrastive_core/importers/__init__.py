"""Checkpoints from elsewhere: looked at, matched, turned into a run. Nothing in them is trusted.

A child process with limited memory converts the file (checkpoint.py, conversion.py), so that what
goes wrong there ends there; names and shapes tell what it is (state_dict_names.py, heads.py), or a
library that has the model does (pretrained.py); the weights become the run's safetensors.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from typing import Any

from contrastive_core.errors import CannotImport, NotRecognized
from contrastive_core.importers.checkpoint import OpenedCheckpoint, open_checkpoint
from contrastive_core.importers.heads import fold
from contrastive_core.importers.state_dict_names import Recognized, recognize
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.runs import Run
from contrastive_core.storage.regular import printable

__all__ = ["NotRecognized", "OpenedCheckpoint", "Recognized", "create_run", "open_checkpoint",
           "recognize", "stem_of"]  # fmt: skip


def create_run(
    it: OpenedCheckpoint,
    dataset: str = "shapes",
    name: str | None = None,
    root: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Run:
    """Make a run of an opened checkpoint, to be judged on `dataset`, whose images are decoded first
    (`on_progress`): the run names them by their fingerprint. Stopped in between, it leaves no run,
    and what was decoded need not be decoded again.

    Raises: CannotImport when tensors are missing, or the images have other channels; as
    `datasets.load`.
    """
    import torch
    from safetensors.torch import load_file

    from contrastive_core import runs
    from contrastive_core.data import datasets
    from contrastive_core.runs import checkpoints
    from contrastive_core.training.config import TrainConfig
    from contrastive_core.training.defaults import resolve
    from contrastive_core.training.image_size import with_image_size
    from contrastive_core.training.setup import create_method

    _refuse(it)
    config = TrainConfig(
        method=it.recognized.method,
        dataset=dataset,
        root=root,
        epochs=1,
        encoder=it.recognized.encoder,
        encoder_knobs=it.recognized.encoder_knobs,
        method_knobs=it.recognized.head,
    )
    on_progress("looking at the images", None)
    config = with_image_size(config)
    images = datasets.of_config(config.to_dict(), on_progress=on_progress)
    gray_too = images.images.shape[1] == 1 and it.recognized.encoder_knobs.get("gray_as_color")
    if images.images.shape[1] != it.recognized.channels and not gray_too:
        raise CannotImport(
            f"{it.source.name} takes images of {it.recognized.channels} channels and {dataset} has "
            f"{images.images.shape[1]}; choose another data set with --dataset"
        )
    on_progress("making the run", None)
    config, _ = resolve(config, images, torch.device("cpu"))
    state = create_method(config, images).state_dict()
    tensors = fold(load_file(it.weights), it.recognized.folds)
    for key in it.matched:
        state[key] = tensors[it.recognized.keys[key]].to(state[key].dtype)
    run = runs.create(
        name or _free_name(stem_of(it.report())),
        config.to_dict(),
        images.fingerprint,
        imported=it.report(),
        classes=list(images.classes),
        n_train=len(images),
    )
    try:
        checkpoints.save_weights(
            run, {k: v for k, v in state.items() if k.startswith(("encoder.", "head."))}
        )
        run.set_status("done", f"imported from {it.source.name} ({it.recognized.kind})", pid=0)
    except BaseException:  # it was stopped, or the disk is full
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    return run


def stem_of(report: Mapping[str, Any]) -> str:
    """A run's name made from the file's, or the model's, of what `OpenedCheckpoint.report` or
    `pretrained.about` says."""
    text = str(report.get("file")).split(".")[0]
    if report.get("of_library", True):
        text = str(report["encoder"]).partition(":")[2] + "-random" * bool(report.get("random"))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:50] or "import"


def _refuse(it: OpenedCheckpoint) -> None:
    bad = [*it.missing, *it.unlike]
    if bad:
        raise CannotImport(
            f"{printable(it.source.name)} looks like {it.recognized.kind} with "
            f"{it.recognized.encoder}, but {len(bad)} of its tensors are missing or of another "
            f"shape, such as {bad[0]}"
        )


def _free_name(stem: str) -> str:
    from contrastive_core import runs

    used_names = {run.name for run in runs.list_runs()}
    return next(
        n for n in (stem, *(f"{stem}-{i}" for i in range(2, 10_000))) if n not in used_names
    )
