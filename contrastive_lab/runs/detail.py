"""One run: how it stands, what can be done with it, how it is made again, used elsewhere, noted."""

import contextlib
from typing import Any

import streamlit as st

from contrastive_core.engine import process, queue, run_folders, training
from contrastive_core.engine.run_tools import export_weights, run_verify
from contrastive_core.records.advice import adviser_of, load_plan
from contrastive_core.records.advice_answer import trial_scores
from contrastive_core.records.run import Run
from contrastive_core.records.run_files import Status
from contrastive_core.records.train_config import from_dict, settings_of, with_settings
from contrastive_lab import cache, format, guard, locale, number_inputs, recordings, state
from contrastive_lab.locale import _, ngettext
from contrastive_lab.recordings import has_rows
from contrastive_lab.runs import table
from contrastive_lab.setting_names import flat, shown_name
from contrastive_lab.tables import draw_table
from contrastive_lab.train.watch import watch_next

CIRCUMSTANCES = ("versions", "device", "processes", "git_commit", "data_fingerprint")


def details(run: Run) -> None:
    """Everything about one run."""
    status = training.status_of(run)
    _heading(run, status)
    act(run, str(status["status"]))
    if run.is_recording:
        st.caption(locale.text(recordings.LACKS))
        recordings.figures(run)
    else:
        again(run)
    left, right = st.columns(2)
    with left, st.expander(_("Settings")):
        st.json(run.config)
    with right, st.expander(_("Versions, data, seed, files")):
        st.json({k: v for k, v in run.manifest.items() if k != "config"})
        st.text(_("Its folder: {path}").format(path=run.path))
    if not run.is_recording:
        clone(run)
    if not run.shipped:
        annotate(run)
    if not run.is_recording:
        elsewhere(run)
    check(run)
    if not run.is_recording:
        with st.expander(_("Log")):
            log = process.log_of(run.name, 100)
            st.code(log, language=None) if log else st.caption(_("It has no log."))


def _heading(run: Run, status: Status) -> None:
    """Name and title, and what is wrong with the run."""
    st.header(run.name)
    if title := run.meta().get("title"):
        st.text(str(title))
    if text := of_adviser(run.name):
        st.caption(format.plain(text))
    if reason := status.get("reason"):
        (st.error if status["status"] == "failed" else st.info)(format.plain(format.in_form(reason)))
    if problem := training.failure(run.name):
        st.error(format.plain(_("It could not continue: {problem}").format(problem=problem)))
    if note := status.get("note"):
        (st.warning if status.get("is_warned") else st.info)(format.plain(format.in_form(note)))
    for why in run_verify.damaged_records(run):
        if why != reason:
            st.warning(format.plain(_("{why}. It is unchanged.").format(why=why)))


def of_adviser(name: str) -> str:
    """What the adviser scored for a try of its, and on which images; "" of another run."""
    scores, adviser, plan = trial_scores(name), adviser_of(name), None
    with contextlib.suppress(ValueError):  # of a damaged plan the Train page tells
        plan = load_plan(adviser) if adviser else None
    if plan is None or not scores:
        return ""
    text = _("The adviser {adviser} scored it: LiDAR {value} on {held_out} of {all} training images, held out.")
    values = {"adviser": plan.name, "value": f"{scores.get('lidar', 0):.1f}"}
    if "knn" in scores:
        text = _("The adviser {adviser} scored it: kNN {value} % on {held_out} of {all} training images, held out.")
        values["value"] = f"{100 * scores['knn']:.1f}"
    return text.format(**values, held_out=f"{plan.held_out:,}", all=f"{plan.train + plan.held_out:,}")


def act(run: Run, status: str) -> None:
    line = st.container(horizontal=True, vertical_alignment="center")
    can_resume = status in ("stopped", "failed") and not run.shipped and "imported" not in run.manifest
    if line.button(_("Explore"), icon=":material/scatter_plot:", disabled=not has_rows(run)):
        state.choose_run(run.name)
        st.switch_page("pages/explore.py")
    if run.name in [job.name for job in queue.queue()]:
        line.button(_("Resume"), disabled=True, help=_("It is already queued"))
    elif run.is_recording:
        if status == "running":
            line.caption(_("It stops when its training loop stops."))
    elif status in ("running", "starting") and line.button(_("Stop"), icon=":material/stop:"):
        training.stop(run.name)
        st.toast(_("It saves its state and stops."))
    elif can_resume and line.button(_("Resume"), icon=":material/play_arrow:", type="primary"):
        with guard.errors_shown():
            queue.resume(run.name)
            _watch(run.name)
    locked = run.shipped or status in ("running", "starting")
    if line.button(_("Delete"), icon=":material/delete:", disabled=locked):
        table.remove([run])


def again(run: Run) -> None:
    """The exact command line, here, with many processes and on many machines."""
    if imported := run.manifest.get("imported"):
        random = _("Its weights are random: it was never trained.")
        st.caption(random if imported.get("random") else _("It was imported, not trained here."))
        return
    st.markdown(_("**The command line that makes this run again**, every setting spelled out"))
    st.code(training.command_of(run), language="bash", wrap_lines=True)
    with st.expander(_("On several GPUs or machines (torchrun)")):
        a, b = st.columns(2)
        label, key = _("Processes on each machine"), "run-processes"
        processes = number_inputs.number(a.number_input, label, 1, 64, name="", default=4, key=key)
        machines = number_inputs.number(b.number_input, _("Machines"), 1, 256, name="", default=1, key="run-machines")
        many = training.command_of(run, max(processes, 2) if machines == 1 else processes, machines)
        st.code(many, language="bash", wrap_lines=True)
        on_each = _(
            "Run this on every machine. RANK is 0 on the first and counts up; FIRST is the first "
            "machine's address. The batch size is that of all processes together."
        )
        st.caption(on_each if machines > 1 else _("The batch size is that of all processes together."))


