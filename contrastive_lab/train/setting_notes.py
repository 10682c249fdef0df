"""What the form's settings lead to, where that is known before the training starts."""

from contrastive_core.records import BadSetting
from contrastive_core.records.setting_notes import ONE_IMAGE, Weighed
from contrastive_core.records.train_config import TrainConfig, with_settings
from contrastive_lab.train.fields import TrainChoice


def refusal(choice: TrainChoice, settings: list[str]) -> str:
    """Why nothing would be learned; "" if something is. `settings`: lines of `key=value`."""
    config = _config(choice, settings)
    if config is not None and config.batch_size == 1:
        return ONE_IMAGE
    return _weighed(choice, config).refusal() if config else ""


def notes(choice: TrainChoice, settings: list[str]) -> list[str]:
    """A sentence for each thing to know of settings that can be trained."""
    config = _config(choice, settings)
    if config is None:
        return []
    usual = _weighed(choice, TrainConfig(choice.method, choice.data))
    return _weighed(choice, config).notes((usual.dimensions, usual.batch))


def _config(choice: TrainChoice, settings: list[str]) -> TrainConfig | None:
    """None for lines that are wrong, which stands beside them."""
    try:
        return with_settings(TrainConfig(choice.method, choice.data), settings)
    except BadSetting:
        return None


def _weighed(choice: TrainChoice, config: TrainConfig) -> Weighed:
    card, loss = choice.catalog["methods"][choice.method], config.loss or choice.loss
    about = choice.catalog["losses"].get(loss)
    if about is None:
        return Weighed()
    knobs = {name: knob["default"] for name, knob in about["knobs"].items()}
    knobs |= card["loss_knobs"] if loss == card["default_loss"] else {}
    dim = int(config.method_knobs.get("dim", card["knobs"]["dim"]["default"]))
    batch = config.batch_size or choice.usual("batch_size")[0] or 0
    return Weighed(about["terms"], {**knobs, **config.loss_knobs}, about["matrix"], dim, batch)
