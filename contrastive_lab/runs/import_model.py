"""A model of torchvision or timm as a run that was not trained here. What would be fetched is said
first, with host, size and license; nothing is fetched without a tick."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.engine import queue
from contrastive_core.engine.importing import preview as preview_import
from contrastive_core.records.run_names import default_run_name
from contrastive_lab import cache, format, query_params
from contrastive_lab.locale import _
from contrastive_lab.path_input import path_input
from contrastive_lab.runs.import_preview import judged_on, preview
from contrastive_lab.runs.importing import begin

PIXELS = "import-pixels"  # the key of their field


def of_library() -> None:
    """Name a model, see where its weights are, open it."""
    model = st.text_input(
        _("Model"),
        placeholder="timm:vit_small_patch16_224 or torchvision:resnet50",
        help=_(
            "Any model of torchvision, or of timm where it is installed; a tag behind a dot "
            "chooses among several weights."
        ),
    ).strip()
    if not model:
        st.caption(_("It is opened without training, at its own image size and scale of colors."))
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
        refused = _("Not opened.")
        st.error(f"{refused}  \n{format.plain(error)}")


def _weights() -> list[str]:
    """Where the weights come from, and the image size, as arguments."""
    file = path_input(
        _("Its weights on this computer, if they lie elsewhere than where its library keeps them"),
        "weights",
        placeholder="/path/to/weights.safetensors",
    )
    a, b = st.columns(2, vertical_alignment="bottom")
    pixels = query_params.number(
        a.number_input,
        _("Image size in pixels (0: its own)"),
        0,
        2048,
        name="",
        default=0,
        key=PIXELS,
        help=_("The position embedding of a vision transformer is resized to it."),
    )
    random = b.checkbox(_("Random weights"), disabled=bool(file), help=_("An encoder that has learned nothing."))
    arguments = ["--pixels", str(int(pixels))] if pixels else []
    return arguments + (["--weights", file] if file else ["--random"] if random else [])


def _report(chosen: list[str]) -> dict[str, Any]:
    previews = st.session_state.setdefault("previews", {})
    key = cache.digest("model", *chosen)
    if key not in previews:
        with st.spinner(_("Looking at it in a process of its own…")):
            found = preview_import(*chosen)
        if "matched" not in found:  # its weights may be here the next time
            return found
        previews[key] = found
    return dict(previews[key])


def _offer(about: dict[str, Any], chosen: list[str]) -> None:
    """Weights that are not here: fetch them, name a file, or do without."""
    text = _("No weights of {encoder} lie on this computer.").format(encoder=about["encoder"])
    if not about["host"]:
        st.info(format.plain(_("{text} Name a file of them, or choose random weights.").format(text=text)))
        return
    size = (
        _("{size} MB").format(size=f"{about['size'] / 1000000.0:,.0f}")
        if about["size_is_exact"]
        else _("about {size} MB").format(size=f"{about['size'] / 1000000.0:,.0f}")
    )
    license = about["license"] or _("not stated by the library")
    st.info(
        format.plain(
            _(
                "{text} Name a file of them, choose random weights, or fetch {size} from {host} (license: {license})."
            ).format(text=text, size=size, host=about["host"], license=license)
        )
    )
    fetch = st.checkbox(_("Fetch them: {size}").format(size=size))
    _import([*chosen, "--fetch"], about, not fetch)


def _import(chosen: list[str], report: dict[str, Any], disabled: bool) -> None:
    a, b = st.columns(2)
    dataset = judged_on(a)
    name = b.text_input(_("Name of the run"), placeholder=_("made from the model's name")).strip()
    if query_params.button(st.button, _("Import"), of=[PIXELS], type="primary", disabled=disabled):
        begin(name or queue.free_name(default_run_name(report)), [*chosen, "--dataset", dataset])
