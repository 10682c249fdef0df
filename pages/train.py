"""Train: choose a method and data, press Start, watch the loss fall and the map form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.data import datasets as data_sets
from contrastive_core.data import torchvision_sets
from contrastive_core.errors import Damaged, Locked
from contrastive_core.jobs import process, queue, training
from contrastive_core.runs import Run
from contrastive_lab import cache, format, state
from contrastive_lab.components.scatter import ScatterData, draw_scatter
from contrastive_lab.train.augmentations import preview

OWN = "folder of images…"


def page() -> None:
    st.title("Train")
    left, right = st.columns([2, 3], gap="large")
    with left:
        form()
    with right:
        if asked := st.session_state.get("preview"):
            preview(asked)
        watch()


def form() -> None:
    catalog = cache.catalog()
    methods = catalog["methods"]
    names = sorted(methods, key=lambda m: (methods[m]["year"], m))
    preset = st.query_params.get("method", "simclr")
    method = st.selectbox(
        "Method", names, names.index(preset) if preset in names else 0,
        format_func=lambda m: methods[m]["title"],
    )  # fmt: skip
    dataset = st.selectbox("Data", ["digits", "shapes", *torchvision_sets.SIZES, OWN])
    folder, download = "", False
    if dataset == OWN:
        folder = st.text_input("Folder (one folder per class, or images only)", placeholder="/path")
    elif dataset in torchvision_sets.SIZES and not is_here(dataset):
        size = f"{torchvision_sets.SIZES[dataset]:,} MB"
        download = st.checkbox(f"Fetch {dataset}: {size}", help="It is not on this machine yet.")
    with st.form("train"):
        epochs = st.number_input("Epochs", 1, 10_000, 20)
        seed = st.number_input("Seed", 0, 2**31 - 1, 0)
        name = st.text_input("Name", placeholder="made from the settings")
        with st.expander("Advanced"):
            loss = st.selectbox("Loss", ["the method's own", *catalog["losses"]])
            encoder = st.selectbox("Encoder", catalog["encoders"])
            many = gpus()
            beside = st.checkbox("Start at once, beside what is training")
            extra = st.text_area(
                "Further settings, one a line",
                placeholder="loss.temperature=0.2\nmethod.momentum=0.99\nrecipe.crop_low=0.2",
                help="Any setting of the command line's --set.",
            )
        buttons = st.container(horizontal=True)
        data = f"folder:{folder.strip()}" if dataset == OWN else dataset
        go = buttons.form_submit_button("Start", type="primary", icon=":material/play_arrow:")
        if buttons.form_submit_button("See its views", icon=":material/visibility:"):
            st.session_state["preview"] = asked_views(method, data, extra)
        if go and dataset == OWN and not folder.strip():
            st.error("Say which folder: the path of one with images goes into the field above.")
        elif go:
            st.session_state.pop("preview", None)
            arguments = ["--method", method, "--dataset", data, "--epochs", str(int(epochs))]
            arguments += ["--seed", str(int(seed)), "--encoder", encoder]
            arguments += ["--loss", loss] if loss != "the method's own" else []
            arguments += ["--download"] if download else []
            arguments += ["--processes", str(many)] if many > 1 else []
            for line in extra.splitlines():
                arguments += ["--set", line.strip()] if line.strip() else []
            start(name.strip() or free_name(method, data, int(seed)), arguments, beside)


def gpus() -> int:
    """How many GPUs to train on, asked where there are several."""
    if (count := training.gpus()) < 2:
        return 1
    return int(
        st.number_input("GPUs", 1, count, 1, help="The batch is shared out: loss and weights stay.")
    )


def asked_views(method: str, data: str, extra: str) -> dict[str, Any]:
    """The question for views; a folder that changed is another question."""
    settings = [line.strip() for line in extra.splitlines() if line.strip()]
    values: dict[str, Any] = {"method": method, "dataset": data, "set": settings}
    folder = Path(data.removeprefix("folder:"))
    if data.startswith("folder:") and folder.is_dir():
        values["changed"] = folder.stat().st_mtime_ns
    return values


def is_here(dataset: str) -> bool:
    """Whether a data set need not be fetched: its files are here, or its images already decoded."""
    return torchvision_sets.is_there(dataset, None) or data_sets.is_made(dataset, "train")


def free_name(method: str, data: str, seed: int) -> str:
    stem = f"{method}-{'folder' if data.startswith('folder:') else data}-s{seed}"
    taken = {run.name for run in state.all_runs()} | set(training.starting())
    taken |= {job.name for job in queue.queue()}
    number = 1
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return name


def start(name: str, arguments: list[str], beside: bool) -> None:
    try:
        (queue.start_now if beside else queue.enqueue)(name, arguments)
    except (ValueError, FileExistsError, Locked) as error:
        st.error(format.plain(error))
        return
    st.session_state["watched"] = name
    st.query_params["watch"] = name


def watch() -> None:
    """The run that was started last, or any that is at work."""
    busy = [run.name for run in training.working()]
    queued = [job.name for job in queue.queue()]
    name = st.session_state.get("watched") or st.query_params.get("watch")
    if name is None:
        name = busy[0] if busy else None
    if name is None:
        st.info("Nothing is training. Choose a method and data on the left and press Start.")
        st.caption("digits: 1,797 real images, about 20 s. shapes: 6,000 made images, minutes.")
        return
    options = list(dict.fromkeys([name, *busy, *queued]))
    if len(options) > 1:
        name = st.segmented_control("Watch", options, default=name) or name
    st.query_params["watch"] = name
    live(name)


@st.fragment(run_every=1.0)
def live(name: str) -> None:
    queue.go_on()
    try:
        run = runs.load(name)
    except (ValueError, OSError) as error:
        if name in [job.name for job in queue.queue()]:
            in_line(name)
        elif problem := training.failure(name):
            st.error(format.plain(problem))
        else:
            st.progress(
                0.0, f"{name}: starting" if name in training.starting() else format.plain(error)
            )
        return
    progress(run)
    lines = run.metrics()
    curves(run, lines)
    forming(run)
    with st.expander("Log"):
        st.code(process.log_of(name, 30) or "nothing yet", language=None)


def in_line(name: str) -> None:
    """A run that waits: behind which others, and a way out."""
    before = [job.name for job in queue.queue()]
    ahead = before[: before.index(name)] if name in before else []
    at_work = ", ".join(run.name for run in training.working()) or "the run before it"
    st.info(f"{name} waits for {at_work}" + (f", then {', '.join(ahead)}." if ahead else "."))
    if st.button("Take it out of the queue", key=f"leave-{name}"):
        queue.remove(name)
        st.rerun()


def progress(run: Run) -> None:
    status = run.status()
    state, epochs = status["status"], status.get("epochs") or run.config.get("epochs", 1)
    done = min(1.0, status.get("epoch", 0) / max(1, epochs))
    st.subheader(run.name)
    st.progress(done, f"{state}: epoch {status.get('epoch', 0)} of {epochs}")
    a, b, c = st.columns(3)
    if state == "running" and a.button("Stop", icon=":material/stop:", key="stop"):
        training.stop(run.name)
    if run.name in [job.name for job in queue.queue()]:
        in_line(run.name)
    elif state in ("stopped", "failed") and not run.shipped:
        (st.error if state == "failed" else st.info)(format.plain(status.get("reason") or state))
        if b.button("Resume", icon=":material/play_arrow:", type="primary", key="resume"):
            try:
                queue.resume(run.name)
            except (ValueError, Locked) as error:
                st.error(format.plain(error))
    if state == "done" and c.button("Explore it", icon=":material/scatter_plot:", key="explore"):
        st.session_state["run"] = run.name
        st.switch_page("pages/explore.py")


def curves(run: Run, lines: list[dict[str, Any]]) -> None:
    steps = [x for x in lines if "images_per_s" in x]
    epochs = [x for x in lines if "images_per_s" not in x]
    if not steps:
        st.caption("The first step is being taken…")
        return
    a, b, c = st.columns(3)
    a.metric("Loss", f"{(epochs or steps)[-1]['loss']:.3f}")
    knn = epochs[-1].get("knn") if epochs else None
    b.metric("kNN within train", f"{100 * knn:.1f} %" if knn is not None else "–",
             help="A fixed sample of training images, each voted on by the others.")  # fmt: skip
    c.metric("Images/s", f"{np.median([x['images_per_s'] for x in steps[-20:]]):,.0f}")
    thin = steps[:: max(1, len(steps) // 300)]
    left, right = st.columns(2)
    with left:
        loss = {"loss": ([x["step"] for x in thin], [x["loss"] for x in thin])}
        st.plotly_chart(format.curves(loss, "step", "loss"), key=f"loss-{run.name}")
    with right:
        known = [x for x in epochs if "knn" in x]
        shown = {"kNN": ([x["epoch"] for x in known], [100 * x["knn"] for x in known])}
        st.plotly_chart(format.curves(shown, "epoch", "kNN, %"), key=f"knn-{run.name}")


def forming(run: Run) -> None:
    """The map of the fixed sample after the last epoch, or any earlier one."""
    epochs = run.snapshots()
    if not epochs:
        return
    done = run.status()["status"] != "running"
    epoch = epochs[-1]
    if done and len(epochs) > 1:
        epoch = st.select_slider("Map after epoch", epochs, value=epochs[-1])
    try:
        found = run.snapshot(epoch)
    except (Damaged, OSError) as error:
        st.warning(format.plain(error))
        return
    xy = cache.quick_pca(found["z"])
    classes = run.manifest.get("classes") or []
    data = ScatterData(
        xy, [str(i) for i in found["index"]], cache.digest(run.name, epoch), found["labels"],
        classes, title=f"PCA of z after epoch {epoch}",
        note=f"PCA of z after epoch {epoch}, {len(xy)} training images",
    )  # fmt: skip
    draw_scatter(data, height=360, key="forming")


state.run(page)
