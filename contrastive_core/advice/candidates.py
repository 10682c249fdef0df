"""The candidates for each question, and a plan that gives every candidate the same training time.

A candidate is a label and settings in the form of `train --set`. It differs from the default in one question only."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contrastive_core import losses, methods
from contrastive_core.advice.evidence import held_out_rows
from contrastive_core.advice.plan import (
    ENOUGH,
    NEEDS_LABELS,
    NO_TIME,
    OVERHEAD,
    QUESTIONS,
    SEEDS,
    START,
    Candidate,
    Plan,
    adviser_names,
    load_plan,
)
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.compare.evaluation import references_named
from contrastive_core.data import datasets
from contrastive_core.data.captions import add_captions
from contrastive_core.data.datasets import Dataset
from contrastive_core.data.recipe import Recipe
from contrastive_core.runs import free_name, new_name
from contrastive_core.runs.run import data_key
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.sweeps.training import seconds_per_epoch
from contrastive_core.train.settings import usual_settings

TEMPERATURES = (0.05, 1.0, 0.5, 0.1, 0.3, 0.7, 0.2)  # widely spaced values first: a short plan cannot try all
MARGINS = (0.05, 1.0, 0.2, 0.5, 0.1)
HEAD = {"nonlinear": N_("nonlinear head"), "linear": N_("linear head"), "none": N_("no head")}
NEAR = 1.2  # a value within this factor of the default is the default
USUAL_BATCH = 128  # the default of `train`
STEPS = 8  # minimum steps per epoch, for which the batch size is reduced
LARGE_BATCH = 64  # smallest batch (images) for methods that need large batches
LARGE = "large batch"  # of `records.cards.USES`
EPOCHS = 20  # the default of `train`
MINUTES = 30.0
SHORTEST = 2  # minimum epochs of the default, with two settings


@dataclass(frozen=True)
class AdviceRequest:
    """A question to the adviser. None in `choose`, `minutes`, `methods`: the defaults, or the values of an existing
    adviser `name`. The default candidate uses `method`, or the first of `methods` if `method` is not among them."""

    dataset: str
    minutes: float | None = None
    choose: Sequence[str] | None = None
    name: str = ""
    method: str = "simclr"
    epochs: int = EPOCHS
    root: str | None = None
    device: str = "auto"
    references: list[str] | None = None  # reference runs; None: the user's list
    methods: Sequence[str] | None = None


# --- what is tried -----------------------------------------------------------------------------------


def candidates(question: str, method: str, dataset: Dataset, among: Sequence[str] = ()) -> list[Candidate]:
    """Return the candidates for a question, the default first. Raises BadSetting if the loss has no such setting.

    Args: among: methods to choose from; empty: all that fit the data."""
    cls, usual = methods.get(method), usual_settings(method, dataset)
    default: str
    others: Mapping[str, Mapping[str, object]] = {}
    match question:
        case "temperature":
            loss = usual.get("loss") or cls.card.default_loss
            knobs = losses.knobs(loss)
            name, grid = ("temperature", TEMPERATURES) if "temperature" in knobs else ("margin", MARGINS)
            if name not in knobs:
                raise BadSetting("{loss} has no temperature or margin to choose", loss=loss)
            value = usual.get("loss_knobs", cls.card.loss_knobs).get(name, knobs[name].default)
            if not isinstance(value, (int, float)):
                text = "the {name} of {loss} is learned by default; there is nothing to choose"
                raise BadSetting(text, name=name, loss=loss)
            sign = "τ" if name == "temperature" else "margin"
            far = [v for v in grid if max(v / value, value / v) > NEAR]
            return [
                Candidate(label=f"{sign} {value:g}", value=float(value)),
                *(Candidate(label=f"{sign} {v:g}", settings={f"loss.{name}": v}, value=v) for v in far),
            ]
        case "batch":
            batch = int(usual.get("batch_size") or USUAL_BATCH)
            sizes = [b for b in (batch // 4, batch // 2, 2 * batch) if 8 <= b <= len(dataset) // 4]
            default = message("batch {batch}", batch=batch)
            others = {message("batch {batch}", batch=b): {"batch_size": b} for b in sizes}
        case "method":
            names = among or fitting_methods(dataset)[0]
            default, others = cls.card.title, {methods.get(m).card.title: {"method": m} for m in names if m != method}
        case "start":
            default = N_("from scratch")  # continued training is added after the frozen encoders are scored
        case "head":
            head = {"head": "nonlinear", **usual.get("method_knobs", {})}["head"]
            default, others = HEAD[head], {HEAD[h]: {"method.head": h} for h in HEAD if h != head}
        case _:
            default = N_("usual views")
            others = _recipe_changes(usual.get("recipe", Recipe()), dataset)
    return [Candidate(label=default), *(Candidate(label=x, settings={**settings}) for x, settings in others.items())]


def batch_of(usual: int, n: int) -> int:
    """Halve the usual batch size until an epoch of n images has at least `STEPS` steps; never below 8."""
    best = usual
    while best > 8 and n // best < STEPS:
        best //= 2
    return best


def _recipe_changes(usual: Recipe, dataset: Dataset) -> dict[str, dict[str, float]]:
    """Return the settings of each single change to the usual recipe, by label."""
    _, c, h, _ = dataset.images.shape
    changes = {"no mirroring" if usual.flip else "mirroring": {"recipe.flip": 0.0 if usual.flip else 0.5}}
    if usual.crop:
        changes["smaller crops"] = {"recipe.crop_low": round(max(0.08, usual.crop_low / 2), 2)}
        changes["larger crops"] = {"recipe.crop_low": round(min(0.9, (1 + usual.crop_low) / 2), 2)}
    if c == 3 and (usual.hue or usual.gray) and usual.jitter:
        changes["no hue shift, no gray"] = {"recipe.hue": 0.0, "recipe.gray": 0.0}
    if usual.jitter:
        changes["no color steps"] = {"recipe.jitter": 0.0, "recipe.gray": 0.0}
    if h >= 16 and not usual.blur:
        changes["with blur"] = {"recipe.blur": 0.5}
    return changes


def fitting_methods(dataset: Dataset, named: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Return the names of the methods that can train on these images, and the reasons against the others, by title.
    Methods for large batches are left out on small data, unless `named`. Raises UnknownName."""
    has_captions = False
    with contextlib.suppress(ValueError, OSError):
        has_captions = add_captions(dataset).captions is not None
    largest = len(dataset) // 4
    fitting, left_out = [], {}
    for name in dict.fromkeys(named or methods.names()):
        card = methods.get(name).card
        if card.needs_labels and not is_labeled(dataset):
            left_out[card.title] = N_("it needs labels")
        elif card.needs_captions and not has_captions:
            left_out[card.title] = N_("it needs captions")
        elif not named and LARGE in card.uses and largest < LARGE_BATCH:
            text = N_("it needs a large batch, but these images allow only {largest}")
            left_out[card.title] = message(text, largest=max(1, largest))
        else:
            fitting.append(name)
    return fitting, left_out


