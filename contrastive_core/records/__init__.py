"""Torch-free records: what a page may hold, and the errors, places, progress and small files that come with them."""

from contrastive_core.errors import (
    BadName,
    BadSetting,
    Damaged,
    LabError,
    Locked,
    NoSuchRun,
    UnusableEmbedding,
    explained,
)
from contrastive_core.messages import N_, Message, message, sentence, translate
from contrastive_core.paths import BUNDLE, ROOT, SHIPPED, data_home, runs_home
from contrastive_core.progress import OnProgress, Progress, fraction_of, prefixed
from contrastive_core.storage import atomic, json_files, tables
from contrastive_core.storage.json_schema import fields, list_of, number, text, whole
from contrastive_core.storage.lock import is_locked, is_process, lock, process_start
from contrastive_core.storage.regular_files import is_regular, printable
from contrastive_core.storage.tables import BATCH, safe_cell
