"""The choice of split and run on the Samples page, with their tables and images."""

import contextlib
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core import runs
from contrastive_core.engine import jobs
from contrastive_core.runs.references import references_of
from contrastive_core.runs.run import Run
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, pair_table, request_of
from contrastive_core.spaces import loaded_vectors, recorded_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import TEXT
from contrastive_lab import cache, format, load_vectors, locale, query_params, recordings, score_strip, state
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait, embedded_or_wait, follow
from contrastive_lab.samples.current_sample import open_one

BOTH = "both"
SPLITS = {"train": N_("Train"), "test": N_("Test"), BOTH: N_("Both splits")}
SPLIT = "samples-split"
MANY = 50_000  # rows, whose lists take minutes
MINUTES = 17.0  # of a million rows of 256 on two cores, measured: benchmarks/scale.py
LOOKS = {"pairs": N_("Pairs"), "rows": N_("Single rows")}  # of two towers
LONGEST = 2_000  # characters of a text that is shown
CHIP = 128  # pixels of a short select
SHOWN = 50  # snapshots of a recording that are offered


def take_subject() -> str | None:
    """Choose the vectors, or the run, that another page shows; return the key of the vectors, None for a run."""
    if not (names := _sources(state.chosen_run())):
        return None
    file, key = state.new_subject(), _key_of_source(names)
    name = f"{loaded_vectors.PREFIX}{file}"
    if file is not None and not query_params.requested("on"):
        query_params.choose(key, name if name in names else names[0])
    name = query_params.current("on", names, names[0], key)
    is_file = name.startswith(loaded_vectors.PREFIX)
    state.set_subject(name.removeprefix(loaded_vectors.PREFIX) if is_file else None)
    return st.session_state["vectors"] or None


def _sources(run: Run | None) -> list[str]:
    """Return the run with weights or the rows of a recording, then all loaded vectors."""
    names = [run.name] if run is not None and run.weights.exists() else []
    return [*names, *_recorded(run), *(loaded_vectors.PREFIX + key for key in loaded_vectors.loaded())]


def _key_of_source(names: list[str]) -> str:
    return f"samples-on-{cache.digest(names[0])}"


