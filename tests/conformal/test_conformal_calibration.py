"""Quantiles of a calibration: both kinds, groups, likelihood ratios, and what it says when points are too few."""

import math

import numpy as np
import pytest

from sosbands.conformal import Band, Calibration, conformal_quantile, side_levels, weighted_conformal_quantile

INF = math.inf
RNG = np.random.default_rng(0)
BAND = Band(-np.ones(60), np.full(60, 2.0), RNG.uniform(0.5, 2.0, 60))
Y = RNG.gumbel(size=60) * 2
LABELS = np.array(["a", "b", "c"])[RNG.integers(0, 3, 60)]
RATIO = RNG.exponential(size=60)
LOWER, UPPER = (BAND.lower - Y) / BAND.lower_unit, (Y - BAND.upper) / BAND.lower_unit


def test_side_levels():
    assert side_levels(0.9, "symmetric") == (0.9, 0.9)
    assert side_levels(0.9, "asymmetric") == pytest.approx((0.95, 0.95), abs=1e-15)
    assert side_levels(0.9, "asymmetric", 0.2) == pytest.approx((0.98, 0.92), abs=1e-15)
    assert side_levels(0.9, "asymmetric", 0.0)[0] == 1.0
    assert side_levels(0.9, "asymmetric", 1.0)[1] == 1.0


def test_scores():
    calibration = Calibration.of(BAND, Y)
    assert len(calibration) == 60
    assert np.array_equal(calibration.scores("symmetric"), np.maximum(LOWER, UPPER))
    assert np.array_equal(calibration.scores("asymmetric"), np.stack([LOWER, UPPER], axis=1))


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_one_quantile_or_two(level):
    calibration = Calibration.of(BAND, Y)
    q = conformal_quantile(np.maximum(LOWER, UPPER), level)
    assert calibration.quantiles(level, "symmetric").tolist() == [[q, q]]
    for share in (0.0, 0.3, 0.5, 1.0):
        q_lo = conformal_quantile(LOWER, 1 - (1 - level) * share)
        q_up = conformal_quantile(UPPER, 1 - (1 - level) * (1 - share))
        assert calibration.quantiles(level, "asymmetric", share).tolist() == [[q_lo, q_up]]
        assert (q_lo == INF, q_up == INF) == (share == 0, share == 1)


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_group_has_the_quantiles_that_it_would_have_alone(kind, weighted):
    def given(rows):
        return {"likelihood_ratio": RATIO[rows]} if weighted else {}

    calibration = Calibration.of(BAND, Y, LABELS, **given(slice(None)))
    asked = np.array(["c", "a", "a", "c", "b"])
    test_ratio = np.array([1.0, 0.1, 2.0, 0.5, 1.0]) if weighted else None
    labels, weights = calibration.read_rows(5, asked, test_ratio)
    found = calibration.quantiles(0.8, kind, groups=labels, weights=weights)
    assert found.shape == (5, 2)
    for row, label in enumerate(asked):
        rows = label == LABELS
        alone = Calibration.of(BAND.take(np.flatnonzero(rows)), Y[rows], **given(rows))
        own = None if weights is None else weights[[row]]
        assert found[row].tolist() == alone.quantiles(0.8, kind, weights=own)[0].tolist()


def test_likelihood_ratios():
    calibration = Calibration.of(BAND, Y, likelihood_ratio=RATIO)
    w = np.array([0.0, 0.3, 1.0, 500.0])
    found = calibration.quantiles(0.9, "asymmetric", weights=calibration.read_rows(4, None, w)[1])
    assert np.array_equal(found[:, 0], weighted_conformal_quantile(LOWER, RATIO, w, 0.95))
    assert np.array_equal(found[:, 1], weighted_conformal_quantile(UPPER, RATIO, w, 0.95))
    assert found[3].tolist() == [INF, INF]
    found = calibration.quantiles(0.9, "symmetric", weights=w)
    assert np.array_equal(found[:, 0], weighted_conformal_quantile(np.maximum(LOWER, UPPER), RATIO, w, 0.9))
    assert np.array_equal(found[:, 0], found[:, 1])


@pytest.mark.parametrize(
    "labels",
    [[1, 2] * 2, [0.5, 2.0] * 2, [True, False] * 2, ["a", "b"] * 2, np.array(["a", "b"] * 2, dtype=object)],
)
def test_labels_of_many_types(labels):
    band = Band(np.zeros(4), np.zeros(4))
    calibration = Calibration.of(band, np.array([1.0, 2.0, 3.0, 4.0]), labels)
    assert calibration.groups.dtype != object
    rows, _ = calibration.read_rows(2, labels[:2])
    assert calibration.quantiles(0.6, "symmetric", groups=rows)[:, 0].tolist() == [3.0, 4.0]


def shortage(calibration, level, kind, share=0.5, groups=None, ratio=None):
    n = len(groups if groups is not None else ratio) if groups is not None or ratio is not None else 1
    labels, weights = calibration.read_rows(n, groups, ratio)
    q = calibration.quantiles(level, kind, share, groups=labels, weights=weights)
    return calibration.shortage(q, level, kind, share, labels)


