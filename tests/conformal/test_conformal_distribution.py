"""The conformal predictive distribution: values by hand, its laws to the last digit, its guarantee, broken copies."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sosbands.conformal import Band, Calibration, IntervalMixin, Knots, Places, Told, inner_places, interval
from sosbands.conformal.mixin import quantile_names
from sosbands.exceptions import NotCalibratedError, TooFewCalibrationPointsWarning

PERCENT = np.arange(1, 100) / 100


class Fixed(IntervalMixin):
    """A regressor whose band is that of its inputs: columns lower end, upper end, lower unit and upper unit."""

    def __init__(self, confidence_level=0.9, calibration="asymmetric", least=-np.inf):
        self.confidence_level, self.calibration, self.least = confidence_level, calibration, least

    def told(self, X):
        X = np.asarray(X)
        return Told(Band(*X.T, least_score=self.least))


def rows(n, lower=-1.0, upper=1.0, lower_unit=1.0, upper_unit=2.0):
    return np.tile([lower, upper, lower_unit, upper_unit], (n, 1))


def random_bands(rng, n, kind):
    """Bands over orders of magnitude: added (ends apart, one unit), scaled (one centre), crossed, nested."""
    m, size = 10 * rng.standard_normal(n), 10.0 ** rng.uniform(-3, 2, (3, n))
    if kind == "added":
        return Band(m - size[0], m + size[1], size[2])
    if kind == "scaled":
        return Band(m, m, size[0], size[1], least_score=0.0)
    if kind == "crossed":
        return Band(m + size[0] * rng.choice([-1, 1], n), m + size[1] * rng.choice([-1, 1], n), size[2])
    steps = 10.0 ** rng.uniform(-3, 2, (2, n, 3)) * (rng.uniform(size=(2, n, 3)) > 0.2)
    reaches = np.cumsum(steps, axis=2)
    return Band(m, m, reaches[0, :, -1], reaches[1, :, -1], least_score=0.0, knots=Knots(np.arange(1.0, 4.0), *reaches))


KINDS = ("added", "scaled", "crossed", "nested")


# ---------------------------------------------------------------- values


def test_places_by_hand():
    band = Band(np.zeros(5), np.full(5, 4.0))
    assert inner_places(band, np.array([-1.0, 0.0, 1.0, 4.0, 5.0])).tolist() == [-np.inf, 0.0, 0.25, 1.0, np.inf]
    crossed = Band(np.full(3, 4.0), np.zeros(3))  # the midpoint, 2, is the whole band
    assert inner_places(crossed, np.array([1.0, 2.0, 3.0])).tolist() == [-np.inf, 0.5, np.inf]


@pytest.mark.parametrize(
    ("q", "expected"),
    [(0.1, -3.0), (0.25, -1.5), (0.3, -1.5), (0.4, 0.0), (0.5, 0.0), (0.51, 1.5), (0.65, 6.0), (0.8, 8.0), (0.9, 14.0)],
)
def test_quantiles_by_hand(q, expected):
    """Nine rows in the band [-1, 1] of units 1 and 2, the new row in the band [0, 2] of units 1 and 4.

    Below a place is carried to 0 - (-1 - y), inside to the same share, above to 2 + 4 (y - 1)/2: -3, -1.5, -1.5, 0,
    0, 1.5, 6, 8, 14. Up to 1/2 the rank is floor(10 q), above it ceil(10 q).
    """
    y = np.array([-4.0, -2.5, -2.5, -1.0, -1.0, 0.5, 3.0, 4.0, 7.0])
    model = Fixed().conformalize(rows(9), y)
    assert model.predict_quantile(rows(1, 0.0, 2.0, 1.0, 4.0), q)[0] == pytest.approx(expected)


def test_too_few_rows_make_quantiles_infinite_with_a_warning():
    model = Fixed().conformalize(rows(9), np.arange(9.0))
    expected = r"quantile 0.05 needs at least 19 calibration points, given: .*; 1 of 1 "
    with pytest.warns(TooFewCalibrationPointsWarning, match=expected):
        assert model.predict_quantile(rows(1), 0.05)[0] == -np.inf
    with pytest.warns(TooFewCalibrationPointsWarning):
        assert model.predict_quantile(rows(1), [0.5, 0.95])[0, 1] == np.inf


def test_probabilities_by_hand():
    model = Fixed().conformalize(rows(4), np.array([-2.0, 0.0, 0.0, 5.0]))
    table = np.array([[-9.0, -2.0, -1.0, 0.0, 0.5, 5.0, 9.0]])
    expected = np.array([0.5, 1.0, 1.5, 2.5, 3.5, 4.0, 4.5]) / 5
    np.testing.assert_allclose(model.predict_cdf(rows(1), table)[0], expected)
    assert model.predict_cdf(rows(3), 0.5).tolist() == [0.7, 0.7, 0.7]
    assert model.predict_cdf(rows(2), [0.0, np.inf]).tolist() == [0.5, 0.9]


def test_an_ensemble_of_all_calibration_rows_is_these_rows():
    y = np.array([3.0, -2.0, 0.25, 0.5])
    model = Fixed().conformalize(rows(4), y)
    np.testing.assert_allclose(model.predict_ensemble(rows(2), 4), np.tile(np.sort(y), (2, 1)))
    np.testing.assert_allclose(model.predict_ensemble(rows(1), 2)[0], [-2.0, 0.5])


def test_weights_by_hand():
    """Ratios 1, 1, 6 and that of the new row 2: half of the mass 10 is reached at the third row only."""
    model = Fixed().conformalize(rows(3), np.array([2.0, 3.0, 4.0]), likelihood_ratio=[1.0, 1.0, 6.0])
    ratio = {"likelihood_ratio": [2.0]}
    assert model.predict_quantile(rows(1), 0.6, **ratio)[0] == pytest.approx(4.0)
    assert model.predict_quantile(rows(1), 0.4, **ratio)[0] == pytest.approx(4.0)
    assert model.predict_quantile(rows(1), 0.3, **ratio)[0] == pytest.approx(3.0)
    assert model.predict_cdf(rows(1), 3.5, **ratio)[0] == pytest.approx((2 + 1) / 10)
    np.testing.assert_allclose(model.predict_ensemble(rows(1), 4, **ratio)[0], [2.0, 4.0, 4.0, 4.0])


@pytest.mark.parametrize("kind", KINDS)
def test_equal_weights_change_nothing(kind):
    rng = np.random.default_rng(3)
    known, new = random_bands(rng, 40, kind), random_bands(rng, 50, kind)
    y = known.lower + rng.standard_normal(40)
    plain = Calibration.of(known, y).places()[None]
    weighed = Calibration.of(known, y, likelihood_ratio=np.full(40, 3.0)).places()[None]
    for q in (0.1, 0.5, 0.77):
        same = weighed.quantiles(new, q, np.full(50, 3.0))
        np.testing.assert_array_equal(plain.quantiles(new, q), same)
    np.testing.assert_allclose(
        plain.probabilities(new, new.lower), weighed.probabilities(new, new.lower, np.full(50, 3.0))
    )


def test_each_group_has_the_places_of_its_own_rows():
    labels = np.array(["a"] * 9 + ["b"] * 19)
    y = np.concatenate([np.arange(9.0), 100 + np.arange(19.0)])
    model = Fixed().conformalize(rows(28), y, groups=labels)
    assert model.predict_quantile(rows(2), 0.8, groups=["b", "a"]) == pytest.approx([115.0, 7.0])
    assert model.predict_cdf(rows(2), 50.0, groups=["b", "a"]) == pytest.approx([0.5 / 20, 9.5 / 10])
    assert model.predict_ensemble(rows(2), 3, groups=["a", "b"])[:, 1] == pytest.approx([4.0, 109.0])
    with pytest.raises(ValueError, match="groups=None: expected one value per row"):
        model.predict_quantile(rows(2), 0.8)


# ---------------------------------------------------------------- laws to the last digit


def check_monotone(places, band, levels, test_weights=None):
    """No quantile is below one of a smaller level."""
    found = np.stack([places.quantiles(band, q, test_weights) for q in levels], axis=1)
    assert (found[:, 1:] >= found[:, :-1]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighed", [False, True])
def test_quantiles_do_not_cross_to_the_last_digit(kind, weighed):
    rng = np.random.default_rng(1)
    known, new = random_bands(rng, 150, kind), random_bands(rng, 2000, kind)
    y = known.lower + rng.standard_normal(150) * 10.0 ** rng.uniform(-4, 2, 150)
    ratio = 10.0 ** rng.uniform(-3, 3, 150) if weighed else None
    places = Calibration.of(known, y, likelihood_ratio=ratio).places()[None]
    test = 10.0 ** rng.uniform(-3, 3, 2000) * (rng.uniform(size=2000) > 0.1) if weighed else None
    check_monotone(places, new, np.sort([*PERCENT, np.nextafter(0.5, 1), 0.5 + 1e-12]), test)
    if not weighed:
        assert (np.diff(places.ensemble(new, 150), axis=1) >= 0).all()


def test_quantiles_of_two_sides_that_are_not_joined_are_found_to_cross():
    """Lower ends up to 1/2 and upper ends above, each moved by its own quantile of signed scores."""

    class TwoSides(Places):
        def quantiles(self, band, q, test_weights=None):  # noqa: ARG002
            side = int(q > 0.5)
            return (band.upper if side else band.lower) + np.quantile(self.distance, q)

    rng = np.random.default_rng(1)
    known, new = random_bands(rng, 150, "crossed"), random_bands(rng, 2000, "crossed")
    made = Calibration.of(known, known.lower + rng.standard_normal(150)).places()[None]
    with pytest.raises(AssertionError):
        check_monotone(TwoSides(made.inner, made.distance), new, PERCENT)


@pytest.mark.parametrize("kind", KINDS)
def test_an_observation_is_within_its_own_quantile(kind):
    """Carried to its own band a place is the observation, rounded up above 1/2 and down below: ties are not lost."""
    rng = np.random.default_rng(2)
    band = random_bands(rng, 3000, kind)
    y = band.lower + rng.standard_normal(3000) * 10.0 ** rng.uniform(-4, 2, 3000)
    calibration = Calibration.of(band, y)
    keep = np.flatnonzero(np.isfinite(calibration.scores("symmetric")))  # infinite ones say nothing of how far
    for row in keep[:400]:
        alone = band.take(np.array([row]))
        (places,) = Calibration.of(alone, y[[row]]).places().values()
        up, down = (places._carried(alone, np.zeros(1, dtype=int), upwards=upwards)[0] for upwards in (True, False))
        assert down <= y[row] <= up
        assert up - down <= 1e-12 * np.abs([y[row], *alone.lower, *alone.upper, *alone.units[0], *alone.units[1]]).max()


@pytest.mark.parametrize("kind", ["added", "scaled", "nested"])  # crossed intervals may be midpoints
def test_the_ends_of_asymmetric_intervals_are_quantiles(kind):
    """Wherever the calibration moves ends outwards: one-sided ends and quantiles are the same numbers."""
    rng = np.random.default_rng(5)
    known, new = random_bands(rng, 99, kind), random_bands(rng, 500, kind)
    y = known.lower - 50 * rng.standard_normal(99)
    y = np.where(y < known.lower, y, y + known.upper - known.lower)  # all outside
    calibration = Calibration.of(known, y)
    ends, _ = interval(new, *calibration.quantiles(0.8, "asymmetric")[0])
    places = calibration.places()[None]
    np.testing.assert_array_equal(places.quantiles(new, 0.1), ends[:, 0])
    np.testing.assert_array_equal(places.quantiles(new, 0.9), ends[:, 1])


# ---------------------------------------------------------------- the guarantee


def draw(rng, n, discrete=False):
    """Rows with bands of several sizes, and skewed noise of the size of the band."""
    noise = rng.gamma(1.5, size=n) - 1.5
    noise = np.round(2 * noise) / 2 if discrete else noise
    X = rows(n, -0.5, 0.4, 0.7, 1.3) * rng.uniform(0.5, 2.0, (n, 1))
    return X, noise * X[:, 1]


def shares_below(model, rng, q, draws, discrete=False):
    """Share of new rows up to, and strictly below, their quantile; one new row for each of many calibrations by 19."""
    found = np.empty((draws, 2))
    for k in range(draws):
        X, y = draw(rng, 20, discrete)
        end = model.conformalize(X[:19], y[:19]).predict_quantile(X[19:], q)[0]
        found[k] = y[19] <= end, y[19] < end
    return found.mean(axis=0)


def check_guarantee(model, q, draws=800):
    """Within chance the share of new rows up to the quantile is that of its rank among 20."""
    upto, _ = shares_below(model, np.random.default_rng(int(1000 * q)), q, draws)
    rank = np.floor(q * 20 + 1e-9) if q <= 0.5 else np.ceil(q * 20 - 1e-9)
    p = stats.binomtest(round(upto * draws), draws, rank / 20).pvalue
    assert p > 1e-3, (q, upto)


@pytest.mark.parametrize("q", [0.05, 0.5, 0.93])
def test_new_rows_are_below_their_quantile_as_often_as_promised(q):
    check_guarantee(Fixed(), q)


def test_ties_err_on_the_safe_side():
    rng = np.random.default_rng(0)
    upto, _ = shares_below(Fixed(), rng, 0.9, 600, discrete=True)
    _, below = shares_below(Fixed(), rng, 0.1, 600, discrete=True)
    assert upto >= 0.9 - 3 * np.sqrt(0.09 / 600)
    assert below <= 0.1 + 3 * np.sqrt(0.09 / 600)


def test_quantiles_without_the_new_row_are_rejected():
    class Plain(Fixed):
        def predict_quantile(self, X, q, **given):
            return super().predict_quantile(X, max(q - 0.05, 0.05), **given)

    with pytest.raises(AssertionError):
        check_guarantee(Plain(), 0.93)


def ks_p_value(model, rng, *, m=200, n=300):
    """Of the probability integral transforms of n new rows: m calibration rows and they are two samples of one law."""
    X, y = draw(rng, m + n)
    transforms = model.conformalize(X[:m], y[:m]).predict_cdf(X[m:], y[m:])
    ranks = (np.arange(1, m + 1)) / (m + 1)  # where calibration rows lie in their own distribution
    return stats.ks_2samp(transforms, ranks, method="asymp").pvalue


def test_transforms_are_uniform():
    """Kolmogorov and Smirnov's test with two samples, 40 times: its p-values are uniform themselves."""
    rng = np.random.default_rng(11)
    p_values = [ks_p_value(Fixed(), rng) for _ in range(40)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert min(p_values) > 0.01 / 40


def test_transforms_without_calibration_are_rejected():
    class Uncalibrated(Fixed):
        def predict_cdf(self, X, y, **_):
            return stats.norm.cdf(y, scale=4 * np.asarray(X)[:, 1])

    rng = np.random.default_rng(11)
    assert max(ks_p_value(Uncalibrated(), rng) for _ in range(3)) < 1e-6


# ---------------------------------------------------------------- what is returned, and what is refused


def test_shapes_and_frames():
    model = Fixed().conformalize(rows(30), np.linspace(-2, 3, 30))
    assert model.predict_quantile(rows(4), 0.5).shape == (4,)
    assert model.predict_quantile(rows(4), [0.2, 0.5, 0.7]).shape == (4, 3)
    table = pd.DataFrame(rows(2), index=["x", "y"])
    frame = model.set_output(intervals="pandas").predict_quantile(table, [0.25, 0.5])
    assert list(frame.columns) == ["quantile_25", "quantile_50"]
    assert list(frame.index) == ["x", "y"]
    assert quantile_names([0.5], many=False) == ["quantile"]
    np.testing.assert_array_equal(frame["quantile_50"], Fixed.predict_quantile(model, rows(2), 0.5)["quantile"])


@pytest.mark.parametrize("q", [0.0, 1.0, "0.5", [], [0.5, 2.0], [[0.5]], None, True, np.nan])
def test_bad_levels_are_named(q):
    with pytest.raises(ValueError, match=r"q=.*: expected a number in \(0, 1\), or a non-empty list of them"):
        Fixed().conformalize(rows(9), np.zeros(9)).predict_quantile(rows(1), q)


def test_other_bad_arguments_are_named():
    model = Fixed().conformalize(rows(9), np.zeros(9))
    with pytest.raises(ValueError, match=r"y has shape \(3,\): expected a number, or \(2,\) or \(2, k\)"):
        model.predict_cdf(rows(2), np.zeros(3))
    with pytest.raises(ValueError, match="y has 1 entries that are NaN"):
        model.predict_cdf(rows(2), [0.0, np.nan])
    with pytest.raises(ValueError, match="size=0: expected an int >= 1"):
        model.predict_ensemble(rows(2), 0)
    with pytest.raises(NotCalibratedError, match="this Fixed needs a calibration"):
        Fixed().predict_quantile(rows(2), 0.5)
    model.calibration_ = Calibration(np.zeros(9), np.zeros(9))
    with pytest.raises(ValueError, match="calibration without inner_places"):
        model.predict_quantile(rows(2), 0.5)
