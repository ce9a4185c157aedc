"""The statistical contract of calibrated intervals: coverage over many random draws, by one-sided t-tests.

Every check raises AssertionError; the test modules run them on the real calibration and on broken ones. A model enters
as ``make_model(rng)``, called once per draw: it returns something with `conformalize` and `predict_interval` whose band
does not depend on the calibration rows that follow (the same fitted model every time will do).
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sosbands.exceptions import CrossedIntervalsWarning, TooFewCalibrationPointsWarning

FALSE_ALARM = 0.01  # chance that a whole suite rejects a correct model

# ---------------------------------------------------------------- laws, continuous where upper bounds are tested


@dataclass(frozen=True)
class Law:
    """``y = sin(3x) + scale(x) noise`` with x uniform on [-1, 1]."""

    name: str
    noise: object

    def observe(self, rng, X):
        x = X[:, 0]
        return np.sin(3 * x) + (0.1 + (1 + x) ** 2) * self.noise(rng, len(x))

    def draw(self, rng, n):
        X = rng.uniform(-1, 1, (n, 1))
        return X, self.observe(rng, X)


LAWS = (
    Law("normal", lambda rng, n: rng.standard_normal(n)),
    Law("student", lambda rng, n: rng.standard_t(3, n)),
    Law("log-normal, skewness 33", lambda rng, n: rng.lognormal(0.0, 1.5, n) - 1.0),
)


@dataclass(frozen=True)
class DiscreteLaw(Law):
    """One point x, and y in multiples of 0.0043: every score has ties, which void the upper bound."""

    x: float = 0.6

    def observe(self, rng, X):
        return 0.0043 * self.noise(rng, len(X))

    def draw(self, rng, n):
        X = np.full((n, 1), self.x)
        return X, self.observe(rng, X)


# All noise on one side of the prediction: the other side's scores, where they stop at 0, are all alike.
ONE_SIDED = (
    Law("all above", lambda rng, n: 0.2 + rng.exponential(size=n)),
    Law("all below", lambda rng, n: -0.2 - rng.exponential(size=n)),
)
DISCRETE = tuple(DiscreteLaw(f"discrete at {x}", lambda rng, n: rng.integers(0, 4, n), x) for x in (-0.9, -0.1, 0.5))
CELLS = ((20, 0.9), (100, 0.9), (1000, 0.9), (20, 0.99))  # calibration size and level; the last one has too few points


# ---------------------------------------------------------------- tests


def assert_coverage(covered, low, high, n_tests, label=""):
    """The mean of the coverages of all draws lies in [low, high], as far as two one-sided t-tests can tell.

    Each of the `n_tests` one-sided tests of a suite has its share of the false alarm rate (Bonferroni).
    """
    covered = np.asarray(covered, dtype=float)
    assert covered.ndim == 1
    assert len(covered) >= 200, f"{label}: {len(covered)} draws say too little"
    mean, error = covered.mean(), covered.std(ddof=1) / np.sqrt(len(covered))
    # a constant coverage has no error: the comparison itself decides
    slack = stats.t.isf(FALSE_ALARM / n_tests, len(covered) - 1) * error
    assert mean >= low - slack - 1e-12, f"{label}: coverage {mean:.4f} +- {error:.4f} is below {low:.4f}"
    assert mean <= high + slack + 1e-12, f"{label}: coverage {mean:.4f} +- {error:.4f} is above {high:.4f}"


@dataclass(frozen=True)
class Coverages:
    """Shares of the test rows of each draw, (draws,), inside the interval and on the right side of each end."""

    both: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def coverages(one_draw, draws, seed):
    """Coverages of repeated draws; `one_draw(rng)` returns test observations and their intervals."""
    return coverages_of_parts(lambda rng: [one_draw(rng)], draws, seed)[0]


def coverages_of_parts(one_draw, draws, seed):
    """The same where each draw gives several parts, to be judged one by one."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewCalibrationPointsWarning)
        warnings.simplefilter("ignore", CrossedIntervalsWarning)  # narrow bands may be emptied: no harm to coverage
        rows = np.array([[_shares(*part) for part in one_draw(rng)] for _ in range(draws)])
    return [Coverages(*part.T) for part in rows.transpose(1, 0, 2)]


def _shares(y, ends):
    above, below = y >= ends[:, 0], y <= ends[:, 1]
    return np.mean(above & below), np.mean(above), np.mean(below)


def one_sided_tests(found, m, level, lower_share, kind, label, n_tests, *, ties=False):
    """The bounds that hold for exchangeable rows, the upper ones only without ties."""
    excess = 1.0 if ties else 1 / (m + 1)
    if kind == "symmetric":
        assert_coverage(found.both, level, level + excess, n_tests, label)
        return
    for side, covered, share in (("lower", found.lower, lower_share), ("upper", found.upper, 1 - lower_share)):
        promised = 1 - share * (1 - level)
        assert_coverage(covered, promised, promised + excess, n_tests, f"{label}, {side}")
    assert_coverage(found.both, level, 1.0, n_tests, label)


