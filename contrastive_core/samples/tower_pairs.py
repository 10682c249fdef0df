"""Pairs of two towers: mismatched pairs, false negatives across towers, given negatives; their table, and what its
lists show.

A pair is a row of the tower that has more rows with a partner, called the query (usually a caption), with the most
similar of its partners. Cosines only; `s` is the similarity between towers.

- mismatch: how unlikely a query and its own partner belong together. It sums three signs, each minus its median and
  divided by its interquartile range, weighted 1, ½, ½: (1) 2s minus the mean similarity of the query, and of its
  partner, to their K nearest wrong rows of the other tower (CSLS: Conneau et al. 2018, arXiv 1710.04087), so a vague
  caption that is similar to nothing is not a suspect; (2) the similarity of the partners of the K nearest queries to
  its own partner; (3) the similarity of the queries of the K nearest partners to it. The neighbors are those of LEMoN
  (Zhang et al. 2024, arXiv 2407.18941), which adds them to s. Rows are centered by tower for (2) and (3).
- false_negative: how similar two pairs (q, p) and (q', p') of different groups are that a loss pushes apart: the mean
  of the cosines of q to q' and of p to p' (centered), minus half of the amount by which the smaller of s(q, p') and
  s(q', p) is below the larger of s(q, p) and s(q', p'). 1: both queries fit both partners. The last term excludes
  mismatched pairs: their partner matches no query as well as its own. q' is one of the K nearest queries.
- given_score: a given negative is a row that a file lists as a negative of a query. It is probably a match if the mean
  of two cosines is high: to its query, and the mean cosine to the query's answers (rows centered by tower, length 1).
  Answers say what a match looks like where the query is short; the query keeps answers to other questions down.

Time grows with pairs times rows; memory is bounded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message
from contrastive_core.compare.towers import right_answers
from contrastive_core.ops.partner_ranks import RightAnswers, ranks_in, similarity_blocks, unit_rows
from contrastive_core.samples.sample_table import COLUMNS, SampleTable, standardized
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import NEGATIVE_OF, TEXT, Towers, plain_rank, towers_of, with_text

K = 10  # neighbors
FEWEST = 4  # groups: of fewer no score stands out
BLOCK = 1 << 24  # similarities, and numbers of gathered rows, that are held together
FEW_GROUPS = N_("{count} groups have usable rows in both towers; at least {fewest} are needed")
Pair = tuple[np.ndarray, np.ndarray]  # rows (n, d) of queries and of partners; rows and their groups (n)
Found = tuple[np.ndarray, np.ndarray]  # similarities (q, k), -inf where there are fewer, and indices (q, k)
Cells = dict[str, str | float]  # of a row, by title


@dataclass(frozen=True, eq=False)
class TowerPairs:
    """n pairs with scores and evidence. Row numbers refer to the embedding set; higher scores are more suspicious."""

    query: Int64[np.ndarray, " n"]
    partner: Int64[np.ndarray, " n"]
    query_tower: int  # 0: queries are of tower a; 1: of b
    mismatch: Float64[np.ndarray, " n"]
    similarity: Float64[np.ndarray, " n"]  # of the query to its partner
    rank: Float64[np.ndarray, " n"]  # of the partner among the other tower's wrong rows, for the query; from 1
    rank_back: Float64[np.ndarray, " n"]  # of the query, for its partner
    better: Int64[np.ndarray, " n"]  # the most similar wrong row; of another group where every row is right
    better_similarity: Float64[np.ndarray, " n"]
    false_negative: Float64[np.ndarray, " n"]  # the largest over q'
    twin: Int64[np.ndarray, " n"]  # the pair of that q', a place in these arrays
    given: Int64[np.ndarray, " n"]  # a given negative of the pair; -1: none
    given_score: Float64[np.ndarray, " n"]  # NaN: none
    candidates: tuple[int, int]  # rows that `rank` and `rank_back` count
    left_out: dict[str, int]  # rows by reason: `zero`, `not_finite`, `unpaired`, or only given `negatives`


def find_tower_pairs(towers: Towers) -> TowerPairs:
    """Return every pair with its scores and evidence. Raises CannotScore with fewer than 4 groups that have usable rows
    in both towers."""
    sides = towers.usable_sides()
    shared = np.setdiff1d(np.intersect1d(sides[0][1], sides[1][1]), [-1])
    if len(shared) < FEWEST:
        raise CannotScore(FEW_GROUPS, count=len(shared), fewest=FEWEST)
    paired = [np.isin(group, shared) for _, group in sides]
    query_tower = int(paired[1].sum() >= paired[0].sum())
    (rows_q, group_q), (rows_p, group_p) = sides[query_tower], sides[1 - query_tower]
    with np.errstate(invalid="ignore"):  # rows without a direction are not used
        unit = (towers.rows.features / towers.rows.lengths[:, None]).astype(np.float32)
    chosen = np.flatnonzero(paired[query_tower])
    query, group = rows_q[chosen], group_q[chosen]
    answers = right_answers(towers).reversed if query_tower else right_answers(towers)
    forth = _across((unit[query], group), (unit[rows_p], group_p), answers.take(chosen))
    own, at, rank, near_s, better, better_s = forth
    partner = rows_p[at]
    back = _across((unit[partner], group), (unit[rows_q], group_q), answers.reversed.take(at), own)
    q, p = (unit_rows(unit[pairs] - unit[rows].mean(0)) for rows, pairs in ((rows_q, query), (rows_p, partner)))
    near_q, near_p = (_nearest(x, group) for x in (q, p))
    of_queries, of_partners = (  # the mean cosine to the rows of the near pairs
        _mean(np.where(np.isfinite(near[0]), _products(x, x, near[1]), -np.inf))
        for x, near in ((p, near_q), (q, near_p))
    )
    relative = 2 * own - _mean(near_s) - _mean(back[3])
    s, others = near_q
    pushed = (_products(unit[query], unit[partner], others), _products(unit[partner], unit[query], others))
    lower = np.minimum(np.minimum(*pushed) - np.maximum(own[:, None], own[others]), 0)
    alike = np.where(np.isfinite(s), (s + _products(p, p, others)) / 2 + lower / 2, -np.inf)
    twin = alike.argmax(1)[:, None]
    given, given_score = find_given_negatives(towers, *((partner, query) if query_tower else (query, partner)))
    spare = np.concatenate([rows[~each] for (rows, _), each in zip(sides, paired, strict=True)])
    is_negative = np.isin(spare, towers.given_negatives()[:, 0])
    left_out = {name: len(rows) for name, rows in towers.rows.problems.items()}
    return TowerPairs(
        query=query,
        partner=partner,
        query_tower=query_tower,
        mismatch=-(standardized(relative) + standardized(of_queries) / 2 + standardized(of_partners) / 2),
        similarity=own,
        rank=rank,
        rank_back=back[2],
        better=rows_p[better],
        better_similarity=better_s,
        false_negative=np.take_along_axis(alike, twin, 1)[:, 0],
        twin=np.take_along_axis(others, twin, 1)[:, 0],
        given=given,
        given_score=given_score,
        candidates=(len(rows_p), len(rows_q)),
        left_out={**left_out, "unpaired": int((~is_negative).sum()), "negatives": int(is_negative.sum())},
    )


def find_given_negatives(
    towers: Towers, query: Int64[np.ndarray, " n"], answer: Int64[np.ndarray, " n"]
) -> tuple[Int64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Return a given negative of each pair (-1: none) and its score (NaN: none). The pairs of a query have its
    negatives in the order of the score, each once. Args: query, answer: the rows of towers a and b of each pair."""
    found, value = np.full(len(query), -1), np.full(len(query), np.nan)
    given = towers.given_negatives()
    given = given[np.isin(given[:, 0], towers.rows.usable)]
    if not len(given):
        return found, value
    group, features = np.full(len(towers.rows), -1), towers.rows.features
    group[towers.a] = towers.group_a
    match = np.zeros((group.max() + 1, features.shape[1]))  # the mean query of each group plus its mean answer
    for rows, of in towers.usable_sides():  # queries, then answers
        unit, sums, is_paired = unit_rows(features[rows]), np.zeros_like(match), of >= 0
        center = unit.mean(0)
        np.add.at(sums, of[is_paired], unit_rows(unit - center)[is_paired])
        match += sums / np.maximum(1, np.bincount(of[is_paired], minlength=len(match)))[:, None]
    score = np.empty(len(given))
    for part in _blocks(len(given), features.shape[1]):
        negative, of = given[part].T
        score[part] = np.einsum("kd,kd->k", unit_rows(unit_rows(features[negative]) - center), match[of]) / 2
    given, score = (x[np.lexsort((-score, given[:, 1]))] for x in (given, score))
    pair = np.argsort(group[query], kind="stable")
    of = group[query][pair]
    at = np.searchsorted(given[:, 1], of) + np.arange(len(of)) - np.searchsorted(of, of)
    has = (at < np.searchsorted(given[:, 1], of, "right")) & (of >= 0)
    found[pair[has]], value[pair[has]] = given[at[has], 0], score[at[has]]
    return found, value


