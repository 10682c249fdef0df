"""The Samples page's choice of split and run, its tables and their images."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from contrastive_core.engine import questions
from contrastive_core.records import embedding_ref, frozen, loaded_vectors, recorded_rows, runs
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.frozen import FrozenEncoder
from contrastive_core.records.run import Run
from contrastive_core.records.sample_request import SampleRequest, request_of
from contrastive_core.records.sample_table import SampleTable, knobs_of
from contrastive_lab import cache, format, frozen_encoders, locale, query_params, recordings, state
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import follow
from contrastive_lab.samples.current_sample import open_one

BOTH = "both"
SPLITS = {"train": N_("Train"), "test": N_("Test"), BOTH: N_("Both splits")}
SPLIT = "samples-split"
MANY = 50_000  # rows, whose lists take minutes
MINUTES = 17.0  # of a million rows of 256 on two cores, measured: benchmarks/scale.py
LOOKS = {"pairs": N_("Pairs"), "rows": N_("Single rows")}  # of two towers
LONGEST = 2_000  # characters of a text that is shown
SHOWN = 50  # snapshots of a recording that are offered


class ChosenRows(NamedTuple):
    """A request for each split, none where there is nothing to look at; whether they are of pairs of two towers."""

    requests: list[SampleRequest]
    are_pairs: bool = False


def choose() -> ChosenRows:
    """What the address or the pickers ask for."""
    run, loaded = state.chosen_run(), loaded_vectors.loaded()
    names = [run.name] if run is not None and run.weights.exists() else []
    names += _recorded(run)
    names += [loaded_vectors.PREFIX + key for key in loaded]
    if not names:
        st.info(_("Choose a run with weights, or a recording, in the sidebar; or train one."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return ChosenRows([])
    name = _choose_source(names, loaded)
    if name.startswith(recorded_rows.PREFIX):
        st.caption(locale.text(recordings.LACKS))
    line = st.container(horizontal=True, vertical_alignment="bottom")
    has_towers = _has_towers(name)
    are_pairs = has_towers and _are_pairs_chosen(line)
    splits = _choose_splits(line, name, has_towers, are_pairs)
    trained_with = None if run is None or name.startswith(loaded_vectors.PREFIX) else run.config.get("loss")
    loss, by = str(trained_with or "sup_con"), None
    if not are_pairs:  # whose lists no loss changes
        titles, key = cache.titles("losses"), f"samples-loss-{cache.digest(name)}"
        loss = query_params.one_of(
            line.selectbox, _("Loss"), titles, name="loss", default=loss, format_func=titles.get, key=key
        )
        if not has_towers and not name.startswith((loaded_vectors.PREFIX, recorded_rows.PREFIX)):
            by = _choose_encoder(line, name)
    return ChosenRows([request_of(name, split, loss, by) for split in splits], are_pairs)


def key_of_encoder(name: str) -> str:
    """Key of the choice of the encoder that the lists of a run rest on."""
    return f"samples-by-{cache.digest(name)}"


def _choose_encoder(line: Any, name: str) -> FrozenEncoder | None:
    """The frozen encoder that the lists of a run rest on, by a picker where some are named; None for its own."""
    named, text = {encoder.text: encoder for encoder in frozen.read_list()}, ""
    if named:

        def title(text: str) -> str:
            return _("{name}, frozen").format(name=named[text].title) if text else _("This run's encoder")

        key, box = key_of_encoder(name), line.selectbox
        text = query_params.one_of(box, _("Lists by"), ["", *named], name="by", key=key, format_func=title)
    with line:
        frozen_encoders.manage()
    return named.get(text)


def _has_towers(name: str) -> bool:
    """Whether a run, a recording or loaded vectors have two towers."""
    if not name.startswith((loaded_vectors.PREFIX, recorded_rows.PREFIX)):
        return runs.load(name).has_towers
    try:
        rows = cache.embedding(embedding_ref.of_name(name, "train", "z"))
    except ValueError:
        return False
    return rows is not None and cache.towers(rows) is not None


def _are_pairs_chosen(line: Any) -> bool:
    """Whether pairs of two towers are looked at, and not single rows."""
    box = line.segmented_control
    return query_params.one_of(box, _("Look at"), LOOKS, name="of", format_func=LOOKS.get, width="content") == "pairs"


def _choose_splits(line: Any, name: str, has_towers: bool, are_pairs: bool) -> list[str]:
    """The splits that are listed; "" for rows of none."""
    is_file = name.startswith(loaded_vectors.PREFIX)
    if name.startswith(recorded_rows.PREFIX):
        return [""]
    if is_file and not loaded_vectors.loaded()[name.removeprefix(loaded_vectors.PREFIX)]["splits"]:
        return ["train"]
    _open_asked(name)
    label = _("Pairs") if are_pairs else _("Rows") if is_file or has_towers else _("Images")
    options = {split: title for split, title in SPLITS.items() if not are_pairs or split != BOTH}
    came_along = are_pairs and not is_file and runs.load(name).shipped  # its pairs of the test split did
    split = query_params.one_of(
        line.segmented_control,
        label,
        options,
        name="split",
        key=SPLIT,
        default="test" if came_along else None,
        format_func=options.get,
        width="content",
    )
    return ["train", "test"] if split == BOTH else [split]


def _choose_source(names: list[str], loaded: dict[str, loaded_vectors.About]) -> str:
    """The run, recording or vectors, by a picker where there are several."""
    if len(names) == 1:
        query_params.keep(on=names[0])
        return names[0]

    def title(name: str) -> str:
        if name.startswith(loaded_vectors.PREFIX):
            return _("{name} (vectors)").format(name=loaded[name.removeprefix(loaded_vectors.PREFIX)]["name"])
        return name.removeprefix(recorded_rows.PREFIX)

    looked_at = loaded_vectors.PREFIX + str(st.session_state.get("vectors"))  # on the page before
    key = f"samples-on-{cache.digest(names[0])}"
    first = looked_at if looked_at in names else names[0]
    return query_params.one_of(st.selectbox, _("Of"), names, name="on", key=key, default=first, format_func=title)


def _recorded(run: Run | None) -> list[str]:
    """The snapshots of a recording's probe set, the newest first, or its newest step; of two towers that step."""
    if run is None or not run.is_recording:
        return []
    kinds, probe, step = recorded_rows.kinds_of(run), recorded_rows.PROBE, recorded_rows.STEP
    has_pairs = step in kinds and recorded_rows.newest(run).tower_names is not None  # a probe set is of one tower
    is_probe = probe in kinds and not has_pairs
    kind, steps = (probe, kinds[probe][::-1]) if is_probe else (step, kinds.get(step, [])[-1:])
    return [recorded_rows.PREFIX + recorded_rows.Recorded(run, kind, at).key for at in steps[:SHOWN]]


