"""Every loss by name: one file per loss; the file name is the key.

>>> losses.create("nt_xent", temperature=0.5)(pairs).value
"""

import inspect
from typing import Any

from contrastive_core.base.registry import Registry
from contrastive_core.losses._base import Anatomy, Loss, LossOutput

__all__ = ["Anatomy", "Loss", "LossOutput", "create", "get", "knobs", "names"]

_registry: Registry[Loss] = Registry(__name__, Loss, "loss")
names, get, knobs = _registry.names, _registry.get, _registry.knobs


def create(name: str, **settings: Any) -> Loss:
    """Return the loss `name` with checked settings. Call it on `Pairs` of `contrastive_core.pairs`.

    Raises: UnknownName; ValueError for an unknown setting or an invalid value.

    The losses and their settings (default, range or choices, meaning):"""
    return _registry.create(name, **settings)


create.__doc__ = f"{inspect.getdoc(create)}\n\n{_registry.describe()}"
