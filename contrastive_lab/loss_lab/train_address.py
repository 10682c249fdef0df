"""Links from the Loss Lab to a training: a run's method and data with the loss and knobs of the page."""

import json

from contrastive_core.base.cards import LossEntry
from contrastive_core.base.registry import Knobs
from contrastive_core.data import datasets
from contrastive_core.data.dataset import KNOWN
from contrastive_core.runs.run import Run
from contrastive_lab import cache, path_input


def can_train(run: Run) -> bool:
    """Return whether Train supports the run's method and data; not for recordings, imported runs and two towers."""
    data = str(run.config.get("dataset"))
    is_other = run.is_recording or run.has_towers or "imported" in run.manifest
    is_known = str(run.config.get("method")) in cache.catalog()["methods"] and (
        data in KNOWN or datasets.is_files(data)
    )
    return is_known and not is_other


def train_address(run: Run, loss: str, about: LossEntry, knobs: Knobs) -> dict[str, str]:
    """Return the URL parameters of the Train page for such a run with this loss and these knobs. Raises OSError. Args:
    about: the loss's entry in the catalog."""
    method = str(run.config["method"])
    card = cache.catalog()["methods"][method]
    own = {*card["loss_knobs"], *(run.config.get("loss_knobs") or {})}  # whose defaults may be the method's
    changed = {n: v for n, v in knobs.items() if v is not None and (n in own or v != about["knobs"][n]["default"])}
    texts = {
        n: f"{v:.10g}" if isinstance(v, float) else v if isinstance(v, str) else json.dumps(v)
        for n, v in changed.items()
    }
    address = {"method": method, "loss": loss, **path_input.address_of(str(run.config["dataset"]))}
    if "temperature" in texts:  # which has a field of its own
        address["temperature"] = texts.pop("temperature")
    return address | ({"further": "\n".join(f"loss.{n}={v}" for n, v in texts.items())} if texts else {})
