"""Scores of a run as its pages find them, without computing any."""

from collections.abc import Mapping

from contrastive_core.base.score import Scores, scores_to_json
from contrastive_core.runs.run import Run
from contrastive_core.spaces import results
from contrastive_core.spaces.space import LAYERS, TOWERS, Space


def keep_scores(run: Run, scores: Mapping[str, Scores], n_train: int = 0, n_test: int = 0) -> None:
    """Put scores by source ("h", "z", "raw", "random", "towers") of the test images where an evaluation is kept."""
    counts = {"how": "", "n": n_test, "n_train": n_train, "n_test": n_test}
    beside = {source: scores_to_json(scores[source]) for source in ("raw", "random") if source in scores}
    for layer in LAYERS:
        own = scores.get(layer, {})
        arrays = {f"{name}:{part}": array for name, one in own.items() for part, array in one.arrays.items()}
        result = results.Result({"scores": {"own": scores_to_json(own), **beside}, **counts}, arrays)
        results.write("scores", {"space": Space.of_run(run, "test", layer).values}, result)
    if TOWERS in scores:
        of_towers = {"own": scores_to_json(scores[TOWERS]), "chance": {}}
        found = results.Result({"scores": of_towers, "warnings": [], "notes": []})
        results.write("towers", {"space": Space.of_run(run, "test", TOWERS).values}, found)
