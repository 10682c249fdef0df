"""A run's stored model: states for a resume and final weights, as safetensors and JSON.

A state is `NUMBER.safetensors`, `NUMBER.json` and, written last, `NUMBER.sha256` with the hashes of both in the format
of `sha256sum`. The last two states are kept, so a damaged or incomplete one leaves its predecessor. Some earlier ones
are kept as well, and other runs can branch off from them. The weights are replaced by one rename; their header contains
the hash of their tensors."""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged
from contrastive_core.base.messages import N_, decode, message
from contrastive_core.base.storage import read_regular
from contrastive_core.runs.changes import saved_epochs
from contrastive_core.runs.records import Change
from contrastive_core.runs.run import Run

KEPT = 2
MOST = 8  # states of a run, spread over its training
ROOM = 512 << 20  # bytes that they take, the last two aside; and at most a tenth of what is free on the disk
MAX_STATE = 64 << 30  # bytes of a state, or of weights
PARTS = (".safetensors", ".json")  # of a state, in the order of its manifest
NO_STATE = N_("{name} has no complete state after epoch {epoch}; choose one of these: {kept}")
HASH = "sha256"  # key of the weights' own hash in their header


class PlainState(TypedDict, total=False):
    """The part of a state that is no tensor: its JSON."""

    place: dict[str, int]  # epoch, batch and step, as `TrainPosition` has them
    optimizer: dict[str, Any]  # groups, and what is no tensor, by number of the parameter
    random: dict[str, Any]  # states of Python's and NumPy's generators
    world: int
    versions: str
    changes: list[Change]
    captions: str
    damaged: list[str]  # newer files that cannot be read


def save_state(run: Run, tensors: Mapping[str, Tensor], plain: PlainState) -> None:
    """Save the data for a resume. `tensors`: dense, on the CPU, each with its own memory. Raises Gone, or OSError on a
    full disk; earlier states stay."""
    number = max((int(p.stem) for p in state_manifests(run) if p.stem.isdigit()), default=0) + 1
    files = {f"{number:06d}.safetensors": save(dict(tensors)), f"{number:06d}.json": json_files.json_bytes(plain)}
    for name, data in files.items():
        run.write(f"state/{name}", data)
    lines = (f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    run.write(f"state/{number:06d}.sha256", "".join(lines).encode())
    room = min(ROOM, shutil.disk_usage(run.path).free // 10) // sum(map(len, files.values()))
    manifests = {int(path.stem): path for path in state_manifests(run) if path.stem.isdigit()}
    for number in manifests.keys() - thinned(list(manifests), min(MOST, KEPT + room)):
        manifests[number].unlink(missing_ok=True)  # first: without it the others are no state
    complete_states = {path.stem for path in state_manifests(run)}
    for path in (run.path / "state").glob("[0-9]*.[js]*"):
        if path.stem not in complete_states:
            path.unlink(missing_ok=True)


def thinned(numbers: Sequence[int], most: int) -> list[int]:
    """Return the last KEPT of ascending numbers, and evenly spaced earlier ones, at most `most` in total."""
    kept = list(numbers)
    while len(kept) > max(KEPT, most):
        gaps = [after - before for before, after in zip([0, *kept], kept[1 : 1 - KEPT], strict=False)]
        del kept[gaps.index(min(gaps))]
    return kept


def state_manifests(run: Run) -> list[Path]:
    """Return the paths of the states' manifests, oldest first."""
    return sorted((run.path / "state").glob("*.sha256"))


def read_state(manifest: Path) -> tuple[bytes, PlainState]:
    """Return a state's tensors, packed, and its plain values. Raises Damaged, naming the file."""
    path, names = manifest, [manifest.with_suffix(suffix).name for suffix in PARTS]
    try:
        lines = "".join(f"([0-9a-f]{{64}})  {re.escape(name)}\n" for name in names)
        match = re.fullmatch(lines, read_regular(manifest, json_files.MAX_RECORD).decode())
        if match is None:
            text = "{manifest} is damaged: it must have a line with SHA-256 and name for each of {names}"
            raise Damaged(text, manifest=manifest, names=" and ".join(names))
        content = []
        for name, expected in zip(names, match.groups(), strict=True):
            path = manifest.with_name(name)
            content.append(read_regular(path, MAX_STATE))
            if hashlib.sha256(content[-1]).hexdigest() != expected:
                raise Damaged("{path} is damaged: its hash is not what was written", path=path)
        return content[0], cast(PlainState, dict(json.loads(content[1], object_hook=decode)))
    except Damaged:
        raise
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise Damaged("{path} is damaged: {error}", path=path, error=error) from None


def has_begun(run: Run) -> bool:
    """Return whether the run has weights or a state, even a damaged one; otherwise it starts from the beginning."""
    return run.weights.exists() or bool(state_manifests(run))


def load_state(run: Run) -> tuple[dict[str, Tensor], PlainState]:
    """Return the newest intact state; its `damaged` lists damaged newer files. Raises ValueError without any."""
    damaged: list[str] = []
    for manifest in reversed(state_manifests(run)):
        try:
            data, plain = read_state(manifest)
            return load(data), {**plain, "damaged": damaged}
        except Damaged as error:
            path = Path(str(error).partition(" is damaged")[0])
        except SafetensorError:
            path = manifest.with_suffix(".safetensors")
        damaged.append(str(path.relative_to(run.path)))
    names = ", ".join(damaged)
    what = message("its states are damaged ({damaged})", damaged=names) if names else N_("it has no saved state")
    raise ValueError(message("{name} cannot continue: {what}; train it again from the start", name=run.name, what=what))


def save_weights(run: Run, state: Mapping[str, Tensor], half: bool = False) -> None:
    """Write `weights.safetensors`, in float16 if `half`, with a hash of its content in the header."""
    dense = torch.contiguous_format  # safetensors refuses shared storage and strides
    tensors = {k: v.detach().cpu().clone(memory_format=dense) for k, v in state.items()}
    tensors = {k: v.half() if half and v.is_floating_point() else v for k, v in tensors.items()}
    run.write(run.weights.name, save(tensors, {HASH: _digest(tensors)}))


def load_weights(run: Run) -> dict[str, Tensor]:
    """Return the weights in float32. Raises Damaged, or ValueError if the run has none yet."""
    path = run.weights
    try:
        data = read_regular(path, MAX_STATE)
        tensors, header = load(data), json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        recorded_hash = (header.get("__metadata__") or {}).get(HASH)
    except FileNotFoundError:
        run.weights_hash()  # says why: a recording never has any
        raise ValueError(message("{name} has no weights yet", name=run.name)) from None
    except (SafetensorError, ValueError) as error:
        raise Damaged("{path} is damaged: {error}", path=path, error=error) from None
    if recorded_hash != _digest(tensors):
        raise Damaged("{path} is damaged: its checksum does not match", path=path)
    return {k: v.float() if v.dtype == torch.float16 else v for k, v in tensors.items()}


def weights_after(run: Run, epoch: str = "") -> dict[str, Tensor]:
    """Return the weights of the state saved after an epoch; "": the newest weights. Raises: Damaged; ValueError."""
    states = {str(number): manifest for number, manifest in saved_epochs(run).items()}
    if not epoch:
        return load_weights(run)
    if epoch not in states:
        raise ValueError(message(NO_STATE, name=run.name, epoch=epoch, kept=", ".join(states) or "–"))
    return strip_prefix(load(read_state(states[epoch])[0]), "method.")


def strip_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with `prefix`, without the prefix."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
