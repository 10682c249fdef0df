"""Analyses of queries and documents: the quality of compressed vectors, and of vectors mapped to a new model."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from contrastive_core.base.large_arrays import rows_of_sample
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnProgress, fraction_of
from contrastive_core.compare import adapter as adapters
from contrastive_core.compare import compression as compressed
from contrastive_core.compare.comparison import common
from contrastive_core.compare.judged_queries import Relevant
from contrastive_core.engine.answers import rows_of
from contrastive_core.engine.answers.scores import two_towers
from contrastive_core.spaces.label_files import read_qrels
from contrastive_core.spaces.results import Result, Values
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import Towers, towers_of


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


def adapter(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Fit and judge a map from the vectors of an old model to those of a new one. Rows of one tower are split: every
    fourth is a query. Args: values: from `adapter_request`."""
    old, new = common([rows_of(Space(**values[key]), on_progress, device) for key in ("old", "new")])
    usable = np.intersect1d(old.usable, new.usable)
    if (pair := towers_of(new)) is not None:
        queries, documents = (side[np.isin(side, usable)] for side in (pair.a, pair.b))
    else:
        usable = np.random.default_rng(0).permutation(usable)
        queries, documents = usable[::4], np.delete(usable, np.s_[::4])
    documents = documents[rows_of_sample(len(documents), adapters.DOCUMENTS)]
    queries = queries[np.linspace(0, len(queries) - 1, min(len(queries), adapters.MOST)).round().astype(np.int64)]
    on_fraction = fraction_of(on_progress, N_("a map between the models"))
    found = adapters.judge(
        (old.features[documents], new.features[documents]),
        (old.features[queries], new.features[queries]),
        None if new.labels is None else new.labels[queries],
        on_fraction=on_fraction,
    )
    groups = [{**asdict(one), "name": new.class_name(one.label)} for one in found.groups]
    meta = {
        "kind": found.adapter.kind,
        "setting": found.adapter.setting,
        "widths": [old.width, new.width],
        "kept": [asdict(one) for one in found.kept],
        "old": found.old,
        "groups": groups,
        "partial": [[share, *values] for share, values in found.partial.items()],
        "first": [new.ids[row] for row in documents[found.first[: adapters.LISTED]]],
        **found.counts,
    }
    return Result(meta, {"matrix": found.adapter.matrix, "offset": found.adapter.offset, "per_query": found.per_query})
