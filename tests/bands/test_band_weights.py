"""Rows that count more than others: a row of weight k is one that is there k times."""

import numpy as np
import pytest

from sosbands import learn_band_path, learn_bands
from sosbands.bands import penalty_scale

KINDS = {
    "asymmetric": {"symmetry_penalty": 0.0},
    "training": {"symmetry_penalty": 3.0},
    "sides": {"symmetry_penalty": 3.0, "lengthscale": {"lower": 0.8, "upper": 1.4}},
    "operator": {"symmetry_penalty": (0.1, 0.5), "symmetry_kind": "operator"},
    "symmetric": {"symmetry_penalty": np.inf},
}


def rows(n=24, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    r = (0.2 + np.abs(X[:, 0])) * rng.exponential(1, n) - 0.4
    return X, r, rng.integers(1, 4, n)


@pytest.mark.parametrize(("normalize", "coverage"), [(True, 1.0), ("residuals", 0.8)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_is_a_number_of_copies(kind, coverage, normalize):
    X, r, times = rows()
    settings = {
        "lengthscale": 1.0,
        "learning_coverage": coverage,
        "normalize": normalize,
        "constant": True,
        "tol": 1e-7,
        "kernel": "matern32",
        **KINDS[kind],
    }
    if normalize is True:  # an initial model with the median lengthscale, which knows of copies but not of weights
        settings["normalize"] = penalty_scale(X, r)
    weighted = learn_bands(X, r, sample_weight=7.0 * times, **settings)
    if normalize is True:
        settings["normalize"] = type(settings["normalize"])(**{**vars(settings["normalize"]), "n": times.sum()})
    copied = learn_bands(np.repeat(X, times, axis=0), np.repeat(r, times), **settings)
    plain = learn_bands(X, r, **settings)
    new = np.random.default_rng(1).uniform(-2, 2, (50, 2))
    for side in ("lower", "upper"):
        one, other, without = (getattr(each, side)(new) for each in (weighted, copied, plain))
        np.testing.assert_allclose(one, other, atol=2e-3 * other.max())
        assert np.abs(without - other).max() > 0.01 * other.max()
    assert weighted.primal_value == pytest.approx(copied.primal_value, rel=1e-6)
    assert weighted.gap <= 1e-7
    sums = np.add.reduceat(copied.dual.gamma_up, np.cumsum(times) - times)  # multipliers of a copied row add up
    np.testing.assert_allclose(weighted.dual.gamma_up, sums, atol=2e-2 * sums.max())
    np.testing.assert_allclose(weighted.values_lower, weighted.lower(X), atol=1e-6)
    np.testing.assert_allclose(weighted.values_upper, weighted.upper(X), atol=1e-6)


def test_the_violation_is_that_of_the_residuals_as_given():
    X, r, times = rows()
    hard = learn_bands(X, r, sample_weight=times**3, lengthscale=1.0)
    assert hard.violation < 1e-9
    soft = learn_bands(X, r, sample_weight=times**3, lengthscale=1.0, learning_coverage=0.7, normalize="residuals")
    outside = max(np.max(r - soft.values_upper), np.max(-r - soft.values_lower))
    assert soft.violation == pytest.approx(outside / np.sqrt(np.mean(r**2)), rel=1e-9)
    assert outside > 0.1


def test_only_ratios_of_weights_count_and_equal_ones_are_none():
    X, r, times = rows()
    one, two, none, plain = (
        learn_bands(X, r, lengthscale=1.0, sample_weight=weight)
        for weight in (times, times / 1024, np.full(24, 5.0), None)
    )
    np.testing.assert_allclose(one.values_upper, two.values_upper, rtol=1e-9)
    np.testing.assert_array_equal(none.values_upper, plain.values_upper)


def test_paths_take_weights():
    X, r, times = rows()
    settings = {"lengthscale": 1.0, "sample_weight": times, "tol": 1e-6}
    for penalty, bands in zip((0.0, 1.0, np.inf), learn_band_path(X, r, [0.0, 1.0, np.inf], **settings), strict=True):
        alone = learn_bands(X, r, symmetry_penalty=penalty, **settings)
        np.testing.assert_allclose(bands.values_upper, alone.values_upper, atol=1e-2 * alone.values_upper.max())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight has shape \(3,\): expected \(24,\)"),
        (np.r_[0.0, np.ones(23)], "sample_weight is zero in some rows"),
        (np.r_[np.nan, np.ones(23)], "sample_weight has entries that are NaN, infinite or negative"),
    ],
)
def test_bad_weights_are_named(weights, message):
    X, r, _ = rows()
    with pytest.raises(ValueError, match=message):
        learn_bands(X, r, sample_weight=weights)
