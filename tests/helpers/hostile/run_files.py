"""Every JSON file of a run, by every other shape that JSON can have, and a result that was kept of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import runs
from contrastive_core.base.errors import Damaged
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import cost_of
from contrastive_core.runs.train_config import TrainConfig, settings_of
from contrastive_core.spaces import results
from contrastive_core.spaces.results import Result
from hostile.attack import Target

CONFIG = {"method": "simclr", "dataset": "digits", "seed": 0, "encoder": "small"}
EVERY = TrainConfig("simclr", "digits", recipe={"crop": 1.0}, loss_knobs={"temperature": 0.5}).to_dict()
MORE = {"classes": ["a", "b"], "n_train": 3, "image_shape": [1, 8, 8], "processes": 1, "imported": {"kind": "x"}}
FILES = ("run.json", "status.json", "meta.json", "metrics.jsonl")
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**400,
    "",
    "x" * 5000,
    [],
    {},
    [None],
    [[]],
    {"": None},
    "<script>",
    "![](http://evil.example/x.png)",
    "\x1b[31m",
)


def broken_run(name: str, config: dict[str, Any] = CONFIG, **more: Any) -> Run:
    """A run whose files are whole, for the tests to break."""
    run = runs.create(name, config, **more)
    run.set_status("done", epoch=3)
    run.set_meta(title="t", tags=["a"], note="n")
    run.append_metrics([{"step": i, "epoch": 0, "loss": 0.5 + i, "lr": 0.001} for i in range(9)])
    run.weights.write_bytes(b"weights")
    return run


def structures(whole: bytes) -> Iterator[bytes]:
    """The file as another kind of value, and with each of its values and settings as another."""
    for value in VALUES:
        yield json.dumps(value).encode()
    yield from (b"", b"{", b"NaN", b"[" * 100_000, b"\xff\xfe", b'{"a":' * 50_000)
    first = whole.splitlines()[0] if whole[:2] != b"{\n" else whole
    value = json.loads(first)
    for key in value:
        for other in VALUES:
            yield json.dumps({**value, key: other}).encode() + b"\n"
        yield json.dumps({k: v for k, v in value.items() if k != key}).encode() + b"\n"
    for key in value.get("config", {}):
        for other in VALUES:
            yield json.dumps({**value, "config": {**value["config"], key: other}}).encode()


def targets(folder: Path) -> Iterator[Target]:
    run = broken_run("attacked", EVERY, **MORE)
    runs.create("healthy", CONFIG)

    def read() -> None:
        listed = {r.name: r for r in runs.list_runs() if not r.shipped}
        assert "healthy" in listed
        if run.name not in listed:
            raise Damaged(runs.damaged()[run.name])
        for other in listed.values():
            assert other.status()["status"] in ("queued", "running", "done", "stopped", "failed")
            other.meta(), other.metrics(), cost_of(other), settings_of(other.config)

    for name in FILES:
        path = run.path / name
        yield Target(path, read, (Damaged,) if name == "run.json" else (), tuple(structures(path.read_bytes())))
    values = {"of": "attacked"}
    results.write("look", values, Result({"scores": {"h": {"knn": 0.5}}}, {"correct": np.arange(9.0)}))
    yield Target(results.path("look", values), lambda: results.read("look", values), (), ())
