"""The lists of samples: one record per list defines its ranking, the text of a row, and the possible decisions.
Torch-free."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np

from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import read_card
from contrastive_core.data.overrides import LABEL, PARTNER
from contrastive_core.samples.sample_table import FEWEST, NEAR, TWO_LABELS, K, SampleTable, percent, suspicion
from contrastive_core.samples.tower_pairs import (
    BETTER,
    GIVEN,
    TWIN,
    TWIN_PARTNER,
    Cells,
    ShownBeside,
    beside,
    cells,
    given_answer,
    given_evidence,
    given_question,
    own_row,
    pair_evidence,
)

RANDOM = "random"
MISMATCHED, FALSE_NEGATIVES, GIVEN_NEGATIVES = "mismatched", "false_negatives", "given_negatives"
VOTERS = {"min_loss_class": N_("The loss"), "knn_prediction": N_("Neighbors")}  # by the column of what each names
VOTERS |= {"probe_prediction": N_("Probe"), "discriminant_prediction": N_("Discriminant")}
OWN_RANK = N_(
    "Rank 1: no wrong row is more similar than the row's own partner. Recall also accepts the partner of an equal "
    "caption, so it can be right where this rank is not 1."
)


@dataclass(frozen=True)
class Choice:
    """A decision that a list offers."""

    what: str  # as it is stored: keep, relabel or drop
    text: str
    key: str
    done: str  # what the sample is then


LABEL_CHOICES = (
    Choice("keep", N_("Keep"), "K", N_("kept")),
    Choice("relabel", N_("Relabel"), "R", N_("relabeled")),
    Choice("drop", N_("Drop"), "D", N_("dropped")),
)
NEGATIVE_CHOICES = (
    Choice("relabel", N_("Is a match"), "M", N_("match")),
    Choice("keep", N_("Is no match"), "N", N_("no match")),
)
PAIR_CHOICES = (
    Choice("keep", N_("Is a match"), "M", N_("match")),
    Choice("drop", N_("Is no match"), "N", N_("no match")),
    Choice("relabel", N_("The other is the match"), "O", N_("matched with the other")),
)


@dataclass(frozen=True)
class SampleList:
    """A list of samples sorted by a score, highest first."""

    key: str
    title: str
    how: str  # it is made
    score: str  # what it is, in words
    reason: Callable[[SampleTable, int], str]  # why a row is on it
    column: str  # of the score
    cut: float | None = None  # the first cut-off of a probability
    rests_on: str = "neighbors"  # or "losses"
    facts: Callable[[SampleTable], Iterable[str]] = lambda table: ()  # about the whole set
    beside: Callable[[SampleTable, int], list[ShownBeside]] = lambda table, row: []
    front: Callable[[SampleTable, int], list[ShownBeside]] = own_row  # that the decision is about
    title_beside: str = ""  # of those rows, where they are all that is shown
    of_labels: bool = False  # whether to keep or to drop a sample of it judges its label
    choices: tuple[Choice, ...] = LABEL_CHOICES
    question: str = ""  # that is decided; "": whether the label is right
    decisions: str = ""  # the file of its own decisions; "": the one of all lists about labels
    other: str = ""  # column of what a sample may match, by its id
    changes: str = LABEL  # column of the file that changes a training; "": its decisions change none
    values: Callable[[SampleTable, int], Cells] | None = None  # of a row, in tables and files
    suggests: Callable[[SampleTable, int], str] | None = None  # the other class; None: that of the voters
    are_twins: bool = False  # near-duplicates stand together, and only they are counted

    def order(self, table: SampleTable) -> np.ndarray:
        """Return the rows of the list, strongest suspicion first."""
        rows = table.ranked(self.column)
        return table.paired(rows) if self.are_twins else rows


def why_no_suspects(table: SampleTable) -> str:
    """Return the reason for a missing list of likely wrong labels; "" if the list exists."""
    if np.isfinite(table.columns["mislabeled"]).any() or table.towers[0]:
        return ""
    if not table.labels:
        return N_("There is no list of wrong labels: no sample has a label.")
    if len(table.labels) == 1:
        template = N_("There is no list of wrong labels: every sample has the class {name}.")
        return message(template, name=table.labels[0])
    template = N_("There is no list of wrong labels: it needs {fewest} samples with a label, and there are {n}.")
    return message(template, fewest=FEWEST, n=int((table.columns["label"] != "").sum()))


def _rank_by_loss(table: SampleTable, row: int) -> str:
    loss, rank = (float(table.columns[name][row]) for name in ("loss", "rank"))
    values = {"title": _loss_title(table.loss), "rank": f"{rank:,.0f}", "table": f"{len(table):,}"}
    return message("{title} {loss}, rank {rank} of {table}", loss=f"{loss:.3f}", **values)


@cache
def _loss_title(name: str) -> str:
    """Return the title on a loss's card, or its name if it has none."""
    with suppress(OSError):
        return str(read_card("losses", name)["title"])
    return name


