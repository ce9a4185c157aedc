"""Predicates of arguments, and the error that names one."""

from fractions import Fraction

import numpy as np
import pytest

from sosbands._arguments import check, check_choice, is_count, is_fraction, is_number, read_level
from sosbands.conformal.asked import read_levels
from sosbands.metrics import interval_score

#  value: number, count, fraction
VALUES = [
    (3, True, True, False),
    (np.int32(3), True, True, False),
    (0, True, True, False),
    (0.5, True, False, True),
    (np.float32(0.5), True, False, True),
    (Fraction(1, 3), True, False, True),
    (1.0, True, False, False),
    (float("nan"), True, False, False),
    (float("inf"), True, False, False),
    (True, False, False, False),
    (np.bool_(True), False, False, False),
    (1j, False, False, False),
    ("0.5", False, False, False),
    (None, False, False, False),
    (np.array(0.5), False, False, False),
    (np.array([0.5, 0.2]), False, False, False),
]


@pytest.mark.parametrize(("value", "number", "count", "fraction"), VALUES, ids=lambda value: repr(value))
def test_predicates(value, number, count, fraction):
    assert (is_number(value), is_count(value), is_fraction(value)) == (number, count, fraction)


def test_the_error_names_the_argument_its_value_and_what_was_expected():
    check("tol", 0.5, True, "a number in (0, 1)")
    with pytest.raises(ValueError, match=r"^tol='x': expected a number in \(0, 1\)$"):
        check("tol", "x", False, "a number in (0, 1)")
    check_choice("kind", "a", ("a", "b"))
    check_choice("kind", None, ("a", None))
    for value in ("c", None, 1, ["a"], np.array(["a", "b"])):
        with pytest.raises(ValueError, match=r"^kind=.*: expected one of \['a', 'b'\]$"):
            check_choice("kind", value, ("a", "b"))


@pytest.mark.parametrize("level", [0.9, np.float64(0.9), np.array(0.9)])
def test_one_level(level):
    assert read_level(level) == 0.9
    assert type(read_level(level)) is float


@pytest.mark.parametrize("level", ["0.9", 0, 1.0, True, np.nan, None, np.array([0.9]), np.array("0.9")])
def test_what_is_no_level_is_none_for_calibration_and_metrics_alike(level):
    readers = (read_level, lambda value: interval_score([0.0], [0.0], [1.0], confidence_level=value))
    readers += () if np.ndim(level) else (read_levels,)
    for read in readers:
        with pytest.raises(ValueError, match=r"^confidence_level=.*: expected a number in \(0, 1\)$"):
            read(level)
