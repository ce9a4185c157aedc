"""The asymmetric problem (symmetry penalty 0): two independent one-sided problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.base import Argument, BandDual
from sosbands.problems.certificate import Certificate, Sides, add_certificates
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.side import Box, SideState, SideTerm

DENSE = 300  # free multipliers up to which their Hessian is formed and factorised


class OneSidedProblem(BandDual):
    """``min_A weight ((b/n) sum f_A(X_i) + Omega(A))`` subject to ``f_A(X_i) >= target_i``, A PSD.

    With ``tau > 0`` rows may lie outside at the price ``b/(n tau)`` for each unit. Dual, maximised over ``gamma`` in
    ``[0, b/(n tau)]``: ``weight (gamma'target - Omega*(V Diag(gamma - b/n) V'))``, gradient
    ``weight (target - f_A(X))``.
    """

    def __init__(self, term: SideTerm, target: Array, weight: float = 1.0) -> None:
        super().__init__((term,), (target,), weight=weight)
        self._block: tuple[SideState, IntArray, Array] | None = None

    def with_terms(self, terms: tuple[SideTerm, ...], rows: IntArray | None = None) -> OneSidedProblem:
        """The same problem with another term, of the learning points in `rows` if given."""
        (target,) = self.targets
        return OneSidedProblem(terms[0], target if rows is None else target[rows], self.weight)

    def arguments(self, z: Array) -> tuple[Argument, ...]:
        """The multipliers themselves."""
        return ((z, None),)

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        (rows,) = np.nonzero(support)
        if len(rows) <= DENSE:
            H = self._hessian(z, rows)
            return lambda d: H @ d
        state = self.state(z).sides[0].restricted(support)
        return lambda d: self.weight * state.derivative(d)[0]

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array] | None:
        """Inverse of minus the Hessian plus ``shift I`` on the variables in `free`, if they are few."""
        (rows,) = np.nonzero(free)
        if len(rows) > DENSE:
            return None
        H = self._hessian(z, rows)
        H.flat[:: len(rows) + 1] += shift
        factor, failed = dpotrf(H, lower=1, overwrite_a=1)
        return None if failed else lambda rhs: dpotrs(factor, rhs, lower=1)[0]

    def _hessian(self, z: Array, rows: IntArray) -> Array:
        """Minus the Hessian at `rows` as a new matrix, from that of the last call if it was at the same z."""
        state = self.state(z).sides[0]
        known = self._block
        if known is None or known[0] is not state or not np.isin(rows, known[1]).all():
            known = self._block = (state, rows, self.weight * state.hessian_block(rows))
        at = np.searchsorted(known[1], rows)
        return known[2][np.ix_(at, at)]

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        return self.weight * self.sides[0].objective(sides[0], self.targets[0])


class AsymmetricProblem:
    """Both sides without any coupling: ``z = (gamma_lo, gamma_up)``.

    Parameters
    ----------
    lower, upper : SideTerm
        Each with its own features.
    r : ndarray of shape (n,)
        Residuals; the targets are -r below and r above.
    """

    def __init__(self, lower: SideTerm, upper: SideTerm, r: Array) -> None:
        self._parts = (OneSidedProblem(lower, -r), OneSidedProblem(upper, r))
        self.n = len(r)
        self.n_variables = 2 * self.n
        self.bounds = Box.joined(*(part.bounds for part in self._parts))

    @property
    def decompositions(self) -> int:
        """Eigendecompositions made so far."""
        return sum(part.decompositions for part in self._parts)

    def parts(self) -> tuple[OneSidedProblem, ...]:
        """The lower and the upper problem."""
        return self._parts

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        halves = [part.value_and_grad(g) for part, g in zip(self._parts, np.split(z, 2), strict=True)]
        return sum(value for value, _ in halves), np.concatenate([grad for _, grad in halves])

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        halves = zip(self._parts, np.split(z, 2), np.split(support, 2), strict=True)
        products = [part.hessian_product(g, chosen) for part, g, chosen in halves]
        cut = [int(np.count_nonzero(support[: self.n]))]
        return lambda d: np.concatenate([h(half) for h, half in zip(products, np.split(d, cut), strict=True)])

    def certificate(self, z: Array) -> Certificate:
        """Certificate of z, each side repaired by itself."""
        halves = zip(self._parts, np.split(z, 2), strict=True)
        return self.joined_certificate([part.certificate(g) for part, g in halves])

    def joined_certificate(self, certificates: Sequence[Certificate]) -> Certificate:
        """Certificate of the sum from those of the parts."""
        return add_certificates(certificates)

    def objective(self, sides: Sides) -> float:
        """Primal value of both sides."""
        return sum(part.objective((side,)) for part, side in zip(self._parts, sides, strict=True))

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        return DualPoint(z[: self.n], z[self.n :], ceiling=self._parts[0].sides[0].ceiling)

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        point = point.below(self._parts[0].sides[0].ceiling)
        weights = self.bounds.clip(np.concatenate(point.weights))
        if point.alpha_0 is None and not point.shared:
            return weights
        # a side has nothing to cover where its target is not positive: weight there only lowers the dual
        return np.where(np.concatenate([part.targets[0] for part in self._parts]) > 0, weights, 0.0)
