"""Runs: every run as a row; rename, annotate, resume, clone, compare settings, delete, undo."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

import streamlit as st

import session
from contrastive_core import figures, jobs, runs, store, waiting
from contrastive_core.runs import Run


def page() -> None:
    st.title("Runs")
    found = session.all_runs()
    undo()
    if st.toggle("Import a checkpoint from elsewhere"):
        elsewhere()
    if not found:
        st.info("No runs yet. The first one takes less than a minute on digits.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        return
    a, b, c = st.columns([3, 2, 2])
    text = a.text_input("Search", placeholder="name, tag, method, data set")
    states = b.multiselect("Status", ["running", "done", "stopped", "failed", "queued"])
    origin = c.segmented_control("Show", ["all", "mine", "shipped"], default="all")
    rows = [row(run) for run in found]
    shown = [
        r for r in rows
        if text.lower() in " ".join(map(str, r.values())).lower()
        and (not states or r["status"] in states)
        and (origin in (None, "all") or (r["origin"] == "shipped") == (origin == "shipped"))
    ]  # fmt: skip
    picked = st.dataframe(
        shown, hide_index=True, on_select="rerun", selection_mode="multi-row", key="runs-table",
        column_config={"kNN %": st.column_config.NumberColumn(format="%.1f")},
    ).selection.rows  # fmt: skip
    st.download_button("This table as CSV", figures.table_csv(shown), "runs.csv", "text/csv")
    chosen = [runs.load(shown[i]["name"]) for i in picked if i < len(shown)]
    if not chosen:
        st.caption("Select a row for its details, two rows for the difference of their settings.")
    elif len(chosen) == 1:
        details(chosen[0])
    else:
        difference(chosen[:2])


def row(run: Run) -> dict[str, Any]:
    status, record, meta = run.status(), session.scores(run), run.meta()
    knn = record["scores"]["h"].get("knn", {}).get("value") if record else None
    return {
        "name": run.name,
        "title": meta.get("title", ""),
        "status": status["status"],
        "method": run.config.get("method"),
        "loss": run.config.get("loss"),
        "data": run.config.get("dataset"),
        "epochs": run.config.get("epochs"),
        "seed": run.config.get("seed"),
        "kNN %": None if knn is None else 100 * knn,
        "tags": ", ".join(meta.get("tags", [])),
        "created": str(run.manifest.get("created", ""))[:16].replace("T", " "),
        "origin": "shipped" if run.shipped else "mine",
    }


def details(run: Run) -> None:
    status = run.status()
    st.subheader(run.name)
    if status.get("reason"):
        st.warning(status["reason"])
    act(run, status["status"])
    st.markdown("**The command line that makes this run**")
    st.code(command(run), language="bash")
    left, right = st.columns(2)
    with left, st.expander("Settings"):
        st.json(run.config)
    with right, st.expander("Versions, data, seed"):
        st.json({k: v for k, v in run.manifest.items() if k != "config"})
    if not run.shipped:
        annotate(run)
    with st.expander("Use it elsewhere"):
        st.download_button(
            "Weights (safetensors)", lambda: run.weights.read_bytes(), f"{run.name}.safetensors",
            disabled=not run.weights.exists(),
        )  # fmt: skip
        st.code(SNIPPET.format(name=run.name), language="python")
    with st.expander("Log"):
        st.code(jobs.log_of(run.name, 100) or "no log", language=None)


SNIPPET = """from safetensors.torch import load_file

weights = load_file("{name}.safetensors")
encoder = {{k.removeprefix("encoder.body."): v for k, v in weights.items()
           if k.startswith("encoder.body.")}}
