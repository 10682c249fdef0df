"""A field for a path on this computer; an address fills it only by the id of a path that a person
named on the command line or typed here (command_files.py)."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from contrastive_lab import command_files, locale, query_params


def path_input(label: str, name: str, placeholder: str, help: str | None = None) -> str:
    """What is typed into it, or what the address's parameter `name` stands for."""
    key = f"path-{name}"
    path = command_files.path_of(query_params.kept_value(name))
    if key not in st.session_state and path is not None:
        st.session_state[key] = str(path)
    typed = st.text_input(
        locale.text(label), placeholder=locale.text(placeholder), key=key, help=locale.text(help)
    ).strip()
    query_params.keep(**{name: _id_of(typed)})
    return typed


def _id_of(typed: str) -> str | None:
    """What a path that is there stands under in the address, so that it outlives a refresh."""
    path = Path(typed).expanduser()
    try:
        return command_files.remember(path) if path.is_absolute() and path.exists() else None
    except (OSError, ValueError):
        return None
