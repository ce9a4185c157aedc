"""Units: penalties as the user gives them, normalised by an initial model, and in the solver's units.

Called by :mod:`sosbands.bands` only. Solvers always see the same units: residuals of root mean square 1,
kernel of largest variance 1 and ``lam2 = 1/2``, in which multipliers and operators are of order one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.exceptions import ScaleError

# Eigenvalues of size lam1 resolve an operator of size one to lam1 * 1e-16: beyond this nothing is left of it.
LARGEST_PENALTY = 1e10
KINDS = ("training", "operator")


@dataclass(frozen=True)
class Penalties:
    """The penalties of a two-sided problem, the paper's letters in its objective.

    Attributes
    ----------
    b, lam1, lam2 : float
        Width, trace and squared Frobenius penalties, the same on both sides.
    lam_pen1, lam_pen2 : float
        Operator penalty: nuclear and squared Frobenius part. Training-set penalty: 0 and lam_pen.
    kind : {"training", "operator"}
    """

    b: float
    lam1: float
    lam2: float
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


def read_penalties(width: Any, trace: Any, frobenius: Any, symmetry: Any, kind: Any) -> Penalties:
    """Check the user's numbers."""
    if kind not in KINDS:
        raise ValueError(f"symmetry_kind={kind!r}: expected one of {list(KINDS)}")
    b = read_number("width_penalty", width)
    lam1 = read_number("trace_penalty", trace)
    lam2 = read_number("frobenius_penalty", frobenius)
    if lam2 == 0:
        raise ValueError("frobenius_penalty=0: expected a number > 0 (the dual needs a strongly convex objective)")
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
    return Penalties(b, lam1, lam2, lam_pen1, lam_pen2, kind)


def read_number(name: str, value: Any, *, infinite: bool = False) -> float:
    """`value` as a float >= 0, finite unless `infinite`; an error that names the argument otherwise."""
    wanted = "a number >= 0" + (" or inf" if infinite else "")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name}={value!r}: expected {wanted}")
    number = float(value)
    if np.isnan(number) or number < 0 or (np.isinf(number) and not infinite):
        raise ValueError(f"{name}={value!r}: expected {wanted}")
    return number


@dataclass(frozen=True)
class PenaltyScale:
    """Units taken from an initial symmetric model, fitted once and reused for every candidate.

    Attributes
    ----------
    rms : float
        Root mean square of the residuals.
    width, trace, squared_norm : float
        Mean of f, tr A and ||A||_F^2 of the initial model on residuals divided by `rms`.
    n : int
        Number of learning points of the initial model.
    """

    rms: float
    width: float
    trace: float
    squared_norm: float
    n: int

    def apply(self, penalties: Penalties) -> Penalties:
        """Penalties for the problem in the user's units that the normalised numbers stand for.

        On residuals divided by `rms` they are ``b/w0, lam1/t0, lam2/s0, lam_pen/(n w0^2)`` (operator:
        ``lam_pen1/t0, lam_pen2/s0``); the scaling law carries them over to the residuals as given.
        """
        if penalties.kind == "training":
            pen1, pen2 = 0.0, penalties.lam_pen2 / (self.n * self.width**2)
        else:
            pen1, pen2 = penalties.lam_pen1 / self.trace, penalties.lam_pen2 / self.squared_norm
        return replace(
            penalties,
            b=penalties.b / self.width,
            lam1=penalties.lam1 / self.trace,
            lam2=penalties.lam2 / self.squared_norm / self.rms,
            lam_pen1=pen1,
            lam_pen2=pen2 / self.rms,
        )


@dataclass(frozen=True)
class SolverUnits:
    """The change of units between the user's problem and the solver's.

    With ``r' = r / rms``, ``V' = V / sqrt(variance)`` and ``A' = variance A / rms`` the objective is
    ``value = 2 lam2 rms^2 / variance^2`` times the objective with `penalties`, in which lam2 is 1/2.
    """

    rms: float
    variance: float
    value: float
    penalties: Penalties

    @property
    def multiplier(self) -> float:
        """Unit of the multipliers of the coverage constraints."""
        return self.value / self.rms


def solver_units(r: Array, variance: float, given: Penalties) -> SolverUnits:
    """Units in which the residuals have root mean square 1; a ScaleError if double precision cannot hold them."""
    rms, variance64 = root_mean_square(r), np.float64(variance)
    with np.errstate(all="ignore"):
        lam2 = 2 * given.lam2 / variance64**2
        unit = lam2 * rms
        operator = given.kind == "operator"
        canonical = Penalties(
            b=float(given.b / unit),
            lam1=float(given.lam1 / variance64 / unit),
            lam2=0.5,
            lam_pen1=float(given.lam_pen1 / variance64 / unit),
            lam_pen2=float(given.lam_pen2 / (2 * given.lam2) if operator else given.lam_pen2 / lam2),
            kind=given.kind,
        )
        value = float(unit * rms)
    same_limits = np.array_equal(
        [np.isinf([given.lam_pen1, given.lam_pen2]), np.equal([given.lam_pen1, given.lam_pen2], 0)],
        [np.isinf([canonical.lam_pen1, canonical.lam_pen2]), np.equal([canonical.lam_pen1, canonical.lam_pen2], 0)],
    )
    if not (same_limits and np.isfinite(value) and max(canonical.b, canonical.lam1) <= LARGEST_PENALTY):
        raise ScaleError(
            f"residuals have root mean square {rms:.3g} and the kernel variance {variance:.3g}: with width_penalty="
            f"{given.b:.3g}, trace_penalty={given.lam1:.3g}, frobenius_penalty={given.lam2:.3g} and symmetry_penalty="
            f"({given.lam_pen1:.3g}, {given.lam_pen2:.3g}) the terms of the objective differ by more than double "
            "precision holds. Rescale the residuals or use normalize=True."
        )
    return SolverUnits(rms, variance, value, canonical)


def root_mean_square(r: Array) -> float:
    """Root mean square without overflow or underflow."""
    largest = float(np.abs(r).max(initial=0.0))
    return largest * float(np.sqrt(np.mean(np.square(r / largest)))) if largest > 0 else 0.0
