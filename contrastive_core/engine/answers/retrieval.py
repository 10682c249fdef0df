"""Analyses of queries and documents: the quality of compressed vectors."""

from dataclasses import asdict
from pathlib import Path

from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnProgress, fraction_of
from contrastive_core.compare import compression as compressed
from contrastive_core.compare.judged_queries import Relevant
from contrastive_core.engine.answers import Values, rows_of
from contrastive_core.engine.answers.scores import two_towers
from contrastive_core.spaces.qrels import read_qrels
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import Towers


def relevant_of(pair: Towers, values: Values) -> Relevant:
    """Return the relevant documents by the judgments that a request names, else by the partners of both towers."""
    if judged_by := values.get("qrels"):
        return Relevant.of(pair, read_qrels(judged_by["file"]), Path(judged_by["file"]).name)
    return Relevant.of_partners(pair)


def compression(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute recall@10 and nDCG@10 with fewer dimensions and lower precision. Args: values: `space`; `qrels` from
    `judgments_request`."""
    pair = two_towers(rows_of(Space(**values["space"]), on_progress, device))
    every, x = relevant_of(pair, values), pair.rows.features
    some = every.at_most(compressed.MOST)
    on_fraction = fraction_of(on_progress, N_("compressed vectors"))
    found = compressed.compress(x[some.rows], x[some.documents], some, on_fraction)
    counts = {"queries": len(some.rows), "of": len(every.rows), "documents": len(some.documents), "width": x.shape[1]}
    return Result({**counts, "scores": [asdict(one) for one in found]})