# a torch.nn.Sequential of the small encoder's layers, or torchvision's resnet18 (fc = Identity)
"""


def act(run: Run, state: str) -> None:
    a, b, c, d = st.columns(4)
    if a.button("Explore", icon=":material/scatter_plot:", disabled=not run.weights.exists()):
        st.session_state["run"] = run.name
        st.switch_page("pages/explore.py")
    if state == "running" and b.button("Stop", icon=":material/stop:"):
        jobs.stop(run.name)
    resumable = state in ("stopped", "failed") and not run.shipped
    if resumable and b.button("Resume", icon=":material/play_arrow:", type="primary"):
        try:
            waiting.resume(run.name)
        except ValueError as error:
            st.error(str(error))
    if c.button("Clone", icon=":material/content_copy:", help="Train it again under another name"):
        clone(run)
    locked = run.shipped or state == "running"
    if d.button("Delete", icon=":material/delete:", disabled=locked):
        st.session_state["binned"] = str(runs.delete(run.name))
        st.rerun()


def clone(run: Run) -> None:
    taken = {r.name for r in session.all_runs()}
    name = next(n for i in range(2, 999) if (n := f"{run.name[:58]}-{i}") not in taken)
    waiting.enqueue(name, jobs.arguments_of(run))
    st.session_state["watched"] = name
    st.switch_page("pages/train.py")


def command(run: Run) -> str:
    return "python -m contrastive_core train " + " ".join(map(shlex.quote, jobs.arguments_of(run)))


def annotate(run: Run) -> None:
    meta = run.meta()
    with st.form(f"meta-{run.name}"):
        a, b = st.columns(2)
        name = a.text_input("Name", run.name)
        title = b.text_input("Title", meta.get("title", ""))
        tags = st.text_input("Tags", ", ".join(meta.get("tags", [])), help="separated by commas")
        note = st.text_area("Note", meta.get("note", ""))
        if st.form_submit_button("Save"):
            kept = [t.strip() for t in tags.split(",") if t.strip()]
            run.set_meta(title=title.strip(), tags=kept, note=note)
            if name.strip() != run.name:
                try:
                    st.session_state["run"] = runs.rename(run.name, name.strip()).name
                except (ValueError, FileExistsError) as error:
                    st.error(str(error))
                    return
            st.rerun()


def difference(pair: list[Run]) -> None:
    """Settings that two runs do not share."""
    a, b = (flat(run.config) for run in pair)
    rows = [
        {"setting": k, pair[0].name: str(a.get(k, "–")), pair[1].name: str(b.get(k, "–"))}
        for k in sorted(a.keys() | b.keys())
        if a.get(k) != b.get(k)
    ]
    st.subheader("What differs")
    if rows:
        st.dataframe(rows, hide_index=True)
    else:
        st.info("These two runs have the same settings.")


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def elsewhere() -> None:
    """A foreign checkpoint: what it is first, then a run of it. A child process opens it."""
    given = st.file_uploader(
        "MoCo, SupContrast, SimCLR, lightly, solo-learn, torchvision, timm or safetensors",
        ["pt", "pth", "tar", "ckpt", "safetensors"],
        help="Opened without running anything in it, in a process of its own.",
    )
    a, b = st.columns(2)
    dataset = a.selectbox("To be judged on", ["shapes", "digits", "cifar10", "cifar100", "stl10"])
    name = b.text_input("Name of the run", placeholder="made from the file's name")
    if given is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(given.name).name
        path.write_bytes(given.getbuffer())
        arguments = ["import", str(path), "--dataset", dataset]
        arguments += ["--run", name.strip()] if name.strip() else []
        try:
            report = jobs.ask(*arguments, "--dry-run")
            st.text(f"{report['kind']}, {report['encoder']}: {report['matched']} tensors matched")
            for part in ("missing", "unlike", "unused"):
                if report[part]:
                    st.text(f"{len(report[part])} {part}: {', '.join(report[part][:8])}")
            st.text("\n".join(report["notes"]))
            if st.button("Import", type="primary"):
                st.session_state["run"] = jobs.ask(*arguments)["run"]
                st.switch_page("pages/explore.py")
        except ValueError as error:
            st.text(f"Not imported. {error}")


def undo() -> None:
    binned = st.session_state.get("binned")
    if not binned:
        return
    a, b = st.columns([5, 1])
    a.info(f"{Path(binned).name.rsplit('-', 1)[0]} was deleted.")
    if b.button("Undo", type="primary"):
        try:
            runs.restore(Path(binned))
        except (OSError, ValueError, store.Damaged) as error:
            st.error(str(error))
        st.session_state.pop("binned")
        st.rerun()


session.run(page)
