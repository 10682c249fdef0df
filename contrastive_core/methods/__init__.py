"""Every method by name: one file per method; the file name is the key.

>>> methods.create("simclr", encoder=encoder, image_shape=(3, 32, 32), n_train=5000)
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from contrastive_core.base.messages import message
from contrastive_core.base.registry import Knob, Registry, knobs_of
from contrastive_core.data.captions import Vocabulary
from contrastive_core.data.dataset import DatasetInfo
from contrastive_core.data.recipe import Recipe
from contrastive_core.methods._base import Method

__all__ = ["DatasetInfo", "Method", "create", "get", "knobs", "names"]

_registry: Registry[Method] = Registry(__name__, Method, "method")
names, get = _registry.names, _registry.get


def knobs(name: str) -> dict[str, Knob]:
    """Return the settings of the method `name`. Raises UnknownName."""
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
        encoder: maps images (b, c, h, w) to features (b, d); its attribute `out_dim` is d.
        image_shape: channels, height, width; n_train: number of training images.
        recipe: augmentations; default: `Recipe()`.
        vocabulary: words of the training captions, for a method with a text tower; default: none.
    Raises: UnknownName; ValueError for an unknown setting or an invalid value."""
    checked = checked_settings(name, settings)
    return get(name)(encoder, image_shape, n_train, recipe or Recipe(), checked, vocabulary or Vocabulary(()))


def checked_settings(name: str, settings: Mapping[str, Any]) -> Any:
    """Return the `Settings` of the method `name` with these values. Raises the errors of `create`."""
    definitions = knobs(name)
    for key in settings:
        if key not in definitions:
            has = ", ".join(definitions) or "none"
            values = {"name": f"{name!r}", "key": f"{key!r}", "has": has}
            if others := [n for n in names() if key in knobs(n)]:
                values |= {"others": ", ".join(others)}
                raise ValueError(
                    message("method {name} has no setting {key}, which belongs to {others}; it has: {has}", **values)
                )
            raise ValueError(message("method {name} has no setting {key}; it has: {has}", **values))
    return get(name).Settings(**{k: definitions[k].check(k, v) for k, v in settings.items()})
