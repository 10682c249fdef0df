"""What can be chosen: for each question the settings that are tried, the default among them.

A candidate is a label and the settings that `train --set` takes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contrastive_core import losses, methods
from contrastive_core.data.datasets import Dataset
from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.records.advice import QUESTIONS
from contrastive_core.records.recipe import Recipe
from contrastive_core.training.defaults import usual_settings

TEMPERATURES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
MARGINS = (0.05, 0.1, 0.2, 0.5, 1.0)
HEAD = {"nonlinear": N_("nonlinear head"), "linear": N_("linear head"), "none": N_("no head")}
NEAR = 1.2  # a value within this factor of the default is the default
UNLABELED = ("simclr", "moco_v2", "inst_disc", "inva_spread")
LABELED = (*UNLABELED, "sup_con", "metric")


@dataclass(frozen=True)
class Candidate:
    """One answer to one question. `settings` are {} for the default."""

    question: str
    label: str
    settings: dict[str, object]
    value: float | None = None  # where it stands on a curve


def check_questions(names: Sequence[str]) -> list[str]:
    """The names, each once. Raises BadSetting for one that is no question."""
    for name in names:
        if name not in QUESTIONS:
            raise BadSetting(f"--choose takes {', '.join(QUESTIONS)}; got {name!r}")
    if not names:
        raise BadSetting(f"--choose takes at least one of {', '.join(QUESTIONS)}")
    return list(dict.fromkeys(names))


def candidates(question: str, method: str, dataset: Dataset) -> list[Candidate]:
    """What is tried for a question, the default first. Raises BadSetting where the method's loss
    has nothing of the kind."""
    cls, usual = methods.get(method), usual_settings(method, dataset)
    others: dict[str, dict[str, object]]
    match question:
        case "temperature":
            loss = usual.get("loss") or cls.card.default_loss
            return _of_the_loss(loss, losses.knobs(loss), usual.get("loss_knobs", cls.card.loss_knobs))
        case "batch":
            batch = int(usual.get("batch_size") or 128)
            sizes = [b for b in (batch // 4, batch // 2, 2 * batch) if 8 <= b <= len(dataset) // 4]
            first = Candidate(question, message("batch {batch}", batch=batch), {}, batch)
            labels = [message("batch {second}", second=b) for b in sizes]
            return [first, *(Candidate(question, x, {"batch_size": b}, b) for x, b in zip(labels, sizes, strict=True))]
        case "method":
            names = LABELED if (dataset.labels >= 0).any() else UNLABELED
            default, others = cls.card.title, {methods.get(m).card.title: {"method": m} for m in names if m != method}
        case "head":
            head = {"head": "nonlinear", **usual.get("method_knobs", {})}["head"]
            default, others = HEAD[head], {HEAD[h]: {"method.head": h} for h in HEAD if h != head}
        case _:
            default = N_("usual views")
            others = _recipe_changes(dataclasses.asdict(usual.get("recipe", Recipe())), dataset)
    return [Candidate(question, default, {}), *(Candidate(question, x, settings) for x, settings in others.items())]


def _of_the_loss(loss: str, knobs: Any, usual: Mapping[str, Any]) -> list[Candidate]:
    name, grid = ("temperature", TEMPERATURES) if "temperature" in knobs else ("margin", MARGINS)
    if name not in knobs:
        raise BadSetting("{loss} has neither a temperature nor a margin to choose", loss=loss)
    default = usual.get(name, knobs[name].default)
    sign = "τ" if name == "temperature" else "margin"
    if not isinstance(default, (int, float)):
        raise BadSetting("the {name} of {loss} is learned by default; there is none to choose", name=name, loss=loss)
    others = [v for v in grid if max(v / default, default / v) > NEAR]
    return [
        Candidate("temperature", f"{sign} {default:g}", {}, float(default)),
        *(Candidate("temperature", f"{sign} {v:g}", {f"loss.{name}": v}, v) for v in others),
    ]


def _recipe_changes(usual: Mapping[str, Any], dataset: Dataset) -> dict[str, dict[str, object]]:
    """One step away from the usual recipe at a time: settings by label."""
    _, c, h, _ = dataset.images.shape
    changes: dict[str, dict[str, object]] = {}
    changes["no mirroring" if usual["flip"] else "mirroring"] = {"flip": 0.0 if usual["flip"] else 0.5}
    if usual["crop"]:
        low = usual["crop_low"]
        changes["smaller crops"] = {"crop_low": round(max(0.08, low / 2), 2)}
        changes["larger crops"] = {"crop_low": round(min(0.9, (1 + low) / 2), 2)}
    if c == 3 and (usual["hue"] or usual["gray"]) and usual["jitter"]:
        changes["no hue shift, no gray"] = {"hue": 0.0, "gray": 0.0}
    if usual["jitter"]:
        changes["no color steps"] = {"jitter": 0.0, "gray": 0.0}
    if h >= 16 and not usual["blur"]:
        changes["with blur"] = {"blur": 0.5}
    return {label: {f"recipe.{k}": v for k, v in change.items()} for label, change in changes.items()}
