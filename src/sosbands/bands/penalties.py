"""Penalties and other settings as the user gives them, and normalised by an initial model.

What one side costs stays the same along a path; the penalty that pulls the sides together is what changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._arguments import check, is_count, is_number
from sosbands._types import Array
from sosbands.problems import SideCost
from sosbands.solvers import check_solver

NORMAL_RATIO = float(np.sqrt(np.pi / 2))  # root mean square over mean size of normal noise
KINDS = ("training", "operator")
SMALLEST_TAU = 1e-9  # the price of a row outside, 1/tau, multiplies rounding: what is smaller counts as 0


@dataclass(frozen=True)
class SymmetryPenalty:
    """The penalty on the difference of the sides.

    Attributes
    ----------
    lam_pen1, lam_pen2 : float
        Operator penalty: nuclear and squared Frobenius part. Training-set penalty: 0 and lam_pen.
    kind : {"training", "operator"}
    """

    lam_pen1: float
    lam_pen2: float
    kind: str

    @property
    def is_asymmetric(self) -> bool:
        """No coupling of the two sides."""
        return self.lam_pen1 == 0 and self.lam_pen2 == 0

    @property
    def is_symmetric(self) -> bool:
        """One shared function."""
        return bool(np.isinf([self.lam_pen1, self.lam_pen2]).any())


SYMMETRIC = SymmetryPenalty(0.0, np.inf, "training")


def read_cost(width: Any, trace: Any, frobenius: Any, coverage: Any = 1.0) -> SideCost:
    """Check the user's numbers for what one side costs; each side of a pair may miss half of what is not covered."""
    b = read_number("width_penalty", width)
    lam1 = read_number("trace_penalty", trace)
    lam2 = read_number("frobenius_penalty", frobenius)
    if lam2 == 0:
        raise ValueError("frobenius_penalty=0: expected a number > 0 (the dual needs a strongly convex objective)")
    fine = is_number(coverage) and 0 < coverage <= 1
    check("learning_coverage", coverage, bool(fine), "a number in (0, 1]")
    tau = (1 - float(coverage)) / 2
    return SideCost(b, lam1, lam2, tau if tau >= SMALLEST_TAU else 0.0)


def read_symmetry(symmetry: Any, kind: Any) -> SymmetryPenalty:
    """Check the user's symmetry penalty and its kind."""
    if kind not in KINDS:
        raise ValueError(f"symmetry_kind={kind!r}: expected one of {list(KINDS)}")
    if isinstance(symmetry, (tuple, list)):
        if kind != "operator" or len(symmetry) != 2:
            raise ValueError(
                f"symmetry_penalty={symmetry!r}: expected a number >= 0, or for symmetry_kind='operator' a pair "
                "(nuclear, squared Frobenius)"
            )
        lam_pen1, lam_pen2 = (read_number("symmetry_penalty", value, infinite=True) for value in symmetry)
    else:
        lam_pen1, lam_pen2 = 0.0, read_number("symmetry_penalty", symmetry, infinite=True)
    if lam_pen2 == 0 and 0 < lam_pen1 < np.inf:
        raise ValueError(
            f"symmetry_penalty={symmetry!r}: a nuclear penalty needs a squared Frobenius penalty > 0 beside it"
        )
    return SymmetryPenalty(lam_pen1, lam_pen2, kind)


def read_number(name: str, value: Any, *, infinite: bool = False) -> float:
    """`value` as a float >= 0, finite unless `infinite`; an error that names the argument otherwise."""
    wanted = "a number >= 0" + (" or inf" if infinite else "")
    fine = is_number(value) and value >= 0 and (infinite or value < np.inf)
    check(name, value, bool(fine), wanted)
    return float(value)


@dataclass(frozen=True)
class PenaltyScale:
    """Units taken from an initial symmetric model, fitted once and reused for every candidate.

    On residuals divided by `rms` normalised penalties stand for ``b/w0, lam1/t0, lam2/s0, lam_pen/(n w0^2)``
    (operator: ``lam_pen1/t0, lam_pen2/s0``); the scaling law carries them over to the residuals as given.

    Attributes
    ----------
    rms : float
        Root mean square of the residuals.
    width, trace, squared_norm : float
        Mean of f, tr A and ||A||_F^2 of the initial model on residuals divided by `rms`: w0, t0 and s0.
    n : int
        Number of learning points of the initial model.
    """

    rms: float
    width: float
    trace: float
    squared_norm: float
    n: int

    @classmethod
    def of_residuals(cls, r: Array, weights: Array | None = None) -> PenaltyScale:
        """Units without an initial model: the mean size of the residuals, as a root mean square under normal noise.

        The largest residuals hardly count, as in problems that may leave them outside.
        """
        return cls(float(NORMAL_RATIO * np.average(np.abs(r), weights=weights)), 1.0, 1.0, 1.0, len(r))

    def cost(self, given: SideCost) -> SideCost:
        """What the normalised numbers stand for, in the user's units."""
        return replace(
            given,
            b=given.b / self.width,
            lam1=given.lam1 / self.trace,
            lam2=given.lam2 / self.squared_norm / self.rms,
        )

    def symmetry(self, given: SymmetryPenalty) -> SymmetryPenalty:
        """The same for the symmetry penalty."""
        if given.kind == "training":
            return replace(given, lam_pen2=given.lam_pen2 / (self.n * self.width**2) / self.rms)
        return replace(
            given, lam_pen1=given.lam_pen1 / self.trace, lam_pen2=given.lam_pen2 / self.squared_norm / self.rms
        )


@dataclass(frozen=True, eq=False)
class BandSettings:
    """Checked settings; see `learn_bands` for their meaning."""

    kernel: Any
    rank: Any
    constant: bool
    cost: SideCost
    kind: str
    solver: str
    tol: float
    normalize: bool | str | PenaltyScale
    max_iterations: int
    sample_weight: Any = None

    def symmetry(self, penalty: Any) -> SymmetryPenalty:
        """A symmetry penalty of this kind."""
        return read_symmetry(penalty, self.kind)


def read_settings(
    *,
    kernel: Any = "matern52",
    width_penalty: float = 10.0,
    trace_penalty: float = 1.0,
    frobenius_penalty: float = 1.0,
    learning_coverage: float = 1.0,
    symmetry_kind: str = "training",
    rank: Any = "auto",
    constant: bool = False,
    solver: str = "auto",
    tol: float = 1e-4,
    normalize: bool | str | PenaltyScale = False,
    max_iterations: int = 10_000,
    sample_weight: Any = None,
) -> BandSettings:
    """Check the settings that need no data to be checked."""
    cost = read_cost(width_penalty, trace_penalty, frobenius_penalty, learning_coverage)
    read_symmetry(0.0, symmetry_kind)
    if not 0 < read_number("tol", tol) < 1:
        raise ValueError(f"tol={tol!r}: expected a number in (0, 1)")
    known = isinstance(normalize, (bool, PenaltyScale)) or (isinstance(normalize, str) and normalize == "residuals")
    check("normalize", normalize, known, "True, False, 'residuals' or a PenaltyScale")
    check("max_iterations", max_iterations, is_count(max_iterations) and max_iterations >= 1, "an int >= 1")
    check("constant", constant, isinstance(constant, (bool, np.bool_)), "True or False")
    check_solver(solver)
    limits = (solver, tol, normalize, max_iterations)
    return BandSettings(kernel, rank, bool(constant), cost, symmetry_kind, *limits, sample_weight)
