"""The subject of the Samples page: source and split with their tables and pictures, and the current sample."""

import contextlib
from collections.abc import Container, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core import runs
from contrastive_core.engine import jobs
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, request_of
from contrastive_core.samples.tower_pairs import pair_table
from contrastive_core.spaces import loaded_vectors, recorded_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.results import Result
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import TEXT, with_text
from contrastive_lab import cache, format, load_vectors, locale, query_params, recordings, state
from contrastive_lab.locale import N_, _, message, ngettext
from contrastive_lab.progress import answer_or_wait, embedded_or_wait, follow

BOTH = "both"
SPLITS = {"train": N_("Train"), "test": N_("Test"), BOTH: N_("Both splits")}
SPLIT = "samples-split"
MANY = 50_000  # rows, whose lists take minutes
MINUTES = 17.0  # of a million rows of 256 on two cores, measured: benchmarks/scale.py
LOOKS = {"pairs": N_("Pairs"), "rows": N_("Single rows")}  # of two towers
LONGEST = 2_000  # characters of a text that is shown
CHIP = 128  # pixels of a short select
SHOWN = 50  # snapshots of a recording that are offered
AT = "sample-at"  # of the session: the id of the sample at hand
ASKED = "sample-asked"  # the one that was asked for by its id
ASKED_OF = "sample-asked-of"  # the tables that it was asked for of
PLACE = "sample-place"  # where in the list it stood last
OF = "sample-of"  # which tables the list was made of last
LIST = "sample-list"  # the list that was shown last, on which its decisions are made
MOVES = "sample-moves"  # how often the page brought another to hand, and not the bench


def take_subject() -> str | None:
    """Choose the vectors, or the run, that another page shows; return the key of the vectors, None for a run."""
    if not (names := _sources()):
        return None
    file, key = state.new_subject(), f"samples-on-{cache.digest(names[0])}"
    name = f"{loaded_vectors.PREFIX}{file}"
    if file is not None and not query_params.requested("on"):
        query_params.choose(key, name if name in names else names[0])
    space = Space(query_params.current("on", names, names[0], key))
    state.set_subject(space.key if space.is_file else None)
    return st.session_state["vectors"] or None


def _sources() -> list[str]:
    """Return the run with weights, or the newest rows of a recording: the snapshots of its probe set, or of two towers
    the newest step; then all loaded vectors."""
    run, names = state.chosen_run(), list[str]()
    if run is not None and run.weights.exists():
        names = [run.name]
    if run is not None and run.is_recording:
        kinds, probe, step = recorded_rows.kinds_of(run), recorded_rows.PROBE, recorded_rows.STEP
        has_pairs = step in kinds and recorded_rows.newest(run).tower_names is not None  # a probe set is of one tower
        is_probe = probe in kinds and not has_pairs
        kind, steps = (probe, kinds[probe][::-1]) if is_probe else (step, kinds.get(step, [])[-1:])
        names += [recorded_rows.PREFIX + recorded_rows.Recorded(run, kind, at).key for at in steps[:SHOWN]]
    return [*names, *(loaded_vectors.PREFIX + key for key in loaded_vectors.loaded())]


