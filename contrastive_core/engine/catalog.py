"""The catalog: the app's texts and settings of every method, loss, metric and augmentation.

The metadata are in the registered classes and their cards. A wheel contains the catalog; in a checkout the worker
rebuilds it when the files have changed.

    python -m contrastive_core.engine.catalog    (builds it now)"""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.messages import decode, message
from contrastive_core.base.registry import Catalog, Knob, KnobEntry, knobs_of, read_card
from contrastive_core.base.storage import ROOT, data_home, is_checkout, write_bytes
from contrastive_core.data.dataset import KNOWN
from contrastive_core.data.recipe import Recipe
from contrastive_core.engine import client

PACKAGE = ROOT / "contrastive_core"
NAME = "cards.json"
CARDS = (ROOT / "build" if is_checkout() else PACKAGE / "base") / NAME  # hatch_build.py puts it into a wheel
SOURCES = "methods/*.py methods/*.toml losses/*.py losses/*.toml metrics/*.py data/recipe.py base/registry.py".split()
SOURCES += ["data/dataset.py", "models/encoders.py", "engine/catalog.py"]
SETS = ("shapes", "digits", "cifar10")  # whose facts a card shows
METRIC = "title reading needs_labels needs_train higher_is_better".split()


def read() -> Catalog:
    """Return the catalog; the worker builds it first if the files have changed (takes seconds).
    Raises: RuntimeError with the worker's message if a file is not a valid method or loss."""
    if cards := stored():
        return cards
    try:
        return client.make_catalog()
    except Exception as error:
        raise RuntimeError(message("the catalog cannot be created: {error}", error=error)) from None


def stored() -> Catalog | None:
    """Return the catalog on the disk if it was built from the current files."""
    for path in (CARDS, data_home() / NAME):
        with contextlib.suppress(OSError, ValueError):
            held = json.loads(path.read_text("utf-8"), object_hook=decode)
            if held["sources"] == sources():
                return cast(Catalog, held["catalog"])
    return None


def make() -> Catalog:
    """Build the catalog and store it for every process of this checkout. Imports torch."""
    built = json_bytes({"sources": sources(), "catalog": describe()})
    try:
        write_bytes(CARDS, built, shared=True)
    except OSError:  # an installation that this user cannot change
        with contextlib.suppress(OSError):
            write_bytes(data_home() / NAME, built)
    return cast(Catalog, json.loads(built, object_hook=decode)["catalog"])


def sources() -> str:
    """Return the hash of the source files of the catalog."""
    digest = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


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


def describe() -> dict[str, object]:
    """Return the content of a `Catalog`, with cards and settings as dataclasses. Imports torch."""
    import torch

    from contrastive_core import losses, methods, metrics, pairs
    from contrastive_core.models import encoders

    of_methods: dict[str, Any] = {}
    for name in sorted(methods.names(), key=lambda name: (methods.get(name).card.year, name)):
        cls = methods.get(name)
        entry = of_methods[name] = {**vars(cls.card), "knobs": methods.knobs(name), "defaults": {}, "problems": {}}
        for dataset in SETS:
            usual = cls.defaults(KNOWN[dataset])
            entry["defaults"][dataset] = {key: {"value": value, "why": why} for key, (value, why) in usual.items()}
            entry["problems"][dataset] = cls.incompatibility(KNOWN[dataset], usual["batch_size"][0])
    of_losses: dict[str, Any] = {}
    across = pairs.from_towers(torch.eye(2), torch.eye(2))  # to test whether a loss can compare two towers
    for name in sorted(losses.names(), key=lambda name: (losses.get(name).card.year, name)):
        loss = losses.create(name)
        about = {"score": loss.score, "knobs": losses.knobs(name), "kernel": loss.kernel()}
        of_losses[name] = {**vars(loss.card), **about, "across": loss.check(across) is None}
    of_metrics: dict[str, Any] = {}
    for name in metrics.names():
        card = {key: getattr(metrics.get(name), key) for key in METRIC if hasattr(metrics.get(name), key)}
        of_metrics[name] = {**card, "knobs": metrics.knobs(name)}
    described = {"methods": of_methods, "losses": of_losses, "metrics": of_metrics}
    return {**described, "recipe": knobs_of(Recipe), "encoders": encoders.encoder_names()}


if __name__ == "__main__":
    make()
