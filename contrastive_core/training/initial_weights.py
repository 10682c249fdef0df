"""Weights from another run: its encoder, and its head on request. The position embedding of a vision
transformer made for other images is resized.
"""

from __future__ import annotations

from torch import Tensor, nn

from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.methods import Method
from contrastive_core.models.libraries import LIBRARIES, resized
from contrastive_core.records import runs
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.runs import checkpoints
from contrastive_core.training.starting_run import misfit

BODY = "body."


def load_initial_weights(method: Method, config: TrainConfig) -> None:
    """Load the weights of the run `config.start` into encoder and head (and those of the keys). Raises: BadSetting if
    their shapes differ, or if they learned from images of another kind."""
    name = str(config.start)
    run = runs.load(name)
    if why := misfit(run, method.image_shape[0], config.encoder_knobs):
        raise BadSetting(why)
    weights = checkpoints.load_weights(run)
    encoder = _under(weights, "encoder.")
    if config.encoder.partition(":")[0] in LIBRARIES:
        body = method.encoder.get_submodule("body")
        state = resized(config.encoder, body, _under(encoder, BODY))
        encoder = {f"{BODY}{k}": v for k, v in state.items()}
    advice: str = message("choose the encoder and data set that {name} was trained with", name=name)
    for part in ("encoder", "key_encoder"):
        _load(getattr(method, part, None), encoder, message("the encoder of {name}", name=name), advice)
    if config.start_head:
        head = _under(weights, "head.")
        advice = N_("choose the settings of its head, or leave start_head off for a new one")
        for part in ("head", "key_head"):
            _load(getattr(method, part, None), head, message("the head of {name}", name=name), advice)


def _load(module: nn.Module | None, state: dict[str, Tensor], what: str, advice: str) -> None:
    if module is None:
        return
    try:
        module.load_state_dict(state)
    except RuntimeError:
        raise BadSetting("{what} has another form than this one; {advice}", what=what, advice=advice) from None


def _under(weights: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    return {k.removeprefix(start): v for k, v in weights.items() if k.startswith(start)}
