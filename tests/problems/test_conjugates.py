"""Conjugates of the regularisers: values by hand, Fenchel-Young, finite differences."""

import numpy as np
import pytest

from contracts import check_conjugate
from sosbands.problems.operator_penalty import NuclearFrobenius
from sosbands.problems.side import PositivePart, TraceFrobenius


def trace_frobenius(lam1, lam2):
    def omega(A):
        if np.linalg.eigvalsh(A).min() < -1e-10 * max(1.0, np.abs(A).max()):
            return np.inf
        return lam1 * np.trace(A) + lam2 * np.sum(A**2)

    return omega


def nuclear_frobenius(lam1, lam2):
    return lambda D: lam1 * np.abs(np.linalg.eigvalsh(D)).sum() + lam2 * np.sum(D**2)


OMEGA = {TraceFrobenius: trace_frobenius, NuclearFrobenius: nuclear_frobenius}


@pytest.mark.parametrize(("lam1", "lam2"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.01), (2.0, 100.0)])
@pytest.mark.parametrize("kind", OMEGA)
def test_contract(kind, lam1, lam2):
    check_conjugate(kind(lam1, lam2), OMEGA[kind](lam1, lam2), seed=1)


def test_values_by_hand():
    # eigenvalues of M - I are 2, 0, -3: Ω*(M) = 2²/(4·½), gradient [M - I]_+ / (2·½)
    value, grad = TraceFrobenius(1.0, 0.5).conjugate(np.diag([3.0, 1.0, -2.0]))
    assert value == pytest.approx(2.0, rel=1e-14)
    np.testing.assert_allclose(grad, np.diag([2.0, 0.0, 0.0]), atol=1e-14)
    # |eigenvalues| - 1 are 2, 0, 1 with signs +, +, -: (4 + 1)/(4·2), gradient sign(w) excess/(2·2)
    value, grad = NuclearFrobenius(1.0, 2.0).conjugate(np.diag([3.0, 0.5, -2.0]))
    assert value == pytest.approx(5 / 8, rel=1e-14)
    np.testing.assert_allclose(grad, np.diag([0.5, 0.0, -0.25]), atol=1e-14)
    assert NuclearFrobenius(1.0, 2.0).of_eigenvalues(np.array([3.0, -1.0])) == pytest.approx(4 + 20, rel=1e-14)


def test_nothing_positive_gives_an_empty_factor():
    part = TraceFrobenius(1.0, 1.0).decompose(np.diag([0.5, -1.0]))
    assert part.rank == 0
    assert part.value == 0
    assert part.factor.shape == (2, 0)


def difference_of_gradients(regulariser, M, D, h=1e-6):
    return (regulariser.conjugate(M + h * D)[1] - regulariser.conjugate(M - h * D)[1]) / (2 * h)


def check_derivative(decompose, regulariser):
    """The derivative of the gradient by a factor, and by the curvature in the eigenbasis."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        M, D = (X + X.T for X in rng.standard_normal((2, 8, 8)))
        part = decompose(M)
        assert 0 < part.rank < 8
        U, Up = part.U, part.U[:, : part.rank]
        C = part.derivative_factor(D @ Up)
        expected = difference_of_gradients(regulariser, M, D)
        for found in (C @ Up.T + Up @ C.T, U @ (part.curvature * (U.T @ D @ U)) @ U.T):
            np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_derivatives_are_those_of_the_gradient():
    regulariser = TraceFrobenius(0.4, 0.7)
    check_derivative(regulariser.decompose, regulariser)


@pytest.mark.parametrize("shift", [-50.0, 50.0])
def test_curvature_where_all_eigenvalues_have_one_sign(shift):
    part = TraceFrobenius(0.0, 0.7).decompose(np.diag(np.arange(1.0, 5.0)) + shift * np.eye(4))
    np.testing.assert_allclose(part.curvature, np.full((4, 4), float(shift > 0) / 1.4))


@pytest.mark.parametrize("lam_pen1", [0.0, 0.8])
def test_derivative_of_the_soft_threshold(lam_pen1):
    regulariser = NuclearFrobenius(lam_pen1, 0.7)
    rng = np.random.default_rng(5)
    for _ in range(5):
        W, D = (X + X.T for X in rng.standard_normal((2, 6, 6)))
        expected = difference_of_gradients(regulariser, W, D)
        np.testing.assert_allclose(regulariser.derivative(W)(D), expected, atol=1e-6 * np.abs(expected).max())
    # a double eigenvalue: slope 1 above the threshold, 0 below it
    above, below = regulariser.derivative(2 * np.eye(3)), regulariser.derivative(0.5 * np.eye(3))
    D = np.array([[1.0, 2.0, 0.0], [2.0, -1.0, 3.0], [0.0, 3.0, 0.5]])
    np.testing.assert_allclose(above(D), D / 1.4, atol=1e-13)
    np.testing.assert_allclose(below(D), D / 1.4 if lam_pen1 == 0 else 0 * D, atol=1e-13)


# ---------------------------------------------------------------- broken ones are rejected


class OffByTwo(TraceFrobenius):
    def conjugate(self, M):
        value, grad = super().conjugate(M)
        return 2 * value, grad


class PrintedInThePaper(TraceFrobenius):
    """``max(0, (t - lam1)/(4 lam2))^2``, a misprint for ``max(0, t - lam1)^2 / (4 lam2)``."""

    def conjugate(self, M):
        w = np.linalg.eigvalsh(M)
        return float(np.sum(np.maximum(0, (w - self.lam1) / (4 * self.lam2)) ** 2)), super().conjugate(M)[1]


class MissesAnEigenvalue(TraceFrobenius):
    def decompose(self, M):
        part = super().decompose(M)
        return PositivePart(part.w, part.U, part.rank - 1, part.lam2)


class WrongGradientSign(TraceFrobenius):
    def conjugate(self, M):
        value, grad = super().conjugate(M)
        return value, -grad


class WritesItsInput(TraceFrobenius):
    def conjugate(self, M):
        M -= self.lam1 * np.eye(len(M))
        return TraceFrobenius(0.0, self.lam2).conjugate(M)


class ForgetsSigns(NuclearFrobenius):
    def conjugate(self, W):
        value, grad = super().conjugate(W)
        w, U = np.linalg.eigh(grad)
        return value, (U * np.abs(w)) @ U.T


class OneSided(NuclearFrobenius):
    def conjugate(self, W):
        return TraceFrobenius(self.lam_pen1, self.lam_pen2).conjugate(W)


BROKEN = [OffByTwo, PrintedInThePaper, MissesAnEigenvalue, WrongGradientSign, WritesItsInput, ForgetsSigns, OneSided]


@pytest.mark.parametrize("broken", BROKEN)
def test_contract_rejects_broken_ones(broken):
    omega = OMEGA[broken.__base__]
    with pytest.raises(AssertionError):
        check_conjugate(broken(1.0, 0.6), omega(1.0, 0.6), seed=1)


class NoCrossTerms(PositivePart):
    def derivative_factor(self, T):
        Up = self.U[:, : self.rank]
        return Up @ (0.5 * Up.T @ T) / (2 * self.lam2)


def test_derivative_check_rejects_missing_cross_terms():
    regulariser = TraceFrobenius(0.4, 0.7)

    def decompose(M):
        part = regulariser.decompose(M)
        return NoCrossTerms(part.w, part.U, part.rank, part.lam2)

    with pytest.raises(AssertionError):
        check_derivative(decompose, regulariser)
