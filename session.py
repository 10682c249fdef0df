"""Between pages and core: cached by plain values; the only file that sees both.

A page that only reads results never imports torch: embeddings, scores and maps are made by a
process of their own (`jobs.present`) and read here as arrays.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from contrastive_core import data, evaluate, jobs, present, runs, spaces
from contrastive_core.embed import cached
from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.runs import Run
from contrastive_core.sample_table import SampleTable, read_arrays
from contrastive_core.subjects import Subject

DEFAULT_RUN = "simclr-shapes"


def run(page: Callable[[], None]) -> None:
    """Draw a page. Before the server's first run of app.py it is asked for by its file alone: then
    app.py is run, which brings it back with navigation around it."""
    if PagesManager.uses_pages_directory:
        runpy.run_path(str(Path(__file__).with_name("app.py")))
    else:
        page()


def give_back() -> None:
    """Return to the system what drawing took for a moment; glibc would keep it (of the first page's
    memory a fifth: benchmarks/start.py). Elsewhere nothing is done."""
    if trim := getattr(ctypes.CDLL(None) if sys.platform == "linux" else None, "malloc_trim", None):
        trim(0)


# --- runs --------------------------------------------------------------------------------------


def all_runs() -> list[Run]:
    """Runs with a readable manifest, newest first, then the shipped."""
    return runs.list_runs()


def chosen_run() -> Run | None:
    """The run of the sidebar's picker."""
    known = {run.name: run for run in all_runs()}
    return known.get(st.session_state.get("run") or "")


def pick_run() -> None:
    """The sidebar's run picker, kept in the address."""
    names = [run.name for run in all_runs() if run.weights.exists() or not run.shipped]
    if not names:
        st.sidebar.info("No runs yet. Start one on the Train page.")
        return
    wanted = st.session_state.get("run") or st.query_params.get("run")
    if wanted not in names:
        wanted = DEFAULT_RUN if DEFAULT_RUN in names else names[0]
    st.session_state["run"] = wanted
    labels = {run.name: _label(run) for run in all_runs()}
    picked = st.sidebar.selectbox(
        "Run", names, index=names.index(wanted), format_func=lambda n: labels.get(n, n)
    )
    if picked != wanted:
        st.session_state["run"] = picked
    st.query_params["run"] = picked


def _label(run: Run) -> str:
    title = run.meta().get("title")
    return f"{title or run.name}{' · shipped' if run.shipped else ''}"


def selection(data: str | None = None) -> list[int]:
    """Rows that all pages have lit, of some data's test split (default: the chosen run's)."""
    kept = st.session_state.get("selection", {})
    return list(kept.get(data or _own_data(), []))


def select(rows: list[int], data: str | None = None, by: str = "") -> None:
    """Light rows on all pages. `by` is the key of the map they were chosen on, if any."""
    kept = st.session_state.setdefault("selection", {})
    kept[data or _own_data()] = [int(r) for r in rows]
    st.session_state["selected"] = (st.session_state.get("selected", (0, ""))[0] + 1, by)


def stamp(key: str) -> str:
    """Changes when a selection was made elsewhere than on the map `key`."""
    count, by = st.session_state.get("selected", (0, ""))
    if by != key:
        st.session_state[f"{key}:stamp"] = count
    return str(st.session_state.get(f"{key}:stamp", 0))


def _own_data() -> str:
    run = chosen_run()
    return data_key(run) if run else ""


def data_key(run: Run) -> str:
    """What runs on the same samples have in common."""
    return f"{run.config.get('dataset')} {run.config.get('root') or ''}"


# --- what was computed -------------------------------------------------------------------------


def embedding(run: Run, split: str, which: str) -> EmbeddingSet | None:
    """h or z of a split, if it has been made."""
    try:
        return _embedding(run.name, run.weights_hash(), split, which)
    except ValueError:
        return None


@st.cache_resource(max_entries=12, show_spinner=False)
def _embedding(name: str, weights: str, split: str, which: str) -> EmbeddingSet:
    found = cached(runs.load(name), split, which)
    if found is None:
        raise ValueError("not yet")
    return found


def scores(run: Run) -> dict[str, Any] | None:
    return evaluate.read_evaluation(run)


def read_map(run: Run, split: str, which: str, kind: str) -> dict[str, Any] | None:
    return present.read_map(run, split, which, kind)


