"""Nested bands: what a step solves, that nothing crosses, and what is refused."""

import numpy as np
import pytest

from sosbands.bands import NestedBands, NestedFunctions, SoSFunction, learn_band_path, learn_bands, learn_nested_bands
from sosbands.bands.nested import outside
from sosbands.solvers import Status

TOL = 1e-5
COVERAGES = (0.5, 0.8, 0.95)
SETTINGS = {"lengthscale": 0.5, "width_penalty": 30.0, "trace_penalty": 0.1, "frobenius_penalty": 0.5, "tol": TOL}


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    return X, (0.5 + X[:, 0] ** 2) * (rng.gamma(1.5, size=n) - 1.5)


def learn(X, r, coverages=COVERAGES, **settings):
    bands = learn_nested_bands(X, r, coverages, **{**SETTINGS, **settings})
    assert all(step.status == Status.CONVERGED and -1e-12 <= step.gap <= TOL for step in bands.steps)
    return bands


def check_nested(lower, upper):
    """Raise an AssertionError where a function of a smaller coverage exceeds one of a larger."""
    assert (lower[:, 0] >= 0).all()
    assert (upper[:, 0] >= 0).all()
    assert (np.diff(lower, axis=1) >= 0).all()
    assert (np.diff(upper, axis=1) >= 0).all()


@pytest.mark.parametrize("penalty", [0.0, 0.3, np.inf])
def test_the_first_step_is_the_band_of_the_first_coverage(penalty):
    X, r = data()
    nested = learn(X, r, symmetry_penalty=penalty)
    one = learn_bands(X, r, learning_coverage=COVERAGES[0], symmetry_penalty=penalty, **SETTINGS)
    assert nested.steps[0].primal_value == one.primal_value
    np.testing.assert_array_equal(nested.lower(X)[:, 0], one.lower(X))


def literal_cost(B_lo, B_up, V, r, below, above, coverage):
    """The problem of a step without any residual cut at 0: width and price of ``f + g``, penalties of g alone."""
    b, lam1, lam2 = (SETTINGS[name] for name in ("width_penalty", "trace_penalty", "frobenius_penalty"))
    tau, total = (1 - coverage) / 2, 0.0
    for B, target, f in ((B_lo, -r, below), (B_up, r, above)):
        A, g = B @ B.T, np.square(B.T @ V).sum(axis=0)
        total += b / len(r) * np.sum(g + np.maximum(target - f - g, 0.0) / tau)
        total += lam1 * np.trace(A) + lam2 * np.sum(A**2)
    return total


def test_a_step_solves_the_problem_with_residuals_of_both_signs():
    """Cutting residuals at 0 changes no cost, whatever the sum of squares; the certified value is the literal one."""
    X, r = data()
    bands = learn(X, r, symmetry_penalty=0.0)
    rng, V = np.random.default_rng(1), bands.steps[0].lower.features.V
    below, above = np.zeros((2, len(r)))
    for c, step in zip(COVERAGES, bands.steps, strict=True):
        cost = literal_cost(step.lower.B, step.upper.B, V, r, below, above, c)
        assert cost == pytest.approx(step.primal_value, rel=1e-8)
        for _ in range(20):  # no other pair is cheaper
            moved = [B + 0.01 * rng.standard_normal(B.shape) for B in (step.lower.B, step.upper.B)]
            assert literal_cost(*moved, V, r, below, above, c) >= step.dual_value
        below, above = below + step.values_lower, above + step.values_upper


def test_residuals_outside_by_hand():
    r, below, above = np.array([-3.0, -1.0, 0.5, 4.0]), np.full(4, 2.0), np.full(4, 1.5)
    assert outside(r, below, above).tolist() == [-1.0, 0.0, 0.0, 2.5]


@pytest.mark.parametrize("penalty", [0.0, 1.0, np.inf])
def test_nothing_crosses_anywhere(penalty):
    X, r = data()
    bands = learn(X, r, symmetry_penalty=penalty, constant=True)
    new = np.random.default_rng(2).uniform(-5, 5, (3000, 1))
    check_nested(bands.lower(new), bands.upper(new))
    check_nested(bands.values_lower, bands.values_upper)
    functions = bands.functions.deployed()
    check_nested(*functions.evaluate(new)[:2])
    np.testing.assert_allclose(functions.upper(new), bands.upper(new), rtol=1e-6, atol=1e-9)
    assert functions.upper_steps[1].features is functions.upper_steps[0].features


