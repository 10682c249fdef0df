"""A new sweep: by a form, or as TOML that may start from a ready-made one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core import runs
from contrastive_core.errors import BadSetting
from contrastive_core.paths import BUNDLE
from contrastive_core.storage import atomic
from contrastive_core.sweeps.spec import FORMS, read
from contrastive_core.training.config import literal
from contrastive_lab import cache, format, query_params, words

__all__ = ["new_sweep", "toml_of"]

AXES = {  # settings that are often swept, as pages name them
    "": "none", "loss.temperature": "temperature τ", "batch_size": "batch size",
    "lr": "learning rate", "weight_decay": "weight decay", "epochs": "epochs",
    "method.dim": "width of the head's output (z)",
}  # fmt: skip
CHOOSE = "Choose an option"  # a field's own words, which have no Chinese
SHORT = {"loss.temperature": "τ", "batch_size": "batch size", "lr": "learning rate"}  # in figures


def new_sweep(folder: Path) -> str:
    """Write a sweep file into `folder`; returns its name once it is written, else nothing."""
    ways = ["by a form", "as TOML"]
    how = query_params.one_of(st.segmented_control, "Write it", ways, name="write")
    return (as_toml if how == "as TOML" else by_form)(folder)


def by_form(folder: Path) -> str:
    methods = cache.catalog()["methods"]
    with st.form("new-sweep"):
        a, b, c, d = st.columns(4)
        name = a.text_input("Name", placeholder="tau")
        method = b.selectbox(
            "Method", sorted(methods), sorted(methods).index("simclr"),
            format_func=lambda n: words.shown(cache.method_title(n)), placeholder=CHOOSE,
        )  # fmt: skip
        dataset = c.text_input("Data", "digits", help="A data set's name, or folder:PATH")
        epochs, of_epochs = query_params.form_number(
            d.number_input, "Epochs of each run", 1, 10_000, 10
        )
        axes = []
        for number, (key, values) in enumerate((("loss.temperature", "0.1, 0.2, 0.5"), ("", ""))):
            a, b = st.columns([1, 2])
            setting = a.selectbox(
                f"Axis {number + 1}: setting", list(AXES), list(AXES).index(key),
                format_func=lambda k: words.shown(AXES.get(k) or k), accept_new_options=True,
                placeholder=CHOOSE,
                help="Or type the name that a run's settings have for it.",
            )  # fmt: skip
            axes.append((
                str(setting or "").strip(),
                b.text_input(f"Axis {number + 1}: values, by commas", values),
            ))  # fmt: skip
        a, b, c = st.columns(3)
        seeds = a.text_input("Seeds, by commas", "0")
        hours, of_hours = query_params.form_number(
            b.number_input, "Hours after which no new run starts", 0.1, 1000.0, 3.0
        )
        form = c.selectbox(
            "Drawn as", FORMS, FORMS.index("line"), format_func=words.shown, placeholder=CHOOSE
        )
        if st.form_submit_button("Save the sweep", type="primary") and not of_epochs + of_hours:
            base = {"method": method, "dataset": dataset.strip(), "epochs": int(epochs)}
            try:
                text = toml_of(name.strip(), base, axes, seeds, float(hours), form)
            except BadSetting as error:
                st.error(format.plain(error))
                return ""
            return save(folder, name.strip(), text)
    return ""


def as_toml(folder: Path) -> str:
    ready = {p.stem: p for p in sorted((BUNDLE / "sweeps").glob("*.toml"))}
    start = st.selectbox("Starting from", list(ready), placeholder=CHOOSE)
    with st.form(f"toml-from-{start}"):
        name = st.text_input("Name", f"my-{start}")
        content = ready[start].read_text(encoding="utf-8")
        text = st.text_area("TOML", content.replace(f'name = "{start}"', ""), height=420)
        if st.form_submit_button("Save the sweep", type="primary"):
            return save(folder, name.strip(), text)
    return ""


def toml_of(
    name: str,
    base: dict[str, Any],
    axes: list[tuple[str, str]],
    seeds: str,
    hours: float,
    form: str,
) -> str:
    """A sweep file's text. Raises BadSetting for seeds or values that cannot be read."""
    try:
        numbers = [int(s) for s in seeds.split(",") if s.strip()]
    except ValueError:
        raise BadSetting(f"seeds are whole numbers, by commas; got {seeds!r}") from None
    lines = [f"title = {json.dumps(name)}", f"form = {json.dumps(form)}"]
    lines += [f"seeds = {numbers}", f"budget_hours = {hours}", "", "[base]"]
    lines += [f"{k} = {json.dumps(v)}" for k, v in base.items()]
    for key, values in axes:
        if key:
            parsed = [literal(v) for v in values.split(",") if v.strip()]
            parsed = ["none" if v is None else v for v in parsed]
            lines += ["", "[[axes]]", f"key = {json.dumps(key)}", f"values = {json.dumps(parsed)}"]
            lines += [f"name = {json.dumps(SHORT[key], ensure_ascii=False)}"] * (key in SHORT)
    return "\n".join(lines) + "\n"


def save(folder: Path, name: str, text: str) -> str:
    """Keep a sweep that can be read; returns its name, or nothing where it is refused."""
    try:
        runs.checked_name(name)
        if (folder / f"{name}.toml").exists() or (BUNDLE / "sweeps" / f"{name}.toml").exists():
            raise BadSetting(f"there is a sweep {name!r} already; choose another name")
        read(text, f"{name}.toml")
        atomic.write_bytes(folder / f"{name}.toml", text.encode())
    except (ValueError, OSError) as error:
        st.error(format.plain(error))
        return ""
    return name
