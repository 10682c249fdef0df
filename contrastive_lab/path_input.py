"""A field for a path. A URL can fill it only with the id of a path that the user named on the command line.

A page that reads a path from its URL could be made to open any file by a link on another page. The command therefore
stores the path in a private file with a random name, and the URL has that name."""

import contextlib
import os
import re
import secrets
from pathlib import Path

from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged
from contrastive_core.base.json_files import fields, text
from contrastive_core.base.storage import data_home

ID = re.compile(r"[A-Za-z0-9_-]{22}")
MOST = 200  # that are kept
SHAPE = fields({"path": text})


def remember(path: Path) -> str:
    """Return the id of a path, always the same one for a path. Raises OSError."""
    path = path.expanduser().absolute()
    known = _newest_first()
    if path_id := next((file.stem for file in known if path_of(file.stem) == path), ""):
        return path_id
    for old in known[MOST - 1 :]:
        old.unlink(missing_ok=True)
    name = secrets.token_urlsafe(16)
    json_files.write_json(_folder() / f"{name}.json", {"path": os.fsencode(path).decode("latin-1")})
    return name


def path_of(name: str | None) -> Path | None:
    """Return the path of an id; None for an id that was not stored here."""
    if not name or not ID.fullmatch(name):
        return None
    try:
        encoded = json_files.read_object(_folder() / f"{name}.json", SHAPE)["path"]
        return Path(os.fsdecode(encoded.encode("latin-1")))
    except (OSError, Damaged, UnicodeError):
        return None


def address_of(dataset: str) -> dict[str, str]:
    """Return the URL parameters of the Train page with a data set, which may be a folder or a list. Raises OSError."""
    _kind, is_path, path = dataset.partition(":")
    return {"data": "folder", "folder": remember(Path(path))} if is_path else {"data": dataset}


def recent_folders() -> list[Path]:
    """Return the stored folders that still exist, newest first."""
    paths = dict.fromkeys(path_of(p.stem) for p in _newest_first())
    return [path for path in paths if path is not None and path.is_dir()]


def _folder() -> Path:
    return data_home() / "app" / "opened"


def _newest_first() -> list[Path]:
    entries = [(p.stat().st_mtime, p) for p in _folder().glob("*.json")]
    return [p for _, p in sorted(entries, reverse=True)]


def path_input(label: str, name: str, placeholder: str, help: str | None = None) -> str:
    """Draw the field; return its text, or the path of the URL's parameter `name`."""
    import streamlit as st  # late: the command stores paths, and Streamlit takes a second

    from contrastive_lab import query_params

    key = f"path-{name}"
    if path := path_of(query_params.take(name)):
        query_params.choose(key, str(path))
    typed = query_params.text(st.text_input, label, name="", key=key, placeholder=placeholder, help=help).strip()
    if typed[:1] in ('"', "'") and typed.endswith(typed[:1]):  # as file managers copy a path
        typed = typed[1:-1]
    path_id = None
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        path = Path(typed).expanduser()
        if path.is_absolute() and path.exists():
            path_id = remember(path)  # it outlives a refresh
    query_params.keep(**{name: path_id})
    return typed
