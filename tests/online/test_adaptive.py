"""Adaptive intervals: the recursions written out, the bound of the paper, limits of the level, MAPIE, errors."""

import math
from fractions import Fraction

import numpy as np
import pytest
from followed import Zero, zero_model
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from sosbands.baselines import SplitCP
from sosbands.conformal import conformal_quantile
from sosbands.exceptions import NotCalibratedError
from sosbands.online import AdaptiveIntervals
from sosbands.online.adaptive import CORRECTION, RATES, ManyRates, RankedScores, is_within


def stream(n, name, seed=1):
    rng = np.random.default_rng(seed)
    t = np.arange(n) / n
    noise = rng.normal(size=n)
    return {
        "like the calibration rows": noise,
        "shift": noise + 2 * (t > 0.5),
        "growth": (1 + 3 * t) * noise,
        "season": noise + 2 * np.sin(12 * np.pi * t),
        "explosion": np.exp(0.02 * np.arange(n)) * np.sign(noise),
        "trend": 0.05 * np.arange(n) + 0.02 * noise,
        "constant": np.zeros(n),
    }[name]


# ---------------------------------------------------------------- the recursions, written out


def by_hand(scores, stream_scores, level, rate, window):
    """Gibbs and Candes 2021, one row after another: alphas, quantiles, errors."""
    known, alpha, out = list(scores)[-window:] if window else list(scores), 1 - level, []
    for s in stream_scores:
        if alpha <= 0:
            q = math.inf
        elif alpha >= 1:
            q = -math.inf
        else:
            q = conformal_quantile(known, 1 - alpha)
        err = int(s > q)
        out.append((alpha, q, err))
        alpha = alpha + rate * ((1 - level) - err)
        known = [*known, s][-window:] if window else known
    return np.array(out).T


@pytest.mark.parametrize("name", ["shift", "growth", "explosion", "constant"])
@pytest.mark.parametrize("window", [None, 50])
def test_a_fixed_rate_is_the_recursion_of_the_paper(name, window):
    model, y = zero_model(), stream(400, name)
    alpha, q, err = by_hand(model.scores_, np.abs(y), 0.9, 0.05, window)
    adaptive = AdaptiveIntervals(model, rate=0.05, window=window)
    found = adaptive.follow(np.zeros((400, 1)), y)
    np.testing.assert_allclose(found.miscoverage, alpha, rtol=0, atol=1e-12)
    assert np.array_equal(found.inside, err == 0)
    np.testing.assert_allclose(found.ends[:, 1], np.where(q == -math.inf, 0.0, q), rtol=1e-12)
    assert (adaptive.n_rows_, adaptive.n_missed_) == (400, err.sum())
    assert adaptive.coverage_ == 1 - err.mean()


def many_rates_by_hand(scores, stream_scores, target, window, memory=500):
    """DtACI with the mean of the experts and the offset that follows its misses, written out with plain loops."""
    k = len(RATES)
    eta = math.sqrt(3 / memory) * math.sqrt(
        (math.log(k * memory) + 2) / ((1 - target) ** 2 * target**3 + target**2 * (1 - target) ** 3)
    )
    sigma, known = 1 / (2 * memory), list(scores)
    w, alphas, offset, out = [1.0] * k, [target] * k, 0.0, []

    def missed(a, s, known):
        return a >= 1 or (a > 0 and s > conformal_quantile(known, 1 - a))

    for s in stream_scores:
        clipped = [min(max(ai, 0.0), 1.0) for ai in alphas]
        out.append(sum(wi * ai for wi, ai in zip(w, clipped, strict=True)) / sum(w) + offset)
        offset += CORRECTION * (target - missed(out[-1], s, known))
        beta = Fraction(1) - Fraction(sum(each < s for each in known), len(known) + 1)
        new = []
        for wi, ai in zip(w, alphas, strict=True):
            gap = float(beta) - ai
            new.append(wi * math.exp(-eta * (target * gap - min(0.0, gap))))
        total = sum(new)
        w = [((1 - sigma) * each + total * sigma / k) / total for each in new]
        alphas = [ai + rate * (target - missed(ai, s, known)) for ai, rate in zip(alphas, RATES, strict=True)]
        known = [*known, s][-window:]
    return out


