"""From points, residuals and settings to problems in the solver's units, and back. States problems, never solves.

Solvers always see the same units: residuals of root mean square 1, kernel of largest variance 1 and ``lam2 = 1/2``, in
which multipliers and operators are of order one. This file alone goes there and comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from sosbands._arguments import naming, read_numbers, read_weights
from sosbands._threads import ONE_THREAD, cached_property
from sosbands._types import AnyArray, Array
from sosbands.bands.functions import SoSFunction
from sosbands.bands.settings import BandSettings, PenaltyScale, SymmetryPenalty, is_auto
from sosbands.bands.solution import BandSolution
from sosbands.exceptions import InfeasibleProblemError, ScaleError, SymmetricLimitError
from sosbands.kernels import KernelFeatures, learn_features, resolve_kernel
from sosbands.problems import (
    AsymmetricProblem,
    Certificate,
    DualPoint,
    FeatureSpace,
    OperatorPenaltyProblem,
    PrimalSide,
    SideCost,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
    TwoSidedProblem,
)
from sosbands.solvers import SolverResult, Status

LARGEST_OPERATOR = 1e8  # relative to that for the row that asks for most
# Eigenvalues of size lam1 resolve an operator of size one to lam1 * 1e-16: beyond this nothing is left of it.
LARGEST_PENALTY = 1e10
SMALLEST_UNIT = 1e-302  # below it values and multipliers are denormal numbers, which lose their digits
ACTIVE = 1e-6  # multipliers above this fraction of the largest are positive, within it of their ceiling at it


@dataclass(frozen=True, eq=False)
class BandData:
    """Points, residuals and weights, checked; weights as multiples of their mean, None if they are all the same."""

    points: AnyArray
    r: Array
    weights: Array | None = None

    @classmethod
    def read(cls, X: Any, residuals: Any, kernel: Any, sample_weight: Any = None) -> BandData:
        """Check what the user gives."""
        precomputed = isinstance(kernel, str) and kernel == "precomputed"
        if callable(kernel) and not hasattr(kernel, "diag"):  # a function of the user's, of whatever it compares
            points: AnyArray = np.asarray(X)
            if points.ndim == 0 or len(points) == 0:
                raise ValueError(f"X has shape {points.shape}: expected at least one learning point")
        else:
            dtype = [np.float64, np.float32] if precomputed else np.float64
            with naming("X"), np.errstate(over="ignore", invalid="ignore"):  # of scikit-learn's sum of all entries
                points = check_array(X, dtype=dtype, input_name="X")
        if precomputed:
            if points.shape[0] != points.shape[1]:
                raise ValueError(f"X has shape {points.shape}: a precomputed kernel matrix must be square")
            if not np.allclose(points, points.T, rtol=1e-6, atol=1e-8 * float(np.abs(points).max())):
                raise ValueError("X: a precomputed kernel matrix must be symmetric")
        r = read_numbers("residuals", residuals)
        if r.shape != (len(points),):
            raise ValueError(f"residuals have shape {r.shape}: expected ({len(points)},), one per row of X")
        if not np.isfinite(r).all():
            kind = "NaN" if np.isnan(r).any() else "infinity"
            raise ValueError(f"Input residuals contains {kind}: expected finite numbers")
        if sample_weight is None:
            return cls(points, r)
        weights = read_weights(sample_weight, len(points))
        if not weights.all():
            raise ValueError("sample_weight is zero in some rows: leave rows of no weight out")
        return cls(points, r, None if (weights == weights[0]).all() else weights / weights.mean())

    def prepare(self, settings: BandSettings, scale: PenaltyScale | None = None) -> PreparedBands:
        """Factorise the kernels, that of both sides once if they have the same lengthscale."""
        ell = settings.lengthscale
        sides = [ell[side] for side in ("lower", "upper")] if isinstance(ell, dict) else [ell]
        kernels = [resolve_kernel(settings.kernel, "median" if is_auto(each) else each, self.points) for each in sides]
        with ONE_THREAD:
            features = [
                learn_features(self.points, kernel, settings.rank, constant=bool(settings.constant))
                for kernel in (kernels if kernels[0] != kernels[-1] else kernels[:1])
            ]
        lower, upper = features[0], features[-1]
        weighted = [each.V if self.weights is None else each.V * np.sqrt(self.weights) for each in features]
        variance = float(np.square(weighted[0]).sum(axis=0).max())
        spaces = [FeatureSpace(V / np.sqrt(variance)) for V in weighted]
        return PreparedBands(self.r, self.weights, lower, upper, spaces[0], spaces[-1], variance, settings, scale)


@dataclass(frozen=True, eq=False)
class PreparedBands:
    """Points, residuals, kernels and settings of one problem, and what it shares with others on the same kernels.

    The solver knows of no weights: with features ``sqrt(w_i) Phi(X_i)`` and residuals ``w_i r_i`` every row has the
    value ``w_i f(X_i)``, and so pays w_i times as much for its width and for what it lies outside.
    """

    r: Array
    weights: Array | None
    lower: KernelFeatures  # the same object as above if both sides have the same features
    upper: KernelFeatures
    below: FeatureSpace  # the features in the solver's units
    above: FeatureSpace
    variance: float  # the largest of the kernel
    settings: BandSettings
    scale: PenaltyScale | None = None  # units of the penalties, if they are normalised

    def with_settings(self, settings: BandSettings, r: Array | None = None) -> PreparedBands:
        """Other settings on the same features, and other residuals; the units of the penalties stay what they are."""
        other = replace(self, settings=settings, r=self.r if r is None else r)
        if r is None and settings.cost == self.settings.cost:
            other.__dict__.update({name: self.__dict__[name] for name in ("units", "sides") if name in self.__dict__})
        return other

    @cached_property
    def _targets(self) -> Array:
        return self.r if self.weights is None else self.weights * self.r

    @cached_property
    def units(self) -> SolverUnits:
        """Units of the solver."""
        cost = self.settings.cost
        return solver_units(self._targets, self.variance, cost if self.scale is None else self.scale.cost(cost))

    @cached_property
    def sides(self) -> tuple[SideTerm, SideTerm]:
        """Both sides in the solver's units, which do not depend on the symmetry penalty."""
        for features, r in ((self.lower, -self.r), (self.upper, self.r)) if self.settings.cost.is_hard else ():
            # rows that only operators beyond double precision would cover, of size r_i / ||Phi(X_i)||^2
            sizes, r = np.square(features.V).sum(axis=0), np.maximum(r, 0.0)
            asked = r / (r.max(initial=0.0) or 1.0)
            (unreachable,) = np.nonzero(asked * sizes.max() > LARGEST_OPERATOR * sizes)
            if unreachable.size:
                row = unreachable[0]
                raise InfeasibleProblemError(
                    f"the features nearly vanish at row {row} (and {unreachable.size - 1} more), whose residual is not "
                    f"zero: ||Phi(x)||^2 is {sizes[row] / sizes.max():.1g} of the largest. Raise `rank`, use another "
                    "kernel, a longer lengthscale, `constant=True`, or `learning_coverage` below 1"
                )
        lower = SideTerm(self.below, self.units.cost)
        return lower, lower if self.above is self.below else SideTerm(self.above, self.units.cost)

    def problem(self) -> TwoSidedProblem:
        """The two-sided problem in the solver's units."""
        penalty = self.settings.symmetry
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
        shares: Array | float = 1.0 if self.weights is None else 1 / self.weights  # of the squares of w_i f(X_i)
        if pen.rows is not None and pen.rows < len(scaled):
            some = np.random.default_rng(0).permutation(len(scaled)) < pen.rows
            shares = np.where(some, shares * len(scaled) / pen.rows, 0.0)
        return TrainingPenaltyProblem(lower, upper, scaled, pen.lam_pen2, shares)

    def solution(self, point: DualPoint, result: SolverResult, units: SolverUnits | None = None) -> BandSolution:
        """The solver's result in the user's units, and for the rows as they are without weights."""
        units, weights = units or self.units, 1.0 if self.weights is None else self.weights
        certificate, unit = result.certificate, units.multiplier
        lower, upper = certificate.sides if len(certificate.sides) == 2 else certificate.sides * 2
        values_lower, values_upper = units.rms * lower.f / weights, units.rms * upper.f / weights
        violation = certificate.violation
        if self.weights is not None:
            farthest = max(float(np.max(-self.r - values_lower)), float(np.max(self.r - values_upper)), 0.0)
            violation = farthest / (root_mean_square(self.r) or 1.0)
        gammas, ceiling = (point.gamma_lo, point.gamma_up), units.cost.ceiling(len(self.r))
        positive = [gamma > ACTIVE * gamma.max(initial=0.0) for gamma in gammas]
        outside = [gamma >= (1 - ACTIVE) * ceiling for gamma in gammas]
        active_lower, active_upper = (np.flatnonzero(p & ~out) for p, out in zip(positive, outside, strict=True))
        outside_lower, outside_upper = (np.flatnonzero(p & out) for p, out in zip(positive, outside, strict=True))
        # A = rms / variance A'
        size = units.rms / units.variance
        sums = [(self.lower, lower), (self.upper, upper)]
        functions = [SoSFunction(features, np.sqrt(size) * side.B, size * side.ridge) for features, side in sums]
        history = tuple(
            replace(row, dual_value=units.value * row.dual_value, primal_value=units.value * row.primal_value)
            for row in result.history
        )
        return BandSolution(
            lower=functions[0],
            upper=functions[1],
            dual_value=units.value * certificate.dual_value,
            primal_value=units.value * certificate.primal_value,
            gap=certificate.gap,
            violation=violation,
            status=result.status,
            iterations=result.iterations,
            decompositions=result.decompositions,
            seconds=result.seconds,
            rank=(lower.B.shape[1], upper.B.shape[1]),
            active_lower=active_lower,
            active_upper=active_upper,
            outside_lower=outside_lower,
            outside_upper=outside_upper,
            values_lower=values_lower,
            values_upper=values_upper,
            dual=replace(
                point,
                gamma_lo=weights * (unit * point.gamma_lo),
                gamma_up=weights * (unit * point.gamma_up),
                alpha_0=None if point.alpha_0 is None else weights * (unit * point.alpha_0),
                W=None if point.W is None else unit * point.W * units.variance,
                ceiling=unit * point.ceiling,
            ),
            history=history,
        )

    def zero_solution(self) -> BandSolution:
        """The exact solution for residuals that are all zero."""
        zeros = np.zeros(len(self.r))
        sides = tuple(PrimalSide(np.zeros((each.rank, 0)), 0.0, zeros) for each in (self.lower, self.upper))
        certificate = Certificate(0.0, 0.0, 0.0, 0.0, sides)
        result = SolverResult(np.zeros(2 * len(zeros)), certificate, Status.CONVERGED, 0, 0, 0.0, ())
        cost = self.settings.cost
        return replace(self, weights=None).solution(
            DualPoint(zeros, zeros), result, SolverUnits(1.0, 1.0, cost, cost, 1.0)
        )


