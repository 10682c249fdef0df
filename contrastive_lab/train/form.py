"""The training form: method, data, settings and Start; with estimates of its time, from a similar earlier training on
this machine, and of its space on the disk."""

import shutil
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core import runs
from contrastive_core.base.cards import Catalog, MethodEntry
from contrastive_core.base.errors import Locked
from contrastive_core.base.storage import data_home
from contrastive_core.data import datasets, named_sets
from contrastive_core.data.dataset import SMALL, DatasetInfo, form_of
from contrastive_core.data.folder_selection import name_of, values_of
from contrastive_core.data.image_cache import space_of
from contrastive_core.data.image_sets import allowed_space
from contrastive_core.engine import queue, training
from contrastive_core.engine.calls import resolved_settings
from contrastive_core.runs import stem_of
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import Resolved, TrainConfig, as_options, literal, usual_epochs, with_settings
from contrastive_lab import cache, format, guard, query_params
from contrastive_lab.locale import N_, _, sentence
from contrastive_lab.path_input import path_input
from contrastive_lab.progress import catalog_or_wait
from contrastive_lab.setting_names import shown_name, shown_value
from contrastive_lab.train import folder as folders
from contrastive_lab.train.adviser import adviser_card
from contrastive_lab.train.augmentations import choose_steps, is_quick
from contrastive_lab.train.fields import (
    Encoder,
    choose_encoder,
    choose_optimizer,
    choose_recipe,
    choose_text_tower,
    chosen_before,
    decay_and_micro_batch,
    further_settings,
    image_form,
    numbers,
    opened_weights,
    wrong_name,
)
from contrastive_lab.train.folder import Data, facts_of, with_label, wrong_folder
from contrastive_lab.train.watch import watch_next

FOLDER = N_("folder of images…")
EXAMPLES = (64, 224)  # pixels of a side
DEFAULT_LOSS = N_("the method's default")
STARTED = N_("runs started here")


@dataclass(frozen=True)
class Draft:
    """The run to start from the form, as the stage shows it."""

    data: Data
    method: str = ""  # "" while it is not known
    card: MethodEntry = field(default_factory=MethodEntry)
    config: TrainConfig | None = None  # resolved, where that is possible
    views: list[str] = field(default_factory=list)  # settings that its views depend on
    is_off: bool = True  # it cannot be started as it is


@dataclass(frozen=True)
class Advanced:
    """The choices in the advanced fields: `lines` and `further` are `key=value`."""

    loss: str
    lines: list[str]
    encoder: Encoder
    wrong_tower: str
    processes: int
    beside: bool
    form: list[str]
    on_disk: DeltaGenerator
    further: list[str]
    in_recipe: DeltaGenerator
    in_optimizer: DeltaGenerator


def form(subject: DeltaGenerator, chips: DeltaGenerator) -> Draft:
    """Draw method and epochs, the rest in a popover, and Start at the end. Args: subject and chips: containers of the
    toolbar, for the data set and for the augmentations."""
    st.header(_("New run"))
    first = st.container()
    data = choose_data(subject)  # drawn at once, with what it holds
    if (catalog := catalog_or_wait()) is None:
        return Draft(data)
    titles = {name: card["title"] for name, card in catalog["methods"].items()}
    method = query_params.one_of(
        first.selectbox, _("Method"), titles, name="method", default="simclr", format_func=titles.get
    )
    return settings(catalog, method, data, chips)


