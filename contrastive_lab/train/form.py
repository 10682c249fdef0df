"""The training form: method, data, settings and Start, and a preview of the views."""

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from contrastive_core.engine import queue, training
from contrastive_core.engine.images import datasets, image_list, name_of, torchvision_sets, values_of
from contrastive_core.records import BadSetting, Locked
from contrastive_lab import cache, format, guard, locale, number_inputs, query_params
from contrastive_lab.locale import N_, _
from contrastive_lab.path_input import path_input
from contrastive_lab.progress import catalog_or_wait
from contrastive_lab.train import folder_picker, setting_notes
from contrastive_lab.train.encoder import Encoder, choose_encoder, opened_weights, wrong_start
from contrastive_lab.train.expected import expected
from contrastive_lab.train.fields import (
    OPTIMIZERS,
    TrainChoice,
    numbers,
    optimizing,
    views_recipe,
    wrong_name,
    wrong_settings,
)
from contrastive_lab.train.folder import training_images, with_change, wrong_batch, wrong_folder
from contrastive_lab.train.image_size import (
    as_options,
    cache_setting,
    image_form,
    on_disk,
    size_of_run,
    streamed,
    wrong_size,
)
from contrastive_lab.train.recipe import choose_recipe, followed
from contrastive_lab.train.text_tower import choose_text_tower
from contrastive_lab.train.watch import watch_next

FOLDER = N_("folder of images…")
NO_CLASSES = N_("none: no classes")
DEFAULT_LOSS = N_("the method's own")
KNOWN_CHANNELS = {"digits": 1, "mnist": 1, "fashion_mnist": 1, "shapes": 3, "cifar10": 3, "cifar100": 3, "stl10": 3}
STARTED = N_("runs that were started here")


@dataclass(frozen=True)
class Data:
    """`name` as the command line takes it; "" while a folder is chosen and none is named."""

    name: str
    download: bool = False
    fetch: bool = False  # it is not on this machine
    method: str = ""  # that is chosen to be trained on them; "" while it is not known

    @property
    def files(self) -> str:
        """Where its images lie, if a folder or a list of them is chosen."""
        return self.name.partition(":")[2] if datasets.is_files(self.name) else ""


def form() -> Data:
    """Five fields, the rest under Advanced; returns the data and the method that are chosen."""
    first = st.container()
    data = choose_data()  # drawn at once, with what it holds
    if catalog := catalog_or_wait():
        titles = {name: card["title"] for name, card in catalog["methods"].items()}
        method = query_params.one_of(
            first.selectbox, _("Method"), titles, name="method", default="simclr", format_func=titles.get
        )
        settings(catalog, method, data)
        data = replace(data, method=method)
    return data


def _further_settings() -> list[str]:
    """Settings without a field: of the views, and as lines of text, which override them."""
    extra = query_params.text(
        st.text_area,
        _("Further settings, one a line"),
        name="further",
        placeholder="loss.margin=0.2\nmethod.momentum=0.99\nrecipe.crop_low=0.2",
        help=_("Settings that have no field here, by the names that a run's settings have."),
    )
    return views_recipe() + [line.strip() for line in extra.splitlines() if line.strip()]


def _choice(catalog: dict[str, Any], method: str, data: Data, recipe: str) -> TrainChoice:
    loss = query_params.current("loss", catalog["losses"], DEFAULT_LOSS)
    own = catalog["methods"][method]["default_loss"] if loss == DEFAULT_LOSS else loss
    optimizer = query_params.current("optimizer", OPTIMIZERS, "")
    n_train = training_images(data.files) if data.files else 0
    return TrainChoice(catalog, method, own, data.name, optimizer, n_train, recipe)


