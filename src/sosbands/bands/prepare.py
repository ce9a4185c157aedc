"""From points, residuals and penalties to problems in the solver's units, and back. States problems, never solves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from sosbands._arguments import naming, read_numbers, read_weights
from sosbands._cached import cached_property
from sosbands._threads import ONE_THREAD
from sosbands._types import AnyArray, Array
from sosbands.bands.penalties import PenaltyScale, SymmetryPenalty
from sosbands.bands.solution import BandSolution, band_solution, unweighted
from sosbands.bands.units import SolverUnits, solver_units
from sosbands.exceptions import InfeasibleProblemError, SymmetricLimitError
from sosbands.kernels import Kernel, KernelFeatures, learn_features, resolve_kernel
from sosbands.problems import (
    AsymmetricProblem,
    FeatureSpace,
    OperatorPenaltyProblem,
    SideCost,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.solvers import SolverResult

LARGEST_OPERATOR = 1e8  # relative to that for the row that asks for most
TwoSidedProblem = AsymmetricProblem | TrainingPenaltyProblem | OperatorPenaltyProblem | SymmetricProblem


@dataclass(frozen=True, eq=False)
class PreparedBands:
    """What every problem on the same points, residuals, kernels and costs shares.

    Attributes
    ----------
    r : ndarray of shape (n,)
        Residuals.
    lower, upper : KernelFeatures
        One object if both sides have the same.
    given : SideCost
        What one side costs, as the user says it.
    scale : PenaltyScale or None
        Units of the penalties, if they are normalised.
    weights : ndarray of shape (n,) or None
        How much each row counts, 1 in the mean.

    The solver knows of no weights: with features ``sqrt(w_i) Phi(X_i)`` and residuals ``w_i r_i`` every row has the
    function value ``w_i f(X_i)``, and so pays w_i times as much for its width and for what it lies outside.
    """

    r: Array
    lower: KernelFeatures
    upper: KernelFeatures
    given: SideCost
    scale: PenaltyScale | None
    weights: Array | None = None

    @property
    def is_zero(self) -> bool:
        """All residuals are zero, so that there is nothing to solve."""
        return not self.r.any()

    def with_cost(self, cost: SideCost) -> PreparedBands:
        """The same with another cost of the sides; what follows from the features alone is shared."""
        if cost == self.given:
            return self
        other = replace(self, given=cost)
        other.__dict__["_spaces"] = self._spaces
        return other

    def with_targets(self, r: Array, cost: SideCost) -> PreparedBands:
        """The same features with other residuals and another cost; the units of the penalties stay what they are."""
        other = replace(self, r=r, given=cost)
        other.__dict__["_spaces"] = self._spaces
        return other

    @cached_property
    def units(self) -> SolverUnits:
        """Units of the solver."""
        return solver_units(
            self._targets, self._variance, self.given if self.scale is None else self.scale.cost(self.given)
        )

    @cached_property
    def _variance(self) -> float:
        return float(np.square(self._weighted(self.lower)).sum(axis=0).max())

    @cached_property
    def _targets(self) -> Array:
        return self.r if self.weights is None else self.weights * self.r

    def _weighted(self, features: KernelFeatures) -> Array:
        return features.V if self.weights is None else features.V * np.sqrt(self.weights)

    @cached_property
    def _spaces(self) -> tuple[FeatureSpace, FeatureSpace]:
        """Features of both sides in the solver's units, one object if they are the same."""
        root = np.sqrt(self._variance)
        lower = FeatureSpace(self._weighted(self.lower) / root)
        return lower, lower if self.upper is self.lower else FeatureSpace(self._weighted(self.upper) / root)

    @cached_property
    def sides(self) -> tuple[SideTerm, SideTerm]:
        """Both sides in the solver's units, which do not depend on the symmetry penalty."""
        if self.given.is_hard:
            _check_reachable(self.lower, np.maximum(-self.r, 0.0))
            _check_reachable(self.upper, np.maximum(self.r, 0.0))
        below, above = self._spaces
        lower = SideTerm(below, self.units.cost)
        return lower, lower if above is below else SideTerm(above, self.units.cost)

    def problem(self, penalty: SymmetryPenalty) -> TwoSidedProblem:
        """The two-sided problem in the solver's units."""
        coupled = not penalty.is_asymmetric and penalty.kind == "operator"
        if self.lower is not self.upper and (penalty.is_symmetric or coupled):
            raise SymmetricLimitError(
                "lengthscale differs below and above: expected the same for both sides with "
                + ("symmetry_kind='operator'" if penalty.kind == "operator" else "symmetry_penalty=inf")
            )
        pen = self.units.symmetry(penalty if self.scale is None else self.scale.symmetry(penalty))
        (lower, upper), scaled = self.sides, self._targets / self.units.rms
        if pen.is_asymmetric:
            return AsymmetricProblem(lower, upper, scaled)
        if pen.is_symmetric:
            return SymmetricProblem(SideTerm(lower.space, lower.cost.shared), scaled)
        if pen.kind == "operator":
            return OperatorPenaltyProblem(lower, scaled, pen.lam_pen1, pen.lam_pen2)
        shares = 1.0 if self.weights is None else 1 / self.weights  # of the squares of w_i f(X_i)
        return TrainingPenaltyProblem(lower, upper, scaled, pen.lam_pen2, shares)

    def solution(self, problem: TwoSidedProblem, result: SolverResult) -> BandSolution:
        """The solver's result in the user's units."""
        found = band_solution(self.lower, self.upper, problem.dual_point(result.variables), result, self.units)
        return found if self.weights is None else unweighted(found, self.r, self.weights)


