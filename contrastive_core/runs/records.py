"""What the JSON files of a run hold, as types, and the schemas that check them. Torch-free."""

from dataclasses import replace
from typing import Annotated, Any, NotRequired, TypedDict, get_type_hints

from contrastive_core.base.json_files import (
    JsonObject,
    fields,
    list_of,
    number,
    one_of,
    optional,
    schema_of,
    text,
    whole,
)
from contrastive_core.data.dataset import LARGEST, RESIZES, SMALLEST
from contrastive_core.runs.train_config import FIELDS, TrainConfig

FORMAT = 1  # of run folders
CHECK_FILE = "doctor.json"  # of a recording
_LIMITS = {name: {k: v for k, v in f.metadata.items() if k in ("low", "high")} for name, f in FIELDS.items()}
CONFIG = fields(  # of a run.json; each setting may be null, and knobs are names of settings
    allowed={
        **{
            name: replace(schema_of(kind), optional=True, identifiers=True, **_LIMITS[name])
            for name, kind in get_type_hints(TrainConfig).items()
        },
        "image_size": optional(whole(SMALLEST, LARGEST)),
        "resize": optional(one_of(*RESIZES)),
    }
)


class Recording(TypedDict, total=False):
    """The part of run.json that describes a recording."""

    every: Annotated[int, whole(1)]
    rows: Annotated[int, whole(1)]
    positives: str
    split: str


class Planned(TypedDict):
    """A planned change of a setting at a step, from 1."""

    step: Annotated[int, whole(1)]
    name: str
    to: float


Change = TypedDict("Change", {"id": str, "step": int, "name": str, "from": float, "to": float, "withdrawn": bool})
Request = TypedDict(
    "Request", {"id": str, "name": str, "to": float, "step": NotRequired[int], "from": NotRequired[float]}
)
PLANNED = replace(schema_of(Planned), required=("step", "name", "to"))
REQUEST = fields({"id": text, "name": text, "to": number()})
CHANGE = replace(schema_of(Change), required=("id", "step", "name", "from", "to"))
SCHEDULE = list_of(PLANNED)


class Manifest(TypedDict, total=False):
    """A run.json. `config` holds the fields of `TrainConfig`."""

    config: Annotated[JsonObject, CONFIG]
    format: Annotated[int, whole(FORMAT, FORMAT)]
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
    captions: Annotated[int, whole()]
    left_out: str
    versions: dict[str, str | None] | None
    reasons: dict[str, str | None] | None
    classes: list[str] | None
    image_shape: list[Annotated[int, whole(1, 10**6)]] | None
    imported: JsonObject | None
    recording: Recording
    schedule: Annotated[list[Planned], SCHEDULE]
    branch: JsonObject  # the run, step and epoch that it branched off


class LoopFault(TypedDict):
    """A fault of a training loop: its sentence, the number of steps that show it, and ids of rows concerned."""

    name: str
    text: str
    steps: Annotated[int, whole(1)]
    rows: list[str]


class LoopCheck(TypedDict):
    """A recording's doctor.json: the result of the checks of its loss, and the numbers of `step`."""

    checked: Annotated[int, whole()]
    step: Annotated[int, whole()]
    problem: str
    text: str
    numbers: str
    faults: list[LoopFault]


class Status(TypedDict, total=False):
    """A status.json: the status of a run, and the process that wrote it."""

    status: Annotated[str, one_of("queued", "running", "done", "stopped", "failed")]
    reason: str
    note: str
    is_warned: bool  # the note warns, as of a collapse
    is_diverged: bool  # it failed because a loss or a gradient was not finite
    epoch: int | None
    epochs: int | None
    step: int | None
    pid: int | None
    started: Any  # as `process_start` tells it; older versions wrote seconds
    updated: float | None


class Meta(TypedDict, total=False):
    """A meta.json: the user's title, note and tags of a run."""

    title: str | None
    note: str | None
    tags: list[str]


MANIFEST = replace(schema_of(Manifest), required=("config", "format"))
STATUS = replace(schema_of(Status), required=("status",))
META = schema_of(Meta)
CHECK = replace(schema_of(LoopCheck), required=tuple(get_type_hints(LoopCheck)))
MARK = fields({"id": text, "what": optional(text)}, {"label": optional(text), "group": optional(text)})
METRICS = fields(allowed={"step": whole(), "epoch": whole()}, others=optional(number()))
