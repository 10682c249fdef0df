"""Decisions, including those on many samples at once, retraining with them, and the comparison."""

from collections.abc import Callable, Mapping, Set
from functools import partial
from pathlib import Path
from secrets import token_hex

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.errors import BadSetting, Locked
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.score import Score, paired_interval
from contrastive_core.base.storage import data_home
from contrastive_core.data.overrides import LABEL
from contrastive_core.engine import jobs, queue, training
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import settings_of
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.sample_table import SampleRequest, SampleTable
from contrastive_core.spaces import loaded_vectors
from contrastive_lab import cache, format, path_input, query_params, stage, state
from contrastive_lab.locale import _, message
from contrastive_lab.progress import follow, follow_training
from contrastive_lab.samples.bench import is_probably_wrong
from contrastive_lab.samples.findings import Findings, reviewer
from contrastive_lab.samples.lists import listed

LONGER = 4  # times the epochs that are offered
GOOD = 0.9  # from this accuracy on raw pixels are good enough themselves
MANY = "samples-many"  # of the session: how often many were decided on at once


def show_progress(findings: Findings, rows: np.ndarray) -> None:
    """Draw the number of decided rows of the list as text and as a bar."""
    count, total = int(np.isin(rows, findings.marked_rows).sum()), max(1, len(rows))
    text = _("{count} of {total} decided").format(count=f"{count:,}", total=f"{len(rows):,}")
    st.caption(text)
    st.html(f'<div class="decided"><i style="width: {100 * count / total:.1f}%"></i></div>')


def save(findings: Findings, rows: np.ndarray, place: DeltaGenerator) -> None:
    """Draw downloads of the decisions and of the list, and a training with the decisions."""
    one, request = findings.list, findings.requests[0]
    by_split = {r.split: sample_annotations.marks(findings.file(r)) for r in findings.requests}
    every = [m["what"] for marks in by_split.values() for m in marks.values()]
    counts = ", ".join(f"{every.count(choice.what):,} {_(choice.done)}" for choice in one.choices)
    st.caption(
        _("Decided: {counts}. Decisions belong to the data set: every run of it shows them.").format(counts=counts)
    )

    def rename() -> None:
        query_params.keep(reviewer=st.session_state["reviewer"].strip())

    st.text_input(_("Reviewer"), reviewer(), key="reviewer", on_change=rename, help=_("Stored with each decision."))
    download = partial(place.download_button, on_click="ignore", width="stretch")
    if one.decisions:
        ranked = one.order(findings.table)
        decided = ranked[np.isin(ranked, findings.marked_rows)]
        label, name = _("Only your decisions (CSV)"), f"{one.key}_decisions.csv"
        download(label, lambda: format.table_csv(listed(findings, decided)), name, "text/csv", disabled=not every)
    else:
        label, name = _("Only your decisions (CSV)"), "new_labels.csv"
        download(label, partial(sample_annotations.labels_csv, by_split), name, "text/csv", disabled=not every)
    label, name = _("This list, with scores (CSV)"), f"{one.key}.csv"
    download(label, lambda: format.table_csv(listed(findings, rows)), name, "text/csv")
    if request.pairs:
        _export_texts(request, download)
    elif not one.decisions:
        _export(findings, place, download)
    if one.changes:
        _retrain(findings, download)


def _export_texts(request: SampleRequest, download: Callable[..., bool]) -> None:
    """Draw a download of an opened file of triplets with the decisions applied."""
    if not request.space.is_file or (source := loaded_vectors.source(request.space.key)) is None:
        return

    def content() -> bytes:
        with scratch_folder() as folder:
            sample_annotations.export_triplets(source, out := folder / source.name, request.name)
            return out.read_bytes()

    name = f"{loaded_vectors.about(request.space.key)['name'].split(source.suffix)[0]}_clean{source.suffix}"
    has_any = any(sample_annotations.marks(request.decisions(of)) for of in ("", *sample_annotations.DECISIONS))
    help = _("The same file with the decisions of all lists: without wrong pairs and without negatives that match.")
    download(_("Training file with decisions"), content, name, disabled=not has_any, help=help)


