"""Competitors behind the interface of `SoSBandRegressor`: the same split, calibration, prediction and saving.

`METHODS` names them, as `make_method` and ``sosbands compare`` take them.
"""

from __future__ import annotations

from typing import Any

from sosbands._arguments import check
from sosbands.baselines.cqr import GradientBoostingCQR, QuantileForestCQR
from sosbands.baselines.gaussian import HomoscedasticGP
from sosbands.baselines.split import LocallyWeightedCP, SplitCP
from sosbands.regressors.split import SplitRegressor

__all__ = [
    "COMMON",
    "METHODS",
    "GradientBoostingCQR",
    "HomoscedasticGP",
    "LocallyWeightedCP",
    "QuantileForestCQR",
    "SplitCP",
    "make_method",
]

METHODS: dict[str, type[SplitRegressor]] = {
    "cqr-forest": QuantileForestCQR,
    "cqr-boosting": GradientBoostingCQR,
    "gp": HomoscedasticGP,
    "split": SplitCP,
    "local": LocallyWeightedCP,
}
COMMON = (
    "estimator",
    "residuals",
    "cv",
    "confidence_level",
    "calibration",
    "calibration_size",
    "n_jobs",
    "random_state",
    "verbose",
)


def make_method(name: str, **settings: Any) -> SplitRegressor:
    """An unfitted baseline.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    **settings
        Constructor parameters. Those in `COMMON` may be given to every method, so that one set of them serves a whole
        comparison: a method without such a parameter goes without it (a forest has no `estimator` around which to put
        its band).
    """
    check("name", name, name in METHODS, f"one of {sorted(METHODS)}")
    known = METHODS[name]._get_param_names()
    unknown = [setting for setting in settings if setting not in known and setting not in COMMON]
    if unknown:
        raise ValueError(f"{name!r} has no setting {unknown[0]!r}: expected some of {sorted({*known, *COMMON})}")
    return METHODS[name](**{setting: value for setting, value in settings.items() if setting in known})
