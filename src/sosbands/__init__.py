"""Prediction intervals that are honest about skewed noise.

Two non-negative functions, kernel sums of squares, are learnt below and above a point model by a convex problem
whose solution is certified; a penalty moves the bands continuously from asymmetric to symmetric.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sosbands._extras import __version__ as __version__

if TYPE_CHECKING:
    from sosbands.bands import BandSolution, SoSFunction, learn_band_path, learn_bands
    from sosbands.point_models import GaussianProcess, SmoothingSplineRegressor
    from sosbands.regressors import SoSBandRegressor
    from sosbands.saving import load

__all__ = [
    "BandSolution",
    "GaussianProcess",
    "SmoothingSplineRegressor",
    "SoSBandRegressor",
    "SoSFunction",
    "learn_band_path",
    "learn_bands",
    "load",
]

_HOMES = {
    **dict.fromkeys(("BandSolution", "SoSFunction", "learn_band_path", "learn_bands"), "bands"),
    **dict.fromkeys(("GaussianProcess", "SmoothingSplineRegressor"), "point_models"),
    "SoSBandRegressor": "regressors",
    "load": "saving",
}
_ROOMS = (
    "bands",
    "baselines",
    "cluster",
    "comparison",
    "conformal",
    "datasets",
    "exceptions",
    "explanation",
    "kernels",
    "metrics",
    "online",
    "plotting",
    "point_models",
    "problems",
    "regressors",
    "report",
    "saving",
    "serving",
    "solvers",
    "stats",
    "tables",
    "tuning",
)


def __getattr__(name: str) -> Any:
    """Import names and rooms when they are first asked for: ``sosbands --version`` needs none of scikit-learn."""
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(f"sosbands.{_HOMES[name]}"), name)
        return value
    if name in _ROOMS:
        return import_module(f"sosbands.{name}")
    raise AttributeError(f"module 'sosbands' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_ROOMS})
