"""Torch-free records: all that a page may hold, and the errors, places and progress that come with them."""

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

__all__ = [
    "BUNDLE",
    "N_",
    "ROOT",
    "SHIPPED",
    "BadName",
    "BadSetting",
    "Damaged",
    "LabError",
    "Locked",
    "Message",
    "NoSuchRun",
    "OnProgress",
    "Progress",
    "UnusableEmbedding",
    "data_home",
    "explained",
    "fraction_of",
    "message",
    "prefixed",
    "runs_home",
    "sentence",
    "translate",
]