def test_what_is_said_about_too_few_points():
    plain = Calibration(np.arange(8.0), np.arange(8.0))
    assert shortage(plain, 0.8, "symmetric") is None
    assert shortage(plain, 0.9, "symmetric") == (
        "confidence level 0.9 needs at least 9 calibration points, given: 8; every interval infinite"
    )
    assert "at least 19 calibration points" in shortage(plain, 0.9, "asymmetric")
    assert "at least 99 calibration points" in shortage(plain, 0.9, "asymmetric", 0.9)
    assert shortage(plain, 0.8, "asymmetric", 0.0) is None  # an infinite end that was asked for
    assert "at least 9 calibration points" in shortage(plain, 0.9, "asymmetric", 0.0)


def test_what_is_said_about_small_groups():
    grouped = Calibration(np.arange(12.0), np.arange(12.0), groups=np.array(["a"] * 9 + ["b"] * 3))
    assert shortage(grouped, 0.9, "symmetric", groups=["a", "a"]) is None
    assert shortage(grouped, 0.9, "symmetric", groups=["a", "b", "a"]) == (
        "confidence level 0.9 needs at least 9 calibration points, given: 3 in group 'b'; 1 of 3 intervals infinite"
    )
    many = Calibration(np.zeros(30), np.zeros(30), groups=np.arange(30))
    assert "1 in group 9 and 20 more; every interval" in shortage(many, 0.9, "symmetric", groups=np.arange(30))


def test_what_is_said_about_weights_and_infinite_scores():
    weighted = Calibration(np.arange(10.0), np.arange(10.0), weights=np.array([9.0] + [1.0] * 9))
    text = shortage(weighted, 0.9, "symmetric", ratio=[1.0, 3.0])
    assert "given: 10 (worth 3.6 by their likelihood ratios); 1 of 2 intervals infinite" in text
    scores = np.append(np.zeros(18), [INF, INF])
    text = shortage(Calibration(scores, scores), 0.9, "symmetric")
    assert "at least 9 calibration points, given: 20 (2 with an infinite score: zero scale)" in text


GROUPED = Calibration.of(BAND, Y, LABELS)
WEIGHTED = Calibration.of(BAND, Y, likelihood_ratio=RATIO)
PLAIN = Calibration.of(BAND, Y)


@pytest.mark.parametrize(
    ("calibration", "arguments", "message"),
    [
        (GROUPED, {}, "groups=None: expected one value per row, because conformalize was called with groups"),
        (PLAIN, {"groups": ["a", "b"]}, "groups was given: expected None, because conformalize was called without"),
        (WEIGHTED, {}, "likelihood_ratio=None: expected one value per row, because conformalize was called with"),
        (PLAIN, {"likelihood_ratio": [1.0, 1.0]}, "likelihood_ratio was given: expected None"),
        (GROUPED, {"groups": ["a", "z"]}, "conformalize has not seen, 'z': expected 'a', 'b', 'c'"),
        (GROUPED, {"groups": [1, 2]}, "conformalize has not seen, 1, 2: expected 'a', 'b', 'c'"),
        (GROUPED, {"groups": ["a"]}, r"groups has shape \(1,\): expected one entry per row of X, shape \(2,\)"),
        (GROUPED, {"groups": "ab"}, r"groups has shape \(\)"),
        (GROUPED, {"groups": ["a", None]}, "groups has labels of type NoneType, str: expected all strings or all num"),
        (GROUPED, {"groups": [1.0, math.nan]}, "groups has labels that are NaN or infinite"),
        (GROUPED, {"groups": np.array(["2020", "2021"], dtype="M8[Y]")}, "groups has dtype datetime64"),
        (WEIGHTED, {"likelihood_ratio": [1.0, -0.5]}, "likelihood_ratio has the entry -0.5: expected numbers >= 0"),
        (WEIGHTED, {"likelihood_ratio": [1.0, math.nan]}, "likelihood_ratio has 1 entries .* first in row 1"),
        (WEIGHTED, {"likelihood_ratio": [1.0]}, r"likelihood_ratio has shape \(1,\)"),
        (WEIGHTED, {"likelihood_ratio": ["1", "2"]}, "likelihood_ratio has dtype <U1: expected real numbers"),
    ],
)
def test_bad_rows(calibration, arguments, message):
    with pytest.raises(ValueError, match=message):
        calibration.read_rows(2, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"likelihood_ratio": np.zeros(60)}, "likelihood_ratio is zero in every row: expected a positive entry"),
        ({"groups": LABELS, "likelihood_ratio": 1.0 * (LABELS != "b")}, "ratio is zero in every row in group 'b'"),
        ({"likelihood_ratio": -np.ones(60)}, "likelihood_ratio has the entry -1.0"),
        ({"likelihood_ratio": np.full(60, math.nan)}, "likelihood_ratio has 60 entries that are NaN"),
        ({"likelihood_ratio": np.ones(59)}, r"likelihood_ratio has shape \(59,\): .* shape \(60,\)"),
        ({"groups": LABELS[:59]}, r"groups has shape \(59,\)"),
        ({"groups": [None] * 60}, "groups has labels of type NoneType"),
    ],
)
def test_bad_calibration_rows(arguments, message):
    with pytest.raises(ValueError, match=message):
        Calibration.of(BAND, Y, **arguments)