def settings(catalog: Catalog, method: str, data: Data, chips: DeltaGenerator) -> Draft:
    """Draw the settings and Start, which is disabled for settings known to fail. Fields whose defaults depend on others
    are drawn after those, at their places above."""
    card, usual = catalog["methods"][method], usual_epochs(method, data.name)
    epochs = query_params.number(st.number_input, _("Epochs"), 1, 10_000, name="epochs", default=usual)
    with st.popover(_("Temperature, batch, rate, seed, name"), width="stretch", key="train-more"):
        in_numbers = st.container(key="train-numbers")  # wide enough for their defaults (app.py)
        name = _name()
        fields = advanced(catalog, card, data)
    errors, facts = st.container(), facts_of(data)
    begun = ["recipe=short"] if fields.encoder.weights else []
    asked = [f"epochs={epochs}", *begun, *fields.lines, *fields.form, *chosen_before(), *fields.further]
    found, wrong = resolved(method, data.name, facts, asked)
    config = found.config if found else None
    with fields.in_recipe:
        own = choose_recipe(found, card)
    with fields.in_optimizer:
        own += choose_optimizer(found)
    with in_numbers:
        loss = card["default_loss"] if fields.loss == DEFAULT_LOSS else fields.loss
        chosen, seed, wrong_rate = numbers(found, catalog["losses"][loss]["knobs"].get("temperature"))
    with chips:
        switched = choose_steps(config, facts.image_shape[0]) if config and facts else []
    if changed := [*fields.lines[: fields.loss != DEFAULT_LOSS], *chosen, *fields.further]:
        errors.caption(format.plain(_in_words(changed)))
    with errors:
        wrongs = (wrong_name(name), wrong_rate, fields.encoder.wrong, fields.wrong_tower, wrong)
        problems = [*map(_error, wrongs)]
        problems.append(_error(wrong_data(card, data)))
        problems.append(_error(wrong_size(data.files, config) if config and data.files else ""))
        problems.append(_error(found.refusal if found else ""))
    if data.files:
        for text in about_disk(data.files, config):
            fields.on_disk.caption(text)
    why = next(filter(None, problems), "")
    for note in () if why or found is None else found.notes:
        st.info(format.plain(note))
    is_off, preview = bool(why) or not data.name, [*fields.form, *fields.further, *switched]
    draft = Draft(data, method, card, config, [] if is_off else preview, is_off)
    if data.name and not data.download:
        adviser_card(data.name, method, config, is_quick(data.name, config))
    with st.container(key="train-next"):
        expected(config, data.name)
        icon, help = ":material/play_arrow:", format.plain(why)
        go = st.button(_("Start"), "start", help, type="primary", icon=icon, disabled=is_off, width="stretch")
    if go and not is_off:  # a press can come with the number that is wrong
        lines = [f"method={method}", f"dataset={data.name}", f"epochs={epochs}", f"seed={seed}"]
        more = [*fields.further, *switched]
        arguments = as_options([*lines, *fields.lines, *fields.form, *own, *chosen, *more])
        arguments += ["--processes", str(fields.processes)] if fields.processes > 1 else []
        free = queue.free_name(stem_of(method, data.name, seed, chosen + more))
        start(name or free, arguments + ["--download"] * data.download, fields, data)
    return draft


def advanced(catalog: Catalog, card: MethodEntry, data: Data) -> Advanced:
    """Draw the advanced fields, with placeholders for those whose defaults depend on them."""
    with st.expander(_("Advanced")):
        in_recipe = st.container()
        loss = choose_loss(catalog)
        in_optimizer = st.container()
        lines = [f"loss={loss}"] if loss != DEFAULT_LOSS else []
        lines += decay_and_micro_batch()
        encoder = choose_encoder(catalog["encoders"])
        tower, wrong_tower = choose_text_tower(card["needs_captions"])
        lines += tower if encoder.wrong else [f"encoder={encoder.name}", *encoder.settings, *tower]
        processes, beside = choose_processes()
        form = image_form() if data.files else []
        return Advanced(
            loss=loss,
            lines=lines,
            encoder=encoder,
            wrong_tower=wrong_tower,
            processes=processes,
            beside=beside,
            form=form,
            on_disk=st.container(),
            further=further_settings(),
            in_recipe=in_recipe,
            in_optimizer=in_optimizer,
        )


def resolved(method: str, data: str, facts: DatasetInfo | None, lines: list[str]) -> tuple[Resolved | None, str]:
    """Return the settings of the form as resolved by the worker, or their error; neither while the images are being
    counted. Args: lines: `key=value`."""
    config = TrainConfig(method, data)
    try:
        config = with_settings(config, lines)
        if (config.method, config.dataset) != (method, data):
            return None, _("method and dataset are chosen above")
        return (resolved_settings(config, facts), "") if facts else (None, "")
    except (ValueError, OSError) as error:
        return None, sentence(error)