def is_labeled(dataset: Dataset) -> bool:
    """Return whether the labels hold at least two classes."""
    return len(np.unique(dataset.labels[dataset.labels >= 0])) > 1


# --- the plan ----------------------------------------------------------------------------------------


def plan_advice(request: AdviceRequest, on_progress: OnProgress = ignore_progress) -> Plan:
    """Plan a new adviser after timing a few steps, or load the plan of an existing one with this name.

    Raises ValueError with a message for the user."""
    if request.name and (earlier := load_plan(request.name)) is not None:
        tried = {str(one.settings.get("method", earlier.method)) for one in earlier.candidates}  # of all that fit
        is_other = {
            "dataset": request.dataset != earlier.dataset,
            "choose": request.choose is not None and tuple(request.choose) != earlier.choose,
            "minutes": request.minutes not in (None, earlier.minutes),
            "methods": request.methods is not None and not tried <= {*request.methods},
        }
        planned = {"choose": ", ".join(earlier.choose), "methods": ", ".join(sorted(tried))}
        for field in (name for name, differs in is_other.items() if differs):
            values = {"name": request.name, "field": field, "value": planned.get(field) or getattr(earlier, field)}
            raise BadSetting("{name} was planned with {field} {value}; choose another name", **values)
        return earlier
    on_progress(N_("reading images"), None)
    data = datasets.load(request.dataset, "train", request.root)
    datasets.count(request.dataset, "test", request.root)  # on which the answer is tested at last
    stem = "advice-" + "".join(c if c.isalnum() else "_" for c in request.dataset.split("/")[-1])[:24]
    request = dataclasses.replace(request, name=request.name or free_name(stem, adviser_names()))
    return make_plan(request, data, lambda config: seconds_per_epoch(config), on_progress)


