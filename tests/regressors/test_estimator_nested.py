"""SoSBandRegressor with nested bands and as a distribution: no crossing, files, words, and what is refused."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.baselines import SplitCP
from sosbands.exceptions import OffDataWarning
from sosbands.metrics import crps
from spelled import spelled

RNG = np.random.default_rng(3)
FAST = {"base_scale": "none", "noise_features": "inputs", "lengthscale": 0.6, "width_penalty": 1.0, "random_state": 0}
FAST |= {"learning_coverage": 0.9, "symmetry_penalty": 1.0, "conformal_score": "scaled", "tol": 1e-3}
NESTED = (0.5, 0.8, 0.9, 0.95)
LEVELS = [0.1, 0.3, 0.5, 0.65, 0.8, 0.85, 0.9, 0.95]
PERCENT = np.arange(2, 99, 4) / 100


def draw(n, rng=RNG):
    X = rng.uniform(-1, 1, (n, 2))
    return X, X.sum(axis=1) + (0.2 + X[:, 0] ** 2) * (rng.gamma(1.5, size=n) - 1.5)


X, Y = draw(240)
X_NEW, Y_NEW = draw(400)


def bands(**options):
    return SoSBandRegressor(LinearRegression(), **spelled(**{**FAST, "nested_coverages": NESTED, **options}))


@pytest.fixture(scope="module")
def model():
    return bands().fit(X, Y)


@pytest.fixture(scope="module")
def sided():
    return bands(calibration="asymmetric").fit(X, Y)


def check_nothing_crosses(model, X):
    """Raise an AssertionError where intervals or quantiles of a row are not in order."""
    ends = model.predict_interval(X, LEVELS)
    assert (np.diff(ends[:, 0], axis=1) <= 0).all()
    assert (np.diff(ends[:, 1], axis=1) >= 0).all()
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert (np.diff(model.predict_quantile(X, PERCENT), axis=1) >= 0).all()


def test_nothing_crosses(model, sided):
    new = np.random.default_rng(0).uniform(-3, 3, (5000, 2))
    for each in (model, sided):
        with pytest.warns(OffDataWarning):
            check_nothing_crosses(each, new)


def test_a_broken_copy_is_found_to_cross():
    class Broken(SoSBandRegressor):
        def predict_interval(self, X, levels):
            return super().predict_interval(X, levels[::-1])

    broken = Broken(LinearRegression(), **spelled(**FAST), nested_coverages=NESTED).fit(X, Y)
    with pytest.raises(AssertionError):
        check_nothing_crosses(broken, X_NEW)


def test_the_bands_are_knots_of_the_scale(model):
    band = model.told(X_NEW).band
    below, above, _ = model.noise_.nested.evaluate(model.reader_.preprocessor.transform(X_NEW))
    np.testing.assert_allclose(band.knots.upper, above, rtol=1e-9)  # no step is as small as its floor here
    np.testing.assert_allclose(band.knots.lower, below, rtol=1e-9)
    assert list(model.noise_.nested.coverages) == list(NESTED)
    assert np.shape(model.noise_.score.floors) == (2, 4)
    assert all(each["gap"] <= 1e-3 for each in model.noise_.nested_certificates)


def test_levels_are_covered(model):
    """Each coverage of 400 rows after 120 calibration rows, within three standard deviations of both samples."""
    ends = model.predict_interval(X_NEW, LEVELS)
    for k, level in enumerate(LEVELS):
        held = np.mean((ends[:, 0, k] <= Y_NEW) & (ends[:, 1, k] >= Y_NEW))
        assert abs(held - level) <= 3 * np.sqrt(level * (1 - level) * (1 / 400 + 1 / 120)) + 1 / 121


def test_levels_far_from_the_fit_are_narrower():
    """Skewed noise of one scale: a band of 90 % has another shape than one of 30 %."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (800, 1))
    y = np.where(X[:, 0] < 0, 0.3, 1.0) * rng.standard_normal(800) + 5 * (rng.uniform(size=800) < 0.1) * (X[:, 0] < 0)
    zero = {"lengthscale": 0.3, "width_penalty": 10.0}
    one = bands(**zero, nested_coverages=None).fit(X, y)
    nested = bands(**zero).fit(X, y)
    widths = [np.mean(np.diff(each.predict_interval(X, 0.5), axis=1)) for each in (one, nested)]
    assert widths[1] < 0.9 * widths[0]


def test_quantiles_are_the_ends_of_one_sided_intervals(sided):
    both = sided.predict_interval(X_NEW, 0.9)
    np.testing.assert_array_equal(both, sided.predict_quantile(X_NEW, [0.05, 0.95]))
    upper = sided.predict_interval(X_NEW, 0.95, lower_share=0.0)
    assert (upper[:, 0] == -np.inf).all()
    np.testing.assert_array_equal(upper[:, 1], both[:, 1])
    lower = sided.predict_interval(X_NEW, 0.95, lower_share=1.0)
    assert (lower[:, 1] == np.inf).all()
    np.testing.assert_array_equal(lower[:, 0], both[:, 0])


@pytest.mark.parametrize("model", [bands(), bands(nested_coverages=None), SplitCP(LinearRegression(), random_state=0)])
def test_transforms_of_new_rows_are_uniform(model):
    """Two samples, new rows and calibration rows: the test of Kolmogorov and Smirnov."""
    found = clone(model).fit(X, Y)
    transforms, m = found.predict_cdf(X_NEW, Y_NEW), found.n_calibration_
    assert stats.ks_2samp(transforms, np.arange(1, m + 1) / (m + 1)).pvalue > 0.01  # 0.2 to 0.9 with other seeds
    assert stats.ks_2samp(transforms**3, np.arange(1, m + 1) / (m + 1)).pvalue < 1e-6


def test_evaluate_knows_the_distribution(model):
    row = model.evaluate(X_NEW, Y_NEW)
    assert row["crps"] == pytest.approx(crps(Y_NEW, model.predict_ensemble(X_NEW, 100)))
    transforms = model.predict_cdf(X_NEW, Y_NEW)
    assert row["pit_distance"] == pytest.approx(stats.kstest(transforms, "uniform").statistic)


def test_the_summary_names_the_nested_bands(model):
    text = model.summary(detail=True)
    assert "Nested bands in use, learnt for 50%, 80%, 90%, 95%" in text
    assert "they lie at 0.674, 1.28, 1.64, 1.96" in text
    assert "Calibration at 90%: both ends at " in text
    assert "Nested" not in bands(nested_coverages=None).fit(X, Y).summary(detail=True)


def test_copies_have_no_common_places():
    with pytest.raises(ValueError, match=r"nested_coverages=.*expected None with calibration_size='cross'"):
        bands(calibration_size="cross").fit(X, Y)
    crossed = SplitCP(LinearRegression(), calibration_size="cross").fit(X, Y)
    for name, given in (("predict_quantile", 0.5), ("predict_cdf", 0.0), ("predict_ensemble", 5)):
        with pytest.raises(ValueError, match=f"{name} of a model fitted with calibration_size='cross': not offered"):
            getattr(crossed, name)(X_NEW, given)
    assert "crps" not in crossed.evaluate(X_NEW, Y_NEW)


def test_explain_is_refused(model):
    with pytest.raises(ValueError, match="explain of a model with nested_coverages: not offered"):
        model.explain(X_NEW)
