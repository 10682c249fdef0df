"""Targets that the command opens, and the page for each. `recognize` looks only at names and is quick; `prepare` does
the rest while the server starts. A target that cannot be opened gives a one-sentence error."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from contrastive_core import runs
from contrastive_core.base import safe_files
from contrastive_core.base.errors import NoSuchRun
from contrastive_core.base.paths import BUNDLE, runs_home
from contrastive_core.base.safe_files import is_regular, printable, read_regular
from contrastive_core.cli.options import OF_FILE
from contrastive_core.cli.output import print_note
from contrastive_core.data.image_decoding import ENDINGS as PICTURES
from contrastive_core.engine.run_folders import own_run
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.open_vectors import open_vectors
from contrastive_core.sweeps import sweep_file
from contrastive_lab import path_input

CHECKPOINTS = (".pt", ".pth", ".tar", ".ckpt", ".safetensors")
KINDS = {
    **dict.fromkeys(file_formats.OPENED, "vectors"),
    **dict.fromkeys(CHECKPOINTS, "checkpoint"),
    ".toml": "sweep",
}  # of files, by their endings
EXPECTED = (
    f"expected a run, a folder of images, vectors ({', '.join(file_formats.OPENED)}), "
    f"a checkpoint ({', '.join(CHECKPOINTS)}) or a sweep (.toml)"
)
VECTORS = (
    "expected a row of numbers for each sample: an array (n, d) in .npy or .npz, columns of "
    "numbers in .csv, such columns or one of vectors in .parquet"
)
OF_RUNS = ("run.json", "status.json", "metrics.jsonl", "weights.safetensors")
PAUSE = 0.2  # seconds between two looks at a file that may be growing
DEPTH, ENTRIES = 3, 20_000  # of a folder, in which an image is looked for


@dataclass(frozen=True)
class Thing:
    """A target. `kind` is run, folder, vectors, checkpoint or sweep; a run's `path` is its folder."""

    kind: str
    path: Path


def recognize(name: str) -> Thing:
    """Recognize a name on the command line. Raises ValueError with the expected kinds."""
    path = Path(os.path.expanduser(name))
    if not os.path.lexists(path):
        if len(path.parts) > 1 or path.suffix.lower() in KINDS:
            raise ValueError(f"there is no {printable(name)}: {EXPECTED}")
        try:
            return Thing("run", runs.load(name).path.resolve())
        except NoSuchRun:
            raise ValueError(f"there is neither a run nor a file {printable(name)}: {EXPECTED}") from None
    if not path.is_dir() and not is_regular(path):
        raise ValueError(f"{printable(path)} is no ordinary file: {EXPECTED}")
    is_folder, path = path.is_dir(), path.resolve()
    if is_folder and os.path.lexists(path / "run.json"):
        return Thing("run", path)
    if file_formats.is_beir(path):
        return Thing("vectors", path)
    if is_folder and _has_images(path):
        return Thing("folder", path)
    if is_folder:
        raise ValueError(f"{printable(path)} holds neither a run (run.json) nor images: {EXPECTED}")
    if path.name in OF_RUNS and os.path.lexists(path.parent / "run.json"):
        return Thing("run", path.parent)
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{printable(path.name)} cannot be opened: {EXPECTED}")
    return Thing(KINDS[path.suffix.lower()], path)


def prepare(thing: Thing, **of_vectors: Any) -> str:
    """Return the page that shows a target, as a path and query of the server. Args: of_vectors: labels, leave_out,
    pictures and other of a file of vectors, as for `open_vectors`. Raises: ValueError; OSError."""
    if thing.kind != "vectors" and any(of_vectors.values()):
        raise ValueError(OF_FILE)
    match thing.kind:
        case "run":
            run = own_run(thing.path)
            if run.path.resolve() != thing.path:
                print_note(
                    f"{printable(thing.path)} was copied to {run.path}. To use its folder of runs instead, "
                    f"set CONTRASTIVE_LAB_RUNS={printable(thing.path.parent)}."
                )
            is_ready = run.is_recording or (run.weights.exists() and not run.is_alive())
            page = "explore" if is_ready else "train"
            query = {"run": run.name} if is_ready else {"run": run.name, "watch": run.name}
        case "vectors":
            before = _stamp(thing.path)
            try:
                page, query = "explore", {"vectors": open_vectors(thing.path, thing.path.name, **of_vectors)}
            except ValueError as error:
                _check_whole(thing.path, before)
                has_texts = thing.path.is_dir() or thing.path.suffix.lower() == ".jsonl"
                raise ValueError(f"{error}" if has_texts else f"{error}; {VECTORS}") from None
            _check_whole(thing.path, before)
        case "sweep":
            page, query = "runs", {"view": "sweeps", "sweep": _name_of_sweep(thing.path)}
        case "folder":
            page, query = "train", {"data": "folder", "folder": path_input.remember(thing.path)}
        case _:
            _check_whole(thing.path, _stamp(thing.path))
            page, query = "runs", {"view": "import", "file": path_input.remember(thing.path)}
    return f"/{page}?{urlencode(query)}"


# --- what it is ----------------------------------------------------------------------------------


def _has_images(folder: Path) -> bool:
    entries = 0
    for place, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        if any(Path(name).suffix.lower() in PICTURES for name in files):
            return True
        if len(Path(place).relative_to(folder).parts) >= DEPTH or entries > ENTRIES:
            folders.clear()
    return False


# --- what has to be done before it is shown ------------------------------------------------------


def _name_of_sweep(path: Path) -> str:
    """Add the file to the user's own sweeps, under another name if its own is taken; return the name."""
    sweep_file.load(path)
    text, user_sweeps = read_regular(path, sweep_file.LARGEST), runs_home() / ".sweeps"
    by_name = {p.stem: p for folder in (BUNDLE / "sweeps", user_sweeps) for p in folder.glob("*.toml")}
    numbered = (path.stem if n == 1 else f"{path.stem}-{n}" for n in range(1, 10_000))
    name = next(n for n in numbered if n not in by_name or by_name[n].read_bytes() == text)
    if name not in by_name:
        safe_files.write_bytes(user_sweeps / f"{name}.toml", text)
    return name


def _stamp(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mtime_ns


def _check_whole(path: Path, before: tuple[int, int]) -> None:
    """Check that a file has not changed since `before` and is not changing now. Raises ValueError."""
    if _stamp(path) == before:
        time.sleep(PAUSE)
    if _stamp(path) != before:
        raise ValueError(f"{printable(path.name)} is still being written: open it when it is whole")
