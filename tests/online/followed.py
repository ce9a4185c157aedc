"""What the tests of streams follow."""

import numpy as np
from sklearn.base import BaseEstimator

from sosbands.conformal import Band, IntervalMixin, Told


class Zero(IntervalMixin, BaseEstimator):
    """The band [-x, x], mostly of x = 0: the symmetric score is |y| then."""

    def __init__(self, confidence_level=0.9, calibration="symmetric"):
        self.confidence_level, self.calibration = confidence_level, calibration

    def told(self, X):
        return Told(Band(-X[:, 0], X[:, 0]))


def zero_model(y=None, kind="symmetric", m=60):
    """Calibrated on these targets, by default m normal ones."""
    y = np.random.default_rng(0).normal(size=m) if y is None else y
    return Zero(calibration=kind).conformalize(np.zeros((len(y), 1)), y)
