"""The button that creates a report and offers it. The only file here with Streamlit."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from contrastive_core.base import storage
from contrastive_core.base.storage import data_home
from contrastive_core.compare.comparison import hash_of
from contrastive_core.compare.evaluation import LAYERS
from contrastive_core.engine.jobs import Job
from contrastive_core.spaces import results
from contrastive_core.spaces.space import Space
from contrastive_lab import locale
from contrastive_lab.components.shared.mount import digest
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import follow
from contrastive_lab.report import views_asked

VERSION = 3  # of the report: a change makes those that are kept stale
HELP = N_(
    "Maps, scores with intervals, the verdict, settings and the live loss view. One file that opens "
    "offline in any browser."
)


def job_of(names: Sequence[str], split: str, layer: str, qrels: str = "") -> Job:
    """Return the job that writes the report on some runs or vectors, stored by their content. Raises ValueError."""
    spaces = [Space.of_name(name, split, layer) for name in names]
    titles = [space.run.meta().get("title") if space.run else space.title for space in spaces]
    judged = [qrels, hash_of(qrels)] if qrels and Path(qrels).is_file() else []
    views = [results.path(*one).exists() for one in views_asked(spaces, qrels if judged else "")]
    key = f"report-{digest(VERSION, [space.values for space in spaces], titles, *judged, views)}"
    out = data_home() / "reports" / f"{key}.html"
    layer = layer if layer in LAYERS else "h"
    of_split = ("--split", split) if all(space.split for space in spaces) else ()
    by = ("--qrels", qrels) if judged else ()
    return Job(f"_{key}", out, ("report", *names, "--out", str(out), *of_split, "--layer", layer, *by))


def offer(names: Sequence[str], split: str = "test", layer: str = "h", qrels: str = "") -> None:
    """Draw a button, then the progress, then the file. Args: qrels: a file of relevance judgments."""
    job, about = job_of(names, split, layer, qrels), locale.text(HELP)
    titles = [Space.of_name(name, split, layer).title for name in names]
    asked, file = f"asked {job.key}", f"{'-'.join(titles)[:80]}.html"
    if job.result_path.exists():
        label, content = _("Download the report (.html)"), job.result_path.read_bytes()
        key, icon = f"get-{job.key}", ":material/download:"
        st.download_button(label, content, file, "text/html", icon=icon, key=key, help=about, on_click="ignore")
        return
    if not st.session_state.get(asked) and not job.is_running():
        label, key, icon = _("Report as one HTML file"), f"make-{job.key}", ":material/description:"
        st.button(label, icon=icon, key=key, help=about, on_click=st.session_state.update, args=[{asked: True}])
        return
    st.session_state[asked] = True
    storage.make_folder(job.result_path.parent)
    follow(job, message("The report"), may_stop=True)