def _open_asked(name: str) -> None:
    """The sample of the address is at hand, in the split that has it."""
    if not (sample := query_params.take("sample")):
        return
    open_one(sample)
    if not query_params.requested("split"):
        holders = (split for split in ("train", "test") if sample in cache.sample_images(name, split)[1])
        if split := next(holders, ""):
            query_params.choose(SPLIT, split)


def embedding_of(request: SampleRequest) -> EmbeddingSet | None:
    """The rows among which neighbors are looked for; None where they are gone."""
    try:
        return cache.embedding(embedding_ref.of_name(request.name, request.split))
    except ValueError:
        return None


def table_or_wait(request: SampleRequest) -> SampleTable | None:
    """The table; while a process makes it, how far it is, with a way to stop it."""
    try:
        return cache.sample_table(request, str(request.path()))
    except LookupError:
        _make(request)
    except ValueError as error:
        st.warning(format.plain(error))
    return None


def _make(request: SampleRequest) -> None:
    """Follow the process that makes a table; a long one is begun on request, with its time said beforehand."""
    rows = embedding_of(request)
    number = 0 if rows is None else len(rows)
    task = questions.samples(request, number)
    asked = f"asked-{task.key}"
    if rows is None or number <= MANY or st.session_state.get(asked) or task.is_running():
        label = message("Every sample of {title}", title=embedding_ref.EmbeddingRef(request.name).title)
        if by := request.frozen:
            label = message("Every sample of {title} by {name}, frozen", title=request.name, name=by.title)
        follow(task, label, may_stop=True)
        return
    minutes = max(1, round(MINUTES * number / 1e6 * rows.width / 256))
    text = _(
        "The losses of these {number} rows and the lists of unusual ones take about {minutes} min on two cores. They "
        "are computed once and saved. You can leave the page."
    )
    st.info(text.format(number=f"{number:,}", minutes=f"{minutes:,}"))
    if ahead := _losses_ahead(request, rows):
        st.caption(ahead)
    if st.button(_("Look for odd samples"), type="primary", icon=":material/search:"):
        st.session_state[asked] = True
        st.rerun()


