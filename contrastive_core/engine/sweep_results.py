"""Sweeps as pages read them in their own process, without torch: their files, cells, figures and the best setting."""

from contrastive_core.evaluation.best_setting import best_setting as best_setting
from contrastive_core.evaluation.verdicts import SettingScores as SettingScores
from contrastive_core.sweeps import plots as sweep_plots
from contrastive_core.sweeps import spec as spec
from contrastive_core.sweeps.spec import FORMS as FORMS
from contrastive_core.sweeps.spec import Sweep as Sweep
from contrastive_core.sweeps.spec import load as load
from contrastive_core.sweeps.spec import read as read
from contrastive_core.sweeps.spec import title_of as title_of

__all__ = ["sweep_plots"]