@pytest.mark.parametrize("name", ["shift", "trend"])
def test_many_rates_are_those_of_the_paper_with_an_offset(name):
    model, y = zero_model(), stream(250, name)
    found = AdaptiveIntervals(model, window=80).follow(np.zeros((250, 1)), y)
    wanted = many_rates_by_hand(model.scores_, np.abs(y), 0.1, 80)
    np.testing.assert_allclose(found.miscoverage, wanted, rtol=0, atol=1e-10)
    assert np.ptp(wanted) > 0.02


@pytest.mark.parametrize("name", ["shift", "growth", "explosion", "constant"])
def test_each_end_has_half_of_the_misses_and_a_bound_of_its_own(name):
    model, y = zero_model(kind="asymmetric"), stream(600, name)
    adaptive = AdaptiveIntervals(model, rate=0.02, window=100)
    found = adaptive.follow(np.zeros((600, 1)), y)
    t, errors = np.arange(1, 601), []
    for side, scores in enumerate((-y, y)):
        alpha, _, err = by_hand(model.scores_[:, side], scores, 0.95, 0.02, 100)
        np.testing.assert_allclose(found.miscoverage[:, side], alpha, rtol=0, atol=1e-12)
        assert (np.abs(np.cumsum(err) / t - 0.05) <= (0.95 + 0.02) / (t * 0.02) + 1e-12).all()
        errors.append(err)
    assert np.array_equal(found.inside, np.sum(errors, axis=0) == 0)
    assert len(adaptive.miscoverage_) == 2


def test_a_row_beyond_both_ends_is_one_miss():
    adaptive = AdaptiveIntervals(zero_model(kind="asymmetric"), 0.5, rate=3.0, window=None)
    found = adaptive.follow(np.zeros((400, 1)), np.zeros(400))
    missed = 0.25 - np.diff(np.vstack([found.miscoverage, adaptive.miscoverage_]), axis=0) / 3.0  # by the recursion
    np.testing.assert_allclose(missed.mean(axis=0), 0.25, atol=1e-12)  # hit, missed at alpha = 1, hit, hit, ...
    assert missed.sum(axis=1)[:4].tolist() == [0.0, 2.0, 0.0, 0.0]
    assert adaptive.n_missed_ == 100


# ---------------------------------------------------------------- the promise


def check_bound(level_cap=np.inf, n=2000, rate=0.02, level=0.8):
    """Every share of misses from the start is as near to its target as the paper proves."""
    model, t = zero_model(), np.arange(1, n + 1)
    for name in ("shift", "growth", "season", "explosion", "constant"):
        y = stream(n, name)
        found = AdaptiveIntervals(model, level, rate=rate, window=200).follow(np.zeros((n, 1)), y)
        missed = ~found.inside | (np.abs(y) > level_cap)
        gap = np.abs(np.cumsum(missed) / t - (1 - level))
        assert (gap <= (max(level, 1 - level) + rate) / (t * rate) + 1e-12).all(), name


def test_the_bound_of_the_paper_holds_after_every_row_unless_no_interval_is_infinite():
    check_bound()
    with pytest.raises(AssertionError, match="shift"):
        check_bound(level_cap=zero_model().scores_.max())


def follow_levels(levels, scores, window=200):
    """Misses of the level that is asked for, row by row."""
    ranked, missed = RankedScores(np.abs(np.random.default_rng(0).normal(size=60)), window), []
    for score in scores:
        below, m = ranked.below(score), len(ranked)
        missed.append(not is_within(levels.alpha, below, m))
        levels.step(below, m)
        ranked.add(score)
    return np.array(missed)


