"""The similarity from which a pair is a match, with a bound on its false-match rate, from judged pairs. Torch-free.

The false-match rate is the share of a query's pairs above the threshold among those that are no match, on average over
queries. It falls as the threshold rises. So thresholds are tested from the highest down, each at the full level, until
one is not shown to keep the rate: fixed-sequence testing, as in Learn then Test (arXiv 2110.01052).

In 95 of 100 draws of queries, the true rate of the result is at most the requested one, for any distribution of
similarities. Each query is one observation, because its pairs depend on each other. With one pair per query the test is
the exact binomial one (Clopper & Pearson 1934, Biometrika 26, 404), else a bet on the shares (base/score.py).

Pairs that are no match are those judged as not relevant, or given negatives. If there are none, it is the most similar
document of each query that is not judged as relevant. The rate is then the share of queries with a wrong document above
the threshold. An overlooked match raises the threshold, and never weakens the bound.

Calibration: the share of matches among pairs of about the same similarity, in ten bins of equal size, with Wilson's
interval. The pairs are all judged ones or, without judged pairs that are no match, the first answers to the queries."""

from collections import defaultdict
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, Message, join, message
from contrastive_core.base.score import log_capital, wilson
from contrastive_core.compare.retrieval import rows_by_id
from contrastive_core.compare.towers import UNPAIRED
from contrastive_core.ops.partner_ranks import BLOCK, unit_rows
from contrastive_core.spaces.attached_files import Qrels, check_ids
from contrastive_core.spaces.towers import Towers