@dataclass(frozen=True, eq=False)
class LearningData:
    """Points and residuals, checked."""

    points: AnyArray
    r: Array
    kernel: Any
    rank: Any
    constant: bool = False
    weights: Array | None = None

    def prepare(self, lengthscale: Any, cost: SideCost, scale: PenaltyScale | None) -> PreparedBands:
        """Factorise the kernels."""
        lower, upper = self._features(lengthscale)
        return PreparedBands(self.r, lower, upper, cost, scale, self.weights)

    def _features(self, lengthscale: Any) -> tuple[KernelFeatures, KernelFeatures]:
        """Features of each side, one object if both sides have the same lengthscale."""
        if not isinstance(lengthscale, dict):
            shared = self._learn(self._kernel(lengthscale))
            return shared, shared
        if set(lengthscale) != {"lower", "upper"}:
            raise ValueError(f"lengthscale={lengthscale!r}: expected the keys 'lower' and 'upper'")
        kernels = [self._kernel(lengthscale[side]) for side in ("lower", "upper")]
        lower = self._learn(kernels[0])
        return lower, lower if kernels[0] == kernels[1] else self._learn(kernels[1])

    def _kernel(self, lengthscale: Any) -> Kernel:
        return resolve_kernel(self.kernel, lengthscale, self.points)

    def _learn(self, kernel: Kernel) -> KernelFeatures:
        with ONE_THREAD:
            return learn_features(self.points, kernel, self.rank, constant=self.constant)


def read_data(
    X: Any, residuals: Any, kernel: Any, rank: Any, constant: bool = False, sample_weight: Any = None
) -> LearningData:
    """Check points, residuals and weights."""
    points = _check_points(X, kernel)
    r = check_residuals(residuals, len(points))
    return LearningData(points, r, kernel, rank, constant, check_weights(sample_weight, len(points)))


def check_weights(sample_weight: Any, n: int) -> Array | None:
    """Weights of n rows, all above 0, as multiples of their mean; None if they are all the same."""
    if sample_weight is None:
        return None
    weights = read_weights(sample_weight, n)
    if not weights.all():
        raise ValueError("sample_weight is zero in some rows: leave rows of no weight out")
    return None if (weights == weights[0]).all() else weights / weights.mean()


def _check_reachable(features: KernelFeatures, r: Array) -> None:
    """Refuse rows that only operators beyond double precision would cover: of size ``r_i / ||Phi(X_i)||^2``."""
    sizes = np.square(features.V).sum(axis=0)
    asked = r / (r.max(initial=0.0) or 1.0)
    (unreachable,) = np.nonzero(asked * sizes.max() > LARGEST_OPERATOR * sizes)
    if unreachable.size:
        row = unreachable[0]
        raise InfeasibleProblemError(
            f"the features nearly vanish at row {row} (and {unreachable.size - 1} more), whose residual is not zero: "
            f"||Phi(x)||^2 is {sizes[row] / sizes.max():.1g} of the largest. Raise `rank`, use another kernel, a "
            "longer lengthscale, `constant=True`, or `learning_coverage` below 1"
        )


def _check_points(X: Any, kernel: Any) -> AnyArray:
    """Learning points as an array; numbers unless the kernel is a callable of its own."""
    if callable(kernel) and not hasattr(kernel, "diag"):
        points: AnyArray = np.asarray(X)
        if points.ndim == 0 or len(points) == 0:
            raise ValueError(f"X has shape {points.shape}: expected at least one learning point")
        return points
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    dtype = [np.float64, np.float32] if precomputed else np.float64
    with naming("X"), np.errstate(over="ignore", invalid="ignore"):  # of scikit-learn's sum of all entries
        points = check_array(X, dtype=dtype, input_name="X")
    if precomputed:
        if points.shape[0] != points.shape[1]:
            raise ValueError(f"X has shape {points.shape}: a precomputed kernel matrix must be square")
        if not np.allclose(points, points.T, rtol=1e-6, atol=1e-8 * float(np.abs(points).max())):
            raise ValueError("X: a precomputed kernel matrix must be symmetric")
    return points


def check_residuals(residuals: Any, n: int) -> Array:
    """Residuals as a vector of finite numbers, one per row."""
    r = read_numbers("residuals", residuals)
    if r.shape != (n,):
        raise ValueError(f"residuals have shape {r.shape}: expected ({n},), one per row of X")
    if not np.isfinite(r).all():
        kind = "NaN" if np.isnan(r).any() else "infinity"
        raise ValueError(f"Input residuals contains {kind}: expected finite numbers")
    return r
