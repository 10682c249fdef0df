"""What the adviser shows before it trains: a first look at images, and a plan with its time."""

from __future__ import annotations

from contrastive_core.advice.first_look import in_words
from contrastive_core.advice.first_look import look as first_look
from contrastive_core.advice.planning import AdviceRequest, plan_advice
from contrastive_core.engine.answers.inputs import Values
from contrastive_core.engine.results import Result
from contrastive_core.progress import OnProgress


def look(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Facts of a data set, and what follows from them."""
    seen = first_look(values["dataset"], None, values["method"], device, on_progress)
    return Result({**seen.to_json(), "sentence": in_words(seen.facts)})


def plan(values: Values, on_progress: OnProgress, device: str) -> Result:
    """What an adviser would try, and how long it takes; ValueError where the time is too short."""
    request = AdviceRequest(
        values["dataset"], values["minutes"], values["choose"], method=values["method"], device=device
    )
    made = plan_advice(request, on_progress)
    return Result({"plan": made.to_json(), "sentence": made.sentence()})
