"""Interval regressors: what all of them do alike, and the one around sum-of-squares bands."""

from sosbands.regressors.noise import PAPER_SETTINGS
from sosbands.regressors.sos_bands import SoSBandRegressor
from sosbands.regressors.split import SplitRegressor

__all__ = ["PAPER_SETTINGS", "SoSBandRegressor", "SplitRegressor"]
