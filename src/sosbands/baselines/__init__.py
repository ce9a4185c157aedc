"""Competitors behind the interface of `SoSBandRegressor`: the same split, calibration, prediction and saving."""

from sosbands.baselines.cqr import GradientBoostingCQR, QuantileForestCQR
from sosbands.baselines.heteroscedastic_gp import HeteroscedasticGP
from sosbands.baselines.homoscedastic_gp import HomoscedasticGP
from sosbands.baselines.methods import COMMON, METHODS, make_method
from sosbands.baselines.relaxed_quantile import RelaxedQuantileCQR
from sosbands.baselines.split import LocallyWeightedCP, SplitCP
from sosbands.baselines.squared_sos import SquaredSoS

__all__ = [
    "COMMON",
    "METHODS",
    "GradientBoostingCQR",
    "HeteroscedasticGP",
    "HomoscedasticGP",
    "LocallyWeightedCP",
    "QuantileForestCQR",
    "RelaxedQuantileCQR",
    "SplitCP",
    "SquaredSoS",
    "make_method",
]
