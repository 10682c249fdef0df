"""Every loss by name: one file each, its name is the key.

>>> losses.create("nt_xent", temperature=0.5)(pairs).value
"""

from contrastive_core.losses._base import Loss
from contrastive_core.registry import Registry

__all__ = ["Loss", "create", "get", "knobs", "names"]

_registry: Registry[Loss] = Registry(__name__, Loss, "loss")
names, get, knobs, create = _registry.names, _registry.get, _registry.knobs, _registry.create
