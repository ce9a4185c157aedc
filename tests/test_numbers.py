"""Arrays of arguments as numbers: what NumPy would convert without a word is an error, and what cannot be squared."""

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from sosbands import learn_bands, metrics, stats
from sosbands._arguments import LARGEST, check_size, read_numbers
from sosbands.baselines import SplitCP
from sosbands.tuning import Rules

DAYS = np.datetime64("2024-01-01") + np.arange(4).astype("m8[D]")
HOURS = np.arange(4).astype("m8[h]")
NO_NUMBERS = [
    (DAYS, r"v holds dates \(dtype datetime64\[D\]\): expected real numbers, so count from some date in a unit, such"),
    (pd.Series(pd.to_datetime(DAYS)), r"v holds dates \(dtype datetime64\[.*\]\)"),
    (pd.Series(pd.to_datetime(DAYS)).dt.tz_localize("UTC"), r"v holds dates \(dtype object\)"),
    (pl.Series(DAYS), r"v holds dates \(dtype datetime64"),
    ([datetime.date(2024, 1, 1)], r"v holds dates \(dtype object\)"),
    (HOURS, r"v holds spans of time \(dtype timedelta64\[h\]\): .*divide by a unit, such as values / np.timedelta64\("),
    (pd.Series(pd.to_timedelta(HOURS)), r"v holds spans of time \(dtype timedelta64"),
    (pl.Series([datetime.timedelta(1)]), r"v holds spans of time \(dtype timedelta64"),
    ([datetime.timedelta(1)], r"v holds spans of time \(dtype object\)"),
    ([1 + 2j], r"v has dtype complex128: expected real numbers \(Complex data not supported\)"),
    (np.array([1j, 2.0], dtype=object), r"v has dtype object: expected real numbers \(Complex"),
    (["1"], "v has dtype <U1: expected real numbers"),
    (np.array(["1", 2], dtype=object), "v has dtype object with entries of type int, str: expected real numbers"),
    ([10**400], "v has dtype object with entries of type int: expected real numbers"),
    ([[1.0], [1.0, 2.0]], "v is no array .*: expected real numbers"),
    (np.ma.MaskedArray([1.0, 2.0], [True, False]), "v has masked entries"),
    (None, "v is None: expected real numbers"),
    ({}, "v has dtype object with entries of type dict"),
]