def _name() -> str:
    key = f"train-name-{st.session_state.get(STARTED, 0)}"  # a new field once it was used
    typed = query_params.text(st.text_input, _("Name"), name="called", key=key, placeholder=_("made from the settings"))
    return typed.strip()


def _in_words(lines: list[str]) -> str:
    """Describe the values of fields that are not visible."""
    pairs = [line.removeprefix("loss.").partition("=")[::2] for line in lines]
    return " · ".join(
        cache.loss_title(value) if key == "loss" else f"{shown_name(key)} {shown_value(literal(value))}"
        for key, value in pairs
    )


def _error(why: str) -> str:
    """Draw an error beside its field, and return it."""
    if why:
        st.error(format.plain(why))
    return why


def wrong_data(method: MethodEntry, data: Data) -> str:
    """Return the reason why these data cannot be trained on, if their facts do not tell it."""
    if not data.name:
        return ""  # the field above says what to do
    if data.fetch and not data.download:
        return _("{name} is not on this machine: tick Fetch above, or choose other data.").format(name=data.name)
    return wrong_folder(data.files, method["title"] if method["needs_captions"] else "") if data.files else ""


def choose_data(subject: DeltaGenerator) -> Data:
    """Draw the choice of a data set by name, with its download if necessary, or of a folder of images. Args: subject:
    container of the choice itself."""
    names = ["digits", "shapes", *named_sets.SIZES, FOLDER]
    name = query_params.one_of(
        subject.selectbox, _("Data"), names, name="data", text=lambda n: "folder" if n == FOLDER else n, width=200
    )
    if name == FOLDER:
        folders.take_over_drop("path-folder")
        folder = path_input(
            _("Folder (one folder per class, or images only)"),
            "folder",
            placeholder="/path/to/images",
            help=_("Or the path of a list of images (.csv with the columns file, label and split)."),
        )
        folders.browser("path-folder")
        if folder:
            folders.show_left_out(folder)
        return Data(with_label(name_of(folder)) if folder else "")
    # Its files are here, or its images already decoded.
    if name not in named_sets.SIZES or named_sets.is_there(name, None) or datasets.is_made(name, "train"):
        return Data(name)
    size = _("{sizes} MB").format(sizes=f"{named_sets.SIZES[name]:,}")
    fetch = st.checkbox(
        _("Fetch {name}: {size}").format(name=name, size=size), help=_("It is not on this machine yet.")
    )
    return Data(name, fetch, True)


def choose_loss(catalog: Catalog) -> str:
    """Let the user choose a loss, by default the method's own; return its name."""
    titles = {name: about["title"] for name, about in catalog["losses"].items()}
    options = [DEFAULT_LOSS, *titles]
    return query_params.one_of(
        st.selectbox, _("Loss"), options, name="loss", format_func=lambda name: titles.get(name, name)
    )


def choose_processes() -> tuple[int, bool]:
    """Draw the number of GPUs, and whether to start beside running trainings; return both."""
    processes, help = 1, _("The batch is split across the GPUs; loss and weights stay the same.")
    if (count := training.gpus()) > 1:
        processes = query_params.number(st.number_input, _("GPUs"), 1, count, name="gpus", default=1, help=help)
    return processes, query_params.switch(st.checkbox, _("Start now, parallel to the current run"), name="beside")


def start(name: str, arguments: list[str], fields: Advanced, data: Data) -> None:
    """Import the weights to start from, if any, and start the training."""
    encoder = fields.encoder
    try:
        arguments = [*arguments, *(opened_weights(encoder, data.name) if encoder.weights else [])]
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(_("The weights were not opened. {error}").format(error=error)))
        return
    with guard.errors_shown():
        (queue.start_now if fields.beside else queue.enqueue)(name, arguments)
        watch_next(name)
        st.session_state[STARTED] = st.session_state.get(STARTED, 0) + 1
        st.rerun()


# --- its time, and its space on the disk ---


