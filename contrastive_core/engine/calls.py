"""Short synchronous calls from pages to the worker. The functions run in its process, where torch is loaded."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from contrastive_core.base.cards import Catalog, LossEntry
from contrastive_core.base.registry import Knobs
from contrastive_core.data.dataset import DatasetInfo
from contrastive_core.engine import client
from contrastive_core.lab.lab_view import BatchRequest, LabBatch, LabView, TowerBatch, Trade
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import Resolved, TrainConfig
from contrastive_core.samples.sample_table import SampleRequest
from contrastive_core.spaces.small_samples import SmallImages, load_samples

F = TypeVar("F", bound=Callable[..., Any])


def in_worker(function: F) -> F:
    """Decorate a function of a torch-free module to run in the worker. Arguments and results are sent by pickle.
    Raises: the function's errors; WorkerDied if the worker was killed."""

    @wraps(function)
    def ask(*arguments: Any) -> Any:
        return client.call(f"{function.__module__}:{function.__name__}", *arguments)

    ask.body = function  # type: ignore[attr-defined]  # for the worker
    return cast(F, ask)


@in_worker
def lab_batch(run: Run, request: BatchRequest) -> LabBatch | TowerBatch:
    from contrastive_core.lab.batch import load_batch

    return load_batch(run, request)


@in_worker
def lab_view(batch: LabBatch | TowerBatch, pairing: str, loss: str, knobs: Knobs) -> LabView:
    from contrastive_core.lab.view import compute_view

    return compute_view(batch, pairing, loss, knobs)


@in_worker
def temperature_trade(scores: np.ndarray, negative: np.ndarray, same_class: np.ndarray | None) -> list[Trade]:
    from contrastive_core.lab.view import trade

    return trade(scores, negative, same_class)


@in_worker
def about_loss(loss: str, knobs: Knobs) -> LossEntry:
    from contrastive_core.lab import view

    return view.about_loss(loss, knobs)


@in_worker
def explain_sample(request: SampleRequest, sample: str) -> Any:
    from contrastive_core.samples import run_samples

    return run_samples.explain_sample(request, sample)


@in_worker
def nearest_to_picture(run: Run, split: str, picture: bytes, count: int) -> list[tuple[str, float]]:
    """Return the ids of a split's images that are most similar to a picture. Raises: BadSetting for other files."""
    from contrastive_core.compare import likeness

    return likeness.nearest_to_picture(run, split, picture, count)


@in_worker
def damage_of(run: Run) -> list[str]:
    """List the damaged files of a run, one sentence each, without changing anything."""
    from contrastive_core.engine.run_folders import damage

    return list(damage(run))


@in_worker
def branch(run: Run, epoch: int | None, *every: Mapping[str, object]) -> list[Run]:
    """Create runs that continue from a state of another run with other settings. Raises: ValueError."""
    from contrastive_core.train import changes

    return changes.branch(run, *every, epoch=epoch)


@in_worker
def resolved_settings(config: TrainConfig, facts: DatasetInfo) -> Resolved:
    """Return the settings of a training for a form, with the reason for each default. Raises: ValueError."""
    from contrastive_core.train import setup

    return setup.of_page(config, facts)


@in_worker
def make_catalog() -> Catalog:
    from contrastive_core.engine import catalog

    return catalog.make()


@in_worker
def small_samples(name: str, root: str | None = None) -> SmallImages:
    return load_samples(name, root)
