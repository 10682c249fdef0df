"""What stands in each JSON file of a run folder, and the number of that format. Torch-free.

A file that does not fit is damaged: the reader of one run says so, and no other run suffers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypedDict, cast

from contrastive_core.errors import Damaged
from contrastive_core.messages import message
from contrastive_core.records.image_form import LARGEST, RESIZES, SMALLEST
from contrastive_core.storage.json_files import JsonObject, read_object
from contrastive_core.storage.json_schema import (
    fields,
    flag,
    list_of,
    mapping_of,
    number,
    one_of,
    optional,
    plain,
    text,
    whole,
)

__all__ = ["EVALUATION", "FORMAT", "MARK", "META", "METRICS", "STATUS", "Manifest", "Meta", "Status", "read_manifest"]

FORMAT = 1  # of run folders

_WORD, _COUNT, _NUMBER = optional(text), optional(whole()), optional(number())
_KNOBS = replace(mapping_of(plain), identifiers=True)

CONFIG = fields(  # of a run.json; a test holds it to the fields of TrainConfig
    allowed={
        **dict.fromkeys(("method", "dataset", "encoder", "loss", "optimizer", "schedule"), _WORD),
        **dict.fromkeys(("root", "device", "exclude", "relabel", "start"), _WORD),
        **dict.fromkeys(("encoder_knobs", "loss_knobs", "method_knobs", "recipe"), _KNOBS),
        **dict.fromkeys(("lr", "weight_decay", "momentum", "warmup", "clip", "layer_decay"), _NUMBER),
        **dict.fromkeys(("amp", "channels_last", "compile", "freeze", "start_head"), optional(flag)),
        "image_size": optional(whole(SMALLEST, LARGEST)),
        "resize": optional(one_of(*RESIZES)),
        "epochs": optional(whole(1, 10**9)),
        "batch_size": optional(whole(1, 10**9)),
        "threads": optional(whole(1, 10**6)),
        "seed": optional(whole(0, 2**32 - 1)),
        "snapshot_every": _COUNT,
        "sample": _COUNT,
        "save_seconds": _NUMBER,
        "collapse_patience": _COUNT,
    }
)
MANIFEST = fields(
    {"config": CONFIG, "format": whole(FORMAT, FORMAT)},
    {
        **dict.fromkeys(("id", "name", "created", "method", "loss", "dataset"), _WORD),
        **dict.fromkeys(("data_fingerprint", "git_commit", "device", "command"), _WORD),
        **dict.fromkeys(("seed", "threads", "processes", "n_train"), _COUNT),
        "left_out": text,
        "versions": optional(mapping_of(_WORD)),
        "reasons": optional(mapping_of(_WORD)),
        "classes": optional(list_of(text)),
        "image_shape": optional(list_of(whole(1, 10**6))),
        "imported": optional(fields()),
        "recording": fields(  # of a run that `watch` writes
            allowed={"every": whole(1), "rows": whole(1), "positives": text, "split": text}
        ),
    },
)
STATUS = fields(
    {"status": one_of("queued", "running", "done", "stopped", "failed")},
    {
        **dict.fromkeys(("reason", "note"), text),
        **dict.fromkeys(("epoch", "epochs", "step", "pid"), _COUNT),
        **dict.fromkeys(("started", "updated"), _NUMBER),
    },
)
META = fields(allowed={"title": _WORD, "note": _WORD, "tags": list_of(text)})
MARK = fields({"id": text, "what": optional(text)}, {"label": _WORD, "group": _WORD})
METRICS = fields(allowed={"step": whole(), "epoch": whole()}, others=_NUMBER)

_INTERVAL = optional(list_of(_NUMBER, 2))
_CLASS = fields({"class": text}, {"n": whole(), "value": _NUMBER, "interval": _INTERVAL, "taken_for": list_of(whole())})
_EXTRAS = fields(
    allowed={
        "curve": mapping_of(_NUMBER),
        "log_loss": mapping_of(_NUMBER),
        "per_class": list_of(_CLASS),
        "spectrum": list_of(_NUMBER),
        **dict.fromkeys(("n", "k", "rank", "width", "folds"), _COUNT),
        **dict.fromkeys(("temperature", "c", "t"), _NUMBER),
    }
)
_FIGURE = fields(
    allowed={
        **dict.fromkeys(("title", "reading", "unit", "missing"), _WORD),
        "settings": optional(fields()),
        "higher_is_better": optional(flag),
        "value": _NUMBER,
        "interval": _INTERVAL,
        "extras": optional(_EXTRAS),
    }
)
_SCORE = replace(_FIGURE, any_of=("value", "missing"))
EVALUATION = fields(
    {"weights": text, "scores": mapping_of(mapping_of(_SCORE))},
    {"version": _COUNT, "run": text, "split": text, "made": _NUMBER, "n_train": _COUNT, "n_test": _COUNT},
)


class Manifest(TypedDict, total=False):
    """A run.json. `config` holds the fields of `TrainConfig`."""

    config: JsonObject
    format: int
    id: str | None
    name: str | None
    created: str | None
    method: str | None
    loss: str | None
    dataset: str | None
    data_fingerprint: str | None
    git_commit: str | None
    device: str | None
    command: str | None
    seed: int | None
    threads: int | None
    processes: int | None
    n_train: int | None
    left_out: str
    versions: dict[str, str | None] | None
    reasons: dict[str, str | None] | None
    classes: list[str] | None
    image_shape: list[int] | None
    imported: JsonObject | None
    recording: JsonObject


class Status(TypedDict, total=False):
    """A status.json: how a run stands, and which process wrote it."""

    status: str
    reason: str
    note: str
    epoch: int | None
    epochs: int | None
    step: int | None
    pid: int | None
    started: float | None
    updated: float | None


class Meta(TypedDict, total=False):
    """A meta.json: what a person wrote about a run."""

    title: str | None
    note: str | None
    tags: list[str]


def read_manifest(path: Path) -> Manifest:
    """Return the content of a `run.json`. Raises Damaged; OSError."""
    try:
        return cast(Manifest, read_object(path, MANIFEST))
    except Damaged:
        number = read_object(path).get("format")
        if isinstance(number, int) and number != FORMAT:
            raise Damaged(
                message(
                    "{path} has the run format {number}; this version reads {format}",
                    path=path,
                    number=number,
                    format=FORMAT,
                )
            ) from None
        raise
