"""The adviser: search, answer, and the test images once, at the end."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from contrastive_core import metrics
from contrastive_core.advice.answer import answer_of
from contrastive_core.advice.first_look import baselines
from contrastive_core.advice.method_search import MethodSearch
from contrastive_core.advice.search import Search
from contrastive_core.advice.start_search import StartSearch
from contrastive_core.data import datasets
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.verdicts import SettingScores, contrast
from contrastive_core.messages import N_, message
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records import runs
from contrastive_core.records.advice import Plan, adviser_names, folder_of, lock_of
from contrastive_core.records.advice_answer import Answer, AnswerRow, read_answer
from contrastive_core.storage import json_files
from contrastive_core.storage.lock import lock


def advise(
    plan: Plan, on_progress: OnProgress = ignore_progress, wait_for_device: Callable[[str], None] = lambda device: None
) -> Answer:
    """The answer, which is also written into the adviser's folder from the first scored run on.

    Args: wait_for_device: called before each training. Raises: Locked where another process works on this adviser;
        CannotGoOn when a run was stopped.
    """
    folder = folder_of(plan.name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock(lock_of(plan.name)):
        began = time.monotonic()
        dataset = datasets.load(plan.dataset, "train", plan.root)
        search = (StartSearch if plan.is_start else MethodSearch if plan.is_methods else Search)(
            plan, dataset, on_progress
        )
        search.wait_for_device = wait_for_device
        search.baselines = _baselines(search, on_progress) if plan.labeled and not plan.is_start else {}
        search.beside = time.monotonic() - began
        search.run(lambda search: json_files.write_json(folder / "answer.json", answer_of(search)))
        answer = answer_of(search)
        if plan.labeled and not (plan.is_start or plan.is_methods) and answer["best"] is not None:
            on_progress(N_("the test images, once"), 0.99)
            answer["test"] = _test(search, answer["best"])
        answer["done"] = True
        json_files.write_json(folder / "answer.json", answer)
    return answer


def _baselines(search: Search, on_progress: OnProgress) -> dict[str, float]:
    """kNN without any training, made once for these images: more time does not change it."""
    plan, path = search.plan, folder_of(search.plan.name) / "baselines.json"
    of = {"fingerprint": search.dataset.fingerprint, "method": plan.method}
    with contextlib.suppress(OSError, ValueError, KeyError):
        record = json_files.read_object(path)
        if record["of"] == of:
            return {str(name): float(share) for name, share in record["shares"].items()}
    on_progress(N_("without any training"), None)
    shares = baselines(search.dataset, search.rows, plan.method, plan.device)
    json_files.write_json(path, {"of": of, "shares": shares})
    return shares


def _test(search: Search, best: AnswerRow) -> dict[str, Any] | None:
    """kNN of the test images for the winner and the default, over images and seeds."""
    assert search.default is not None  # it is tried first
    winner = next(t for t in search.trials.values() if t.label == best["label"])
    usual, mine = (t.by_seed(best["epochs"]) for t in (search.default, winner))
    both = sorted(usual.keys() & mine.keys())
    if not both:
        return None
    others = [read_answer(name) for name in adviser_names() if name != search.plan.name]
    # to choose among advisers is to choose on these test images
    looks = 1 + sum(bool(o and o.get("test") and o["plan"].get("dataset") == search.plan.dataset) for o in others)
    seen = N_("evaluated for the first time") if looks == 1 else message("evaluation number {looks}", looks=looks)
    first = _test_scores(best["label"], {seed: mine[seed].run for seed in both}, search.plan.device)
    if best["is_default"]:
        text = message("On the test images, {seen}: {value} % by kNN.", seen=seen, value=f"{100 * first.mean:.1f}")
        return {"best": first.mean, "default": first.mean, "sentence": text}
    second = _test_scores("default", {seed: usual[seed].run for seed in both}, search.plan.device)
    found = contrast(first, second)
    text = message(
        "On the test images, {seen}: {label} {value} % by kNN, the default {second} %; {difference} points",
        seen=seen,
        label=best["label"],
        value=f"{100 * first.mean:.1f}",
        second=f"{100 * second.mean:.1f}",
        difference=f"{100 * found.difference:+.1f}",
    )
    if found.interval is None:
        text += N_(" (fewer than three seeds: no interval).")
    else:
        low, high = (f"{100 * end:.1f}" for end in found.interval)
        text += message(
            " (95 % CI over images and {seeds} seeds: {low} to {high}).", seeds=len(both), low=low, high=high
        )
    return {"best": first.mean, "default": second.mean, "interval": found.interval, "sentence": text}


def _test_scores(label: str, runs_by_seed: dict[int, str], device: str) -> SettingScores:
    """kNN accuracy of the test images by seed, and which were right."""
    right = {seed: score_test_images(name, device) for seed, name in runs_by_seed.items()}
    return SettingScores(label, {seed: float(np.nanmean(one)) for seed, one in right.items()}, right)


def score_test_images(name: str, device: str) -> np.ndarray:
    """Whether kNN gives each test image of a run its class: (n)."""
    run = runs.load(name)
    train, test = (embed_run(run, split, "h", device) for split in ("train", "test"))
    result = metrics.create("knn")(train, test)
    assert result.per_sample is not None
    return result.per_sample