CONFIDENCE, RATE = 0.95, 0.01
MOST, PAIRS = 5000, 1_000_000  # queries with a search for the most similar document; matches that are read
DIGITS = 1e4  # a threshold is rounded up to four decimals
BINS = 10
JUDGED, GIVEN = N_("documents judged as not relevant"), N_("given negatives")
HARDEST = N_("the most similar document of each query that is not judged as relevant")
FOUND = N_(
    "{name}: a pair is a match from a similarity of {threshold}. In 95 of 100 draws of queries, at most {rate} % of "
    "pairs that are no match reach it."
)
BASIS = N_(
    "{kept} % of {matches} matches reach it (95 % CI {low} to {high}). Basis: {queries} queries and {others} pairs "
    "that are no match ({kind}); {false} % of them reach it."
)
FEW = N_("Only {kept} % of the matches reach this threshold. A higher rate keeps more of them.")
MOST_LOST = 0.5  # share of matches that reach a threshold, below which a sentence says so
TOO_FEW = N_(
    "{name}: no threshold is shown to keep the false-match rate at {rate} %, even without a false match. "
    "Judge at least {needed} queries (now {queries}), or allow a higher rate."
)


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Pairs of a query and a document with their similarity, judged as match or not. `query` (k): number of the query;
    `kind`: what the pairs are that are no match."""

    query: Int64[np.ndarray, " k"]
    similarity: Float64[np.ndarray, " k"]
    is_match: Bool[np.ndarray, " k"]
    kind: str

    @classmethod
    def of(cls, towers: Towers, qrels: Qrels | None = None, name: str = "") -> "JudgedPairs":
        """Find the judged pairs of two towers: by judgments, else partners and given negatives. Args: name: of the
        file of judgments. Raises: UnusableEmbedding for ids that the towers lack; CannotScore without a match."""
        if qrels is None:
            matches, kind = towers.partner_pairs(PAIRS)[0], GIVEN
            number, of_group = np.full(len(towers.rows), -1), defaultdict[int, list[int]](list)
            number[towers.a] = towers.group_a  # queries that share an answer count as one
            for row, group in zip(towers.a.tolist(), towers.group_a.tolist(), strict=True):
                of_group[group].append(row)
            given = [(q, document) for document, group in towers.given_negatives().tolist() for q in of_group[group]]
            others = np.array(given, np.int64).reshape(-1, 2)
        else:
            queries, documents = rows_by_id(towers, qrels)
            check_ids(qrels, queries, documents, name)
            judged = [(queries[q], documents[d], grade) for q, of in qrels.items() for d, grade in of.items()]
            rows = np.array(judged, np.int64).reshape(-1, 3)
            matches, others = rows[rows[:, 2] > 0, :2], rows[rows[:, 2] <= 0, :2]
            number, kind = np.arange(len(towers.rows)), JUDGED
        if not len(matches):
            raise CannotScore(UNPAIRED)
        if not len(others):
            others, kind = _hardest(towers, matches), HARDEST
        pairs = np.concatenate([matches, others])
        is_usable = np.isin(pairs, towers.rows.usable).all(1)
        unit = unit_rows(towers.rows.features)
        similarity = np.einsum("kd,kd->k", *(unit[side] for side in pairs.T), dtype=np.float64)
        is_match = np.arange(len(pairs)) < len(matches)
        query, similarity, is_match = (x[is_usable] for x in (number[pairs[:, 0]], similarity, is_match))
        return cls(query=query, similarity=similarity, is_match=is_match, kind=kind)


def _hardest(towers: Towers, matches: Int64[np.ndarray, "k 2"]) -> Int64[np.ndarray, "q 2"]:
    """Return each query with its most similar document that does not match it."""
    sides, unit = [at for at, _ in towers.usable_sides()], unit_rows(towers.rows.features)
    queries = np.intersect1d(matches[:, 0], np.concatenate(sides))
    queries = queries[np.unique(np.linspace(0, len(queries) - 1, min(MOST, len(queries))).round().astype(int))]
    documents = sides[1] if np.isin(queries[:1], sides[0]).all() else sides[0]
    found = []
    for part in np.array_split(queries, 1 + len(queries) * len(documents) // BLOCK):
        similarity, known = unit[part] @ unit[documents].T, matches[np.isin(matches[:, 0], part)]
        known = known[np.isin(known[:, 1], documents)]
        similarity[np.searchsorted(part, known[:, 0]), np.searchsorted(documents, known[:, 1])] = -np.inf
        has_other = np.isfinite(similarity).any(1)
        found.append(np.stack([part, documents[similarity.argmax(1)]], 1)[has_other])
    return np.concatenate(found)


@dataclass(frozen=True)
class Bin:
    """Judged pairs of similar similarity: their number, mean similarity, and share of matches with 95 % interval."""

    n: int
    similarity: float
    share: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class MatchThreshold:
    """A threshold with its basis. Without a value, `needed` queries without a false match would suffice."""

    threshold: float | None
    rate: float  # allowed
    confidence: float
    false_rate: float | None  # of the judged pairs
    kept: float | None  # share of matches that reach it
    interval: tuple[float, float] | None  # of `kept`
    queries: int
    matches: int
    others: int
    kind: str
    needed: int
    calibration: list[Bin]

    def sentence(self, name: str) -> Message:
        """Describe the threshold. Args: name: of the space."""
        values = {"name": name, "rate": f"{100 * self.rate:g}", "queries": f"{self.queries:,}"}
        if self.threshold is None:
            return message(TOO_FEW, needed=f"{self.needed:,}", **values)
        return message(FOUND, threshold=f"{self.threshold:.4f}", **values)

    @property
    def basis(self) -> str:
        """Describe the judged pairs; "" without a threshold."""
        if self.kept is None or self.false_rate is None or self.interval is None:
            return ""
        shares = {"kept": self.kept, "false": self.false_rate, "low": self.interval[0], "high": self.interval[1]}
        counts = {"matches": self.matches, "queries": self.queries, "others": self.others}
        said = {key: f"{100 * value:.1f}" for key, value in shares.items()}
        basis = message(BASIS, kind=self.kind, **said, **{key: f"{value:,}" for key, value in counts.items()})
        return join(" ", [basis, message(FEW, kept=said["kept"])]) if self.kept < MOST_LOST else basis

    def record(self, name: str, judgments: str = "") -> JsonObject:
        """Return the threshold with its basis as plain values. Args: name: of the space; judgments: of their file."""
        text = f"{self.sentence(name)} {self.basis}".strip()
        return {"name": name, "judgments": judgments, **asdict(self), "text": text}


def find_threshold(pairs: JudgedPairs, rate: float = RATE) -> MatchThreshold:
    """Return the lowest threshold whose false-match rate is shown to be at most `rate`.
    Args: rate: between 0 and 1."""
    from scipy.special import bdtr  # 13 MB, also in the server

    s, own = pairs.similarity[~pairs.is_match], pairs.similarity[pairs.is_match]
    query = np.unique(pairs.query[~pairs.is_match], return_inverse=True)[1]
    counts = np.bincount(query)
    n, level = len(counts), 1 - CONFIDENCE

    def shares(threshold: float) -> np.ndarray:
        return np.bincount(query, s >= threshold, n) / counts

    def is_shown(threshold: float) -> bool:
        share = shares(threshold)
        if counts.max() == 1:
            return bool(bdtr(share.sum(), n, rate) <= level)
        return bool(log_capital(share, np.ones(n), rate, 0, 1, bets=(-1, 0)) >= -np.log(level))

    candidates = np.unique(np.floor(s * DIGITS) + 1) / DIGITS  # each excludes one more similarity
    low, high = -1, len(candidates)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_shown(candidates[middle]) else (middle, high)
    found = float(candidates[high]) if high < len(candidates) else None
    reached = 0 if found is None else int((own >= found).sum())
    order = np.argsort(pairs.similarity, kind="stable")
    if pairs.kind == HARDEST:  # the most similar pair of each query
        last = len(order) - 1 - np.unique(pairs.query[order][::-1], return_index=True)[1]
        order = order[np.sort(last)]
    bins = []
    for part in np.array_split(order, min(BINS, len(order))):
        right, similarity = int(pairs.is_match[part].sum()), float(pairs.similarity[part].mean())
        bins.append(Bin(len(part), similarity, right / len(part), wilson(right, len(part))))
    return MatchThreshold(
        threshold=found,
        rate=rate,
        confidence=CONFIDENCE,
        false_rate=None if found is None else float(shares(found).mean()),
        kept=None if found is None else reached / len(own),
        interval=None if found is None else wilson(reached, len(own)),
        queries=n,
        matches=len(own),
        others=len(s),
        kind=pairs.kind,
        needed=int(np.ceil(np.log(level) / np.log1p(-rate))),
        calibration=bins,
    )
