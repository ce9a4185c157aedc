"""The test for drift and what is made of it: p-values and martingale written out, false alarms, delays, words."""

import math

import numpy as np
import pytest
from followed import Zero, zero_model
from scipy import stats

from sosbands.online import AdaptiveIntervals, DriftTest, monitor
from sosbands.online.drift import JUMPS, STAKES, Jumper


def test_p_values_are_smoothed_ranks_among_all_scores_before():
    rng = np.random.default_rng(0)
    known, y = rng.integers(0, 5, 30).astype(float), rng.integers(0, 6, 50).astype(float)
    found = DriftTest(zero_model(known), random_state=3).update(np.zeros((50, 1)), y).p_values_
    u = np.random.RandomState(3).uniform(size=50)
    for n, (score, each) in enumerate(zip(y, u, strict=True)):
        before = [*known, *y[:n]]
        larger, equal = sum(s > score for s in before), sum(s == score for s in before)
        assert found[n] == pytest.approx((larger + each * (equal + 1)) / (len(before) + 1), rel=1e-12)


def test_asymmetric_calibration_has_three_capitals_of_one_third():
    rng = np.random.default_rng(2)
    known, y = rng.normal(size=30), rng.normal(size=80) + np.linspace(0, 3, 80)
    test = DriftTest(zero_model(known, "asymmetric"), random_state=3)
    for part in np.split(y, [1, 40]):
        test.update(np.zeros((len(part), 1)), part)
    u, capitals = np.random.RandomState(3).uniform(size=(80, 3)), []
    for side, score in enumerate((np.negative, np.positive, np.abs)):
        jumper, capital = Jumper(), []
        for n in range(80):
            larger = sum(score(s) > score(y[n]) for s in [*known, *y[:n]])
            assert test.p_values_[n, side] == pytest.approx((larger + u[n, side]) / (31 + n), rel=1e-12)
            jumper.bet(test.p_values_[n, side])
            capital.append(math.exp(jumper.log_capital) / 3)
        capitals.append(capital)
    np.testing.assert_allclose(np.exp(test.log_martingale_), np.max(capitals, axis=0), rtol=1e-9)
    assert test.alarm_ == int(np.argmax(np.max(capitals, axis=0) >= 100))
    assert test.p_values_.shape == (80, 3)


def test_the_martingale_is_the_mean_of_simple_jumpers():
    p = np.random.default_rng(1).beta(0.7, 1.3, size=200)
    capital, jumper = [[1 / len(STAKES)] * len(STAKES) for _ in JUMPS], Jumper()
    for each in p:
        for k, jump in enumerate(JUMPS):
            total = sum(capital[k])
            spread = [(1 - jump) * c + jump * total / len(STAKES) for c in capital[k]]
            capital[k] = [c * (1 + stake * (each - 0.5)) for c, stake in zip(spread, STAKES, strict=True)]
        jumper.bet(each)
        assert math.exp(jumper.log_capital) == pytest.approx(np.mean([sum(c) for c in capital]), rel=1e-9)
    assert jumper.log_capital > 3


def test_bets_are_fair():
    points, weights = np.polynomial.legendre.leggauss(20)
    start = Jumper()
    for p in (0.2, 0.9, 0.1):
        start.bet(p)
    after = []
    for p in (points + 1) / 2:
        each = Jumper()
        each._shares, each._logs = start._shares, start._logs
        each.bet(p)
        after.append(math.exp(each.log_capital))
    assert weights @ after / 2 == pytest.approx(math.exp(start.log_capital), rel=1e-12)


def false_alarms(p_values_of, streams=80, rows=200, level=0.1):
    alarms = 0
    for seed in range(streams):
        y = np.random.default_rng(seed).standard_t(3, size=rows + 30)
        p = p_values_of(y[:30], y[30:], seed)
        jumper, most = Jumper(), 0.0
        for each in p:
            jumper.bet(each)
            most = max(most, jumper.log_capital)
        alarms += most >= -math.log(level)
    return alarms


def test_false_alarms_are_as_rare_as_promised_unlike_those_of_ranks_among_few_fixed_rows():
    def exact(known, y, seed):
        return DriftTest(zero_model(known), random_state=seed).update(np.zeros((len(y), 1)), y).p_values_

    def fixed(known, y, seed):  # noqa: ARG001
        return [(1 + np.sum(np.abs(known) >= abs(each))) / (len(known) + 1) for each in y]

    assert false_alarms(exact) <= stats.binom.ppf(0.999, 80, 0.1) < false_alarms(fixed)


def test_false_alarms_of_three_capitals_are_as_rare_as_promised():
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.exponential(size=(230, 1))
        y = (0.5 + X[:, 0]) * rng.lognormal(size=230) - 1
        model = Zero(calibration="asymmetric").conformalize(X[:30], y[:30])
        alarms += DriftTest(model, level=0.1, random_state=seed).update(X[30:], y[30:]).alarm_ is not None
    assert alarms <= 0.1 * 100


