"""A new sweep: by a form, or as TOML that may start from a ready-made one."""

import json
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.engine.sweep_results import FORMS, read
from contrastive_core.records import BUNDLE, BadSetting, atomic, runs
from contrastive_core.records.train_config import literal
from contrastive_lab import cache, guard, locale, number_inputs, query_params
from contrastive_lab.locale import N_, _

# Settings that are often swept, as pages name them.
AXES = {"": "none", "loss.temperature": N_("temperature τ"), "batch_size": N_("batch size"), "lr": N_("learning rate")}
AXES |= {"weight_decay": N_("weight decay"), "epochs": "epochs", "method.dim": N_("width of the head's output (z)")}
CHOOSE = N_("Choose an option")  # a field's own words, which have no Chinese
SHORT = {"loss.temperature": "τ", "batch_size": N_("batch size"), "lr": N_("learning rate")}  # in figures


def new_sweep(folder: Path) -> str:
    """Write a sweep file into `folder`; returns its name once it is written, else nothing."""
    ways = {"form": _("by a form"), "toml": _("as TOML")}
    widget, label = st.segmented_control, _("Write it")
    how = query_params.one_of(widget, label, ways, name="write", format_func=ways.__getitem__)
    return (as_toml if how == "toml" else by_form)(folder)


def by_form(folder: Path) -> str:
    methods = cache.catalog()["methods"]
    with st.form("new-sweep"):
        a, b, c, d = st.columns(4)
        name, choose = a.text_input(_("Name"), placeholder="tau"), locale.text(CHOOSE)
        titles = {n: locale.text(cache.method_title(n)) for n in sorted(methods)}
        simclr = [*titles].index("simclr")
        method = b.selectbox(_("Method"), [*titles], simclr, format_func=titles.__getitem__, placeholder=choose)
        dataset = c.text_input(_("Data"), "digits", help=_("A data set's name, or folder:PATH"))
        epochs, of_epochs = number_inputs.form_number(d.number_input, _("Epochs of each run"), 1, 10_000, 10)
        axes = [_axis(1, "loss.temperature", "0.1, 0.2, 0.5"), _axis(2, "", "")]
        a, b, c = st.columns(3)
        seeds = a.text_input(_("Seeds, separated by commas"), "0")
        label, line = _("Start no new run after this many hours"), FORMS.index("line")
        hours, of_hours = number_inputs.form_number(b.number_input, label, 0.1, 1000.0, 3.0)
        form = c.selectbox(_("Chart"), FORMS, line, format_func=locale.text, placeholder=choose)
        pressed = st.form_submit_button(_("Save the sweep"), type="primary")
        base = {"method": method, "dataset": dataset.strip(), "epochs": epochs}
        with guard.errors_kept("new-sweep", (name, base, axes, seeds, hours, form), pressed):
            if pressed and not of_epochs + of_hours:
                return save(folder, name.strip(), toml_of(name.strip(), base, axes, seeds, hours, form))
    return ""


def as_toml(folder: Path) -> str:
    ready = {p.stem: p for p in sorted((BUNDLE / "sweeps").glob("*.toml"))}
    start = st.selectbox(_("Starting from"), list(ready), placeholder=locale.text(CHOOSE))
    with st.form(f"toml-from-{start}"):
        name = st.text_input(_("Name"), f"my-{start}")
        content = ready[start].read_text(encoding="utf-8")
        text = st.text_area("TOML", content.replace(f'name = "{start}"', ""), height=420)
        pressed = st.form_submit_button(_("Save the sweep"), type="primary")
        with guard.errors_kept(f"toml-from-{start}", (name, text), pressed):
            if pressed:
                return save(folder, name.strip(), text)
    return ""


def toml_of(name: str, base: dict[str, Any], axes: list[tuple[str, str]], seeds: str, hours: float, form: str) -> str:
    """A sweep file's text. Raises BadSetting for seeds or values that cannot be read."""
    try:
        numbers = [int(s) for s in seeds.split(",") if s.strip()]
    except ValueError:
        raise BadSetting(
            _("seeds must be whole numbers separated by commas; got {seeds}").format(seeds=f"{seeds!r}")
        ) from None
    lines = [f"title = {json.dumps(name)}", f"form = {json.dumps(form)}"]
    lines += [_("seeds = {numbers}").format(numbers=numbers), f"budget_hours = {hours}", "", "[base]"]
    lines += [f"{k} = {json.dumps(v)}" for k, v in base.items()]
    for key, values in axes:
        if key:
            parsed = [literal(v) for v in values.split(",") if v.strip()]
            parsed = ["none" if v is None else v for v in parsed]
            lines += ["", "[[axes]]", f"key = {json.dumps(key)}", f"values = {json.dumps(parsed)}"]
            lines += [f"name = {json.dumps(SHORT[key], ensure_ascii=False)}"] * (key in SHORT)
    return "\n".join(lines) + "\n"


def save(folder: Path, name: str, text: str) -> str:
    """Keep a sweep that can be read; returns its name. Raises ValueError, OSError."""
    runs.checked_name(name)
    if (folder / f"{name}.toml").exists() or (BUNDLE / "sweeps" / f"{name}.toml").exists():
        raise BadSetting(_("there is a sweep {name} already; choose another name").format(name=f"{name!r}"))
    read(text, f"{name}.toml")
    atomic.write_bytes(folder / f"{name}.toml", text.encode())
    return name


def _axis(number: int, key: str, values: str) -> tuple[str, str]:
    """The fields of one axis: the setting's name and its values, separated by commas."""
    a, b = st.columns([1, 2])
    setting = a.selectbox(
        _("Axis {number}: setting").format(number=number),
        list(AXES),
        list(AXES).index(key),
        format_func=lambda k: locale.text(AXES.get(k) or k),
        accept_new_options=True,
        placeholder=locale.text(CHOOSE),
        help=_("Or type the name that a run's settings have for it."),
    )
    return str(setting or "").strip(), b.text_input(
        _("Axis {number}: values, separated by commas").format(number=number), values
    )
