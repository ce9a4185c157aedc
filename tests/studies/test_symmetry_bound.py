"""Bounds of the difference between the band functions: true on fine grids, and right by hand."""

import numpy as np
import pytest
from numpy import inf, nan

from contracts import matern52
from sosbands import learn_bands
from sosbands.solvers import Status
from studies.symmetry_bound import symmetry_bound


def data(seed=0, n=18, d=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, (0.3 + X[:, 0] ** 2) * rng.gumbel(size=n)


def certified(X, r, **options):
    """Solve, and check the proof of quality that comes with the answer."""
    options = {"tol": 1e-6, "lengthscale": 0.5, **options}
    solution = learn_bands(X, r, **options)
    assert solution.status == Status.CONVERGED
    assert solution.gap <= options["tol"]
    assert solution.violation <= 1e-9
    assert np.all(solution.values_lower >= -np.asarray(r) - 1e-9 * np.abs(r).max())
    assert np.all(solution.values_upper >= np.asarray(r) - 1e-9 * np.abs(r).max())
    return solution


def fine_grid(X, d):
    axis = np.linspace(-1, 1, 2001 if d == 1 else 81)[:, None]
    points = axis if d == 1 else np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    distance = np.min(np.linalg.norm(points[:, None] - X[None], axis=2), axis=1).max()
    # every point of the square is within half a cell of a grid point
    return points, distance + np.sqrt(d) * (axis[1, 0] - axis[0, 0]) / 2


@pytest.mark.parametrize("penalty", [0.0, 1e-2, 1.0, 1e3, inf])
@pytest.mark.parametrize(("d", "ell"), [(1, 0.2), (1, 2.0), (2, 0.7)])
def test_symmetry_bounds_hold_on_a_fine_grid(d, ell, penalty):
    X, r = data(16, 20, d)
    solution = certified(X, r, lengthscale=ell, symmetry_penalty=penalty, width_penalty=1.0)
    points, rho = fine_grid(X, d)
    largest = np.abs(solution.lower(points) - solution.upper(points)).max()
    bound = symmetry_bound(solution, rho)
    for value in (bound.operator, bound.training, bound.paper_operator, bound.paper_training):
        assert value >= largest * (1 - 1e-9) - 1e-12
    assert bound.operator <= bound.paper_operator
    assert bound.training <= bound.paper_training
    if penalty == inf:
        assert bound.operator == bound.training == largest == 0.0


def test_symmetry_bounds_by_hand():
    """Two far points, residuals 1 and -2: A_lo and A_up are rank one along the features of one point each."""
    X = np.array([[0.0], [1000.0]])
    solution = certified(X, [1.0, -2.0], lengthscale=2.0, symmetry_penalty=0.0)
    bound = symmetry_bound(solution, 0.25)
    slope = np.sqrt(5 / 3) / 2.0  # of the kernel, here below 1
    M = 2**3.5 * np.sqrt(2 * np.pi)
    assert bound.operator == pytest.approx(2.0, rel=1e-3)
    assert bound.training == pytest.approx(2.0 + 2 * slope * 2.0 * 0.25, rel=1e-3)
    assert bound.paper_operator == pytest.approx(M * 3.0, rel=1e-3)
    assert bound.paper_training == pytest.approx(2 * M * 3.0 * 0.25 + np.sqrt(5.0), rel=1e-3)
    without = symmetry_bound(solution)
    assert (without.training, without.paper_training) == (None, None)
    assert without.operator == bound.operator


def test_symmetry_bound_of_other_kernels():
    X, r = data(17)
    solution = certified(X, r, kernel="gaussian")
    bound = symmetry_bound(solution, 0.1)
    assert (bound.training, bound.paper_operator, bound.paper_training) == (None, None, None)
    points, _ = fine_grid(X, 1)
    assert bound.operator >= np.abs(solution.lower(points) - solution.upper(points)).max()
    two = certified(X, r, lengthscale={"lower": 0.3, "upper": 0.7})
    own = certified(matern52(X, X, 0.5), r, kernel="precomputed", lengthscale="median")
    for solution in (two, own):
        with pytest.raises(ValueError, match="kernel"):
            symmetry_bound(solution)
    good = certified(X, r)
    for rho in (-1.0, nan, inf):
        with pytest.raises(ValueError, match="fill_distance"):
            symmetry_bound(good, rho)


def test_symmetry_bounds_hold_with_a_constant():
    X, r = data(40, 60)
    settings = {"constant": True, "symmetry_penalty": 0.1, "learning_coverage": 0.9, "width_penalty": 20.0}
    bands = learn_bands(X, r, lengthscale=0.5, tol=1e-6, **settings)
    grid, fill = fine_grid(X, 1)
    bound = symmetry_bound(bands, fill)
    assert np.abs(bands.lower(grid) - bands.upper(grid)).max() <= min(bound.operator, bound.training)
    assert (bound.paper_operator, bound.paper_training) == (None, None)
