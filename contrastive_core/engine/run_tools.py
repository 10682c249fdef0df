"""Actions of pages on a run without torch: annotate, export, verify, start from it."""

from contrastive_core.runs import export_weights
from contrastive_core.runs import verify as run_verify
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples import label_audit
from contrastive_core.training.starting_run import misfit