# ---------------------------------------------------------------- suites


def run_levels_suite(make_model, kind, *, laws=LAWS, levels=(0.5, 0.8, 0.95), m=100, draws=400, n_test=200, seed=0):
    """Several levels at once: each is covered, and each interval holds those of lower levels."""
    n_tests = len(laws) * len(levels) * (2 if kind == "symmetric" else 6)
    for number, law in enumerate(laws):

        def one_draw(rng, law=law):
            model = make_model(rng).conformalize(*law.draw(rng, m))
            X, y = law.draw(rng, n_test)
            ends = model.predict_interval(X, levels)
            assert ends.shape == (n_test, 2, len(levels))
            steps = np.diff(ends, axis=2)
            assert (steps[:, 0] <= 0).all(), f"{law.name}: lower ends are not nested"
            assert (steps[:, 1] >= 0).all(), f"{law.name}: upper ends are not nested"
            return [(y, ends[:, :, k]) for k in range(len(levels))]

        for level, found in zip(levels, coverages_of_parts(one_draw, draws, (seed, number)), strict=True):
            one_sided_tests(found, m, level, 0.5, kind, f"{law.name}, level {level} of several", n_tests)


def run_coverage_suite(
    make_model, kind, *, laws=LAWS, cells=CELLS, lower_share=0.5, draws=400, n_test=200, seed=0, ties=False
):
    """Marginal (symmetric) or one-sided and marginal (asymmetric) coverage for every law and calibration size."""
    options = {} if kind == "symmetric" else {"lower_share": lower_share}
    n_tests = len(laws) * len(cells) * (2 if kind == "symmetric" else 6)
    for number, law in enumerate(laws):
        for m, level in cells:

            def one_draw(rng, law=law, m=m, level=level):
                model = make_model(rng).conformalize(*law.draw(rng, m))
                X, y = law.draw(rng, n_test)
                return y, model.predict_interval(X, level, **options)

            found = coverages(one_draw, draws, (seed, number, m))
            label, tied = f"{law.name}, m={m}, level {level}", ties or isinstance(law, DiscreteLaw)
            one_sided_tests(found, m, level, lower_share, kind, label, n_tests, ties=tied)


def run_group_suite(make_model, kind, *, laws=LAWS, sizes=(20, 100, 30), level=0.9, draws=400, n_test=100, seed=0):
    """One law per group: every group is covered as its own number of calibration points allows."""
    labels = [law.name for law in laws]
    n_tests = len(laws) * (2 if kind == "symmetric" else 6)

    def sample(rng, numbers):
        parts = [law.draw(rng, n) for law, n in zip(laws, numbers, strict=True)]
        order = rng.permutation(sum(numbers))
        X, y = (np.concatenate(columns)[order] for columns in zip(*parts, strict=True))
        return X, y, np.repeat(labels, numbers)[order]

    def one_draw(rng):
        X, y, groups = sample(rng, sizes)
        model = make_model(rng).conformalize(X, y, groups=groups)
        X, y, groups = sample(rng, [n_test] * len(laws))
        ends = model.predict_interval(X, level, groups=groups)
        return [(y[groups == label], ends[groups == label]) for label in labels]

    for label, m, found in zip(labels, sizes, coverages_of_parts(one_draw, draws, seed), strict=True):
        one_sided_tests(found, m, level, 0.5, kind, f"group {label!r}, m={m}", n_tests)


def run_shift_suite(make_model, kind, *, laws=LAWS, sizes=(20, 100, 1000), level=0.9, draws=400, n_test=200, seed=0):
    """Test points tilted towards the noisy end by exp(2x): likelihood-ratio weights keep the coverage from below."""
    n_tests = len(laws) * len(sizes) * (2 if kind == "symmetric" else 6)

    def ratio(X):
        return 7.0 * np.exp(2 * X[:, 0])  # known up to a constant only

    def tilted(rng, n):
        u = rng.uniform(size=(n, 1))
        return np.log(np.exp(-2) + u * (np.exp(2) - np.exp(-2))) / 2  # inverse of its distribution function

    for number, law in enumerate(laws):
        for m in sizes:

            def one_draw(rng, law=law, m=m):
                X, y = law.draw(rng, m)
                model = make_model(rng).conformalize(X, y, likelihood_ratio=ratio(X))
                X = tilted(rng, n_test)
                return law.observe(rng, X), model.predict_interval(X, level, likelihood_ratio=ratio(X))

            found = coverages(one_draw, draws, (seed, number, m))
            label = f"{law.name}, shifted, m={m}"
            assert_coverage(found.both, level, 1.0, n_tests, label)
            if kind == "asymmetric":
                assert_coverage(found.lower, (1 + level) / 2, 1.0, n_tests, f"{label}, lower")
                assert_coverage(found.upper, (1 + level) / 2, 1.0, n_tests, f"{label}, upper")
