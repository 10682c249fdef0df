"""Two towers in the Loss Lab: whether the chosen rows are of two, and which losses run between them."""

from typing import Any

from contrastive_core.records import embedding_ref, loaded_vectors
from contrastive_core.records.lab_towers import RUN_TOWERS, SOURCE, direction_names
from contrastive_core.records.lab_view import STEP, BatchRequest
from contrastive_core.records.run import Run
from contrastive_core.records.towers import are_tower_names
from contrastive_lab import cache, query_params
from contrastive_lab.locale import _

FIRST_LOSS = "info_nce"  # CLIP's
FILE_KEY = "lab-file"  # of the widget that chooses loaded vectors


def directions_of_file(key: str) -> dict[str, str]:
    """Directions between the towers of loaded vectors, by name; {} where they are of one tower, or gone."""
    try:
        rows = cache.embedding(embedding_ref.of_vectors(key))
    except ValueError:
        return {}
    towers = None if rows is None else cache.towers(rows)
    return {} if towers is None else direction_names(towers.names)


def directions_of(run: Run, source: str, file: str | None) -> dict[str, str]:
    """The same of a source of rows; file: the key of the vectors that are chosen, if any."""
    if source in SOURCE:
        return direction_names(RUN_TOWERS)
    if source != "file":
        return directions_of_recording(run, source)
    return directions_of_file(file) if file else {}


def directions_of_recording(run: Run, source: str) -> dict[str, str]:
    """Directions between the towers of a recording's steps; {} where they are of one encoder."""
    names = run.manifest.get("recording", {}).get("towers") if source.startswith(STEP) else None
    return direction_names((names[0], names[1])) if are_tower_names(names) else {}


def current_directions(run: Run, source: str) -> dict[str, str]:
    """The same of what is chosen, before its widget is drawn."""
    loaded = list(loaded_vectors.loaded()) if source == "file" else []
    return directions_of(run, source, query_params.current("file", loaded, loaded[0], FILE_KEY) if loaded else None)


def losses_across(losses: dict[str, Any]) -> dict[str, Any]:
    """The losses of the catalog that run between two towers."""
    return {name: about for name, about in losses.items() if about["across"]}


def refused(losses: dict[str, Any]) -> str:
    """Which losses do not, and why, in a sentence."""
    titles = [about["title"] for about in losses.values() if not about["across"]]
    text = _("Not for two towers: {titles}. These losses compare the dimensions of two views of one sample.")
    return text.format(titles=", ".join(titles)) if titles else ""


def request_of_towers(source: str, size: int, seed: int) -> BatchRequest:
    """At most `size` rows of each tower."""
    return BatchRequest(source, size, 1, seed)