def clone(run: Run) -> None:
    """Train it again under another name, with changes."""
    with st.expander(_("Clone with changes")), st.form(f"clone-{run.name}"):
        a, b, c = st.columns(3)
        key = f"clone-name-{cache.digest(run.name)}"
        name = a.text_input(_("Name of the clone"), queue.free_name(run.name), key=key)
        before = (int(run.config.get("epochs") or 20), int(run.config.get("seed") or 0))
        epochs, of_epochs = number_inputs.form_number(b.number_input, _("Epochs"), 1, 100_000, before[0])
        seed, of_seed = number_inputs.form_number(c.number_input, _("Seed"), 0, 2**31 - 1, before[1])
        text = st.text_area(
            _("Other changes, one a line"),
            placeholder="loss.temperature=0.2\nlr=0.001\nrecipe.crop_low=0.2",
            help=_("Any setting of the command line's --set; all others stay as they are."),
        )
        pressed = st.form_submit_button(_("Train the clone"), icon=":material/content_copy:")
        with guard.errors_kept(f"clone-{run.name}", (name, epochs, seed, text), pressed):
            if pressed and not of_epochs + of_seed:
                lines = [line.strip() for line in text.splitlines() if line.strip()]
                config = with_settings(from_dict(run.config), [f"epochs={epochs}", f"seed={seed}", *lines])
                queue.enqueue(name.strip(), settings_of(config.to_dict()))
                _watch(name.strip())


def _watch(name: str) -> None:
    watch_next(name)
    st.switch_page("pages/train.py")


def annotate(run: Run) -> None:
    """Name, title, tags, note."""
    meta = run.meta()
    with st.expander(_("Rename, tag, note")), st.form(f"meta-{run.name}"):
        a, b = st.columns(2)
        name = a.text_input(_("Name"), run.name).strip()
        title = b.text_input(_("Title"), str(meta.get("title") or ""))
        tags = st.text_input(_("Tags"), ", ".join(map(str, meta.get("tags") or [])), help=_("separated by commas"))
        note = st.text_area(_("Note"), str(meta.get("note") or ""))
        pressed, tag_list = st.form_submit_button(_("Save")), [t.strip() for t in tags.split(",") if t.strip()]
        with guard.errors_kept(f"meta-{run.name}", (name, title, tags, note), pressed):
            if pressed:
                run.set_meta(title=title.strip(), tags=tag_list, note=note)
                if name != run.name:
                    table.renamed(run.name, run_folders.rename(run.name, name).name)
                st.rerun()


def elsewhere(run: Run) -> None:
    """Weights as safetensors, and Python that loads them without this project."""
    with st.expander(_("Use it elsewhere")):
        if not run.weights.exists():
            st.caption(_("It has no weights yet."))
            return
        with guard.on_its_own(run.name):
            text = export_weights.snippet(run, export_weights.shapes_of(run))
            st.download_button(
                _("Weights (safetensors)"),
                lambda: run.weights.read_bytes(),
                f"{run.name}.safetensors",
                on_click="ignore",
            )
            st.code(text, language="python")


def check(run: Run) -> None:
    """Is every file what was written? What is damaged is named, and what is left to go on from."""
    if not st.button(_("Check its files"), icon=":material/fact_check:"):
        return
    with guard.errors_shown(), st.spinner(_("Reading every file…")):
        damaged = training.damage_of(run.name)
        for line in damaged:
            st.error(format.plain(line))
        if not damaged:
            st.success(_("Every file is what was written."))
        if any(line.startswith("state/") for line in damaged):
            st.info(_("Resume continues from the newest intact state."))


# --- two runs ----------------------------------------------------------------------------------


def compare(chosen: list[Run]) -> None:
    """On to Compare, with just these."""
    label, names = _("Compare these {chosen}").format(chosen=len(chosen)), ",".join(run.name for run in chosen)
    if st.button(label, icon=":material/compare_arrows:", key="compare-chosen"):
        st.switch_page("pages/compare.py", query_params={"runs": names})


def difference(pair: list[Run]) -> None:
    """Settings and circumstances that two runs do not share."""
    one, two = (flat({**r.config, **{k: r.manifest.get(k) for k in CIRCUMSTANCES}}) for r in pair)
    rows = [
        {"setting": shown_name(k), **{r.name: _as_text(k, c.get(k)) for r, c in zip(pair, (one, two), strict=True)}}
        for k in sorted(one.keys() | two.keys())
        if one.get(k) != two.get(k)
    ]
    st.header(_("What differs"))
    if not rows:
        st.info(_("These two runs have the same settings, data, versions and seed."))
        return
    same = len(one.keys() | two.keys()) - len(rows)
    text = ngettext("{rows} differs; {same} are the same.", "{rows} differ; {same} are the same.", len(rows))
    st.caption(text.format(rows=len(rows), same=same))
    draw_table(rows, hide_index=True)


def _as_text(key: str, value: Any) -> str:
    if key == "loss" and value is not None:
        return cache.loss_title(str(value))
    return "–" if value is None else str(value)
