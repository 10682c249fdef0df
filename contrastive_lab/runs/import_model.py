"""A model of torchvision or timm as a run that was not trained here. What would be fetched is said
first, with host, size and license; nothing is fetched without a tick."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.importers import stem_of
from contrastive_core.jobs import queue
from contrastive_core.jobs.task import run_json
from contrastive_lab import cache, format, query_params
from contrastive_lab.path_input import path_input
from contrastive_lab.runs.importing import begin
from contrastive_lab.runs.previewed import judged_on, preview

__all__ = ["of_library"]

PIXELS = "import-pixels"  # the key of their field


def of_library() -> None:
    """Name a model, see where its weights are, open it."""
    model = st.text_input(
        "Model", placeholder="timm:vit_small_patch16_224 or torchvision:resnet50",
        help="Any model of torchvision, or of timm where it is installed; a tag behind a dot "
        "chooses among several weights.",
    ).strip()  # fmt: skip
    if not model:
        st.caption("It is opened without training, at its own image size and scale of colors.")
        return
    if not model.startswith(("torchvision:", "timm:")):
        model = f"timm:{model}"
    try:
        chosen = [model, *_weights()]
        report = _report(chosen)
        if "matched" in report:
            preview(report)
            _import(chosen, report, bool(report["missing"] or report["unlike"]))
        else:
            _offer(report, chosen)
    except (ValueError, OSError) as error:
        refused = "Not opened."
        st.error(f"{refused}  \n{format.plain(error)}")


def _weights() -> list[str]:
    """Where the weights come from, and the image size, as arguments."""
    file = path_input(
        "Its weights on this computer, if they lie elsewhere than where its library keeps them",
        "weights", placeholder="/path/to/weights.safetensors",
    )  # fmt: skip
    a, b = st.columns(2, vertical_alignment="bottom")
    pixels = query_params.number(
        a.number_input, "Image size in pixels (0: its own)", 0, 2048, name="", default=0,
        key=PIXELS, help="The position embedding of a vision transformer is resized to it.",
    )  # fmt: skip
    random = b.checkbox(
        "Random weights", disabled=bool(file), help="An encoder that has learned nothing."
    )
    arguments = ["--pixels", str(int(pixels))] if pixels else []
    return arguments + (["--weights", file] if file else ["--random"] if random else [])


def _report(chosen: list[str]) -> dict[str, Any]:
    previews = st.session_state.setdefault("previews", {})
    key = cache.digest("model", *chosen)
    if key not in previews:
        with st.spinner("Looking at it in a process of its own…"):
            found = run_json("import", *chosen, "--dry-run")
        if "matched" not in found:  # its weights may be here the next time
            return found
        previews[key] = found
    return dict(previews[key])


def _offer(about: dict[str, Any], chosen: list[str]) -> None:
    """Weights that are not here: fetch them, name a file, or do without."""
    text = f"No weights of {about['encoder']} lie on this computer."
    if not about["host"]:
        st.info(format.plain(f"{text} Name a file of them, or choose random weights."))
        return
    size = f"{'' if about['size_is_exact'] else 'about '}{about['size'] / 1e6:,.0f} MB"
    license = about["license"] or "not stated by the library"
    st.info(format.plain(
        f"{text} Name a file of them, choose random weights, or fetch {size} from "
        f"{about['host']} (license: {license})."
    ))  # fmt: skip
    fetch = st.checkbox(f"Fetch them: {size}")
    _import([*chosen, "--fetch"], about, not fetch)


def _import(chosen: list[str], report: dict[str, Any], disabled: bool) -> None:
    a, b = st.columns(2)
    dataset = judged_on(a)
    name = b.text_input("Name of the run", placeholder="made from the model's name").strip()
    if query_params.button(st.button, "Import", of=[PIXELS], type="primary", disabled=disabled):
        begin(name or queue.free_name(stem_of(report)), [*chosen, "--dataset", dataset])
