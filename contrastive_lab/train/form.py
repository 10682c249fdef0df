"""The training form: method, data, settings and Start, with the time that a similar training took on this machine.

Each field has its default and the reason, as resolved by the worker. The encoder is new, from another run, or from a
library, and is checked while typing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core import runs
from contrastive_core.base.errors import BadName
from contrastive_core.base.registry import Catalog, KnobEntry, MethodEntry
from contrastive_core.base.storage import FileCache
from contrastive_core.cli.import_checkpoint import ImportRecord
from contrastive_core.cli.import_checkpoint import import_preview as preview_import
from contrastive_core.data.dataset import LARGEST, RESIZES, SMALL, DatasetInfo
from contrastive_core.engine import queue, training
from contrastive_core.engine.client import resolved_settings
from contrastive_core.runs import stem_of
from contrastive_core.runs.run_metrics import MetricsReader
from contrastive_core.runs.train_config import (
    RECIPES,
    Resolved,
    TrainConfig,
    as_options,
    literal,
    settings_of,
    usual_epochs,
    with_settings,
)
from contrastive_lab import cache, format, locale, query_params, stage, state
from contrastive_lab.locale import N_, _, message, ngettext, sentence
from contrastive_lab.setting_names import shown_name, shown_value
from contrastive_lab.train.adviser import adviser_card
from contrastive_lab.train.augmentations import choose_steps, is_quick
from contrastive_lab.train.folder import Data, choose_data, facts_of, wrong_folder
from contrastive_lab.train.watch import watch_next

STARTED = "runs started here"  # of the session
DEFAULT_LOSS = N_("the method's default")
OPTIMIZERS = {"sgd": N_("SGD with momentum"), "adamw": "AdamW", "lars": "LARS"}
RECIPE_TITLES = {"short": N_("short runs"), "cifar": "CIFAR", "imagenet": "ImageNet"}
RESIZE_TITLES = {"crop": N_("crop to the middle"), "pad": N_("pad with black")}
LIBRARY = N_("another one, of timm or torchvision…")
NEW = N_("new, with random weights")
LIBRARIES = ("timm:", "torchvision:")
MODELS = "timm:vit_small_patch16_224 or torchvision:resnet50"


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
    wrongs: list[str] = []  # what is wrong with the fields
    epochs = query_params.number(st.number_input, _("Epochs"), 1, 10_000, name="epochs", default=usual, wrong=wrongs)
    with st.popover(_("Temperature, batch, rate, seed, name"), width="stretch", key="train-more"):
        in_numbers = st.container(key="train-numbers")  # wide enough for their defaults (app.py)
        key, hint = f"train-name-{st.session_state.get(STARTED, 0)}", _("made from the settings")  # a new field each
        name = query_params.text(st.text_input, _("Name"), name="called", key=key, placeholder=hint).strip()
        if why := wrong_name(name):
            wrongs.append(why)
            st.error(format.as_sentence(why))
        fields = advanced(catalog, bool(data.files), wrongs)
    errors, facts = st.container(), facts_of(data)
    asked = [f"epochs={epochs}", *fields.lines, *chosen_before(), *fields.further]
    found, wrong = resolved(method, data.name, facts, asked)
    config = found.config if found else None
    own = recipe_and_optimizer(found, card, fields)
    with in_numbers:
        knobs = catalog["losses"][fields.loss or card["default_loss"]]["knobs"]
        chosen, seed, wrong_numbers = numbers(found, knobs.get("temperature"))
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
        wrongs += [*wrong_numbers, fields.wrong, wrong, wrong_data(data, card), found.refusal if found else ""]
        wrongs = list(filter(None, wrongs))
        for why in wrongs:
            st.error(format.as_sentence(why))
    for note in found.notes if found and not wrongs else ():
        st.info(format.plain(note))
    is_off = bool(wrongs) or not data.name or facts is None  # while a folder's images are counted
    draft = Draft(data, method, card, config, [] if is_off else [*fields.further, *switched], is_off)
    if data.name and not data.download:
        adviser_card(data.name, method, config, is_quick(data.name, config))
    with st.container(key="train-next"):
        expected(config, data.name, fields.beside)
        icon, help = ":material/play_arrow:", format.as_sentence(wrongs[0]) if wrongs else ""
        go = st.button(_("Start"), "start", help, type="primary", icon=icon, disabled=is_off, width="stretch")
    if go and not is_off:  # a press can come with the number that is wrong
        lines = [f"method={method}", f"dataset={data.name}", f"epochs={epochs}", f"seed={seed}"]
        arguments = as_options([*lines, *fields.lines, *own, *chosen, *fields.further, *switched])
        arguments += ["--processes", str(fields.processes)] if fields.processes > 1 else []
        name = name or queue.free_name(stem_of(method, data.name, seed, [*chosen, *fields.further, *switched]))
        with stage.errors_shown():
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
            return None, _("Method and dataset are chosen above.")
        return (resolved_settings(config, facts), "") if facts else (None, "")
    except (ValueError, OSError) as error:
        return None, sentence(error)


def wrong_data(data: Data, card: MethodEntry) -> str:
    """Return the reason why a method cannot be trained on the data; "" if it can, or while they are being read."""
    if data.fetch and not data.download:
        text = _("{name} is not on this machine: tick Fetch above, or choose other data.")
        return text.format(name=data.name)
    return wrong_folder(data.files, card["title"] if card["needs_captions"] else "") if data.files else ""


def wrong_name(name: str) -> str:
    """Return the reason why a new run cannot have this name; "" if it can, or for an automatic name."""
    if not name:
        return ""
    try:
        runs.new_name(name)
    except BadName as error:
        return sentence(error)
    taken = name in queue.taken_names()
    return message("there is a run {name} already; choose another name", name=f"{name!r}") if taken else ""


# the finished epochs of a run, by the path of its metrics
_epochs_of = FileCache(lambda path: MetricsReader(path).update().epochs, 64)


def expected(config: TrainConfig | None, data: str, is_parallel: bool) -> None:
    """Draw the runs that end before the start, unless it is parallel to them; then the estimated time, or a note that
    no similar run was trained here. `config`: resolved settings."""
    begun = [*(run.name for run in training.working()), *training.starting()]
    ahead = dict.fromkeys([*begun, *(job.name for job in queue.queue())])
    if data and ahead and not is_parallel:
        st.caption(format.plain(_("It starts after {names}.").format(names=", ".join(ahead))))
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


# --- the fields ---


@dataclass(frozen=True)
class Advanced:
    """The choices in the advanced fields: `lines` and `further` are `key=value`; `loss` is "" for the method's own;
    `wrong` is why the encoder cannot be trained."""

    loss: str
    lines: list[str]
    wrong: str
    processes: int
    beside: bool
    further: list[str]
    in_recipe: DeltaGenerator
    in_optimizer: DeltaGenerator


def advanced(catalog: Catalog, has_files: bool, wrongs: list[str]) -> Advanced:
    """Draw the advanced fields, with placeholders for those whose defaults depend on them. Args: wrongs: gets errors
    of numbers."""
    with st.expander(_("Advanced")):
        in_recipe = st.container()
        titles = {name: about["title"] for name, about in catalog["losses"].items()}
        loss = query_params.one_of(st.selectbox, _("Loss"), {DEFAULT_LOSS: DEFAULT_LOSS, **titles}, name="loss")
        loss = "" if loss == DEFAULT_LOSS else loss
        in_optimizer = st.container()
        lines = [f"loss={loss}"] if loss else []
        encoder, wrong = choose_encoder(catalog["encoders"])
        processes, help = 1, _("The batch is split across the GPUs; loss and weights stay the same.")
        if (count := training.gpus()) > 1:
            processes = query_params.number(st.number_input, _("GPUs"), 1, count, name="gpus", default=1, help=help)
        beside = query_params.switch(st.checkbox, _("Start now, parallel to the current run"), name="beside")
        further = further_settings(has_files, wrongs)
    return Advanced(
        loss=loss,
        lines=[*lines, *encoder],
        wrong=wrong,
        processes=processes,
        beside=beside,
        further=further,
        in_recipe=in_recipe,
        in_optimizer=in_optimizer,
    )


def chosen_before() -> list[str]:
    """Return `key=value` lines of fields that are drawn after their defaults are known but affect other defaults."""
    recipe, optimizer = query_params.current("recipe", RECIPES, ""), query_params.current("optimizer", OPTIMIZERS, "")
    batch = query_params.page_values().get(query_params.key_of("batch"), query_params.requested("batch"))
    lines = [f"recipe={recipe}"] if recipe else []
    lines += [f"optimizer={optimizer}"] if optimizer else []
    return lines + ([f"batch_size={batch}"] if str(batch).isdecimal() else [])


def numbers(found: Resolved | None, temperature: KnobEntry | None) -> tuple[list[str], int, list[str]]:
    """Draw temperature (a knob; None for a loss without), batch size, learning rate and seed, and what is wrong with
    them; return `key=value` lines of the chosen ones, the seed, and the errors."""
    columns = iter(st.columns(2) + st.columns(2))
    lines: list[str] = []
    wrong: list[str] = []

    def field(label: str, name: str, setting: str, usual: Any, why: str, bounds: tuple[float, float, float]) -> Any:
        low, high, step = bounds
        usually = "default" if usual is None else _("{value} (default)").format(value=f"{usual:g}")
        box, more = next(columns).number_input, {"format": "%.6g" if isinstance(low, float) else None}
        value = query_params.number(
            box,
            label,
            low,
            high,
            name=name,
            default=None,
            wrong=wrong,
            step=step,
            placeholder=usually,
            help=why,
            **more,
        )
        lines.extend([f"{setting}={value:.10g}"] if value is not None else [])
        return value

    config, reasons = (found.config, found.reasons) if found else (None, {})
    if temperature is not None:
        usual = config.loss_knobs.get("temperature", temperature["default"]) if config else None
        why = reasons.get("loss_knobs") or temperature["help"]
        field(_("Temperature τ"), "temperature", "loss.temperature", usual, why, (0.001, 100.0, 0.05))
    usual, why = config.batch_size if config else None, reasons.get("batch_size", "")
    field(_("Batch size"), "batch", "batch_size", usual, why, (2, 65536, 32))
    usual, why = config.lr if config else None, reasons.get("lr", "")
    lr = field(_("Learning rate"), "lr", "lr", usual, why, (0.0, 100.0, 0.001))
    wrong += [_("At a learning rate of 0 nothing is learned.")] if lr == 0 else []
    box = next(columns).number_input
    seed = query_params.number(box, _("Seed"), 0, 2**31 - 1, name="seed", default=0, wrong=wrong)
    for why in wrong:
        st.error(format.as_sentence(why))
    return lines, seed, wrong


def recipe_and_optimizer(found: Resolved | None, method: MethodEntry, fields: Advanced) -> list[str]:
    """Draw the recipe with the settings that the method's paper published with it, and the optimizer, at their places;
    return the `key=value` lines of those that were chosen."""
    name, reasons = (found.config.training_recipe or "", found.reasons) if found else ("", {})
    help = _(
        "Optimizer, learning rate, schedule, batch size, head and augmentations: for short runs as measured here, for "
        "CIFAR and ImageNet as published with the method. Your own settings take precedence. The default is chosen "
        "from encoder, image size and epochs."
    )
    with fields.in_recipe:
        titles = {"": _("default"), **RECIPE_TITLES}
        recipe = query_params.one_of(st.selectbox, _("Recipe"), titles, name="recipe", help=help)
        if not recipe and name:
            why = locale.text(reasons["training_recipe"])
            st.caption(_("{recipe}: {why}.").format(recipe=_(RECIPE_TITLES[name]), why=why))
        if about := method["published"].get(name):
            text = ngettext("{source}, {epochs} epoch.", "{source}, {epochs} epochs.", about["epochs"])
            st.caption(text.format(source=locale.text(about["source"]), epochs=f"{about['epochs']:,}"))
        elif name not in ("", "short"):
            st.caption(_("No such recipe was published for this method, so the values for short runs are used."))
    reason = _("{why} LARS is for batches of thousands.").format(why=locale.text(reasons.get("optimizer", "")))
    with fields.in_optimizer:
        titles = {"": _("default"), **OPTIMIZERS}
        optimizer = query_params.one_of(st.selectbox, _("Optimizer"), titles, name="optimizer", help=reason.strip())
    return [f"{key}={value}" for key, value in (("recipe", recipe), ("optimizer", optimizer)) if value]


def further_settings(has_files: bool, wrongs: list[str]) -> list[str]:
    """Draw the form of images from files, the micro-batch, and a field for settings without their own; return
    `key=value` lines."""
    lines = []
    number = partial(query_params.number, st.number_input, default=None, wrong=wrongs)
    if has_files:
        text = _(
            "224 for ImageNet and timm encoders, unless they require another size. Otherwise the median of the "
            "images' shorter sides, at most {small}."
        )
        label, hint, help = _("Image size in pixels"), _("size the encoder expects"), text.format(small=SMALL)
        size = number(label, 4, LARGEST, name="image_size", placeholder=hint, help=help)
        resize = query_params.one_of(st.selectbox, _("Resize"), RESIZE_TITLES, name="resize")
        lines += [f"image_size={size}"] if size else []
        lines += [f"resize={resize}"] if resize != RESIZES[0] else []
    help = _(
        "Number of images encoded at a time. Set it when a batch does not fit in memory: the loss still compares the "
        "whole batch, and a step takes about a third longer."
    )
    label, hint = _("Micro-batch"), _("whole batch (default)")
    micro = number(label, 2, 65536, name="micro_batch", step=32, placeholder=hint, help=help)
    lines += [f"micro_batch={micro}"] if micro is not None else []
    extra = query_params.text(
        st.text_area,
        _("Further settings, one per line"),
        name="further",
        placeholder="layer_decay=0.65\nmethod.momentum=0.99\nrecipe.views=byol",
        help=_("Settings without a field here, by their names in the settings of a run."),
    )
    return lines + [line.strip() for line in extra.splitlines() if line.strip()]


# --- the encoder ---


def choose_encoder(names: Sequence[str]) -> tuple[list[str], str]:
    """Draw the fields of the encoder; return its `key=value` lines, and why it cannot be trained."""
    runs = [run for run in state.all_runs() if run.config.get("encoder") and not run.is_recording]
    by_name = {run.name: run for run in runs if run.weights.exists()}
    words, help = {NEW: ""}, _("Another run's encoder, with its weights, instead of a new one.")
    start = query_params.one_of(
        st.selectbox, _("Start from"), [NEW, *by_name], name="start", text=lambda n: words.get(n, n), help=help
    )
    if start != NEW:
        run = by_name[start]
        name, data = str(run.config["encoder"]), format.data_of(run.config.get("dataset"))
        st.caption(format.plain(_("Its encoder is {name}, trained on {data}.").format(name=name, data=data)))
        help = _("The head after the encoder. It fits if the method's head has the same shape.")
        head = query_params.switch(st.checkbox, _("Take its head too"), name="head", help=help)
        knobs = settings_of({"encoder_knobs": run.config.get("encoder_knobs") or {}})[1::2]  # it has the run's form
        return [f"encoder={name}", f"start={run.name}", *knobs, *(["start_head=on"] if head else [])], ""
    encoder = query_params.one_of(
        st.selectbox, _("Encoder"), [*names, LIBRARY], name="encoder", text=lambda n: "other" if n == LIBRARY else n
    )
    if encoder != LIBRARY:
        return [f"encoder={encoder}"], ""
    help = _("Any model of torchvision, or of timm if it is installed. Import a file of its weights on Runs.")
    model = query_params.text(st.text_input, _("Model"), name="model", placeholder=MODELS, help=help).strip()
    if not model:
        return [], _("Enter the model's name above, for example timm:resnet18.")
    name = model if model.startswith(LIBRARIES) else f"timm:{model}"
    known: dict[str, ImportRecord | str] = st.session_state.setdefault("encoders looked up", {})  # or the error
    if name not in known:
        with st.spinner(_("Looking it up…")):
            try:
                known[name] = preview_import(name)
            except ValueError as error:
                known[name] = sentence(error)
            except OSError as error:  # of a disk or a folder, which the user can mend
                return [], sentence(error)
    if isinstance(about := known[name], str):
        return [], about
    text = _("{name} is available. It starts from random weights.")
    if pixels := about.get("pixels"):
        text = _("{name} is available. It starts from random weights and expects images of {pixels} pixels.")
    st.caption(format.plain(text.format(name=name, pixels=pixels)))
    return [f"encoder={name}"], ""
