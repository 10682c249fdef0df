"""Two towers in one embedding set: rows of two encoders, their pairing, and the columns of a file. Torch-free.

The rows of both towers are stacked, tower a first, with two reserved columns of text: `tower`, the name of the tower of
each row, and `pair`, the group of each row. Rows of one group are partners; "" means no group."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
from jaxtyping import Int64

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_
from contrastive_core.spaces.embedding_set import EmbeddingSet

TOWER, PAIR, TEXT = "tower", "pair", "text"
RESERVED = (TOWER, PAIR)
NEGATIVE_OF = "negative_of"  # column: the groups that a row is a given negative of, with spaces between
OF_RUN = ("image", "caption")  # names of the towers of a run
DEFAULT_TEMPLATES = ("a photo of a {}", "a picture of a {}", "a {}")  # of zero-shot prompts
WIDTHS = N_(
    "rows of {a} have {width_a} numbers and rows of {b} {width_b}; both towers must embed into the same space, "
    "with vectors of equal width"
)
COUNTS = N_(
    "{a} has {n} rows and {b} {m}; towers of different size need a column that says which rows belong together, "
    "for example the id of the image or question. Two files have a column pair, one .npz has the arrays {a}_pair and "
    "{b}_pair. Relevance judgments also need a column id, or the arrays {a}_id and {b}_id"
)
NO_GROUP = N_("{a} and {b} have no group in common: {a} has groups such as {first_a}, {b} has {first_b}")
NAMES = N_("two towers need two different names, not {a} and {b}")
LENGTHS = N_("{name} has {n} rows but {groups} groups")
ORDINARY = N_(
    "The column tower does not say which rows are partners, so all rows are shown as one set. Two towers need two "
    "names and a column pair."
)
Groups = Sequence[str] | Sequence[int] | np.ndarray


@dataclass(frozen=True, eq=False)
class Towers:
    """Rows of two towers in one set. `a`, `b`: row numbers (n), (m); `group_a`, `group_b`: the number of each row's
    group, -1 for a row without a partner in the other tower; `names`: of tower a and of tower b."""

    rows: EmbeddingSet
    a: np.ndarray
    b: np.ndarray
    group_a: np.ndarray
    group_b: np.ndarray
    names: tuple[str, str]

    @property
    def without_partner(self) -> tuple[int, int]:
        return int((self.group_a < 0).sum()), int((self.group_b < 0).sum())

    @property
    def are_texts(self) -> bool:
        """Whether every row of both towers has a text."""
        texts = self.rows.columns.get(TEXT)
        return texts is not None and texts.dtype.kind == "U" and bool((texts != "").all())

    def given_negatives(self) -> Int64[np.ndarray, "k 2"]:
        """Return row numbers of b that the file lists as negatives, each with the group whose negative it is."""
        of, pairs = self.rows.columns.get(NEGATIVE_OF, np.array([])), self.rows.columns[PAIR][self.a].tolist()
        number = {pair: group for pair, group in zip(pairs, self.group_a.tolist(), strict=True) if group >= 0}
        rows = self.b[of[self.b] != ""].tolist() if of.dtype.kind == "U" else []
        found = [(row, number[pair]) for row in rows for pair in str(of[row]).split() if pair in number]
        return np.array(found, np.int64).reshape(-1, 2)

    def given_in(self, a: Int64[np.ndarray, " n"], b: Int64[np.ndarray, " m"]) -> Int64[np.ndarray, "k 2"]:
        """Return the given negatives among some rows of a and b, as places in both."""
        group, place = dict(zip(self.a.tolist(), self.group_a.tolist(), strict=True)), {r: j for j, r in enumerate(b)}
        of_group = defaultdict[int, list[int]](list)
        for row, of in self.given_negatives().tolist():
            if row in place:
                of_group[of].append(place[row])
        found = [(i, j) for i, row in enumerate(a.tolist()) for j in of_group[group[row]]]
        return np.array(found, np.int64).reshape(-1, 2)

    def rows_of(self, name: str) -> Int64[np.ndarray, " k"]:
        return self.a if name == self.names[0] else self.b

    def usable_sides(self) -> list[tuple[Int64[np.ndarray, " k"], Int64[np.ndarray, " k"]]]:
        """Return the row numbers and groups of the usable rows (finite and not zero) of a and of b."""
        kept = [np.isin(at, self.rows.usable) for at in (self.a, self.b)]
        return [(self.a[kept[0]], self.group_a[kept[0]]), (self.b[kept[1]], self.group_b[kept[1]])]

    def partner_pairs(self, most: int) -> tuple[Int64[np.ndarray, "m 2"], int]:
        """Return the row numbers of partners (m, 2), one of a and one of b each, and the total number of such pairs. If
        it exceeds `most`, an evenly spaced subset is returned."""
        order = np.argsort(self.group_a, kind="stable")
        start, stop = (np.searchsorted(self.group_a[order], self.group_b, side) for side in ("left", "right"))
        counts = np.where(self.group_b < 0, 0, stop - start)  # (m), partners of each row of b
        total = int(counts.sum())
        chosen = np.linspace(0, total - 1, most).astype(np.int64) if total > most else np.arange(total)
        row_b = np.searchsorted(np.cumsum(counts), chosen, "right")
        offset = chosen - (np.cumsum(counts) - counts)[row_b]
        return np.stack([self.a[order[start[row_b] + offset]], self.b[row_b]], 1), total


def plain_rank(rank: float) -> int | float:
    """Format an expected rank: an integer, or one decimal for tied rows."""
    return int(rank) if float(rank).is_integer() else round(float(rank), 1)


def are_tower_names(names: object) -> TypeGuard[Sequence[str]]:
    """Return whether these are two different names."""
    if not isinstance(names, (tuple, list)) or len(names) != 2 or not all(isinstance(one, str) for one in names):
        return False
    return names[0] != names[1] and all(one.strip() for one in names)


def towers_of(rows: EmbeddingSet) -> Towers | None:
    """Return the two towers of a set; None if a column is missing or does not name exactly two."""
    names, pairs = rows.columns.get(TOWER), rows.columns.get(PAIR)
    if names is None or pairs is None or names.dtype.kind != "U" or pairs.dtype.kind != "U":
        return None
    found = list(dict.fromkeys(names.tolist()))
    if len(found) != 2:
        return None
    a, b = np.flatnonzero(names == found[0]), np.flatnonzero(names == found[1])
    group_a, group_b = _numbers(pairs[a], pairs[b])
    return Towers(rows, a, b, group_a, group_b, (found[0], found[1]))


def why_ordinary(rows: EmbeddingSet) -> str:
    """Return a sentence if a column `tower` names several towers that are no two; else ""."""
    names = rows.columns.get(TOWER)
    is_plain = names is None or names.dtype.kind != "U" or len({*names.tolist()}) < 2
    return "" if is_plain or towers_of(rows) else ORDINARY


def recognized(rows: EmbeddingSet) -> EmbeddingSet:
    """Return a table's rows with its columns `tower` and `pair` as texts, if it has both. Without `pair`, rows of two
    towers with the same id are partners."""
    tower, pair = rows.columns.get(TOWER), rows.columns.get(PAIR)
    if tower is None:
        return rows
    if pair is None:
        names, known = np.unique(tower), np.array(rows.ids)
        if tower.dtype.kind != "U" or len(names) != 2:
            return rows
        if not np.isin(known[tower == names[0]], known[tower == names[1]]).any():
            return rows
    columns = {TOWER: _texts(tower), PAIR: _texts(np.array(rows.ids) if pair is None else pair)}
    ids = rows.ids
    if len({*ids}) < len(ids):
        ids = tuple(f"{name}:{i}" for name, i in zip(columns[TOWER].tolist(), ids, strict=True))
    return replace(rows, ids=ids, columns=rows.columns | columns)


def joined(
    a: EmbeddingSet,
    b: EmbeddingSet,
    names: tuple[str, str],
    groups_a: Groups | None = None,
    groups_b: Groups | None = None,
) -> EmbeddingSet:
    """Return both towers as one set, a first, with the columns `tower` and `pair`. If they share ids, those of b get
    the name of the tower as a prefix.

    Args: names: of the towers, different and not empty. groups_a, groups_b: the group of each row; "" or a negative
    number: without a partner; None for both: rows of the same number are partners.
    Raises: UnusableEmbedding for different widths, unequal numbers of rows without groups, or no shared group."""
    if names[0] == names[1] or not all(names):
        raise UnusableEmbedding(NAMES, a=repr(names[0]), b=repr(names[1]))
    words = {"a": names[0], "b": names[1]}
    if a.width != b.width:
        raise UnusableEmbedding(WIDTHS, **words, width_a=a.width, width_b=b.width)
    if (groups_a is None or groups_b is None) and len(a) != len(b):
        raise UnusableEmbedding(COUNTS, **words, n=f"{len(a):,}", m=f"{len(b):,}")
    numbers = range(len(a))
    pairs = [_texts(numbers if g is None else g) for g in (groups_a, groups_b)]
    for name, part, pair in zip(names, (a, b), pairs, strict=True):
        if len(part) != len(pair):
            raise UnusableEmbedding(LENGTHS, name=name, n=len(part), groups=len(pair))
    if not (_numbers(*pairs)[0] >= 0).any():
        first_a, first_b = (repr(str(next(filter(None, pair), ""))) for pair in pairs)
        raise UnusableEmbedding(NO_GROUP, **words, first_a=first_a, first_b=first_b)
    tower = np.repeat(np.array(names), (len(a), len(b)))
    labels, classes = _labels(a, b)
    columns = {key: _column(a, b, key) for key in {**a.columns, **b.columns} if key not in RESERVED}
    return replace(
        a,
        features=np.concatenate([a.features, b.features]),
        labels=labels,
        classes=classes,
        ids=(*a.ids, *(b.ids if set(a.ids).isdisjoint(b.ids) else (f"{names[1]}:{i}" for i in b.ids))),
        split=a.split if a.split == b.split else "",
        layer=a.layer if a.layer == b.layer else "loaded",
        columns=columns | {TOWER: tower, PAIR: np.concatenate(pairs)},
        views=None,
    )


def with_captions(
    images: EmbeddingSet, features: np.ndarray, of: np.ndarray, texts: Sequence[str] | None = None
) -> EmbeddingSet:
    """Return images (n) and, below them, captions as rows of the other tower; a caption has the label and the columns
    of its image. Args: features: (m, d) of the captions; of: (m) the image of each, sorted; texts: the captions.
    Raises: UnusableEmbedding as `joined` does."""
    numbers = np.arange(len(of)) - np.searchsorted(of, of) + 1  # from 1, among the captions of an image
    ids = tuple(f"{images.ids[i]}#{k}" for i, k in zip(of, numbers, strict=True))
    captions = replace(images.take(of), features=features, ids=ids)
    if texts is not None:
        captions.columns[TEXT] = np.array(texts)
    return joined(images, captions, OF_RUN, np.arange(len(images)), of)


def _labels(a: EmbeddingSet, b: EmbeddingSet) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return the labels of the rows of both, -1 for none; classes of the same name are merged."""
    if a.labels is None and b.labels is None:
        return None, a.classes or b.classes
    parts = [np.full(len(part), -1) if part.labels is None else part.labels for part in (a, b)]
    classes = a.classes or b.classes
    are_named = (labels.max(initial=-1) < len(part.classes) for labels, part in zip(parts, (a, b), strict=True))
    if a.classes != b.classes and all(are_named):  # a number without a name has none to go by
        classes = tuple(dict.fromkeys((*a.classes, *b.classes)))
        number = {name: at for at, name in enumerate(classes)}
        tables = [np.array([*map(number.__getitem__, part.classes), -1]) for part in (a, b)]  # -1: none, the last
        parts = [table[labels] for table, labels in zip(tables, parts, strict=True)]
    return np.concatenate(parts).astype(np.int64), classes


