"""Every JSON file of a run, by every other shape that JSON can have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contrastive_core.records import evaluation, runs
from contrastive_core.records.run import Run
from contrastive_core.records.score import Score
from hostile.attack import Target

CONFIG = {"method": "simclr", "dataset": "digits", "seed": 0, "encoder": "small"}
FILES = ("run.json", "status.json", "meta.json", "evaluation.json", "metrics.jsonl")
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


def broken_run(name: str) -> Run:
    """A run whose files are whole, for the tests to break."""
    run = runs.create(name, CONFIG)
    run.set_status("done", epoch=3)
    run.set_meta(title="t", tags=["a"], note="n")
    run.append_metrics([{"step": i, "epoch": 0, "loss": 0.5 + i, "lr": 0.001} for i in range(9)])
    run.weights.write_bytes(b"weights")
    hashed = run.weights_hash()
    scores = {"h": {"knn": Score("kNN accuracy", value=0.5, interval=(0.4, 0.6), unit="share")}}
    evaluation.write_evaluation(run, evaluation.Evaluation(name, "test", hashed, scores, 9, 9))
    return run


def structures(whole: bytes) -> Iterator[bytes]:
    """The file as another kind of value, and with each of its values as another."""
    for value in VALUES:
        yield json.dumps(value).encode()
    yield from (b"", b"{", b"NaN", b"[" * 100_000, b"\xff\xfe", b'{"a":' * 50_000)
    first = whole.splitlines()[0] if whole[:2] != b"{\n" else whole
    value = json.loads(first)
    for key in value:
        for other in VALUES:
            yield json.dumps({**value, key: other}).encode() + b"\n"
        yield json.dumps({k: v for k, v in value.items() if k != key}).encode() + b"\n"


def targets(folder: Path) -> Iterator[Target]:
    run = broken_run("attacked")
    runs.create("healthy", CONFIG)

    def read() -> None:
        listed = runs.list_runs()
        assert "healthy" in {r.name for r in listed}
        for other in (r for r in listed if not r.shipped):
            other.status(), other.meta(), other.metrics()
            evaluation.read_evaluation(other)

    for name in FILES:
        path = run.path / name
        yield Target(path, read, (), tuple(structures(path.read_bytes())))
