"""The map of one space: its kind, its settings, its quality, and its colors: choices, hover texts, and the sample of
points to draw."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.compare.representation_similarity import procrustes_align
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.results import MAP_DEFAULTS, Values
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import RESERVED, TOWER
from contrastive_lab import cache, format, locale, pictures, stage, state, texts
from contrastive_lab.components.scatter import (
    MAX_IMAGES,
    MAX_LINES,
    MAX_POINTS,
    PALETTE,
    LinkedSelection,
    ScatterData,
    bring_pictures,
    draw_scatter,
    tell_nearest,
)
from contrastive_lab.components.shared.mount import NO_THUMBNAILS, thumbnail_sheet
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait

DARK = "#24292F"  # of samples that are placed on a map of others
JUDGED = N_(
    "Trustworthiness: points that are near on the map are near in the embedding. Continuity: points that are near in "
    "the embedding are near on the map. 1 is perfect for both."
)
PURE = 0.9  # share above which a crowd has its class's name alone
NEAREST = 11  # samples that are tied to the selected one


@dataclass(frozen=True, eq=False)
class DrawnMap:
    """Positions (n, 2) of rows on a map, its settings with their `kind`, and its quality (empty if not measured)."""

    xy: np.ndarray
    settings: Mapping[str, float | str]
    quality: Mapping[str, float] = field(default_factory=dict)


def settings(kind: str) -> dict[str, float | str]:
    """Draw UMAP's settings; return those last applied, {} for another kind."""
    if kind != "umap":
        return {}
    now = dict(st.session_state.get("umap", MAP_DEFAULTS))
    with st.form("umap-form", border=False):
        seed = st.number_input(_("Seed"), 0, 10_000, int(now["seed"]), key="umap-seed")
        help = _("small: local detail; large: the coarse layout")
        neighbors = st.slider(_("Neighbors"), 2, 100, int(now["neighbors"]), help=help, key="umap-neighbors")
        help = _("minimum distance between points on the map")
        dist = st.slider("min_dist", 0.0, 1.0, float(now["min_dist"]), 0.05, help=help, key="umap-min-dist")
        look: dict[str, Any] = {"default": now["metric"], "format_func": _, "key": "umap-metric"}
        metric = st.segmented_control(_("Metric"), ["cosine", "euclidean"], required=True, **look)
        if st.form_submit_button(_("Draw this map"), on_click=stage.close_more):
            now = {"seed": seed, "neighbors": neighbors, "min_dist": dist, "metric": metric}
            st.session_state["umap"] = now
    return now


def map_of(
    space: Space, kind: str, map_settings: Mapping[str, float | str], rows: EmbeddingSet, aligned: bool = False
) -> DrawnMap:
    """Return the map, or PCA without its quality while the map is computed. `aligned`: turn a UMAP of z like that of h,
    if that exists, so points move little between them."""
    values = question(space, kind, map_settings)
    result = answer_or_wait("map", values, message("{kind} map of {title}", kind=kind.upper(), title=space.title))
    if result is None:
        return quick_map(rows)
    made = DrawnMap(result.arrays["xy"], **result.meta)
    if aligned and kind == "umap" and space.layer == "z":
        of_h = cache.result("map", question(replace(space, layer="h"), kind, map_settings))
        if of_h is not None and len(of_h.arrays["xy"]) == len(made.xy):
            xy = procrustes_align(made.xy, of_h.arrays["xy"])
            return replace(made, xy=xy, settings={**made.settings, N_("aligned to"): "h"})
    return made


def quick_map(rows: EmbeddingSet) -> DrawnMap:
    """Return PCA without its quality, which needs no worker process."""
    return DrawnMap(cache.map_pca(rows.content_hash, rows.features), {"kind": "pca"})


def question(space: Space, kind: str, map_settings: Mapping[str, float | str]) -> Values:
    return {"space": space.values, "kind": kind, **map_settings}


