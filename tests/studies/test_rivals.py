"""The rivals of the studies: the same interface as the package's baselines, checks, tables, parameters, coverage."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import TimeSeriesSplit
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from coverage_contract import LAWS, run_coverage_suite, run_group_suite
from sklearn_checks import expected_failures
from sosbands.point_models import SmoothingSplineRegressor
from studies.rivals import RIVALS, HeteroscedasticGP, RelaxedQuantileCQR, SquaredSoS

RNG = np.random.default_rng(3)
N = 80
X = RNG.uniform(-1, 1, (N, 2))
Y = np.sin(2 * X[:, 0]) + (1.2 + X[:, 1]) * RNG.standard_normal(N)
X_NEW = RNG.uniform(-0.9, 0.9, (30, 2))
Y_NEW = np.sin(2 * X_NEW[:, 0]) + (1.2 + X_NEW[:, 1]) * RNG.standard_normal(30)
# Settings under which every rival fits in milliseconds.
FAST = {
    "rqr": {"cv": 2, "width_ridge": 1.0},
    "het-gp": {"max_iter": 20},
    "squared-sos": {"estimator": Ridge(), "lengthscale": "median", "tol": 1e-2},
}


def needs_hetgpy():
    pytest.importorskip("hetgpy", reason="het-gp needs hetgpy, which Python 3.13 has no wheels of")


def fast(name, **settings):
    if name == "het-gp":
        needs_hetgpy()
    return RIVALS[name](**{"random_state": 0, **FAST[name], **settings})


CHECKED = [
    RelaxedQuantileCQR(cv=2, center_ridge=0.01),
    HeteroscedasticGP(max_iter=10),
    SquaredSoS(Ridge(), cv=2, tol=1e-2, random_state=0),
]
FURTHER = [RelaxedQuantileCQR(width_penalty=0, lengthscale=1.0, width_ridge=0.1, max_rank=20, calibration="asymmetric")]


# hetgpy breaks down on some of the tiny noise-free tables of these checks, which the rival says in a warning.
@pytest.mark.filterwarnings("ignore:hetgpy could not fit varying noise")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    if isinstance(estimator, HeteroscedasticGP):
        needs_hetgpy()
    check(estimator)


@pytest.mark.every_configuration
@parametrize_with_checks(FURTHER, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_of_a_further_configuration(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", RIVALS)
def test_same_interface_and_reproducible(name):
    model = fast(name).fit(X, Y)
    again = clone(model).fit(X, Y)
    ends = model.predict_interval(X_NEW, [0.8, 0.9])
    assert np.array_equal(again.predict_interval(X_NEW, [0.8, 0.9]), ends)
    assert (ends[:, 0, 1] <= ends[:, 0, 0]).all()  # nested in the level
    assert (ends[:, 1, 1] >= ends[:, 1, 0]).all()
    assert len(model.learning_rows_) == len(model.calibration_rows_) == N // 2
    assert model.evaluate(X_NEW, Y_NEW)["coverage"] > 0.5
    # the band before calibration is that of fit: a later change of a parameter does not part it from the calibration
    later = {"confidence_level": 0.5, "conformal_score": "normalized"}
    later |= {"width_penalty": 5.0, "lengthscale": 3.0, "center_ridge": 2.0, "width_ridge": 3.0}
    model.set_params(**{key: value for key, value in later.items() if key in model.get_params(deep=False)})
    assert np.array_equal(model.predict_interval(X_NEW, [0.8, 0.9]), ends)


# ---------------------------------------------------------------- parameters


BAD = [
    ("rqr", {"width_penalty": -1.0}, "width_penalty=-1.0: expected a finite number >= 0"),
    ("rqr", {"width_penalty": np.inf}, "width_penalty=inf: expected a finite number >= 0"),
    ("rqr", {"width_penalty": "auto"}, "width_penalty='auto': expected a finite number >= 0"),
    ("rqr", {"lengthscale": "median"}, "lengthscale='median': expected 'auto' or a finite number > 0"),
    ("rqr", {"center_ridge": 0}, "center_ridge=0: expected 'auto' or a finite number > 0"),
    ("rqr", {"width_ridge": np.nan}, "width_ridge=nan: expected 'auto' or a finite number > 0"),
    ("rqr", {"max_rank": 0}, "max_rank=0: expected an int >= 1"),
    ("rqr", {"max_iter": 0}, "max_iter=0: expected an int >= 1"),
    ("rqr", {"cv": 1}, "cv=1: expected an int >= 2"),
    ("het-gp", {"start": "warm"}, "start='warm': expected one of"),
    ("het-gp", {"max_iter": -3}, "max_iter=-3: expected an int >= 1"),
    ("squared-sos", {"lengthscale": {"lower": 1.0, "upper": 2.0}}, "lengthscale=.*: expected 'auto', 'median', a num"),
    ("squared-sos", {"lengthscale": -1.0}, r"lengthscale=\(-1.0,\): expected numbers > 0"),
    ("squared-sos", {"test_level": 0}, "test_level=0: expected None or a number in"),
    ("squared-sos", {"tol": 0.0}, "tol=0.0: expected a number in"),
    ("squared-sos", {"width_penalty": -1.0}, "width_penalty=-1.0"),
    ("squared-sos", {"rank": 0}, "rank=0: expected"),
    ("squared-sos", {"preprocessor": "scale"}, "preprocessor='scale': expected"),
    ("squared-sos", {"normalize": 1}, "normalize=1: expected True or False"),
    ("squared-sos", {"residuals": "own"}, "residuals='own': expected"),
    ("squared-sos", {"residuals": "leave-one-out"}, "residuals='leave-one-out' with the point model Ridge.*: expected"),
    ("squared-sos", {"cv": 1}, "cv=1: expected an int >= 2"),
    ("squared-sos", {"cv": TimeSeriesSplit(3)}, "cv=TimeSeriesSplit.*: expected an int >= 2"),
    ("squared-sos", {"test_level": 1e-9}, "test_level=1e-09: expected at least 0.0001, as p-values of the 9999 perm"),
]


@pytest.mark.parametrize(("name", "settings", "message"), BAD)
def test_wrong_parameters_are_explained(name, settings, message):
    with pytest.raises(ValueError, match=message):
        fast(name, **settings).fit(X, Y)


def test_a_missing_hetgpy_is_named(monkeypatch):
    model = fast("het-gp")
    monkeypatch.setitem(sys.modules, "hetgpy", None)
    with pytest.raises(ImportError, match="pip install hetgpy"):
        model.fit(X, Y)


def test_verbose_lines(capsys):
    fast("squared-sos", verbose=1, lengthscale="auto", cv=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[SquaredSoS] point model Ridge fitted to 40 rows"
    assert lines[-1] == "[SquaredSoS] calibrated on 40 rows"
    assert all(line.startswith("[SquaredSoS] ") for line in lines)
    model = fast("rqr", verbose=1, width_ridge="auto").fit(X, Y)
    lines = [line.removeprefix("[RelaxedQuantileCQR] ") for line in capsys.readouterr().out.splitlines()]
    center, width = model.center_ridge_, model.width_ridge_
    assert lines[0] == f"ridges {center:.3g} of the centre and {width:.3g} of the widths"
    assert lines[1].startswith("ends learnt from 40 rows and ")
    assert lines[2] == "calibrated on 40 rows"


# ---------------------------------------------------------------- tables


def test_squared_sos_takes_categories_with_a_preprocessor():
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    rng = np.random.default_rng(0)
    ward, dose = rng.choice(["north", "south", "west"], 60), rng.uniform(0, 2, 60)
    y = dose * (ward == "north") + (1 + (ward == "west")) * rng.standard_normal(60)
    table = pandas.DataFrame({"ward": ward, "dose": dose})
    encoder = make_column_transformer((OneHotEncoder(), ["ward"]), (StandardScaler(), ["dose"]))
    model = SquaredSoS(preprocessor=encoder, lengthscale="median", random_state=0, tol=1e-2).fit(table, y)
    assert model.reader_.model_sees_points
    points = encoder.fit(table.iloc[model.learning_rows_]).transform(table)
    np.testing.assert_allclose(model.predict(table), model.estimator_.predict(points), rtol=1e-12)


# ---------------------------------------------------------------- coverage

SETTINGS = {
    "rqr": {"cv": 2, "center_ridge": 0.1},
    "squared-sos": {"estimator": SmoothingSplineRegressor(), "lengthscale": 0.5, "rank": 10, "tol": 1e-2},
}


def learnt(name, law_number, kind):
    if name == "het-gp":
        needs_hetgpy()
    rows = LAWS[law_number].draw(np.random.default_rng(100 + law_number), 60)
    settings = {"calibration": kind, "calibration_size": None, "random_state": 0, **SETTINGS.get(name, {})}
    return RIVALS[name](**settings).fit(*rows)


# Narrow bands may be emptied by calibration, and a test row may lie outside the learning rows: neither harms coverage.
@pytest.mark.filterwarnings("ignore::sosbands.exceptions.CrossedIntervalsWarning")
@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("name", RIVALS)
def test_coverage(name, kind):
    """Symmetric calibration with skewed, heavy-tailed noise, asymmetric with normal noise."""
    number = 2 if kind == "symmetric" else 0
    model = learnt(name, number, kind)
    cells = ((20, 0.9), (100, 0.9))
    run_coverage_suite(lambda _: model, kind, laws=(LAWS[number],), cells=cells, draws=200, n_test=100, seed=number)


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
def test_coverage_within_groups():
    model = learnt("squared-sos", 2, "symmetric")
    run_group_suite(lambda _: model, "symmetric", draws=200)
