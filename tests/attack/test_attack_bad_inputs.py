"""The attack by hostile inputs sees a planted defect of each kind; the library passes its quick part elsewhere."""

import numpy as np
import pytest

from attack import bad_inputs
from sosbands.conformal import calibration


def breaches(count=40, kind=None):
    found = []
    for number in range(count):
        if kind is None or bad_inputs.KINDS[number % len(bad_inputs.KINDS)].__name__ == kind:
            try:
                bad_inputs.attempt(number)
            except AssertionError as error:
                found.append(str(error))
    return found


def test_results_and_refusals():
    outcomes = [bad_inputs.attempt(number) for number in range(20)]
    assert any(each.endswith("right") for each in outcomes)
    assert any("refused, ValueError" in each for each in outcomes)


def test_intervals_that_are_too_narrow_are_seen(monkeypatch):
    real = calibration.interval
    monkeypatch.setattr(calibration, "interval", lambda band, q_lo, q_up: real(band, 0.5 * q_lo, 0.5 * q_up))
    assert any("calibration rows, not" in each for each in breaches(60))


def test_a_wrong_measure_is_seen(monkeypatch):
    monkeypatch.setattr("sosbands.metrics.intervals.mean_width", lambda lower, upper, **_: float(np.max(upper - lower)))
    assert any("mean_width" in each for each in breaches(120, "measures"))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KeyError("a"), "KeyError instead of a named error"),
        (ValueError("y: made by _Hidden"), "the message has the private name '_Hidden'"),
        (ValueError("y: see module._hidden"), "the message has the private name"),
        (ValueError("wrong"), "ValueError names none of"),
        (RuntimeWarning("overflow"), "RuntimeWarning"),
    ],
)
def test_errors_of_the_wrong_kind_are_seen(monkeypatch, error, expected):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("sosbands.tables.rows.read_target", broken)
    assert any(expected in each for each in breaches(20, "estimators"))


def test_warnings_are_seen(monkeypatch):
    def warned(y, _):
        np.float64(1e308) * np.array([1e308])
        return np.asarray(y, dtype=float)

    monkeypatch.setattr("sosbands.tables.rows.read_target", warned)
    assert any("overflow encountered" in each for each in breaches(40, "estimators"))
