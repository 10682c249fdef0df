"""Sweeps as pages read them in their own process, without torch: their files, cells, figures and the best setting."""

from __future__ import annotations

from contrastive_core.evaluation.best_setting import best_setting
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.sweeps import best_cell, spec
from contrastive_core.sweeps import plots as sweep_plots
from contrastive_core.sweeps.spec import FORMS, Sweep, load, read, title_of

__all__ = [
    "FORMS",
    "SettingScores",
    "Sweep",
    "best_cell",
    "best_setting",
    "load",
    "read",
    "spec",
    "sweep_plots",
    "title_of",
]
