"""What the data choose: lengthscale and symmetry penalty by the paper's rules, or everything, with the reasons."""

from sosbands.tuning.choose import choose
from sosbands.tuning.report import TuningReport
from sosbands.tuning.rules import Rules
from sosbands.tuning.search import tune

__all__ = ["Rules", "TuningReport", "choose", "tune"]