def choose(chips: DeltaGenerator, more: DeltaGenerator) -> list[SampleRequest]:
    """Draw the pickers; return a request for each split, [] if there is nothing to show.

    Args: chips: container of the choice of samples; more: container for the loss."""
    if not (names := _sources()):
        st.info(_("Choose a run with weights or a recording at the top, or train one."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return []

    of_run: str = _("Run {name}") if st.session_state["vectors"] else _("This run")  # the picker beside it names it

    def title(name: str) -> str:
        space = Space(name)
        if space.is_loaded:
            return space.key if space.is_recording else _("{name} (vectors)").format(name=space.title)
        return of_run.format(name=name)

    name, are_pairs, has_towers = names[0], False, False
    with chips:
        if len(names) > 1:
            key = f"samples-on-{cache.digest(names[0])}"
            name = query_params.one_of(
                st.selectbox, _("Source"), names, name="on", key=key, format_func=title, width=240
            )
        else:
            query_params.keep(on=name)
        space = Space(name)
        if not space.is_loaded:
            has_towers = runs.load(name).has_towers
        with contextlib.suppress(ValueError):
            rows = cache.embedding(Space.of_name(name, "train", "z")) if space.is_loaded else None
            has_towers |= rows is not None and cache.towers(rows) is not None
        if has_towers:
            box, label = st.selectbox, _("Look at")
            are_pairs = query_params.one_of(box, label, LOOKS, name="of", width=CHIP) == "pairs"
        splits = _choose_splits(space, has_towers, are_pairs)
    if space.is_recording:
        st.caption(locale.text(recordings.LACKS))
    if are_pairs:  # whose lists no loss changes
        return [request_of(name, split, pairs=True) for split in splits]
    with more:
        titles, key = cache.titles("losses"), f"samples-loss-{cache.digest(name)}"
        usual = space.loss or "sup_con"
        loss = query_params.one_of(st.selectbox, _("Loss"), titles, name="loss", default=usual, key=key)
    return [request_of(name, split, loss) for split in splits]


def _choose_splits(space: Space, has_towers: bool, are_pairs: bool) -> list[str]:
    """Return the listed splits; "" for rows without one. A sample in the URL becomes current, in its split."""
    if sample := query_params.take("sample"):  # shown even if it is not on the list
        go_to(sample)
        st.session_state[ASKED] = sample
        st.session_state.pop(ASKED_OF, None)
    if space.is_recording:
        return [""]
    if space.is_file and not loaded_vectors.about(space.key)["splits"]:
        return ["train"]
    if sample:
        holders = (split for split in ("train", "test") if sample in cache.sample_images(space.name, split)[1])
        if not query_params.requested("split") and (holder := next(holders, "")):
            query_params.choose(SPLIT, holder)
    label = _("Pairs") if are_pairs else _("Rows") if space.is_file or has_towers else _("Images")
    options = {split: title for split, title in SPLITS.items() if not are_pairs or split != BOTH}
    came_along = are_pairs and not space.is_file and runs.load(space.name).shipped  # its pairs of the test split did
    split = query_params.one_of(
        st.selectbox, label, options, name="split", key=SPLIT, default="test" if came_along else None, width=CHIP
    )
    return ["train", "test"] if split == BOTH else [split]


def embedding_of(request: SampleRequest) -> EmbeddingSet | None:
    """Return the rows in which neighbors are searched; None if they no longer exist."""
    try:
        return cache.embedding(request.embedding)
    except ValueError:
        return None


def table_or_wait(request: SampleRequest) -> SampleTable | None:
    """Return the table; None while it is computed, with its progress and a stop button. A long computation starts on
    request, with its estimated time."""
    try:
        if request.pairs:
            return _pairs_or_wait(request)
        with contextlib.suppress(LookupError):
            return cache.sample_table(request, str(request.path()))
        rows = embedding_of(request)
        number = 0 if rows is None else len(rows)
        job = jobs.samples(request, number)
        asked = f"asked-{job.key}"
        if rows is None or number <= MANY or st.session_state.get(asked) or job.is_running():
            follow(job, message("Every sample of {title}", title=Space(request.name).title), may_stop=True)
            return None
        text = _(
            "The losses of these {number} rows and the lists of unusual rows take about {minutes} min on two cores. "
            "They are computed once and saved. You can leave the page."
        )
        minutes = max(1, round(MINUTES * number / 1e6 * rows.width / 256))
        st.info(text.format(number=f"{number:,}", minutes=f"{minutes:,}"))
        if st.button(_("Look for odd samples"), type="primary", icon=":material/search:"):
            st.session_state[asked] = True
            st.rerun()
    except ValueError as error:
        st.warning(format.plain(error))
    return None


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
            if pairs and rows is not None:
                rows = with_text(rows)
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
        texts = None if rows is None else rows.columns.get(TEXT) if self.request.pairs else rows.texts
        return "" if texts is None or sample not in places else str(texts[places[sample]])[:LONGEST]

    def stack(self, samples: Sequence[str], splits: Sequence[str] | None = None) -> np.ndarray | None:
        """Return images (n, c, h, w) of samples of the request's split, or of a split for each; None if one has
        none."""
        images = [self.get(sample, split) for sample, split in zip(samples, splits or repeat(None), strict=False)]
        known = [image for image in images if image is not None]
        return np.stack(known) if known and len(known) == len(images) else None


# --- the current sample ---


def go_to(sample: str | None = None) -> None:
    """Make a sample current; None for the first of the list."""
    st.session_state[AT] = sample
    st.session_state[PLACE] = 0
    st.session_state[MOVES] = moves() + 1


def moves() -> int:
    """Return a counter that grows when the page, not the bench, changes the current sample."""
    return int(st.session_state.get(MOVES, 0))


def row_of(table: SampleTable, rows: np.ndarray, decided: np.ndarray) -> int | None:
    """Return the row of the current sample, else the first that is not `decided`; None for an empty list."""
    sample = st.session_state.get(AT)
    row = table.row(sample) if sample else None
    if sample and row is None:  # its id in its own split, where the list has another for it, or the other way round
        own, split = table.extra["own_id"], str(table.extra["split"][0])
        row = table.row(sample.removeprefix(f"{split}/"))
        row = next(iter(np.flatnonzero(own == sample).tolist()), None) if row is None else row
    if sample and sample == st.session_state.get(ASKED):
        of = st.session_state.get(OF)
        is_of_these = st.session_state.setdefault(ASKED_OF, of) == of  # not of another run
        if row is None and is_of_these:
            st.warning(format.plain(_("There is no sample {sample} here.").format(sample=sample)))
    elif row not in rows:  # it was at hand in another list, or of another space
        row = None
    if not sample and len(open_places := np.flatnonzero(~np.isin(rows, decided))):
        row = int(rows[open_places[0]])
    if row is None and len(rows):  # the list lost it: the one that stands in its place
        row = int(rows[min(st.session_state.get(PLACE, 0), len(rows) - 1)])
    if row is not None:
        st.session_state[PLACE] = next(iter(np.flatnonzero(rows == row).tolist()), 0)
        st.session_state[AT] = str(table.columns["id"][row])
        query_params.keep(sample=st.session_state[AT])
    return row


def say_skipped(table: SampleTable, rows: np.ndarray, row: int, decided: Container[str]) -> None:
    """At the end of the list, draw the number of undecided rows before it and a button to the first one."""
    if not len(rows) or row != rows[-1]:
        return
    skipped = [name for name in table.columns["id"][rows[:-1]].tolist() if name not in decided]
    if not skipped:
        return
    line = st.container(horizontal=True, vertical_alignment="center")
    count = len(skipped)
    text = ngettext("{count} row before this one is undecided.", "{count} rows before this one are undecided.", count)
    line.caption(text.format(count=f"{count:,}"))
    line.button(_("Go to the first undecided row"), on_click=go_to, args=(skipped[0],))
