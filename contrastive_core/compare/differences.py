"""Groups of samples on which two embeddings differ: close together in one space and scattered in the other.

Groups are found by SPEC (arXiv 2506.06231): the leading eigenvectors of K_A / tr K_A − K_B / tr K_B, where K is the
cosine kernel of centered rows. The features of this kernel are the rows themselves, so the eigenvectors come from a
matrix as wide as the rows, in time linear in their number. Deviations: k-means on the scaled eigenvectors forms the
groups, and a group is measured by its cohesion, the probability that a member is nearer to another member than to a
non-member.

Two trainings of one method differ too, so a group counts only if its gap of cohesion exceeds chance. For chance, each
space is rotated at random and its columns are split in two, as if they were two trainings on the same data; the largest
gap of any group between the halves is computed for 39 splits. The maximum over all groups keeps false groups below 5 %.
Runs with the same settings and another seed raise the threshold to their largest gap. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from contrastive_core import runs
from contrastive_core.base.errors import CannotScore
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.memory import rows_of_sample
from contrastive_core.base.messages import N_, Message, join, message
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.compare.comparison import without_seed
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.results import Values
from contrastive_core.spaces.space import Space, content_of

LEAST = 50  # rows
AXES, CLUSTERS = 8, 8  # eigenvectors and clusters of either sign
JUDGED, MEMBERS = 1000, 10  # rows for the cohesion, and how many of them a group needs
HALVES, LEVEL = 39, 0.05  # splits of each space, and the share of false discoveries
WIDEST = 512  # columns; wider rows are reduced to their principal components
MOST, FACTS = 4, 3  # groups of either space, and factors of each
EXAMPLES = 12  # samples of a group that are shown
KINDS, FEW, PARTS = 50, 10, 5  # maximum kinds of texts, maximum kinds of integers, and parts of other numbers
COLORS = (N_("red"), N_("yellow"), N_("green"), N_("cyan"), N_("blue"), N_("magenta"))  # names of hues from 0 to 1
EXCEPT = {"pair", "split", "group", "id", "row of the space"}  # columns that say nothing about a sample's content
ROW = "row of the space"  # a column that the answer adds
EPS = 1e-9  # relative to the largest eigenvalue
NONE = N_("No difference stands out.")


@dataclass(frozen=True)
class Fact:
    """A class or a range of a factor that is more frequent in a group than in all samples."""

    factor: str
    kind: str
    share: float
    base: float

    @property
    def sentence(self) -> Message:
        values = {"share": f"{100 * self.share:.0f}", "base": f"{100 * self.base:.0f}"}
        text = N_("{factor} is {kind} in {share} % of them ({base} % of all)")
        return message(text, factor=self.factor.replace("_", " "), kind=self.kind, **values)


@dataclass(frozen=True)
class Group:
    """Samples that are close together in the space `near` (0 or 1) and scattered in the other.

    `rows`: their indices, the most typical first; `cohesion` in each space, 0.5 by chance; `p`: compared with the
    halves."""

    near: int
    rows: list[int]
    cohesion: tuple[float, float]
    p: float
    facts: list[Fact]
    is_described: bool  # whether classes or factors are known

    @property
    def gap(self) -> float:
        return self.cohesion[self.near] - self.cohesion[1 - self.near]

    def sentence(self, names: Sequence[str]) -> Message:
        """Describe the size of the group, the space in which it is close together, and its facts."""
        values = {"n": f"{len(self.rows):,}", "near": names[self.near], "far": names[1 - self.near]}
        text = N_("{n} samples lie together in {near} and apart in {far}.")
        if self.facts:
            text = N_("{n} samples lie together in {near} and apart in {far}: {facts}.")
            values["facts"] = join("; ", [fact.sentence for fact in self.facts])
        elif self.is_described:
            text = N_("{n} samples lie together in {near} and apart in {far}. No class or factor stands out in them.")
        return message(text, **values)


@dataclass(frozen=True)
class Differences:
    """The groups that exceed chance among `n` shared rows: those of the first space first, the largest gap first.

    `left_out`: rows of each space without a counterpart; `bar`: the gap that a group must exceed; `seeds`: runs with
    another seed that contribute to `bar`."""

    groups: list[Group]
    n: int
    left_out: tuple[int, int]
    bar: float
    seeds: list[str]

    @property
    def notes(self) -> list[Message]:
        """Sentences on the basis of the result and the compared rows."""
        bar = f"{100 * self.bar:.0f}"
        basis = message(
            "A group is shown if its gap exceeds {bar} points. Random halves of one space reach that in at most 5 % of "
            "{count} splits.",
            bar=bar,
            count=HALVES,
        )
        notes = [basis]
        if self.seeds:
            text = N_("Runs with the same settings and another seed do not reach it either: {runs}.")
            notes.append(message(text, runs=", ".join(self.seeds)))
        if any(self.left_out):
            a, b = (f"{count:,}" for count in self.left_out)
            text = N_("Only the {n} samples in both spaces are compared: {a} of A and {b} of B are left out.")
            notes.append(message(text, n=f"{self.n:,}", a=a, b=b))
        return notes

    @classmethod
    def of(cls, plain: JsonObject) -> Differences:
        """Rebuild differences from the result of `asdict`."""
        groups = [
            Group(**{**g, "cohesion": tuple(g["cohesion"]), "facts": [Fact(**fact) for fact in g["facts"]]})
            for g in plain["groups"]
        ]
        return cls(**{**plain, "groups": groups, "left_out": tuple(plain["left_out"])})


def differences_request(spaces: Sequence[Space]) -> Values:
    """Build the request for the analysis "differences" of two spaces, with at most two runs per space that differ from
    it only in the seed. Raises ValueError for another number of spaces."""
    if len(spaces) != 2:
        raise ValueError(message("differences compare two spaces; got {count}", count=len(spaces)))
    used = {space.name for space in spaces}
    seeds: list[list[Any]] = []
    for at, space in enumerate(spaces):
        if (own := space.run) is None:
            continue
        others = [r for r in runs.list_runs() if r.name not in used and r.config.get("seed") != own.config.get("seed")]
        same = [r for r in others if without_seed(r.config) == without_seed(own.config) and r.data_key == own.data_key]
        for run in [r for r in same if r.weights.exists()][:2]:
            used.add(run.name)
            seeds.append([at, replace(space, name=run.name, content=content_of(run, space.layer)).values])
    return {"spaces": [s.values for s in spaces], "names": [s.title for s in spaces], "seeds": seeds}


def find_differences(
    sets: Sequence[EmbeddingSet],
    names: Sequence[str] = ("A", "B"),
    seeds: Sequence[tuple[str, EmbeddingSet, EmbeddingSet]] = (),
    left_out: tuple[int, int] = (0, 0),
    on_progress: OnProgress = ignore_progress,
) -> Differences:
    """Find the groups of samples on which two spaces differ more than by chance.

    Args: sets: two sets of the same rows, with their names; seeds: a name and two sets of the same rows, for runs that
        differ in the seed; left_out: rows of each space without a counterpart.
    Raises: CannotScore for fewer than 50 usable rows, equal rows, or a single column."""
    from threadpoolctl import threadpool_limits

    usable = np.intersect1d(sets[0].usable, sets[1].usable)
    if len(usable) < LEAST:
        raise CannotScore("differences need at least {least} shared rows; got {count}", least=LEAST, count=len(usable))
    known, generator = _known(sets[0].take(usable)), np.random.default_rng(0)
    with threadpool_limits(1):  # many small products, for which threads only add overhead
        on_progress(N_("groups that differ"), None)
        a, b = (_rows(one.features[usable], name) for one, name in zip(sets, names, strict=True))
        judged = generator.permutation(rows_of_sample(len(a), JUDGED))  # random order decides ties of the similarity
        found = list(_groups(a, b, judged))
        chance = np.zeros((2, HALVES))
        for number, split in np.ndindex(chance.shape):
            on_progress(N_("estimating chance"), (number * HALVES + split) / chance.size)
            x = (a, b)[number][judged]
            rotation = np.linalg.qr(generator.standard_normal((x.shape[1], x.shape[1])))[0].astype(np.float32)
            halves = [unit_rows(half) for half in np.array_split(x @ rotation, 2, axis=1)]  # of rotated columns
            chance[number, split] = _largest_gap(halves[0], halves[1])
        bar = float(np.sort(chance, axis=1)[:, -int(LEVEL * (HALVES + 1))].max())
        for name, *pair in seeds:
            on_progress(N_("estimating the variation over seeds"), None)
            some = generator.permutation(rows_of_sample(len(pair[0]), JUDGED))
            bar = max(bar, _largest_gap(*(_rows(one.features[some], name) for one in pair)))
    groups: list[Group] = []
    for near, rows, cohesion in sorted(found, key=lambda one: (one[0], one[2][1 - one[0]] - one[2][one[0]])):
        gap = cohesion[near] - cohesion[1 - near]
        if gap > bar and sum(group.near == near for group in groups) < MOST:
            p = float((1 + (chance >= gap).sum(1).max()) / (1 + HALVES))
            groups.append(Group(near, usable[rows].tolist(), cohesion, p, _facts(rows, known), bool(known)))
    return Differences(groups, len(usable), left_out, bar, [name for name, *_ in seeds])


def _rows(features: Float[np.ndarray, "n d"], name: str) -> Float[np.ndarray, "n c"]:
    """Center rows, reduce them to at most WIDEST columns and scale them to unit length. Raises CannotScore."""
    if features.shape[1] < 2:
        raise CannotScore("{name} has a single column; differences need two at least", name=name)
    x = features - features.mean(0, dtype=np.float64).astype(np.float32)
    if np.abs(x).max() <= 1e-6 * max(np.abs(features).max(), 1e-30):
        raise CannotScore("all rows of {name} are equal: it tells no samples apart", name=name)
    if x.shape[1] > WIDEST:
        from sklearn.decomposition import PCA

        components = min(WIDEST, *x.shape)
        x = PCA(components, svd_solver="randomized", random_state=0).fit_transform(x).astype(np.float32)
    return unit_rows(x)


def contrast_axes(
    a: Float[np.ndarray, "n a"], b: Float[np.ndarray, "n b"]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "n c"], Float[np.ndarray, "c m"]]:
    """Return the ascending eigenvalues of K_A / tr K_A − K_B / tr K_B, Φ = [A / ‖A‖, B / ‖B‖], and the map from Φ to
    the eigenvectors. With ΦᵀΦ = VSVᵀ, R = S^½Vᵀ and Λ = diag(1, …, −1, …): (RΛRᵀ) w = λ w gives (ΦΛΦᵀ) u = λ u for
    u = Φ V S^−½ w."""
    phi = np.hstack([a / np.linalg.norm(a), b / np.linalg.norm(b)])
    s, v = np.linalg.eigh((phi.T @ phi).astype(np.float64))
    s, v = s[s > EPS * s[-1]], v[:, s > EPS * s[-1]]
    signs = np.repeat([1.0, -1.0], [a.shape[1], b.shape[1]])
    r = np.sqrt(s)[:, None] * v.T
    values, w = np.linalg.eigh(r * signs @ r.T)
    return values, phi, v / np.sqrt(s) @ w


def _groups(
    a: Float[np.ndarray, "n a"], b: Float[np.ndarray, "n b"], judged: Int[np.ndarray, " j"]
) -> Iterator[tuple[int, np.ndarray, tuple[float, float]]]:
    """Yield clusters of the leading eigenvectors of each sign: the space in which they may be close together, their
    rows (the most typical first), and the cohesion in both spaces on the rows `judged`: the probability that a member
    is nearer to a member than to a non-member."""
    from sklearn.cluster import KMeans

    values, phi, turn = contrast_axes(a, b)
    ranks, clusters = [_ranks(x[judged]) for x in (a, b)], min(CLUSTERS, len(a) // (2 * MEMBERS))
    for near, sign in enumerate((1, -1)):
        axes = np.argsort(-sign * values)[:AXES]
        axes = axes[sign * values[axes] > EPS]
        if not len(axes):
            continue
        scaled = (phi @ turn[:, axes]) * np.sqrt(np.abs(values[axes]))
        means = KMeans(clusters, n_init=2, random_state=0).fit(scaled)
        distance = np.linalg.norm(scaled - means.cluster_centers_[means.labels_], axis=1)
        for cluster in range(clusters):
            member = means.labels_ == cluster
            inside, n, k = member[judged], len(judged), int(member[judged].sum())
            if k >= MEMBERS:
                rows, cohesion = np.flatnonzero(member), [0.5, 0.5]
                for space, of_space in enumerate(ranks if k < n else ()):  # Mann-Whitney U
                    u = of_space[np.ix_(inside, inside)].sum(1) + 1 - (k - 1) * (k - 2) / 2
                    cohesion[space] = float((u / ((k - 1) * (n - k))).mean())
                in_a, in_b = cohesion
                yield near, rows[np.argsort(distance[rows], kind="stable")], (in_a, in_b)


def _ranks(x: Float[np.ndarray, "j d"]) -> Int[np.ndarray, "j j"]:
    """Return the rank (j, j) of each row by its similarity to each row, 0 for the least similar; −1 for itself."""
    similarity = x @ x.T
    np.fill_diagonal(similarity, -np.inf)
    ranks = np.empty(similarity.shape, np.int32)
    np.put_along_axis(ranks, similarity.argsort(1), np.arange(-1, len(x) - 1, dtype=np.int32)[None], axis=1)
    return ranks


def _largest_gap(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest gap of cohesion of any group between two spaces."""
    return max((c[near] - c[1 - near] for near, _, c in _groups(a, b, np.arange(len(a)))), default=0.0)


