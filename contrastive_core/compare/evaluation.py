"""The scores of a run in one record: of h and z, the baselines (raw pixels, untrained encoder), and two towers.
They come from the results store, so pages, tables and commands show the same values. Torch-free.

References are runs that are compared with every other run on the same images, such as an imported encoder that training
should beat. The user names them once; the list is stored in `data_home()`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.json_files import JsonObject, schema_of
from contrastive_core.base.messages import N_, message, sentence
from contrastive_core.base.score import Score, Scores, scores_from_json, scores_to_json
from contrastive_core.base.storage import data_home
from contrastive_core.compare.verdicts import ACCURACIES
from contrastive_core.runs.run import Run
from contrastive_core.spaces import results
from contrastive_core.spaces.results import Result, Values
from contrastive_core.spaces.space import LAYERS, TOWERS, Space
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES

SOURCES = {
    "h": N_("encoder output (h)"),
    "z": N_("after the head (z)"),
    "raw": N_("raw pixels"),
    "random": N_("untrained encoder"),
}
BESIDE = ("raw", "random")  # baselines of every run
OF_TOWERS = N_("image and text z")
ZERO_SHOT = N_("Zero-shot accuracy")
PREFIX = "reference:"  # of a source of scores; the run's name follows
NO_REFERENCE = "none"  # on the command line: no reference
MOST_REFERENCES = 20

Read = Callable[[str, Values], Result | None]  # the result of a kind and its values


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of one split of a run by source ("h", "z", "raw", "random", "towers")."""

    run: str
    split: str
    scores: dict[str, Scores] = field(default_factory=dict)
    n_train: int = 0
    n_test: int = 0

    def score(self, source: str, name: str) -> Score | None:
        """Return a score; None if it is missing or has no value."""
        score = self.scores.get(source, {}).get(name)
        return None if score is None or score.value is None else score

    def value(self, source: str, name: str) -> float | None:
        """Return the value of a score; None if it is missing or has no value."""
        score = self.score(source, name)
        return None if score is None else score.value

    def only(self, names: Collection[str]) -> Evaluation:
        """Return a copy with the scores of these metrics only."""
        scores = {k: {n: v for n, v in s.items() if n in names} for k, s in self.scores.items()}
        return dataclasses.replace(self, scores=scores)

    def to_json(self) -> JsonObject:
        """Return plain values without arrays."""
        return {**vars(self), "scores": {k: scores_to_json(s) for k, s in self.scores.items()}}


def name_of(source: str) -> str:
    """Return the title of a source of scores, including reference runs; "" for unknown sources."""
    if source.startswith(PREFIX):
        return message("{name}, reference", name=source.removeprefix(PREFIX))
    return {**SOURCES, TOWERS: OF_TOWERS}.get(source, "")


