"""Scores of embeddings, those that a run publishes recomputed, and zero-shot accuracy.

Nothing is selected on the test set. Embeddings are computed in evaluation mode and in float32, whatever precision the
training used. Without labels, label-free scores replace the accuracies.

Published scores of a run are recomputed from its weights and compared. Rounding differs between processors, so
embeddings differ in their last digits, and a few samples near a decision boundary may change sides. The accepted
deviation is a tenth of the width of the score's 95 % interval or two samples, whichever is more; 1 % of a score
without an interval.

Zero-shot accuracy (CLIP, arXiv 2103.00020, section 3.1) compares an image with the names of the classes. A class vector
is the mean of the unit prompts, one prompt per template, scaled to length 1. The templates are fixed in advance and
stored in the score's settings."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contrastive_core import metrics
from contrastive_core.base.errors import BadSetting, CannotScore
from contrastive_core.base.messages import N_, message, sentence
from contrastive_core.base.score import Score, Scores, wilson
from contrastive_core.compare.embed import (
    data_of,
    encode_texts,
    from_weights,
    load_model,
    random_encoder,
    raw_pixels,
    tower_rows,
)
from contrastive_core.compare.evaluation import SOURCES, ZERO_SHOT, name_of, read_evaluation
from contrastive_core.compare.towers import tower_scores
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.space import TOWERS
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES, Towers, towers_of

ScoreCache = dict[tuple[str, ...], Scores]
CHECKED = ("knn", "linear_probe", "alignment", "uniformity", "rankme")  # the scores that pages show first
TENTH = 0.1  # of an interval's width
SAMPLES = 2
RELATIVE = 0.01
READING = N_(
    "Share of images that are more similar to the name of their own class, put into {count} "
    "sentences, than to the names of the {others} other classes. Higher is better. Chance is "
    "{chance} %."
)
NO_CLASSES = N_("zero-shot accuracy needs at least two named classes")
UNLABELED = N_("zero-shot accuracy needs a labeled image and a prompt for its class")
UNKNOWN = N_("the text tower has not learned these class names: {names}")
SLOT = N_("a template needs one pair of braces where the class name goes; got {template}")
MOST_TEMPLATES, LONGEST = 50, 200  # and characters of one


def metric_names(chosen: Sequence[str] | None) -> list[str]:
    """Return the given names, or the names of all metrics. Raises UnknownName."""
    names = list(chosen) if chosen else metrics.names()
    for name in names:
        metrics.get(name)
    return names


def evaluate_sets(
    names: Sequence[str], train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs | None = None
) -> Scores:
    """Compute each metric with its default settings; a score without a value holds the reason."""
    graphs, scores = graphs or Graphs(), Scores()
    for name in names:
        metric = metrics.create(name)
        try:
            result = metric(train, test, graphs)
        except CannotScore as error:
            scores[name] = Score(metric.title, metric.reading, missing=sentence(error))
            continue
        sets = (train, test) if train is not None and metric.needs_train else (test,)
        samples = [result.extras.get("sample"), *(rows.provenance.get("sample") for rows in sets)]  # of sampled rows
        if sample := ", ".join(str(sample) for sample in samples if sample):
            result.extras["sample"] = sample
        per_sample = {} if result.per_sample is None else {"per_sample": result.per_sample}
        scores[name] = Score(
            title=metric.title,
            reading=metric.reading,
            value=result.value,
            interval=result.interval,
            unit=result.unit,
            higher_is_better=metric.higher_is_better,
            settings=dataclasses.asdict(metric),
            extras=result.extras,
            arrays={**per_sample, **result.arrays},
        )
    return scores


def evaluate_split(
    names: Sequence[str],
    split: tuple[EmbeddingSet | None, EmbeddingSet],
    every: EmbeddingSet,
    graphs: Graphs | None = None,
) -> Scores:
    """Score rows of which some are training rows: metrics that need training rows score the test rows of `split`, all
    others score every row."""
    scores: Scores = {}
    for name in names:
        train, judged = split if metrics.get(name).needs_train else (None, every)
        scores |= evaluate_sets([name], train, judged, graphs)
    return scores


def scored_rows(names: Sequence[str], test: EmbeddingSet, every: EmbeddingSet) -> dict[str, int]:
    """Return the number of rows behind each score of `evaluate_split`; labeled ones if the metric needs labels."""
    judged = {name: test if metrics.get(name).needs_train else every for name in names}
    return {k: rows.n_labeled if metrics.get(k).needs_labels else len(rows) for k, rows in judged.items()}


def deviations(run: Run, device: str = "auto", cache: ScoreCache | None = None) -> list[str]:
    """Describe each published score that differs from the one recomputed from the run's weights, without any cache on
    the disk.

    Args: cache: scores by the content of the rows, shared between runs (for example for raw pixels); it is extended.
    Raises: ValueError if data or weights cannot be read."""
    record, cache = read_evaluation(run), {} if cache is None else cache
    if record is None:
        return [N_("its scores are missing or belong to other weights")]
    datasets = [data_of(run, split) for split in ("train", record.split)]
    train, test = (
        {
            **from_weights(run, dataset, device),
            "raw": raw_pixels(dataset),
            "random": random_encoder(run, dataset, device)[0],
        }
        for dataset in datasets
    )
    anew: dict[str, Scores] = {}
    for source in SOURCES:
        key = (*CHECKED, train[source].content_hash, test[source].content_hash)
        if key not in cache:
            cache[key] = evaluate_sets(CHECKED, train[source], test[source], Graphs(device))
        anew[source] = cache[key]
    if run.has_towers:
        method = load_model(run, datasets[1], device)
        towers = towers_of(tower_rows(method, test["z"], datasets[1]))
        assert towers is not None
        anew[TOWERS] = {**zero_shot_scores(towers, lambda: method)[0], **tower_scores(towers)[0]}
    found = list[str]()
    for source, scores in record.scores.items():
        for name, published in scores.items():
            if published.value is None or not (name in CHECKED or source == TOWERS):
                continue
            again, most = anew[source].get(name), accepted(published)
            value = None if again is None else again.value
            if value is None or abs(value - published.value) > most:
                text = N_("{name} of {sources} is {value}, not {published_value} (accepted deviation: ±{accepted})")
                values = {"name": name, "sources": name_of(source), "value": value, "accepted": f"{most:.2g}"}
                found.append(message(text, **values, published_value=published.value))
    return found


def accepted(score: Score) -> float:
    """Return the accepted difference between a recomputed and a published value."""
    assert score.value is not None
    if score.interval is None:
        return RELATIVE * abs(score.value)
    width = score.interval[1] - score.interval[0]
    n = score.number("n") if score.unit == "share" else None
    return max(TENTH * width, SAMPLES / n if n else 0.0) + 1e-12


def zero_shot_scores(
    towers: Towers, opened: Callable[[], Any], templates: Sequence[str] = DEFAULT_TEMPLATES
) -> tuple[Scores, Scores]:
    """Return the zero-shot accuracy of the images in a run's two towers, and its chance level, {} without an accuracy.
    Args: opened: returns the run's method. Raises BadSetting for none, too many or invalid templates."""
    templates = [template.strip() for template in templates if template.strip()]
    if not 1 <= len(templates) <= MOST_TEMPLATES:
        raise BadSetting("one to {most} templates are needed; got {n}", most=MOST_TEMPLATES, n=len(templates))
    for template in templates:
        if template.count("{}") != 1 or len(template) > LONGEST:
            raise BadSetting(SLOT, template=repr(template[:LONGEST]))
    rows, images = towers.rows, towers.rows.features[towers.a]
    words = [name.replace("_", " ") for name in rows.classes]
    labels = np.full(len(images), -1) if rows.labels is None else rows.labels[towers.a]
    is_judged = (labels >= 0) & np.isfinite(images).all(1) & images.any(1)
    try:
        if len(words) < 2 or rows.labels is None:
            raise CannotScore(NO_CLASSES)
        method = opened()
        if strange := [name for name in words if not method.text_tower.known_words(name)]:
            raise CannotScore(UNKNOWN, names=", ".join(map(repr, strange[:5])))
        if not is_judged.any():
            raise CannotScore(UNLABELED)
    except CannotScore as error:
        return {"zero_shot": Score(ZERO_SHOT, missing=sentence(error))}, {}
    z = unit_rows(encode_texts(method, [template.replace("{}", name) for name in words for template in templates]))
    prototypes = unit_rows(z.reshape(len(words), len(templates), -1).mean(1))  # (classes, e)
    predicted = (unit_rows(images[is_judged]) @ prototypes.T).argmax(1)
    right, n, chance = int((predicted == labels[is_judged]).sum()), int(is_judged.sum()), 1 / len(words)
    values = {"count": len(templates), "others": len(words) - 1, "chance": f"{100 * chance:.1f}"}
    score = Score(
        title=ZERO_SHOT,
        reading=message(READING, **values),
        value=right / n,
        interval=wilson(right, n),
        unit="share",
        higher_is_better=True,
        settings={"templates": templates},
        extras={"n": n},
    )
    return {"zero_shot": score}, {"zero_shot": Score(ZERO_SHOT, score.reading, chance, unit="share")}
