"""The run folder: made, found and listed, its files, its checkpoints. Torch-free."""

from contrastive_core.runs.catalog import (
    check_free,
    checked_name,
    create,
    damaged,
    list_runs,
    load,
)
from contrastive_core.runs.run import Run, stamp

__all__ = ["Run", "check_free", "checked_name", "create", "damaged", "list_runs", "load", "stamp"]