def _column(a: EmbeddingSet, b: EmbeddingSet, key: str) -> np.ndarray:
    """Concatenate a column of both towers, filled with "" or NaN where one lacks it. If one column has texts, both
    become texts."""
    known = [part.columns[key] for part in (a, b) if key in part.columns]
    is_text = any(column.dtype.kind == "U" for column in known)
    parts = []
    for part in (a, b):
        if (column := part.columns.get(key)) is None:
            parts.append(np.full(len(part), "") if is_text else np.full(len(part), np.nan))
        else:
            parts.append(_texts(column) if is_text else column)
    return np.concatenate(parts)


def _texts(groups: Groups) -> np.ndarray:
    """Return groups as texts; "" for a negative number or NaN."""
    array = np.asarray(groups)
    if array.dtype.kind not in "fiu":
        return array.astype(np.str_)
    whole = np.nan_to_num(array, nan=-1)
    if (whole == np.floor(whole)).all():
        array = whole.astype(np.int64)
    return np.where(whole < 0, "", array.astype(np.str_))


def _numbers(pairs_a: np.ndarray, pairs_b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return groups as numbers from 0, sorted by text; -1 for "" and for a group missing in one tower."""
    shared = np.setdiff1d(np.intersect1d(pairs_a, pairs_b), [""])
    parts = []
    for pairs in (pairs_a, pairs_b):
        at = np.minimum(np.searchsorted(shared, pairs), max(len(shared) - 1, 0))
        parts.append(np.where(shared[at] == pairs, at, -1) if len(shared) else np.full(len(pairs), -1))
    return parts[0].astype(np.int64), parts[1].astype(np.int64)


# --- columns of one file ---


PICTURES = ("image", "image_path", "path", "file", "filename", "picture")  # columns of file names, or of images
TEXTS = (TEXT, "texts", "caption", "captions", "sentence")
WORDS = "embeddings|embedding|embeds|embed|emb|vectors|vector|vec|features"
VECTOR_WORD = re.compile(rf"[-_. ]+({WORDS})$|^({WORDS})[-_. ]+", re.IGNORECASE)
OF_PICTURES = ("image", "img", "photo", "picture", "vision", "visual")
OF_TEXTS = ("text", "txt", "caption", "sentence", "query", "question", "answer")


def tower_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the towers that columns such as `image_embedding` or the series `text_` belong to."""
    names = tuple(VECTOR_WORD.sub("", name.strip("_-. ")) for name in columns)
    return names if all(names) and len({*names}) == len(names) else tuple(columns)


def columns_of_towers(columns: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> list[dict[str, np.ndarray]]:
    """Return the columns of each of two towers, by name. `sizes`: the number of rows of each.

    `question_text` is `text` of the tower question; `question` is its text, or its images. A column of images or of
    texts belongs to the tower that its name suggests; any other to every tower with the same number of rows."""
    names, parts = tuple(sizes), dict[str, dict[str, np.ndarray]]({name: {} for name in sizes})
    for key, column in columns.items():
        tower: str | None = None
        own, is_shared = key, len({*sizes.values()}) == 1
        if named := [name for name in sorted(names, key=len) if key == name or key.startswith(f"{name}_")]:
            tower, own = named[-1], key.removeprefix(f"{named[-1]}_")
            if key == tower and key not in PICTURES:
                own = TEXT
        elif is_shared and key.lower() in PICTURES:
            tower = picture_tower(names)
        elif is_shared and key.lower() in TEXTS and column.dtype.kind in "OUST":
            tower = _only(names, OF_TEXTS) or _other(names, _only(names, OF_PICTURES))
        fitting = [name for name, n in sizes.items() if n == len(column)]
        for name in (tower,) if tower else fitting or names:
            parts[name][own] = column
    return list(parts.values())


def picture_tower(names: tuple[str, ...]) -> str:
    """Return the tower whose name suggests images; else the first."""
    return _only(names, OF_PICTURES) or _other(names, _only(names, OF_TEXTS)) or names[0]


def _only(names: tuple[str, ...], words: Sequence[str]) -> str | None:
    found = [name for name in names if any(word in name.lower() for word in words)]
    return found[0] if len(found) == 1 else None


def _other(names: tuple[str, ...], name: str | None) -> str | None:
    return None if name is None else names[1] if names[0] == name else names[0]


def with_text(rows: EmbeddingSet) -> EmbeddingSet:
    """Return the rows of one tower with the column of texts, if any, renamed to `text`."""
    if TEXT in rows.columns:
        return rows
    unlikely = (*PICTURES, PAIR, TOWER, "split", "group")
    plain = replace(rows, columns={k: v for k, v in rows.columns.items() if k.lower() not in unlikely})
    named = next((v for k, v in plain.columns.items() if k.lower() in TEXTS and v.dtype.kind == "U"), None)
    texts = plain.texts if named is None else named
    if texts is None:
        return rows
    return replace(rows, columns={k: v for k, v in rows.columns.items() if v is not texts} | {TEXT: texts})