def caption(drawn_map: DrawnMap, rows_title: str = "") -> None:
    """Draw the map's settings and quality, and the rows it shows if the page does not say so."""
    text = format.map_of(drawn_map.settings, rows_title) + format.quality_of(drawn_map.quality)
    help = locale.text(JUDGED) if drawn_map.quality else None
    st.caption(text + _("Scores are computed in the embedding, not on the map."), help=help)


def draw(
    space: Space,
    rows: EmbeddingSet,
    drawn_map: DrawnMap,
    color: tuple[str, dict[str, np.ndarray]],
    new: tuple[str, np.ndarray] | None = None,
) -> list[int]:
    """Draw the scatter; return the selected rows. `color`: its name, and values of each sample by name. `new`: the name
    and positions (m, 2) of other samples on the map."""
    some = subsample_rows(rows.labels, len(rows), MAX_POINTS)
    drawn_rows = np.arange(len(rows)) if some is None else some
    data = _scatter_data(space, rows, drawn_map, color, drawn_rows, is_plain=new is not None)
    if new is not None:
        data = with_new(data, *new)
    place = state.place_of(space)
    key = f"map-{cache.digest(place)}"
    selection = LinkedSelection(
        drawn_places(state.selection(place), drawn_rows),
        f"{place} {state.stamp(key)}",
        lambda chosen: state.select(drawn_rows[chosen[chosen < len(drawn_rows)]], place, key),
    )
    draw_scatter(data, selection, fits=True, gallery=False, key=key)
    if data.pictured is not None:
        images = pictures.of(space)
        bring_pictures(data.content, len(data.ids), lambda some: thumbnail_sheet(images, rows=drawn_rows[some]), key)
    chosen = state.selection(place)
    if len(chosen) == 1 and chosen[0] < len(rows):
        near, similarity = cache.nearest(rows.content_hash, chosen[0], NEAREST, rows)
        at = drawn_places([chosen[0], *near.tolist()], drawn_rows)
        if len(at) == 1 + len(near):  # else some are not drawn
            tell_nearest(data.content, at[0], at[1:], similarity.tolist(), key)
    return chosen


def _scatter_data(
    space: Space,
    rows: EmbeddingSet,
    drawn_map: DrawnMap,
    color: tuple[str, dict[str, np.ndarray]],
    drawn_rows: np.ndarray,
    is_plain: bool,
) -> ScatterData:
    """Return the data of the scatter: `drawn_rows` of the map, colors, names; unless `is_plain` images and crowds."""
    values, names = color_of(rows, *color)
    is_whole, xy, note = len(drawn_rows) == len(rows), drawn_map.xy[drawn_rows], ""
    labels = None if rows.labels is None else rows.labels[drawn_rows]
    if not is_whole:
        counts = {"count": f"{len(drawn_rows):,}", "total": f"{len(rows):,}"}
        note = _("{count} of {total} points, by class").format(**counts)
    place, used = state.place_of(space), drawn_map.settings
    middles, pictured, thumbnails = list[int](), None, NO_THUMBNAILS
    if with_pictures := not is_plain and pictures.are_decoded(space):  # some by class, and those on the map itself
        middles = cache.medoids(cache.digest(place, rows.content_hash, str(used)), xy, labels)
        if (some := subsample_rows(labels, len(xy), MAX_IMAGES)) is not None:
            pictured = np.union1d(some, np.asarray(middles, np.int64))
        shown = drawn_rows if pictured is None else drawn_rows[pictured]
        thumbnails = cache.thumbnails(space, None if len(shown) == len(rows) else shown)
    partners, count = None, 0
    if (towers := cache.towers(rows)) is not None:
        pairs, count = towers.partner_pairs(MAX_LINES)
        partners = np.searchsorted(drawn_rows, pairs[np.isin(pairs, drawn_rows).all(1)])
    named = (space.title.rsplit(".", 1)[0], space.split) if space.is_loaded else (space.title, space.layer, space.split)
    return ScatterData(
        xy,
        rows.ids if is_whole else tuple(rows.ids[i] for i in drawn_rows),
        color=None if values is None else values[drawn_rows],
        names=names,
        palette=PALETTE,
        content=cache.digest(rows.content_hash, str(used), with_pictures),
        title=_("{kind} map of the rows of {title}, {layer} {split}").format(
            kind=str(used["kind"]).upper(), title=space.title, layer=space.layer, split=space.split
        ),
        file="-".join(filter(None, (str(used["kind"]), *named))),
        note=note,
        hints=hints_of(rows) if is_whole else (),
        thumbnails=thumbnails,
        pictured=pictured,
        medoids=middles,
        crowds=_crowds(rows, drawn_map) if is_whole and not is_plain else [],
        rows_key=place,
        partners=partners,
        partner_count=count,
    )


