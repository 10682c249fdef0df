"""Run folders of an older version, brought to the present format. Torch-free.

Format 1 had no number, British names, a checksum ("seal") in every JSON object and line, and a
state's hash beside its values. Each file is replaced whole, `run.json` with its number last, and
what is done once is not done again: after a kill the command is run again. A copy of the folder is
kept until the new one has been verified, and is put back if it does not pass.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.errors import Damaged
from contrastive_core.paths import runs_home
from contrastive_core.runs.catalog import checked_name, folders
from contrastive_core.runs.formats import FORMAT
from contrastive_core.runs.run import Run
from contrastive_core.storage import atomic, records
from contrastive_core.storage.lock import lock

__all__ = ["migrate", "outdated"]

SEAL = "seal"
WORDS = {  # the words of format 1, also as parts of names
    "grey": "gray",
    "colour": "color",
    "neighbour": "neighbor",
    "normalis": "normaliz",
    "optimis": "optimiz",
}
METRIC_KEYS = {"knn": "knn_train_sample"}  # of training, beside the evaluation's own
VERBATIM = ("root", "exclude", "relabel", "start", "dataset", "name", "run", "classes", "class")


def outdated() -> list[str]:
    """Names of the user's runs that have an older format."""
    return [path.name for path in folders(runs_home()) if _format(path) < FORMAT]


def migrate(name: str, dry_run: bool = False) -> list[str]:
    """Bring a user's run to the present format; returns the files that change.

    Raises: BadName; Locked while it is at work; Damaged, and all is as it was; OSError.
    """
    path = runs_home() / checked_name(name)
    if _format(path) >= FORMAT:
        return []
    if dry_run:
        return sorted(_changes(path))
    with lock(path / "lock"):
        backup = atomic.make_folder(runs_home() / ".before-migration") / (
            f"{name}-{secrets.token_hex(4)}"
        )
        shutil.copytree(path, backup, copy_function=_link)
        changes = _changes(path)
        for file in sorted(changes, key=lambda file: file == "run.json"):  # its number last
            atomic.write_bytes(path / file, changes[file])
        if problems := _problems(path):
            for file in changes:
                (path / file).unlink()
            shutil.copytree(backup, path, copy_function=_link_anew, dirs_exist_ok=True)
    for copy in backup.parent.iterdir():  # also of a migration that was cut off
        if re.fullmatch(re.escape(name) + "-[0-9a-f]{8}", copy.name):
            shutil.rmtree(copy)
    if problems:
        raise Damaged(f"{name} is as it was, for {problems[0]}; mend or remove that file first")
    return sorted(changes)


def _format(path: Path) -> int:
    """The format of a run folder. Raises Damaged; FileNotFoundError."""
    try:
        number = records.read_object(path / "run.json").get("format", 1)
    except Damaged:
        return FORMAT  # no older one: verify names it
    return number if isinstance(number, int) else FORMAT


def _problems(path: Path) -> list[str]:
    from contrastive_core.runs.formats import read_manifest
    from contrastive_core.runs.verify import damage

    try:
        return damage(Run(path, read_manifest(path / "run.json")))
    except ValueError as error:
        return [str(error)]


# --- files -------------------------------------------------------------------------------------


def _changes(path: Path) -> dict[str, bytes]:
    """The new content of each file that changes, by its place in the folder. Raises Damaged."""
    changes: dict[str, bytes] = {}
    for name in ("run.json", "status.json", "meta.json", "evaluation.json"):
        if (path / name).exists():
            value = _without_seal(records.read_object(path / name))
            if name != "meta.json":  # a person's own words
                value = _renamed(value)
            if name == "run.json":
                value = {"format": FORMAT, **value}
            changes[name] = records.json_bytes(value)
    for name, new_keys in (("metrics.jsonl", METRIC_KEYS), ("marks.jsonl", {})):
        if (path / name).exists():
            lines = [
                {new_keys.get(k, k): v for k, v in _without_seal(line).items()}
                for line in records.read_lines(path / name)
            ]
            changes[name] = records.lines_bytes(lines)
    for manifest in (path / "state").glob("*.json"):
        changes |= _state(manifest)
    for file in [*path.glob("maps/*.npz"), *path.glob("embeddings/*.npz")]:
        arrays = records.read_npz(file)
        if "meta" in arrays and (data := _array_file(arrays)) is not None:
            changes[str(file.relative_to(path))] = data
    return {k: v for k, v in changes.items() if not _is(path / k, v)}


def _state(path: Path) -> dict[str, bytes]:
    """A state's manifest and, written after it, its values; nothing where they are present."""
    old, place = records.read_object(path), path.parent.name
    if not isinstance(old.get("plain"), dict) or not isinstance(old.get("sha256"), str):
        return {}
    values = records.json_bytes(old["plain"])
    hashes = {f"{path.stem}.safetensors": old["sha256"]}
    hashes[path.name] = hashlib.sha256(values).hexdigest()
    manifest = "".join(f"{digest}  {name}\n" for name, digest in hashes.items())
    return {
        f"{place}/{path.stem}.sha256": manifest.encode(),
        f"{place}/{path.name}": values,
    }


def _array_file(arrays: dict[str, np.ndarray]) -> bytes | None:
    """An `.npz` whose `meta`, a JSON text, has the new names; None where it holds no text."""
    try:
        meta = _renamed(json.loads(arrays["meta"].astype(np.uint8).tobytes()))
    except (ValueError, TypeError, RecursionError):
        return None
    text = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    return bytes(records.npz_bytes(**{**arrays, "meta": text}))


def _is(path: Path, data: bytes) -> bool:
    return path.exists() and path.read_bytes() == data


def _link(source: str, target: str) -> str:
    """The same file under another name: what is replaced whole leaves the other as it is."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _link_anew(source: str, target: str) -> str:
    return target if Path(target).exists() else _link(source, target)


# --- words -------------------------------------------------------------------------------------


def _without_seal(value: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in value.items() if k != SEAL}


def _renamed(value: Any) -> Any:
    """The same with the present names, in keys and in text, but not in paths and class names."""
    if isinstance(value, dict):
        return {_words(k): v if k in VERBATIM else _renamed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_renamed(v) for v in value]
    return _words(value) if isinstance(value, str) else value


def _words(text: str) -> str:
    if "/" in text or "\\" in text:  # a path is somebody's own
        return text
    for old, new in WORDS.items():
        text = re.sub(old, new, text)
        text = re.sub(old.capitalize(), new.capitalize(), text)
    return text