def read_evaluation(run: Run, split: str = "test", metrics: Sequence[str] = ()) -> Evaluation | None:
    """Read the scores of a split for the run's current weights; None if they were not computed.
    Args: metrics: names of the metrics in the request; default: all."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # missing or damaged files
        return gather(run, split, results.read, metrics)
    return None


def read_accuracies(run: Run) -> Evaluation | None:
    """Read only the accuracies on the test split and the scores of towers, without values per sample; without an
    evaluation, the accuracies of a comparison. They are cached in memory by file, so a list of thousands of runs reads
    only the changed ones."""
    for read, kind, layer in ((_accuracies, "scores", "z"), (_compared, "accuracies", "h")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            path = results.path(kind, {"space": Space.of_run(run, layer=layer).values})
            return read(run.name, path, path.stat().st_mtime_ns)
    return None


@lru_cache(maxsize=20_000)
def _compared(name: str, path: Path, changed: int) -> Evaluation:
    meta = results.read_meta(path)
    counts = {key: int(meta[key]) for key in ("n_train", "n_test")}
    return Evaluation(name, "test", {"h": scores_from_json(meta["scores"])}, **counts)


@lru_cache(maxsize=20_000)  # some kilobytes each
def _accuracies(name: str, path: Path, changed: int) -> Evaluation | None:
    def read(kind: str, values: Values) -> Result | None:
        if not (place := results.path(kind, values)).exists():
            return None
        meta = results.read_meta(place)
        kept = {k: {n: s for n, s in v.items() if n in ACCURACIES} or v for k, v in meta["scores"].items()}
        return Result({**meta, "scores": kept})

    return gather(runs.load(name), "test", read)


def gather(run: Run, split: str, read: Read, metrics: Sequence[str] = ()) -> Evaluation | None:
    """Collect the scores of a split from the results of `read`; None if those of h or z are missing.
    Args: metrics: names of the metrics in the request; default: all, with the scores of two towers. Raises
        ValueError without weights."""
    scores, counts = dict[str, Scores](), dict[str, int]()
    if run.has_towers and not metrics:
        try:
            space = {"space": Space.of_run(run, split, TOWERS).values}
            answers = read("zero_shot", {**space, "templates": list(DEFAULT_TEMPLATES)}), read("towers", space)
            own = [scores_from_json(answer.meta["scores"]["own"]) for answer in answers if answer]
        except (ValueError, OSError) as error:  # the captions cannot be read
            own = [{"zero_shot": Score(ZERO_SHOT, missing=sentence(error))}]
        scores[TOWERS] = {name: score for one in own for name, score in one.items()}
    for layer in LAYERS:
        values = {"space": Space.of_run(run, split, layer).values}
        result = read("scores", {**values, "metrics": list(metrics)} if metrics else values)
        if result is None:
            return None
        of = {source: scores_from_json(plain) for source, plain in result.meta["scores"].items() if source != "own"}
        scores = {layer: scores_from_json(result.meta["scores"]["own"], result.arrays)} | of | scores
        counts = {name: int(result.meta[name]) for name in ("n_train", "n_test")}
    return Evaluation(run.name, split, {k: scores[k] for k in (*SOURCES, TOWERS) if k in scores}, **counts)


def evaluation_path(run: Run) -> Path:
    """Return the file of an evaluation on the test split that is written last. Raises ValueError without weights."""
    return results.path("scores", {"space": Space.of_run(run, layer="z").values})


# --- references -------------------------------------------------------------------------------------


REFERENCES = schema_of(dict[str, list[str]])  # of the file with their names


def reference_names() -> list[str]:
    """Return the names of the references, in the user's order; none if the file is missing or damaged."""
    try:
        names = json_files.read_object(data_home() / "references.json", REFERENCES)["runs"]
    except (OSError, ValueError, KeyError):
        return []
    return [str(name) for name in names][:MOST_REFERENCES]


def set_references(names: list[str]) -> None:
    """Replace the list. Raises BadSetting for more than MOST_REFERENCES names."""
    if len(names) > MOST_REFERENCES:
        raise BadSetting("at most {most} references; remove one first", most=MOST_REFERENCES)
    json_files.write_json(data_home() / "references.json", {"runs": names})


def add_reference(name: str) -> None:
    """Add a run to the references. Raises ValueError if it does not exist or has no weights."""
    runs.load(name).weights_hash()
    set_references([*(one for one in reference_names() if one != name), name])


def remove_reference(name: str) -> None:
    """Remove a run from the references. Raises BadSetting if it is not one."""
    names = reference_names()
    if name not in names:
        listed = ", ".join(names) or N_("none")
        raise BadSetting("{name} is not among the references: {listed}", name=repr(name), listed=listed)
    set_references([one for one in names if one != name])


def references_on(data_key: str, but: str = "") -> list[Run]:
    """Return the references on some images, except the run `but`. Deleted runs are skipped.
    Args: data_key: as from `Run.data_key`."""
    found = []
    for name in reference_names():
        try:
            run = runs.load(name)
        except (ValueError, OSError):  # gone, or damaged
            continue
        if name != but and run.weights.exists() and run.data_key == data_key:
            found.append(run)
    return found


def references_of(run: Run) -> list[Run]:
    """Return the references of a run: other runs on the same images."""
    return references_on(run.data_key, but=run.name)


def references_named(names: list[str] | None, data_key: str, but: str = "") -> list[Run]:
    """Return the references that a command names, or the stored ones if it names none. Raises BadSetting for a run on
    other images, ValueError for one without weights."""
    if names is None:
        return references_on(data_key, but)
    found = [runs.load(name) for name in dict.fromkeys(names) if name != NO_REFERENCE]
    for run in found:
        run.weights_hash()
        if run.data_key != data_key:
            raise BadSetting(
                "{name} uses {own}, not {data}: `import run:{name} --dataset {data}` creates a run on {data}",
                name=run.name,
                own=run.data_key,
                data=data_key,
            )
    return found
