"""A Lightning callback: `Trainer(callbacks=[WatchCallback("my-run", loss="nt_xent")])`.

`training_step` returns a dictionary with the loss and the rows: `{"loss": loss, "z": z}`, with
`queries`, `keys` and `queue`, or `views`, in their place, and `labels`, `ids`, `losses` and
`temperature` beside them. Tested in a real loop of pytorch-lightning 2.6, which comes with lightly.
"""

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

from contrastive_core.messages import N_
from contrastive_core.recording.watch import Watch, watch

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
ROWS = (("z",), ("embeddings",), ("queries", "keys"), ("views",))
BESIDE = ("queue", "labels", "ids", "losses", "temperature")


def _callback() -> Any:
    """Lightning's base class, of the package that is in use."""
    for package in (*(p for p in PACKAGES if p in sys.modules), *PACKAGES):
        with contextlib.suppress(ImportError):
            return importlib.import_module(package).Callback
    raise ImportError(N_("WatchCallback needs lightning or pytorch-lightning; install one of them"))


class WatchCallback(_callback()):  # type: ignore[misc]
    """Records while a `Trainer` trains.

    Args:
        name, loss, settings: of `watch`.
        rows: what `Watch.step` gets, made of (outputs, batch); default: by the names above.
        encode, probe: at the end of each epoch the rows of a fixed set, `encode(batch)` for the
            batches of the loader `probe`; the module is in evaluation mode meanwhile.
    """

    def __init__(
        self,
        name: str,
        loss: str | None = None,
        *,
        rows: Callable[[Any, Any], dict[str, Any]] | None = None,
        encode: Callable[[Any], Any] | None = None,
        probe: Iterable[Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._open = lambda: watch(name, loss, **settings)
        self._rows, self._encode, self._probe = rows or rows_of, encode, probe
        self.watch: Watch | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.watch = self._open()  # only now is it known which process is the first

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.watch is None:
            return
        try:
            given = self._rows(outputs, batch)
        except Exception as error:
            self.watch.on_error(error, "steps")
            return
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        caller_loss = loss if getattr(loss, "ndim", None) == 0 else None
        self.watch.step(*given.pop("views"), caller_loss=caller_loss, **given)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None and self._encode is not None and self._probe is not None:
            self.watch.probe(self._encode, self._probe, model=pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None:
            self.watch.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.watch is not None:
            self.watch.__exit__(type(exception), exception, None)


def rows_of(outputs: Any, batch: Any) -> dict[str, Any]:
    """What a step gets of what `training_step` returned. Raises ValueError where it has no rows."""
    known = outputs if isinstance(outputs, dict) else {}
    names = next((names for names in ROWS if all(n in known for n in names)), None)
    if names is None:
        raise ValueError(N_('training_step must return its rows, as {"loss": loss, "z": z}; or give rows='))
    views = known["views"] if names == ("views",) else [known[n] for n in names]
    views = list(views) if isinstance(views, list | tuple) else [views]
    return {"views": views, **{k: known[k] for k in BESIDE if k in known}}
