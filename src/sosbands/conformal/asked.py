"""What is asked of a calibrated model, read once, and the intervals that it gets; complaints name argument and rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from sosbands._arguments import check, check_choice, check_size, is_count, is_fraction, is_number, read_numbers
from sosbands._arguments import read_level as read_level  # for those who read all arguments of calibration here
from sosbands._types import AnyArray, Array, BoolArray
from sosbands._words import share_of, warn
from sosbands.conformal.band import Told
from sosbands.exceptions import (
    CrossedIntervalsWarning,
    MultiOutputError,
    NotCalibratedError,
    OffDataWarning,
    TooFewCalibrationPointsWarning,
)

Kind = Literal["symmetric", "asymmetric"]
CONDITIONAL = "conditional"
SIDES = {"both": 0.5, "lower": 1.0, "upper": 0.0}  # part of the miscoverage that rows below the interval may have


@dataclass(frozen=True, eq=False)
class Asked:
    """Which intervals of which rows."""

    levels: tuple[float, ...] = ()  # in (0, 1)
    kind: Kind = "symmetric"  # one quantile for both ends, or one for each
    lower_share: float = 0.5  # part of the miscoverage given to the lower side; 0 or 1 leaves one end infinite
    groups: Any = None  # of the rows, as they were given, like their ratios
    likelihood_ratio: Any = None
    points_of: Callable[[Told], Array | None] | None = None  # where rows lie, for calibration that depends on it

    @classmethod
    def of(
        cls,
        model: Any,
        levels: Any = None,
        side: str = "both",
        lower_share: Any = 0.5,
        groups: Any = None,
        likelihood_ratio: Any = None,
    ) -> Asked:
        """Read and checked, for a model with a calibration; one side alone has all of the miscoverage."""
        calibration_of(model)
        kind = read_kind(model.calibration, conditional=True)
        points_of = getattr(model, "_calibration_points", None)
        found, _ = read_levels(model.confidence_level if levels is None else levels)
        check_choice("side", side, tuple(SIDES))
        if side == "both":
            return cls(tuple(found), kind, read_share(lower_share, kind), groups, likelihood_ratio, points_of)
        alone = is_number(lower_share) and lower_share in (0.5, SIDES[side])
        check("lower_share", lower_share, alone, f"0.5 beside side={side!r}, which has all of the miscoverage")
        return cls(tuple(found), "asymmetric", SIDES[side], groups, likelihood_ratio, points_of)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Calibrated intervals of n rows at k levels.

    Attributes
    ----------
    levels : tuple of k float
    prediction : array of shape (n,) or None
        Of the point model; None where there is none.
    lower, upper : arrays of shape (n, k)
        Ends; the midpoint twice of an interval that is empty.
    empty : bool array of shape (n, k)
        The intervals that are.
    support : array of shape (n,) or None
        How much the learning rows say about each row, where the model knows.
    reasons : tuple of k str or None
        Why intervals are infinite at each level, if some are.
    """

    levels: tuple[float, ...]
    prediction: Array | None
    lower: Array
    upper: Array
    empty: BoolArray
    support: Array | None = None
    reasons: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, told: Told, asked: Asked, made: Sequence[tuple[Array, BoolArray, str | None]]) -> Intervals:
        """From ends of shape (n, 2), rows whose interval is empty, and a reason or None, for each level."""
        ends = np.stack([each for each, _, _ in made], axis=2)
        empty = np.stack([rows for _, rows, _ in made], axis=1)
        reasons = tuple(reason for _, _, reason in made)
        return cls(asked.levels, told.prediction, ends[:, 0], ends[:, 1], empty, told.band.support, reasons)

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def ends(self) -> Array:
        """Both ends, shape (n, 2, k)."""
        return np.stack([self.lower, self.upper], axis=1)

    @property
    def width(self) -> Array:
        """Upper less lower ends, shape (n, k)."""
        return np.asarray(self.upper - self.lower)

    def warn(self, support_limit: float | None) -> None:
        """Warn the user of infinite intervals, of empty ones, and of rows with less support; None: of infinite ones."""
        if any(self.reasons):
            warn("; ".join(filter(None, self.reasons)), TooFewCalibrationPointsWarning)
        if support_limit is None:
            return
        empty = int(np.count_nonzero(self.empty))
        if empty:
            warn(
                f"{share_of(empty, self.empty.size, 'interval')} empty, because calibration narrows the band by more "
                "than its width there; their midpoint is given twice",
                CrossedIntervalsWarning,
            )
        warn_off_data(self.support, support_limit)