def settings(catalog: dict[str, Any], method: str, data: Data) -> None:
    """How to train it; Start, or a look at its views. What is known to fail is not started."""
    epochs = number_inputs.number(st.number_input, _("Epochs"), 1, 10_000, name="epochs", default=20)
    recipe = followed(data.name, epochs)
    choice = _choice(catalog, method, data, recipe.name)
    chosen, seed, why = numbers(choice)
    wrong = [why, _error(wrong_name(name := _name()))]
    with st.expander(_("Advanced")):
        own = choose_recipe(recipe, choice.published)
        arguments, encoder, beside = advanced(catalog, choice)
        wrong.append(_error(encoder.wrong))
        form = image_form() if data.files else []
        below = st.container()
        further = own + _further_settings()
        side = size_of_run(data.files, encoder, form, further) if data.files else None
        stored = cache_setting(further)
        if data.files and (text := (side and streamed(data.files, form, side, stored)) or on_disk(data.files, side)):
            below.caption(text)
        wrong_lines = wrong_settings(choice, further) or setting_notes.refusal(choice, chosen + further)
        wrong += [_error(wrong_lines), wrong_start(encoder, channels_of(data), further)]
    wrong += [_error(wrong_size(data.files, form, side, stored) if side else "")]
    wrong += _wrong_images(catalog["methods"][method], data, chosen + further)
    expected(data.name, method, encoder.name, epochs, [*form, *chosen, *further])
    why = next(filter(None, [*wrong, number_inputs.wrong_number()]), "")
    for note in [] if why else setting_notes.notes(choice, chosen + further):
        st.info(format.plain(note))
    row, is_off, why = st.container(horizontal=True), bool(why) or not data.name, format.plain(why)
    go = row.button(_("Start"), type="primary", icon=":material/play_arrow:", key="start", disabled=is_off, help=why)
    look = row.button(_("See its views"), icon=":material/visibility:", key="see-views", disabled=is_off, help=why)
    if is_off:  # also for a press that came with the number that is wrong
        return
    if look:
        values = {"method": method, "dataset": data.name, "set": [*form, *further]}
        st.session_state["preview"] = with_change(values)
    elif go:
        st.session_state.pop("preview", None)
        arguments += [*as_options(form), "--method", method, "--dataset", data.name, "--epochs", str(epochs)]
        arguments += ["--seed", str(seed), *(["--download"] if data.download else []), *_as_options(chosen + further)]
        free = queue.free_name(f"{method}-{'folder' if data.files else data.name}-s{seed}")
        start(name or free, arguments, encoder, data, beside)


def _wrong_images(card: Any, data: Data, settings: list[str]) -> list[str]:
    """Why a method with this card cannot use the data, and why a batch does not fit; "" where they do."""
    return [_error(wrong_data(card, data)), _error(wrong_batch(data.files, settings) if data.files else "")]


