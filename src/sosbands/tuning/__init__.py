"""What the data choose: lengthscale and symmetry penalty by the paper's rules, or everything, with the reasons."""

from sosbands.tuning.automatic import Automatic
from sosbands.tuning.report import TuningReport
from sosbands.tuning.rules import Rules, tune
from sosbands.tuning.search import choose

__all__ = ["Automatic", "Rules", "TuningReport", "choose", "tune"]
