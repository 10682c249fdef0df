"""What the Samples page looks at, its tables, and the pictures behind them."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine import questions
from contrastive_core.engine.client import Question
from contrastive_core.engine.task import Task
from contrastive_core.records import embedding_ref, loaded_vectors, recorded_rows
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.run import Run
from contrastive_core.records.sample_request import SampleRequest, request_of
from contrastive_core.records.sample_table import SampleTable, knobs_of
from contrastive_lab import cache, format, locale, query_params, state
from contrastive_lab.locale import _, message
from contrastive_lab.progress import follow
from contrastive_lab.recordings import growing
from contrastive_lab.samples.current_sample import open_one

SPLITS = ["train", "test"]
BOTH = "both"
SPLIT = "samples-split"
MANY = 50_000  # rows, whose lists take minutes
MINUTES = 17.0  # of a million rows of 256 on two cores, measured: benchmarks/scale.py
SHOWN = 50  # snapshots of a recording that are offered


def choose() -> list[SampleRequest]:
    """The requests of the address or of the pickers, one for each split; none where there is
    nothing to look at."""
    run, loaded = state.chosen_run(), loaded_vectors.loaded()
    names = [run.name] if run is not None and run.weights.exists() else []
    names += _recorded(run)
    names += [loaded_vectors.PREFIX + key for key in loaded]
    if not names:
        st.info(_("Choose a run with weights, or a recording, in the sidebar; or train one."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return []
    a = st.container()
    line = st.container(horizontal=True, vertical_alignment="bottom")
    looked_at = loaded_vectors.PREFIX + str(st.session_state.get("vectors"))  # on the page before
    name = _choose_source(a, names, looked_at, loaded)
    about = loaded.get(name.removeprefix(loaded_vectors.PREFIX), {"splits": SPLITS})
    splits = [""]
    if name.startswith(recorded_rows.PREFIX):
        about = {"splits": []}
        st.caption(locale.text(growing.LACKS))
    if about["splits"]:
        open_asked(name)
        splits = _choose_splits(line)
    elif not name.startswith(recorded_rows.PREFIX):
        splits = SPLITS[:1]
    loss = _choose_loss(line, run, name)
    return [request_of(name, split, loss) for split in splits]


def _choose_source(place: Any, names: list[str], looked_at: str, loaded: dict[str, dict[str, Any]]) -> str:
    """The run, recording or vectors, by a picker where there are several."""
    name = names[0]
    if len(names) > 1:
        name = query_params.one_of(
            place.selectbox,
            _("Of"),
            names,
            name="on",
            key=f"samples-on-{cache.digest(names[0])}",
            default=looked_at if looked_at in names else names[0],
            format_func=lambda n: (
                _("{name} (vectors)").format(name=loaded[n.removeprefix(loaded_vectors.PREFIX)]["name"])
                if n.startswith(loaded_vectors.PREFIX)
                else n.removeprefix(recorded_rows.PREFIX)
            ),
        )
    else:
        query_params.keep(on=name)
    return name


def _choose_splits(line: Any) -> list[str]:
    split = query_params.one_of(
        line.segmented_control,
        _("Images"),
        [*SPLITS, BOTH],
        name="split",
        key=SPLIT,
        format_func={BOTH: _("Both splits"), "train": _("Train"), "test": _("Test")}.get,
        width="content",
    )
    return list(SPLITS) if split == BOTH else [split]


def _choose_loss(line: Any, run: Run | None, name: str) -> str:
    losses = cache.catalog()["losses"]
    default_loss = "sup_con"
    if run is not None and not name.startswith(loaded_vectors.PREFIX):
        default_loss = str(run.config.get("loss") or default_loss)
    return query_params.one_of(
        line.selectbox,
        _("Loss"),
        losses,
        name="loss",
        default=default_loss,
        format_func=lambda n: losses[n]["title"],
        key=f"samples-loss-{cache.digest(name)}",
    )


def _recorded(run: Run | None) -> list[str]:
    """The snapshots of a recording's probe set, the newest first, or its newest step."""
    if run is None or not run.is_recording:
        return []
    kinds = recorded_rows.kinds_of(run)
    steps = kinds.get(recorded_rows.PROBE, [])[::-1] or kinds.get(recorded_rows.STEP, [])[-1:]
    kind = recorded_rows.PROBE if recorded_rows.PROBE in kinds else recorded_rows.STEP
    return [recorded_rows.PREFIX + recorded_rows.Recorded(run, kind, step).key for step in steps[:SHOWN]]


def open_asked(name: str) -> None:
    """The sample of the address is at hand, in the split that has it."""
    sample = query_params.take("sample")
    if not sample:
        return
    open_one(sample)
    if not query_params.requested("split"):
        for split in SPLITS:
            if sample in cache.sample_images(name, split)[1]:
                query_params.choose(SPLIT, split)
                return


def embedding_of(request: SampleRequest) -> tuple[EmbeddingRef, EmbeddingSet] | None:
    """The embedding in which neighbors are looked for, and its rows; None where they are gone."""
    try:
        space = embedding_ref.of_name(request.name, request.split)
        rows = cache.embedding(space)
    except ValueError:
        return None
    return None if rows is None else (space, rows)


