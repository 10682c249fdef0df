"""Details of one run: its status, actions, reproduction, export and notes; its deletion and the bin; damaged runs; and
the difference of two runs."""

import contextlib
import html
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from contrastive_core.advice.plan import adviser_of, load_plan, trial_score
from contrastive_core.base import json_files
from contrastive_core.base.memory import MAX_NPZ
from contrastive_core.base.storage import read_regular
from contrastive_core.engine import client, process, queue, run_folders, training
from contrastive_core.lab import lab_view
from contrastive_core.runs.changes import schedule_of
from contrastive_core.runs.records import Status
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import from_dict, settings_of, with_settings
from contrastive_lab import cache, format, locale, query_params, recordings, score_strip, stage, state
from contrastive_lab.locale import _, ngettext
from contrastive_lab.recordings import has_rows
from contrastive_lab.runs import table
from contrastive_lab.setting_names import changes_in_words, flat, shown_name
from contrastive_lab.train.watch import branch_form, watch_next

BINNED = "binned"  # the last deletion
USE = """\
import torch

from contrastive_core import runs
from contrastive_core.compare.embed import load_model

encoder = load_model(runs.load("{name}"), device="cpu")
with torch.no_grad():
    h = encoder.features(images)  # images (n, channels, height, width) with values from 0 to 1
"""
CIRCUMSTANCES = ("versions", "device", "processes", "git_commit", "data_fingerprint")


def details(run: Run) -> None:
    """Draw everything about one run, with the next step at its end."""
    status = training.status_of(run)
    _heading(run, status)
    if (picture := table.map_of(run, 3)) is not None:
        alt = html.escape(_("Map of its test images"))
        st.html(f'<img class="run-map" src="{picture}" alt="{alt}">')
    if run.is_recording:
        recordings.loop_check(run)
        st.caption(locale.text(recordings.LACKS))
        recordings.draw_figures(run)
    else:
        score_strip.show_accuracies(run)
    if has_rows(run):
        newest = _("the newest rows") if run.is_recording else _("the newest weights")
        sources = {"": newest, **lab_view.epochs_of(run), **lab_view.snapshots_of(run)}
        label, key = _("See its loss with"), f"run-rows-{cache.digest(run.name)}"
        with st.container(horizontal=True, vertical_alignment="bottom", wrap=False):
            rows = query_params.one_of(st.selectbox, label, sources, name="", key=key)
            link, icon = {"run": run.name} | ({"rows": rows} if rows else {}), ":material/tune:"
            st.page_link("pages/loss_lab.py", label=_("Loss Lab"), icon=icon, query_params=link, width="content")
    if not run.is_recording:
        again(run)
        clone(run)
        if not run.shipped and "imported" not in run.manifest and (name := branch_form(run)):
            _watch(name)
    if not run.shipped:
        annotate(run)
    _files(run)
    act(run, str(status["status"]))


def _files(run: Run) -> None:
    """Draw the weights with Python code that uses them, the log, the settings and origin, and a check of all files."""
    if not run.is_recording:
        with st.expander(_("Use it elsewhere")):
            if run.weights.exists():
                label, name = _("Weights (safetensors)"), f"{run.name}.safetensors"
                st.download_button(label, lambda: read_regular(run.weights, MAX_NPZ), name, on_click="ignore")
                st.code(USE.format(name=run.name), language="python")
            else:
                st.caption(_("It has no weights yet."))
        with st.expander(_("Log")):
            log = process.log_of(run.name, 100)
            st.code(log, language=None) if log else st.caption(_("It has no log."))
    with st.expander(_("Settings")):
        st.json(run.config)
    with st.expander(_("Versions, data, seed, files")):
        st.json({k: v for k, v in run.manifest.items() if k != "config"})
        st.text(_("Its folder: {path}").format(path=run.path))
        if st.button(_("Check its files"), icon=":material/fact_check:"):
            with stage.errors_shown(), st.spinner(_("Reading every file…")):
                damaged = client.damage_of(run)
                for line in damaged:
                    st.error(format.plain(line))
                if not damaged:
                    st.success(_("No file has changed since it was written."))
                if any(line.startswith("state/") for line in damaged):
                    st.info(_("Resume continues from the newest intact state."))


