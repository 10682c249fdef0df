"""The catalog: the app's texts and settings of every method, loss, metric and augmentation.

The metadata are in the registered classes and their cards. A wheel contains the catalog; in a checkout the worker
rebuilds it when the files have changed.

    python -m contrastive_core.engine.catalog    (builds it now)"""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, cast

from contrastive_core.base.cards import Catalog, KnobEntry, read_card
from contrastive_core.base.messages import decode, encode, message
from contrastive_core.base.registry import Knob, knobs_of
from contrastive_core.base.storage import ROOT, is_checkout, write_bytes
from contrastive_core.data.dataset import KNOWN
from contrastive_core.data.recipe import Recipe
from contrastive_core.engine import calls
from contrastive_core.spaces import results
from contrastive_core.spaces.results import Values

KIND = "catalog"
PACKAGE = ROOT / "contrastive_core"
CARDS = (ROOT / "build" if is_checkout() else PACKAGE / "base") / "cards.json"  # hatch_build.py puts it into a wheel
SOURCES = "methods/*.py methods/*.toml losses/*.py losses/*.toml metrics/*.py data/recipe.py base/cards.py".split()
SOURCES += ["data/dataset.py", "models/encoders.py", "engine/catalog.py"]
SETS = ("shapes", "digits", "cifar10")  # whose facts a card shows
METHOD = (
    "title year paper idea compared flow updates uses builds_on measured_by_paper differences paper_recipe "
    "default_loss loss_knobs needs_labels needs_captions batch least_batch published"
).split()
LOSS = "title year paper formula summary family matrix per_sample terms".split()
METRIC = "title reading needs_labels needs_train higher_is_better".split()


def read() -> Catalog:
    """Read the catalog from disk; build it first if it is missing (takes seconds).
    Raises: RuntimeError with the worker's message if a file is not a valid method or loss."""
    asked = values()
    if cards := _built(asked["sources"]):
        return cards
    if kept := results.read(KIND, asked):
        return cast(Catalog, kept.meta)
    try:
        return cast(Catalog, calls.make_result(KIND, asked).meta)
    except Exception as error:
        raise RuntimeError(message("the catalog cannot be created: {error}", error=error)) from None


def is_ready() -> bool:
    """Return whether the catalog of the current files is on disk."""
    asked = values()
    return _built(asked["sources"]) is not None or results.path(KIND, asked).exists()


def make() -> Catalog:
    """Build the catalog and store it for every process of this checkout. Imports torch."""
    described = describe()
    if is_checkout():
        text = json.dumps({**values(), "catalog": encode(described)}, ensure_ascii=False)
        write_bytes(CARDS, text.encode(), shared=True)
    return described


def _built(sources: str) -> Catalog | None:
    """Return the stored catalog if it was built from these source files."""
    try:
        held = _parsed(CARDS, CARDS.stat().st_mtime_ns)
    except (OSError, ValueError):
        return None
    return held["catalog"].copy() if held["sources"] == sources else None


class Built(TypedDict):
    """A built catalog, and the hash of the sources that it was built from."""

    sources: str
    catalog: Catalog


@lru_cache(maxsize=2)
def _parsed(path: Path, changed: int) -> Built:
    return cast(Built, dict(json.loads(path.read_text("utf-8"), object_hook=decode)))


@lru_cache(maxsize=256)
def title(kind: str, name: str) -> str:
    """Return the title on the card of a method or loss, without the catalog; the name if there is no card."""
    if name.isidentifier():
        with contextlib.suppress(OSError):
            return str(read_card(kind, name)["title"])
    return name


def knobs(described: Mapping[str, KnobEntry]) -> dict[str, Knob]:
    """Rebuild the settings from their description, for sliders and value checks."""
    return {
        k: Knob(v["default"], v["low"], v["high"], tuple(v["choices"]), v["help"], v["log"])
        for k, v in described.items()
    }


def describe() -> Catalog:
    """Return `methods` and `losses` by year, `metrics`, `recipe` and `encoders` as plain values. Imports torch."""
    import torch

    from contrastive_core import losses, methods, metrics, pairs
    from contrastive_core.models import encoders

    across = pairs.from_towers(torch.eye(2), torch.eye(2))  # to test whether a loss can compare two towers
    described: Catalog = _plain(
        {
            "methods": {
                name: _method(methods, name)
                for name in sorted(methods.names(), key=lambda name: (methods.get(name).card.year, name))
            },
            "losses": {
                name: _loss(losses, name, across)
                for name in sorted(losses.names(), key=lambda name: (losses.get(name).card.year, name))
            },
            "metrics": {
                name: {key: getattr(cls, key) for key in METRIC if hasattr(cls, key)} | {"knobs": metrics.knobs(name)}
                for name, cls in ((name, metrics.get(name)) for name in metrics.names())
            },
            "recipe": knobs_of(Recipe),
            "encoders": encoders.encoder_names(),
        }
    )
    return described


def _method(methods: Any, name: str) -> dict[str, object]:
    cls = methods.get(name)
    defaults, problems = {}, {}
    for dataset, facts in ((name, KNOWN[name]) for name in SETS):
        usual = cls.defaults(facts)
        defaults[dataset] = {key: {"value": value, "why": why} for key, (value, why) in usual.items()}
        problems[dataset] = cls.incompatibility(facts, usual["batch_size"][0])
    card = {key: getattr(cls.card, key) for key in METHOD}
    return {**card, "knobs": methods.knobs(name), "defaults": defaults, "problems": problems}


def _loss(losses: Any, name: str, across: Any) -> dict[str, object]:
    loss = losses.create(name)
    card = {key: getattr(loss.card, key) for key in LOSS}
    about = {"score": loss.score, "knobs": losses.knobs(name), "kernel": loss.kernel()}
    return {**card, **about, "across": loss.check(across) is None}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def values() -> Values:
    """Return the request for the catalog: the hash of its source files."""
    digest = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return {"sources": digest.hexdigest()}


if __name__ == "__main__":
    make()
