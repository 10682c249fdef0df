"""Sweeps as pages read them in their own process, without torch: their files, cells, figures and the best setting."""

from contrastive_core.evaluation.best_setting import best_setting
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.sweeps import plots as sweep_plots
from contrastive_core.sweeps import spec
from contrastive_core.sweeps.spec import FORMS, Sweep, load, read, title_of