def _as_options(settings: list[str]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def _name() -> str:
    key = f"train-name-{st.session_state.get(STARTED, 0)}"  # a new field once it was used
    typed = query_params.text(st.text_input, _("Name"), name="called", key=key, placeholder=_("made from the settings"))
    return typed.strip()


def _error(why: str) -> str:
    """An error stands beside its field."""
    if why:
        st.error(format.plain(why))
    return why


def wrong_data(method: dict[str, Any], data: Data) -> str:
    """Why this method cannot be trained on these data, as far as is known."""
    if not data.name:
        return ""  # the field above says what to do
    if data.fetch and not data.download:
        return _("{name} is not on this machine: tick Fetch above, or choose other data.").format(name=data.name)
    if data.files:
        needs = [method["title"] if method[kind] else "" for kind in ("needs_labels", "needs_captions")]
        return wrong_folder(data.files, *needs)
    return str(method["problems"].get(data.name) or "")


def choose_data() -> Data:
    """A data set by name, with what it takes to fetch it, or a folder of images."""
    names = ["digits", "shapes", *torchvision_sets.SIZES, FOLDER]
    name = query_params.one_of(
        st.selectbox, _("Data"), names, name="data", text=lambda n: "folder" if n == FOLDER else n
    )
    if name == FOLDER:
        folder_picker.take_over_drop("path-folder")
        folder = path_input(
            _("Folder (one folder per class, or images only)"),
            "folder",
            placeholder="/path/to/images",
            help=_("Or the path of a list of images (.csv with the columns file, label and split)."),
        )
        folder_picker.browser("path-folder")
        if folder:
            folder_picker.show_left_out(folder)
        else:
            folder_picker.drop_zone()
        return Data(with_label(name_of(folder)) if folder else "")
    # Its files are here, or its images already decoded.
    if name not in torchvision_sets.SIZES or torchvision_sets.is_there(name, None) or datasets.is_made(name, "train"):
        return Data(name)
    size = _("{sizes} MB").format(sizes=f"{torchvision_sets.SIZES[name]:,}")
    fetch = st.checkbox(
        _("Fetch {name}: {size}").format(name=name, size=size), help=_("It is not on this machine yet.")
    )
    return Data(name, fetch, True)


def with_label(name: str) -> str:
    """A list of images has a column for its classes: that which is chosen."""
    path, column = image_list.list_and_column(name.removeprefix("csv:"))
    if not name.startswith("csv:") or column:
        return name
    try:
        columns = image_list.columns_of(path)
    except BadSetting:  # what the folder holds says so
        return name
    if columns in ([], [image_list.LABEL]):
        return name
    usual = image_list.LABEL if image_list.LABEL in columns else NO_CLASSES
    options = [usual, *(c for c in columns if c != usual)]
    chosen = st.selectbox(
        _("Classes are in the column"),
        options,
        key="train-label-column",
        format_func=lambda c: locale.text(c) if c == NO_CLASSES else c,  # else a name of the file's
    )
    return name if chosen == usual else f"{name}#{chosen}"


def advanced(catalog: dict[str, Any], choice: TrainChoice) -> tuple[list[str], Encoder, bool]:
    """Loss, optimizer, encoder, text tower and GPUs as arguments; the encoder; whether to wait for what is training."""
    titles = {name: about["title"] for name, about in catalog["losses"].items()}
    loss = query_params.one_of(
        st.selectbox,
        _("Loss"),
        [DEFAULT_LOSS, *catalog["losses"]],
        name="loss",
        format_func=lambda name: titles.get(name, name),
    )
    settings = optimizing(choice)
    encoder = choose_encoder(catalog["encoders"])
    tower, wrong = choose_text_tower(catalog["methods"][choice.method]["needs_captions"])
    encoder = replace(encoder, wrong=encoder.wrong or wrong)
    processes = 1
    if (count := training.gpus()) > 1:
        processes = number_inputs.number(
            st.number_input,
            _("GPUs"),
            1,
            count,
            name="gpus",
            default=1,
            help=_("The batch is shared out: loss and weights stay."),
        )
    beside = query_params.switch(st.checkbox, _("Start now, parallel to the current run"), name="beside")
    arguments = ["--encoder", encoder.name, *encoder.arguments, *_as_options(settings + tower)]
    arguments += ["--loss", loss] if loss != DEFAULT_LOSS else []
    arguments += ["--processes", str(processes)] if processes > 1 else []
    return arguments, encoder, beside


def channels_of(data: Data) -> int | None:
    """Channels of the images, as far as they are known: color shows in some images of a folder."""
    if not data.files:
        return KNOWN_CHANNELS.get(data.name)
    preview = cache.result("folder", values_of(data.files))
    if preview is not None and (channels := preview.meta.get("channels")):
        return int(channels)
    images = None if preview is None else preview.arrays["images"]
    return 3 if images is not None and (images[:, :1] != images).any() else None


def start(name: str, arguments: list[str], encoder: Encoder, data: Data, beside: bool) -> None:
    """Open the weights that it begins with, if there are any, and train."""
    try:
        arguments = [*arguments, *(opened_weights(encoder, data.name) if encoder.weights else [])]
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(_("The weights were not opened. {error}").format(error=error)))
        return
    with guard.errors_shown():
        (queue.start_now if beside else queue.enqueue)(name, arguments)
        watch_next(name)
        st.session_state[STARTED] = st.session_state.get(STARTED, 0) + 1
        st.rerun()
