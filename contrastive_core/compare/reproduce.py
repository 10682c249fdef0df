"""Do the published figures of a run follow from its weights? They are computed anew, compared.

Another processor adds in another order, so embeddings differ in their last digits and a sample that lies on a border
may fall to its other side. Accepted is what cannot change a reading: a tenth of the width of the figure's 95 %
interval, two samples where that is more; 1 % of a figure that has no interval.
"""

from collections.abc import Sequence

from contrastive_core.base.messages import N_, message
from contrastive_core.base.score import Score, Scores
from contrastive_core.compare import embed
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.compare.evaluation import SOURCES, TOWERS, Evaluation, name_of, read_evaluation
from contrastive_core.compare.zero_shot import scores_of_towers
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.graphs import Graphs

__all__ = ["ScoreCache", "accepted", "computed_anew", "deviations"]

ScoreCache = dict[tuple[str, ...], Scores]
CHECKED = ("knn", "linear_probe", "alignment", "uniformity", "rankme")  # the scores that pages show first
TENTH = 0.1  # of an interval's width
SAMPLES = 2
RELATIVE = 0.01


def computed_anew(
    run: Run, names: Sequence[str], split: str = "test", device: str = "auto", cache: ScoreCache | None = None
) -> Evaluation:
    """Recompute the scores from the run's weights, without caches and without writing.

    Args: cache: scores of rows that were met before, pixels say; filled for the next run.
    """
    cache = {} if cache is None else cache
    train, test = (_sources(run, s, device) for s in ("train", split))
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
    """A sentence for each published figure that the weights do not give.

    Args: cache: as of `computed_anew`. Raises: ValueError where data or weights cannot be read.
    """
    record = read_evaluation(run)
    if record is None:
        return [N_("its scores are missing or belong to other weights")]
    anew = computed_anew(run, CHECKED, record.split, device, cache)
    return [
        message(
            "{name} of {sources} is {value}, not {published_value} (accepted: {accepted} to either side)",
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


def _sources(run: Run, split: str, device: str) -> dict[str, EmbeddingSet]:
    dataset = embed.data_of(run, split)
    untrained, _ = embed.random_encoder(run, dataset, device)
    trained = embed.from_weights(run, dataset, device)
    return {**trained, "raw": embed.raw_pixels(dataset), "random": untrained}
