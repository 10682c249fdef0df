"""The pairs of two towers with their evidence."""

from dataclasses import fields

import numpy as np

from contrastive_core.engine import answers
from contrastive_core.engine.answers import Values
from contrastive_core.engine.results import Result
from contrastive_core.evaluation.tower_notes import tower_notes
from contrastive_core.messages import N_
from contrastive_core.progress import OnProgress
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.towers import towers_of
from contrastive_core.samples.tower_pairs import find_tower_pairs


def tower_pairs(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Every pair of a space of two towers, with how likely it is mismatched, or a false negative."""
    pair = towers_of(answers.rows_of(EmbeddingRef(**values["space"]), on_progress, device))
    if pair is None:
        raise ValueError(N_("these rows are not of two towers"))
    on_progress(N_("pairs of the two towers"), None)
    found = find_tower_pairs(pair)
    known = {field.name: getattr(found, field.name) for field in fields(found)}
    names = [pair.names[found.query_tower], pair.names[1 - found.query_tower]]
    meta = {"names": names, "candidates": [*found.candidates], "left_out": found.left_out, **vars(tower_notes(pair))}
    return Result(meta, {name: array for name, array in known.items() if isinstance(array, np.ndarray)})
