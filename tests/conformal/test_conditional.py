"""Cutoffs of conditional calibration against solvers of the problem, its promises, and broken copies."""

import importlib.util

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from benchmarks import conditional as cases
from sosbands import SoSBandRegressor, load
from sosbands.baselines import SplitCP
from sosbands.conformal import ArrayIntervals, conditional, conformal_quantile
from sosbands.conformal.conditional import ConditionalQuantile
from sosbands.exceptions import LearningRowsWarning, TooFewCalibrationPointsWarning
from sosbands.kernels import StationaryKernel

needs_cvxpy = pytest.mark.skipif(
    importlib.util.find_spec("cvxpy") is None, reason="CVXPY is not installed (extra 'sdp')"
)


def check_against_highs(n_problems=40):
    for seed in range(n_problems):
        row = cases.finite_row({}, seed)
        assert row["wrong"] == 0
        assert row["difference"] < 1e-8


def check_against_clarabel(n_problems=8):
    for seed in range(n_problems):
        assert cases.kernel_row({}, seed)["difference"] < 1e-6


def check_ties():
    """Discrete scores of discrete rows: all that (2) asks for holds, and a tie is inside."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        X = rng.integers(0, 3, (120, 2)).astype(float)
        S = rng.integers(0, 4, 120).astype(float)
        F = np.column_stack([np.ones(120), X[:, 0] > 0, X[:, 1] > 0]).astype(float)
        kernel = StationaryKernel("matern52", (2.0,))
        for K in (None, kernel(X, X)):
            fit = ConditionalQuantile(S, 0.8, F, K, 0.5)
            assert np.abs(F.T @ fit.eta).max() < 1e-9
            assert -0.2 - 1e-9 < fit.eta.min() < fit.eta.max() < 0.8 + 1e-9
        cutoffs = ConditionalQuantile(S, 0.8, F).cutoffs(F)
        assert np.abs(cutoffs - np.round(cutoffs)).max() < 1e-8  # sums and differences of scores
        for group in F.T > 0:
            assert np.mean(S[group] <= cutoffs[group]) >= 0.8
        apart = np.column_stack([F[:, 1], 1 - F[:, 1]])
        S = np.round(rng.standard_normal(120), 1)  # no rounding takes a tie out
        own = [conformal_quantile(S[F[:, 1] == g], 0.8) for g in (1, 0)]
        assert (ConditionalQuantile(S, 0.8, apart).cutoffs(np.eye(2)) >= own).all()


def test_groups_that_overlap_against_highs():
    check_against_highs()


@needs_cvxpy
def test_kernels_against_clarabel():
    check_against_clarabel()


def test_ties():
    check_ties()


@pytest.mark.parametrize("n", [1, 8, 9, 10, 19, 99, 100])
@pytest.mark.parametrize("level", [0.55, 0.8, 0.9])
def test_one_feature_is_the_conformal_quantile(n, level):
    S = np.random.default_rng(n).standard_normal(n)
    found = ConditionalQuantile(S, level, np.ones((n, 1))).cutoffs(np.ones((2, 1)))
    np.testing.assert_allclose(found, conformal_quantile(S, level), atol=1e-9)


def test_disjoint_groups_are_mondrian():
    rng = np.random.default_rng(3)
    labels, S = rng.integers(0, 4, 150), rng.standard_normal(150)
    labels[:3] = 4  # too few rows: infinite
    F = (labels[:, None] == np.arange(5)).astype(float)
    expected = [conformal_quantile(S[labels == g], 0.9) for g in range(5)]
    with_one, new = np.column_stack([np.ones(150), F]), np.column_stack([np.ones(5), np.eye(5)])
    np.testing.assert_allclose(ConditionalQuantile(S, 0.9, with_one).cutoffs(new), expected, atol=1e-9)
    assert np.isinf(expected[4])


def test_features_that_no_row_has_are_infinite():
    F = np.column_stack([np.ones(50), np.zeros(50), np.arange(50) % 2])
    fit = ConditionalQuantile(np.arange(50.0), 0.8, F)
    found = fit.cutoffs(np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]]))
    assert np.isinf(found).tolist() == [False, True, False, True]


def test_infinite_scores_and_scores_that_are_alike():
    one = np.ones((20, 1))
    S = np.concatenate([np.arange(17.0), [np.inf] * 3])
    assert ConditionalQuantile(S, 0.8, one).cutoffs(one[:1]) == pytest.approx(16.0, abs=1e-7)
    assert ConditionalQuantile(S, 0.9, one).cutoffs(one[:1]) == np.inf
    assert ConditionalQuantile(-S, 0.1, one).cutoffs(one[:1]) == -np.inf
    assert ConditionalQuantile(np.full(20, np.inf), 0.8, one).cutoffs(one[:1]) == np.inf
    same = ConditionalQuantile(np.full(20, 3.0), 0.8, one).cutoffs(one[:1])
    assert 3.0 <= same <= 3.0 + 1e-8


def test_cutoffs_grow_with_the_weight_and_end_at_a_weight_of_the_fit():
    rng = np.random.default_rng(5)
    X, S = rng.standard_normal((80, 2)), rng.standard_normal(80)
    F, kernel = np.ones((80, 1)), StationaryKernel("matern52", (1.0,))
    K = kernel(X, X)
    fit = ConditionalQuantile(S[:79], 0.8, F[:79], K[:79, :79], 0.5)
    t = np.linspace(-0.2, 0.8, 21)
    path = fit.cutoffs(np.ones((21, 1)), np.repeat(K[79:, :79], 21, axis=0), t=t)
    assert (np.diff(path) > -1e-9).all()
    for at, score in zip(t[1:-1:4], path[1:-1:4], strict=True):  # with this score the row has this weight
        own = ConditionalQuantile(np.append(S[:79], score), 0.8, F, K, 0.5)
        assert own.eta[79] == pytest.approx(at, abs=1e-4)


def test_scores_are_as_good_in_another_unit():
    rng = np.random.default_rng(6)
    X, S = rng.standard_normal((60, 1)), rng.standard_normal(60)
    K, one = StationaryKernel("matern52", (1.0,))(X, X), np.ones((60, 1))
    plain = ConditionalQuantile(S, 0.9, one, K, 0.5).cutoffs(one, K)
    scaled = ConditionalQuantile(1e6 * S + 5e6, 0.9, one, K, 5e5).cutoffs(one, K)
    np.testing.assert_allclose(scaled, 1e6 * plain + 5e6, rtol=1e-7)


# ---------------------------------------------------------------- coverage


def coverage_rows(method, n, draws):
    rng = np.random.default_rng(1)
    rows = [cases.calibration_draw(rng, n, method) for _ in range(draws)]
    return {name: cases.mean_error([row[name] for row in rows]) for name in rows[0]}


def check_coverage(method, n=60, draws=100):
    """Groups: at least the level, at most that and d/(n + 1); neighbourhoods: the level and what (3) says."""
    found = coverage_rows(method, n, draws)
    if method == "groups":
        for g in range(5):
            mean, error = found[f"over_{g}"]
            assert -4 * error < mean < found["active"][0] / (n + 1) + 4 * error
    else:
        for p in range(len(cases.PLACES)):
            mean, error = found[f"near_{p}"]
            assert abs(mean - found[f"promised_{p}"][0]) < 4 * np.hypot(error, found[f"promised_{p}"][1])
            gap, size = found[f"gap_{p}"]
            assert gap == pytest.approx(found[f"promised_{p}"][0] / found[f"weight_{p}"][0], abs=0.01 + 4 * size)
            assert found[f"near_over_{p}"][0] > mean - 4 * error
    mean, error = found["exact"]
    assert abs(mean - cases.LEVEL) < 4 * error
    mean, error = found["coverage"]
    assert cases.LEVEL - 4 * error < mean < cases.LEVEL + found["active"][0] / (n + 1) + 4 * error


@pytest.mark.parametrize("method", ["groups", "local"])
def test_coverage_by_place(method):
    check_coverage(method)


# ---------------------------------------------------------------- broken copies


class WithoutFactor(ConditionalQuantile):
    """The kernel part of g at a new row without C."""

    def cutoffs(self, features, kernel=None, diagonal=None, t=None):
        C, self._C = self._C, 1.0 if self._C else 0.0
        try:
            return super().cutoffs(features, kernel, diagonal, t)
        finally:
            self._C = C


BROKEN = (AssertionError, ArithmeticError, RuntimeError, RuntimeWarning, ValueError)


def test_a_path_that_does_not_see_rank_loss_is_rejected(monkeypatch):
    monkeypatch.setattr(conditional, "RANK_LOSS", -np.inf)
    with pytest.raises(BROKEN):
        check_against_highs()


def test_ties_lost_by_rounding_are_rejected(monkeypatch):
    monkeypatch.setattr(conditional, "JITTER", 0.0)
    with pytest.raises(BROKEN):
        check_ties()


@needs_cvxpy
def test_cutoffs_without_the_factor_are_rejected_by_the_solver(monkeypatch):
    monkeypatch.setattr(cases, "ConditionalQuantile", WithoutFactor)
    with pytest.raises(AssertionError):
        check_against_clarabel()


def test_cutoffs_without_the_factor_are_rejected_by_their_coverage(monkeypatch):
    monkeypatch.setattr(cases, "ConditionalQuantile", WithoutFactor)
    with pytest.raises(AssertionError):
        check_coverage("local", draws=40)


# ---------------------------------------------------------------- models


def draw(rng, n):
    """Noise four times as large on one side, and four groups that overlap."""
    X = rng.uniform(-1, 1, (n, 2))
    y = X[:, 0] + np.where(X[:, 0] > 0, 2.0, 0.5) * rng.standard_normal(n)
    return X, y, np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X.sum(axis=1) > 0, np.abs(X[:, 1]) < 0.5])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    return draw(rng, 800), draw(rng, 1000)


def calibrated(rows, groups=None, **given):
    X, y, _ = rows[0]
    given = {"calibration": "conditional", "calibration_size": 400, "random_state": 0, **given}
    return SplitCP(LinearRegression(), **given).fit(X, y, groups=groups)


def share_inside(ends, y):
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


def test_intervals_are_those_of_the_cutoffs(rows):
    model, (X, _, inside) = calibrated(rows, rows[0][2]), rows[1]
    made = model.calibration_
    S, F = made.scores("symmetric"), np.column_stack([np.ones(len(made)), made.groups]).astype(float)
    points, new = made.points, model._calibration_points(model.told(X))
    assert points.std(axis=0) == pytest.approx(1, abs=0.2)
    distances = np.linalg.norm((points[:, None] - points) / points.std(axis=0), axis=2)
    unit = np.median(distances[np.triu_indices(len(points), 1)])
    kernel = StationaryKernel("matern52", tuple(3 * unit * points.std(axis=0)))
    fit = ConditionalQuantile(S, 0.9, F, kernel(points, points), 0.5 * cases.spread(S))
    q = fit.cutoffs(np.column_stack([np.ones(len(X)), inside]).astype(float), kernel(new, points))
    ends = model.predict_interval(X, groups=inside)
    np.testing.assert_allclose(ends[:, 1] - model.predict(X), q, atol=1e-7)
    np.testing.assert_allclose(ends[:, 1] + ends[:, 0], 2 * model.predict(X), atol=1e-7)
    np.testing.assert_allclose(model.coverage_gap(X[:4]), fit.coverage_gap(kernel(new[:4], points)), atol=1e-12)


def test_every_group_is_covered(rows):
    X, y, inside = rows[1]
    model = calibrated(rows, rows[0][2])
    assert all(share_inside(model.predict_interval(X, groups=inside), y)[g].mean() > 0.84 for g in inside.T)
    plain = SplitCP(LinearRegression(), calibration_size=400, random_state=0).fit(*rows[0][:2])
    assert share_inside(plain.predict_interval(X), y)[inside[:, 0]].mean() < 0.84
    row = model.evaluate(X, y, groups=inside)
    assert row["coverage"] > 0.87
    assert "crps" not in row


def test_levels_are_nested_and_one_side_has_all(rows):
    (X, y, inside), model = rows[1], calibrated(rows, rows[0][2])
    ends = model.predict_interval(X, [0.9, 0.5, 0.8], groups=inside)
    assert (ends[:, 0, 0] <= ends[:, 0, 2]).all()
    assert (ends[:, 0, 2] <= ends[:, 0, 1]).all()
    upper = model.predict_interval(X, side="upper", groups=inside)
    assert np.isneginf(upper[:, 0]).all()
    assert all(np.mean(y[g] <= upper[g, 1]) > 0.84 for g in inside.T)


def test_labels_without_points_are_mondrian():
    rng = np.random.default_rng(1)
    labels, y = rng.integers(0, 3, 120), rng.standard_normal(120)
    zero, new = {"prediction": np.zeros(120)}, {"prediction": np.zeros(3)}
    ends = [
        ArrayIntervals(calibration=kind).conformalize(zero, y, groups=labels).predict_interval(new, groups=[0, 1, 2])
        for kind in ("conditional", "symmetric")
    ]
    np.testing.assert_allclose(*ends, atol=1e-8)


def test_arrays_know_neighbourhoods_of_what_was_predicted():
    rng = np.random.default_rng(2)
    scale = rng.uniform(0, 1, 600)
    y = np.where(scale > 0.5, 3.0, 1.0) * rng.standard_normal(600)
    known = {"prediction": np.zeros(600), "scale": 1 + 0 * scale, "lower": -scale, "upper": scale}
    model = ArrayIntervals(calibration="conditional").conformalize(known, y)
    widths = np.diff(model.predict_interval(known), axis=1)[:, 0] - 2 * scale
    assert widths[scale > 0.9].mean() > widths[scale < 0.1].mean() + 0.5


def test_infinite_intervals_are_counted(rows):
    X, y, inside = rows[0]
    few = inside.copy()
    few[:, 3] = np.arange(len(few)) < 8
    model = SplitCP(LinearRegression(), calibration="conditional", calibration_size=None).fit(X, y)
    with pytest.warns(LearningRowsWarning):
        model.conformalize(X, y, groups=few)
    new = few[:20]
    with pytest.warns(TooFewCalibrationPointsWarning, match="8 of 20 intervals infinite"):
        ends = model.predict_interval(X[:20], groups=new)
    assert np.isinf(ends).all(axis=1).tolist() == new[:, 3].tolist()


def test_of_many_rows_a_sample_is_fitted(monkeypatch, rows):
    monkeypatch.setattr(conditional, "MOST_ROWS", 100)
    model, (X, y, _) = calibrated(rows, calibration_size=300), rows[1]
    assert len(model.calibration_) == 300
    assert 0.85 < share_inside(model.predict_interval(X), y).mean() < 0.96
    assert len(model.calibration_._fit("both", 0.9).eta) == 100


def test_a_model_is_saved(rows, tmp_path):
    model, (X, _, inside) = calibrated(rows, rows[0][2]), rows[1]
    expected = model.predict_interval(X[:50], groups=inside[:50])
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_interval(X[:50], groups=inside[:50]), expected)


def test_words():
    rng = np.random.default_rng(3)
    X, y, inside = draw(rng, 120)
    fixed = {"lengthscale": 0.5, "width_penalty": 1.0, "symmetry_penalty": 1.0, "base_scale": "none"}
    model = SoSBandRegressor(LinearRegression(), calibration="conditional", random_state=0, **fixed)
    model.fit(X, y, groups=inside)
    words = model.summary()
    assert "Calibrated row by row" in words
    assert "within each group, however these overlap" in words
    with pytest.raises(ValueError, match="explain with calibration='conditional': not offered"):
        model.explain(X, groups=inside)
    with pytest.raises(ValueError, match="'cross': not offered"):
        model.set_params(calibration_size="cross").fit(X, y)
    with pytest.raises(ValueError, match="nested_coverages: not offered"):
        model.set_params(calibration_size=0.5, nested_coverages=(0.5, 0.9)).fit(X, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, r: m.quantile(group=r[2][0]), "quantile with calibration='conditional': not offered"),
        (lambda m, r: m.predict_quantile(r[0], 0.5, groups=r[2]), "predict_quantile .*: not offered"),
        (lambda m, r: m.predict_cdf(*r[:2], groups=r[2]), "predict_cdf .*: not offered"),
        (lambda m, r: m.predict_ensemble(r[0], groups=r[2]), "predict_ensemble .*: not offered"),
        (lambda m, r: m.update(*r[:2], groups=r[2]), "update with calibration='conditional'"),
        (lambda m, r: m.conformalize(*r[:2], likelihood_ratio=r[1]), "likelihood_ratio .*: not offered"),
        (lambda m, r: m.predict_interval(r[0]), "groups=None: expected one value per row"),
        (lambda m, r: m.predict_interval(r[0], groups=r[2][:, :2]), r"expected \(1000, 4\)"),
        (lambda m, r: m.predict_interval(r[0], groups=r[2][:5]), "groups is a table of shape .*: expected labels, or"),
        (lambda m, r: m.predict_interval(r[0], groups=2.0 * r[2]), "groups is a table .*: expected labels, or True"),
        (lambda m, r: m.predict_interval(r[0], lower_share=0.3, groups=r[2]), "one quantile for both sides"),
    ],
)
def test_refusals(rows, call, message):
    with pytest.raises(ValueError, match=message):
        call(calibrated(rows, rows[0][2]), rows[1])


def test_a_gap_of_one_quantile_is_refused(rows):
    with pytest.raises(ValueError, match="coverage_gap: expected a model with calibration='conditional'"):
        SplitCP(LinearRegression(), random_state=0).fit(*rows[0][:2]).coverage_gap(rows[1][0])
