"""The numbers of one band problem, checked once, and the units in which penalties are told.

What one side costs stays the same along a path; the penalty that pulls the sides together is what changes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from sosbands._arguments import check, check_choice, is_count, is_fraction, is_number
from sosbands._types import Array
from sosbands.kernels import resolve_kernel
from sosbands.kernels.features import parse_rank
from sosbands.problems import SideCost
from sosbands.solvers import check_solver

AUTO = "auto"
OPEN = ("lengthscale", "width_penalty", "learning_coverage", "symmetry_penalty")  # what data may choose
NORMAL_RATIO = float(np.sqrt(np.pi / 2))  # root mean square over mean size of normal noise
KINDS = ("training", "operator")
SMALLEST_TAU = 1e-9  # the price of a row outside, 1/tau, multiplies rounding: what is smaller counts as 0


@dataclass(frozen=True)
class SymmetryPenalty:
    """The penalty on the difference of the sides: nuclear and squared Frobenius, or 0 and that of the training set."""

    lam_pen1: float
    lam_pen2: float
    kind: str
    rows: int | None = None  # of so many learning points, always the same, the training-set penalty counts for all

    @property
    def is_asymmetric(self) -> bool:
        """No coupling of the two sides."""
        return self.lam_pen1 == 0 and self.lam_pen2 == 0

    @property
    def is_symmetric(self) -> bool:
        """One shared function."""
        return bool(np.isinf([self.lam_pen1, self.lam_pen2]).any())


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
        """The mean size of the residuals, as a root mean square under normal noise: the largest hardly count."""
        return cls(float(NORMAL_RATIO * np.average(np.abs(r), weights=weights)), 1.0, 1.0, 1.0, len(r))

    def cost(self, given: SideCost) -> SideCost:
        """What the normalised numbers stand for, in the user's units."""
        return replace(
            given, b=given.b / self.width, lam1=given.lam1 / self.trace, lam2=given.lam2 / self.squared_norm / self.rms
        )

    def symmetry(self, given: SymmetryPenalty) -> SymmetryPenalty:
        """The same for the symmetry penalty."""
        if given.kind == "training":
            return replace(given, lam_pen2=given.lam_pen2 / (self.n * self.width**2) / self.rms)
        return replace(
            given, lam_pen1=given.lam_pen1 / self.trace, lam_pen2=given.lam_pen2 / self.squared_norm / self.rms
        )


