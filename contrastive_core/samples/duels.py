"""Duels: which of two models gives the better first answer, by a person's clicks instead of relevance judgments.

Only queries to which the models give different first answers are judged, in a random order that depends only on their
ids, with the answers in random order and without names. A decision scores 1 if the answer of A is better, −1 if that of
B is, and 0 for both or neither. Queries to which both give the same answer score 0 without a click, in their place of
the same order. The mean of these scores estimates the difference of A and B over all queries: the share of queries
with different answers times the difference on them, in points of queries with a good first answer.

The interval of the mean holds at any number of decisions (base/score.py), so a person may look at it after each
click and stop. It excludes 0 if and only if the sign test of the decisions for A and for B, with the same guarantee,
rejects that both are equally good. Queries are treated as a random sample of those that models are for, as in the other
comparisons. Each pair of embeddings has one file of decisions; the order of the two does not matter. Torch-free."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from contrastive_core.base.messages import N_, Message, join, message
from contrastive_core.base.score import mean_interval
from contrastive_core.base.storage import data_home
from contrastive_core.compare.comparison import common
from contrastive_core.compare.towers import most_similar
from contrastive_core.compare.verdicts import Contrast
from contrastive_core.samples import annotations
from contrastive_core.samples.annotations import Marks
from contrastive_core.samples.label_audit import draw
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import nearest_of
from contrastive_core.spaces.towers import TEXT, towers_of

MOST = 2000  # queries, the first of the random order
MARGIN = 0.02  # difference that matters, as a share of queries
BETTER, BOTH, NEITHER = OUTCOMES = ("better", "both", "neither")
KEYS = ("left", "right", BOTH, NEITHER)
TWO = N_("duels compare two spaces; got {count}")
SAME = N_("Both models give the same first answer to all {queries} queries.")
STOP = N_("You can stop: this holds with 95 % confidence at any number of decisions.")
OPEN = N_("Still open: judge more queries.")
DONE = N_("Every query with different answers is judged. Only more queries can narrow the interval.")


@dataclass(frozen=True)
class Standing:
    """The decisions so far, and the difference of both models over all queries."""

    names: tuple[str, str]
    queries: int
    differing: int  # queries to which both give different first answers
    reached: int  # queries of the random order before the first open duel
    wins: tuple[int, int]  # decisions for the answer of A, and for that of B
    both: int
    neither: int

    @property
    def decided(self) -> int:
        return sum(self.wins) + self.both + self.neither

    @cached_property
    def contrast(self) -> Contrast:
        """The difference of A and B, with an interval that holds at any number of decisions."""
        a, b = self.wins
        counts = np.array([b, self.reached - a - b, a])
        return Contrast(
            first=self.names[0],
            second=self.names[1],
            difference=(a - b) / max(1, self.reached),
            interval=mean_interval(np.array([-1.0, 0.0, 1.0]), counts, -1, 1),
            basis=message("{count} decisions", count=self.decided) if self.decided > 1 else N_("1 decision"),
        )

    def is_over(self, margin: float = MARGIN) -> bool:
        """Return whether one model is better, or the difference is below the margin."""
        low, high = self.contrast.interval or (-1.0, 1.0)
        return bool(self.contrast.sign) or max(-low, high) < margin

    def sentence(self, margin: float = MARGIN) -> Message:
        """Describe the difference, whether it matters, and whether to judge more. Args: margin: as a share."""
        if not self.differing:
            return message(SAME, queries=f"{self.queries:,}")
        if not self.decided:
            return message(OPEN)
        more = STOP if self.is_over(margin) else DONE if self.decided == self.differing else OPEN
        return join(" ", [self.contrast.sentence, self.contrast.against(margin), message(more)])


@dataclass(frozen=True, eq=False)
class Duels:
    """The first answers of two models to the same queries, in the order in which they are judged."""

    names: tuple[str, str]
    rows: EmbeddingSet  # the samples that both have
    queries: Int64[np.ndarray, " n"]  # rows
    answers: Int64[np.ndarray, "2 n"]  # rows, of A and of B
    file: Path  # of decisions

    @classmethod
    def of(cls, names: Sequence[str], sets: Sequence[EmbeddingSet]) -> "Duels":
        """Find the first answers: the most similar row of the other tower, or else the most similar other row.
        Raises: ValueError for other than two spaces, or without common samples."""
        if len(sets) != 2:
            raise ValueError(message(TWO, count=len(sets)))
        pair, hashes = common(sets), sorted(rows.content_hash for rows in sets)
        (first, second), usable = map(towers_of, pair), np.zeros(len(pair[0]), bool)
        usable[np.intersect1d(pair[0].usable, pair[1].usable)] = True
        if first and second:
            usable[first.b] = False
        queries = draw(np.array(pair[0].ids), usable)[:MOST]
        if first and second:
            found = [most_similar(towers, queries) for towers in (first, second)]
        else:
            sides = [(rows, rows.usable) for rows in pair]
            found = [at[nearest_of(rows.take(at), np.searchsorted(at, queries), 1)[0][:, 0]] for rows, at in sides]
        name = hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:24]
        file = data_home() / "decisions" / "duels" / f"{name}.jsonl"
        return cls((names[0], names[1]), pair[0], queries, np.stack(found), file)

    def text(self, row: int) -> str:
        """Return the text of a sample, or else its id."""
        texts = self.rows.columns.get(TEXT, ())
        return (str(texts[row]) if len(texts) else "") or self.rows.ids[row]

    @cached_property
    def differ(self) -> Bool[np.ndarray, " n"]:
        """Whether the answers are different; two samples of the same text are the same answer."""
        return np.array([self.text(a) != self.text(b) for a, b in self.answers.T.tolist()], bool)

    def shown(self, number: int) -> list[int]:
        """Return the answers to a query as they are shown, from left to right, in random order."""
        key = f"{self.file.stem} {self.rows.ids[self.queries[number]]}".encode()
        return self.answers[:, number].tolist()[:: 1 if hashlib.blake2b(key).digest()[0] % 2 else -1]

    def marks(self) -> Marks:
        """Return the decision on each query."""
        return annotations.marks(self.file, OUTCOMES)

    def next(self, marks: Marks) -> int | None:
        """Return the number of the first open duel; None if all are decided."""
        open_ones = (n for n in np.flatnonzero(self.differ).tolist() if self.rows.ids[self.queries[n]] not in marks)
        return next(open_ones, None)

    def decide(self, number: int, key: str, by: str = "") -> None:
        """Store the decision on a query. Args: key: one of KEYS; by: the window."""
        what = BETTER if key in KEYS[:2] else key
        winner = self.rows.ids[self.shown(number)[KEYS.index(key)]] if what == BETTER else None
        self.file.parent.mkdir(parents=True, exist_ok=True)
        line = {"id": self.rows.ids[self.queries[number]], "what": what, "label": winner}
        annotations.add_many(self.file, [line], choices=OUTCOMES, by=by)

    def standing(self, marks: Marks) -> Standing:
        """Count the decisions before the first open duel."""
        stop = self.next(marks)
        reached = len(self.queries) if stop is None else stop
        ids, numbers = self.rows.ids, np.flatnonzero(self.differ[:reached]).tolist()
        decided = [marks[ids[self.queries[number]]] for number in numbers]
        said, winners = [mark["what"] for mark in decided], [mark.get("label") for mark in decided]
        of_both = ([ids[row] for row in side[numbers].tolist()] for side in self.answers)
        a, b = (sum(map(str.__eq__, own, map(str, winners))) for own in of_both)
        return Standing(
            names=self.names,
            queries=len(self.queries),
            differing=int(self.differ.sum()),
            reached=reached,
            wins=(a, b),
            both=said.count(BOTH),
            neither=said.count(NEITHER),
        )
