"""SoSBandRegressor as scikit-learn's users know it, what it does with rows, and what it says."""

import re
import warnings

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_checks import expected_failures
from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.exceptions import (
    CrossedIntervalsWarning,
    LearningRowsWarning,
    LeaveOneOutError,
    NotCalibratedError,
    NotCertifiedWarning,
    OffDataWarning,
    TooFewCalibrationPointsWarning,
    ZeroResidualsWarning,
)
from sosbands.metrics import evaluate_intervals, interval_score, interval_scorer
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tables.rows import groups_without, learnt_rows, split_rows
from spelled import spelled

RNG = np.random.default_rng(7)
N = 80
X = RNG.uniform(-1, 1, (N, 2))
Y = np.sin(2 * X[:, 0]) + (1.2 + X[:, 1]) * (RNG.exponential(size=N) - 0.7)
X_NEW = RNG.uniform(-0.8, 0.8, (30, 2))
Y_NEW = np.sin(2 * X_NEW[:, 0]) + (1.2 + X_NEW[:, 1]) * (RNG.exponential(size=30) - 0.7)


FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "tol": 1e-2, "random_state": 0}


def fast(estimator=None, **options):
    estimator = LinearRegression() if estimator is None else estimator
    return SoSBandRegressor(estimator, **spelled(**{**FAST, **options}))


@pytest.fixture(scope="module")
def model():
    return fast().fit(X, Y)


# ---------------------------------------------------------------- a true scikit-learn estimator

# scikit-learn itself skips check_array_api_input unless SCIPY_ARRAY_API is set.


