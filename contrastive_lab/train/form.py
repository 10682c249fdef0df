"""What to train: method, data and settings, then Start; or first a look at its views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from contrastive_core.data import datasets, torchvision_sets
from contrastive_core.data.folder_preview import changed
from contrastive_core.errors import Locked
from contrastive_core.jobs import queue, training
from contrastive_lab import format, query_params
from contrastive_lab.path_input import path_input
from contrastive_lab.progress import catalog_or_wait
from contrastive_lab.train.watch import watch_next

__all__ = ["form"]

FOLDER = "folder of images…"
DEFAULT_LOSS = "the method's own"


@dataclass(frozen=True)
class Data:
    """`name` as the command line takes it; "" while a folder is chosen and none is named."""

    name: str
    download: bool = False


def form() -> Data:
    """Five fields, the rest under Advanced; returns the data that are chosen."""
    first = st.container()
    data = choose_data()  # drawn at once, with what it holds
    if catalog := catalog_or_wait():
        with first:
            method = choose_method(catalog["methods"])
        settings(catalog, method, data)
    return data


def choose_method(methods: dict[str, Any]) -> str:
    """One of those that are registered."""
    return query_params.one_of(
        st.selectbox, "Method", methods, name="method", default="simclr",
        format_func=lambda m: methods[m]["title"],
    )  # fmt: skip


def settings(catalog: dict[str, Any], method: str, data: Data) -> None:
    """How to train it; Start, or a look at its views."""
    with st.form("train"):
        epochs = st.number_input("Epochs", 1, 10_000, 20)
        seed = st.number_input("Seed", 0, 2**31 - 1, 0)
        name = st.text_input("Name", placeholder="made from the settings")
        with st.expander("Advanced"):
            arguments = advanced(catalog)
            beside = st.checkbox("Start at once, beside what is training")
            extra = st.text_area(
                "Further settings, one a line",
                placeholder="loss.temperature=0.2\nmethod.momentum=0.99\nrecipe.crop_low=0.2",
                help="Any setting of the command line's --set.",
            )
        buttons = st.container(horizontal=True)
        go = buttons.form_submit_button("Start", type="primary", icon=":material/play_arrow:")
        look = buttons.form_submit_button("See its views", icon=":material/visibility:")
    further = [line.strip() for line in extra.splitlines() if line.strip()]
    if (go or look) and not data.name:
        st.error("Say which folder: the path of one with images goes into the field above.")
    elif look:
        st.session_state["preview"] = views_of(method, data.name, further)
    elif go:
        st.session_state.pop("preview", None)
        arguments += ["--method", method, "--dataset", data.name, "--epochs", str(int(epochs))]
        arguments += ["--seed", str(int(seed)), *(["--download"] if data.download else [])]
        for setting in further:
            arguments += ["--set", setting]
        kind = "folder" if data.name.startswith("folder:") else data.name
        start(name.strip() or queue.free_name(f"{method}-{kind}-s{seed}"), arguments, beside)


def choose_data() -> Data:
    """A data set by name, with what it takes to fetch it, or a folder of images."""
    names = ["digits", "shapes", *torchvision_sets.SIZES, FOLDER]
    name = query_params.one_of(
        st.selectbox, "Data", names, name="data", text=lambda n: "folder" if n == FOLDER else n
    )
    if name == FOLDER:
        folder = path_input(
            "Folder (one folder per class, or images only)", "folder", placeholder="/path"
        )
        return Data(f"folder:{folder}" if folder else "")
    if name not in torchvision_sets.SIZES or is_here(name):
        return Data(name)
    size = f"{torchvision_sets.SIZES[name]:,} MB"
    return Data(name, st.checkbox(f"Fetch {name}: {size}", help="It is not on this machine yet."))


def is_here(dataset: str) -> bool:
    """Whether a data set need not be fetched: its files are here, or its images already decoded."""
    return torchvision_sets.is_there(dataset, None) or datasets.is_made(dataset, "train")


def advanced(catalog: dict[str, Any]) -> list[str]:
    """Loss, encoder and GPUs, as arguments."""
    loss = st.selectbox("Loss", [DEFAULT_LOSS, *catalog["losses"]])
    encoder = st.selectbox("Encoder", catalog["encoders"])
    processes = gpus()
    arguments = ["--encoder", encoder]
    arguments += ["--loss", loss] if loss != DEFAULT_LOSS else []
    return arguments + (["--processes", str(processes)] if processes > 1 else [])


def gpus() -> int:
    """How many GPUs to train on, asked where there are several."""
    if (count := training.gpus()) < 2:
        return 1
    return int(
        st.number_input("GPUs", 1, count, 1, help="The batch is shared out: loss and weights stay.")
    )


def views_of(method: str, data: str, settings: list[str]) -> dict[str, Any]:
    """The values of the analysis of views; a folder that changed is another one."""
    values: dict[str, Any] = {"method": method, "dataset": data, "set": settings}
    if data.startswith("folder:"):
        values["changed"] = changed(data.removeprefix("folder:"))
    return values


def start(name: str, arguments: list[str], beside: bool) -> None:
    try:
        (queue.start_now if beside else queue.enqueue)(name, arguments)
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(error))
        return
    watch_next(name)