@pytest.mark.parametrize("name", ["shift", "growth", "season", "explosion", "trend", "constant"])
@pytest.mark.parametrize("target", [0.2, 0.05])
def test_the_automatic_rate_has_its_bound_after_every_row(name, target):
    t, c = np.arange(1, 2001), 0.05
    missed = follow_levels(ManyRates(target, correction=c), np.abs(stream(2000, name)).tolist())
    assert (np.abs(np.cumsum(missed) / t - target) <= (1 + c) / (t * c) + 1e-12).all()


def test_a_mean_of_rates_without_an_offset_has_no_such_bound():
    t, c = 2000, 0.05
    missed = follow_levels(ManyRates(0.2, correction=0.0), np.abs(stream(t, "trend")).tolist())
    assert abs(missed.mean() - 0.2) > (1 + c) / (t * c)


@pytest.mark.parametrize("rate", ["auto", 0.005])
def test_a_trend_is_covered_as_often_as_asked_for(rate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8500, 1))
    y = X[:, 0] + 0.02 * rng.normal(size=8500)
    model = SplitCP(LinearRegression(), random_state=0).fit(X[:500], y[:500])
    found = AdaptiveIntervals(model, rate=rate).follow(X[500:], y[500:] + 0.05 * np.arange(8000))
    assert abs(found.inside.mean() - 0.9) < 0.01
    assert 0.85 < np.isinf(found.ends[:, 1]).mean() < 0.9  # finite ones miss: every score is beyond all before it


@pytest.mark.parametrize("rate", ["auto", 0.005])
@pytest.mark.parametrize("name", ["shift", "growth", "season"])
def test_drifting_streams_are_covered_in_the_long_run(name, rate):
    model, y = zero_model(m=500), stream(5000, name)
    X = np.zeros((5000, 1))
    fixed = model.predict_interval(X)
    assert np.mean((fixed[:, 0] <= y) & (y <= fixed[:, 1])) < 0.85
    found = AdaptiveIntervals(model, rate=rate).follow(X, y)
    inside = (found.ends[:, 0] <= y) & (y <= found.ends[:, 1])
    assert np.array_equal(inside, found.inside)
    assert abs(inside.mean() - 0.9) < 0.01


def test_a_level_of_one_is_infinite_and_one_of_zero_a_point():
    model = zero_model()
    adaptive = AdaptiveIntervals(model, 0.5, rate=0.4, window=None)
    adaptive.update(np.zeros((2, 1)), [100.0, 100.0])
    assert adaptive.miscoverage_ == pytest.approx(0.1)
    adaptive.update(np.zeros((1, 1)), [100.0])
    assert adaptive.miscoverage_ < 0
    assert np.array_equal(adaptive.predict_interval(np.zeros((2, 1))), [[-math.inf, math.inf]] * 2)
    adaptive.update(np.zeros((6, 1)), np.zeros(6))
    assert adaptive.miscoverage_ >= 1
    assert np.array_equal(adaptive.predict_interval(np.zeros((1, 1))), [[0.0, 0.0]])
    n_missed = adaptive.n_missed_
    adaptive.update(np.zeros((1, 1)), [0.0])  # an empty interval holds nothing, its midpoint either
    assert adaptive.n_missed_ == n_missed + 1
    assert adaptive.miscoverage_ < 1.2


def test_batches_are_the_same_as_rows():
    y = stream(300, "shift")
    whole, single = (AdaptiveIntervals(zero_model(), window=50) for _ in range(2))
    found = whole.follow(np.zeros((300, 1)), y)
    for t in range(300):
        assert np.array_equal(single.predict_interval(np.zeros((1, 1)))[0], found.ends[t])
        single.update(np.zeros((1, 1)), y[t : t + 1])
    assert single.miscoverage_ == whole.miscoverage_


# ---------------------------------------------------------------- ranks


