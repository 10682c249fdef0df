"""The catalog: what the app shows of every method, loss, metric and augmentation.

The metadata live in the registered classes themselves. `records/cards.json` holds them with the
hash of the source files; where a file was added or edited, the worker describes them again.

    python -m contrastive_core.engine.catalog    (writes records/cards.json)
"""

import ast
import contextlib
import dataclasses
import hashlib
import json
from functools import lru_cache
from typing import Any

from contrastive_core.engine import client, results
from contrastive_core.messages import decode, encode, message
from contrastive_core.paths import ROOT
from contrastive_core.registry import Knob
from contrastive_core.storage.json_files import JsonObject

KIND = "catalog"
PACKAGE = ROOT / "contrastive_core"
CARDS = PACKAGE / "records" / "cards.json"
SOURCES = "methods/*.py losses/*.py metrics/*.py records/recipe.py records/cards.py models/encoders.py".split()
SOURCES.append("engine/catalog.py")
SETS = {  # facts of the sets that a card shows
    "shapes": ((3, 32, 32), 5000, 8, True),
    "digits": ((1, 8, 8), 1437, 10, False),
    "cifar10": ((3, 32, 32), 50_000, 10, False),
}
METHOD = (
    "title year paper idea compared flow updates uses builds_on measured_by_paper differences paper_recipe "
    "default_loss loss_knobs needs_labels needs_captions batch least_batch published"
).split()
LOSS = "title year paper formula summary family matrix per_sample terms".split()
METRIC = "title reading needs_labels needs_train higher_is_better".split()


def read() -> JsonObject:
    """Everything that `describe` gives, read from disk; made first if it is not there (seconds).
    Raises: RuntimeError with what the process said when a file cannot be read as a method or loss."""
    asked = values()
    if cards := _shipped_cards(asked["sources"]):
        return cards
    if kept := results.read(KIND, asked):
        return kept.meta
    try:
        return dict(client.call("contrastive_core.engine.answers:make", KIND, asked).meta)
    except Exception as error:
        raise RuntimeError(message("the catalog cannot be made: {error}", error=error)) from None


def is_ready() -> bool:
    """Whether the catalog of the present files is on disk."""
    asked = values()
    return _shipped_cards(asked["sources"]) is not None or results.path(KIND, asked).exists()


def write_cards() -> None:
    """Write the catalog of the present files into the package."""
    text = json.dumps({**values(), "catalog": encode(describe())}, indent=1, ensure_ascii=False)
    CARDS.write_text(f"{text}\n", "utf-8")


@lru_cache(maxsize=4)
def _shipped_cards(sources: str) -> JsonObject | None:
    """The catalog that came with the package, if it is of these source files."""
    try:
        held = json.loads(CARDS.read_text("utf-8"), object_hook=decode)
    except (OSError, ValueError):
        return None
    return dict(held["catalog"]) if held["sources"] == sources else None


@lru_cache(maxsize=256)
def title(kind: str, name: str) -> str:
    """The title of one of `methods` or `losses`, read off its source, before there is a catalog; else the name."""
    if not name.isidentifier():
        return name
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        for node in ast.walk(ast.parse((PACKAGE / kind / f"{name}.py").read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "title":  # of its card
                title = node.value.args[0] if isinstance(node.value, ast.Call) else node.value  # N_("…")
                return str(ast.literal_eval(title))
    return name


def knobs(described: JsonObject) -> dict[str, Knob]:
    """Knobs again from their description, to draw sliders from and to check values with."""
    return {k: Knob(**{**v, "choices": tuple(v["choices"])}) for k, v in described.items()}


def describe() -> JsonObject:
    """`methods` and `losses` by their years, `metrics`, `recipe`, `encoders`, as plain values. Imports torch."""
    from contrastive_core import losses, methods, metrics
    from contrastive_core.models import encoders
    from contrastive_core.records.recipe import Recipe
    from contrastive_core.registry import knobs_of

    described: JsonObject = _plain(
        {
            "methods": _by_year({name: _method(methods, name) for name in methods.names()}),
            "losses": _by_year({name: _loss(losses, name) for name in losses.names()}),
            "metrics": {name: _metric(metrics, name) for name in metrics.names()},
            "recipe": knobs_of(Recipe),
            "encoders": encoders.encoder_names(),
        }
    )
    return described


def _method(methods: Any, name: str) -> JsonObject:
    cls = methods.get(name)
    defaults, problems = {}, {}
    for dataset, facts in ((name, methods.DatasetInfo(*values)) for name, values in SETS.items()):
        usual = cls.defaults(facts)
        defaults[dataset] = {key: {"value": value, "why": why} for key, (value, why) in usual.items()}
        problems[dataset] = cls.incompatibility(facts, usual["batch_size"][0])
    card = {key: getattr(cls.card, key) for key in METHOD}
    return {**card, "knobs": methods.knobs(name), "defaults": defaults, "problems": problems}


def _loss(losses: Any, name: str) -> JsonObject:
    loss = losses.create(name)
    card = {key: getattr(loss.card, key) for key in LOSS}
    about = {"score": loss.score, "knobs": losses.knobs(name), "kernel": loss.kernel()}
    return {**card, **about, "across": loss.check(_two_towers()) is None}


@lru_cache
def _two_towers() -> Any:
    """Pairs between two towers, to ask each loss whether it runs between them."""
    import torch

    from contrastive_core import pairs

    return pairs.from_towers(torch.eye(2), torch.eye(2))


def _metric(metrics: Any, name: str) -> JsonObject:
    cls = metrics.get(name)
    return {**{key: getattr(cls, key) for key in METRIC if hasattr(cls, key)}, "knobs": metrics.knobs(name)}


def _by_year(cards: dict[str, JsonObject]) -> dict[str, JsonObject]:
    return dict(sorted(cards.items(), key=lambda item: (item[1]["year"], item[0])))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def values() -> JsonObject:
    """The values of the analysis: what the source files say."""
    digest = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return {"sources": digest.hexdigest()}


if __name__ == "__main__":
    write_cards()
