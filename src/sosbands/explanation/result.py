"""Explanation: where the width of intervals comes from, as arrays, as a table and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._arguments import check, is_count
from sosbands._types import Array, IntArray
from sosbands.explanation.words import words_of_row

EXACT = 1e-10  # relative: to this the parts must sum to the width


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
    base_scale : ndarray of shape (n,)
        Logarithm of the base scale over its median.
    band : ndarray of shape (n,)
        Logarithm of the calibrated band in base scales over the typical one, ``typical_width`` over that median.
    calibration : ndarray of shape (n,)
        Logarithm of what calibration by groups, by likelihood ratios or by copies makes of the width; else 0.
    features : ndarray of shape (n, f)
        Of `band`: Shapley values of the noise features, against the typical row.
    feature_names : tuple of f str
        Columns; "(prediction)" and "(scale)" are no columns of the table.
    typical_band : float
        Of `band`: the band at the typical row over the typical one.
    typical_row : int
        Position in what was given to `fit`.
    landmarks : ndarray of shape (n, p)
        What landmarks, learning rows that bands are told by, contribute to the width, below and above together.
    landmark_rows : ndarray of int of shape (p,)
        Their positions in what was given to `fit`.
    constant, off_data, added : ndarray of shape (n,)
        What the constant contributes where landmarks do not reach; what bands are widened by far from the learning
        rows; what calibration adds to bands, or takes off (negative).
    support : ndarray of shape (n,)
        How much the learning rows say about each row.
    support_limit : float
        Rows with less are far from the learning data.
    scale_name : str
        The base scale: "none", "model", "forest" or "both".
    calibrated_by : {"all", "groups", "weights", "copies"}
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
        if not 0 < self.typical_width < np.inf:
            raise ValueError(f"typical_width={self.typical_width!r}: expected a finite number > 0")
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

    def words(self, i: int) -> str:
        """What makes interval i as wide as it is, in one or two sentences."""
        check("i", i, is_count(i) and -len(self) <= i < len(self), f"the number of a row, below {len(self)}")
        return words_of_row(self, int(i) % len(self))


def _check_sum(name: str, parts: Array, whole: Array, size: Array) -> None:
    """Complain about parts that do not make the whole, up to the rounding of terms of this size."""
    infinite = ~np.isfinite(whole)
    with np.errstate(invalid="ignore"):
        wrong = np.abs(parts - whole) > EXACT * (np.abs(whole) + size)
    wrong = np.where(infinite, parts != whole, wrong | np.isnan(parts))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} sum to {parts[row]:.17g} in row {row}: expected {whole[row]:.17g}")
