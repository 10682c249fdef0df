"""Scores of embeddings and of vectors in a file.

Nothing is selected on the test set. Embeddings are computed in evaluation mode and in float32, whatever precision the
training used. Without labels, label-free scores replace the accuracies. A file without a file of training rows is
split in the same way as in the app: by its column `split`, or a fixed fifth of each class is scored.

Published scores of a run are recomputed from its weights and compared. Rounding differs between processors, so
embeddings differ in their last digits, and a few samples near a decision boundary may change sides. The accepted
deviation is a tenth of the width of the score's 95 % interval or two samples, whichever is more; 1 % of a score
without an interval.

Zero-shot accuracy (CLIP, arXiv 2103.00020, section 3.1) compares an image with the names of the classes. A class vector
is the mean of the unit prompts, one prompt per template. The templates are fixed in advance and stored in the score's
settings."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contrastive_core import metrics
from contrastive_core.base.errors import BadSetting, CannotScore
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message, sentence
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.score import Score, Scores, scores_to_json
from contrastive_core.compare import embed
from contrastive_core.compare.embed import data_of, embed_run, encode_texts, load_model, tower_rows
from contrastive_core.compare.evaluation import SOURCES, ZERO_SHOT, Evaluation, name_of, read_evaluation
from contrastive_core.compare.towers import Share, tower_record, tower_scores, zero_shot
from contrastive_core.metrics import Metric
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.loaded_vectors import check_usable
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.space import TOWERS, train_test_split
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
    graphs = graphs or Graphs()
    return {name: _score(metrics.create(name), train, test, graphs) for name in names}


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


def _score(metric: Metric, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> Score:
    try:
        result = metric(train, test, graphs)
    except CannotScore as error:
        return Score(metric.title, metric.reading, missing=sentence(error))
    sets = (train, test) if train is not None and metric.needs_train else (test,)
    samples = [result.extras.get("sample"), *(rows.provenance.get("sample") for rows in sets)]  # of sampled rows
    if sample := ", ".join(str(sample) for sample in samples if sample):
        result.extras["sample"] = sample
    per_sample = {} if result.per_sample is None else {"per_sample": result.per_sample}
    return Score(
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


def evaluate_vectors(
    name: str,
    vectors: EmbeddingSet,
    train: tuple[str, EmbeddingSet] | None = None,
    chosen: Sequence[str] | None = None,
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> JsonObject:
    """Score the vectors of a file, or recall between its two towers.

    Args: name: of the file; train: name and rows of a training file; default: `train_test_split`; chosen: names of
        metrics, default all. Raises: UnknownName; UnusableEmbedding."""
    names = metric_names(chosen)
    if chosen is None and (towers := towers_of(vectors)) is not None:
        return tower_record(towers, name)
    every, taught = _usable(name, vectors), None if train is None else _usable(*train)
    test = every
    if taught is None and every.labels is not None:
        taught, test, _, _ = train_test_split(every)
    on_progress("scoring", None)
    scores = evaluate_split(names, (taught, test), every, Graphs(device, on_progress=on_progress))
    return {
        "file": name,
        "train": train[0] if train else None,
        "n": len(every),
        "left_out": {reason: len(at) for reason, at in vectors.problems.items()},
        "rows": scored_rows(names, test, every),
        "n_test": len(test),
        "n_train": len(taught) if taught else 0,
        "scores": scores_to_json(scores),
    }


def _usable(name: str, vectors: EmbeddingSet) -> EmbeddingSet:
    """Return the rows that are finite and not zero. Raises UnusableEmbedding if there are too few."""
    usable = vectors.usable
    check_usable(name, len(usable), {reason: len(at) for reason, at in vectors.problems.items()})
    return vectors if len(usable) == len(vectors) else vectors.take(usable)


def computed_anew(
    run: Run, names: Sequence[str], split: str = "test", device: str = "auto", cache: ScoreCache | None = None
) -> Evaluation:
    """Recompute the scores from the run's weights, without reading or writing caches on disk.

    Args: cache: scores by the content of the rows, shared between runs (for example for raw pixels); it is extended."""
    cache = {} if cache is None else cache
    train, test = (
        {
            **embed.from_weights(run, dataset, device),
            "raw": embed.raw_pixels(dataset),
            "random": embed.random_encoder(run, dataset, device)[0],
        }
        for dataset in (embed.data_of(run, s) for s in ("train", split))
    )
    scores = {}
    for source in SOURCES:
        key = (*names, train[source].content_hash, test[source].content_hash)
        if key not in cache:
            cache[key] = evaluate_sets(names, train[source], test[source], Graphs(device))
        scores[source] = cache[key]
    if run.has_towers:
        scores[TOWERS] = scores_of_towers(run, split, device, test["z"])
    return Evaluation(run=run.name, split=split, scores=scores, n_train=len(train["h"]), n_test=len(test["h"]))


def deviations(run: Run, device: str = "auto", cache: ScoreCache | None = None) -> list[str]:
    """Describe each published score that differs from the recomputed one.

    Args: cache: see `computed_anew`. Raises: ValueError if data or weights cannot be read."""
    record = read_evaluation(run)
    if record is None:
        return [N_("its scores are missing or belong to other weights")]
    anew = computed_anew(run, CHECKED, record.split, device, cache)
    return [
        message(
            "{name} of {sources} is {value}, not {published_value} (accepted deviation: ±{accepted})",
            name=name,
            sources=name_of(source),
            value=value,
            published_value=published.value,
            accepted=f"{accepted(published):.2g}",
        )
        for source, scores in record.scores.items()
        for name, published in scores.items()
        if (name in CHECKED or source == TOWERS)
        and published.value is not None
        and ((value := anew.value(source, name)) is None or abs(value - published.value) > accepted(published))
    ]


def accepted(score: Score) -> float:
    """Return the accepted difference between a recomputed and a published value."""
    assert score.value is not None
    if score.interval is None:
        return RELATIVE * abs(score.value)
    width = score.interval[1] - score.interval[0]
    n = score.number("n") if score.unit == "share" else None
    return max(TENTH * width, SAMPLES / n if n else 0.0) + 1e-12


# --- zero-shot accuracy ------------------------------------------------------------------------------


def check_templates(templates: Sequence[str]) -> tuple[str, ...]:
    """Return the templates without blank ones. Raises BadSetting for none, too many, or a template without `{}`."""
    kept = tuple(t.strip() for t in templates if t.strip())
    if not 1 <= len(kept) <= MOST_TEMPLATES:
        raise BadSetting("one to {most} templates are needed; got {n}", most=MOST_TEMPLATES, n=len(kept))
    for template in kept:
        if template.count("{}") != 1 or len(template) > LONGEST:
            raise BadSetting(SLOT, template=repr(template[:LONGEST]))
    return kept


def prompts_of(classes: Sequence[str], templates: Sequence[str]) -> list[str]:
    """Return every class name in every template, class by class."""
    words = [name.replace("_", " ") for name in classes]
    return [template.replace("{}", name) for name in words for template in templates]


def zero_shot_scores(
    towers: Towers, opened: Callable[[], Any], templates: Sequence[str] = DEFAULT_TEMPLATES
) -> tuple[Scores, Scores]:
    """Return the zero-shot accuracy of the images in a run's two towers, and its chance level, {} without an accuracy.
    Args: opened: returns the run's method. Raises BadSetting for invalid templates."""
    templates, rows = check_templates(templates), towers.rows
    try:
        share = _share(towers, templates, opened)
    except CannotScore as error:
        return {"zero_shot": Score(ZERO_SHOT, missing=sentence(error))}, {}
    values = {"count": len(templates), "others": len(rows.classes) - 1, "chance": f"{100 * share.chance:.1f}"}
    reading = message(READING, **values)
    settings, about = {"templates": list(templates)}, {"n": share.n}
    score = Score(
        title=ZERO_SHOT,
        reading=reading,
        value=share.value,
        interval=share.interval,
        unit="share",
        higher_is_better=True,
        settings=settings,
        extras=about,
    )
    return {"zero_shot": score}, {"zero_shot": Score(ZERO_SHOT, reading, share.chance, unit="share")}