def expected(config: TrainConfig | None, data: str) -> None:
    """Draw the estimated time, or a note that no similar run was trained here. `config`: resolved settings."""
    names = ("dataset", "method", "encoder", "batch_size", "image_size")
    for run in runs.list_runs() if config else ():
        is_same = all(run.config.get(name) == getattr(config, name) for name in names)
        if not (is_same and config) or run.shipped or run.is_recording:
            continue
        path = run.path / "metrics.jsonl"
        if rate := _seconds_per_epoch(str(path), path.stat().st_mtime_ns if path.exists() else 0, run):
            each = f"{rate:.2g} s" if rate < 10 else format.duration(rate)
            text = _("About {epochs}, estimated from {each} per epoch of {name} on this machine.")
            st.caption(
                format.plain(text.format(epochs=format.duration(config.epochs * rate), each=each, name=run.name))
            )
            return
    if data:
        st.caption(_("No time estimate yet: nothing similar was trained on this machine."))


@st.cache_data(max_entries=64, show_spinner=False)
def _seconds_per_epoch(path: str, changed: int, _run: Run) -> float | None:
    """Return the seconds of a run's last measured epoch, cached until its metrics change; None if there is none."""
    lines = [x for x in _run.metrics() if x.get("seconds") and x.get("epoch")]
    return float(lines[-1]["seconds"]) / int(lines[-1]["epoch"]) if lines else None


def wrong_size(folder: str, config: TrainConfig) -> str:
    """Return the reason why decoded images do not fit on the disk."""
    free = _free_space()
    if config.cache != "memory-map" or not (beyond := _beyond(folder, config, free)):
        return ""
    return _(
        "Decoded at {side} pixels, {n} images take {needed} GB, and {free} GB are free: choose a smaller size."
    ).format(side=config.image_size, n=f"{beyond[0]:,}", needed=f"{beyond[1] / 1e9:,.1f}", free=f"{free / 1e9:,.1f}")


def about_disk(folder: str, config: TrainConfig | None) -> list[str]:
    """Describe the disk space of the decoded images, at two common sizes if theirs is unknown; or that none is used."""
    if (result := cache.result("folder", values_of(folder))) is None:
        return []
    try:
        allowed = allowed_space(data_home())
    except ValueError as error:
        return [sentence(error)]
    if config and (config.cache == "stream" or (config.cache == "auto" and _beyond(folder, config, allowed))):
        return [_("The images are decoded again in each epoch of training. Nothing is stored on disk.")]
    n, channels = sum(map(sum, result.meta["counts"])), result.meta.get("channels")
    template = _("{n} images of {channels} channels") if channels else _("{n} images in color")
    images, at_side = template.format(n=f"{n:,}", channels=channels), _("{space_of} MB at {side} pixels")
    sides = (config.image_size,) if config and config.image_size else EXAMPLES
    sizes = [at_side.format(space_of=f"{space_of(n, at, channels or 3) / 1e6:,.0f}", side=at) for at in sides]
    free, text = f"{_free_space() / 1e9:,.0f}", _("Decoded once, {images} take {sizes}; {free} GB are free.")
    return [text.format(images=images, sizes=", ".join(sizes), free=free)]


def _beyond(folder: str, config: TrainConfig, allowed: float) -> tuple[int, int] | None:
    """Return the number of images to decode and their bytes if these exceed the allowed space; else None."""
    if (result := cache.result("folder", values_of(folder))) is None:
        return None
    parts = {split: sum(counts[i] for counts in result.meta["counts"]) for i, split in enumerate(("train", "test"))}
    form, channels = form_of(config.to_dict()), result.meta.get("channels") or 3
    side = form.size or SMALL
    if space_of(sum(parts.values()), side, channels) < allowed:
        return None
    n = sum(k for split, k in parts.items() if not datasets.is_made(name_of(folder), split, form))
    needed = space_of(n, side, channels)
    return (n, needed) if n and needed >= allowed else None


def _free_space() -> int:
    """Return the free bytes on the disk of decoded images."""
    home = data_home()
    return shutil.disk_usage(next(path for path in (home, *home.parents) if path.exists())).free
