"""The lists of pairs of two towers, each pair with its evidence, as pages and files show them. Torch-free."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from jaxtyping import Float64, Int64

from contrastive_core.messages import N_
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.towers import TEXT, plain_rank
from contrastive_core.storage.json_files import JsonObject

MISMATCHED, FALSE_NEGATIVES = "mismatched", "false_negatives"
LISTS = {MISMATCHED: N_("Mismatched pairs"), FALSE_NEGATIVES: N_("False negatives")}
HOW = {
    MISMATCHED: N_(
        "Pairs that are unlikely to belong together: the two are less similar than each is to its nearest rows of the "
        "other tower, and the partners of similar rows are not similar either."
    ),
    FALSE_NEGATIVES: N_(
        "Two pairs that a loss pushes apart although each fits the other's partner: the texts, or what they stand "
        "for, say the same."
    ),
}
ORDERS = {
    "suspicion": N_("Suspicion"),
    "rank": N_("Rank of its own partner"),
    "similarity": N_("Own cosine"),
    "margin": N_("Margin"),
}
OWN_RANK = N_(
    "Rank 1: no wrong row is more similar than the row's own partner. Recall also accepts the partner of an equal "
    "caption, so it can be right where this rank is not 1."
)
DECISIONS = {"keep": "keep", "drop": N_("mismatched"), "relabel": N_("true partner")}  # as they are stored; in files


@dataclass(frozen=True, eq=False)
class PairList:
    """k pairs in the order of suspicion. Numbers of rows are those of the set. `other`: the row of the other tower that
    the query fits best besides its partners, or the partner of the similar pair; `twin`: that pair's query, else -1."""

    query: Int64[np.ndarray, " k"]
    partner: Int64[np.ndarray, " k"]
    other: Int64[np.ndarray, " k"]
    twin: Int64[np.ndarray, " k"]
    score: Float64[np.ndarray, " k"]
    similarity: Float64[np.ndarray, " k"]
    other_similarity: Float64[np.ndarray, " k"]
    rank: Float64[np.ndarray, " k"]
    rank_back: Float64[np.ndarray, " k"]

    def __len__(self) -> int:
        return len(self.query)

    @property
    def margin(self) -> Float64[np.ndarray, " k"]:
        """Cosine to its own partner less that to the other row: below 0, the other fits better."""
        return self.similarity - self.other_similarity

    def take(self, at: np.ndarray) -> "PairList":
        """Return the pairs at these places, in that order."""
        return replace(self, **{f.name: getattr(self, f.name)[at] for f in fields(self)})

    def order(self, by: str) -> np.ndarray:
        """Return places in an order of ORDERS, the most striking first."""
        keys = {"rank": -self.rank, "similarity": self.similarity, "margin": self.margin}
        return np.argsort(keys[by], kind="stable") if by in keys else np.arange(len(self))


def pair_lists(rows: EmbeddingSet, found: Mapping[str, np.ndarray]) -> dict[str, PairList]:
    """Return both lists. `found`: the arrays of `samples.tower_pairs.TowerPairs`, by name."""
    shared = {k: found[k] for k in ("query", "partner", "similarity", "rank", "rank_back")}
    none = np.full(len(shared["query"]), -1)
    other = {"other": found["better"], "other_similarity": found["better_similarity"], "twin": none}
    mismatched = PairList(**shared, **other, score=found["mismatch"])
    twin = found["twin"]
    unit = rows.features / rows.lengths[:, None]
    across = np.einsum("nd,nd->n", unit[found["query"]], unit[found["partner"][twin]]).astype(np.float64)
    alike = {"other": found["partner"][twin], "other_similarity": across, "twin": found["query"][twin]}
    pairs = PairList(**shared, **alike, score=found["false_negative"])
    order = np.argsort(-mismatched.score, kind="stable")
    return {MISMATCHED: mismatched.take(order), FALSE_NEGATIVES: pairs.take(_once(pairs, twin))}


def _once(pairs: PairList, twin: np.ndarray) -> np.ndarray:
    """Places by score, two pairs that name each other once."""
    order = np.argsort(-pairs.score, kind="stable")
    both = np.sort(np.stack([order, twin[order]], 1), 1)
    return order[np.sort(np.unique(both, axis=0, return_index=True)[1])]


def said(rows: EmbeddingSet, row: int) -> str:
    """What a row says; "" without a text."""
    texts = rows.columns.get(TEXT)
    return "" if texts is None or row < 0 else str(texts[row])


def listed(rows: EmbeddingSet, pairs: PairList, marks: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
    """Plain values of the pairs with what was decided on each, one by one."""
    for place, i in enumerate(range(len(pairs)), 1):
        query, partner, other, twin = (int(x[i]) for x in (pairs.query, pairs.partner, pairs.other, pairs.twin))
        mark = marks.get(rows.ids[query], {})
        yield {
            "place": place,
            "decision": DECISIONS.get(str(mark.get("what", "")), ""),
            N_("query"): rows.ids[query],
            N_("query text"): said(rows, query),
            N_("partner"): rows.ids[partner],
            N_("partner text"): said(rows, partner),
            "score": round(float(pairs.score[i]), 4),
            N_("own rank"): plain_rank(pairs.rank[i]),
            N_("own rank back"): plain_rank(pairs.rank_back[i]),
            N_("own cosine"): round(float(pairs.similarity[i]), 4),
            N_("other"): rows.ids[other],
            N_("other text"): said(rows, other),
            N_("other cosine"): round(float(pairs.other_similarity[i]), 4),
            N_("margin"): round(float(pairs.margin[i]), 4),
            **({N_("other query"): rows.ids[twin], N_("other query text"): said(rows, twin)} if twin >= 0 else {}),
            N_("true partner"): mark.get("label") or "",
        }
