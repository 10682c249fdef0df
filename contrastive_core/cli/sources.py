"""The command-line argument that names rows: a run, a recording, vectors opened before, or a file of vectors."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from contrastive_core import runs
from contrastive_core.base.memory import limit_own_data, most_memory
from contrastive_core.base.safe_files import printable
from contrastive_core.cli.options import OF_FILE
from contrastive_core.runs.run import Run
from contrastive_core.spaces import file_formats, label_files, loaded_vectors, open_vectors, triplets
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.open_vectors import join_towers, note_of_towers, other_tower, read_both
from contrastive_core.spaces.space import TOWERS, Space

NOT_MARKED = "{name} marks no rows as {split}: it needs a column split"


def is_file(name: str) -> bool:
    """Return whether a name is a file of vectors, not a run. Raises ValueError for other files."""
    ending = Path(name).suffix.lower()
    if ending in file_formats.OPENED or (Path(name).is_dir() and file_formats.is_beir(Path(name))):
        return True
    if Path(name).is_file():
        endings = ", ".join(file_formats.OPENED)
        raise ValueError(f"{printable(Path(name).name)} is neither a run nor a file of vectors ({endings})")
    return False


def read_file(args: Namespace, name: str, split: str | None = None) -> EmbeddingSet:
    """Read the rows of a file, or only those of `split`, with the labels and columns given as options.
    Raises ValueError; OSError."""
    limit_own_data(most_memory())
    path, has_other = Path(name), bool(args.other or args.towers or args.by)
    if args.other and file_formats.are_triplets(path):
        rows = triplets.read(path, args.other)
    elif has_other and (other := other_tower(args.other, args.towers, args.by)):
        rows, second = read_both(path, path.name, other, args.leave_out)
        if args.labels:  # for the first file
            rows = label_files.labeled(rows, args.labels)
        rows = join_towers(rows, second, path.name, other)
        note_of_towers(rows)  # raises if no pair is usable
    else:
        rows = file_formats.read(path, leave_out=args.leave_out)
        if args.labels:
            rows = label_files.labeled(rows, args.labels)
    if split is None:
        return rows
    marked = rows.columns.get("split", np.array([""] * len(rows))) == split
    if not marked.any():
        raise ValueError(NOT_MARKED.format(name=printable(path.name), split=split))
    return rows.take(np.flatnonzero(marked))


def run_of(name: str, args: Namespace) -> Run:
    """Load a run. Raises ValueError, also for options that apply to files only."""
    if args.labels or args.leave_out or args.other:
        raise ValueError(OF_FILE)
    return runs.load(name)


def encoder_of(name: str) -> Run:
    """Load a run for a command that needs its encoder. Raises ValueError for vectors."""
    if Space(name).is_file or is_file(name):
        raise ValueError(f"{printable(name)} holds vectors, and no encoder: this command needs a run")
    return runs.load(name)


def space_of(name: str, args: Namespace, default: str = "test") -> Space:
    """Return the space that a command names; a file is opened as on Explore. Args: default: split if no option sets
    it. Raises: ValueError; OSError."""
    pictures, layer = (vars(args).get(option) for option in ("pictures", "layer"))
    if is_file(name):
        other = other_tower(args.other, args.towers, args.by)
        key = open_vectors.open_vectors(name, _title(name, args), pictures, args.leave_out, args.labels, other)
        name = loaded_vectors.PREFIX + key
    elif args.labels or args.leave_out or pictures or args.other:
        raise ValueError(OF_FILE)
    space = Space.of_name(name, args.split or default, layer or "h")
    if args.split and space.is_loaded and not space.splits:
        raise ValueError(NOT_MARKED.format(name=printable(space.title), split=args.split))
    return space


def towers_space(args: Namespace, name: str) -> Space:
    """Return the space of a file, or both towers of a run. Raises ValueError; OSError."""
    space = space_of(name, args)
    return replace(space, layer=TOWERS) if space.run and space.run.has_towers else space


def spaces_of(args: Namespace) -> list[Space]:
    """Return the distinct spaces that a command names. Raises ValueError, also if --other comes with several files."""
    if args.other and len(files := [name for name in args.runs if is_file(name)]) > 1:
        raise ValueError(f"--other goes with one file of vectors; got {', '.join(map(printable, files))}")
    return list(dict.fromkeys(space_of(name, args) for name in args.runs))


def loaded_space(name: str, args: Namespace, default: str = "test") -> Space | None:
    """Return the space of opened vectors or of a recording; None for a run with weights."""
    is_loaded = Space(name).is_loaded or runs.load(name).is_recording
    return space_of(name, args, default) if is_loaded else None


def _title(name: str, args: Namespace) -> str:
    """Return the name of a file, with its folder if another file has the same name."""
    path = Path(name).absolute()
    names: Sequence[str] = getattr(args, "runs", [name])
    is_shared = len([other for other in names if Path(other).name == path.name]) > 1
    return f"{path.parent.name}/{path.name}" if is_shared else path.name