def ensure(run: Run, split: str = "test") -> str | None:
    """None when the run's pages can be drawn; else what is being made for them right now."""
    try:
        if present.is_ready(run, split):
            if read_map(run, split, "h", "umap") is None and not jobs.presenting(run.name, split):
                jobs.present(run.name, split)
            return None
    except ValueError as error:
        return str(error)
    if what := jobs.presenting(run.name, split):
        return what
    if unprepared(run, split):
        return "it failed"
    st.session_state[_asked(run, split)] = True
    jobs.present(run.name, split)
    return jobs.presenting(run.name, split) or "starting"


def _asked(run: Run, split: str) -> str:
    return f"asked {run.name} {split} {run.weights_hash()}"


def unprepared(run: Run, split: str) -> str | None:
    """Why the process that was asked to prepare a run has ended without doing so."""
    if not st.session_state.get(_asked(run, split)) or jobs.presenting(run.name, split):
        return None
    if present.is_ready(run, split):
        return None
    return jobs.log_of(f"present.{run.name}.{split}", 1) or "Its process ended without a word."


def prepare_again(run: Run, split: str) -> None:
    st.session_state.pop(_asked(run, split), None)


# --- images ------------------------------------------------------------------------------------


@st.cache_resource(max_entries=6, show_spinner="Reading images…")
def dataset(name: str, split: str, root: str | None = None) -> data.Dataset:
    return data.load(name, split, root)


def images_ready(run: Run, split: str) -> bool:
    """Whether a split's images can be read at once. If not, a process of its own decodes them, so
    that the first page waits for nothing and imports nothing."""
    name, root = str(run.config.get("dataset")), run.config.get("root")
    if data.is_made(name, split):
        return True
    child = _decoding(name, split, root)
    if child.poll() is None:
        return False
    if child.returncode:
        raise ValueError(child.communicate()[1].strip().rsplit("\n", 1)[-1])
    return True


@st.cache_resource(max_entries=6, show_spinner=False)
def _decoding(name: str, split: str, root: str | None) -> subprocess.Popen[str]:
    code = "import sys; from contrastive_core import data; data.load(sys.argv[1], sys.argv[2]"
    code += ", sys.argv[3] or None)"
    command = [sys.executable, "-c", code, name, split, root or ""]
    here = Path(__file__).parent
    return subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE, text=True)


def dataset_of(run: Run, split: str) -> data.Dataset:
    return dataset(str(run.config.get("dataset")), split, run.config.get("root"))


@st.cache_data(max_entries=6, show_spinner=False)
def sprite_of(name: str, split: str, fingerprint: str, root: str | None) -> tuple[bytes, int]:
    from components.sprites import sprite

    images = dataset(name, split, root).images
    return sprite(images, tile_of(len(images)))


def tile_of(n: int) -> int:
    """Side in pixels of the thumbnails of n pictures: smaller where there are many."""
    from components.sprites import TILE

    return TILE if n <= 10_000 else TILE // 2


def sprite(run: Run, split: str) -> tuple[bytes, int]:
    """Thumbnails of a split as one PNG, and how many stand in a row."""
    found = dataset_of(run, split)
    return sprite_of(found.name, split, found.fingerprint, run.config.get("root"))


def picture(images: np.ndarray, i: int) -> np.ndarray:
    """One image (h, w, 3) for st.image."""
    image = np.asarray(images[i]).transpose(1, 2, 0)
    return image if image.shape[2] == 3 else np.repeat(image[:, :, :1], 3, axis=2)


# --- neighbours without torch ------------------------------------------------------------------


