"""Checks before a training: errors that name the remedy, and warnings."""

import copy
import json

import numpy as np
import torch

from contrastive_core import losses, methods
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.data.dataset import DatasetInfo
from contrastive_core.losses import Loss
from contrastive_core.methods import Method
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import EPOCHS, TrainConfig, usual_epochs


def refusal(config: TrainConfig, facts: DatasetInfo, processes: int = 1) -> str:
    """Return the reason why a config cannot be trained on such a data set by so many processes; "" if it can."""
    size, n, cls = config.batch_size or 0, facts.n_train, methods.get(config.method)
    names = {"method": config.method, "name": config.dataset, "size": size, "n": n}
    together = 4 if config.method_knobs.get("batches") == "lifted" else 2  # images that stay whole
    least = together * processes if processes > 1 else 2
    if n < 2:
        return message(
            "{name} has only {n} training image; add more, because contrastive training needs at least two", **names
        )
    if not least <= size <= n:
        text = N_(
            "batch_size must lie between {least} and the {n} training images of {name}, with {processes} processes; "
            "got {size}"
        )
        if processes == 1:
            text = N_("batch_size must lie between {least} and the {n} training images of {name}; got {size}")
        return message(text, least=least, processes=processes, **names)
    if (cls.card.needs_labels or cls.card.batch != "shuffled") and facts.classes < 2:
        text = N_(
            "{method} needs at least two classes, but {name} has {classes}; add images of another class, or "
            "choose a method without labels, such as simclr"
        )
        return message(text, classes=facts.classes, **names)
    why = nothing_to_learn(losses.create(config.loss or "", **config.loss_knobs))
    return why or cls.incompatibility(facts, size, config.method_knobs) or ""


def nothing_to_learn(loss: Loss) -> str:
    """Return the reason why a loss whose terms all have the weight 0 cannot be trained; "" for other losses."""
    terms = {term.knob: getattr(loss, term.knob) == term.absent_at for term in loss.card.terms}
    text = N_("{knobs} are all 0, so there is nothing to learn: set one above 0")
    return message(text, knobs=", ".join(sorted(terms))) if len(terms) > 1 and all(terms.values()) else ""


def notes(config: TrainConfig, facts: DatasetInfo) -> tuple[str, ...]:
    """Return notes for the user about a resolved config."""
    epochs = usual_epochs(config.method, config.dataset, config.encoder, bool(config.start))
    is_short = config.epochs < epochs != EPOCHS  # of a method that is known to need more than the usual
    found = [why_epochs(config.method, config.dataset, epochs)] if is_short else []
    loss = losses.create(config.loss or "", **config.loss_knobs)
    for term in loss.card.terms:
        if getattr(loss, term.knob) == term.absent_at:
            values = {"knob": term.knob, "value": f"{term.absent_at:g}", "missing": term.missing}
            found.append(message("loss.{knob} is {value}: {missing}.", **values))
    usual_dim = methods.knobs(config.method)["dim"].default
    usual_batch = methods.get(config.method).defaults(facts)["batch_size"][0]
    dim, batch = int(config.method_knobs.get("dim", usual_dim)), config.batch_size or 0
    is_matrix = loss.card.matrix in ("correlation", "covariance")
    if is_matrix and dim >= batch > 0 and (dim, batch) != (usual_dim, usual_batch):
        text = N_(
            "z has {d} dimensions and a batch {n} images: the correlation matrix has rank {rank} at most, so the terms "
            "off its diagonal cannot reach 0."
        )
        if loss.card.matrix == "covariance":
            text = N_(
                "z has {d} dimensions and a batch {n} images: the covariance matrix has rank {rank} at most, so some "
                "dimensions vary together."
            )
        found.append(message(text, d=dim, n=batch, rank=batch - 1))
    return tuple(found)


def why_epochs(method: str, dataset: str, epochs: int) -> str:
    """Return the reason for a default number of epochs above the usual."""
    return message(
        "On {dataset}, {method} starts slowly: after 20 epochs, the small encoder's kNN accuracy was "
        "below that of an untrained encoder in at least two of three seeds; after {epochs}, it was above "
        "in all three.",
        dataset=dataset,
        method=method,
        epochs=epochs,
    )


def misfit(run: Run, channels: int | None, knobs: Knobs) -> str:
    """Describe how images with `channels` (None: unknown) and these encoder settings differ from those that the encoder
    of `run` was trained on; "" if they do not."""

    def entering(channels: int | None, knobs: Knobs) -> int | None:
        return 3 if channels == 1 and knobs.get("gray_as_color") else channels

    trained = run.config.get("encoder_knobs") or {}
    shape = run.manifest.get("image_shape")
    own, these = entering(shape[0] if shape else None, trained), entering(channels, knobs)
    if own and these and own != these:
        text = N_(
            "{name} was trained on images with {own} channels, but these have {these}: choose other images, "
            "or a new encoder."
        )
        if (own, these) == (3, 1):
            text = N_(
                "{name} was trained on color images, but these are gray: set encoder.gray_as_color=on, or choose "
                "other images."
            )
        return message(text, name=run.name, own=own, these=these)
    before, now = (k.get("colors") or "plain" for k in (trained, knobs))
    if before != now:
        text = before if isinstance(before, str) else json.dumps(before, separators=(",", ":"))
        return message(
            "{name} was trained on images normalized differently: set encoder.colors={text}, not {now}.",
            name=run.name,
            text=text,
            now=now,
        )
    return ""


def unsplit(method: Method) -> str | None:
    """Return the reason why a method cannot train in micro-batches, with the remedy; None if it can."""
    if method.batch_kind == "lifted":
        return N_(
            "lifted batches choose negatives from the whole batch before encoding; leave micro_batch out, or use "
            "--set method.batches=class_balanced"
        )
    if getattr(method.settings, "bn_splits", 1) > 1:
        return N_("micro_batch already splits the batch norm; use it with --set method.bn_splits=1")
    return None


def check_loss_fits(config: TrainConfig, method: Method, loader: BatchLoader) -> None:
    """Check the loss on the pairs of a few images before training. Raises BadSetting."""
    if config.micro_batch and (reason := unsplit(method)):
        raise BadSetting(reason)
    few = np.arange(min(4 * loader.world.size, len(loader.dataset)))
    probe = copy.deepcopy(method).eval()
    pairs = probe.pairs(loader.batch(few), torch.Generator())
    if method.loss is None:
        return
    values = {"loss": config.loss, "method": config.method}
    if reason := method.loss.check(pairs):
        raise BadSetting("{loss} cannot use the pairs of {method}: {reason}", **values, reason=reason)
    if not method.loss(pairs).value.requires_grad:
        raise BadSetting(
            "no gradient reaches the encoder: {loss} stops it at the candidates, and {method} has none at its anchors; "
            "use --set loss.detach=off or another loss",
            **values,
        )