def _heading(run: Run, status: Status) -> None:
    """Draw name and title, origin, and errors of the run."""
    st.header(run.name)
    config, tau = run.config, table.temperature_of(run)
    about = [cache.method_title(str(config.get("method") or "")), cache.loss_title(str(config.get("loss") or ""))]
    about += [] if tau is None else [f"τ {tau}"]
    about += [format.epochs(config["epochs"])] if config.get("epochs") else []
    st.caption(format.plain(" · ".join(filter(None, dict.fromkeys(about)))))
    if title := run.meta().get("title"):
        st.text(str(title))
    if changed := run.changes():
        st.caption(format.plain(_("Changed while it trained: {changes}").format(changes=changes_in_words(changed))))
    share, adviser, plan = trial_score(run.name), adviser_of(run.name), None
    with contextlib.suppress(ValueError):  # of a damaged plan the Train page tells
        plan = load_plan(adviser) if adviser else None
    if plan is not None and share is not None:
        text = _("The adviser {adviser} scored it: kNN {value} % on {held_out} of {all} training images, held out.")
        counts = {"held_out": f"{plan.held_out:,}", "all": f"{plan.train + plan.held_out:,}"}
        st.caption(format.plain(text.format(adviser=plan.name, value=f"{100 * share:.1f}", **counts)))
    if reason := status.get("reason"):
        (st.error if status["status"] == "failed" else st.info)(format.plain(format.in_form(reason)))
    if problem := training.failure(run.name):
        st.error(format.plain(_("It could not continue: {problem}").format(problem=problem)))
    if note := status.get("note"):
        (st.warning if status.get("is_warned") else st.info)(format.plain(format.in_form(note)))
    for why in run_folders.damaged_records(run):
        if why != reason:
            st.warning(format.plain(_("{why}. It is unchanged.").format(why=why)))


def act(run: Run, status: str) -> None:
    """Draw the actions of a run; the next step is the last one and always visible."""
    can_resume = status in ("stopped", "failed") and not run.shipped and "imported" not in run.manifest
    with st.container(key="runs-next", horizontal=True, gap="small"):
        is_locked, icon = status in ("running", "starting"), ":material/scatter_plot:"
        if not run.shipped:
            st.button(_("Delete"), icon=":material/delete:", disabled=is_locked, on_click=remove, args=([run],))
        if run.name in [job.name for job in queue.queue()]:
            st.button(_("Resume"), disabled=True, help=_("It is already queued"))
        elif run.is_recording:
            if status == "running":
                st.caption(_("The recording stops when its training loop stops."))
        elif status in ("running", "starting") and st.button(_("Stop"), icon=":material/stop:"):
            training.stop(run.name)
            st.toast(_("The run saves its state and stops."))
        elif can_resume and st.button(_("Resume"), icon=":material/play_arrow:"):
            with stage.errors_shown():
                queue.resume(run.name)
                _watch(run.name)
        if is_locked and not run.is_recording:
            if st.button(_("Watch it train"), icon=":material/play_circle:", type="primary", width="stretch"):
                _watch(run.name)
        elif st.button(_("Explore"), icon=icon, type="primary", width="stretch", disabled=not has_rows(run)):
            state.choose_run(run.name)
            st.switch_page("pages/explore.py")


def again(run: Run) -> None:
    """Draw the exact command line."""
    if imported := run.manifest.get("imported"):
        random = _("Its weights are random: it was never trained.")
        st.caption(random if imported.get("random") else _("The run was imported, not trained here."))
        return
    with st.expander(_("Command line")):
        st.caption(_("Repeats this run, with every setting stated explicitly."))
        st.code(training.command_of(run), language="bash", wrap_lines=True)
        if changed := run.changes():
            st.caption(_("To make the same changes at the same steps, add --schedule with the path of this file:"))
            data = json_files.json_bytes(schedule_of(changed))
            st.download_button(_("Changes as JSON"), data, f"{run.name}-changes.json", on_click="ignore")


def clone(run: Run) -> None:
    """Draw a form to train the run again with changes, under another name."""
    with st.expander(_("Clone with changes")), st.form(f"clone-{run.name}"):
        a, b, c = st.columns(3)
        key = f"clone-name-{cache.digest(run.name)}"
        name = a.text_input(_("Name of the clone"), queue.free_name(run.name), key=key)
        epochs = b.number_input(_("Epochs"), 1, 100_000, max(1, min(100_000, int(run.config.get("epochs") or 20))))
        seed = c.number_input(_("Seed"), 0, 2**31 - 1, max(0, min(2**31 - 1, int(run.config.get("seed") or 0))))
        text = st.text_area(
            _("Other changes, one per line"),
            placeholder="loss.temperature=0.2\nlr=0.001\nrecipe.crop_low=0.2",
            help=_("Any setting of the command line's --set; all others stay as they are."),
        )
        pressed = st.form_submit_button(_("Train the clone"), icon=":material/content_copy:")
        with stage.errors_kept(f"clone-{run.name}", (name, epochs, seed, text), pressed):
            if pressed:
                lines = [line.strip() for line in text.splitlines() if line.strip()]
                config = with_settings(from_dict(run.config), [f"epochs={epochs}", f"seed={seed}", *lines])
                queue.enqueue(name.strip(), settings_of(config.to_dict()))
                _watch(name.strip())