def _votes(table: SampleTable, row: int) -> str:
    if "probe_prediction" not in table.extra:
        return _rank_by_loss(table, row)
    wrong, likely = table.columns["mislabeled"][row], table.extra["suggested_probability"][row]
    template = N_(
        "labeled {label}, suspicion {wrong}; likely {suggested} ({likely}): the loss says {min_loss_class}, neighbors "
        "{knn_prediction}, the probe {probe_prediction}, the discriminant {discriminant_prediction}"
    )
    if wrong <= 0.5:  # another class would contradict the label that is probably right
        template = N_(
            "labeled {label}, suspicion {wrong}: the loss says {min_loss_class}, neighbors {knn_prediction}, the "
            "probe {probe_prediction}, the discriminant {discriminant_prediction}"
        )
    values = {name: table.extra[name][row] for name in ("suggested", *VOTERS)}
    label = str(table.columns["label"][row])
    return message(template, label=label, wrong=suspicion(wrong), likely=percent(likely), **values)


def _pushed_away(table: SampleTable, row: int) -> str:
    other, label = str(table.extra["lookalike"][row]), str(table.columns["label"][row])
    if not label:
        return message("pushed away from {other}", other=other)
    theirs = table.label_of(other) or ""
    if theirs == label:
        return message("pushed away from {other}, {theirs} too", other=other, theirs=theirs)
    return message("pushed away from {other}, {theirs}", other=other, theirs=theirs)


def _beside_lookalike(table: SampleTable, row: int) -> list[ShownBeside]:
    other = str(table.extra["lookalike"][row])
    label = table.label_of(other)
    text = message("pushed away: {label}", label=N_("left out") if label is None else label or other)
    return [ShownBeside(other, text)]


def _nearest_copy(table: SampleTable, row: int) -> str:
    extra = table.extra
    template = N_("nearest: {nearest_duplicate}, at {share} of the distance to its {k}th neighbor")
    if extra["leaked"][row]:
        template = N_(
            "nearest, in the other split: {nearest_duplicate}, at {share} of the distance to its {k}th neighbor"
        )
    return message(
        template,
        nearest_duplicate=extra["nearest_duplicate"][row],
        share=f"{100 * max(0.0, 1 - float(extra['nearness'][row])):.0f} %",
        k=K,
    )


def _beside_copy(table: SampleTable, row: int) -> list[ShownBeside]:
    is_far = bool(table.extra["leaked"][row])
    text = N_("nearest, in the other split") if is_far else N_("nearest")
    return [ShownBeside(str(table.extra["nearest_duplicate"][row]), text, is_far)]


def _twin_label(table: SampleTable, row: int) -> str:
    return str(table.columns["label"][table.twin[row]]) if table.twin[row] >= 0 else ""


def _copy_facts(table: SampleTable) -> Iterable[str]:
    near, leaks = table.extra["nearness"] > NEAR, table.extra["leaked"]
    template = N_(
        "{count} samples have a neighbor at most a tenth as far away as their 20th. Of these pairs, "
        "{leaks} cross splits."
    )
    yield message(template, count=f"{int(near.sum()):,}", leaks=f"{int((near & leaks).sum()):,}")