def neighbours(rows: EmbeddingSet, i: int, k: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The k most similar other rows of row i: numbers and cosine similarities."""
    lengths = _lengths(rows.content_hash, rows.features)
    s = rows.features @ (rows.features[i] / lengths[i]) / lengths
    s[i] = -np.inf
    order = np.argsort(-s, kind="stable")[:k]
    return order, s[order]


@st.cache_resource(max_entries=12, show_spinner=False)
def _lengths(content: str, _features: np.ndarray) -> np.ndarray:
    return np.maximum(np.linalg.norm(_features, axis=1), 1e-12)


def plane(features: np.ndarray) -> np.ndarray:
    """The first two principal components (n, 2) of some rows, by numpy: small sets only."""
    x = features.astype(np.float64) - features.mean(0, dtype=np.float64)
    _, axes = np.linalg.eigh(x.T @ x)
    xy = x @ axes[:, -2:][:, ::-1]
    top = np.abs(xy).argmax(0)
    return (xy * np.sign(xy[top, [0, 1]])).astype(np.float32)


# --- names and knobs ---------------------------------------------------------------------------


@st.cache_data(show_spinner="Looking up methods and losses…")
def catalogue() -> dict[str, Any]:
    """What is registered, with metadata and knobs, as plain values."""
    from contrastive_core.catalogue import read

    return read()


def flow(method: str) -> str:
    """A method's data flow as SVG."""
    from contrastive_core.flow import flow_svg

    m = catalogue()["methods"][method]
    loss = catalogue()["losses"][m["default_loss"]]["title"]
    lanes = tuple(tuple(lane) for lane in m["flow"])
    updates = tuple(tuple(u) for u in m.get("updates", ()))
    return flow_svg(m["title"], lanes, m["compared"], loss, updates)


def knobs_of(kind: str, name: str) -> dict[str, dict[str, Any]]:
    """Knobs of a loss or method: default, low, high, choices, help, log."""
    return dict(catalogue()[kind][name]["knobs"])


# --- the Loss Lab ------------------------------------------------------------------------------


@st.cache_resource(max_entries=6, show_spinner="Encoding a batch…")
def lab_batch(
    name: str, weights: str, source: str, images: int, views: int, seed: int, memory: str
) -> Any:
    from contrastive_core.lab_batch import batch_of

    return batch_of(runs.load(name), source, images, views, seed, "test", memory)


@st.cache_resource(max_entries=24, show_spinner=False)
def lab_view(batch_key: tuple[Any, ...], pairing: str, loss: str, knobs: str) -> Any:
    """The anatomy for one setting. Raises ValueError with the reason for a refused pairing."""
    from contrastive_core.lab import view_of

    return view_of(lab_batch(*batch_key), pairing, loss, json.loads(knobs))


@st.cache_data(max_entries=24, show_spinner=False)
def lab_kernel(loss: str, knobs: str) -> dict[str, Any] | None:
    """What the browser needs to compute a loss with these knobs; None where it cannot."""
    from contrastive_core import losses

    return losses.create(loss, **json.loads(knobs)).kernel()


@st.cache_data(max_entries=6, show_spinner=False)
def lab_sprite(batch_key: tuple[Any, ...]) -> tuple[bytes, int]:
    from components.sprites import sprite

    return sprite(lab_batch(*batch_key).thumbs)


def digest(*parts: Any) -> str:
    """A short hash of plain values: the key of what was made from them."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


# --- comparing and listing ---------------------------------------------------------------------


@st.cache_resource(max_entries=16, show_spinner=False)
def sample_table(subject: Subject, path: str) -> SampleTable:
    """The table of a subject. Raises LookupError while it has not been made."""
    found = subject.table()
    if found is None:
        raise LookupError(path)
    return found


@st.cache_resource(max_entries=64, show_spinner="Taking its loss apart…")
def sample_why(subject: Subject, path: str, sample: str) -> Any:
    """Why a sample has its loss. Raises ValueError with the reason why that cannot be told."""
    from contrastive_core.samples import why_of

    return why_of(subject, sample)


@st.cache_resource(max_entries=8, show_spinner=False)
def sample_images(name: str, split: str) -> tuple[Any, dict[str, int]]:
    """Images of a run's data set, or of loaded vectors (None where none came along), and where
    each sample stands."""
    if not name.startswith(spaces.PREFIX):
        found = dataset_of(runs.load(name), split)
        return found.images, {sample: i for i, sample in enumerate(found.ids)}
    space = spaces.of_vectors(name.removeprefix(spaces.PREFIX), split)
    rows = space.rows()
    ids = () if rows is None else rows.ids
    return spaces.pictures(space), {sample: i for i, sample in enumerate(ids)}


@st.cache_resource(max_entries=8, show_spinner=False)
def sample_rows(subject: Subject, path: str) -> EmbeddingSet | None:
    """What neighbours are looked for in: h of a run, or the loaded vectors."""
    if (run := subject.run) is not None:
        return cached(run, subject.split, "h")
    return spaces.of_vectors(subject.name.removeprefix(spaces.PREFIX), subject.split).rows()


@st.cache_resource(max_entries=8, show_spinner=False)
def snapshot_losses(path: str) -> dict[str, np.ndarray]:
    """The loss of a run's fixed sample over its snapshots. Raises LookupError without one."""
    found = read_arrays(Path(path))
    if found is None:
        raise LookupError(path)
    return found
