"""Scores of an embedding: one file per metric, found by its name."""

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.registry import Registry
from contrastive_core.metrics._base import Metric, MetricResult

__all__ = ["CannotScore", "Metric", "MetricResult", "create", "get", "knobs", "names"]

_registry: Registry[Metric] = Registry("contrastive_core.metrics", Metric, "metric")
create, get, knobs, names = _registry.create, _registry.get, _registry.knobs, _registry.names