def _export(findings: Findings, place: DeltaGenerator, download: Callable[..., bool]) -> None:
    """Draw downloads of all labels; for a folder of images also of a script and a corrected copy."""
    label = _("All labels, your decisions applied (CSV)")
    if (run := findings.requests[0].run) is None:
        download(label, partial(_labels_of_rows, findings), "labels.csv")
        return
    dataset, by_split = str(run.config.get("dataset")), sample_annotations.by_split(run.config)
    download(label, partial(sample_annotations.labels_csv, by_split, run.config), "labels.csv")
    if not dataset.startswith("folder:"):
        return
    script = partial(sample_annotations.folder_script, dataset, by_split)
    download(_("Script that moves the files"), script, "correct.sh")
    help = _("A new folder with your decisions. Its files are hard links to yours and take no space.")
    if not place.button(_("Make a corrected folder"), help=help, width="stretch"):
        return
    name, home = Path(dataset).name, data_home() / "corrected"
    out = next(path for q in range(1, 999) if not (path := home / f"{name}-{q}").exists())
    try:
        n = sample_annotations.write_folder(dataset, by_split, out)
    except (BadSetting, OSError) as error:
        place.error(format.plain(error))
        return
    place.success(format.plain(_("{n} images in {out}").format(n=f"{n:,}", out=out)))
    address = path_input.address_of(f"folder:{out}")
    place.page_link("pages/train.py", label=_("Train on it"), icon=":material/play_circle:", query_params=address)


def _labels_of_rows(findings: Findings) -> str:
    """Return a CSV of the rows of a file that are listed; made at the click, because there may be a million."""
    by_split: dict[str, sample_annotations.Marks] = {}
    for request, table, _first in findings.parts():
        names = zip(*(table.columns[name].tolist() for name in ("id", "label")), strict=True)
        marks = sample_annotations.marks(request.decisions())
        by_split[request.split] = {**{sample: {"given": label} for sample, label in names}, **marks}
    return sample_annotations.labels_csv(by_split)


def decide_on_many(findings: Findings, rows: np.ndarray) -> None:
    """Draw controls that drop or relabel the first rows of a list at once, without those already decided."""
    table, key, most = findings.table, "drop-first", max(1, len(rows))
    title = _("Drop or relabel many")
    st.markdown(f"**{title}**", help=_("Your earlier decisions stay. One undo reverts all of these."))
    first = _("The first of this list")
    number = query_params.number(st.number_input, first, 1, most, name="drop", key=key, default=min(10, most))
    part = [int(r) for r in rows[:number] if findings.id(r) not in findings.marked]
    decided = None if part else _("All of these are decided.")
    if st.button(_("Drop {part}").format(part=len(part)), disabled=not part, help=decided):
        _many(findings, dict.fromkeys(part))
    if findings.list.are_twins:
        extra = twins_to_drop(table, rows, {*findings.marked_rows.tolist()})
        if st.button(_("Keep one of each: drop {count}").format(count=len(extra)), disabled=not extra):
            _many(findings, dict.fromkeys(extra))
    if "suggested" not in table.extra:
        return
    some = [row for row in part if findings.list.key == "mislabeled" or is_probably_wrong(table, row)]
    classes = {row: str(table.extra["suggested"][row]) for row in some}
    changed = {row: label for row, label in classes.items() if label in table.classes}
    why = decided or (None if changed else _("No other class is suggested for these."))
    relabel = _("Relabel {changed} as suggested").format(changed=len(changed))
    if st.button(relabel, disabled=not changed, help=why):
        _many(findings, changed)


def twins_to_drop(table: SampleTable, rows: np.ndarray, decided: Set[int]) -> list[int]:
    """Return the near-duplicates to drop. One of each remains: a test image before a training image, then
    the label that is more likely right. Decided rows stay as they are."""
    p, split = np.nan_to_num(table.score("mislabeled")), table.extra["split"]
    twins, kept, covered = rows[table.twin[rows] >= 0].tolist(), set[int](), set[int]()
    for row in sorted(twins, key=lambda r: (split[r] != "test", p[r], r)):
        if table.twin[row] not in kept and row not in covered:
            kept.add(row)
            covered.add(int(table.twin[row]))
    return [row for row in twins if row not in kept and row not in decided]