def choose(chips: DeltaGenerator, more: DeltaGenerator) -> list[SampleRequest]:
    """Draw the pickers; return a request for each split, [] if there is nothing to show.

    Args: chips: container of the choice of samples; more: container for the loss and the encoder behind the lists."""
    if not (names := _sources(run := state.chosen_run())):
        st.info(_("Choose a run with weights or a recording at the top, or train one."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return []
    with chips:
        space = Space(_choose_source(names))
        has_towers = _has_towers(space)
        look: dict[str, Any] = {"format_func": LOOKS.get, "width": CHIP}
        are_pairs = has_towers and query_params.one_of(st.selectbox, _("Look at"), LOOKS, name="of", **look) == "pairs"
        splits = _choose_splits(space, has_towers, are_pairs)
    if space.is_recording:
        st.caption(locale.text(recordings.LACKS))
    if are_pairs:  # whose lists no loss changes
        return [request_of(space.name, split, pairs=True) for split in splits]
    with more:
        loss, by = _choose_basis(space, run, has_towers)
    return [request_of(space.name, split, loss, by) for split in splits]


def _has_towers(space: Space) -> bool:
    if not space.is_loaded:
        return runs.load(space.name).has_towers
    with contextlib.suppress(ValueError):
        rows = cache.embedding(Space.of_name(space.name, "train", "z"))
        return rows is not None and cache.towers(rows) is not None
    return False


def _choose_basis(space: Space, run: Run | None, has_towers: bool) -> tuple[str, str]:
    """Draw the choice of the loss, and of the reference whose encoder the lists use ("": the run's own); return
    both."""
    trained_with = None if run is None or space.is_file else run.config.get("loss")
    titles, key = cache.titles("losses"), f"samples-loss-{cache.digest(space.name)}"
    look: dict[str, Any] = {"default": str(trained_with or "sup_con"), "format_func": titles.get, "key": key}
    loss = query_params.one_of(st.selectbox, _("Loss"), titles, name="loss", **look)
    if has_towers or space.is_loaded:
        return loss, ""
    by, shown, key = "", {"": _("This run's encoder")}, f"samples-by-{cache.digest(space.name)}"
    if named := [one.name for one in references_of(runs.load(space.name))]:
        look = {"format_func": lambda name: shown.get(name, name), "key": key}
        by = query_params.one_of(st.selectbox, _("Lists by"), ["", *named], name="by", **look)
    score_strip.choose_references()
    return loss, by


def _choose_splits(space: Space, has_towers: bool, are_pairs: bool) -> list[str]:
    """Return the listed splits; "" for rows without one. A sample in the URL becomes current, in its split."""
    if space.is_recording:
        return [""]
    if space.is_file and not loaded_vectors.about(space.key)["splits"]:
        return ["train"]
    if sample := query_params.take("sample"):
        open_one(sample)
        holders = (split for split in ("train", "test") if sample in cache.sample_images(space.name, split)[1])
        if not query_params.requested("split") and (holder := next(holders, "")):
            query_params.choose(SPLIT, holder)
    label = _("Pairs") if are_pairs else _("Rows") if space.is_file or has_towers else _("Images")
    options = {split: title for split, title in SPLITS.items() if not are_pairs or split != BOTH}
    came_along = are_pairs and not space.is_file and runs.load(space.name).shipped  # its pairs of the test split did
    split = query_params.one_of(
        st.selectbox,
        label,
        options,
        name="split",
        key=SPLIT,
        default="test" if came_along else None,
        format_func=options.get,
        width=CHIP,
    )
    return ["train", "test"] if split == BOTH else [split]


def _choose_source(names: list[str]) -> str:
    """Let the user choose the run, recording or vectors if there are several; return its name."""
    if len(names) == 1:
        query_params.keep(on=names[0])
        return names[0]

    def title(name: str) -> str:
        if name.startswith(loaded_vectors.PREFIX):
            about = loaded_vectors.about(name.removeprefix(loaded_vectors.PREFIX))
            return _("{name} (vectors)").format(name=about["name"])
        return name.removeprefix(recorded_rows.PREFIX)

    look: dict[str, Any] = {"key": _key_of_source(names), "format_func": title, "width": 240}
    return query_params.one_of(st.selectbox, _("Source"), names, name="on", **look)


def _recorded(run: Run | None) -> list[str]:
    """Return the snapshots of a recording's probe set, newest first, or its newest step; for two towers that step."""
    if run is None or not run.is_recording:
        return []
    kinds, probe, step = recorded_rows.kinds_of(run), recorded_rows.PROBE, recorded_rows.STEP
    has_pairs = step in kinds and recorded_rows.newest(run).tower_names is not None  # a probe set is of one tower
    is_probe = probe in kinds and not has_pairs
    kind, steps = (probe, kinds[probe][::-1]) if is_probe else (step, kinds.get(step, [])[-1:])
    return [recorded_rows.PREFIX + recorded_rows.Recorded(run, kind, at).key for at in steps[:SHOWN]]


def embedding_of(request: SampleRequest) -> EmbeddingSet | None:
    """Return the rows in which neighbors are searched; None if they no longer exist."""
    try:
        return cache.embedding(request.embedding)
    except ValueError:
        return None


def table_or_wait(request: SampleRequest) -> SampleTable | None:
    """Return the table; None while it is computed, with its progress and a stop button."""
    try:
        if request.pairs:
            return _pairs_or_wait(request)
        with contextlib.suppress(LookupError):
            return cache.sample_table(request, str(request.path()))
        _make(request)
    except ValueError as error:
        st.warning(format.plain(error))
    return None


def _make(request: SampleRequest) -> None:
    """Draw the progress of a table's computation; a long one starts on request, with its estimated time."""
    rows = embedding_of(request)
    number = 0 if rows is None else len(rows)
    job = jobs.samples(request, number)
    asked = f"asked-{job.key}"
    if rows is None or number <= MANY or st.session_state.get(asked) or job.is_running():
        label = message("Every sample of {title}", title=Space(request.name).title)
        if request.by:
            label = message("Every sample of {title} by {name}", title=request.name, name=request.by)
        follow(job, label, may_stop=True)
        return
    minutes = max(1, round(MINUTES * number / 1e6 * rows.width / 256))
    text = _(
        "The losses of these {number} rows and the lists of unusual rows take about {minutes} min on two cores. "
        "They are computed once and saved. You can leave the page."
    )
    st.info(text.format(number=f"{number:,}", minutes=f"{minutes:,}"))
    if st.button(_("Look for odd samples"), type="primary", icon=":material/search:"):
        st.session_state[asked] = True
        st.rerun()


def _pairs_or_wait(request: SampleRequest) -> SampleTable | None:
    """Return the table of the pairs of two towers, and draw notes about all of them; None while it is computed."""
    if (run := request.run) is not None and not embedded_or_wait(run, request.split, TOWERS):
        return None
    space = request.embedding
    rows = cache.embedding(space)
    result = answer_or_wait("tower_pairs", {"space": space.values}, message("Pairs of the two towers"))
    if rows is None or result is None:
        return None
    table = _pair_table(rows.content_hash, rows, result)
    text = _("{n} pairs of {query} and {partner}: each row of {query} with its most similar partner.")
    query, partner = table.towers
    counts = {} if space.run or space.recorded else {**loaded_vectors.about(space.key)["left_out"]}
    counts |= {reason: k for reason, k in result.meta["left_out"].items() if k}
    negatives = counts.pop("negatives", 0)
    told = text.format(n=f"{len(table):,}", query=query, partner=partner)
    for warning in result.meta.get("warnings", ()):
        st.warning(format.plain(warning))
    given = _("Documents that are only given negatives: {count}.").format(count=f"{negatives:,}") if negatives else ""
    notes = (told, given, load_vectors.left_out(counts), *map(locale.text, result.meta["notes"]))
    st.caption(format.plain(" ".join(filter(None, notes))))
    return table


@st.cache_resource(max_entries=4, show_spinner=False)
def _pair_table(content: str, _rows: EmbeddingSet, _result: Result) -> SampleTable:
    return pair_table(_rows, _result.arrays, _result.meta)


class Pictures:
    """Images by sample id, from a run's data set or from a file of vectors."""

    def __init__(self, request: SampleRequest) -> None:
        self.request = request
        dataset = None if (run := request.run) is None else cache.dataset_of(run, request.split)
        self.classes: tuple[str, ...] = () if dataset is None else tuple(dataset.classes)
        self.left_out = "" if dataset is None else dataset.left_out  # which files of a folder are not among them
        self._by_split: dict[str, tuple[Any, dict[str, int], EmbeddingSet | None]] = {}

    def _images(self, split: str | None) -> tuple[Any, dict[str, int], EmbeddingSet | None]:
        """Return the images, the index of each sample among them, and the rows themselves if these may be texts."""
        name, pairs, split = self.request.name, self.request.pairs, self.request.split if split is None else split
        if split not in self._by_split:  # a page asks for 1,000 pictures, and Streamlit's cache takes 2 ms for each
            images, places = cache.sample_images(name, split, pairs)
            rows = embedding_of(request_of(name, split, pairs=pairs)) if images is None or pairs else None
            self._by_split[split] = images, places, rows
        return self._by_split[split]

    def get(self, sample: str, split: str | None = None) -> np.ndarray | None:
        """Return an image (c, h, w) uint8; None without one."""
        images, places, _rows = self._images(split)
        is_caption = self.request.pairs and self.request.run is not None and self.text(sample, split)
        if images is None or sample not in places or is_caption:
            return None
        image = np.asarray(images[places[sample]])
        is_gray = self.request.pairs and (image == image[:, :1, :1]).all()  # a row that came without a picture
        return None if is_gray else image

    @property
    def kind(self) -> str:
        """The kind of the samples: "image", "text" or "row"."""
        images, _places, rows = self._images(None)
        return "image" if images is not None else "row" if rows is None or rows.texts is None else "text"

    def text(self, sample: str, split: str | None = None) -> str:
        """Return the text of a sample; "" if samples are not texts."""
        _images, places, rows = self._images(split)
        texts = None if rows is None else rows.columns.get(TEXT, rows.texts) if self.request.pairs else rows.texts
        return "" if texts is None or sample not in places else str(texts[places[sample]])[:LONGEST]

    def stack(self, samples: Sequence[str], splits: Sequence[str] | None = None) -> np.ndarray | None:
        """Return images (n, c, h, w) of samples of the request's split, or of a split for each; None if one has
        none."""
        images = [self.get(sample, split) for sample, split in zip(samples, splits or repeat(None), strict=False)]
        known = [image for image in images if image is not None]
        return np.stack(known) if known and len(known) == len(images) else None
