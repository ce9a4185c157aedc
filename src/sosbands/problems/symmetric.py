"""The symmetric limit (symmetry penalty inf): one function for both sides."""

from __future__ import annotations

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.problems.asymmetric import OneSidedProblem
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.side import SideTerm


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
