"""A training that starts from another run's weights: its encoder, and its head where that is asked
for. A vision transformer made for other images gets its position embedding resized.
"""

from __future__ import annotations

from torch import Tensor, nn

from contrastive_core import runs
from contrastive_core.errors import BadSetting
from contrastive_core.methods import Method
from contrastive_core.models.libraries import LIBRARIES, resized
from contrastive_core.runs import checkpoints
from contrastive_core.training.config import TrainConfig
from contrastive_core.training.start_fits import misfit

__all__ = ["start_from"]

BODY = "body."


def start_from(method: Method, config: TrainConfig) -> None:
    """Give encoder and head (and those of the keys) the weights of the run `config.start`.

    Raises: BadSetting where they have another form than these, or learned from images of another
        kind.
    """
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
    advice = f"choose the encoder and data set that {name} was trained with"
    for part in ("encoder", "key_encoder"):
        _load(getattr(method, part, None), encoder, f"the encoder of {name}", advice)
    if config.start_head:
        head = _under(weights, "head.")
        advice = "choose the settings of its head, or leave start_head off for a new one"
        for part in ("head", "key_head"):
            _load(getattr(method, part, None), head, f"the head of {name}", advice)


def _load(module: nn.Module | None, state: dict[str, Tensor], what: str, advice: str) -> None:
    if module is None:
        return
    try:
        module.load_state_dict(state)
    except RuntimeError:
        raise BadSetting(f"{what} has another form than this one; {advice}") from None


def _under(weights: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    return {k.removeprefix(start): v for k, v in weights.items() if k.startswith(start)}
