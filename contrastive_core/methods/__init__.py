"""Every method by name: one file each, its name is the key.

>>> methods.create("simclr", encoder=encoder, image_shape=(3, 32, 32), n_train=5000)
"""

from typing import Any

from torch import nn

from contrastive_core.data.captions import Vocabulary
from contrastive_core.messages import message
from contrastive_core.methods._base import DatasetInfo, Method
from contrastive_core.records.recipe import Recipe
from contrastive_core.registry import Knob, Registry, knobs_of

__all__ = ["DatasetInfo", "Method", "create", "get", "knobs", "names"]

_registry: Registry[Method] = Registry(__name__, Method, "method")
names, get = _registry.names, _registry.get


def knobs(name: str) -> dict[str, Knob]:
    """The settings of the method `name`. Raises UnknownName."""
    return knobs_of(get(name).Settings)


def create(
    name: str,
    *,
    encoder: nn.Module,
    image_shape: tuple[int, int, int],
    n_train: int,
    recipe: Recipe | None = None,
    vocabulary: Vocabulary | None = None,
    **settings: Any,
) -> Method:
    """Return the method `name` around an encoder, with checked settings.

    Args:
        encoder: images (b, c, h, w) to features (b, d); its attribute `out_dim` is d.
        image_shape: channels, height, width; n_train: training images.
        recipe: augmentations; default: `Recipe()`.
        vocabulary: words of the training captions, for a method with a text tower; default: none.
    Raises: UnknownName; ValueError for a setting that the method does not have or cannot take.
    """
    definitions = knobs(name)
    for key in settings:
        if key not in definitions:
            has = ", ".join(definitions) or "none"
            values = {"name": f"{name!r}", "key": f"{key!r}", "has": has}
            if others := [n for n in names() if key in knobs(n)]:
                values |= {"others": ", ".join(others)}
                raise ValueError(message("method {name} has no setting {key}, only {others}; it has: {has}", **values))
            raise ValueError(message("method {name} has no setting {key}; it has: {has}", **values))
    cls = get(name)
    checked = cls.Settings(**{k: definitions[k].check(k, v) for k, v in settings.items()})
    return cls(encoder, image_shape, n_train, recipe or Recipe(), checked, vocabulary or Vocabulary(()))