def _losses_ahead(request: SampleRequest, rows: EmbeddingSet) -> str:
    """Whether the losses will be exact, estimated, or none, before minutes are spent on them."""
    run = request.rows.recorded.run if request.rows.recorded else request.run
    by_views, compared = False, rows
    if request.run is not None:  # whose loss is taken on z, mostly of two views of an image
        method = cache.catalog()["methods"].get(str(request.run.config.get("method")), {})
        by_views = rows.labels is None or not method.get("needs_labels")
        compared = cache.embedding(embedding_ref.of_run(request.run, request.split, "z")) or rows
    if rows.labels is None and not by_views:
        return ""
    positives = 1 if by_views or rows.labels is None else rows.largest_class - 1
    knobs = None if run is None else knobs_of(run, request.loss)
    ahead = cache.losses_ahead(request.loss, knobs, len(rows), 2 if by_views else 1, compared.width, positives)
    if "exact_up_to" in ahead:
        title, most = cache.loss_title(request.loss), ahead["exact_up_to"]
        return _(
            "{title} is exact only up to {most} samples and has no estimate, so these {rows} will have no losses. "
            "Choose another loss above."
        ).format(title=title, most=f"{most:,}", rows=f"{len(rows):,}")
    if "candidates" in ahead:
        return _(
            "The losses will be estimated from about {candidates} candidates each. The error is measured on a sample "
            "and shown."
        ).format(candidates=f"{ahead['candidates']:,}")
    return _("The losses will be exact: each sample is compared with all others.")


class Pictures:
    """Images by sample id: of a run's data set, or those that came along with vectors."""

    def __init__(self, request: SampleRequest) -> None:
        self.request = request
        dataset = None if (run := request.run) is None else cache.dataset_of(run, request.split)
        self.classes: tuple[str, ...] = () if dataset is None else tuple(dataset.classes)
        self.left_out = "" if dataset is None else dataset.left_out  # which files of a folder are not among them

    def get(self, sample: str, split: str | None = None) -> np.ndarray | None:
        """An image (c, h, w) uint8, or None."""
        images, places = cache.sample_images(self.request.name, split or self.request.split)
        return None if images is None or sample not in places else np.asarray(images[places[sample]])

    @property
    def kind(self) -> str:
        """What the samples are: "image", "text" or "row"."""
        request = self.request
        if cache.sample_images(request.name, request.split)[0] is not None:
            return "image"
        rows = embedding_of(request)
        return "row" if rows is None or rows.texts is None else "text"

    def text(self, sample: str, split: str) -> str:
        """What a sample says, where samples are texts."""
        images, places = cache.sample_images(self.request.name, split)
        rows = embedding_of(request_of(self.request.name, split, self.request.loss)) if images is None else None
        texts = None if rows is None else rows.texts
        return "" if texts is None or sample not in places else str(texts[places[sample]])[:LONGEST]

    def stack(self, samples: Sequence[str], splits: Sequence[str] | None = None) -> np.ndarray | None:
        """Images (n, c, h, w) of samples of the request's split, or of a split for each; None where one has none."""
        images = [self.get(sample, split) for sample, split in zip(samples, splits or repeat(None), strict=False)]
        known = [image for image in images if image is not None]
        return np.stack(known) if known and len(known) == len(images) else None

    def show(self, place: Any, sample: str, caption: str = "", split: str | None = None) -> None:
        """The picture with a caption; the id alone where there is no picture."""
        image, text = self.get(sample, split), format.plain(caption)
        if image is None:
            place.markdown(f"{format.plain(sample)}  \n{text}")
        else:
            alt = _("the image {sample}").format(sample=sample)
            place.image(cache.picture(image[None], 0), text or None, width="stretch", alt=alt)
