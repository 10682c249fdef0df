"""Caches of the pages: results, embeddings, images, the catalog. Jobs compute them (see progress.py), so a page that
only reads results never imports torch."""

from typing import Any, Literal

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.base.registry import Catalog
from contrastive_core.compare.evaluation import read_accuracies, read_evaluation
from contrastive_core.data import datasets
from contrastive_core.data.dataset import USUAL, ImageForm, form_of, visible
from contrastive_core.engine import client
from contrastive_core.engine.catalog import read as read_catalog
from contrastive_core.runs.run import Run
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, request_of
from contrastive_core.spaces import results
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.results import Result, Values
from contrastive_core.spaces.space import TOWERS, Space, images_of_towers, nearest_of, pca
from contrastive_core.spaces.towers import Towers, towers_of
from contrastive_lab.components.scatter import crowds as crowds_of
from contrastive_lab.components.scatter import medoids as medoids_of
from contrastive_lab.components.shared.mount import ThumbnailSheet, thumbnail_sheet
from contrastive_lab.components.shared.mount import digest as digest
from contrastive_lab.locale import N_, Deferred, _

scores = read_evaluation  # of a run's test images
accuracies = read_accuracies  # alone, for tables of many runs
AXES_FROM = 2000  # rows that the axes of a quick map are taken from where rows are wide


# --- what was computed -------------------------------------------------------------------------


def embedding(space: Space) -> EmbeddingSet | None:
    """Return the rows of a space; None while not computed. Raises ValueError if the space no longer exists."""
    try:
        return _embedding(space)
    except LookupError:
        return None


@st.cache_resource(max_entries=12, show_spinner=False)
def _embedding(space: Space) -> EmbeddingSet:
    try:
        rows = space.rows()
    except FileNotFoundError:
        raise ValueError(_("these vectors are no longer available; open their file again")) from None
    if rows is None:
        raise LookupError(space.name)
    return rows


def towers(rows: EmbeddingSet) -> Towers | None:
    """Return the two towers of some rows; None for rows of one encoder."""
    return _towers(rows.content_hash, rows)


@st.cache_resource(max_entries=6, show_spinner=False)
def _towers(content: str, _rows: EmbeddingSet) -> Towers | None:
    return towers_of(_rows)


def result(kind: str, values: Values) -> Result | None:
    """Return the stored result of an analysis; None if it is missing or damaged."""
    path = results.path(kind, values)
    try:
        return _result(str(path), path.stat().st_mtime_ns, kind, values)
    except (OSError, ValueError):
        return None


@st.cache_resource(max_entries=24, show_spinner=False)
def _result(path: str, changed: int, _kind: str, _values: Values) -> Result:
    answer = results.read(_kind, _values)
    if answer is None:
        raise ValueError(_("{path} cannot be read").format(path=path))
    return answer


@st.cache_resource(max_entries=6, show_spinner=False)
def map_pca(content: str, _features: np.ndarray) -> np.ndarray:
    """Return the PCA of an embedding, cached by content: a map to show until the requested one is ready."""
    return pca(_features, at_most=AXES_FROM)


@st.cache_data(max_entries=12, show_spinner=False)
def medoids(content: str, _xy: np.ndarray, _labels: np.ndarray | None = None) -> list[int]:
    """Return rows that represent a map. `content` names the embedding and the map's settings."""
    return [int(i) for i in medoids_of(_xy, labels=_labels)]


@st.cache_data(max_entries=24, show_spinner=False)
def crowds(content: str, _xy: np.ndarray, _labels: np.ndarray) -> list[tuple[int, int, float, int]]:
    """Return the crowds of a map: the row above which each is named, its class and its share, and the next class."""
    return crowds_of(_xy, _labels)


