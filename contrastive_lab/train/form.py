"""The training form: method, data, settings and Start, with the time that a similar training took on this machine."""

from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core import runs
from contrastive_core.base.cards import Catalog, MethodEntry
from contrastive_core.base.errors import BadName
from contrastive_core.base.storage import FileCache
from contrastive_core.data.dataset import DatasetInfo
from contrastive_core.engine import queue
from contrastive_core.engine.calls import resolved_settings
from contrastive_core.runs import stem_of
from contrastive_core.runs.run_metrics import MetricsReader
from contrastive_core.runs.train_config import Resolved, TrainConfig, as_options, literal, usual_epochs, with_settings
from contrastive_lab import cache, format, guard, query_params
from contrastive_lab.locale import _, sentence
from contrastive_lab.setting_names import shown_name, shown_value
from contrastive_lab.train.adviser import adviser_card
from contrastive_lab.train.augmentations import choose_steps, is_quick
from contrastive_lab.train.fields import advanced, chosen_before, numbers, recipe_and_optimizer
from contrastive_lab.train.folder import Data, choose_data, facts_of, wrong_folder
from contrastive_lab.train.watch import watch_next

STARTED = "runs started here"  # of the session


@dataclass(frozen=True)
class Draft:
    """The run to start from the form, as the stage shows it."""

    data: Data
    method: str = ""  # "" while it is not known
    card: MethodEntry = field(default_factory=MethodEntry)
    config: TrainConfig | None = None  # resolved, where that is possible
    views: list[str] = field(default_factory=list)  # settings that its views depend on
    is_off: bool = True  # it cannot be started as it is


def form(subject: DeltaGenerator, chips: DeltaGenerator) -> Draft:
    """Draw method and epochs, the rest in a popover, and Start at the end. Args: subject and chips: containers of the
    toolbar, for the data set and for the augmentations."""
    st.header(_("New run"))
    first = st.container()
    data = choose_data(subject)  # drawn at once, with what it holds
    catalog = cache.catalog()
    titles = {name: card["title"] for name, card in catalog["methods"].items()}
    method = query_params.one_of(first.selectbox, _("Method"), titles, name="method", default="simclr")
    return settings(catalog, method, data, chips)