def _across(
    queries: Pair, others: Pair, answers: RightAnswers, own: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """Compare n queries with the rows of the other tower; return (n) each: the similarity to the best partner, its
    index and its rank, the similarities (n, K) of the nearest wrong rows, and the better match with its similarity.

    Args: queries, others: unit rows and the group of each; own: similarity to the partner, if known."""
    (x, group), (rows, other_group) = queries, others
    parts = []
    for part, s, is_right in similarity_blocks(x, rows, answers, BLOCK):
        is_partner = group[part, None] == other_group[None]
        at = np.where(is_partner, s, -np.inf).argmax(1)
        best = np.take_along_axis(s, at[:, None], 1)[:, 0] if own is None else own[part]
        rank = ranks_in(s, is_right, best).expected
        s[is_partner] = -np.inf
        found = _top(s, 1)
        s[is_right] = -np.inf
        nearest, wrong = _top(s, min(K, len(rows)))
        is_any = ~np.isfinite(nearest[:, 0])  # every row is a right answer
        better = [np.where(is_any, x[:, 0], y[:, 0]) for x, y in zip(found, (nearest, wrong), strict=True)]
        parts.append((best, at, rank, nearest, *better))
    best, at, rank, nearest, better_s, better_at = (np.concatenate(each) for each in zip(*parts, strict=True))
    return best.astype(np.float64), at, rank, nearest, better_at, better_s.astype(np.float64)


def _nearest(x: np.ndarray, group: np.ndarray) -> Found:
    """Return the K nearest pairs of other groups."""
    n, k = len(x), min(K, len(x) - 1)
    found = np.empty((n, k), np.float32), np.empty((n, k), np.int64)
    for part in _blocks(n, n):
        s = x[part] @ x.T
        s[group[part, None] == group[None]] = -np.inf
        found[0][part], found[1][part] = _top(s, k)
    return found


def _top(s: np.ndarray, k: int) -> Found:
    """Return the k largest values of each row, sorted."""
    import torch  # four times as fast as NumPy; the pages import this module

    values, at = torch.from_numpy(s).topk(k, dim=1)
    return values.numpy(), at.numpy()


def _blocks(n: int, width: int) -> list[slice]:
    step = max(1, BLOCK // width)
    return [slice(start, start + step) for start in range(0, n, step)]


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean (n) of the finite values in each row; with two groups at least one value is finite."""
    known = np.isfinite(values)
    return np.where(known, values, 0).sum(1, dtype=np.float64) / np.maximum(known.sum(1), 1)


def _products(x: np.ndarray, others: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the products (n, k) of each row of x (n, d) with the rows `at` (n, k) of `others`."""
    blocks = _blocks(len(x), at.shape[1] * x.shape[1])
    return np.concatenate([np.einsum("rd,rkd->rk", x[part], others[at[part]]) for part in blocks])


# --- the table ------------------------------------------------------------------------------------


def pair_table(rows: EmbeddingSet, found: Mapping[str, np.ndarray], about: JsonObject) -> SampleTable:
    """Return the table of tower pairs, each named by its query. Args: found: the arrays of `TowerPairs`; about:
    the towers' `names` and `candidates`, as of the analysis of the pairs."""
    ids, unit, n = np.array(rows.ids), rows.features / rows.lengths[:, None], len(found["query"])
    query, partner, twin, nothing = found["query"], found["partner"], found["twin"], np.full(n, np.nan)
    twin_cosine = np.einsum("nd,nd->n", unit[query], unit[partner[twin]]).astype(np.float64)
    order = np.argsort(-found["false_negative"], kind="stable")
    both = np.sort(np.stack([order, twin[order]], 1), 1)
    once = order[np.unique(both, axis=0, return_index=True)[1]]  # of two pairs that name each other the first
    false_negatives = nothing.copy()
    false_negatives[once] = found["false_negative"][once]
    extra = {
        "mismatched": found["mismatch"],
        "false_negatives": false_negatives,
        "partner": ids[partner],
        "own_cosine": found["similarity"],
        "own_rank": found["rank"],
        "own_rank_back": found["rank_back"],
        "better": ids[found["better"]],
        "better_cosine": found["better_similarity"],
        "margin": found["similarity"] - found["better_similarity"],
        "twin": ids[query[twin]],
        "twin_partner": ids[partner[twin]],
        "twin_cosine": twin_cosine,
        "twin_margin": found["similarity"] - twin_cosine,
    }
    query_tower, partner_tower = about["names"]
    if NEGATIVE_OF in rows.columns and (towers := towers_of(rows)) is not None:
        asked, answer = (query, partner) if towers.names[0] == query_tower else (partner, query)
        given, score = (found.get(name) for name in ("given", "given_score"))  # not in results of version 0.2
        if given is None or score is None:
            given, score = find_given_negatives(towers, asked, answer)
        extra |= {
            "given_negatives": np.where(given == answer, 1.0, score),  # certainly no negative
            "given_is_positive": given == answer,
            "given": np.where(given < 0, "", ids[given]),
            "asked": ids[asked],
            "answer": ids[answer],
            "given_cosine": np.einsum("nd,nd->n", unit[asked], unit[given]).astype(np.float64),
        }
    texts = with_text(rows).columns.get(TEXT)
    return SampleTable(
        columns={**dict.fromkeys(COLUMNS, nothing), "id": ids[query], "label": np.full(n, "")},
        classes=(),
        loss="",
        extra=extra,
        facts=dict(zip(("candidates", "candidates_back"), map(float, about["candidates"]), strict=True)),
        towers=(query_tower, partner_tower),
        texts={} if texts is None else dict(zip(rows.ids, map(str, texts), strict=True)),
    )


# --- what a list shows ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShownBeside:
    """A row shown beside a sample, and its description."""

    id: str
    text: str
    is_far: bool = False  # it is of the other split


@dataclass(frozen=True)
class OtherRow:
    """A row that a list shows beside a pair and its partner."""

    column: str  # of its id
    tower: int  # 0: that of the queries, 1: of the partners
    title: str  # in tables
    text: str  # beside the pair
    cosine: str = ""  # column
    margin: str = ""  # column


BETTER = OtherRow(
    column="better",
    tower=1,
    title=N_("other {tower}"),
    text=N_("best other {tower}, cosine {cosine}, margin {margin}"),
    cosine="better_cosine",
    margin="margin",
)
TWIN_PARTNER = OtherRow(
    column="twin_partner",
    tower=1,
    title=N_("other {tower}"),
    text=N_("{tower} of the similar pair, cosine {cosine}"),
    cosine="twin_cosine",
    margin="twin_margin",
)
TWIN = OtherRow(column="twin", tower=0, title=N_("other {tower}"), text=N_("{tower} of the similar pair"))
GIVEN = OtherRow(
    column="given", tower=1, title=N_("given negative"), text=N_("given as a negative"), cosine="given_cosine"
)


def beside(*others: OtherRow) -> Callable[[SampleTable, int], list[ShownBeside]]:
    """Return a function that gives the partner of a pair's query, and the other rows."""

    def shown(table: SampleTable, row: int) -> list[ShownBeside]:
        extra, towers = table.extra, table.towers
        own = message("its own {tower}, cosine {cosine}", tower=towers[1], cosine=f"{extra['own_cosine'][row]:.2f}")
        found = [ShownBeside(str(extra["partner"][row]), own)]
        for one in others:
            cosine = f"{extra[one.cosine][row]:.2f}" if one.cosine else ""
            margin = f"{extra[one.margin][row]:+.2f}" if one.margin else ""
            text = message(one.text, tower=towers[one.tower], cosine=cosine, margin=margin)
            found.append(ShownBeside(str(extra[one.column][row]), text))
        return found

    return shown


def own_row(table: SampleTable, row: int) -> list[ShownBeside]:
    return [ShownBeside(str(table.columns["id"][row]), "")]


def given_question(table: SampleTable, row: int) -> list[ShownBeside]:
    """Return the query and its given negative."""
    return [
        ShownBeside(str(table.extra["asked"][row]), N_("query")),
        ShownBeside(str(table.extra["given"][row]), GIVEN.text),
    ]


def given_answer(table: SampleTable, row: int) -> list[ShownBeside]:
    return [ShownBeside(str(table.extra["answer"][row]), N_("answer"))]


def cells(*others: OtherRow) -> Callable[[SampleTable, int], Cells]:
    """Return a function that gives a pair's columns in tables and files, with the towers' names."""

    def cells_of(table: SampleTable, row: int) -> Cells:
        extra, towers = table.extra, table.towers
        ids = dict(zip(towers, (str(table.columns["id"][row]), str(extra["partner"][row])), strict=True))
        ids |= {message(one.title, tower=towers[one.tower]): str(extra[one.column][row]) for one in others}
        told: Cells = {message("{tower}, text", tower=name): table.texts.get(id, "") for name, id in ids.items()}
        columns = {N_("own rank"): "own_rank", N_("own rank back"): "own_rank_back", N_("own cosine"): "own_cosine"}
        columns |= {N_("other cosine"): others[0].cosine, N_("margin"): others[0].margin}
        figures = {title: round(float(extra[column][row]), 4) for title, column in columns.items() if column}
        return {**ids, **(told if table.texts else {}), **figures}

    return cells_of


def pair_evidence(table: SampleTable, row: int) -> str:
    facts, extra = table.facts, table.extra
    return message(
        "From {query} to its partner: cosine {cosine}, rank {rank} of {n}. Back: rank {back} of {m}.",
        query=table.towers[0],
        cosine=f"{extra['own_cosine'][row]:.3f}",
        rank=f"{plain_rank(extra['own_rank'][row]):,}",
        n=f"{facts['candidates']:,.0f}",
        back=f"{plain_rank(extra['own_rank_back'][row]):,}",
        m=f"{facts['candidates_back']:,.0f}",
    )


def given_evidence(table: SampleTable, row: int) -> str:
    if table.extra["given_is_positive"][row]:
        return N_("The same document as the positive.")
    values = {name: f"{table.extra[f'{name}_cosine'][row]:.3f}" for name in ("given", "own")}
    return message("Cosine to the query: negative {given}, answer {own}.", **values)
