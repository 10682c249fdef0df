"""What stands in each JSON file of a run folder, and the number of that format. Torch-free. A file that does not fit
is damaged: the reader of one run says so, and no other run suffers."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast, get_type_hints

from contrastive_core.base.errors import Damaged
from contrastive_core.base.json_files import MAX_RECORD, JsonObject, read_object
from contrastive_core.base.json_schema import fields, number, one_of, optional, schema_of, text, whole
from contrastive_core.data.image_form import LARGEST, RESIZES, SMALLEST
from contrastive_core.runs.train_config import FIELDS, TrainConfig

FORMAT = 1  # of run folders


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


class Status(TypedDict, total=False):
    """A status.json: how a run stands, and which process wrote it."""

    status: Annotated[str, one_of("queued", "running", "done", "stopped", "failed")]
    reason: str
    note: str
    is_warned: bool  # the note warns, as of a collapse
    epoch: int | None
    epochs: int | None
    step: int | None
    pid: int | None
    started: Any  # as `process_start` tells it; older versions wrote seconds
    updated: float | None


class Meta(TypedDict, total=False):
    """A meta.json: what a person wrote about a run."""

    title: str | None
    note: str | None
    tags: list[str]


MANIFEST = replace(schema_of(Manifest), required=("config", "format"))
STATUS = replace(schema_of(Status), required=("status",))
META = schema_of(Meta)
MARK = fields({"id": text, "what": optional(text)}, {"label": optional(text), "group": optional(text)})
METRICS = fields(allowed={"step": whole(), "epoch": whole()}, others=optional(number()))


def read_manifest(path: Path) -> Manifest:
    """Return the content of a `run.json`. Raises Damaged; OSError."""
    try:
        return cast(Manifest, read_object(path, MANIFEST, MAX_RECORD))
    except Damaged:
        number = read_object(path, limit=MAX_RECORD).get("format")
        if isinstance(number, int) and number != FORMAT:
            values = {"path": path, "number": number, "format": FORMAT}
            raise Damaged("{path} has the run format {number}; this version reads {format}", **values) from None
        raise
