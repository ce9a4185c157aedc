"""One function above a target; both sides without coupling (symmetry penalty 0), and one for both (inf)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.certificate import Certificate, Sides, add_certificates
from sosbands.problems.dual import Argument, BandDual, DualPoint
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
        whole = self.state(z).sides[0]
        state = SideState(whole.V[:, support], whole.part)  # derivatives then cost nothing for the other points
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
        if self._block is not None and self._block[0] is state and self._block[1].size:
            _, known, H = self._block
            at = np.searchsorted(known, rows).clip(max=known.size - 1)
            if np.array_equal(known[at], rows):
                return np.asarray(H[np.ix_(at, at)])
        self._block = (state, rows, self.weight * state.hessian_block(rows))
        return self._block[2].copy()

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        return self.weight * self._separate(sides)


class SymmetricProblem(OneSidedProblem):
    """One function with ``f(X_i) >= |r_i|``, counted twice so that values continue those of finite penalties.

    The term is that of the shared function (`SideCost.shared`): its ``tau`` is that of both sides together.
    """

    def __init__(self, term: SideTerm, r: Array) -> None:
        super().__init__(term, np.abs(r), weight=2.0)
        self.r = r

    def with_terms(self, terms: tuple[SideTerm, ...], rows: IntArray | None = None) -> SymmetricProblem:
        """The same problem with another term, of the learning points in `rows` if given."""
        return SymmetricProblem(terms[0], self.r if rows is None else self.r[rows])

    def dual_point(self, z: Array) -> DualPoint:
        """Multipliers of the two-sided problem: all of ``2 gamma_i`` on the side that the residual is on."""
        below = self.r < 0
        ceiling = 2 * self.sides[0].ceiling
        return DualPoint(np.where(below, 2 * z, 0.0), np.where(below, 0.0, 2 * z), shared=True, ceiling=ceiling)

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        point = point.below(2 * self.sides[0].ceiling)
        return 0.5 * (point.gamma_lo + point.gamma_up)


class AsymmetricProblem:
    """Both sides without any coupling: ``z = (gamma_lo, gamma_up)``; `solve` takes its `parts` one by one."""

    def __init__(self, lower: SideTerm, upper: SideTerm, r: Array) -> None:
        self.parts = (OneSidedProblem(lower, -r), OneSidedProblem(upper, r))  # targets -r below and r above
        self.n, self.n_variables = len(r), 2 * len(r)
        self.bounds = Box.joined(*(part.bounds for part in self.parts))

    @property
    def decompositions(self) -> int:
        """Eigendecompositions made so far."""
        return sum(part.decompositions for part in self.parts)

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        halves = [part.value_and_grad(g) for part, g in zip(self.parts, np.split(z, 2), strict=True)]
        return sum(value for value, _ in halves), np.concatenate([grad for _, grad in halves])

    def certificate(self, z: Array) -> Certificate:
        """Certificate of z, each side repaired by itself."""
        return add_certificates([part.certificate(g) for part, g in zip(self.parts, np.split(z, 2), strict=True)])

    def objective(self, sides: Sides) -> float:
        """Primal value of both sides."""
        return sum(part.objective((side,)) for part, side in zip(self.parts, sides, strict=True))

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        return DualPoint(z[: self.n], z[self.n :], ceiling=self.parts[0].sides[0].ceiling)

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        point = point.below(self.parts[0].sides[0].ceiling)
        weights = self.bounds.clip(np.concatenate(point.weights))
        if point.alpha_0 is None and not point.shared:
            return weights
        # a side has nothing to cover where its target is not positive: weight there only lowers the dual
        return np.where(np.concatenate([part.targets[0] for part in self.parts]) > 0, weights, 0.0)
