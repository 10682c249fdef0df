"""What the app shows of every method, loss, metric and augmentation, without importing torch.

The metadata live in the registered classes themselves. A process of its own reads them once, as an
analysis of which the hash of the source files is the value: a new or edited file makes a new
catalog by itself.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import json
from functools import lru_cache
from typing import Any

from contrastive_core.jobs import results
from contrastive_core.jobs.task import run_json
from contrastive_core.paths import ROOT
from contrastive_core.registry import Knob

__all__ = ["KIND", "describe", "is_ready", "knobs", "read", "title", "values"]

KIND = "catalog"
PACKAGE = ROOT / "contrastive_core"
SOURCES = (
    "methods/*.py",
    "losses/*.py",
    "metrics/*.py",
    "data/recipe.py",
    "models/encoders.py",
    "catalog.py",
)
SETS: dict[str, tuple[tuple[int, int, int], int, int]] = {  # facts of the sets that a card shows
    "shapes": ((3, 32, 32), 5000, 8),
    "digits": ((1, 8, 8), 1437, 10),
    "cifar10": ((3, 32, 32), 50_000, 10),
}
METHOD = (
    "title year paper idea compared flow updates measured_by_paper differences paper_recipe "
    "default_loss loss_knobs needs_labels batch least_batch"
).split()
LOSS = "title year paper formula summary family score needs_negative".split()


def read() -> dict[str, Any]:
    """Everything that `describe` gives, read from disk; made first if it is not there (seconds).

    Raises: RuntimeError with what the process said when a file cannot be read as a method or loss.
    """
    asked = values()
    result = results.read(KIND, asked)
    if result is None:
        try:
            run_json("analyze", KIND, json.dumps(asked))
        except ValueError as error:
            raise RuntimeError(f"the catalog cannot be made: {error}") from None
        result = results.read(KIND, asked)
    if result is None:
        raise RuntimeError("the catalog has been made and cannot be read")
    return result.meta


def is_ready() -> bool:
    """Whether the catalog of the present files is on disk."""
    return results.path(KIND, values()).exists()


@lru_cache(maxsize=256)
def title(kind: str, name: str) -> str:
    """The title of one of `methods` or `losses`, read off its source, before there is a catalog; of
    a name that is none, the name."""
    if not name.isidentifier():
        return name
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        for node in ast.walk(ast.parse((PACKAGE / kind / f"{name}.py").read_text("utf-8"))):
            if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "title":
                return str(ast.literal_eval(node.value or ast.Constant(name)))
    return name


def knobs(described: dict[str, Any]) -> dict[str, Knob]:
    """Knobs again from their description, to draw sliders from and to check values with."""
    return {k: Knob(**{**v, "choices": tuple(v["choices"])}) for k, v in described.items()}


def describe() -> dict[str, Any]:
    """`methods` and `losses` in the order of their years, `metrics`, `recipe`, `encoders`, as plain
    values. Imports torch."""
    from contrastive_core import losses, methods, metrics
    from contrastive_core.data.recipe import Recipe
    from contrastive_core.models import encoders
    from contrastive_core.registry import knobs_of

    return {
        "methods": _by_year({name: _method(methods, name) for name in methods.names()}),
        "losses": _by_year({name: _loss(losses, name) for name in losses.names()}),
        "metrics": {name: _metric(metrics, name) for name in metrics.names()},
        "recipe": _plain(knobs_of(Recipe)),
        "encoders": encoders.encoder_names(),
    }


# --- parts -------------------------------------------------------------------------------------


def _method(methods: Any, name: str) -> dict[str, Any]:
    cls = methods.get(name)
    card = {key: getattr(cls, key) for key in METHOD}
    card["knobs"] = methods.knobs(name)
    sets = {dataset: methods.DatasetInfo(*facts) for dataset, facts in SETS.items()}
    card["defaults"] = {
        dataset: {
            key: {"value": value, "why": why} for key, (value, why) in cls.defaults(facts).items()
        }
        for dataset, facts in sets.items()
    }
    card["problems"] = {
        dataset: cls.incompatibility(facts, card["defaults"][dataset]["batch_size"]["value"])
        for dataset, facts in sets.items()
    }
    return _plain(card)  # type: ignore[no-any-return]


def _loss(losses: Any, name: str) -> dict[str, Any]:
    loss = losses.create(name)
    card = {key: getattr(loss, key) for key in LOSS}
    card |= {"knobs": losses.knobs(name), "kernel": loss.kernel()}
    return _plain(card)  # type: ignore[no-any-return]


def _metric(metrics: Any, name: str) -> dict[str, Any]:
    cls = metrics.get(name)
    keys = ("title", "reading", "needs_labels", "needs_train", "higher_is_better")
    card = {key: getattr(cls, key) for key in keys if hasattr(cls, key)}
    return _plain({**card, "knobs": metrics.knobs(name)})  # type: ignore[no-any-return]


def _by_year(cards: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return dict(sorted(cards.items(), key=lambda item: (item[1]["year"], item[0])))


def _plain(value: Any) -> Any:
    """Values that JSON can hold."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def values() -> dict[str, Any]:
    """The values of the analysis: what the source files say."""
    digest = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return {"sources": digest.hexdigest()}
