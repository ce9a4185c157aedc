"""Measures and tests of dependence and symmetry: arrays in, numbers out."""

from sosbands.stats.dependence import distance_correlation, hsic
from sosbands.stats.tests import (
    TestResult,
    bootstrap_test,
    feature_independence_test,
    independence_test,
    kruskal_wallis_test,
    sign_flip_test,
)

__all__ = [
    "TestResult",
    "bootstrap_test",
    "distance_correlation",
    "feature_independence_test",
    "hsic",
    "independence_test",
    "kruskal_wallis_test",
    "sign_flip_test",
]