def warn_off_data(support: Array | None, support_limit: float) -> None:
    """Warn the user of rows about which the learning data say nothing."""
    if support is not None and (far := int(np.count_nonzero(support < support_limit))):
        warn(
            f"{share_of(far, len(support), 'row')} far from the learning data (support below {support_limit:g}): the "
            "data say nothing about the noise there",
            OffDataWarning,
        )


def calibration_of(model: Any) -> Any:
    """The calibration of an interval regressor, or the error that there is none."""
    if "calibration_" not in vars(model):
        if hasattr(model, "__sklearn_is_fitted__"):
            check_is_fitted(model)
        raise NotCalibratedError(
            f"this {type(model).__name__} needs a calibration: call conformalize(X, y) first, with rows that fit has "
            "not seen"
        )
    return model.calibration_


def read_kind(calibration: Any, *, conditional: bool = False) -> Kind:
    """The kind of calibration; `conditional` is one more, of one score, where it is offered."""
    if conditional and is_conditional(calibration):
        return "symmetric"
    known = isinstance(calibration, str) and calibration in ("symmetric", "asymmetric")
    also = f", or {CONDITIONAL!r}" if conditional else ""
    check("calibration", calibration, known, f"'symmetric' or 'asymmetric'{also}")
    return "symmetric" if calibration == "symmetric" else "asymmetric"


def is_conditional(calibration: Any) -> bool:
    """Whether each row is to have a cutoff of its own."""
    return isinstance(calibration, str) and calibration == CONDITIONAL


def read_levels(confidence_level: Any) -> tuple[list[float], bool]:
    """The confidence levels, and whether they came as a list."""
    values = _as_object(confidence_level)
    if values.ndim > 1 or not values.size:
        raise ValueError(f"confidence_level={confidence_level!r}: expected a number or a non-empty list of numbers")
    return [read_level(each) for each in (values if values.ndim else [confidence_level])], values.ndim > 0


def read_probabilities(q: Any) -> tuple[list[float], bool]:
    """Levels of quantiles, and whether they came as a list."""
    values = _as_object(q)
    many = values.ndim > 0
    entries = list(values) if values.ndim == 1 else [q]
    fine = values.ndim <= 1 and bool(entries) and all(is_number(each) and 0 < each < 1 for each in entries)
    check("q", q, fine, "a number in (0, 1), or a non-empty list of them")
    return [float(each) for each in entries], many


def read_share(lower_share: Any, kind: Kind) -> float:
    """Part of the miscoverage given to the lower side, in [0, 1]."""
    check("lower_share", lower_share, is_number(lower_share) and 0 <= lower_share <= 1, "a number in [0, 1]")
    if kind == "symmetric" and lower_share != 0.5:
        raise ValueError(
            f"lower_share={lower_share!r} with calibration='symmetric': expected 0.5, because symmetric calibration "
            "has one quantile for both sides and cannot divide the miscoverage; use calibration='asymmetric'"
        )
    return float(lower_share)


