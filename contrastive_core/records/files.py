"""Small files that the app writes and reads itself: atomic writes, locks, checked JSON, safe tables."""

from contrastive_core.storage import atomic, json_files, tables
from contrastive_core.storage.json_schema import fields, list_of, number, text, whole
from contrastive_core.storage.lock import is_locked, is_process, lock, process_start
from contrastive_core.storage.regular_files import is_regular, printable
from contrastive_core.storage.tables import BATCH, safe_cell

__all__ = [
    "BATCH",
    "atomic",
    "fields",
    "is_locked",
    "is_process",
    "is_regular",
    "json_files",
    "list_of",
    "lock",
    "number",
    "printable",
    "process_start",
    "safe_cell",
    "tables",
    "text",
    "whole",
]
