"""The change of units between the user's problem and the solver's. Called by this room only.

Solvers always see the same units: residuals of root mean square 1, kernel of largest variance 1 and ``lam2 = 1/2``, in
which multipliers and operators are of order one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sosbands._types import Array
from sosbands.bands.penalties import SymmetryPenalty
from sosbands.exceptions import ScaleError
from sosbands.problems import SideCost

# Eigenvalues of size lam1 resolve an operator of size one to lam1 * 1e-16: beyond this nothing is left of it.
LARGEST_PENALTY = 1e10
SMALLEST_UNIT = 1e-302  # below it values and multipliers are denormal numbers, which lose their digits


@dataclass(frozen=True)
class SolverUnits:
    """Units of one problem.

    With ``r' = r / rms``, ``V' = V / sqrt(variance)`` and ``A' = variance A / rms`` the objective is
    ``value = 2 lam2 rms^2 / variance^2`` times the objective with `cost`, in which lam2 is 1/2.

    Attributes
    ----------
    rms, variance : float
        Of the residuals, and the largest of the kernel.
    given, cost : SideCost
        In the user's and in the solver's units.
    multiplier : float
        Unit of the multipliers of the coverage constraints.
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
            raise self._error(f" and symmetry_penalty=({given.lam_pen1:.3g}, {given.lam_pen2:.3g})")
        return replace(given, lam_pen1=float(lam_pen1), lam_pen2=float(lam_pen2))

    def check(self) -> None:
        """Raise a ScaleError if double precision cannot hold these units."""
        fine = all(SMALLEST_UNIT < unit < np.inf for unit in (self.rms, self.multiplier, self.value))
        if not (fine and max(self.cost.b, self.cost.lam1) <= LARGEST_PENALTY):
            raise self._error("")

    def _error(self, symmetry: str) -> ScaleError:
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
    units.check()
    return units


def root_mean_square(r: Array) -> float:
    """Root mean square without overflow or underflow."""
    largest = float(np.abs(r).max(initial=0.0))
    return largest * float(np.sqrt(np.mean(np.square(r / largest)))) if largest > 0 else 0.0