@parametrize_with_checks([SoSBandRegressor()], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.every_configuration
@parametrize_with_checks(
    [
        SoSBandRegressor(GaussianProcess(), **PAPER_SETTINGS),
        SoSBandRegressor(Ridge(), calibration="asymmetric", symmetry_penalty=2.0, lengthscale=1.5, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks_of_further_configurations(estimator, check):
    check(estimator)


class Forgetful(SoSBandRegressor):
    """Breaks the rules: the constructor changes what it is given, and the number of features is never checked."""

    def __init__(self, estimator=None, *, confidence_level=0.9):
        super().__init__(estimator, confidence_level=round(confidence_level, 1))


def test_scikit_learn_checks_reject_a_constructor_that_computes():
    with pytest.raises(RuntimeError, match="confidence_level"):
        clone(Forgetful(confidence_level=0.95))


def test_the_constructor_only_stores():
    given = {name: object() for name in SoSBandRegressor().get_params(deep=False)}
    model = SoSBandRegressor(given.pop("estimator"), **given)
    assert vars(model) == {"estimator": model.estimator, **given}


def test_fit_leaves_parameters_alone(model):
    assert model.get_params()["lengthscale"] == "median"
    assert not hasattr(model.estimator, "coef_")
    again = clone(model)
    assert repr(again) == repr(model)
    assert not hasattr(again, "noise_")
    assert np.array_equal(again.fit(X, Y).predict_interval(X_NEW), model.predict_interval(X_NEW))


def test_nested_parameters():
    model = fast(Ridge()).set_params(estimator__alpha=3.0, confidence_level=0.8)
    assert model.get_params()["estimator__alpha"] == 3.0
    assert model.fit(X, Y).estimator_.alpha == 3.0
    assert model.estimator_ is not model.estimator


def test_fields_of_the_numerics_by_name():
    """Another object each time, as several models may share one."""
    shared = BandSettings(tol=1e-2)
    model, other = SoSBandRegressor(bands=shared), SoSBandRegressor(bands=shared)
    assert model.set_params(bands__rank=7, cv=3) is model
    assert (model.bands, model.cv, other.bands) == (BandSettings(tol=1e-2, rank=7), 3, BandSettings(tol=1e-2))
    assert clone(model).get_params()["bands__rank"] == 7
    assert SoSBandRegressor().set_params(bands__constant=False).bands == BandSettings(constant=False)
    with pytest.raises(ValueError, match="bands has no field 'ranks': expected one of .*'rank'"):
        model.set_params(bands__ranks=7)


def test_html(model):
    page = model._repr_html_()
    assert "SoSBandRegressor" in page
    assert "symmetry_penalty" in page
    assert "LinearRegression" in page


def test_a_second_fit_forgets_the_first():
    """Nothing of the first fit is left: names, calibration with groups, rows, numbers."""
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    twice = fast().fit(frame, Y, groups=np.arange(N) % 2)
    twice.fit(X[:50, :1], Y[:50])
    once = fast().fit(X[:50, :1], Y[:50])
    assert vars(twice).keys() == vars(once).keys()
    assert not hasattr(twice, "feature_names_in_")
    assert twice.calibration_.groups is None
    assert np.array_equal(twice.predict_interval(X_NEW[:, :1]), once.predict_interval(X_NEW[:, :1]))
    twice.set_params(calibration_size=None).fit(X, Y)
    with pytest.raises(NotCalibratedError):
        twice.predict_interval(X_NEW)


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.SosbandsWarning")
def test_grid_search_by_the_interval_score():
    search = GridSearchCV(
        fast(confidence_level=0.7), {"width_penalty": [0.1, 10.0]}, scoring=interval_scorer(), cv=2, error_score="raise"
    )
    search.fit(X, Y)
    half = N // 2
    ends = fast(confidence_level=0.7, width_penalty=10.0).fit(X[half:], Y[half:]).predict_interval(X[:half])
    expected = -interval_score(Y[:half], ends[:, 0], ends[:, 1], 0.7)
    assert search.cv_results_["split0_test_score"][1] == pytest.approx(expected, rel=1e-12)
    assert search.best_estimator_.predict_interval(X_NEW).shape == (30, 2)
    assert search.best_params_["width_penalty"] in (0.1, 10.0)


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.SosbandsWarning")
def test_cross_validation():
    scores = cross_val_score(fast(), X, Y, cv=4, scoring=interval_scorer(0.7), error_score="raise")
    assert scores.shape == (4,)
    assert (scores < 0).all()
    plain = cross_val_score(fast(calibration_size=1), X, Y, cv=4, error_score="raise")  # R2 of the point model
    rows = np.arange(N)
    first = fast(calibration_size=1).fit(X[rows >= 20], Y[rows >= 20])
    assert plain[0] == pytest.approx(first.score(X[:20], Y[:20]), rel=1e-12)


def test_as_the_last_step_of_a_pipeline():
    pipe = Pipeline([("scale", StandardScaler()), ("bands", fast())]).fit(X, Y)
    Z = pipe[:-1].transform(X_NEW)
    assert np.array_equal(pipe.predict(X_NEW), pipe[-1].predict(Z))
    ends = pipe[-1].predict_interval(Z)
    score = interval_scorer(0.9)(pipe, X_NEW, Y_NEW)
    assert score == pytest.approx(-interval_score(Y_NEW, ends[:, 0], ends[:, 1], 0.9), rel=1e-12)
    # standardising first changes nothing that the bands see, so neither the intervals, to the solver's tolerance
    tight = fast(tol=1e-8)
    ends = Pipeline([("scale", StandardScaler()), ("bands", clone(tight))]).fit(X, Y)[-1].predict_interval(Z)
    np.testing.assert_allclose(ends, tight.fit(X, Y).predict_interval(X_NEW), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_very_few_rows(n):
    model = SoSBandRegressor(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroResidualsWarning)
        model.fit(X[:n], Y[:n])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OffDataWarning)
        with pytest.warns(TooFewCalibrationPointsWarning, match="needs at least 9 calibration points"):
            ends = model.predict_interval(X[:n])
    assert np.isinf(ends).all()


# ---------------------------------------------------------------- tables


def pandas_frame(values, columns=("a", "b")):
    return pytest.importorskip("pandas", reason="data frames need pandas").DataFrame(values, columns=list(columns))


def polars_frame(values, columns=("a", "b")):
    return pytest.importorskip("polars", reason="data frames need polars").DataFrame(values, schema=list(columns))


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
def test_data_frames(frame, model):
    table, series = frame(X), frame(Y[:, None], ["y"])["y"]
    framed = fast().fit(table, series)
    assert framed.feature_names_in_.tolist() == ["a", "b"]
    assert framed.estimator_.feature_names_in_.tolist() == ["a", "b"]  # the point model sees the frame
    learn, held = framed.learning_rows_, framed.calibration_rows_
    direct = LinearRegression().fit(frame(X[learn]), Y[learn])
    assert np.array_equal(framed.predict(frame(X_NEW)), direct.predict(frame(X_NEW)))
    framed.conformalize(frame(X[held]), series[held.tolist()])
    assert framed.evaluate(frame(X_NEW), Y_NEW).keys() == model.evaluate(X_NEW, Y_NEW).keys()
    tight = fast(tol=1e-6).fit(table, series).predict_interval(frame(X_NEW))
    np.testing.assert_allclose(tight, fast(tol=1e-6).fit(X, Y).predict_interval(X_NEW), atol=1e-3)
    for wrong in (frame(X_NEW[:, ::-1], ["b", "a"]), frame(X_NEW, ["a", "c"])):
        for call in (framed.predict, framed.predict_interval, framed.support):
            with pytest.raises(ValueError, match="feature names should match"):
                call(wrong)
        with pytest.raises(ValueError, match="feature names should match"):
            framed.conformalize(wrong, Y_NEW)
    with pytest.raises(ValueError, match="feature names should match|expecting 2 features"):
        framed.predict(frame(X_NEW[:, :1], ["a"]))


def test_a_frozen_model_of_a_frame_and_a_function_of_one():
    """Both get the frame itself: no warning about lost names, columns by their names."""
    frame = pandas_frame(X)
    frozen = fast(FrozenEstimator(LinearRegression().fit(frame, Y))).fit(frame, Y)
    by_name = fast(lambda table: frozen.estimator_.predict(table[["a", "b"]])).fit(frame, Y)
    assert np.array_equal(frozen.predict_interval(frame), by_name.predict_interval(frame))
    assert frozen.residual_rule_ == by_name.residual_rule_ == "in-sample"


@pytest.mark.parametrize(
    "convert",
    [np.asfortranarray, lambda A: A[::-1][::-1], lambda A: A.tolist(), lambda A: np.ma.masked_array(A).data],
    ids=["Fortran", "strided", "list", "view"],
)
def test_layouts_of_the_same_numbers(convert, model):
    other = fast().fit(convert(X), Y)
    assert np.array_equal(other.predict_interval(convert(X_NEW)), model.predict_interval(X_NEW))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8, bool])
def test_dtypes(dtype):
    """The same numbers in another type give the same intervals."""
    A, B = (10 * (table + 1) for table in (X, X_NEW))
    A, B = (A > 10, B > 10) if dtype is bool else (A.astype(dtype), B.astype(dtype))
    y = (10 * Y).astype(int) if dtype is np.int64 else Y
    found = fast().fit(A, y).predict_interval(B)
    expected = fast().fit(A.astype(float), np.asarray(y, dtype=float)).predict_interval(B.astype(float))
    assert found.dtype == np.float64
    assert np.array_equal(found, expected)


def mixed_table(n, seed):
    """Numbers with gaps, a category that matters, and a column of words with gaps."""
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    rng = np.random.default_rng(seed)
    size, kind = rng.uniform(0, 1, n), rng.choice(["small", "large"], n)
    y = 3 * (kind == "large") + size + np.where(kind == "large", 2.0, 0.2) * rng.standard_normal(n)
    frame = pandas.DataFrame({"size": size, "kind": kind, "place": rng.choice(["n", "s"], n)})
    frame.loc[rng.choice(n, n // 10, replace=False), "size"] = np.nan
    frame.loc[rng.choice(n, n // 10, replace=False), "place"] = None
    return frame, y


def mixed_preprocessor():
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return ColumnTransformer([("numbers", numbers, ["size"]), ("words", words, ["kind", "place"])])


def mixed_estimators():
    from sklearn.ensemble import HistGradientBoostingRegressor

    return {
        "pipeline": make_pipeline(mixed_preprocessor(), LinearRegression()),
        "boosting": make_pipeline(
            mixed_preprocessor(), HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=5, random_state=0)
        ),
        "default": None,
    }


@pytest.mark.parametrize("name", ["pipeline", "boosting", "default"])
def test_categories_and_missing_values_end_to_end(name):
    """Intervals know the category, though a kernel takes numbers only."""
    frame, y = mixed_table(240, 0)
    model = SoSBandRegressor(mixed_estimators()[name], preprocessor=mixed_preprocessor(), **spelled(**FAST))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OffDataWarning)
        model.fit(frame, y)
        new, y_new = mixed_table(400, 1)
        ends = model.predict_interval(new)
        row = model.evaluate(new, y_new)
    width, large = np.diff(ends, axis=1)[:, 0], new["kind"] == "large"
    assert width[large].mean() > 1.5 * width[~large].mean()
    assert 0.8 <= row["coverage"] <= 1
    assert np.mean((ends[:, 0] <= y_new) & (y_new <= ends[:, 1])) == row["coverage"]
    assert model.feature_names_in_.tolist() == ["size", "kind", "place"]
    assert model.residual_rule_ == "out-of-fold"
    with pytest.raises(ValueError, match="feature names"):
        model.predict(new[["kind", "size", "place"]])


# ---------------------------------------------------------------- splits, residuals, groups


def test_the_split_is_reproducible_and_disjoint(model):
    assert np.array_equal(fast().fit(X, Y).calibration_rows_, model.calibration_rows_)
    other = fast(random_state=1).fit(X, Y)
    assert not np.array_equal(other.calibration_rows_, model.calibration_rows_)
    both = np.concatenate([model.learning_rows_, model.calibration_rows_])
    assert np.array_equal(np.sort(both), np.arange(N))


@pytest.mark.parametrize(("size", "held"), [(0.5, 40), (0.25, 20), (0.26, 21), (7, 7), (np.int64(79), 79), (0.001, 1)])
def test_calibration_size(size, held):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroResidualsWarning)
        model = fast(calibration_size=size).fit(X, Y)
    assert len(model.calibration_rows_) == model.n_calibration_ == held


def test_the_split_is_that_of_hand_made_calls(model):
    """fit = learn on the learning rows, then conformalize on the rows held back."""
    learn, held = model.learning_rows_, model.calibration_rows_
    by_hand = fast(calibration_size=None).fit(X[learn], Y[learn]).conformalize(X[held], Y[held])
    r = Y[held] - by_hand.predict(X[held])
    Z = by_hand.reader_.preprocessor.transform(X[held])
    expected = np.maximum(-r - by_hand.noise_.lower(Z), r - by_hand.noise_.upper(Z))
    np.testing.assert_allclose(by_hand.scores_, expected, rtol=1e-12)
    k = int(np.ceil(0.9 * (len(held) + 1)))
    assert by_hand.quantile() == np.sort(by_hand.scores_)[k - 1]


def test_in_sample_and_out_of_fold_residuals():
    """A model that interpolates has in-sample residuals of zero: the default rule does not believe them."""
    neighbour = KNeighborsRegressor(1)
    believed = fast(neighbour).fit(X, Y)
    assert believed.residual_rule_ == "out-of-fold"
    assert believed.residual_rms_ > 0.5
    with pytest.warns(ZeroResidualsWarning):
        naive = fast(neighbour, residuals="in-sample").fit(X, Y)
    assert naive.residual_rms_ == 0
    assert fast(SmoothingSplineRegressor()).fit(X[:, :1], Y).residual_rule_ == "in-sample"


def test_a_process_gives_leave_one_out_residuals():
    """The bands cover what the process without a row errs by at that row, not what it errs by with it."""
    auto = fast(GaussianProcess(), calibration_size=None).fit(X, Y)
    assert auto.residual_rule_ == "leave-one-out"
    assert "by leave-one-out residuals" in auto.summary(detail=True)
    r, Z = GaussianProcess().fit(X, Y).leave_one_out_residuals(), auto.reader_.preprocessor.transform(X)
    assert auto.residual_rms_ == pytest.approx(np.sqrt(np.mean(r**2)), rel=1e-12)
    assert (auto.noise_.upper(Z) >= r - 1e-9).all()
    assert (auto.noise_.lower(Z) >= -r - 1e-9).all()
    explicit = fast(GaussianProcess(), calibration_size=None, residuals="leave-one-out").fit(X, Y)
    assert np.array_equal(explicit.noise_.upper(Z), auto.noise_.upper(Z))
    own = fast(GaussianProcess(), calibration_size=None, residuals="in-sample").fit(X, Y)
    assert own.residual_rule_ == "in-sample"
    assert own.residual_rms_ == pytest.approx(np.sqrt(np.mean((Y - own.predict(X)) ** 2)), rel=1e-12)
    assert own.residual_rms_ < auto.residual_rms_


def test_leave_one_out_residuals_of_a_pipeline():
    """On request only: the first steps, which might look at y, are held fixed."""
    pipe = make_pipeline(MinMaxScaler(), GaussianProcess())
    assert fast(pipe).fit(X, Y).residual_rule_ == "out-of-fold"
    model = fast(pipe, residuals="leave-one-out", calibration_size=None).fit(X, Y)
    assert model.residual_rule_ == "leave-one-out"
    r = GaussianProcess().fit(MinMaxScaler().fit_transform(X), Y).leave_one_out_residuals()
    assert model.residual_rms_ == pytest.approx(np.sqrt(np.mean(r**2)), rel=1e-12)


def test_leave_one_out_residuals_that_no_model_gives():
    """Said before the point model is fitted; the default is a blend."""

    class Untouched(LinearRegression):
        def fit(self, X, y):  # noqa: ARG002
            pytest.fail("the point model was fitted")

    for model in (Untouched(), make_pipeline(StandardScaler(), Untouched())):
        with pytest.raises(LeaveOneOutError, match=r"residuals='leave-one-out' with the point model Untouched\(\)"):
            fast(model, residuals="leave-one-out").fit(X, Y)
    with pytest.raises(LeaveOneOutError, match="(?s)point model ModelBlend.*expected a GaussianProcess"):
        fast(residuals="leave-one-out", calibration_size=None).set_params(estimator=None).fit(X, Y)


@pytest.mark.parametrize("residuals", ["auto", "leave-one-out"])
def test_one_learning_row_has_its_own_residual(residuals):
    with pytest.warns(ZeroResidualsWarning):
        model = SoSBandRegressor(**spelled(residuals=residuals, calibration_size=1, **FAST)).fit(X[:2], Y[:2])
    assert model.residual_rule_ == "in-sample"
    assert model.residual_rms_ == 0


def test_groups_given_to_fit_calibrate_each_group():
    labels = np.where(X[:, 1] > 0, "noisy", "quiet")
    model = fast(residuals="in-sample").fit(X, Y, groups=labels)
    held = model.calibration_rows_
    for label in ("noisy", "quiet"):
        mine = labels[held] == label
        assert abs(mine.sum() - np.mean(labels == label) * len(held)) <= 1  # each group in its proportion
        rank = int(np.ceil(0.9 * (mine.sum() + 1)))
        assert model.quantile(group=label) == np.sort(model.scores_[mine])[rank - 1]
    new_labels = np.where(X_NEW[:, 1] > 0, "noisy", "quiet")
    ends = model.predict_interval(X_NEW, groups=new_labels)
    plain = fast(residuals="in-sample", calibration_size=None).fit(X[model.learning_rows_], Y[model.learning_rows_])
    mine = labels[held] == "noisy"
    plain.conformalize(X[held][mine], Y[held][mine])
    rows = new_labels == "noisy"
    np.testing.assert_allclose(ends[rows], plain.predict_interval(X_NEW[rows]), rtol=1e-9)


def test_a_small_group_is_held_back_too():
    labels = np.where(np.arange(N) < 4, "rare", "common")
    for seed in range(5):
        model = fast(random_state=seed).fit(X, Y, groups=labels)
        assert np.sum(labels[model.calibration_rows_] == "rare") == 2
        assert len(model.calibration_rows_) == 40


@pytest.mark.parametrize("size", [1, 3, 0.1, 0.5, 0.9])
def test_every_group_of_two_is_held_back(size):
    labels = np.array(["a", "b", "b", "c", "c", "c", *"d" * 30, "e", *"f" * 20, "g", "g"])
    singles = []
    for seed in range(60):
        learn, held = split_rows(len(labels), size, np.random.RandomState(seed), labels)
        assert np.array_equal(np.sort(np.concatenate([learn, held])), np.arange(len(labels)))
        assert len(learn)
        assert set("bcdfg") <= set(labels[held])
        wanted = size if isinstance(size, int) else round(size * len(labels))
        assert wanted <= len(held) <= wanted + 5
        assert groups_without(labels, held) == sorted({"a", "e"} - set(labels[held]))
        singles.append(sorted({"a", "e"} & set(labels[held])))
    for label in "ae":  # about as often as the size says, whatever its place in the alphabet
        share = np.mean([label in found for found in singles])
        assert abs(share - wanted / len(labels)) < 0.25
        assert size in (1, 3) or share > 0


def test_groups_without_calibration_rows_are_named():
    labels = np.array(["alone"] + ["many"] * (N - 1))
    found = []
    for seed in range(6):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fast(random_state=seed).fit(X, Y, groups=labels)
        texts = [str(w.message) for w in caught if w.category is TooFewCalibrationPointsWarning]
        found.append(0 in model.calibration_rows_)
        assert len(texts) == (not found[-1])
        if texts:
            assert "the groups 'alone' of one row each have no calibration row" in texts[0]
            with pytest.raises(ValueError, match="not seen, 'alone'"):
                model.predict_interval(X_NEW[:1], groups=["alone"])
    assert set(found) == {True, False}


def test_learning_rows_given_to_evaluate_are_noticed(model):
    learn, held = model.learning_rows_, model.calibration_rows_
    with pytest.warns(LearningRowsWarning, match=r"^40 of the 80 rows given to evaluate .* on new rows") as caught:
        everything = model.evaluate(X, Y)
    assert caught[0].filename == __file__
    new = model.evaluate(X[held], Y[held])  # no warning: these were not learnt from
    assert everything["coverage"] != new["coverage"]
    model.evaluate(X[learn], Y[learn] + 1e-3)
    frozen = fast(FrozenEstimator(model.estimator_)).fit(X, Y)
    frozen.evaluate(X, Y)  # no warning: who froze it knows what it has seen


def test_learning_rows_given_to_conformalize_are_noticed(model):
    learn, held = model.learning_rows_, model.calibration_rows_
    again = clone(model).fit(X, Y)
    for rows, seen in ((learn, 40), (np.arange(N), 40), (np.concatenate([held, learn[:5]]), 5)):
        with pytest.warns(LearningRowsWarning, match=f"^{seen} of the {len(rows)} rows given to conformalize"):
            again.conformalize(X[rows], Y[rows])
    again.conformalize(X[held], Y[held])  # no warning: these were held back
    again.conformalize(X[learn], Y[learn] + 1e-3)
    again.conformalize(X[np.concatenate([held, learn[:2]])], Y[np.concatenate([held, learn[:2]])])  # two are no proof
    assert "at least 90% of new rows" in again.summary()
    with pytest.warns(LearningRowsWarning, match="^40 of the 40"):
        again.conformalize(X[learn].astype(np.float32), Y[learn].astype(np.float32))
    assert again.n_learnt_calibration_rows_ == 40
    text = again.summary()
    assert "Calibrated on 40 rows, 40 of which were learnt from in fit: NO coverage is promised" in text
    assert "at least" not in text
    again.conformalize(X_NEW, Y_NEW)
    assert again.n_learnt_calibration_rows_ == 0
    assert "at least 90% of new rows" in again.summary()


def test_repeated_rows_explain_their_share_and_its_chance():
    rng = np.random.default_rng(0)
    for _ in range(50):
        hashes = rng.integers(0, 150, 400).astype(np.uint64)
        assert learnt_rows(hashes[200:], hashes[:200]) == 0  # about half have a twin
    alone = np.arange(100, dtype=np.uint64)
    assert [learnt_rows(alone[50:], alone[: 50 + seen]) for seen in (0, 2, 3, 50)] == [0, 0, 3, 50]


def test_equal_rows_in_the_data_are_no_reason_to_warn():
    rng = np.random.default_rng(0)
    A, b = rng.integers(0, 2, (100, 2)), rng.integers(0, 2, 100)
    model = fast(calibration_size=None).fit(A[:50], b[:50])
    model.conformalize(A[50:], b[50:])  # nearly every row has a twin
    repeated = np.repeat(X[:25], 2, axis=0)
    model.fit(repeated[:, :2], np.arange(50.0))
    with pytest.warns(LearningRowsWarning, match="50 of the 50"):
        model.conformalize(repeated, np.arange(50.0))


# ---------------------------------------------------------------- intervals


def test_intervals_are_prediction_bands_and_quantile():
    model = fast(calibration="asymmetric", symmetry_penalty=0.0).fit(X, Y)
    Z = model.reader_.preprocessor.transform(X_NEW)
    center = model.estimator_.predict(X_NEW)
    q_lo, q_up = model.quantile(0.8, lower_share=0.25)
    ends = model.predict_interval(X_NEW, 0.8, lower_share=0.25)
    np.testing.assert_allclose(ends[:, 0], center - model.noise_.lower(Z) - q_lo, rtol=1e-12)
    np.testing.assert_allclose(ends[:, 1], center + model.noise_.upper(Z) + q_up, rtol=1e-12)
    held = model.calibration_rows_
    scores = Y[held] - model.predict(X[held]) - model.noise_.upper(model.reader_.preprocessor.transform(X[held]))
    assert q_up == pytest.approx(np.sort(scores)[int(np.ceil(0.85 * 41)) - 1], rel=1e-12)


def test_many_levels_are_nested(model):
    levels = [0.95, 0.5, 0.8]
    ends = model.predict_interval(X_NEW, levels)
    assert ends.shape == (30, 2, 3)
    for k, level in enumerate(levels):
        assert np.array_equal(ends[:, :, k], model.predict_interval(X_NEW, level))
    widest, narrow, middle = np.moveaxis(ends, 2, 0)
    for outer, inner in ((widest, middle), (middle, narrow)):
        assert (outer[:, 0] <= inner[:, 0]).all()
        assert (outer[:, 1] >= inner[:, 1]).all()


def test_the_bands_cover_the_learning_residuals():
    model = fast(calibration_size=None, residuals="in-sample").fit(X, Y)
    r, Z = Y - model.predict(X), model.reader_.preprocessor.transform(X)
    assert (model.noise_.upper(Z) >= r - 1e-9).all()
    assert (model.noise_.lower(Z) >= -r - 1e-9).all()
    touched = np.flatnonzero(model.noise_.upper(Z) < r + 1e-3)
    assert set(touched) <= set(model.noise_.active_upper)


def test_equivariance():
    """y -> c y + d gives c times the widths around c times the prediction plus d; c < 0 swaps the sides."""
    options = {"tol": 1e-6, "symmetry_penalty": 0.3}
    model = fast(**options).fit(X, Y)
    ends = model.predict_interval(X_NEW)
    spread = np.ptp(ends)
    for c, d in ((1e3, -7e3), (1e-4, 2.0), (-5.0, 1.0)):
        other = fast(**options).fit(X, c * Y + d).predict_interval(X_NEW)
        expected = np.sort(c * ends + d, axis=1)
        assert np.abs(other - expected).max() <= 1e-3 * abs(c) * spread, (c, d)
    unscaled = fast(**options, normalize=False).fit(X, 1e3 * Y).predict_interval(X_NEW)
    assert np.abs(unscaled - 1e3 * ends).max() > 1e-2 * 1e3 * spread  # without normalisation it does not hold


def test_standardised_features_make_units_of_x_irrelevant():
    unit = np.array([20.0, 0.05])
    ends = fast(tol=1e-6).fit(X, Y).predict_interval(X_NEW)
    other = fast(tol=1e-6).fit(X * unit, Y).predict_interval(X_NEW * unit)
    np.testing.assert_allclose(other, ends, atol=1e-3)
    raw = fast(tol=1e-6, preprocessor=None).fit(X * unit, Y).predict_interval(X_NEW * unit)
    assert np.abs(raw - ends).max() > 0.05


def test_outliers_shape_no_band_but_count_in_calibration():
    y = Y.copy()
    wild = np.argsort(np.abs(Y - np.median(Y)))[-3:]
    model = fast(calibration_size=None, residuals="in-sample").fit(X, y)
    y[wild[0]] += 60.0
    tame = fast(calibration_size=None, residuals="in-sample", outlier_fraction=1.5 / N).fit(X, y)
    taut = fast(calibration_size=None, residuals="in-sample").fit(X, y)
    assert wild[0] in taut.noise_.active_upper
    assert wild[0] not in tame.noise_.active_upper
    assert tame.noise_.mean_upper < 0.5 * taut.noise_.mean_upper
    assert model.noise_.mean_upper < taut.noise_.mean_upper
    Z = tame.reader_.preprocessor.transform(X)
    uncovered = np.flatnonzero(y - tame.predict(X) > tame.noise_.upper(Z) + 1e-6)
    assert uncovered.tolist() == [wild[0]]
    assert "1 row with the largest residuals left out of the bands" in tame.summary(detail=True)
    split = fast(outlier_fraction=0.2).fit(X, Y)
    assert split.n_calibration_ == 40  # calibration is untouched
    assert np.array_equal(split.calibration_rows_, fast().fit(X, Y).calibration_rows_)


def test_support_and_its_warning(model):
    learn = model.learning_rows_
    np.testing.assert_allclose(model.support(X[learn]), 1.0, atol=1e-6)
    far = np.array([[50.0, 50.0], [0.0, 0.0], [-80.0, 0.0]])
    support = model.support(far)
    assert support[1] > 0.9
    assert support[[0, 2]].max() < 1e-6
    with pytest.warns(OffDataWarning, match="2 of 3 rows are far from the learning data") as caught:
        ends = model.predict_interval(far)
    assert caught[0].filename == __file__
    # the constant among the squares is what is left of the bands there
    below, above = (f.operator[0, 0] * f.features.constant**2 for f in (model.noise_.lower, model.noise_.upper))
    assert min(below, above) > 0.1 * min(model.noise_.mean_lower, model.noise_.mean_upper)
    reach = np.array([-below, above]) + model.quantile() * np.array([-1, 1])
    np.testing.assert_allclose(ends[0], model.predict(far)[0] + reach, rtol=1e-9)


def test_without_the_constant_nothing_is_left_of_the_bands_off_the_data():
    model = fast(constant=False).fit(X, Y)
    far = np.array([[50.0, 50.0], [0.0, 0.0], [-80.0, 0.0]])
    with pytest.warns(OffDataWarning, match=r"2 of 3 rows are far from the learning data \(support below 0.5\)"):
        ends = model.predict_interval(far)
    np.testing.assert_allclose(ends[0], model.predict(far)[0] + model.quantile() * np.array([-1, 1]), rtol=1e-9)


def test_negative_quantiles_far_away_give_points_and_a_count():
    model = fast(calibration_size=None, constant=False).fit(X, Y)
    model.conformalize(X_NEW, model.predict(X_NEW))  # all inside the band: negative scores
    assert model.quantile() < 0
    far = np.array([[50.0, 50.0], [-80.0, 0.0]])
    with pytest.warns(CrossedIntervalsWarning, match="2 of 2 intervals are empty"), pytest.warns(OffDataWarning):
        ends = model.predict_interval(far)
    assert np.array_equal(ends, np.repeat(model.predict(far)[:, None], 2, axis=1))


def test_evaluate_is_the_row_of_the_metrics(model):
    ends = model.predict_interval(X_NEW, 0.8)
    row = model.evaluate(X_NEW, Y_NEW, 0.8)
    expected = evaluate_intervals(Y_NEW, ends[:, 0], ends[:, 1], confidence_level=0.8)
    assert {name: row[name] for name in expected} == expected
    assert "worst_set_coverage" not in row  # 30 rows are no two sets of 100 neighbours


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
@pytest.mark.parametrize("preprocessor", [None, "standardize", MinMaxScaler()])
def test_the_worst_set_is_looked_for_in_units_of_the_learning_rows(preprocessor):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((400, 2)) * [1.0, 1000.0] + [0.0, 500.0]
    b = A[:, 0] + rng.standard_normal(400) * (1 + (A[:, 0] > 1))
    model = fast(preprocessor=preprocessor).fit(A[:100], b[:100])
    ends = model.predict_interval(A[100:])
    learn = A[model.learning_rows_]
    wanted = evaluate_intervals(b[100:], *ends.T, confidence_level=0.9, X=A[100:], X_learn=learn)
    assert model.evaluate(A[100:], b[100:])["worst_set_coverage"] == wanted["worst_set_coverage"]
    model.set_params(preprocessor=None if preprocessor else "standardize")  # of no effect after fit
    assert model.evaluate(A[100:], b[100:])["worst_set_coverage"] == wanted["worst_set_coverage"]


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
def test_a_tie_with_every_calibration_row_is_covered():
    A, b = np.full((50, 1), 2.0), np.full(50, 0.43)
    for center in (0.3, 0.1, 0.7, 1 / 3, -5.9):
        model = fast(lambda Z, c=center: c + 0 * Z[:, 0], calibration_size=None).fit(X[:, :1], Y)
        lower, upper = model.conformalize(A, b).predict_interval(A, [0.5, 0.9])[0]
        assert (lower <= 0.43).all()
        assert (upper >= 0.43).all()


def test_numpy_booleans():
    assert np.array_equal(
        fast(normalize=np.True_).fit(X, Y).predict_interval(X_NEW), fast().fit(X, Y).predict_interval(X_NEW)
    )


def test_functions_as_models_and_kernels():
    def laplace(A, B):
        return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))

    model = fast(lambda Z: np.sin(2 * Z[:, 0]), kernel=laplace).fit(X, Y)
    assert np.array_equal(model.predict(X_NEW), np.sin(2 * X_NEW[:, 0]))
    assert model.noise_.lengthscale is None
    assert model.residual_rule_ == "in-sample"


def test_lengthscales_in_use():
    Z = StandardScaler().fit_transform(X)
    median = fast(calibration_size=None).fit(X, Y).noise_.lengthscale
    pairs = np.linalg.norm(Z[:, None] - Z[None], axis=2)[np.triu_indices(N, 1)]
    assert median == pytest.approx(np.median(pairs), rel=1e-12)
    assert fast(lengthscale=0.7).fit(X, Y).noise_.lengthscale == 0.7
    assert fast(lengthscale=[0.7, 1.4]).fit(X, Y).noise_.lengthscale.tolist() == [0.7, 1.4]
    sides = fast(lengthscale={"lower": 0.5, "upper": [1.0, 2.0]}).fit(X, Y).noise_.lengthscale
    assert sides["lower"] == 0.5
    assert sides["upper"].tolist() == [1.0, 2.0]
    assert fast(lengthscale={"lower": 0.5, "upper": 0.5}).fit(X, Y).noise_.lengthscale == 0.5
    assert fast(kernel=RBF(0.5)).fit(X, Y).noise_.lengthscale is None


# ---------------------------------------------------------------- what it says


def numbers_after(text, pattern):
    found = re.search(pattern, text)
    assert found, f"{pattern!r} not in:\n{text}"
    return [float(value) for value in found.groups()]


def test_the_summary_is_true():
    model = fast(symmetry_penalty=0.1, calibration="asymmetric", confidence_level=0.875).fit(X, Y)
    lead, text = model.summary(), model.summary(detail=True)
    assert text.split("\n")[0] == lead
    number = r"([-+.\de]+)"
    assert "Bands around LinearRegression, learnt from 40 rows" in lead
    assert numbers_after(text, r"from (\d+) learning rows and (\d+) features") == [40, 2]
    assert "by out-of-fold residuals" in text
    assert numbers_after(text, rf"RMS {number}\)") == [pytest.approx(model.residual_rms_, rel=1e-3)]
    (ell, penalty) = numbers_after(text, rf"Set: lengthscale {number}, symmetry penalty {number}\.")
    assert (ell, penalty) == (pytest.approx(model.noise_.lengthscale, rel=1e-2), 0.1)
    below, above, ratio = numbers_after(
        text, rf"reach {number} below and {number} above .*: the bands reach {number} times as far above"
    )
    Z = model.reader_.preprocessor.transform(X[model.learning_rows_])
    assert below == pytest.approx(model.noise_.lower(Z).mean(), rel=1e-3)
    assert above == pytest.approx(model.noise_.upper(Z).mean(), rel=1e-3)
    assert ratio == pytest.approx(above / below, abs=0.011)
    shapes = numbers_after(text, r"Rows that shape them: (\d+) below, (\d+) above")
    assert shapes == [len(model.noise_.active_lower), len(model.noise_.active_upper)]
    ranks = [model.noise_.lower.rank, model.noise_.upper.rank]
    assert numbers_after(text, r"squares: (\d+) below, (\d+) above") == ranks
    (gap,) = numbers_after(text, rf"Certified: .* within {number} \(relative\)")
    assert gap == pytest.approx(model.noise_.certificate["gap"], rel=0.1)
    assert gap <= 1e-2
    assert numbers_after(text, r"with (\d+) kernel features") == [41]  # and a constant
    assert "Calibrated on 40 rows: at least 87.5% of new rows" in lead
    assert "at most 6.25% below and at most 6.25% above it" in lead
    assert "not promised for every single region" in lead


def test_the_summary_says_how_wide_intervals_are_and_what_shapes_them():
    model = fast(lengthscale=1.0, symmetry_penalty=0.5).fit(X, Y)
    learnt, number = X[model.learning_rows_], r"([-+.\de]+)"
    ends, center = model.predict_interval(learnt), model.predict(learnt)
    expected = [*np.quantile(np.ptp(ends, axis=1), [0.5, 0.1, 0.9]), *np.median(np.abs(ends - center[:, None]), axis=0)]
    wide = rf"Intervals are {number} wide in the middle \({number} to {number} for eight of ten learning rows\), "
    found = numbers_after(model.summary(), rf"{wide}from {number} below to {number} above the prediction\.")
    assert found == pytest.approx(expected, rel=0.01)
    assert "the width follows bands that vary with the features; each side has its own band." in model.summary()
    chance = numbers_after(model.summary(), rf"chance moves the coverage between {number}% and {number}%")
    assert chance == pytest.approx(100 * np.array(beta(37, 4).interval(0.95)), rel=0.01)  # of 40 calibration rows
    (upper,) = numbers_after(model.summary("upper"), rf"Upper ends lie {number} in the middle")
    assert upper == pytest.approx(np.median(model.predict_interval(learnt, side="upper")[:, 1] - center), rel=0.01)
    same = fast(lengthscale=np.inf, symmetry_penalty=np.inf).fit(X, Y)
    (width,) = np.unique(np.ptp(same.predict_interval(learnt), axis=1).round(9))
    assert f"Intervals are {width:.3g} wide, from " in same.summary()
    assert "the width is the same everywhere; both sides share one band." in same.summary()


def test_the_summary_calls_no_bands_shaped_that_calibration_makes():
    flat = fast(lengthscale=1.0, symmetry_penalty=0.5, width_penalty=1e-4, learning_coverage=0.9).fit(X, Y)
    assert "next to no width of their own, calibration makes it, the same everywhere." in flat.summary()
    assert "far from the learning rows" not in flat.summary()
    assert "The bands have no width of their own: calibration makes it." in flat.summary(detail=True)


def test_the_summary_says_what_was_not_done():
    model = fast(calibration_size=None).fit(X, Y)
    assert "Not calibrated: call conformalize(X, y)" in model.summary()
    fixed = fast(lengthscale=1.0, symmetry_penalty=np.inf, confidence_level=0.99).fit(X, Y)
    assert "Set: lengthscale 1, symmetry penalty inf" in fixed.summary(detail=True)
    assert "as good as symmetric" in fixed.summary(detail=True)
    assert "That takes 99 rows: with 40 the intervals are infinite" in fixed.summary()
    kernel = fast(kernel=RBF(), symmetry_penalty=1.0).fit(X, Y)
    assert "Set: the kernel's own lengthscale, symmetry penalty 1." in kernel.summary(detail=True)
    with pytest.warns(ZeroResidualsWarning):
        exact = fast(lambda Z: Z[:, 0]).fit(X, X[:, 0])
    assert "they have no width, because all residuals learnt from are zero" in exact.summary()


def test_the_summary_of_groups_and_weights():
    grouped = fast().fit(X, Y, groups=np.arange(N) % 4)
    assert "Calibrated on 40 rows in 4 groups of 10 to 10: within each group at least 90%" in grouped.summary()
    assert "infinite" not in grouped.summary()
    tiny = fast(confidence_level=0.95).fit(X, Y, groups=np.arange(N) % 4)
    assert "That takes 19 rows: with 10 the intervals in some groups are infinite" in tiny.summary()
    weighted = fast(calibration_size=None).fit(X, Y).conformalize(X_NEW, Y_NEW, likelihood_ratio=np.ones(30))
    assert "if the likelihood ratios are right" in weighted.summary()


def test_the_summary_of_an_unfinished_solve(monkeypatch):
    from dataclasses import replace

    from sosbands.bands import learn
    from sosbands.solvers import Status

    solved = learn.solve_path
    stalled = lambda *a, **k: (replace(each, status=Status.STALLED) for each in solved(*a, **k))  # noqa: E731
    monkeypatch.setattr(learn, "solve_path", stalled)
    with pytest.warns(NotCertifiedWarning):
        model = fast().fit(X, Y)
    assert "NOT certified to the tolerance asked for (gap " in model.summary()
    assert "NOT certified to the tolerance asked for (stalled): the gap is" in model.summary(detail=True)
    assert "Certified:" not in model.summary(detail=True)


def test_progress_lines(capsys):
    fast(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("] ")[1].split()[0] for line in lines] == ["point", "bands", "calibrated"]
    fast().fit(X, Y)
    assert capsys.readouterr().out == ""


def test_a_pipeline_as_point_model():
    model = fast(make_pipeline(PolynomialFeatures(3), LinearRegression())).fit(X, Y)
    assert model.residual_rule_ == "out-of-fold"
    learn = model.learning_rows_
    direct = make_pipeline(PolynomialFeatures(3), LinearRegression()).fit(X[learn], Y[learn])
    assert np.array_equal(model.predict(X_NEW), direct.predict(X_NEW))


def test_boosting_takes_the_frame_as_it_is():
    """Categories by dtype and gaps reach the point model untouched; the kernel gets numbers."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    frame, y = mixed_table(200, 2)
    frame = frame.astype({"kind": "category", "place": "category"})
    booster = HistGradientBoostingRegressor(max_iter=20, categorical_features="from_dtype", random_state=0)
    model = SoSBandRegressor(booster, preprocessor=mixed_preprocessor(), **spelled(**FAST)).fit(frame, y)
    learn = model.learning_rows_
    direct = clone(booster).fit(frame.iloc[learn], y[learn])
    assert direct.is_categorical_.tolist() == [False, True, True]
    assert np.array_equal(model.predict(frame), direct.predict(frame))


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
def test_blocks_of_data_frames(frame, monkeypatch):
    model = fast(preprocessor=StandardScaler()).fit(frame(X), Y)
    ends = model.predict_interval(frame(X_NEW))
    monkeypatch.setattr("sosbands.tables.rows.BLOCK_ROWS", 7)
    np.testing.assert_allclose(model.predict_interval(frame(X_NEW)), ends, rtol=1e-12)


def test_sparse_rows_and_sparse_features():
    from scipy.sparse import csr_array
    from sklearn.preprocessing import MaxAbsScaler

    words = csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    model = fast(Ridge(), preprocessor=MaxAbsScaler()).fit(words, Y)
    dense = fast(Ridge(), preprocessor=MaxAbsScaler(), tol=1e-2).fit(words.toarray(), Y)
    np.testing.assert_allclose(model.predict(words), dense.predict(words.toarray()), rtol=1e-6)
    assert model.predict_interval(words).shape == (N, 2)
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        fast().fit(words, Y)


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
def test_prediction_and_intervals_ask_the_point_model_once(monkeypatch):
    model = fast().fit(X, Y)
    center, ends = model.predict(X_NEW), model.predict_interval(X_NEW, 0.8)
    asked = []
    predict = type(model.estimator_).predict
    monkeypatch.setattr(
        type(model.estimator_), "predict", lambda self, rows: asked.append(len(rows)) or predict(self, rows)
    )
    found = model.intervals(X_NEW, 0.8)
    assert asked == [len(X_NEW)]
    assert np.array_equal(found.prediction, center)
    assert np.array_equal(found.ends[:, :, 0], ends)
