"""Lengthscale and symmetry penalty chosen from the data, with the reasons."""

from sosbands.tuning.report import TuningReport
from sosbands.tuning.rules import Rules
from sosbands.tuning.search import tune

__all__ = ["Rules", "TuningReport", "tune"]
