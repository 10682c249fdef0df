"""The command `doctor loop`: compares a saved batch of a training loop with the declared loss."""

from argparse import Namespace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from contrastive_core import losses
from contrastive_core.base.safe_files import printable, read_regular
from contrastive_core.cli.output import print_result
from contrastive_core.recording.doctor import diagnose
from contrastive_core.recording.loop_checks import CheckCopy, precision_of
from contrastive_core.recording.steps import Omissions, copy_step

LARGEST = 1 << 30  # bytes
BESIDE = ("labels", "ids", "temperature", "bias")


def check_loop(args: Namespace) -> int:
    """Print the setting or fault that explains the file's loss and gradient; return 1 for faults. Raises ValueError."""
    if not args.file or not args.loss:
        raise ValueError("doctor loop needs a file and --loss: doctor loop step.safetensors --loss nt_xent")
    knobs = dict(entry.partition("=")[::2] for entry in args.set)
    loss, name = losses.create(args.loss, **knobs), printable(args.file)
    tensors = _read(args.file)
    if "z" not in tensors:
        raise ValueError(f"{name} has no tensor z; it has {', '.join(map(printable, tensors)) or 'none'}")
    keys = ("z", "other") if "other" in tensors else ("z",)
    grads = [tensors.get(key) for key in ("grad", "grad_other")[: len(keys)]]
    for key, grad in zip(keys, grads, strict=True):
        if grad is not None and grad.shape != tensors[key].shape:
            shapes = f"{tuple(grad.shape)}, that of {key} {tuple(tensors[key].shape)}"
            raise ValueError(f"the gradient in {name} has another shape than its rows: {shapes}")
    if (value := tensors.get("loss")) is not None and value.ndim:
        raise ValueError(f"the loss in {name} must be one number; got shape {tuple(value.shape)}")
    values = {key: tensors.get(key) for key in BESIDE}
    copy = copy_step(
        1,
        [tensors[key] for key in keys],
        0.0,
        Omissions(""),
        queue=tensors.get("queue"),
        are_towers=len(keys) > 1,
        caller_loss=value,
        **values,
    )
    check = CheckCopy(copy, precision_of(copy), tuple(g is not None for g in grads), grads)
    found = diagnose(check.saved_batch(args.positives, args.accumulate), loss)
    if found.problem and not found.faults and found.expected is None:
        raise ValueError(found.problem)
    rows = sorted({row for fault in found.faults for row in fault.rows})
    record = {
        "file": args.file,
        "faults": [fault._asdict() for fault in found.faults],
        **{key: getattr(found, key) for key in ("is_explained", "problem", "value", "expected", "factor", "cosine")},
    }
    lines = [found.text, found.numbers, f"Rows: {', '.join(rows[:20])}" if rows else ""]
    print_result(args, record, "\n".join(filter(None, lines)))
    return int(not found.is_healthy)


def _read(path: str) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file. Raises ValueError; OSError."""
    try:
        return load(bytes(read_regular(Path(path), LARGEST)))
    except SafetensorError as error:
        raise ValueError(f"{printable(path)} is no safetensors file: {error}") from None