def _many(findings: Findings, labels: Mapping[int, str | None]) -> None:
    """Relabel rows, or drop those with the label None; then redraw the page."""
    decisions = [(row, "drop" if label is None else "relabel", label) for row, label in labels.items()]
    findings.decide(decisions, token_hex(8))
    st.session_state[MANY] = st.session_state.get(MANY, 0) + 1
    st.rerun()


def request_to_train(findings: Findings) -> SampleRequest:
    """Return the request of the training split if it is shown, else the first one."""
    return next((r for r in findings.requests if r.split == "train"), findings.requests[0])


def _retrain(findings: Findings, download: Callable[..., bool]) -> None:
    """Draw downloads of the decisions for a training, and a button that trains again with them."""
    request = request_to_train(findings)
    file, column = findings.file(request), findings.list.changes
    if (run := request.run) is None:
        return
    title = _("Train again")
    st.markdown(f"**{title}**")
    if request.split != "train":
        text = _(
            "Only training samples can be left out of training. Choose the training split above: these decisions "
            "are about test samples."
        )
        st.caption(text)
        return
    files, counted, relabeled = sample_annotations.changes(file, run, column)
    new = _("IDs and new labels of relabeled samples (CSV)") if column == LABEL else _("IDs and new partners (CSV)")
    titles, help = (
        {"exclude": _("IDs of dropped samples (CSV)"), "relabel": new},
        _("For `contrastive-lab train`: {file}"),
    )
    for option, content in files.items() if counted or relabeled else ():
        told = help.format(file=f"`--{option} {option}.csv`")
        download(titles[option], content, f"{option}.csv", "text/csv", help=told)
    method = cache.catalog()["methods"].get(str(run.config.get("method")), {})
    if column == LABEL and not method.get("needs_labels", True):
        text = _(
            "{method} does not use labels: relabeling cannot change this encoder, but dropping images can. New "
            "labels change scores, and methods that use labels, such as SupCon."
        )
        st.info(text.format(method=method["title"]))
        relabeled = 0
    counted += relabeled
    key, default = f"epochs-{cache.digest(run.name)}", int(run.config.get("epochs") or 20)
    epochs = query_params.number(st.number_input, _("Epochs"), 1, 10_000, name="epochs", key=key, default=default)
    changes = _("1 change") if counted == 1 else _("{count} changes").format(count=f"{counted:,}")
    label, help = _("Retrain with {changes}").format(changes=changes), _("No decision changes the training.")
    begin = partial(st.button, type="primary", icon=":material/replay:")
    if begin(label, disabled=not counted, help=None if counted else help):
        queue_cleaned(run, file, column, epochs)


def queue_cleaned(run: Run, marked: Path, column: str, epochs: int) -> None:
    """Queue a training with a run's settings and the decisions of the file `marked`; show an error if it fails."""
    arguments = [*settings_of(run.config), *sample_annotations.export(marked, run, column), "--epochs", str(epochs)]
    used_names = queue.taken_names()
    fresh = next(n for q in range(1, 999) if (n := f"{run.name[:50]}-cleaned-{q}") not in used_names)
    try:
        queue.enqueue(fresh, arguments)
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(error))
        return
    st.session_state["retrained"] = fresh
    st.toast(_("{fresh} is queued or training. See Train and Runs.").format(fresh=format.plain(fresh)))


def results(run: Run) -> None:
    """Draw the runs that were trained with the decisions made here."""
    fresh = st.session_state.get("retrained")
    retrained = sample_annotations.cleaned(run, state.all_runs())
    if fresh and (why := training.failure(fresh)):
        st.error(format.plain(_("{fresh} could not start. {why}").format(fresh=fresh, why=why)))
    elif fresh and fresh not in {r.name for r in retrained} and queue.progress_of(fresh):
        follow_training(fresh)
    for one in retrained:
        with stage.on_its_own(one.name):
            result(run, one)


def run_before(run: Run | None) -> Run | None:
    """Return the run on whose page the decisions for this run's training were made; None if there is none."""
    if run is None or not (run.config.get("exclude") or run.config.get("relabel")):
        return None
    return next((r for r in state.all_runs() if sample_annotations.cleaned(r, [run])), None)


