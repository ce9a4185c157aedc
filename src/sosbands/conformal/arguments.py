"""Reading the arguments of calibration and prediction: every complaint names the argument, its value and the rule."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import column_or_1d

from sosbands._arguments import check, check_size, is_count, is_fraction, is_number, read_numbers
from sosbands._arguments import read_level as read_level  # for those who read all arguments of calibration here
from sosbands._types import AnyArray, Array
from sosbands.exceptions import MultiOutputError

Kind = Literal["symmetric", "asymmetric"]


def read_kind(calibration: Any) -> Kind:
    """The kind of calibration."""
    if isinstance(calibration, str) and calibration == "symmetric":
        return "symmetric"
    if isinstance(calibration, str) and calibration == "asymmetric":
        return "asymmetric"
    raise ValueError(f"calibration={calibration!r}: expected 'symmetric' or 'asymmetric'")


def read_levels(confidence_level: Any) -> tuple[list[float], bool]:
    """The confidence levels, and whether they came as a list."""
    if is_number(confidence_level) or np.ndim(_as_object(confidence_level)) == 0:
        return [read_level(confidence_level)], False
    values = _as_object(confidence_level)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"confidence_level={confidence_level!r}: expected a number or a non-empty list of numbers")
    return [read_level(value) for value in values], True


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
    if not is_number(lower_share) or not 0 <= lower_share <= 1:
        raise ValueError(f"lower_share={lower_share!r}: expected a number in [0, 1]")
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
