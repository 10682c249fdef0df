"""Schemas of types say what a file may hold, and name what does not fit."""

from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from cases import cases

from contrastive_core.base.json_files import one_of, problem, schema_of, whole


class Job(TypedDict, total=False):
    state: Annotated[str, one_of("waiting", "done")]
    epochs: Annotated[int | None, whole(1)]
    tags: list[str]
    figures: dict[str, float | None]
    free: dict[str, Any]


@dataclass
class Row:
    name: str
    job: Job
    share: float = 0.0
    is_last: bool = False
    more: dict[str, int] = field(default_factory=dict)


GOOD = {"name": "a", "job": {"state": "done", "epochs": 3, "figures": {"x": None, "y": 1}, "free": {"k": [None]}}}


@cases(
    ("change", "why"),
    [
        ({}, ""),
        ({"other": {"deep": [1]}}, ""),
        ({"name": None}, "name is null, not text"),
        ({"share": "half"}, "share is text, not a number"),
        ({"is_last": 1}, "is_last is a whole number, not true or false"),
        ({"more": {"k": -1}}, "more.k is too large, too small or not a number"),
        ({"job": {"state": "lost"}}, "job.state must be one of waiting, done"),
        ({"job": {"epochs": 0}}, "job.epochs is too large, too small or not a number"),
        ({"job": {"tags": ("a", 3)}}, "job.tags[1] is a whole number, not text"),
        ({"job": {"figures": {"x": [1]}}}, "job.figures.x is a list, not a number"),
    ],
)
def test_a_type_says_what_a_file_may_hold(change: dict[str, Any], why: str) -> None:
    assert problem({**GOOD, **change}, schema_of(Row)) == why


def test_a_member_without_a_default_is_required() -> None:
    assert problem({"name": "a"}, schema_of(Row)) == "it has no 'job'"
    assert problem({}, schema_of(Job)) == ""
