"""Scores of an embedding: one file per metric, found by its name."""

from contrastive_core.errors import CannotScore
from contrastive_core.metrics._base import Metric, MetricResult
from contrastive_core.registry import Registry

__all__ = ["CannotScore", "Metric", "MetricResult", "create", "get", "knobs", "names"]

_registry: Registry[Metric] = Registry("contrastive_core.metrics", Metric, "metric")
create, get, knobs, names = _registry.create, _registry.get, _registry.knobs, _registry.names
