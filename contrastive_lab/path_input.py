"""A field for a path; an address fills it only by the id of a path that a person named (command_files.py)."""

import contextlib
from pathlib import Path

import streamlit as st

from contrastive_lab import command_files, query_params


def path_input(label: str, name: str, placeholder: str, help: str | None = None) -> str:
    """What is typed into it, or what the address's parameter `name` stands for."""
    key = f"path-{name}"
    path = command_files.path_of(query_params.kept_value(name))
    if key not in st.session_state and path is not None:
        st.session_state[key] = str(path)
    typed = st.text_input(label, placeholder=placeholder, key=key, help=help).strip()
    path_id = None
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        path = Path(typed).expanduser()
        if path.is_absolute() and path.exists():
            path_id = command_files.remember(path)  # it outlives a refresh
    query_params.keep(**{name: path_id})
    return typed