@st.cache_data(max_entries=24, show_spinner=False)
def nearest(content: str, row: int, count: int, _rows: EmbeddingSet) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows most similar to one row, and their cosines."""
    return nearest_of(_rows, row, min(count, len(_rows) - 1))


# --- images ------------------------------------------------------------------------------------


@st.cache_resource(max_entries=6, show_spinner=Deferred(N_("Reading images…")))
def dataset(name: str, split: str, root: str | None = None, form: ImageForm = USUAL) -> datasets.Dataset:
    return datasets.load(name, split, root, form=form, afresh=False)


def dataset_of(run: Run, split: str) -> datasets.Dataset:
    config = run.config
    return dataset(str(config.get("dataset")), split, config.get("root"), form_of(config))


def images(space: Space) -> np.ndarray | None:
    """Return the images (n, c, h, w) of the rows, in their order; None for vectors without images."""
    if space.run is None:
        return _vector_images(space)
    images = dataset_of(space.run, space.split).images
    return images_of_towers(images, embedding(space)) if space.layer == TOWERS else images


@st.cache_resource(max_entries=4, show_spinner=False)
def _vector_images(space: Space) -> np.ndarray | None:
    return space.images()


def thumbnails(space: Space, rows: np.ndarray | None = None) -> ThumbnailSheet:
    """Return thumbnails of all images, or of these rows (int64); shared by all runs on a data set."""
    run = space.run
    content = repr(space)
    if run is not None and space.layer != TOWERS:
        content = f"{dataset_of(run, space.split).fingerprint} {space.split}"
    part = None if rows is None else np.ascontiguousarray(rows, np.int64).tobytes()
    return _thumbnails(content, part, images(space))


@st.cache_data(max_entries=12, show_spinner=False)
def _thumbnails(content: str, rows: bytes | None, _images: np.ndarray | None) -> ThumbnailSheet:
    return thumbnail_sheet(_images, rows=None if rows is None else np.frombuffer(rows, np.int64))


def picture(images: np.ndarray, i: int) -> np.ndarray:
    """Return one image as (h, w, 3) for st.image, using the first three channels."""
    image = np.asarray(images[i][visible(images.shape[1])]).transpose(1, 2, 0)
    return image if image.shape[2] == 3 else np.repeat(image, 3, axis=2)


# --- names and knobs ---------------------------------------------------------------------------


@st.cache_data(show_spinner=Deferred(N_("Looking up methods and losses…")))
def catalog() -> Catalog:
    """Return the registered names with metadata and knobs as plain values."""
    return read_catalog()


def method_title(name: str) -> str:
    return titles("methods").get(name, name)


def loss_title(name: str) -> str:
    return titles("losses").get(name, name)


def definitions(*names: str) -> str:
    """Return the meaning of scores, one sentence each from their cards; "" for other names."""
    cards = catalog()["metrics"]
    return "\n\n".join(f"**{_(c['title'])}**: {_(c['reading'])}" for name in names if (c := cards.get(name)))


@st.cache_resource(show_spinner=False)
def titles(kind: Literal["methods", "losses"]) -> dict[str, str]:
    """Return the titles of "methods" or "losses"; cached, because tables need thousands and a copy takes 0.2 ms."""
    return {name: str(card.get("title", name)) for name, card in catalog()[kind].items()}


# --- comparing and listing ---------------------------------------------------------------------


@st.cache_resource(max_entries=16, show_spinner=False)
def sample_table(request: SampleRequest, path: str) -> SampleTable:
    """Return the table of a request. Raises LookupError if it has not been computed."""
    table = request.table()
    if table is None:
        raise LookupError(path)
    return table


@st.cache_resource(max_entries=64, show_spinner=Deferred(N_("Analyzing its loss…")))
def sample_why(request: SampleRequest, path: str, sample: str) -> Any:
    """Explain a sample's loss. Raises ValueError with the reason if that is impossible."""
    return client.explain_sample(request, sample)


@st.cache_data(max_entries=8, show_spinner=Deferred(N_("Looking for similar images…")))
def nearest_to_picture(encoder: str, split: str, picture: bytes, count: int, _run: Run) -> list[tuple[str, float]]:
    """Return ids and cosines of a split's images that are most similar to an uploaded one. Raises ValueError with the
    reason."""
    return client.nearest_to_picture(_run, split, picture, count)


@st.cache_resource(max_entries=8, show_spinner=False)
def sample_images(name: str, split: str, pairs: bool = False) -> tuple[Any, dict[str, int]]:
    """Return the images of a run's data set, or of loaded vectors (None without images), and the index of each sample;
    for `pairs`, those of the rows of both towers."""
    if not pairs and not Space(name).is_loaded:
        data = dataset_of(runs.load(name), split)
        return data.images, {sample: i for i, sample in enumerate(data.ids)}
    space = request_of(name, split, pairs=pairs).embedding
    rows = embedding(space)
    return images(space), {sample: i for i, sample in enumerate(rows.ids if rows else ())}