def _watch(name: str) -> None:
    watch_next(name)
    st.switch_page("pages/train.py")


def annotate(run: Run) -> None:
    """Draw the fields for name, title, tags and note."""
    meta = run.meta()
    with st.expander(_("Rename, tag, note")), st.form(f"meta-{run.name}"):
        a, b = st.columns(2)
        name = a.text_input(_("Name"), run.name).strip()
        title = b.text_input(_("Title"), str(meta.get("title") or ""))
        tags = st.text_input(_("Tags"), ", ".join(map(str, meta.get("tags") or [])), help=_("separated by commas"))
        note = st.text_area(_("Note"), str(meta.get("note") or ""))
        pressed, tag_list = st.form_submit_button(_("Save")), [t.strip() for t in tags.split(",") if t.strip()]
        with stage.errors_kept(f"meta-{run.name}", (name, title, tags, note), pressed):
            if pressed:
                run.set_meta(title=title.strip(), tags=tag_list, note=note)
                if name != run.name:
                    new = run_folders.rename(run.name, name).name  # it stays selected
                    if st.session_state.get("run") == run.name:
                        st.session_state["run"] = new
                    shown = st.session_state.get(table.SHOWN, [])
                    st.session_state[table.SHOWN] = [new if one == run.name else one for one in shown]
                st.rerun()


# --- deletion and the bin ---


def remove(chosen: Sequence[Run]) -> None:
    """Move runs to the bin and offer an undo. Called as a button's callback, so no rerun can skip it."""
    st.session_state[BINNED] = gone = list[Path]()
    for run in chosen:
        with stage.errors_told():
            gone.append(run_folders.delete(run.name))


def undo() -> None:
    """Draw a button that reverts the last deletion."""
    if gone := st.session_state.get(BINNED):
        text = _("Deleted: {gone}. You can restore it from the bin below.")
        st.info(text.format(gone=", ".join(map(_name, gone))))
        st.button(_("Undo"), on_click=_restore, args=gone)


def bin_of() -> None:
    """Draw deleted runs with restore buttons; the bin is emptied only on request."""
    if not (gone := run_folders.binned()):
        return
    with st.expander(_("Bin ({gone})").format(gone=len(gone))):
        for path in gone[:50]:
            line = st.container(horizontal=True, vertical_alignment="center")
            line.text(_name(path), width="stretch")
            line.button(_("Restore"), key=f"restore-{path.name}", on_click=_restore, args=[path])

        def empty() -> None:
            st.session_state[BINNED] = []
            run_folders.empty_bin()

        sure = st.checkbox(_("Yes, delete them permanently. This cannot be undone"))
        st.button(_("Empty the bin"), disabled=not sure, on_click=empty)


def _name(binned: Path) -> str:
    return binned.name.rsplit("-", 1)[0]


def _restore(*some: Path) -> None:
    st.session_state[BINNED] = []
    for path in some:
        with stage.errors_told():
            run_folders.restore(path)


# --- two runs ---


def difference(pair: list[Run]) -> None:
    """Draw the settings and circumstances in which two runs differ."""
    told = (
        {"changes": changes_in_words(r.changes()) or None, **{k: r.manifest.get(k) for k in CIRCUMSTANCES}}
        for r in pair
    )
    one, two = (flat({**r.config, **more}) for r, more in zip(pair, told, strict=True))
    every = sorted(one.keys() | two.keys())
    differing = [k for k in every if one.get(k) != two.get(k)]
    st.header(_("What differs"))
    if not differing:
        same = _("These two runs have the same settings, data, versions and seed.")
        st.info(_("Both recordings state the same settings.") if any(run.is_recording for run in pair) else same)
        return
    text = ngettext("{rows} differs; {same} are the same.", "{rows} differ; {same} are the same.", len(differing))
    st.caption(text.format(rows=len(differing), same=len(every) - len(differing)))
    st.caption(format.plain(" → ".join(run.name for run in pair)))
    lines = []
    for key in differing:
        values = [one.get(key), two.get(key)]
        if key == "loss":
            values = [value and cache.loss_title(str(value)) for value in values]
        texts = ["–" if value is None else format.plain(value) for value in values]
        lines.append(f"- **{format.plain(shown_name(key))}**: {' → '.join(texts)}")
    st.markdown("\n".join(lines))