@dataclass(frozen=True)
class SolverUnits:
    """With ``r' = r/rms``, ``V' = V/sqrt(variance)``, ``A' = variance A/rms``: the units of one problem.

    The objective of the `given` cost is ``value = 2 lam2 rms^2/variance^2`` times that of `cost`, in which lam2 is 1/2.
    """

    rms: float
    variance: float
    given: SideCost
    cost: SideCost
    multiplier: float

    @property
    def value(self) -> float:
        """Unit of the objective."""
        return self.multiplier * self.rms

    def symmetry(self, given: SymmetryPenalty) -> SymmetryPenalty:
        """A symmetry penalty in the solver's units; 0 stays 0, finite stays finite, inf stays inf."""
        with np.errstate(all="ignore"):
            lam2 = np.float64(2 * self.given.lam2)
            lam_pen1 = given.lam_pen1 / self.variance / self.multiplier
            lam_pen2 = given.lam_pen2 / lam2 * (1 if given.kind == "operator" else np.square(self.variance))
        before = np.array([given.lam_pen1, given.lam_pen2])
        after = np.array([lam_pen1, lam_pen2])
        if not (np.array_equal(np.isinf(before), np.isinf(after)) and np.array_equal(before == 0, after == 0)):
            raise self.error(f" and symmetry_penalty=({given.lam_pen1:.3g}, {given.lam_pen2:.3g})")
        return replace(given, lam_pen1=float(lam_pen1), lam_pen2=float(lam_pen2))

    def error(self, symmetry: str = "") -> ScaleError:
        """What to raise where double precision cannot hold these units."""
        cost = self.given
        return ScaleError(
            f"residuals have root mean square {self.rms:.3g} and the kernel variance {self.variance:.3g}: with "
            f"width_penalty={cost.b:.3g}, trace_penalty={cost.lam1:.3g}, frobenius_penalty={cost.lam2:.3g}{symmetry} "
            "the terms of the objective differ by more than double precision holds. Rescale the residuals or use "
            "normalize=True."
        )


def solver_units(r: Array, variance: float, given: SideCost) -> SolverUnits:
    """Units in which the residuals have root mean square 1; a ScaleError if double precision cannot hold them."""
    rms = root_mean_square(r)
    with np.errstate(all="ignore"):
        unit = np.float64(2 * given.lam2) / np.float64(variance) ** 2 * rms
        cost = replace(given, b=float(given.b / unit), lam1=float(given.lam1 / np.float64(variance) / unit), lam2=0.5)
    units = SolverUnits(rms, variance, given, cost, float(unit))
    fine = all(SMALLEST_UNIT < each < np.inf for each in (units.rms, units.multiplier, units.value))
    if not (fine and max(cost.b, cost.lam1) <= LARGEST_PENALTY):
        raise units.error()
    return units


def root_mean_square(r: Array) -> float:
    """Root mean square without overflow or underflow."""
    largest = float(np.abs(r).max(initial=0.0))
    return largest * float(np.sqrt(np.mean(np.square(r / largest)))) if largest > 0 else 0.0
