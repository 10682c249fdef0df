"""One callback for the trainers of Lightning, Hugging Face and sentence-transformers.

    Trainer(callbacks=[WatchCallback("my-run", loss="nt_xent", temperature=0.07)])

In Lightning, `training_step` returns a dictionary with the loss and the rows: `{"loss": loss, "z": z}`. Instead of `z`
it may have `queries`, `keys` and `queue`, or `views`; optional entries are `labels`, `ids`, `losses` and `temperature`.
Hugging Face's trainers do not pass the output of the model to callbacks, so forward hooks read it while the model
trains: two `sentence_embedding`s of one step are queries and keys, and so are `image_embeds` and `text_embeds`. If a
step has several micro-batches, the last one is recorded. Losses that encode in parts (`Cached...`) are not read. Tested
in real loops of pytorch-lightning 2.6, transformers 5 and sentence-transformers 6."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_, message
from contrastive_core.recording.figures import parts_of
from contrastive_core.recording.watch import Watch, watch

# Module of a trainer, the name of its base class.
BASES = {"lightning.pytorch": "Callback", "pytorch_lightning": "Callback", "transformers": "TrainerCallback"}
ROWS: tuple[tuple[str, ...], ...] = (
    *(("image_embeds", "text_embeds"), ("sentence_embedding",), ("z",)),
    *(("embeddings",), ("queries", "keys"), ("views",)),
)
BESIDE = ("queue", "labels", "ids", "losses", "temperature")
COLUMNS = 2  # of sentences: the anchors and their positives


class WatchCallback:
    """Callback that records a training run of a `Trainer`.

    Args:
        name, loss, settings: of `watch`.
        rows: in Lightning, a function of (outputs, batch) that returns the arguments of `Watch.step`; elsewhere, a
            function of (inputs, output) of a model call that returns a tensor or several. Default: by the names above.
        encode, probe: at the end of each epoch, embed the batches of the loader `probe` with `encode(batch)`, with the
            model in evaluation mode.
    Raises: ImportError if neither Lightning nor transformers is imported."""

    def __new__(cls, *args: Any, **kwargs: Any) -> "WatchCallback":
        bases = []
        for module, base in BASES.items():
            with contextlib.suppress(AttributeError, ImportError, KeyError):
                bases.append(getattr(sys.modules[module], base))
        if not bases:
            raise ImportError(N_("WatchCallback needs Lightning or transformers; import one of them first"))
        return super().__new__(type(cls.__name__, (cls, *bases), {}))

    def __init__(
        self,
        name: str,
        loss: str | None = None,
        *,
        rows: Callable[[Any, Any], Any] | None = None,
        encode: Callable[[Any], Any] | None = None,
        probe: Iterable[Any] | None = None,
        **settings: Any,
    ) -> None:
        self._open = partial(watch, name, loss, **settings)
        self._rows, self._encode, self._probe = rows, encode, probe
        self._views, self._beside, self._hooks = list[Tensor](), dict[str, Any](), list[Any]()
        self.watch: Watch | None = None

    # --- Lightning ---

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.watch = self._open()  # only now is it known which process is the first

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.watch is None:
            return
        known = outputs if isinstance(outputs, dict) else {"loss": outputs}
        try:
            if self._rows is None:
                step = {"views": named_rows(known), **{k: known[k] for k in BESIDE if k in known}}
            else:
                step = self._rows(outputs, batch)
        except Exception as error:
            self.watch.on_error(error, "steps")
            return
        loss = known.get("loss")
        caller_loss = loss if getattr(loss, "ndim", None) == 0 else None
        self.watch.step(*step.pop("views"), caller_loss=caller_loss, **step)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None and self._encode is not None and self._probe is not None:
            self.watch.probe(self._encode, self._probe, model=pl_module)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.watch is not None:
            self.watch.__exit__(type(exception), exception, None)

    # --- transformers ---

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.watch = self._open()

        def listen(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, object], output: Any) -> None:
            if self.watch is None or not model.training or not torch.is_grad_enabled():
                return
            inputs = kwargs or (args[0] if args and isinstance(args[0], Mapping) else {})
            try:
                views = named_rows(output) if self._rows is None else self._rows(inputs, output)
                self._views += [z.detach() for z in ([views] if isinstance(views, Tensor) else views)]
            except Exception as error:
                self.watch.on_error(error, "steps")
                return
            for name, value in zip(("labels", "ids"), parts_of(inputs)[1:], strict=True):
                if value is not None:
                    self._beside.setdefault(name, value)

        self._hooks = [kwargs["model"].register_forward_hook(listen, with_kwargs=True)]

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._views, self._beside = [], {}

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        views, beside, self._views, self._beside = self._views, self._beside, [], {}
        if self.watch is None or not views:
            return
        if len(views) > COLUMNS:
            text = N_("Only the first {columns} of {views} sentence columns are recorded.")
            self.watch.omissions.remark(message(text, views=len(views), columns=COLUMNS))
        self.watch.step(*views[:COLUMNS], step=state.global_step, **beside)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.on_train_epoch_end(None, kwargs["model"])

    # --- both ---

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        if self.watch is not None:
            self.watch.close()


def named_rows(output: Any) -> list[Any]:
    """Return the rows in an output, a mapping or an object, by the first names of `ROWS` that it has. Raises
    UnusableEmbedding if it has none."""
    get = output.get if isinstance(output, Mapping) else partial(getattr, output)
    for names in ROWS:
        found = [get(name, None) for name in names]
        if names == ("views",) and isinstance(found[0], list | tuple):
            found = [*found[0]]
        if all(isinstance(z, Tensor) and z.ndim > 1 for z in found):
            return found
    known = "; ".join(" and ".join(names) for names in ROWS)
    raise UnusableEmbedding("the training step or the model returns none of {known}; pass rows=", known=known)