def _share(towers: Towers, templates: Sequence[str], opened: Callable[[], Any]) -> Share:
    rows, classes = towers.rows, towers.rows.classes
    if len(classes) < 2 or rows.labels is None:
        raise CannotScore(NO_CLASSES)
    method = opened()
    tower = method.text_tower
    if strange := [name for name in classes if not tower.known_words(name.replace("_", " "))]:
        raise CannotScore(UNKNOWN, names=", ".join(map(repr, strange[:5])))
    prompts = encode_texts(method, prompts_of(classes, templates))
    of = np.repeat(np.arange(len(classes)), len(templates))
    return zero_shot(rows.features[towers.a], prompts, of, rows.labels[towers.a])


def scores_of_towers(run: Run, split: str, device: str = "auto", images: EmbeddingSet | None = None) -> Scores:
    """Return recall in both directions, modality gap and zero-shot accuracy of a run's split, or the reason if its
    captions cannot be read. Args: images: z of the split, to bypass the cache."""
    try:
        dataset = data_of(run, split)
        method = load_model(run, dataset, device)
        if images is None:
            rows = embed_run(run, split, TOWERS, device, method=method)
        else:
            rows = tower_rows(method, images, dataset)
        towers = towers_of(rows)
    except (ValueError, OSError) as error:
        return {"zero_shot": Score(ZERO_SHOT, missing=sentence(error))}
    assert towers is not None
    return {**zero_shot_scores(towers, lambda: method)[0], **tower_scores(towers)[0]}
