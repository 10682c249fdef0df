"""Make a run of an opened checkpoint."""

from __future__ import annotations

import shutil
from dataclasses import replace

import torch
from safetensors.torch import load_file

from contrastive_core.data import datasets
from contrastive_core.data.datasets import Dataset
from contrastive_core.errors import CannotImport
from contrastive_core.importers.checkpoint import OpenedCheckpoint
from contrastive_core.importers.heads import fold
from contrastive_core.messages import N_, message
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.records.runs import default_run_name, free_name
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.runs import checkpoints
from contrastive_core.storage.regular_files import printable
from contrastive_core.training.defaults import resolve
from contrastive_core.training.image_size import with_image_size
from contrastive_core.training.setup import create_method


def create_run(
    checkpoint: OpenedCheckpoint,
    dataset: str = "shapes",
    name: str | None = None,
    root: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Run:
    """Make a run of an opened checkpoint, to be evaluated on `dataset`.

    The images are decoded first (`on_progress`), since the run stores their fingerprint. An
    interruption leaves no run; images that were decoded by then are not decoded again.

    Raises: CannotImport when tensors are missing, or the images have other channels; as
    `datasets.load`.
    """
    _check_tensors(checkpoint)
    on_progress(N_("looking at the images"), None)
    it = checkpoint.recognized
    config = TrainConfig(method=it.method, dataset=dataset, root=root, epochs=1, encoder=it.encoder)
    config = with_image_size(replace(config, encoder_knobs=it.encoder_knobs, method_knobs=it.head))
    images = datasets.of_config(config.to_dict(), on_progress=on_progress)
    _check_channels(checkpoint, images)
    on_progress(N_("making the run"), None)
    config, _ = resolve(config, images, torch.device("cpu"))
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


def _check_tensors(checkpoint: OpenedCheckpoint) -> None:
    if bad := [*checkpoint.missing, *checkpoint.unlike]:
        it, name = checkpoint.recognized, printable(checkpoint.source.name)
        values = {"name": name, "kind": it.kind, "encoder": it.encoder, "bad": len(bad), "first": bad[0]}
        raise CannotImport(
            "{name} looks like {kind} with {encoder}, but {bad} of its tensors are missing or of "
            "another shape, such as {first}",
            **values,
        )


def _check_channels(checkpoint: OpenedCheckpoint, images: Dataset) -> None:
    channels, it = images.images.shape[1], checkpoint.recognized
    takes_gray = channels == 1 and it.encoder_knobs.get("gray_as_color")
    if channels != it.channels and not takes_gray:
        values = {"name": checkpoint.source.name, "takes": it.channels, "images": images.name, "channels": channels}
        raise CannotImport(
            "{name} takes images of {takes} channels and {images} has {channels}; choose another data set with "
            "--dataset",
            **values,
        )