def test_noise_that_flips_its_sign_is_found_if_the_ends_have_levels_of_their_own():
    rng = np.random.default_rng(5)
    y = rng.lognormal(size=1000) - np.exp(0.5)
    y[500:] *= -1
    known = rng.lognormal(size=400) - np.exp(0.5)
    X = np.zeros((1000, 1))
    model = zero_model(known, "asymmetric")
    ends = model.predict_interval(X)
    below = y < ends[:, 0]
    assert below[:500].mean() < 0.08
    assert below[500:].mean() > 0.12
    test = DriftTest(model, random_state=0).update(X, y)
    assert 500 <= test.alarm_ < 700
    assert abs(test.began_ - 500) < 60
    assert "Drift found at row" in monitor(model, X, y).words()
    assert DriftTest(zero_model(known), random_state=0).update(X, y).alarm_ is None  # |y| is as before, and covered


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
@pytest.mark.parametrize(
    ("change", "latest"), [(lambda e: e + 1.5, 150), (lambda e: 2 * e, 120), (lambda e: e / 3, 150)]
)
def test_changes_are_found_soon(change, latest, kind):
    rng = np.random.default_rng(4)
    y = rng.normal(size=1200)
    y[600:] = change(y[600:])
    test = DriftTest(zero_model(rng.normal(size=300), kind), random_state=0)
    for part in np.split(y, [100, 101, 700]):  # in any pieces
        test.update(np.zeros((len(part), 1)), part)
    assert 600 <= test.alarm_ < 600 + latest
    assert abs(test.began_ - 600) < 60
    p = test.p_values_.reshape(1200, -1)[:, test._alarming]
    seen = p[: test.alarm_ + 1] - 0.5
    assert test.began_ == int(np.argmax([abs(seen[k:].sum()) / math.sqrt(len(seen) - k) for k in range(len(seen))]))
    assert test.log_martingale_[test.alarm_] >= math.log(100) > test.log_martingale_[: test.alarm_].max()
    assert f"Drift found at row {test.alarm_ + 1} of 1200 rows: the martingale passed 100" in test.words()


def test_without_rows_and_without_drift_nothing_is_said_to_be_found():
    test = DriftTest(zero_model(np.arange(20.0)))
    assert test.words() == "No drift found in 0 rows: the martingale reached 1, the alarm is at 100."
    assert test.began_ is None
    with pytest.raises(ValueError, match=r"level=0: expected a number in \(0, 1\)"):
        DriftTest(zero_model(np.arange(20.0)), level=0)


# ---------------------------------------------------------------- both along a stream


def shifted(n=1000, size=3.0, seed=6):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    y[n // 2 :] *= size
    return zero_model(rng.normal(size=300)), np.zeros((n, 1)), y


def test_monitoring_is_what_its_parts_give():
    model, X, y = shifted()
    found = monitor(model, X, y, span=100)
    ends = model.predict_interval(X)
    followed = AdaptiveIntervals(model).follow(X, y)
    test = DriftTest(model, random_state=0).update(X, y)
    assert np.array_equal(found.inside, (ends[:, 0] <= y) & (y <= ends[:, 1]))
    assert np.array_equal(found.width, ends[:, 1] - ends[:, 0])
    assert np.array_equal(found.adaptive_inside, followed.inside)
    np.testing.assert_allclose(found.log10_martingale, test.log_martingale_ / math.log(10))
    assert (found.alarm, found.began) == (test.alarm_, test.began_)
    places = np.array([0, 49, 999])
    wanted = [found.inside[0], found.inside[:50].mean(), found.inside[900:].mean()]
    np.testing.assert_allclose(found.rolling(found.inside, places), wanted)


def test_blocks_cover_the_stream_once():
    model, X, y = shifted(1003)
    found = monitor(model, X, y)
    blocks = found.blocks(7)
    assert [each["first"] for each in blocks] == [1, *(each["last"] + 1 for each in blocks[:-1])]
    assert blocks[-1]["last"] == 1003
    counts = [each["last"] - each["first"] + 1 for each in blocks]
    assert np.dot(counts, [each["coverage"] for each in blocks]) / 1003 == pytest.approx(found.inside.mean())
    assert len(monitor(model, X[:3], y[:3]).blocks(10)) == 3


def test_words_say_when_and_what_to_do():
    model, X, y = shifted()
    found = monitor(model, X, y)
    words = found.words()
    assert f"Drift found at row {found.alarm + 1}" in words
    assert f"set in at about row {found.began + 1}" in words
    assert f"recalibrate with the {1000 - found.began} rows since then" in words
    model, X, y = shifted(size=30.0)
    few = monitor(model, X[:530], y[:530])
    assert "recalibrate once there are 50 rows since then" in few.words()
    calm = monitor(model, X[:400], y[:400])
    assert "No drift found: the martingale reached" in calm.words()
    assert "and the alarm is at 100" in calm.words()


@pytest.mark.parametrize(("kind", "needed"), [("symmetric", 50), ("asymmetric", 99)])
def test_the_rows_advised_suffice_for_both_ends(kind, needed):
    rng = np.random.default_rng(6)
    y = rng.normal(size=530) * np.where(np.arange(530) < 500, 1, 30)
    found = monitor(zero_model(rng.normal(size=300), kind), np.zeros((530, 1)), y, 0.98)
    assert found.calibration == kind
    assert f"recalibrate once there are {needed} rows since then" in found.words()


def test_bad_spans_are_named():
    model, X, y = shifted(20)
    with pytest.raises(ValueError, match="span=0: expected None or a number of rows >= 1"):
        monitor(model, X, y, span=0)
    with pytest.raises(ValueError, match="span=5000: expected at most the number of rows"):
        monitor(model, X, y, span=5000)
    model, X, y = shifted(400)
    assert [monitor(model, X[:n], y[:n]).span for n in (1, 60, 400)] == [1, 20, 50]