def show_encoder(run: Run, below: DeltaGenerator) -> str:
    """Draw the kNN accuracy of the encoder behind the list of wrong labels, compared with raw pixels; score it if
    necessary. Return a note on a weak encoder for the bench, where it moves nothing."""
    if (record := cache.scores(run)) is None:
        if run_before(run) is None:  # a retrained run is followed above
            with below:
                follow(jobs.evaluation(run), message("Preparing {name} (once)", name=run.name))
        return ""
    own, pixels = (record.score(source, "knn") for source in ("h", "raw"))
    if own is None or pixels is None or own.value is None or pixels.value is None:
        return ""
    values = {"own": format.figure_of(own), "pixels": format.figure_of(pixels), "n": f"{record.n_test:,}"}
    is_weak = (own.interval[0] if own.interval else own.value) <= pixels.value < GOOD
    if not is_weak:
        text = _("Encoder behind this list: kNN accuracy {own} on {n} test images, raw pixels {pixels}.")
        below.caption(text.format(**values))
        return ""
    text = _(
        "This encoder is not significantly better than raw pixels: on {n} test images, kNN accuracy is {own}, and "
        "{pixels} for raw pixels. Train longer, use a pretrained encoder, or use the lists that also compare pixels: "
        "near-duplicates and outliers."
    )
    below.warning(text.format(**values))
    address = {"method": str(run.config.get("method")), **path_input.address_of(str(run.config.get("dataset")))}
    line, epochs = below.container(horizontal=True), LONGER * int(run.config.get("epochs") or 20)
    label, longer = _("Train for {epochs} epochs").format(epochs=f"{epochs:,}"), {**address, "epochs": str(epochs)}
    line.page_link("pages/train.py", label=label, icon=":material/play_circle:", query_params=longer)
    label, other = _("Use a pretrained encoder"), {**address, "encoder": "other"}
    line.page_link("pages/train.py", label=label, icon=":material/upload:", query_params=other)
    return _("Many suspects may be false alarms: this encoder is not significantly better than raw pixels.")


def outcome() -> None:
    """Draw the comparison of a retrained run with the previous run."""
    run = state.chosen_run()
    if run is not None and (before := run_before(run)) is not None:
        with st.container(border=True):
            result(before, run)
            if cache.scores(run) is None:
                follow(jobs.evaluation(run), message("Preparing {name} (once)", name=run.name))
            label = _("Back to {name}").format(name=before.name)
            st.page_link(
                "pages/samples.py", label=label, icon=":material/arrow_back:", query_params={"run": before.name}
            )


def result(before: Run, run: Run) -> None:
    """Draw a retrained run: its progress, or its scores compared with the run before."""
    if queue.progress_of(run.name):
        follow_training(run.name)
        return
    a, b = st.columns([5, 1], vertical_alignment="center")
    text = f"**{format.plain(run.name)}**: {format.plain(run.status()['status'])}"
    old, new = cache.scores(before), cache.scores(run)
    if old and new:
        text += f" · {format.plain(change_of(old.score('h', 'knn'), new.score('h', 'knn')))}"
    a.markdown(text)
    if run.weights.exists() and run != state.chosen_run():
        b.page_link("pages/samples.py", label=_("Open"), query_params={"run": run.name})
    key = f"compare-{cache.digest(run.name)}"
    if run.weights.exists() and b.button(_("Compare"), key=key, width="stretch"):
        st.switch_page("pages/compare.py", query_params={"runs": f"{before.name},{run.name}"})


def change_of(old: Score | None, new: Score | None) -> str:
    """Describe two accuracies and their difference with a 95 % interval: paired if both have the same number of images,
    else from the interval of each."""
    text = _("kNN accuracy {before} before, {after} now").format(
        before=format.figure_of(old), after=format.figure_of(new)
    )
    if old is None or new is None or old.value is None or new.value is None:
        return text
    before, after = old.per_sample, new.per_sample
    if before is not None and after is not None and len(before) == len(after):
        change = after - before
        low, high = paired_interval(change[np.isfinite(change)])
    elif old.interval and new.interval:
        half = float(np.hypot(*(np.ptp(ends) / 2 for ends in (old.interval, new.interval))))
        low, high = new.value - old.value - half, new.value - old.value + half
    else:
        return text
    ends = {"low": f"{100 * low:+.1f}", "high": f"{100 * high:+.1f}"}
    points = f"{100 * (new.value - old.value):+.1f}"
    return _("{text}: {points} points (95 % CI {low} to {high})").format(text=text, points=points, **ends)
