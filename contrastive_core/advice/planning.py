"""A plan that fits into the time: how many settings, for how many epochs each."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contrastive_core import methods
from contrastive_core.advice.candidates import candidates, check_questions
from contrastive_core.advice.fitting_methods import check_methods, fitting_methods
from contrastive_core.advice.held_out import held_out_rows
from contrastive_core.advice.suggestions import USUAL_BATCH, batch_of
from contrastive_core.data import datasets
from contrastive_core.data.datasets import Dataset
from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records.advice import (
    ETA,
    FINALISTS,
    OVERHEAD,
    SEEDS,
    START,
    WITHOUT_LABELS,
    Plan,
    adviser_names,
    duration,
    load_plan,
    method_duration,
)
from contrastive_core.records.frozen import parse_all
from contrastive_core.records.runs import checked_name, free_name
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.training.defaults import usual_settings
from contrastive_core.training.loop import seconds_per_epoch

EPOCHS = 20  # as `train` has it
SHORTEST = 2  # epochs of a first try at least
SPREAD = 4  # places of a curve that are tried, for all epochs, before anything is repeated
RESERVE = 0.95  # of the time; the rest is for the test images and the answer


@dataclass(frozen=True)
class AdviceRequest:
    """A question to the adviser. `choose`: None for the temperature, or as the adviser `name` was begun with;
    `methods`: those to choose from, None for all that fit. The default is `method`, or the first of `methods`."""

    dataset: str
    minutes: float
    choose: Sequence[str] | None = None
    name: str = ""
    method: str = "simclr"
    epochs: int = EPOCHS
    root: str | None = None
    device: str = "auto"
    frozen: Sequence[str] | None = None  # encoders; None: those that the user named once
    methods: Sequence[str] | None = None


def plan_advice(request: AdviceRequest, on_progress: OnProgress = ignore_progress) -> Plan:
    """The plan of a new adviser, after a few steps were timed; or that of one that was begun under this name, with the
    new time. Raises ValueError with the sentence to show."""
    if request.name and (earlier := load_plan(request.name)) is not None:
        return _resumed(earlier, request)
    on_progress(N_("reading images"), None)
    data = datasets.load(request.dataset, "train", request.root)
    stem = "advice-" + "".join(c if c.isalnum() else "_" for c in request.dataset.split("/")[-1])[:24]
    chosen = dataclasses.replace(_with_methods(request, data), name=request.name or free_name(stem, adviser_names()))
    choose = list(chosen.choose or ())
    held_out_rows(data)  # its sentence comes before any timing
    config = TrainConfig(method=chosen.method, dataset=chosen.dataset, root=chosen.root, device=chosen.device)
    if "batch" not in choose and (batch := fitting_batch(chosen.method, data)) is not None:
        config = dataclasses.replace(config, batch_size=batch)
    if choose == ["method"]:
        paces = _paces(config, chosen.methods or fitting_methods(data)[0], on_progress)
        return make_plan(chosen, data, paces[chosen.method], paces)
    on_progress(N_("timing a few steps"), None)
    return make_plan(chosen, data, seconds_per_epoch(config))


def _with_methods(request: AdviceRequest, data: Dataset) -> AdviceRequest:
    """The request with its questions, and with the methods that it names: the first is the default where `method` is
    none of them. Raises BadSetting for questions and methods that cannot be tried."""
    choose = check_questions(request.choose or (["method"] if request.methods else ["temperature"]))
    if request.methods is None:
        return dataclasses.replace(request, choose=choose)
    if "method" not in choose:
        raise BadSetting("methods can be named only where the method is chosen; got {choose}", choose=", ".join(choose))
    named = check_methods(request.methods, data)
    default = request.method if request.method in named else named[0]
    return dataclasses.replace(request, choose=choose, methods=named, method=default)


def _paces(config: TrainConfig, names: Sequence[str], on_progress: OnProgress) -> dict[str, float]:
    """Seconds per epoch of the default and of each method, the default's first; another that cannot be timed is told
    when it is trained. Raises ValueError where the default cannot be trained."""
    paces = dict[str, float]()
    order = [config.method, *(name for name in names if name != config.method)]
    for number, name in enumerate(order, 1):
        values = {"title": methods.get(name).card.title, "number": number, "count": len(order)}
        on_progress(message("timing {title}, {number} of {count} methods", **values), (number - 1) / len(order))
        try:
            paces[name] = seconds_per_epoch(dataclasses.replace(config, method=name))
        except (ValueError, OSError, RuntimeError):
            if not paces:
                raise
            paces[name] = paces[config.method]
    return paces


def _resumed(earlier: Plan, request: AdviceRequest) -> Plan:
    if earlier.dataset != request.dataset:
        raise BadSetting("{name} advises on {dataset}; choose another name", name=request.name, dataset=earlier.dataset)
    if request.choose is not None and tuple(check_questions(request.choose)) != earlier.choose:
        raise BadSetting(
            "{name} chooses {choose}; choose another name", name=request.name, choose=", ".join(earlier.choose)
        )
    if request.methods is not None and {*request.methods} != {*(earlier.methods or earlier.paces)}:
        values = {"name": request.name, "methods": ", ".join(earlier.methods or earlier.paces) or earlier.method}
        raise BadSetting("{name} compares {methods}; choose another name", **values)
    return dataclasses.replace(earlier, minutes=request.minutes)


def make_plan(
    request: AdviceRequest, dataset: Dataset, seconds_per_epoch: float, paces: Mapping[str, float] | None = None
) -> Plan:
    """A plan that fits into the time. `paces`: seconds per epoch of each method, where methods alone are chosen.

    Raises: BadSetting with the sentence to show: the time is too short for one comparison, too few images, a question
        that has no answer here."""
    minutes, method = request.minutes, request.method
    if not minutes > 0 or not math.isfinite(minutes):
        raise BadSetting(f"--minutes must be above 0; got {minutes:g}")
    choose = check_questions(request.choose or ["temperature"])
    is_labeled = len(set(dataset.labels[dataset.labels >= 0].tolist())) > 1
    if not is_labeled and choose != ["temperature"]:
        raise BadSetting(WITHOUT_LABELS)
    if choose == [START]:
        return _start_plan(request, dataset, seconds_per_epoch)
    among = tuple(request.methods or ())
    found = [candidates(q, method, dataset, among) for q in choose]
    trials = 1 + sum(len(one) - 1 for one in found)
    if trials < 2:
        raise BadSetting("nothing to choose: {choose} has only one setting here", choose=", ".join(choose))
    count = len(held_out_rows(dataset))
    labels = (", ".join(one[0].label for one in found), *(c.label for one in found for c in one[1:]))
    batch = None if "batch" in choose else fitting_batch(method, dataset)
    about = (checked_name(request.name), dataset.name, request.root, method, tuple(choose), minutes, (request.epochs,))
    sizes = (trials, len(dataset) - count, count, is_labeled, seconds_per_epoch, request.device)
    plan = Plan(*about, *sizes, batch_size=batch, labels=labels, methods=among)
    if paces:
        labels = tuple(one.label for one in found[0])
        unfit = {} if among else fitting_methods(dataset)[1]
        left_out = {title: why for title, why in unfit.items() if title not in labels}
        plan = dataclasses.replace(plan, labels=labels, paces=paces, left_out=left_out)
        return _fitted_methods(plan, request.epochs)
    return _fitted(plan, request.epochs)


def _fitted_methods(plan: Plan, epochs: int) -> Plan:
    """The plan with as many epochs as fit with every method; at least SHORTEST, and then as many methods as the time
    allows. Raises BadSetting where it is too short for two."""
    least = sum(sorted(plan.paces.values())[:2]) * SHORTEST + 2 * OVERHEAD
    if least > RESERVE * plan.seconds:
        values = {"minutes": f"{plan.minutes:g}", "needed": math.ceil(least / 60 / RESERVE)}
        raise BadSetting("{minutes} min are too short to compare two methods; give it {needed} min or more", **values)
    fitting = (n for n in range(epochs, SHORTEST, -1) if method_duration(plan, n) <= RESERVE * plan.seconds)
    return dataclasses.replace(plan, rungs=(next(fitting, SHORTEST),))


def _start_plan(request: AdviceRequest, dataset: Dataset, seconds_per_epoch: float) -> Plan:
    """The plan of the question whether to train. Raises BadSetting where the time is too short for three seeds."""
    encoders = parse_all(request.frozen)
    count, trials = len(held_out_rows(dataset)), 1 + bool(encoders)
    least = len(SEEDS) * trials * (SHORTEST * seconds_per_epoch + OVERHEAD) / RESERVE
    if least > 60 * request.minutes:
        values = {"minutes": f"{request.minutes:g}", "seeds": len(SEEDS), "needed": math.ceil(least / 60)}
        raise BadSetting(
            "{minutes} min are too short to train with {seeds} seeds; give it {needed} min or more", **values
        )
    about = (checked_name(request.name), dataset.name, request.root, request.method, (START,), request.minutes)
    sizes = (trials, len(dataset) - count, count, True, seconds_per_epoch, request.device)
    batch, frozen = fitting_batch(request.method, dataset), tuple(e.text for e in encoders)
    return Plan(*about, (request.epochs,), *sizes, batch_size=batch, frozen=frozen)


def _fitted(plan: Plan, epochs: int) -> Plan:
    """The plan with as many epochs and trials as fit into its time; as many as a comparison needs at least."""
    trials = plan.trials
    for most in range(epochs, SHORTEST - 1, -1):
        if plan.is_curve:
            runs = int(RESERVE * plan.seconds / (most * plan.seconds_per_epoch + OVERHEAD))
            first = min(trials, max(SPREAD, runs - (len(SEEDS) - 1) * (FINALISTS + 1)))
            plan, fits = dataclasses.replace(plan, rungs=(most,), trials=first), runs >= first
        else:
            plan = dataclasses.replace(plan, rungs=_rungs(most))
            fits = plan.expected() <= RESERVE * plan.seconds
        if fits:
            return plan
    least = duration(2, (SHORTEST,), plan.seconds_per_epoch, 1)
    if least > RESERVE * plan.seconds:
        values = {
            "minutes": f"{plan.minutes:g}",
            "least": f"{least / 60 / RESERVE:.1f}",
            "needed": math.ceil(least / 57),
        }
        raise BadSetting(
            "{minutes} min are too short to compare two settings: it takes about {least} min "
            "here; give it {needed} min or more",
            **values,
        )
    return plan  # as many as time allows: the search itself looks at the clock


def fitting_batch(method: str, dataset: Dataset) -> int | None:
    """The batch that a first look suggests; None where it is the usual one."""
    usual = int(usual_settings(method, dataset).get("batch_size", USUAL_BATCH))
    best = batch_of(usual, len(dataset))
    return None if best == usual else best


def _rungs(epochs: int) -> tuple[int, ...]:
    """Epochs of each round, rising by `ETA`, the last being all."""
    rungs = [epochs]
    while len(rungs) < 3 and round(rungs[0] / ETA) >= SHORTEST:
        rungs.insert(0, round(rungs[0] / ETA))
    return tuple(rungs)