@pytest.mark.parametrize(("values", "expected"), NO_NUMBERS, ids=lambda value: str(value)[:20])
def test_what_is_no_number_is_refused(values, expected):
    with pytest.raises(ValueError, match=f"^{expected}"):
        read_numbers("v", values)
    with pytest.raises(TypeError, match="^v is sparse: expected a dense array"):
        read_numbers("v", csr_matrix(np.eye(2)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, 2], [1.0, 2.0]),
        ([Fraction(1, 2), Decimal("0.25")], [0.5, 0.25]),
        (np.ma.MaskedArray([1.0, 2.0], [False, False]), [1.0, 2.0]),
        (pd.Series([1, 2], dtype="Int64"), [1.0, 2.0]),
        (pl.Series([1, 2]), [1.0, 2.0]),
        (np.array(["1e4000"], dtype=np.longdouble), [np.inf]),
        ([np.nan, -np.inf], [np.nan, -np.inf]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_numbers_of_any_kind(values, expected):
    found = read_numbers("v", values)
    assert found.dtype == np.float64
    assert np.array_equal(found, expected, equal_nan=True)


def test_sizes():
    check_size("v", np.array([LARGEST, -LARGEST, np.inf, np.nan]))
    for value in (np.nextafter(LARGEST, np.inf), -1e308):
        with pytest.raises(
            ValueError, match=r"^v has entries as large as 1e\+\d+: expected at most 1e\+150, .*; shrink"
        ):
            check_size("v", np.array([0.0, value, np.inf]), "shrink it")


# ---------------------------------------------------------------- metrics at the ends of the range

B = 1e308
WIDE = ([-B] * 4, [B] * 4)
FOUR = [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("measure", "name"),
    [
        (lambda: metrics.mean_width(*WIDE), "lower"),
        (lambda: metrics.mean_width([0.0] * 4, [B] * 4), "upper"),
        (lambda: metrics.median_width([0.0] * 4, [B] * 4), "upper"),
        (lambda: metrics.interval_score(FOUR, *WIDE, 0.9), "lower"),
        (lambda: metrics.interval_score([B, -B, B, -B], FOUR, FOUR, 0.9), "y"),
        (lambda: metrics.width_residual_hsic(FOUR, *WIDE), "lower"),
        (lambda: metrics.width_residual_correlation([B] * 4, FOUR, FOUR), "y"),
        (lambda: metrics.evaluate_intervals(FOUR, *WIDE, confidence_level=0.9), "lower"),
        (lambda: metrics.evaluate_intervals(FOUR, FOUR, FOUR, confidence_level=0.9, X=[[B], [-B], [1], [0]]), "X"),
        (lambda: metrics.rmse_to_oracle(FOUR, FOUR, [-B] * 4, [B] * 4), "oracle_lower"),
        (lambda: metrics.mean_width(FOUR, FOUR, sample_weight=[B] * 4), "sample_weight"),
        (lambda: stats.hsic([B, -B], [0.0, 1.0]), "x"),
        (lambda: stats.sign_flip_test([[B], [-B]], [0.0, 1.0], 1.0), "X"),
        (lambda: stats.kruskal_wallis_test([[B, B], [-B, -B]]), "groups"),
    ],
)
def test_what_would_overflow_is_named(measure, name):
    with pytest.raises(ValueError, match=rf"^{name} has entries as large as 1e\+308: expected at most 1e\+15[01]"):
        measure()


def test_coverage_compares_and_takes_any_number():
    assert metrics.coverage([B, -B, 0.0, 0.0], [-B, -B, -B, 1.0], [B, 0.0, B, B]) == 0.75
    assert metrics.lower_coverage([B, -B], [0.0, 0.0], [B, B]) == 0.5
    assert metrics.upper_coverage([B, -B], [0.0, 0.0], [1.0, 1.0]) == 0.5


@pytest.mark.parametrize("scale", [1e150, 1e149, 1.0, 1e-150, 1e-300])
def test_measures_have_the_unit_of_the_target_at_any_size(scale):
    rng = np.random.default_rng(1)
    y, ends = rng.uniform(-1, 1, 50), np.sort(rng.uniform(-1, 1, (50, 2)), axis=1)
    X = rng.uniform(-1, 1, (50, 2))
    one, big = (
        metrics.evaluate_intervals(
            s * y, s * ends[:, 0], s * ends[:, 1], confidence_level=0.9, X=s * X, sample_weight=s * (1 + X[:, 0]) / 2
        )
        for s in (1.0, scale)
    )
    unit = {"mean_width": scale, "median_width": scale, "interval_score": scale, "hsic": scale**2}
    for name, value in one.items():
        assert big[name] == pytest.approx(value * unit.get(name, 1.0), rel=1e-9, abs=0.0), name


def test_many_large_numbers_and_rows_far_from_those_of_a_tiny_scale():
    x = np.random.default_rng(0).uniform(-1, 1, 4000)  # a sum over pairs of 4000 products of 1e300 would overflow
    assert stats.hsic(1e150 * x, 1e150 * x**2) == pytest.approx(1e300 * stats.hsic(x, x**2), rel=1e-9)
    y = np.arange(4.0)
    found = metrics.worst_set_coverage(y, y, y + 1, [[1e149], [1.0], [-1e149], [0.0]], X_learn=[[1e-200], [0.0]])
    assert found.marginal == 1.0


@pytest.mark.parametrize("values", [DAYS, HOURS, np.ones(4) + 1j, np.array(["1"] * 4)])
def test_metrics_and_bands_refuse_what_is_no_number(values):
    with pytest.raises(ValueError, match="^y "):
        metrics.coverage(values, FOUR, FOUR)
    with pytest.raises(ValueError, match="^upper "):
        metrics.mean_width(FOUR, values)
    with pytest.raises(ValueError, match="^sample_weight "):
        metrics.mean_width(FOUR, FOUR, sample_weight=values)
    with pytest.raises(ValueError, match="^residuals "):
        learn_bands(np.eye(4), values)
    with pytest.raises(ValueError, match="^x "):
        stats.hsic(values, FOUR)


# ---------------------------------------------------------------- tests


@pytest.mark.parametrize("count", [0, 2.5, "x", None, True])
def test_numbers_of_permutations(count):
    for test, name in (
        (lambda: stats.independence_test([FOUR], [FOUR], n_permutations=count), "n_permutations"),
        (lambda: stats.kruskal_wallis_test([FOUR, FOUR], n_permutations=count), "n_permutations"),
        (lambda: stats.sign_flip_test(np.eye(4), FOUR, 1.0, n_flips=count), "n_flips"),
    ):
        with pytest.raises(ValueError, match=f"^{name}=.*: expected an int >= 1"):
            test()


def test_seeds_lengthscales_and_permutations_of_tests():
    with pytest.raises(ValueError, match="^n_permutations=10000000000: expected at most 1000000"):
        Rules(level=1e-9, n_permutations=10**10)
    with pytest.raises(ValueError, match="^random_state='x': expected an int >= 0, a Generator or None"):
        stats.independence_test([FOUR], [FOUR], random_state="x")
    with pytest.raises(ValueError, match="^lengthscale='x': expected a number > 0"):
        stats.sign_flip_test(np.eye(4), FOUR, "x")


def test_flips_and_labels_in_batches_are_those_of_one_draw(monkeypatch):
    rng = np.random.default_rng(0)
    X, r = rng.uniform(size=(40, 1)), rng.standard_normal(40)
    groups = rng.standard_normal((3, 10))
    found = []
    for batch in (10**6, 7):
        monkeypatch.setattr("sosbands.stats.tests.FLIPS_AT_A_TIME", batch)
        monkeypatch.setattr("sosbands.stats.tests.LABELS_AT_A_TIME", batch)
        flips = stats.sign_flip_test(X, r, 0.3, n_flips=500, random_state=1)
        labels = stats.kruskal_wallis_test(groups, n_permutations=500, random_state=1)
        found.append((flips.p_value, labels.p_value))
    assert found[0] == found[1]


# ---------------------------------------------------------------- masked rows


def test_masked_rows_are_refused():
    X = np.ma.MaskedArray(np.random.default_rng(0).uniform(size=(9, 2)), np.eye(9, 2) > 0)
    with pytest.raises(ValueError, match="^X has masked entries: expected numbers, with NaN for what is missing"):
        SplitCP().fit(X, np.arange(9.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"^X has entries as large as 1e\+308: expected at most 1e\+150"):
            SplitCP().fit(np.full((9, 1), 1e308), np.arange(9.0))