def test_ranked_scores_are_those_of_sorting():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 8, 200).astype(float)
    ranked, kept = RankedScores(values[:20], most=15), list(values[5:20])
    for value in values[20:]:
        assert ranked.below(value) == sum(each < value for each in kept)
        assert ranked.up_to(value) == sum(each <= value for each in kept)
        for alpha in (0.001, 0.1, 0.5, 0.93, 0.9999):
            q = conformal_quantile(kept, 1 - alpha)
            assert ranked.quantile(alpha) == q
            assert is_within(alpha, ranked.below(value), len(kept)) == (value <= q)
        ranked.add(value)
        kept = [*kept, value][-15:]
    assert len(ranked) == 15


# ---------------------------------------------------------------- MAPIE


def test_levels_are_those_of_mapie():
    regression = pytest.importorskip("mapie.regression", reason="MAPIE is an optional peer: pip install mapie")
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(99, 1)), rng.normal(size=99)
    y_new = 1.3 * rng.normal(size=60)
    X_new = np.zeros((60, 1))
    score = pytest.importorskip("mapie.conformity_scores").AbsoluteConformityScore(sym=True)
    prefit = {"method": "aci", "cv": "prefit", "conformity_score": score}
    peer = regression.TimeSeriesRegressor(DummyRegressor(strategy="constant", constant=0.0).fit(X, y), **prefit).fit(
        X, y
    )
    ours = AdaptiveIntervals(Zero(confidence_level=0.8).conformalize(0 * X, y), rate=0.03, window=None)
    for t in range(60):
        peer.predict(X_new[:1], confidence_level=0.8)
        # where both are between 0 and 1: MAPIE clamps the level there
        assert 0 < ours.miscoverage_ < 1
        assert list(peer.current_alpha.values()) == pytest.approx([ours.miscoverage_], abs=1e-9), t
        peer.adapt_conformal_inference(X_new[t : t + 1], y_new[t : t + 1], gamma=0.03, confidence_level=0.8)
        ours.update(X_new[t : t + 1], y_new[t : t + 1])
    assert ours.n_missed_ > 5


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate=0.0: expected 'auto' or a number > 0"),
        ({"rate": "fast"}, "rate='fast'"),
        ({"window": 0}, "window=0: expected None or a number of rows >= 1"),
        ({"memory": 2.5}, "memory=2.5"),
        ({"confidence_level": 1.0}, "confidence_level=1.0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        AdaptiveIntervals(zero_model(), **arguments)


def test_models_that_cannot_be_followed_are_named():
    X, y = np.arange(40.0)[:, None], np.arange(40.0) % 7
    with pytest.raises(ValueError, match="expected a fitted interval regressor"):
        AdaptiveIntervals(LinearRegression().fit(X, y))
    with pytest.raises(NotCalibratedError, match="this Zero needs a calibration"):
        AdaptiveIntervals(Zero())
    crossed = SplitCP(LinearRegression(), calibration_size="cross", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="AdaptiveIntervals of a model fitted with calibration_size='cross'"):
        AdaptiveIntervals(crossed)
    for name, given in (("groups", ["a"] * 40), ("likelihood_ratio", np.ones(40))):
        with pytest.raises(ValueError, match=f"calibrated with {name}: expected one calibrated without"):
            AdaptiveIntervals(Zero().conformalize(X, y, **{name: given}))


def test_weights_of_rates_stay_shares_also_after_steep_losses():
    levels = ManyRates(0.1)
    for below in (0, 50, 99, 100) * 50:
        levels.step(below, 100)
        assert levels.weights.sum() == pytest.approx(1.0)
        assert (levels.weights >= levels.sigma / len(RATES) * (1 - 1e-12)).all()
    steep = ManyRates(1e-6, memory=1)
    steep.alphas = np.linspace(0.5, 0.9, len(RATES))
    steep.step(100, 100)
    assert steep.weights[0] == pytest.approx(0.5 + 0.5 / len(RATES))
