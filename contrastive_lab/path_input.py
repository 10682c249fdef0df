"""A field for a path; an address fills it only by the id of a path that a person named (command_files.py)."""

import contextlib
from pathlib import Path

import streamlit as st

from contrastive_lab import command_files, query_params

FILLS = 3  # runs that fill the field from the address: those after a refresh may be cut off before the browser has it


def path_input(label: str, name: str, placeholder: str, help: str | None = None) -> str:
    """What is typed into it, or what the address's parameter `name` stands for."""
    key, count = f"path-{name}", f"fills-{name}"
    path, fills = command_files.path_of(query_params.kept_value(name)), st.session_state.get(count, 0)
    if path is not None and fills < FILLS and st.session_state.get(key, str(path)) == str(path):
        st.session_state[key], st.session_state[count] = str(path), fills + 1
    typed = st.text_input(label, placeholder=placeholder, key=key, help=help).strip()
    path_id = None
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        path = Path(typed).expanduser()
        if path.is_absolute() and path.exists():
            path_id = command_files.remember(path)  # it outlives a refresh
    query_params.keep(**{name: path_id})
    return typed