@dataclass(frozen=True, eq=False, repr=False)
class BandSettings:
    """Every number of one band problem; whatever is wrong with one is said when it is made.

    Names and meanings are those of :func:`learn_bands`, which states the problem literally. Defaults are those of
    :class:`~sosbands.SoSBandRegressor`: the first four are "auto", which the data choose. Settings are equal if all
    fields are, and may be keys of a dict.

    Parameters
    ----------
    lengthscale, width_penalty, learning_coverage, symmetry_penalty
        "auto", or as in :func:`learn_bands`.
    kernel, symmetry_kind, trace_penalty, frobenius_penalty, rank, constant, normalize, solver, tol
        As in :func:`learn_bands`; a rank may also be a pair of an int and a float, whichever comes first.
    max_iterations : int
        After which a solve ends as it is.
    coupled_rows : int, optional
        At so many of the points, always the same, the training-set penalty is taken for all.
    outlier_fraction : float in [0, 1)
        Share of the learning rows, those with the largest residuals, that the estimator leaves out of the bands.
    """

    lengthscale: Any = AUTO
    width_penalty: Any = AUTO
    learning_coverage: Any = AUTO
    symmetry_penalty: Any = AUTO
    kernel: Any = "matern52"
    symmetry_kind: str = "training"
    trace_penalty: float = 1.0
    frobenius_penalty: float = 1.0
    rank: Any = AUTO
    constant: bool = True
    normalize: bool | str | PenaltyScale = True
    solver: str = AUTO
    tol: float = 1e-4
    max_iterations: int = 2000
    coupled_rows: int | None = None
    outlier_fraction: float = 0.0

    def __post_init__(self) -> None:
        word = "a number >= 0"
        for name in ("width_penalty", "trace_penalty", "frobenius_penalty"):
            value = getattr(self, name)
            check(name, value, (name in OPEN and is_auto(value)) or (_is_size(value) and value < np.inf), word)
        positive = "a number > 0 (the dual needs a strongly convex objective)"
        check("frobenius_penalty", self.frobenius_penalty, self.frobenius_penalty > 0, positive)
        coverage = self.learning_coverage
        fine = is_auto(coverage) or (is_number(coverage) and 0 < coverage <= 1)
        check("learning_coverage", coverage, bool(fine), "a number in (0, 1]")
        check_choice("symmetry_kind", self.symmetry_kind, KINDS)
        given = self.symmetry_penalty  # a number, or for the operator kind a pair
        if not is_auto(given):
            is_pair = isinstance(given, (tuple, list))
            pair = list(given) if is_pair else [0.0, given]
            known = not is_pair or (self.symmetry_kind == "operator" and len(pair) == 2)
            expected = "a number >= 0, or for symmetry_kind='operator' a pair (nuclear, squared Frobenius)"
            check("symmetry_penalty", given, known, expected)
            for value in pair:
                check("symmetry_penalty", value, _is_size(value), "a number >= 0 or inf")
            expected = "another pair: a nuclear penalty needs a squared Frobenius penalty > 0 beside it"
            check("symmetry_penalty", given, not (pair[1] == 0 and 0 < pair[0] < np.inf), expected)
        check("tol", self.tol, is_fraction(self.tol), "a number in (0, 1)")
        known = isinstance(self.normalize, (bool, np.bool_, PenaltyScale))
        known = known or (isinstance(self.normalize, str) and self.normalize == "residuals")
        check("normalize", self.normalize, known, "True, False, 'residuals' or a PenaltyScale")
        most, rows, share = self.max_iterations, self.coupled_rows, self.outlier_fraction
        check("max_iterations", most, is_count(most) and most >= 1, "an int >= 1")
        check("coupled_rows", rows, rows is None or (is_count(rows) and rows >= 1), "None or an int >= 1")
        check("outlier_fraction", share, is_number(share) and 0 <= share < 1, "a number in [0, 1)")
        check("constant", self.constant, isinstance(self.constant, (bool, np.bool_)), "True or False")
        parse_rank(self.rank, 1)
        check_solver(self.solver)
        ell = self.lengthscale
        if isinstance(ell, dict):
            check("lengthscale", ell, set(ell) == {"lower", "upper"}, "the keys 'lower' and 'upper'")
        for side in ell.values() if isinstance(ell, dict) else [ell]:
            d = len(side) if isinstance(side, (list, tuple, np.ndarray)) and np.ndim(side) == 1 else 1
            resolve_kernel(self.kernel, "median" if is_auto(side) else side, np.zeros((2, max(1, d))))

    # ------------------------------------------------------------ what they say

    @property
    def cost(self) -> SideCost:
        """What one side costs; each side of a pair may miss half of what is not covered."""
        tau = (1 - float(self.learning_coverage)) / 2
        b, lam1, lam2 = map(float, (self.width_penalty, self.trace_penalty, self.frobenius_penalty))
        return SideCost(b, lam1, lam2, tau if tau >= SMALLEST_TAU else 0.0)

    @property
    def symmetry(self) -> SymmetryPenalty:
        """What pulls the sides together."""
        given = self.symmetry_penalty
        lam_pen1, lam_pen2 = given if isinstance(given, (tuple, list)) else (0.0, given)
        return SymmetryPenalty(float(lam_pen1), float(lam_pen2), self.symmetry_kind, self.coupled_rows)

    @property
    def open_names(self) -> tuple[str, ...]:
        """What is left to the data; a kernel that carries its own lengthscale leaves none."""
        named = isinstance(self.kernel, str) and self.kernel != "precomputed"
        return tuple(name for name in OPEN if is_auto(getattr(self, name)) and (named or name != "lengthscale"))

    def check_closed(self) -> None:
        """Raise if something is left to the data."""
        expected = {"lengthscale": "'median', a number > 0 or one per feature"}
        for name in self.open_names:
            check(name, AUTO, False, expected.get(name, "a number here, where nothing chooses"))

    def has_features_of(self, other: BandSettings) -> bool:
        """Whether kernel features of both are the same, without a look into arrays."""
        one, two = ((each.lengthscale, each.kernel, each.rank, each.constant) for each in (self, other))
        pairs = zip(one, two, strict=True)
        return all(a is b or (isinstance(a, (str, float, int)) and isinstance(b, type(a)) and a == b) for a, b in pairs)

    # ------------------------------------------------------------ as values

    def replace(self, **changes: Any) -> BandSettings:
        """The same with other values of some fields."""
        return replace(self, **changes)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Fields by name, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> BandSettings:
        """Change fields in place, as scikit-learn does on a copy for ``bands__rank``; others take `replace`."""
        for name, value in self.replace(**params).get_params().items():
            object.__setattr__(self, name, value)
        return self

    def __repr__(self) -> str:
        """The fields that differ from their defaults."""
        told = ((field, getattr(self, field.name)) for field in fields(self))
        changed = [f"{field.name}={value!r}" for field, value in told if _key(value) != _key(field.default)]
        return f"BandSettings({', '.join(changed)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BandSettings) and _key(self) == _key(other)

    def __hash__(self) -> int:
        return hash(_key(self))


def is_auto(value: Any) -> bool:
    """Whether a value that may be an array is the word."""
    return isinstance(value, str) and value == AUTO


def _is_size(value: Any) -> bool:
    return is_number(value) and bool(value >= 0)


def _key(value: Any) -> Any:
    """What two equal values have in common and may be hashed: arrays by their entries, objects by their identity."""
    if isinstance(value, BandSettings):
        return tuple(_key(each) for each in value.get_params().values())
    if isinstance(value, dict):
        return tuple((name, _key(value[name])) for name in sorted(value))
    if isinstance(value, (list, tuple, np.ndarray)):
        return tuple(np.ravel(value).tolist())
    plain = isinstance(value, (str, PenaltyScale)) or value is None or np.isscalar(value)
    return value if plain else ("object", id(value))