def test_bands_that_were_learnt_apart_are_found_to_cross():
    X, r = data(n=60)
    apart = list(learn_band_path(X, r, learning_coverages=COVERAGES, symmetry_penalty=0.0, **SETTINGS))
    values = [np.stack([getattr(each, side)(X) for each in apart], axis=1) for side in ("lower", "upper")]
    with pytest.raises(AssertionError):
        check_nested(*values)


def test_each_band_covers_about_its_share():
    X, r = data(n=150, seed=3)
    bands = learn(X, r, width_penalty=300.0, symmetry_penalty=0.0)
    for k, c in enumerate(COVERAGES):
        below, above = bands.values_lower[:, k], bands.values_upper[:, k]
        # rows that lie on the band are in or out by rounding
        inside, near = (np.mean((-below - room <= r) & (r <= above + room)) for room in (-1e-3, 1e-3))
        assert inside - 0.02 <= c <= near + 0.02
        assert near - inside < 0.2
    np.testing.assert_allclose(bands.lower(X), bands.values_lower, atol=1e-7)


def test_the_last_band_may_cover_every_row():
    X, r = data()
    bands = learn(X, r, (0.5, 1.0))
    assert (bands.values_upper[:, 1] >= r - 1e-9).all()
    assert (bands.values_lower[:, 1] >= -r - 1e-9).all()


def test_rows_that_are_covered_already_need_no_further_step():
    X, r = data(n=20)
    bands = learn(X, np.where(np.arange(20) == 3, 1.0, 0.0), (0.5, 0.9))
    assert bands.steps[0].primal_value > 0
    zero = learn(X, 0 * r, (0.5, 0.9))
    assert zero.upper(X).tolist() == np.zeros((20, 2)).tolist()
    assert [each["gap"] for each in zero.certificates] == [0.0, 0.0]


def test_units_of_the_residuals_make_the_bands_equivariant():
    X, r = data()
    one, ten = (learn(X, c * r, normalize="residuals", constant=True) for c in (1.0, 10.0))
    np.testing.assert_allclose(ten.values_upper, 10 * one.values_upper, rtol=1e-3, atol=1e-3)


def test_a_row_of_weight_two_is_two_rows():
    X, r = data(n=30)
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    twice = np.repeat(np.arange(30), weight.astype(int))
    settings = {"coverages": (0.5, 0.9), "constant": True, "symmetry_penalty": 0.0}
    weighed, repeated = learn(X, r, sample_weight=weight, **settings), learn(X[twice], r[twice], **settings)
    np.testing.assert_allclose(weighed.upper(X), repeated.upper(X), atol=2e-3)


def test_what_it_prints():
    text = repr(learn(*data(), (0.5, 0.9)))
    assert text.startswith("NestedBands(2 coverages)\n  0.5      mean width lower ")
    assert "converged, gap" in text.splitlines()[2]


@pytest.mark.parametrize(
    "coverages", [(), (0.9, 0.8), (0.5, 0.5), (0.0, 0.5), (0.5, 1.1), (True,), ("0.5",), "0.5", 0.5]
)
def test_bad_coverages_are_named(coverages):
    with pytest.raises(ValueError, match=r"learning_coverages=.*: expected increasing numbers in \(0, 1\]"):
        learn_nested_bands(*data(), coverages)


def test_other_bad_arguments_are_named():
    X, r = data()
    with pytest.raises(TypeError, match="expected no learning_coverage beside them"):
        learn_nested_bands(X, r, (0.5,), learning_coverage=0.9)
    with pytest.raises(TypeError, match="unexpected keyword argument 'width'"):
        learn_nested_bands(X, r, (0.5,), width=1.0)
    bands = learn(X, r, (0.5,))
    step = bands.steps[0]
    assert isinstance(bands, NestedBands)
    assert isinstance(step.lower, SoSFunction)
    with pytest.raises(ValueError, match="1 lower and 0 upper steps: expected 1, one for each coverage"):
        NestedFunctions((0.5,), (step.lower,), ())