def settings(catalog: Catalog, method: str, data: Data, chips: DeltaGenerator) -> Draft:
    """Draw the settings and Start, which is disabled for settings known to fail. Fields whose defaults depend on others
    are drawn after those, at their places above."""
    card, usual = catalog["methods"][method], usual_epochs(method, data.name)
    epochs = query_params.number(st.number_input, _("Epochs"), 1, 10_000, name="epochs", default=usual)
    with st.popover(_("Temperature, batch, rate, seed, name"), width="stretch", key="train-more"):
        in_numbers = st.container(key="train-numbers")  # wide enough for their defaults (app.py)
        key, hint = f"train-name-{st.session_state.get(STARTED, 0)}", _("made from the settings")  # a new field each
        name = query_params.text(st.text_input, _("Name"), name="called", key=key, placeholder=hint).strip()
        fields = advanced(catalog, bool(data.files))
    errors, facts = st.container(), facts_of(data)
    asked = [f"epochs={epochs}", *fields.lines, *chosen_before(), *fields.further]
    found, wrong = resolved(method, data.name, facts, asked)
    config = found.config if found else None
    own = recipe_and_optimizer(found, card, fields)
    with in_numbers:
        knobs = catalog["losses"][fields.loss or card["default_loss"]]["knobs"]
        chosen, seed, wrong_rate = numbers(found, knobs.get("temperature"))
    with chips:
        switched = choose_steps(config, facts.image_shape[0]) if config and facts else []
    pairs = [("loss", fields.loss)] if fields.loss else []
    pairs += [line.removeprefix("loss.").partition("=")[::2] for line in [*chosen, *fields.further]]
    with errors:  # the values of fields that are not visible, then what is wrong
        if pairs:
            values = [
                cache.loss_title(v) if k == "loss" else f"{shown_name(k)} {shown_value(literal(v))}" for k, v in pairs
            ]
            st.caption(format.plain(" · ".join(values)))
        wrongs = [wrong_name(name), wrong_rate, fields.wrong, wrong]
        if data.fetch and not data.download:
            text = _("{name} is not on this machine: tick Fetch above, or choose other data.")
            wrongs.append(text.format(name=data.name))
        elif data.files:
            wrongs.append(wrong_folder(data.files, card["title"] if card["needs_captions"] else ""))
        wrongs = list(filter(None, [*wrongs, found.refusal if found else ""]))
        for why in wrongs:
            st.error(format.plain(why))
    for note in found.notes if found and not wrongs else ():
        st.info(format.plain(note))
    is_off = bool(wrongs) or not data.name
    draft = Draft(data, method, card, config, [] if is_off else [*fields.further, *switched], is_off)
    if data.name and not data.download:
        adviser_card(data.name, method, config, is_quick(data.name, config))
    with st.container(key="train-next"):
        expected(config, data.name)
        icon, help = ":material/play_arrow:", format.plain(wrongs[0]) if wrongs else ""
        go = st.button(_("Start"), "start", help, type="primary", icon=icon, disabled=is_off, width="stretch")
    if go and not is_off:  # a press can come with the number that is wrong
        lines = [f"method={method}", f"dataset={data.name}", f"epochs={epochs}", f"seed={seed}"]
        arguments = as_options([*lines, *fields.lines, *own, *chosen, *fields.further, *switched])
        arguments += ["--processes", str(fields.processes)] if fields.processes > 1 else []
        free = queue.free_name(stem_of(method, data.name, seed, [*chosen, *fields.further, *switched]))
        name = name or free
        with guard.errors_shown():
            arguments += ["--download"] if data.download else []
            queue.enqueue(name, arguments, at_once=fields.beside)
            watch_next(name)
            st.session_state[STARTED] = st.session_state.get(STARTED, 0) + 1
            st.rerun()
    return draft


def resolved(method: str, data: str, facts: DatasetInfo | None, lines: list[str]) -> tuple[Resolved | None, str]:
    """Return the settings of the form as resolved by the worker, or their error; neither while the images are being
    counted. Args: lines: `key=value`."""
    try:
        config = with_settings(TrainConfig(method, data), lines)
        if (config.method, config.dataset) != (method, data):
            return None, _("method and dataset are chosen above")
        return (resolved_settings(config, facts), "") if facts else (None, "")
    except (ValueError, OSError) as error:
        return None, sentence(error)


def wrong_name(name: str) -> str:
    """Return the reason why a new run cannot have this name; "" if it can, or for an automatic name."""
    if not name:
        return ""
    try:
        runs.new_name(name)
    except BadName as error:
        return sentence(error)
    taken = name in queue.taken_names()
    return _("there is a run {name} already; choose another name").format(name=f"{name!r}") if taken else ""


# the finished epochs of a run, by the path of its metrics
_epochs_of = FileCache(lambda path: MetricsReader(path).update().epochs, 64)


def expected(config: TrainConfig | None, data: str) -> None:
    """Draw the estimated time, or a note that no similar run was trained here. `config`: resolved settings."""
    names = ("dataset", "method", "encoder", "batch_size", "image_size")
    for run in runs.list_runs() if config else ():
        is_same = all(run.config.get(name) == getattr(config, name) for name in names)
        if not (is_same and config) or run.shipped or run.is_recording:
            continue
        lines = [x for x in _epochs_of(run.path / "metrics.jsonl") if x.get("seconds") and x.get("epoch")]
        if lines:
            rate = float(lines[-1]["seconds"]) / int(lines[-1]["epoch"])
            each = f"{rate:.2g} s" if rate < 10 else format.duration(rate)
            text = _("About {epochs}, estimated from {each} per epoch of {name} on this machine.")
            values = {"epochs": format.duration(config.epochs * rate), "each": each, "name": run.name}
            st.caption(format.plain(text.format(**values)))
            return
    if data:
        st.caption(_("No time estimate yet: nothing similar was trained on this machine."))
