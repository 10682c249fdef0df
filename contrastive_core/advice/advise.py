"""One adviser from beginning to end: plan, search, answer, and the test images once, at the end."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np

from contrastive_core import runs
from contrastive_core.advice import plan as plans
from contrastive_core.advice.answer import answer
from contrastive_core.advice.baselines import baselines
from contrastive_core.advice.judge import held_out
from contrastive_core.advice.plan import Plan, folder_of
from contrastive_core.advice.search import Search
from contrastive_core.data import datasets
from contrastive_core.errors import BadSetting
from contrastive_core.evaluation.paired_tests import difference
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.storage import records
from contrastive_core.storage.lock import lock

__all__ = ["advise", "planned", "test_figures"]

EPOCHS = 20  # as `train` has it


def planned(
    dataset: str,
    minutes: float,
    choose: list[str] | None = None,
    name: str = "",
    method: str = "simclr",
    epochs: int = EPOCHS,
    root: str | None = None,
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> Plan:
    """The plan of a new adviser, after a few steps were timed; or that of one that was begun
    under this name, with the time asked for now. Raises ValueError with the sentence to show."""
    from contrastive_core.training.config import TrainConfig
    from contrastive_core.training.step_timing import seconds_per_epoch

    if name and (before := plans.load(name)) is not None:
        if before.dataset != dataset:
            raise BadSetting(f"{name} advises on {before.dataset}; choose another name")
        if choose is not None and tuple(plans.check_questions(choose)) != before.choose:
            raise BadSetting(f"{name} chooses {', '.join(before.choose)}; choose another name")
        return dataclasses.replace(before, minutes=minutes)
    choose = choose or ["temperature"]
    on_progress("reading images", None)
    data = datasets.load(dataset, "train", root)
    plans.check_questions(choose)
    held_out(data)  # its sentence comes before any timing
    on_progress("timing a few steps", None)
    config = TrainConfig(method=method, dataset=dataset, root=root, device=device)
    if "batch" not in choose and (batch := plans.fitting_batch(method, data)) is not None:
        config = dataclasses.replace(config, batch_size=batch)
    seconds = seconds_per_epoch(config)
    stem = "advice-" + "".join(c if c.isalnum() else "_" for c in dataset.split("/")[-1])[:24]
    chosen = name or plans.free_name(stem)
    return plans.make(chosen, data, method, choose, minutes, epochs, seconds, root, device)


def advise(plan: Plan, on_progress: OnProgress = ignore_progress) -> dict[str, Any]:
    """The answer, which also stands in the adviser's folder from the first judged run on.

    Raises: Locked where another process is at this adviser; CannotGoOn when a run was stopped.
    """
    folder = folder_of(plan.name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock(plans.lock_of(plan.name)):
        dataset = datasets.load(plan.dataset, "train", plan.root)
        search = Search(plan, dataset, on_progress)
        if plan.labeled:
            search.baselines = _baselines(search, on_progress)

        def write(search: Search) -> None:
            records.write_json(folder / "answer.json", answer(search))

        search.run(write)
        found = answer(search)
        if plan.labeled and found["best"] is not None:
            on_progress("the test images, once", 0.99)
            found["test"] = _test(search, found["best"])
        found["done"] = True
        records.write_json(folder / "answer.json", found)
    return found


def _baselines(search: Search, on_progress: OnProgress) -> dict[str, float]:
    """kNN without any training, made once for these images: more time does not change it."""
    plan, path = search.plan, folder_of(search.plan.name) / "baselines.json"
    of = {"fingerprint": search.dataset.fingerprint, "method": plan.method}
    with contextlib.suppress(OSError, ValueError, KeyError):
        kept = records.read_object(path)
        if kept["of"] == of:
            return {str(name): float(share) for name, share in kept["shares"].items()}
    on_progress("without any training", None)
    shares = baselines(search.dataset, search.rows, plan.method, plan.device)
    records.write_json(path, {"of": of, "shares": shares})
    return shares


def _test(search: Search, best: dict[str, Any]) -> dict[str, Any] | None:
    """kNN of the test images for the winner and the default, seed by seed."""
    assert search.default is not None  # it is tried first
    winner = next(t for t in search.tried.values() if t.label == best["label"])
    usual, mine = (t.at(best["epochs"]) for t in (search.default, winner))
    both = sorted(usual.keys() & mine.keys())
    if not both:
        return None
    a = [test_figures(mine[s].run, search.plan.device) for s in both]
    looks = 1 + _looks(search.plan)
    seen = "looked at for the first time" if looks == 1 else f"looked at for the {looks}. time"
    if best["is_default"]:
        value = float(np.nanmean(a))
        text = f"On the test images, {seen}: {100 * value:.1f} % by kNN."
        return {"best": value, "default": value, "sentence": text}
    b = [test_figures(usual[s].run, search.plan.device) for s in both]
    d, (low, high) = difference(np.mean(a, 0), np.mean(b, 0))
    values = float(np.nanmean(a)), float(np.nanmean(b))
    text = (
        f"On the test images, {seen}: {best['label']} {100 * values[0]:.1f} % by kNN, "
        f"the default {100 * values[1]:.1f} %; difference {100 * d:+.1f} points "
        f"({100 * low:.1f} to {100 * high:.1f})."
    )
    return {"best": values[0], "default": values[1], "interval": (low, high), "sentence": text}


def _looks(plan: Plan) -> int:
    """How many other advisers have looked at these test images: to choose among advisers is to
    choose on them."""
    count = 0
    for name in plans.names():
        found = plans.read_answer(name) if name != plan.name else None
        if found and found.get("test") and found["plan"].get("dataset") == plan.dataset:
            count += 1
    return count


def test_figures(name: str, device: str) -> np.ndarray:
    """Whether each test image of a run is named right by kNN: (n)."""
    from contrastive_core import metrics
    from contrastive_core.evaluation.embed import embed_run

    run = runs.load(name)
    train, test = (embed_run(run, split, "h", device) for split in ("train", "test"))
    result = metrics.create("knn")(train, test)
    assert result.per_sample is not None
    return result.per_sample
