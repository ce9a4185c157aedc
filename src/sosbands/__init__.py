"""Prediction intervals that are honest about skewed noise.

Two non-negative functions, kernel sums of squares, are learnt below and above a point model by a convex problem
whose solution is certified; a penalty moves the bands continuously from asymmetric to symmetric.
"""

from sosbands.bands import learn_band_path, learn_bands
from sosbands.estimator import SoSBandRegressor
from sosbands.persistence import load
from sosbands.point_models import SmoothingSplineRegressor
from sosbands.solution import BandSolution
from sosbands.sos import SoSFunction

__version__ = "0.1.0"
__all__ = [
    "BandSolution",
    "SmoothingSplineRegressor",
    "SoSBandRegressor",
    "SoSFunction",
    "learn_band_path",
    "learn_bands",
    "load",
]