def table_or_wait(request: SampleRequest) -> SampleTable | None:
    """The table; while a process makes it, how far it is, with a way to stop it. What takes long is
    begun when it is asked for, its time said beforehand."""
    try:
        return cache.sample_table(request, str(request.path()))
    except LookupError:
        if not _is_asked_for(request):
            return None
        follow(
            _task(request),
            message("Every sample of {title}", title=embedding_ref.EmbeddingRef(request.name).title),
            may_stop=True,
        )
        return None
    except ValueError as error:
        st.warning(format.plain(error))
        return None


def _task(request: SampleRequest) -> Question | Task:
    space = embedding_of(request)
    return questions.samples(request, 0 if space is None else len(space[1]))


def _is_asked_for(request: SampleRequest) -> bool:
    """Whether the table is to be made: of many rows after a press only."""
    space = embedding_of(request)
    number, asked = 0 if space is None else len(space[1]), f"asked-{_task(request).key}"
    if number <= MANY or st.session_state.get(asked) or _task(request).is_running():
        return True
    assert space is not None
    minutes = max(1, round(MINUTES * number / 1e6 * space[1].width / 256))
    st.info(
        _(
            "The loss of each of these {number} rows, and the lists of odd ones, take about "
            "{minutes} min on two cores. They are made once and kept; you may leave the page."
        ).format(number=f"{number:,}", minutes=f"{minutes:,}")
    )
    _say_of_losses(request, space[1])
    if st.button(_("Look for odd samples"), type="primary", icon=":material/search:"):
        st.session_state[asked] = True
        st.rerun()
    return False


def _say_of_losses(request: SampleRequest, rows: EmbeddingSet) -> None:
    """Whether the losses will be exact, estimated, or none, before minutes are spent on them."""
    run = request.rows.recorded.run if request.rows.recorded else request.run
    by_views, compared = False, rows
    if request.run is not None:  # whose loss is taken on z, mostly of two views of an image
        method = cache.catalog()["methods"].get(str(request.run.config.get("method")), {})
        by_views = rows.labels is None or not method.get("needs_labels")
        compared = cache.embedding(embedding_ref.of_run(request.run, request.split, "z")) or rows
    if rows.labels is None and not by_views:
        return
    positives = 1 if by_views or rows.labels is None else rows.largest_class - 1
    knobs = None if run is None else knobs_of(run, request.loss)
    sizes = (len(rows), 2 if by_views else 1, compared.width, positives)
    ahead = cache.losses_ahead(request.loss, knobs, *sizes)
    if "exact_up_to" in ahead:
        title, most = cache.loss_title(request.loss), ahead["exact_up_to"]
        st.caption(
            _(
                "{title} is exact only up to {most} images, and cannot be estimated from some of "
                "them: these {rows} will have no losses. Another loss can be chosen above."
            ).format(title=title, most=f"{most:,}", rows=f"{len(rows):,}")
        )
    elif "candidates" in ahead:
        st.caption(
            _(
                "The losses will be estimated, from about {candidates} candidates each; how far off "
                "they are is measured on some of them, and said."
            ).format(candidates=f"{ahead['candidates']:,}")
        )
    else:
        st.caption(_("The losses will be exact: each is taken against all others."))


class Pictures:
    """Images by sample id: of a run's data set, or those that came along with vectors."""

    def __init__(self, request: SampleRequest) -> None:
        self.request = request
        self.by_split: dict[str, tuple[Any, dict[str, int]]] = {}
        self.classes: tuple[str, ...] = ()
        self.left_out = ""  # which files of a folder are not among them
        if (run := request.run) is not None:
            dataset = cache.dataset_of(run, request.split)
            self.classes, self.left_out = tuple(dataset.classes), dataset.left_out

    def get(self, sample: str, split: str | None = None) -> np.ndarray | None:
        """An image (c, h, w) uint8, or None."""
        images, at = self._of(split or self.request.split)
        i = at.get(sample)
        return None if images is None or i is None else np.asarray(images[i])

    def stack(self, samples: list[str], splits: list[str] | None = None) -> np.ndarray | None:
        """Images (n, c, h, w) of samples of the request's split, or of a split for each; None where
        there are none."""
        found = [self.get(s, p) for s, p in zip(samples, splits or repeat(None), strict=False)]
        known = [image for image in found if image is not None]
        return np.stack(known) if known and len(known) == len(samples) else None

    def _of(self, split: str) -> tuple[Any, dict[str, int]]:
        if split not in self.by_split:
            self.by_split[split] = cache.sample_images(self.request.name, split)
        return self.by_split[split]

    def show(self, place: Any, sample: str, caption: str = "", split: str | None = None) -> None:
        """The picture with a caption; the id alone where there is no picture."""
        image = self.get(sample, split)
        if image is None:
            place.markdown(f"{format.plain(sample)}  \n{format.plain(caption)}")
        else:
            place.image(
                cache.picture(image[None], 0),
                format.plain(caption) or None,
                width="stretch",
                alt=_("the image {sample}").format(sample=sample),
            )
