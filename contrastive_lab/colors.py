"""Colors of a map: choices, hover texts, and the sample of points to draw."""

from typing import Any

import numpy as np

from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import RESERVED, TOWER
from contrastive_lab import texts
from contrastive_lab.locale import N_, _

# From the answer "scores": name on the page → its array.
DETAILS = {
    N_("prediction (kNN)"): "knn:predicted",
    N_("right or wrong (kNN)"): "knn:per_sample",
    N_("right or wrong (probe)"): "linear_probe:per_sample",
    "hubness": "hubness:per_sample",
    "purity": "purity:per_sample",
    "silhouette": "silhouette:per_sample",
}
LOSS = "loss"
N_("tower")  # a column and a color
FEW = 24  # distinct values that are shown as categories
HINTED, HINT = 60_000, 120  # values shown when rows are pointed at, and characters of a text
MANY = 200  # categories, above which ten colors are shared


def names_of(rows: EmbeddingSet, judged: bool, is_run: bool) -> list[str]:
    """Return the color choices; details only if the samples are scored."""
    names = ["class"] if rows.labels is not None else ["sample"]
    columns = columns_of(rows)
    if {*RESERVED} <= {*columns} and len(np.unique(columns[TOWER])) > 1:
        names.insert(0, TOWER)
        columns = {name: values for name, values in columns.items() if name not in RESERVED}
    for name, values in columns.items():  # numbers that differ, or texts of which there are not too many
        count = len(np.unique(values))
        names += [name] if count > 1 and (values.dtype.kind != "U" or count <= MANY) else []
    if judged:
        names += ["hubness"] if rows.labels is None else DETAILS
    return [*names, LOSS] if is_run else names


def columns_of(rows: EmbeddingSet) -> dict[str, np.ndarray]:
    """Return the columns by displayed name; a name that has another meaning on the page gets a suffix."""
    taken = {"class", "sample", LOSS, *DETAILS}
    return {_("{k} (column)").format(k=k) if k in taken else k: v for k, v in rows.columns.items()}


def hints_of(rows: EmbeddingSet) -> list[str]:
    """Return the column values of each row, one line each; texts first if there is not enough room."""
    columns = [(k, v) for k, v in columns_of(rows).items() if k != "split"]
    columns.sort(key=lambda c: c[1].dtype.kind != "U")  # stable: else in the file's order
    shown = columns[: HINTED // max(1, len(rows))]
    if not shown:
        return []
    lines = [[f"{name}: {_said(v)}" for v in values.tolist()] for name, values in shown]
    return ["\n".join(of_row) for of_row in zip(*lines, strict=True)]


def _said(value: Any) -> str:
    if isinstance(value, float):
        return "–" if np.isnan(value) else f"{value:.4g}"
    text = str(value)
    return texts.isolated(text if len(text) <= HINT else f"{text[: HINT - 1]}…")


def color_of(
    rows: EmbeddingSet, name: str, details: dict[str, np.ndarray]
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return values (n) and the names of categories; no names if the values are numbers on a scale."""
    if name == "class":
        assert rows.labels is not None
        names = rows.classes or tuple(map(str, range(int(rows.labels.max()) + 1)))
        return _few(rows.labels, names)
    if name in DETAILS or name == LOSS:
        values = details.get(DETAILS.get(name, LOSS))
        if values is None:
            return None, ()
        if "right" in name:
            unknown = np.isnan(values)
            names = ("right", "wrong", *([_("not judged")] if unknown.any() else []))
            return np.where(unknown, 2, 1 - values).astype(np.int64), names
        if name.startswith("prediction"):
            names = rows.classes or tuple(map(str, range(int(values.max()) + 1)))
            return _few(values, names)
        return values, ()
    if (values := columns_of(rows).get(name)) is None:
        return None, ()
    kinds, at = np.unique(values, return_inverse=True)
    if values.dtype.kind in "Ub" or (len(kinds) <= FEW and values.dtype.kind in "iu"):
        return _few(at.astype(np.int64), tuple(map(str, kinds.tolist())))
    return values.astype(np.float64), ()


def _few(labels: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, tuple[str, ...]]:
    if len(names) <= MANY:
        return labels, names
    return np.where(labels < 0, -1, labels % 10), tuple(f"{k}, {k + 10}, …" for k in range(10))


def subsample_rows(labels: np.ndarray | None, n: int, most: int) -> np.ndarray | None:
    """Return the rows (most) to draw in place of all n, in proportion to their classes; None if all are drawn."""
    if n <= most:
        return None
    rng = np.random.default_rng(0)
    order = rng.permutation(n)
    if labels is None:
        return np.sort(order[:most])
    order = order[np.argsort(labels[order], kind="stable")]
    return np.sort(order[np.linspace(0, n - 1, most).round().astype(np.int64)])


def drawn_places(selection: list[int], drawn_rows: np.ndarray | None) -> list[int]:
    """Return the indices of the selected rows among the drawn ones."""
    if drawn_rows is None:
        return selection
    _rows, places, order = np.intersect1d(drawn_rows, np.asarray(selection, np.int64), return_indices=True)
    return [int(place) for place in places[np.argsort(order)]]


def plain_table(rows: EmbeddingSet, chosen: list[int]) -> list[dict[str, Any]]:
    """Return ids, classes and columns of some rows as records for a table."""
    records = []
    for i in chosen:
        row: dict[str, Any] = {"row": i, "id": rows.ids[i]}
        if rows.labels is not None:
            row["class"] = rows.class_name(int(rows.labels[i]))
        records.append(row | {k: v[i].item() for k, v in rows.columns.items()})
    return records
