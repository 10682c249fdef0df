"""Pairs of two towers as a table of samples: their columns, their given negatives, and the sentences and rows that are
shown with them. Torch-free.

A given negative is a row that a file lists as a negative of a query. It is probably a match if its score is high: the
mean of two cosines, to its query, and the mean cosine to the query's answers. All rows are centered by their tower and
scaled to length 1. Answers say what a match of this query looks like, where the query itself is short; the cosine to
the query keeps answers to other questions down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message
from contrastive_core.ops.partner_ranks import BLOCK, unit_rows
from contrastive_core.samples.sample_table import COLUMNS, SampleTable
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import NEGATIVE_OF, TEXT, Towers, plain_rank, towers_of

Cells = dict[str, str | float]  # of a row, by title


@dataclass(frozen=True, eq=False)
class GivenNegatives:
    """A given negative of each of n pairs."""

    row: Int64[np.ndarray, " n"]  # -1: none
    score: Float64[np.ndarray, " n"]  # NaN: none
    is_positive: Bool[np.ndarray, " n"]  # it is the pair's own answer: certainly no negative, whatever the score


def find_given_negatives(
    towers: Towers, query: Int64[np.ndarray, " n"], answer: Int64[np.ndarray, " n"]
) -> GivenNegatives:
    """Return a given negative of each pair. The pairs of a query have its negatives in the order of the score, each
    negative once. Args: query, answer: the rows of towers a and b of each pair."""
    group, features = np.full(len(towers.rows), -1), towers.rows.features
    group[towers.a] = towers.group_a
    match = np.zeros((group.max() + 1, features.shape[1]))  # the mean query of each group plus its mean answer
    for rows, of in towers.usable_sides():  # queries, then answers
        unit, sums, is_paired = unit_rows(features[rows]), np.zeros_like(match), of >= 0
        center = unit.mean(0)
        np.add.at(sums, of[is_paired], unit_rows(unit - center)[is_paired])
        match += sums / np.maximum(1, np.bincount(of[is_paired], minlength=len(match)))[:, None]
    given = towers.given_negatives()
    given = given[np.isin(given[:, 0], towers.rows.usable)]
    score, step = np.empty(len(given)), max(1, BLOCK // features.shape[1])
    for i in range(0, len(given), step):
        negative, of = given[i : i + step].T
        score[i : i + step] = np.einsum("kd,kd->k", unit_rows(unit_rows(features[negative]) - center), match[of]) / 2
    found, value = np.full(len(query), -1), np.full(len(query), np.nan)
    given, score = (x[np.lexsort((-score, given[:, 1]))] for x in (given, score))
    pair = np.argsort(group[query], kind="stable")
    of = group[query][pair]
    at = np.searchsorted(given[:, 1], of) + np.arange(len(of)) - np.searchsorted(of, of)
    has = (at < np.searchsorted(given[:, 1], of, "right")) & (of >= 0)
    found[pair[has]], value[pair[has]] = given[at[has], 0], score[at[has]]
    return GivenNegatives(row=found, score=value, is_positive=found == answer)


def pair_table(rows: EmbeddingSet, found: Mapping[str, np.ndarray], about: JsonObject) -> SampleTable:
    """Return the table of tower pairs, each named by its query. Args: found: the arrays of `tower_pairs.TowerPairs`, by
    name; about: the towers' `names` and `candidates` from the analysis of the pairs."""
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
        given = find_given_negatives(towers, asked, answer)
        extra |= {"given_negatives": given.score, "given_is_positive": given.is_positive}
        extra["given"] = np.where(given.row < 0, "", ids[given.row])
        extra["given_cosine"] = np.einsum("nd,nd->n", unit[asked], unit[given.row]).astype(np.float64)
        extra["given_margin"] = found["similarity"] - extra["given_cosine"]
    texts = rows.columns.get(TEXT)
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


def of_pair(column: str) -> Callable[[SampleTable, int], str]:
    return lambda table, row: str(table.extra[column][row])