LISTS = {
    one.key: one
    for one in (
        SampleList(
            key="mislabeled",
            title=N_("Likely mislabeled"),
            how=N_(
                "Five voters give each class a probability without seeing the sample's label. They are its supervised "
                "contrastive loss under that class, its 20 nearest neighbors, linear probes on unit rows and on scaled "
                "columns, and a linear discriminant. All are trained without the sample. The score, 0 to 1, compares "
                "the votes for the label and for other classes. It sorts: a weak encoder has wrong labels and right "
                "ones above 0.99. Only the random check tells the number of errors, and it corrects the score."
            ),
            score=N_("suspicion that the label is wrong"),
            reason=_votes,
            column="mislabeled",
            cut=0.5,
            of_labels=True,
        ),
        SampleList(
            key="loss",
            title=N_("Highest loss"),
            how=N_(
                "Samples with the highest loss against all other samples of the split. Training works on these "
                "most. To find wrong labels, use the list of likely mislabeled samples."
            ),
            score=N_("loss"),
            reason=_rank_by_loss,
            column="loss",
            rests_on="losses",
            of_labels=True,
        ),
        SampleList(
            key="false_negative",
            title=N_("Likely false negatives"),
            how=N_(
                "Samples that the loss pushes away from a look-alike. Score: cosine similarity to the nearest negative."
            ),
            score=N_("cosine similarity to the nearest negative"),
            reason=_pushed_away,
            column="false_negative",
            facts=lambda table: [
                message(
                    "Of the 5 % of pairs pushed hardest, {share} % are of the same class.", share=f"{100 * share:.0f}"
                )
                for name, share in table.facts.items()
                if name == "false_negatives_of_same_class"
            ],
            beside=_beside_lookalike,
            choices=NEGATIVE_CHOICES,
            question=N_("The loss pushes it away from the first sample beside it. Are they a match?"),
            decisions="false_negative",
            other="lookalike",
            changes="",
        ),
        SampleList(
            key="duplicate",
            title=N_("Near-duplicates and leaks"),
            how=N_(
                "Samples much nearer to one sample of either split than to their 20th neighbor, in the embedding "
                "or in pixels. Score: 1 − d₁/d₂₀, in interquartile ranges above the median."
            ),
            score=N_("near-duplicate score"),
            reason=_nearest_copy,
            column="duplicate",
            facts=_copy_facts,
            beside=_beside_copy,
            are_twins=True,
        ),
        SampleList(
            key=TWO_LABELS,
            title=N_("Same picture, two labels"),
            how=N_(
                "Near-duplicates with different labels, in the embedding or in pixels. One label of each pair is "
                "wrong, or both fit. Pairs are listed together, the label more likely to be wrong first."
            ),
            score=N_("the higher of the pair's two probabilities of a wrong label"),
            reason=lambda table, row: message(
                "same picture as {other}, labeled {label}",
                other=table.extra["nearest_duplicate"][row],
                label=_twin_label(table, row),
            ),
            column=TWO_LABELS,
            beside=_beside_copy,
            are_twins=True,
            suggests=_twin_label,
        ),
        SampleList(
            key="outlier",
            title=N_("Outliers"),
            how=N_(
                "Samples far from all others, in the embedding or in pixels. Score: logarithm of the mean "
                "distance to the 20 nearest, in interquartile ranges above the median. The list finds damaged "
                "and unrelated samples, not wrong labels."
            ),
            score=N_("outlier score"),
            reason=lambda table, row: message(
                "{number} interquartile ranges above the median", number=f"{table.columns['outlier'][row]:.1f}"
            ),
            column="outlier",
        ),
        SampleList(
            key=RANDOM,
            title=N_("Random check"),
            how=N_(
                "Rows are drawn from all rows, so the check also finds wrong labels that the encoder misses. The draw "
                "is the same each time and for every run of the data set. Only decisions made one by one on these rows "
                "change the estimate."
            ),
            score=N_("suspicion that the label is wrong"),
            reason=_rank_by_loss,
            column="mislabeled",
            of_labels=True,
        ),
        SampleList(
            key=MISMATCHED,
            title=N_("Mismatched pairs"),
            how=N_(
                "Pairs that are unlikely to belong together: the two are less similar than each is to its nearest rows "
                "of the other tower, and the partners of similar rows are not similar either."
            ),
            score=N_("mismatch score"),
            reason=pair_evidence,
            column="mismatched",
            beside=beside(BETTER),
            title_beside=N_("Its partner, and the best other fit"),
            choices=PAIR_CHOICES,
            question=N_("Are the two of this pair a match?"),
            decisions="pairs-mismatched",
            other="better",
            changes=PARTNER,
            values=cells(BETTER),
        ),
        SampleList(
            key=FALSE_NEGATIVES,
            title=N_("False negatives"),
            how=N_(
                "Two pairs that a loss pushes apart although each fits the other's partner: their texts, or what "
                "the texts describe, mean the same."
            ),
            score=N_("similarity of the two pairs"),
            reason=pair_evidence,
            column="false_negatives",
            beside=beside(TWIN_PARTNER, TWIN),
            title_beside=N_("Its partner, and the similar pair"),
            choices=NEGATIVE_CHOICES,
            question=N_("The loss pushes the two pairs apart. Are they a match?"),
            decisions="pairs-false_negatives",
            other="twin_partner",
            changes="",
            values=cells(TWIN_PARTNER, TWIN),
        ),
        SampleList(
            key=GIVEN_NEGATIVES,
            title=N_("Given negatives"),
            how=N_(
                "Rows that the file lists as negatives of a query. The score is the mean of two cosines: to the query, "
                "and to its answers. The higher it is, the more likely the negative is a match."
            ),
            score=N_("similarity to the query and its answers"),
            reason=given_evidence,
            column="given_negatives",
            beside=given_answer,
            title_beside=N_("Answer of the query"),
            front=given_question,
            choices=NEGATIVE_CHOICES,
            question=N_("The file lists the second as a negative of the first. Are they a match?"),
            decisions="pairs-given_negatives",
            other="given",
            changes="",
            values=cells(GIVEN),
        ),
    )
}
