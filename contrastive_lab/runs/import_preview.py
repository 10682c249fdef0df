"""What an import would take, before it is taken."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.engine.images import name_of
from contrastive_core.records import runs
from contrastive_lab import cache, format
from contrastive_lab.locale import _

DATA = ["shapes", "digits", "cifar10", "cifar100", "stl10"]


def judged_on(place: Any) -> str:
    """The data set to open an encoder with: of those that were trained on here, or any folder."""
    known = [str(run.config.get("dataset")) for run in runs.list_runs() if not run.shipped]
    own = [name for name in dict.fromkeys(known) if name.startswith(("folder:", "csv:"))]
    chosen = place.selectbox(
        _("To be judged on"), [*own, *DATA], accept_new_options=True, help=_("Or type the path of a folder of images")
    )
    return name_of(chosen) if chosen.startswith(("/", "~")) else str(chosen)


def preview(report: dict[str, Any]) -> None:
    """What it is, what matched, what is missing."""
    st.header(format.plain(f"{report['kind']}, {report['encoder']}"))
    a, b, c, d = st.columns(4)
    a.metric(_("Tensors matched"), report["matched"])
    b.metric(_("Missing"), len(report["missing"]))
    c.metric(_("Of another shape"), len(report["unlike"]))
    d.metric(_("Not used"), len(report["unused"]))
    if report.get("of_library"):
        st.text(_("It has no head: z is h. Loss Lab and Samples show it with SimCLR's loss."))
    else:
        shown_as = cache.method_title(str(report["method"]))
        st.text(
            _("Shown as {shown_as}; head: {head}").format(shown_as=shown_as, head=report["head"].get("head", "none"))
        )
    for note in report["notes"]:
        st.text(note)
    parts = {"missing": _("Missing"), "unlike": _("Of another shape"), "unused": _("Not used")}
    for part, name in parts.items():
        if report[part]:
            with st.expander(f"{name}: {len(report[part])}"):
                st.code("\n".join(map(str, report[part])), language=None)
