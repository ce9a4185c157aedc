"""Competitors that only the studies need, behind the interface of the package's baselines."""

from sosbands.regressors import SplitRegressor
from studies.rivals.heteroscedastic_gp import HeteroscedasticGP
from studies.rivals.relaxed_quantile import RelaxedQuantileCQR
from studies.rivals.squared_sos import SquaredSoS

RIVALS: dict[str, type[SplitRegressor]] = {
    "rqr": RelaxedQuantileCQR,
    "het-gp": HeteroscedasticGP,
    "squared-sos": SquaredSoS,
}

__all__ = ["RIVALS", "HeteroscedasticGP", "RelaxedQuantileCQR", "SquaredSoS"]
