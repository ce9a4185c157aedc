"""Measures and tests of dependence and symmetry: arrays in, numbers out."""

from sosbands.stats.hsic import distance_correlation, distance_covariance_squared, hsic
from sosbands.stats.independence import TestResult, feature_independence_test, independence_test
from sosbands.stats.kruskal_wallis import kruskal_wallis_test
from sosbands.stats.symmetry import bootstrap_test, sign_flip_test

__all__ = [
    "TestResult",
    "bootstrap_test",
    "distance_correlation",
    "distance_covariance_squared",
    "feature_independence_test",
    "hsic",
    "independence_test",
    "kruskal_wallis_test",
    "sign_flip_test",
]