def make_plan(
    request: AdviceRequest,
    dataset: Dataset,
    pace_of: Callable[[TrainConfig], float],
    on_progress: OnProgress = ignore_progress,
) -> Plan:
    """Return a plan that fits into the available time.

    Args: pace_of: returns the seconds of an epoch with given settings.
    Raises: BadSetting: not enough time for one comparison, too few images, or a question that does not apply."""
    minutes = MINUTES if request.minutes is None else request.minutes
    if not minutes > 0 or not math.isfinite(minutes):
        raise BadSetting("--minutes must be above 0; got {minutes}", minutes=f"{minutes:g}")
    rows, method, among, left_out = held_out_rows(dataset), request.method, list[str](), dict[str, str]()
    asked = request.choose or (["temperature"] if request.methods is None else ["method"])
    choose, questions = tuple(dict.fromkeys(asked)), ", ".join(QUESTIONS)
    if not {*choose} <= {*QUESTIONS}:
        raise BadSetting("--choose accepts {questions}; got {names}", questions=questions, names=[*choose])
    if START in choose and len(choose) > 1:
        raise BadSetting("{start} must be the only question: decide whether to train before deciding how", start=START)
    if request.methods is not None:
        if choose != ("method",):
            text = "methods can be named only where the method is chosen; got {choose}"
            raise BadSetting(text, choose=", ".join(choose))
        among, unfit = fitting_methods(dataset, request.methods)
        for title, why in unfit.items():
            raise BadSetting("{title} cannot be tried on {dataset}: {why}", title=title, dataset=dataset.name, why=why)
        method = method if method in among else among[0]
    elif "method" in choose:
        among, left_out = fitting_methods(dataset)
    if not is_labeled(dataset):
        raise BadSetting(NEEDS_LABELS)
    found = [candidates(question, method, dataset, among) for question in choose]  # one change at a time
    first = Candidate(
        label=", ".join(one[0].label for one in found), value=found[0][0].value if len(choose) == 1 else None
    )
    tried = (first, *(one for some in found for one in some[1:]))
    if len(tried) < 2 and choose != (START,):
        raise BadSetting("nothing to choose: {choose} has only one setting here", choose=", ".join(choose))
    usual = int(usual_settings(method, dataset).get("batch_size", USUAL_BATCH))
    batch = batch_of(usual, len(dataset))
    references = references_named(request.references, data_key(dataset.name, request.root))
    plan = Plan(
        name=new_name(request.name),
        dataset=dataset.name,
        root=request.root,
        method=method,
        choose=choose,
        minutes=minutes,
        candidates=tried,
        seconds=0.0,
        train=len(dataset) - len(rows),
        held_out=len(rows),
        device=request.device,
        batch_size=None if "batch" in choose or batch == usual else batch,
        frozen=tuple(run.name for run in references) if choose == (START,) else (),
        left_out={title: why for title, why in left_out.items() if title not in {one.label for one in tried}},
    )
    return _fitted(plan, request.epochs, _paces(plan, pace_of, on_progress))


def _paces(plan: Plan, pace_of: Callable[[TrainConfig], float], on_progress: OnProgress) -> dict[str, float]:
    """Measure the seconds per epoch of each method. A method that cannot be timed gets the pace of the default.
    Raises ValueError if the default cannot be trained."""
    order = list(dict.fromkeys(str(one.settings.get("method", plan.method)) for one in plan.candidates))
    paces = dict[str, float]()
    for number, name in enumerate(order, 1):
        text = N_("timing {title} (method {number} of {count})") if len(order) > 1 else N_("timing a few steps")
        stage = message(text, title=methods.get(name).card.title, number=number, count=len(order))
        on_progress(stage, (number - 1) / len(order))
        config = TrainConfig(
            method=name, dataset=plan.dataset, root=plan.root, device=plan.device, batch_size=plan.batch_size
        )
        try:
            paces[name] = pace_of(config)
        except (ValueError, OSError, RuntimeError):
            if not paces:
                raise
            paces[name] = paces[plan.method]
    return paces


def _fitted(plan: Plan, most: int, paces: Mapping[str, float]) -> Plan:
    """Set the epochs of each candidate and drop candidates that do not fit into the time. The default trains for at
    least ENOUGH epochs while more than two settings are left, otherwise for SHORTEST, and for `most` at the longest.
    Raises BadSetting if fewer than two candidates fit."""
    pace, tried = paces[plan.method], list(plan.candidates)
    plan = dataclasses.replace(plan, pace=pace, most=most)
    fewest = 1 + bool(plan.frozen) if plan.is_start else 2
    count, enough = max(fewest, len(tried)), min(most, ENOUGH)
    while (each := plan.budget / plan.trainings(count) - OVERHEAD) < enough * pace and count > fewest:
        count -= 1
    if each < min(enough, SHORTEST) * pace:
        values = {"minutes": f"{plan.minutes:g}", "needed": plan.minutes_for(count, enough), "seeds": len(SEEDS)}
        raise BadSetting(
            "{minutes} min is too short for a comparison with {seeds} seeds; allow at least {needed} min", **values
        )
    each = min(each, most * pace)
    timed = []
    for one in tried[:count]:
        epochs = math.floor(each / paces[str(one.settings.get("method", plan.method))] + 1e-6)
        timed.append(dataclasses.replace(one, epochs=max(1, epochs)))
    left_out = {**plan.left_out, **{one.label: NO_TIME for one in tried[count:]}}
    return dataclasses.replace(plan, candidates=tuple(timed), seconds=each, left_out=left_out)
