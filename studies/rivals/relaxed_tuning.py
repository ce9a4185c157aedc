"""Lengthscale and ridges of relaxed quantile regression."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from sosbands._types import Array
from sosbands.conformal import conformal_rank
from sosbands.exceptions import LowRankWarning
from sosbands.kernels import KernelFeatures, StationaryKernel, learn_features, median_lengthscale
from studies.rivals.relaxed_loss import Axes, Target, ends_of, minimise

FACTORS = (0.25, 0.5, 1.0, 2.0)  # of the median distance
# From strong to weak: each search starts from the one before.
CENTER_RIDGES = (10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
WIDTH_RIDGES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
TRACE_LEFT_OUT = 1e-4  # of the kernel; ridges smooth away what is smaller
SMALLEST_UNIT = 1e-6  # of residuals, relative to the standard deviation of y: noise-free data have no unit
SEARCH_ITERATIONS, SEARCH_TOL = 100, 1e-6  # coarse: the score that decides is a noisy one


@dataclass(frozen=True, eq=False)
class Start:
    """The ridge regression that suits the rows best: its features, ridge and typical squared residual.

    Parameters
    ----------
    lengthscale : float
    features : KernelFeatures
    matrix : ndarray of shape (n, d + p)
        Standardised and kernel features of the learning rows.
    center_ridge : float
    unit : float
        Root of the level-quantile of the squared residuals, each of a row left out.
    """

    lengthscale: float
    features: KernelFeatures
    matrix: Array
    center_ridge: float
    unit: float


def feature_matrix(points: Array, features: KernelFeatures) -> Array:
    """Features of rows, shape (n, d + p): the points themselves, for trends, and those of the kernel."""
    return np.hstack([points, features.transform(points).T])


def least_squares(points: Array, y: Array, level: float, lengthscale: Any, ridge: Any, max_rank: int) -> Start:
    """Choose lengthscale and ridge by the squared error of rows left out.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Standardised rows.
    y : ndarray of shape (n,)
        Standardised targets.
    level : float
        Confidence level.
    lengthscale, ridge : "auto" or float
        What to choose; a number is kept.
    max_rank : int
        Largest number of kernel features.
    """
    median = median_lengthscale(points)
    lengthscales = [factor * median for factor in FACTORS] if isinstance(lengthscale, str) else [float(lengthscale)]
    ridges = CENTER_RIDGES if isinstance(ridge, str) else (float(ridge),)
    best, least = None, np.inf
    for ell in lengthscales:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LowRankWarning)  # a regression needs no exact kernel
            features = learn_features(points, StationaryKernel("matern52", (ell,)), (max_rank, TRACE_LEFT_OUT))
        matrix = feature_matrix(points, features)
        axes = Axes.of(matrix)
        for gamma in ridges:
            squares = np.square(axes.left_out_residuals(y, gamma))
            if best is None or squares.mean() < least:
                unit = max(float(np.sqrt(np.quantile(squares, level))), SMALLEST_UNIT)
                best, least = Start(ell, features, matrix, gamma, unit), float(squares.mean())
    assert best is not None  # there is at least one candidate
    return best


def tune_ridges(
    start: Start, target: Target, folds: KFold, *, center_ridges: list[float], width_ridges: list[float]
) -> dict[str, Any]:
    """Cross-validated interval score of pairs of ridges.

    The score is that of the held-out intervals after all have been widened by the constant that makes the share
    `level` of them cover, as calibration will do.

    Parameters
    ----------
    start : Start
    target : Target
        Observations, level and width penalty; its ridges are not used.
    folds : KFold
    center_ridges, width_ridges : list of float
        Candidates.

    Returns
    -------
    dict
        The best ``center_ridge`` and ``width_ridge``, all of both, and ``interval_score``, one row per centre ridge.
    """
    y = target.y
    ends = np.empty((len(center_ridges), len(width_ridges), 2, len(y)))
    for others, held in folds.split(y):
        axes = Axes.of(start.matrix[others])
        coordinates = (start.matrix[held] - axes.mean) @ axes.directions
        for i, center_ridge in enumerate(center_ridges):
            linear = None
            for j, width_ridge in enumerate(width_ridges):
                part = replace(target, y=y[others], center_ridge=center_ridge, width_ridge=width_ridge)
                linear = minimise(axes, part, linear, max_iter=SEARCH_ITERATIONS, tol=SEARCH_TOL).linear
                ends[i, j][:, held] = ends_of(linear, coordinates)
    scores = np.array([[_widened_score(y, lower, upper, target.level) for lower, upper in row] for row in ends])
    best = np.unravel_index(scores.argmin(), scores.shape)
    return {
        "center_ridge": center_ridges[best[0]],
        "width_ridge": width_ridges[best[1]],
        "center_ridges": np.array(center_ridges),
        "width_ridges": np.array(width_ridges),
        "interval_score": scores,
    }


def _widened_score(y: Array, lower: Array, upper: Array, level: float) -> float:
    """Interval score (Winkler) of intervals moved by one constant such that they cover."""
    outside = np.maximum(lower - y, y - upper)
    q = np.sort(outside)[min(conformal_rank(len(y), level), len(y)) - 1]
    lower, upper = lower - q, upper + q
    missed = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return float(np.mean(upper - lower + 2 / (1 - level) * missed))