def beside_pair(table: SampleTable, row: int) -> list[ShownBeside]:
    """Return the partner of a pair's query, and the better match."""
    extra, (_, partner) = table.extra, table.towers
    other = message(
        "best other {tower}, cosine {cosine}, margin {margin}",
        tower=partner,
        cosine=f"{extra['better_cosine'][row]:.2f}",
        margin=f"{extra['margin'][row]:+.2f}",
    )
    return [_partner(table, row), ShownBeside(str(extra["better"][row]), other)]


def _partner(table: SampleTable, row: int) -> ShownBeside:
    cosine = f"{table.extra['own_cosine'][row]:.2f}"
    text = message("its own {tower}, cosine {cosine}", tower=table.towers[1], cosine=cosine)
    return ShownBeside(str(table.extra["partner"][row]), text)


def beside_twin(table: SampleTable, row: int) -> list[ShownBeside]:
    """Return the partner of a pair's query, and both rows of the similar pair."""
    extra, (query, partner) = table.extra, table.towers
    cosine, template = f"{extra['twin_cosine'][row]:.2f}", N_("{tower} of the similar pair, cosine {cosine}")
    return [
        _partner(table, row),
        ShownBeside(str(extra["twin_partner"][row]), message(template, tower=partner, cosine=cosine)),
        ShownBeside(str(extra["twin"][row]), message("{tower} of the similar pair", tower=query)),
    ]


def pair_values(other: str, cosine: str, margin: str, twin: str = "") -> Callable[[SampleTable, int], Cells]:
    """Return a function that gives the columns of a list of pairs, with the towers' names. Args: names of the columns
    of the other pair."""

    def values(table: SampleTable, row: int) -> Cells:
        extra, (query, partner) = table.extra, table.towers
        found = {query: str(table.columns["id"][row]), partner: str(extra["partner"][row])}
        found[message("other {tower}", tower=partner)] = str(extra[other][row])
        if twin:
            found[message("other {tower}", tower=query)] = str(extra[twin][row])
        columns = {N_("own rank"): "own_rank", N_("own rank back"): "own_rank_back", N_("own cosine"): "own_cosine"}
        return _line(table, row, found, columns | {N_("other cosine"): cosine, N_("margin"): margin})

    return values


def _line(table: SampleTable, row: int, ids: dict[str, str], columns: dict[str, str]) -> Cells:
    """Return ids by title, their texts if there are any, and the figures of columns by title."""
    told: Cells = {message("{tower}, text", tower=name): table.texts.get(id, "") for name, id in ids.items()}
    figures = {name: round(float(table.extra[column][row]), 4) for name, column in columns.items()}
    return {**ids, **told, **figures} if table.texts else {**ids, **figures}


def beside_given(table: SampleTable, row: int) -> list[ShownBeside]:
    """Return the partner of a pair's query, and the given negative."""
    cosine = f"{table.extra['given_cosine'][row]:.2f}"
    text = message("given as a negative, cosine to the query {cosine}", cosine=cosine)
    return [_partner(table, row), ShownBeside(str(table.extra["given"][row]), text)]


def given_evidence(table: SampleTable, row: int) -> str:
    if table.extra["given_is_positive"][row]:
        return N_("The same document as the positive.")
    values = {name: f"{table.extra[f'{name}_cosine'][row]:.3f}" for name in ("given", "own")}
    return message("Cosine to the query: negative {given}, answer {own}.", **values)


def given_values(table: SampleTable, row: int) -> Cells:
    """Return the columns of the list of given negatives, with the towers' names."""
    extra, (query, partner) = table.extra, table.towers
    found = {query: str(table.columns["id"][row]), partner: str(extra["partner"][row])}
    found[N_("given negative")] = str(extra["given"][row])
    return _line(table, row, found, {N_("own cosine"): "own_cosine", N_("cosine of the negative"): "given_cosine"})


def pair_orders(score: str, margin: str) -> dict[str, str]:
    titles = (N_("Suspicion"), N_("Rank of its own partner"), N_("Own cosine"), N_("Margin"))
    return dict(zip((score, "own_rank", "-own_cosine", f"-{margin}"), titles, strict=True))