# --- what a group contains -----------------------------------------------------------------------


def _known(rows: EmbeddingSet) -> dict[str, tuple[np.ndarray, Sequence[str]]]:
    """Return for each factor, including the class, the kind of each row (−1 if unknown) and the names of the kinds. Few
    values are kinds as they are, hues are named by color, and other numbers are divided into fifths; constant columns
    and those with too many texts are left out."""
    known: dict[str, tuple[np.ndarray, Sequence[str]]] = {}
    if rows.labels is not None:
        known[N_("class")] = rows.labels, [rows.class_name(c) for c in range(int(rows.labels.max()) + 1)]
    for name, values in rows.columns.items():
        if name in EXCEPT:
            continue
        if values.dtype.kind not in "fiub":
            distinct, kinds = np.unique(values, return_inverse=True)
            if 1 < len(distinct) <= KINDS:
                known[name] = kinds, list(map(str, distinct))
            continue
        numbers = values.astype(np.float64)
        finite = np.isfinite(numbers)
        distinct, names = np.unique(numbers[finite]), list[str]()
        if len(distinct) < 2:
            continue
        if len(distinct) <= FEW and (distinct == np.round(distinct)).all():
            kinds, names = np.searchsorted(distinct, numbers), [f"{value:g}" for value in distinct]
        elif name.endswith("hue") and distinct[0] >= 0 and distinct[-1] <= 1:
            kinds, names = np.nan_to_num(np.round(numbers * len(COLORS))).astype(int) % len(COLORS), list(COLORS)
        else:
            ends = np.quantile(numbers[finite], np.linspace(0, 1, PARTS + 1))
            kinds = np.searchsorted(ends[1:-1], numbers)
            names = [message("{low} to {high}", low=f"{low:.2g}", high=f"{high:.2g}") for low, high in pairwise(ends)]
        known[name] = np.where(finite, kinds, -1), names
    return known


def _facts(rows: np.ndarray, known: dict[str, tuple[np.ndarray, Sequence[str]]]) -> list[Fact]:
    """Return the kinds that are significantly more frequent in a group than in all rows, at most one per factor, the
    largest difference in standard deviations first. The test is exact and corrected for the number of kinds
    (Bonferroni)."""
    from scipy.stats import hypergeom

    tests = sum(len(names) for _, names in known.values())
    facts: list[tuple[float, Fact]] = []
    for factor, (kinds, names) in known.items():
        counts, inside = (np.bincount(k[k >= 0], minlength=len(names)) for k in (kinds, kinds[rows]))
        shares, bases = inside / len(rows), counts / len(kinds)
        lift = (shares - bases) / np.sqrt(np.maximum(bases * (1 - bases), 1e-12))
        best = int(lift.argmax())
        if tests * hypergeom.sf(inside[best] - 1, len(kinds), counts[best], len(rows)) < LEVEL:
            facts.append((lift[best], Fact(factor, names[best], float(shares[best]), float(bases[best]))))
    return [fact for _, fact in sorted(facts, key=lambda one: -one[0])[:FACTS]]
