"""Sentences and images for the pairs of two towers. Torch-free."""

from collections.abc import Callable
from dataclasses import dataclass

from contrastive_core.base.messages import N_, message
from contrastive_core.samples.sample_table import SampleTable
from contrastive_core.spaces.towers import plain_rank

Cells = dict[str, str | float]  # of a row, by title


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
    if table.extra["given"][row] in (table.extra["partner"][row], table.columns["id"][row]):
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
