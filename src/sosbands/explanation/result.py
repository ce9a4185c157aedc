"""Explanation: where the width of intervals comes from, as arrays, as a table and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._arguments import check, is_count
from sosbands._types import Array, IntArray
from sosbands._words import many

EXACT = 1e-10  # relative: to this the parts must sum to the width
WORTH_SAYING = float(np.log(1.1))  # factors nearer to 1 make no difference that a reader should look at
FIRST = 10  # intervals of which words() tells
MOST_ROWS, LEAST_SHARE = 3, 0.02  # landmarks that are named: so many, each with this share of what all contribute
SCALES = {
    "model": ("the model itself is unsure here", "the model itself is sure here"),
    "forest": ("the model is often far off here", "the model is seldom far off here"),
    "both": ("the model is unsure and often far off here", "the model is sure and seldom far off here"),
}
CALIBRATIONS = {
    "groups": "the calibration of its group",
    "weights": "the calibration with its likelihood ratio",
    "copies": "cross-calibration",
}


@dataclass(frozen=True, eq=False)
class Explanation:
    """The width of n intervals, against that of the typical one and by what makes it.

    Two exact decompositions. Logarithms of factors, because base scale and band are multiplied:
    ``log(width / typical_width) = base_scale + band + calibration`` and ``band = sum(features) + typical_band``.
    And widths in units of the target, because a band is a sum over landmarks:
    ``width = sum(landmarks) + constant + off_data + added``.

    Attributes
    ----------
    width : ndarray of shape (n,)
        As `predict_interval` gives it.
    typical_width : float
        Median over learning rows, with the calibration of all rows together.
    confidence_level : float
    base_scale, band, calibration : ndarray of shape (n,)
        Logarithms: of the base scale over its median; of the calibrated band in base scales over the typical one,
        ``typical_width`` over that median; of what calibration by groups, by likelihood ratios or by copies makes of
        the width, else 0.
    features : ndarray of shape (n, f)
        Of `band`: Shapley values of the noise features, against the typical row.
    feature_names : tuple of f str
        Columns; "(prediction)" and "(scale)" are no columns of the table.
    typical_band, typical_row : float, int
        Of `band`: the band at the typical row over the typical one; and the position of that row in what `fit` was
        given.
    landmarks, landmark_rows : ndarray of shape (n, p), ndarray of int of shape (p,)
        What landmarks, learning rows that bands are told by, contribute to the width, below and above together; and
        their positions in what `fit` was given.
    constant, off_data, added : ndarray of shape (n,)
        What the constant contributes where landmarks do not reach; what bands are widened by far from the learning
        rows; what calibration adds to bands, or takes off (negative).
    support, support_limit : ndarray of shape (n,), float
        How much the learning rows say about each row; rows with less than the limit are far from the learning data.
    scale_name, calibrated_by : str
        The base scale: "none", "model", "forest" or "both"; and "all", "groups", "weights" or "copies".
    """

    width: Array
    typical_width: float
    confidence_level: float
    base_scale: Array
    band: Array
    calibration: Array
    features: Array
    feature_names: tuple[str, ...]
    typical_band: float
    typical_row: int
    landmarks: Array
    landmark_rows: IntArray
    constant: Array
    off_data: Array
    added: Array
    support: Array
    support_limit: float
    scale_name: str
    calibrated_by: str = "all"

    def __post_init__(self) -> None:
        check("typical_width", self.typical_width, 0 < self.typical_width < np.inf, "a finite number > 0")
        with np.errstate(divide="ignore"):
            total = np.log(self.width / self.typical_width)
        factors = self.base_scale + self.band + self.calibration
        # of logarithms: the last digit of a factor is an absolute error, also where its logarithm is next to 0
        _check_sum("base_scale, band and calibration", factors, total, 1 + np.abs(self.band) + np.abs(self.base_scale))
        shares = self.features.sum(axis=1) + self.typical_band
        _check_sum("features", shares, self.band, 1 + np.abs(self.features).sum(axis=1))
        parts = self.landmarks.sum(axis=1) + self.constant + self.off_data + self.added
        largest = np.abs(self.landmarks).sum(axis=1) + np.abs(np.where(np.isfinite(self.added), self.added, 0.0))
        _check_sum("landmarks, constant, off_data and added", parts, self.width, largest)

    def __len__(self) -> int:
        return len(self.width)

    @property
    def times_typical(self) -> Array:
        """Each width over the typical one."""
        return self.width / self.typical_width

    def table(self) -> Any:
        """One row for each interval: a pandas data frame, or a dict of arrays where pandas is not installed.

        ``times_typical`` is the product of the factors ``base_scale``, ``band`` and ``calibration``; ``width`` is the
        sum of ``from_landmarks``, ``from_constant``, ``from_off_data`` and ``from_calibration``. The columns
        ``feature:NAME`` are factors of ``band``.
        """
        columns: dict[str, Any] = {
            "width": self.width,
            "times_typical": self.times_typical,
            "base_scale": np.exp(self.base_scale),
            "band": np.exp(self.band),
            "calibration": np.exp(self.calibration),
            "support": self.support,
            "from_landmarks": self.landmarks.sum(axis=1),
            "from_constant": self.constant,
            "from_off_data": self.off_data,
            "from_calibration": self.added,
        }
        columns |= {f"feature:{name}": np.exp(x) for name, x in zip(self.feature_names, self.features.T, strict=True)}
        try:
            from pandas import DataFrame
        except ImportError:
            return columns
        return DataFrame(columns)

    def __repr__(self) -> str:
        """How much the widths differ, and by which factors as a rule."""
        low, high = np.quantile(self.times_typical, [0, 1], method="lower") if len(self) else (1.0, 1.0)
        made = {f"base scale {self.scale_name!r}": self.base_scale, "band": self.band, "calibration": self.calibration}
        sizes = {name: float(np.abs(logs[np.isfinite(logs)]).sum() / max(1, len(logs))) for name, logs in made.items()}
        factors = [f"{name} {_factor(size)}" for name, size in sizes.items() if size > 0.05]
        level, why = f"{100 * self.confidence_level:.6g}%", ", ".join(factors) or "nothing worth a word"
        return (
            f"Explanation of {many(len(self), 'interval')} at {level}: {low:.2g} to {high:.2g} times as wide as the "
            f"typical one ({self.typical_width:.4g})\n  by, as a rule: {why}; words() says more"
        )

    def words(self, i: int | None = None) -> str:
        """What makes interval i as wide as it is, in one or two sentences; without i a line for each of the first ten.

        A line begins with the number of its row.
        """
        if i is None:
            lines = [f"{k}: {_words(self, k)}" for k in range(min(len(self), FIRST))]
            more = [f"... and {len(self) - FIRST} more: words(i)"] if len(self) > FIRST else []
            return "\n".join(lines + more)
        check("i", i, is_count(i) and -len(self) <= i < len(self), f"the number of a row, below {len(self)}")
        return _words(self, int(i) % len(self))


def _check_sum(name: str, parts: Array, whole: Array, size: Array) -> None:
    """Complain about parts that do not make the whole, up to the rounding of terms of this size."""
    infinite = ~np.isfinite(whole)
    with np.errstate(invalid="ignore"):
        wrong = np.abs(parts - whole) > EXACT * (np.abs(whole) + size)
    wrong = np.where(infinite, parts != whole, wrong | np.isnan(parts))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} sum to {parts[row]:.17g} in row {row}: expected {whole[row]:.17g}")


def _words(found: Explanation, i: int) -> str:
    """How wide row i is, and why."""
    width = found.width[i]
    if width == np.inf:
        return "This interval is infinite: there are too few calibration rows for its confidence level."
    if width == 0:
        return "This interval is a single point: calibration takes off more than the width of the band here."
    ratio = float(width / found.typical_width)
    if abs(np.log(ratio)) < WORTH_SAYING:
        first = f"This interval is about as wide as the typical one (x{ratio:.3g})."
    else:
        first = f"This interval is {ratio:.2g} times as wide as the typical one."
    second = "; ".join(_reasons(found, i))
    return f"{first} {second[0].upper()}{second[1:]}." if second else first


def _reasons(found: Explanation, i: int) -> list[str]:
    """The factors that are worth a word, the largest first; the largest of all if none is and the width differs."""
    made = {"scale": found.base_scale[i], "band": found.band[i], "calibration": found.calibration[i]}
    sizes = {name: abs(float(value)) for name, value in made.items()}
    least = WORTH_SAYING
    if abs(float(np.log(found.times_typical[i]))) >= WORTH_SAYING:
        least = min(least, max(sizes.values()))
    named = sorted((name for name in made if sizes[name] >= least), key=lambda name: -sizes[name])
    is_far = bool(found.support[i] < found.support_limit)
    far = f"it lies far from the learning data (support {found.support[i]:.2g})"
    said = []
    for name in named:
        wide, because = bool(made[name] > 0), ""
        if name == "scale":
            words = SCALES[found.scale_name][0 if wide else 1]
        elif name == "calibration":
            words = f"{CALIBRATIONS.get(found.calibrated_by, 'calibration')} {'widens' if wide else 'narrows'} it"
        else:
            # 1. Such as "12, 40 and 7": the learning rows that contribute most to the band.
            shares = found.landmarks[i]
            order = np.argsort(-shares, kind="stable")[:MOST_ROWS]
            least_share = LEAST_SHARE * shares[shares > 0].sum()
            largest = [k for k in order if shares[k] > 0 and shares[k] >= least_share]
            names = list(dict.fromkeys(str(found.landmark_rows[k]) for k in largest))
            rows = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
            # 2. The feature that makes the band what it is, if one of several does.
            parts = found.features[i] * np.sign(found.band[i])
            k = int(np.argmax(parts))
            if len(parts) > 1 and parts[k] >= WORTH_SAYING:
                because = f", mostly because of {found.feature_names[k]!r} ({_factor(found.features[i, k])})"
            like = f"rows like {rows} of the learning data vary" if rows else "the learning data here vary"
            words = f"{like} {'much' if wide else 'little'}"
            if is_far:
                words = f"{far}, where the band {'widens' if wide else 'narrows'}"
        said.append(f"{words} ({_factor(made[name])}){because}")
    return [*said, far] if is_far and "band" not in named else said


def _factor(log: float) -> str:
    return f"x{np.exp(log):.2g}"
