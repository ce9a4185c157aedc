"""Competitors behind the interface of `SoSBandRegressor`: the same split, calibration, prediction and saving."""

from sosbands.baselines.methods import *  # noqa: F403, each is named once, in methods.py
from sosbands.baselines.methods import __all__ as __all__