def read_target(y: Any, n_rows: int) -> Array:
    """Targets as a vector, one finite number per row; one column is taken as one, with scikit-learn's warning."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None: expected one per row of X")
    given = read_numbers("y", y)
    if given.ndim == 2 and given.shape[1] > 1:
        raise MultiOutputError(f"y has shape {given.shape}: expected one target, so fit one regressor per column")
    if given.ndim == 2 and given.shape[1] == 0:
        raise ValueError(f"y has shape {given.shape}: expected one target per row, shape ({n_rows},)")
    values = _read_vector("y", column_or_1d(given, warn=True) if given.ndim == 2 else given, n_rows)
    check_size("y", values, "give y in another unit")
    return values


def read_ratio(likelihood_ratio: Any, n_rows: int) -> Array:
    """Likelihood ratios, one finite number >= 0 per row."""
    w = _read_vector("likelihood_ratio", likelihood_ratio, n_rows)
    if (w < 0).any():
        raise ValueError(f"likelihood_ratio has the entry {w.min()}: expected numbers >= 0")
    return w


def read_groups(groups: Any, n_rows: int) -> AnyArray:
    """Group labels, one string or finite number per row; all of one type."""
    labels = np.asarray(groups, dtype=None if hasattr(groups, "dtype") else object)
    _check_shape("groups", labels, n_rows)
    if labels.dtype == object:
        kinds = {str if isinstance(label, str) else type(label) for label in labels.tolist()}
        if kinds != {str} and not all(issubclass(kind, (Real, np.bool_)) for kind in kinds):
            names = sorted(kind.__name__ for kind in kinds)
            raise ValueError(f"groups has labels of type {', '.join(names)}: expected all strings or all numbers")
        labels = np.asarray(labels.tolist())  # a plain dtype, so that a saved model holds no Python objects
    if labels.dtype.kind not in "biufU":
        raise ValueError(f"groups has dtype {labels.dtype}: expected strings or numbers")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("groups has labels that are NaN or infinite: expected strings or finite numbers")
    return labels


def read_overlapping(groups: Any, n_rows: int) -> AnyArray:
    """Labels, or a table of True and False with a column for each group, which may overlap."""
    table = np.asarray(groups)
    if table.ndim != 2:
        return read_groups(groups, n_rows)
    fine = len(table) == n_rows and table.shape[1] > 0 and np.isin(table, (False, True)).all()
    expected = f"labels, or True and False in a table of {n_rows} rows with a column for each group"
    if not fine:
        raise ValueError(f"groups is a table of shape {table.shape} and dtype {table.dtype}: expected {expected}")
    return table.astype(bool)


def read_common_use(name: str, at_calibration: bool, at_prediction: bool) -> None:
    """Complain about an argument that only one of conformalize and the prediction got."""
    if at_calibration and not at_prediction:
        raise ValueError(f"{name}=None: expected one value per row, because conformalize was called with {name}")
    if at_prediction and not at_calibration:
        raise ValueError(f"{name} was given: expected None, because conformalize was called without {name}")


def read_fading(window: Any, decay: Any, *, with_ratio: bool) -> tuple[int | None, float | None]:
    """How many of the last rows are kept, and by what older ones count for less."""
    check("window", window, window is None or (is_count(window) and window >= 1), "None or a number of rows >= 1")
    check("decay", decay, decay is None or is_fraction(decay), "None or a number in (0, 1)")
    expected = "None beside likelihood_ratio, because a row has one weight"
    check("decay", decay, decay is None or not with_ratio, expected)
    return None if window is None else int(window), None if decay is None else float(decay)


def check_added(name: str, old: AnyArray | None, new: AnyArray | None) -> None:
    """Complain about rows that lack what the calibration rows so far have, or the other way round."""
    if old is not None and new is None:
        raise ValueError(f"{name}=None: expected one value per row, because the calibration rows so far have {name}")
    if old is None and new is not None:
        raise ValueError(f"{name} was given: expected None, because the calibration rows so far have no {name}")
    if old is not None and new is not None and (old.dtype.kind == "U") != (new.dtype.kind == "U"):
        raise ValueError(f"{name} has dtype {new.dtype}: expected labels of the kind seen so far, {old.dtype}")


def _read_vector(name: str, values: Any, n_rows: int) -> Array:
    vector = read_numbers(name, values)
    _check_shape(name, vector, n_rows)
    bad = np.flatnonzero(~np.isfinite(vector))
    if len(bad):
        kind = "NaN" if np.isnan(vector[bad]).any() else "infinity"
        raise ValueError(
            f"Input {name} contains {kind}: {name} has {len(bad)} entries that are NaN or infinite, the first in row "
            f"{bad[0]}, expected finite numbers"
        )
    return vector


def _check_shape(name: str, values: AnyArray, n_rows: int) -> None:
    if values.shape != (n_rows,):
        raise ValueError(f"{name} has shape {values.shape}: expected one entry per row of X, shape ({n_rows},)")


def _as_object(value: Any) -> AnyArray:
    """The entries as they are: a number in a list must not turn its neighbours into strings."""
    return np.asarray(value, dtype=object)
