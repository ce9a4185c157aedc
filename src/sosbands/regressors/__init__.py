"""Interval regressors: what all of them do alike, and the one around sum-of-squares bands."""

from sosbands.regressors.base import SplitRegressor
from sosbands.regressors.parameters import PAPER_SETTINGS
from sosbands.regressors.sos_bands import SoSBandRegressor

__all__ = ["PAPER_SETTINGS", "SoSBandRegressor", "SplitRegressor"]