def with_new(data: ScatterData, name: str, xy: np.ndarray) -> ScatterData:
    """Add samples to a plain map as a category of their own."""
    color, names = data.color, data.names or (_("this space"),)
    if color is None or not data.names:
        color = np.zeros(len(data.xy), np.int64)
    return replace(
        data,
        xy=np.concatenate([data.xy, xy]),
        ids=[*data.ids, *(f"{name} {i}" for i in range(len(xy)))],
        color=np.concatenate([color, np.full(len(xy), len(names))]),
        names=[*names, name],
        palette=[*(PALETTE[i % len(PALETTE)] for i in range(len(names))), DARK],
        content=cache.digest(data.content, name),
        rows_key="",
    )


def _crowds(rows: EmbeddingSet, drawn_map: DrawnMap) -> list[dict[str, int | str]]:
    """Return the names of crowds by their class, with the next class if others are among them, as in "star + cross"."""
    if rows.labels is None:
        return []
    found = cache.crowds(cache.digest(rows.content_hash, str(drawn_map.settings)), drawn_map.xy, rows.labels)
    named = ((row, [label] if share > PURE or other < 0 else [label, other]) for row, label, share, other in found)
    return [{"row": row, "name": " + ".join(map(rows.class_name, labels))} for row, labels in named]


# --- colors ----------------------------------------------------------------------------------------


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


def color_names(rows: EmbeddingSet, judged: bool, is_run: bool) -> list[str]:
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

    def hint(value: Any) -> str:
        if isinstance(value, float):
            return "–" if np.isnan(value) else f"{value:.4g}"
        text = str(value)
        return texts.isolated(text if len(text) <= HINT else f"{text[: HINT - 1]}…")

    lines = [[f"{name}: {hint(v)}" for v in values.tolist()] for name, values in shown]
    return ["\n".join(of_row) for of_row in zip(*lines, strict=True)]


def color_of(
    rows: EmbeddingSet, name: str, details: dict[str, np.ndarray]
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return values (n) and the names of categories; no names if the values are numbers on a scale."""
    if name in ("class", "prediction (kNN)"):
        if (labels := rows.labels if name == "class" else details.get(DETAILS[name])) is None:
            return None, ()
        return _few_categories(labels, rows.classes or tuple(map(str, range(int(labels.max()) + 1))))
    if name in DETAILS or name == LOSS:
        values = details.get(DETAILS.get(name, LOSS))
        if values is None:
            return None, ()
        if "right" in name:
            unknown = np.isnan(values)
            names = ("right", "wrong", *([_("not judged")] if unknown.any() else []))
            return np.where(unknown, 2, 1 - values).astype(np.int64), names
        return values, ()
    if (values := columns_of(rows).get(name)) is None:
        return None, ()
    kinds, at = np.unique(values, return_inverse=True)
    if values.dtype.kind in "Ub" or (len(kinds) <= FEW and values.dtype.kind in "iu"):
        return _few_categories(at.astype(np.int64), tuple(map(str, kinds.tolist())))
    return values.astype(np.float64), ()


def _few_categories(labels: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, tuple[str, ...]]:
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
    rows = np.asarray(selection, np.int64)
    places = np.minimum(np.searchsorted(drawn_rows, rows), len(drawn_rows) - 1)
    return [int(place) for place in places[drawn_rows[places] == rows]]
