"""The same intervals as MAPIE and crepes where the methods coincide: constant bands are plain split conformal."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.conformal import Band, IntervalMixin, Told
from sosbands.regressors import PAPER_SETTINGS

LEVELS = (0.5, 0.55, 0.7, 0.8, 0.9, 0.95, 0.96)
SIZES = (79, 80, 99, 100, 119, 150, 159, 199)


class PlainSplit(IntervalMixin, BaseEstimator):
    """Both ends of the band are the prediction."""

    def __init__(self, model, confidence_level=0.9, calibration="symmetric"):
        self.model = model
        self.confidence_level = confidence_level
        self.calibration = calibration

    def told(self, X):
        center = self.model.predict(X)
        return Told(Band(center, center))


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, X[:, 0] + rng.exponential(size=n) * (1 + X[:, 1])


@pytest.fixture(scope="module")
def model():
    return LinearRegression().fit(*rows(50, 0))


def exact_rank(m, level):
    """``ceil(level (m + 1))`` without rounding, for a level as it is written."""
    return ceil(Fraction(str(level)) * (m + 1))


def mapie_intervals(model, m, level, *, symmetric):
    pytest.importorskip("mapie", reason="MAPIE is an optional oracle: pip install mapie")
    from mapie.conformity_scores import AbsoluteConformityScore
    from mapie.regression import SplitConformalRegressor

    score = AbsoluteConformityScore(sym=symmetric)
    peer = SplitConformalRegressor(model, confidence_level=level, conformity_score=score, prefit=True)
    _, intervals = peer.conformalize(*rows(m, m)).predict_interval(rows(20, 1)[0])
    return intervals[:, :, 0]


def crepes_intervals(model, m, level):
    crepes = pytest.importorskip("crepes", reason="crepes is an optional oracle: pip install crepes")
    peer = crepes.WrapRegressor(model)
    peer.calibrate(*rows(m, m))
    return peer.predict_int(rows(20, 1)[0], confidence=level)


def our_intervals(model, m, level, calibration):
    ours = PlainSplit(model, calibration=calibration).conformalize(*rows(m, m))
    return ours.predict_interval(rows(20, 1)[0], level)


def different(peer, ours):
    """Cells of size and level in which two functions of them differ by more than our rounding outwards."""
    return [(m, level) for m in SIZES for level in LEVELS if not same(peer(m, level), ours(m, level))]


def same(peer, ours):
    return np.allclose(peer, ours, rtol=1e-14, atol=1e-14)


# Where ``level (m + 1)`` is whole, rounding may push a peer one rank too high; ours is exact (see above).
MAPIE_ROUNDING = [(99, 0.55), (199, 0.55)]
MAPIE_ASYMMETRIC_ROUNDING = [(119, 0.9)]  # 0.95 * 120
CREPES_ROUNDING = [
    *((79, level) for level in (0.8, 0.9)),
    *((99, level) for level in (0.55, 0.8, 0.9)),
    *((119, level) for level in (0.55, 0.8, 0.9)),
    *((159, level) for level in (0.8, 0.9)),
    *((199, level) for level in (0.55, 0.8, 0.9)),
]


def test_mapie_symmetric(model):
    found = different(
        lambda m, level: mapie_intervals(model, m, level, symmetric=True),
        lambda m, level: our_intervals(model, m, level, "symmetric"),
    )
    assert found == MAPIE_ROUNDING
    for m, level in found:
        assert np.array_equal(mapie_intervals(model, m, level, symmetric=True), one_rank_up(model, m, level))


def test_mapie_asymmetric(model):
    found = different(
        lambda m, level: mapie_intervals(model, m, level, symmetric=False),
        lambda m, level: our_intervals(model, m, level, "asymmetric"),
    )
    assert found == MAPIE_ASYMMETRIC_ROUNDING
    for m, level in found:
        assert (Fraction(str(level)) + 1) / 2 * (m + 1) % 1 == 0
        wider = mapie_intervals(model, m, level, symmetric=False) - our_intervals(model, m, level, "asymmetric")
        assert (wider[:, 0] <= 0).all()
        assert (wider[:, 1] >= 0).all()


def test_crepes(model):
    found = different(
        lambda m, level: crepes_intervals(model, m, level),
        lambda m, level: our_intervals(model, m, level, "symmetric"),
    )
    assert found == CREPES_ROUNDING
    for m, level in found:
        assert np.array_equal(crepes_intervals(model, m, level), one_rank_up(model, m, level))


def one_rank_up(model, m, level):
    """Symmetric intervals with the rank above the exact one."""
    X, y = rows(m, m)
    q = np.sort(np.abs(y - model.predict(X)))[exact_rank(m, level)]
    center = model.predict(rows(20, 1)[0])
    return np.column_stack([center - q, center + q])


def test_crepes_groups(model):
    """Mondrian calibration, one group too small for the level."""
    groups = np.repeat([0, 1, 2], [100, 45, 5])
    test_groups = np.arange(20) % 3
    crepes = pytest.importorskip("crepes", reason="crepes is an optional oracle: pip install crepes")
    X, y = rows(150, 150)
    peer = crepes.WrapRegressor(model)
    peer.calibrate(X, y, mc=lambda Z: groups if len(Z) == 150 else test_groups)
    with pytest.warns(UserWarning, match="too small"):
        expected = peer.predict_int(rows(20, 1)[0], confidence=0.875)
    ours = PlainSplit(model).conformalize(X, y, groups=groups)
    with pytest.warns(UserWarning, match="5 in group 2"):
        found = ours.predict_interval(rows(20, 1)[0], 0.875, groups=test_groups)
    assert same(expected, found)
    assert np.isinf(found[test_groups == 2]).all()


@pytest.mark.parametrize("calibration", ["symmetric", "asymmetric"])
def test_constant_bands_of_the_estimator_are_plain_split_conformal(model, calibration):
    """A constant kernel gives constant bands; calibration then makes good whatever they were."""
    fitted = SoSBandRegressor(
        LinearRegression(),
        calibration=calibration,
        calibration_size=None,
        bands=BandSettings(kernel=ConstantKernel(1.0, "fixed")),
        symmetry_penalty=np.inf,
        **PAPER_SETTINGS,
    ).fit(*rows(50, 0))
    half = fitted.noise_.lower(np.zeros((3, 2)))
    assert np.ptp(half) < 1e-12 * half[0]
    assert half[0] > 0.5
    found = fitted.conformalize(*rows(99, 99)).predict_interval(rows(20, 1)[0], 0.9)
    np.testing.assert_allclose(found, our_intervals(model, 99, 0.9, calibration), rtol=0, atol=1e-12)
    symmetric = calibration == "symmetric"
    np.testing.assert_allclose(found, mapie_intervals(model, 99, 0.9, symmetric=symmetric), rtol=0, atol=1e-12)


def test_a_quantile_of_its_own_is_rejected(model, monkeypatch):
    """NumPy's interpolated quantile agrees with neither peer."""
    from sosbands.conformal import calibration

    monkeypatch.setattr(calibration, "conformal_quantile", lambda scores, level: float(np.quantile(scores, level)))
    found = different(
        lambda m, level: mapie_intervals(model, m, level, symmetric=True),
        lambda m, level: our_intervals(model, m, level, "symmetric"),
    )
    assert len(found) > 0.9 * len(SIZES) * len(LEVELS)
