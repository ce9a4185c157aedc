"""One division of the rows for each repetition, the same for every method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sosbands._arguments import check, is_count, is_fraction
from sosbands._types import IntArray


class Split(NamedTuple):
    """Positions of the learning, calibration and test rows, each increasing."""

    learn: IntArray
    calibration: IntArray
    test: IntArray


@dataclass(frozen=True)
class SplitSizes:
    """How many rows are learnt from, calibrated on and tested on."""

    n_learn: int
    n_calibration: int
    n_test: int

    @classmethod
    def of(cls, n_rows: int, calibration_size: Any, test_size: Any) -> SplitSizes:
        """Sizes from fractions of all rows, or counts; the other rows are learnt from."""
        n_calibration = _count("calibration_size", calibration_size, n_rows)
        n_test = _count("test_size", test_size, n_rows)
        n_learn = n_rows - n_calibration - n_test
        if n_learn < 2:
            raise ValueError(
                f"calibration_size={calibration_size!r} and test_size={test_size!r} leave {n_learn} of {n_rows} rows "
                "to learn from: expected at least 2"
            )
        return cls(n_learn, n_calibration, n_test)

    def split(self, seed: int) -> Split:
        """Random division; it depends on the sizes and the seed only."""
        # The stream [seed, 0] is not the one that a method makes of the same seed.
        n = self.n_learn + self.n_calibration + self.n_test
        order = np.random.default_rng([seed, 0]).permutation(n).astype(np.intp)
        test, calibration, learn = np.split(order, [self.n_test, self.n_test + self.n_calibration])
        return Split(np.sort(learn), np.sort(calibration), np.sort(test))


def _count(name: str, size: Any, n_rows: int) -> int:
    if is_fraction(size):
        return max(1, round(float(size) * n_rows))
    check(name, size, is_count(size) and size >= 1, "a fraction of the rows in (0, 1) or a number of rows >= 1")
    return int(size)
