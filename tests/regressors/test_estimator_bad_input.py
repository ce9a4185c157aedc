"""Every wrong argument is named in an error that says what was expected."""

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from small_fits import fast
from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.exceptions import (
    MultiOutputError,
    NotCalibratedError,
    NotFittedError,
    SymmetricLimitError,
)
from spelled import TESTS, spelled

RNG = np.random.default_rng(0)
N = 30
X = RNG.uniform(-1, 1, (N, 2))
Y = X[:, 0] + RNG.standard_normal(N)
X_NEW = RNG.uniform(-1, 1, (9, 2))
Y_NEW = RNG.standard_normal(9)
MANY = np.stack([Y, Y], axis=1)
NAN_X = np.where(np.arange(2 * N).reshape(N, 2) == 7, np.nan, X)
NAN_Y = np.where(np.arange(N) == 3, np.nan, Y)


# ---------------------------------------------------------------- the constructor, complained about in fit

PARAMETERS = [
    ("estimator", "ridge", "None, a regressor with fit and predict, a pair or triple of them, or a function of X"),
    ("estimator", LinearRegression, "None, a regressor with fit and predict"),
    ("estimator", 3, "None, a regressor with fit and predict"),
    ("estimator", OneHotEncoder(), "None, a regressor with fit and predict"),
    ("confidence_level", 0.0, r"a number in \(0, 1\)"),
    ("confidence_level", 1, r"a number in \(0, 1\)"),
    ("confidence_level", [0.8, 0.9], r"a number in \(0, 1\)"),
    ("confidence_level", None, r"a number in \(0, 1\)"),
    ("calibration", "plain", "'symmetric' or 'asymmetric'"),
    ("calibration", ["symmetric"], "'symmetric' or 'asymmetric'"),
    ("conformal_score", "times", r"one of \['auto', 'added', 'scaled', 'shifted'\]"),
    ("calibration_size", 0, "'auto', a fraction in .*number of rows >= 1, 'cross', 'out-of-fold', or None"),
    ("calibration_size", 1.0, "'auto', a fraction in .*number of rows >= 1, 'cross', 'out-of-fold', or None"),
    ("calibration_size", True, "'auto', a fraction in .*number of rows >= 1, 'cross', 'out-of-fold', or None"),
    ("calibration_size", "half", "'auto', a fraction in .*number of rows >= 1, 'cross', 'out-of-fold', or None"),
    ("calibration_size", 30, "leaves none of the n_samples = 30 rows.*expected fewer than 30 held back"),
    ("calibration_size", 0.99, "leaves none of the n_samples = 30 rows.*expected fewer than 30 held back"),
    ("symmetry_penalty", -1.0, "a number >= 0 or inf"),
    ("symmetry_penalty", np.nan, "a number >= 0 or inf"),
    ("symmetry_penalty", "tuned", "'auto', a number >= 0, inf, or for bands.symmetry_kind='operator' a pair"),
    ("symmetry_penalty", None, "a number >= 0 or inf"),
    ("symmetry_penalty", (1.0, 1.0), "a pair|for symmetry_kind='operator' a pair"),
    ("lengthscale", "mean", "'auto', 'median', a number > 0, one per feature, or a dict"),
    ("lengthscale", -1.0, "numbers > 0"),
    ("lengthscale", [1.0, 2.0, 3.0], r"expected one number or 2 \(one per feature\)"),
    ("lengthscale", [[1.0, 2.0]], "'auto', 'median', a number > 0, one per feature, or a dict"),
    ("lengthscale", None, "numbers > 0|'median', a number > 0"),
    ("lengthscale", {"lower": 1.0}, "the keys 'lower' and 'upper'"),
    ("lengthscale", {"lower": 1.0, "upper": 2.0, "middle": 1.0}, "the keys 'lower' and 'upper'"),
    ("lengthscale", {"lower": 1.0, "upper": -2.0}, "numbers > 0"),
    ("lengthscale", {"lower": "auto", "upper": 2.0}, "'median', a number > 0"),
    ("kernel", "precomputed", "the name of a kernel of rows"),
    ("kernel", RBF() + WhiteKernel(), "a noise term such as WhiteKernel.*remove it"),
    ("target_range", (3, 1), "a pair such as"),
    ("target_transform", "cube", "'auto', None, 'log', 'sqrt', or a transformer"),
    ("preprocessor", "scale", "'standardize', None or a transformer"),
    ("preprocessor", LinearRegression(), "'standardize', None or a transformer"),
    ("preprocessor", FunctionTransformer, "'standardize', None or a transformer"),
    ("preprocessor", FunctionTransformer(lambda X: X[:, 0]), r"must be a table of finite numbers.*got shape \(20,\)"),
    ("preprocessor", FunctionTransformer(lambda X: X * np.nan), "must be a table of finite numbers"),
    ("preprocessor", FunctionTransformer(lambda X: np.full(X.shape, "a")), "must be a table of finite numbers"),
    ("preprocessor", FunctionTransformer(lambda X: X[:, :0]), r"must be a table of finite numbers.*\(20, 0\)"),
    ("width_penalty", -1.0, "a number >= 0"),
    ("width_penalty", np.inf, "a number >= 0"),
    ("base_scale", "std", "one of.*none.*model.*forest.*both"),
    ("base_scale", None, "one of.*none.*model.*forest.*both"),
    ("noise_features", "x", "'auto', or some of 'inputs'"),
    ("noise_features", "inputs+lengthscales", "'auto', or some of 'inputs'"),
    ("noise_features", "scale+scale", "'auto', or some of 'inputs'"),
    ("noise_features", None, "'auto', or some of 'inputs'"),
    ("max_seconds", -1, "None or a number >= 0"),
    ("max_seconds", "long", "None or a number >= 0"),
    ("residuals", "cv", "one of.*in-sample.*leave-one-out.*out-of-fold"),
    ("residuals", "leave-one-out", "expected a GaussianProcess"),
    ("normalize", "residuals", "True or False"),
    ("learning_coverage", 0.0, r"a number in \(0, 1\]"),
    ("learning_coverage", 1.5, r"a number in \(0, 1\]"),
    ("learning_coverage", "all", r"a number in \(0, 1\]"),
    ("nested_coverages", 0.9, r"None or increasing numbers in \(0, 1\)"),
    ("nested_coverages", (0.9, 0.5), r"increasing numbers in \(0, 1\]"),
    ("nested_coverages", np.array([0.5, 1.0]), r"None or increasing numbers in \(0, 1\)"),
    ("criterion", "aic", "one of.*hsic.*dcor"),
    ("symmetry_test", "t-test", "one of.*kruskal-wallis"),
    ("test_level", 5, r"a number in \(0, 1\)"),
    ("bands", {"rank": 5}, r"None or a sosbands\.bands\.BandSettings"),
    ("bands", BandSettings, r"None or a sosbands\.bands\.BandSettings"),
    ("rules", "hsic", "None or a sosbands.tuning.Rules"),
    ("rules", {"criterion": "hsic"}, "None or a sosbands.tuning.Rules"),
    ("cv", 1, "an int >= 2"),
    ("cv", None, "an int >= 2"),
    ("n_jobs", 0, "None or an int that is not 0"),
    ("n_jobs", 2.5, "None or an int that is not 0"),
    ("random_state", "seed", "an int >= 0, a numpy RandomState or None"),
    ("random_state", -1, "an int >= 0, a numpy RandomState or None"),
    ("verbose", -1, "an int >= 0"),
    ("verbose", "loud", "an int >= 0"),
]


@pytest.mark.parametrize(("name", "value", "expected"), PARAMETERS, ids=lambda v: str(v)[:20])
def test_wrong_parameters_are_named_in_fit(name, value, expected):
    with pytest.raises(ValueError, match=f"(?s)^(bands.)?{TESTS.get(name, name)}.*(?:{expected})"):
        SoSBandRegressor(**spelled(**{"estimator": LinearRegression(), name: value})).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "value"),
    [("lengthscale", 1.0), ("width_penalty", 2.0), ("learning_coverage", 0.5), ("symmetry_penalty", (1.0, 1.0))],
)
def test_what_the_data_may_choose_is_no_numeric(name, value):
    settings = BandSettings(symmetry_kind="operator").replace(**{name: value})
    expected = rf"bands.{name}={value!r}: expected 'auto', because {name} is a parameter of the regressor itself"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        SoSBandRegressor(bands=settings).fit(X, Y)


def test_wrong_parameters_are_found_before_anything_slow():
    def never(_):
        pytest.fail("the point model was called")

    for name, value in {"lengthscale": [1.0, 2.0, 3.0], "width_penalty": -1.0, "cv": 1}.items():
        with pytest.raises(ValueError, match=name):
            SoSBandRegressor(never, **{name: value}).fit(X, Y)


def test_every_parameter_is_in_the_table():
    """Fields of ``bands=`` are refused where `BandSettings` is made."""
    assert {*SoSBandRegressor().get_params(deep=False), *TESTS} <= {name for name, _, _ in PARAMETERS}


# ---------------------------------------------------------------- the calls


new = fast


@cache
def fitted():
    return new().fit(X, Y)


def learnt():
    return new(calibration_size=None).fit(X, Y)


CALLS = {
    "X 1-D": (lambda: new().fit(X[:, 0], Y), "Expected 2D array, got 1D"),
    "X 3-D": (lambda: new().fit(X[None], Y), "expected.*2|dim 3"),
    "X empty": (lambda: new().fit(X[:0], Y[:0]), r"0 sample\(s\).*minimum of 2"),
    "X one row": (lambda: new().fit(X[:1], Y[:1]), r"1 sample\(s\).*minimum of 2"),
    "X no column": (lambda: new().fit(X[:, :0], Y), r"0 feature\(s\).*minimum of 1"),
    "X NaN": (lambda: new().fit(NAN_X, Y), "X contains NaN"),
    "X inf": (lambda: new().fit(np.where(np.isnan(NAN_X), np.inf, X), Y), "X contains infinity"),
    "X words": (
        lambda: new(preprocessor="standardize").fit(np.full((N, 2), "a"), Y),
        "could not convert string to float",
    ),
    "X complex": (lambda: new().fit(X + 1j, Y), "Complex data not supported"),
    "X None": (lambda: new().fit(None, Y), "Expected 2D array, got scalar"),
    "X 1-D, transformer": (
        lambda: new(preprocessor=FunctionTransformer()).fit(X[:, 0], Y),
        r"X has shape \(30,\): expected two dimensions",
    ),
    "X one row, transformer": (
        lambda: new(preprocessor=FunctionTransformer()).fit(X[:1], Y[:1]),
        "X has n_samples = 1 rows: expected at least 2",
    ),
    "y None": (lambda: new().fit(X, None), "y is None: expected one per row"),
    "y short": (lambda: new().fit(X, Y[:-1]), r"y has shape \(29,\): expected one .* row of X, shape \(30,\)"),
    "y NaN": (lambda: new().fit(X, NAN_Y), "y contains NaN"),
    "y inf": (lambda: new().fit(X, np.full(N, np.inf)), "y contains infinity"),
    "y words": (lambda: new().fit(X, ["low"] * N), "y has dtype .*: expected real numbers"),
    "y complex": (lambda: new().fit(X, Y + 1j), r"complex128: .*\(Complex data not supported\)"),
    "y two columns": (lambda: new().fit(X, MANY), r"y has shape \(30, 2\): expected one target", MultiOutputError),
    "y 3-D": (lambda: new().fit(X, MANY[None]), r"y has shape \(1, 30, 2\): expected one .* row of X, shape \(30,\)"),
    "y huge": (lambda: new().fit(X, Y * 1e300), "y has entries as large as .*: expected at most 1e.150"),
    "groups short": (lambda: new().fit(X, Y, groups=[1, 2]), r"groups has shape \(2,\).*\(30,\)"),
    "groups NaN": (lambda: new().fit(X, Y, groups=NAN_Y), "groups has labels that are NaN"),
    "groups mixed": (
        lambda: new().fit(X, Y, groups=["a"] * 29 + [1]),
        "groups has labels of type int, str: expected all strings or all numbers",
    ),
    "groups without calibration": (
        lambda: new(calibration_size=None).fit(X, Y, groups=np.ones(N)),
        "groups was given: expected None with calibration_size=None",
    ),
    "lengthscale of a kernel object": (
        lambda: new(kernel=RBF(), lengthscale=1.0).fit(X, Y),
        "lengthscale=1.0 has no effect on kernel=RBF.*leave it out",
    ),
    "two lengthscales and inf": (
        lambda: new(lengthscale={"lower": 1.0, "upper": 2.0}, symmetry_penalty=np.inf).fit(X, Y),
        "lengthscale differs below and above: expected the same.*symmetry_penalty=inf",
        SymmetricLimitError,
    ),
    "two lengthscales and operators": (
        lambda: new(lengthscale={"lower": 1.0, "upper": 2.0}, symmetry_kind="operator").fit(X, Y),
        "lengthscale differs below and above: expected the same.*symmetry_kind='operator'",
        SymmetricLimitError,
    ),
    "nuclear penalty alone": (
        lambda: new(symmetry_kind="operator", symmetry_penalty=(1.0, 0.0)).fit(X, Y),
        "symmetry_penalty=.*needs a squared Frobenius penalty",
    ),
    "predict before fit": (lambda: new().predict(X), "not fitted yet", NotFittedError),
    "intervals before fit": (lambda: new().predict_interval(X), "not fitted yet", NotFittedError),
    "conformalize before fit": (lambda: new().conformalize(X, Y), "not fitted yet", NotFittedError),
    "support before fit": (lambda: new().support(X), "not fitted yet", NotFittedError),
    "summary before fit": (lambda: new().summary(), "not fitted yet", NotFittedError),
    "quantile before fit": (lambda: new().quantile(0.9), "not fitted yet", NotFittedError),
    "evaluate before fit": (lambda: new().evaluate(X, Y), "not fitted yet", NotFittedError),
    "intervals before calibration": (
        lambda: learnt().predict_interval(X_NEW),
        r"this SoSBandRegressor needs a calibration: call conformalize\(X, y\) first",
        NotCalibratedError,
    ),
    "evaluate before calibration": (lambda: learnt().evaluate(X, Y), "call conformalize", NotCalibratedError),
    "conformalize columns": (
        lambda: learnt().conformalize(X[:, :1], Y),
        "X has 1 features, but SoSBandRegressor is expecting 2 features",
    ),
    "conformalize y two columns": (lambda: learnt().conformalize(X, MANY), "y has shape", MultiOutputError),
    "conformalize empty": (lambda: learnt().conformalize(X[:0], Y[:0]), "minimum of 1 is required"),
    "conformalize groups": (
        lambda: learnt().conformalize(X_NEW, Y_NEW, groups=[1]),
        r"groups has shape \(1,\).*\(9,\)",
    ),
    "predict columns": (lambda: fitted().predict(X[:, :1]), "X has 1 features.*expecting 2 features"),
    "predict NaN": (lambda: fitted().predict(NAN_X), "X contains NaN"),
    "predict empty": (lambda: fitted().predict(X[:0]), "minimum of 1 is required"),
    "intervals columns": (lambda: fitted().predict_interval(np.ones((3, 5))), "X has 5 features.*expecting 2 features"),
    "support columns": (lambda: fitted().support(X[:, :1]), "X has 1 features.*expecting 2"),
    "evaluate y short": (lambda: fitted().evaluate(X, Y[:3]), r"y has shape \(3,\).*\(30,\)"),
    "evaluate y two columns": (lambda: fitted().evaluate(X, MANY), "y has shape", MultiOutputError),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::sosbands.exceptions.SosbandsWarning")
def test_wrong_calls_are_explained(name):
    call, message, *error = CALLS[name]
    with pytest.raises(*error or [ValueError], match=f"(?s){message}"):
        call()


def test_old_numbers_survive_a_bad_parameter_but_not_bad_data():
    """A typo in set_params costs nothing; a fit that started and failed leaves no mixture."""
    model = new().fit(X, Y)
    before = model.predict_interval(X_NEW)
    with pytest.raises(ValueError, match="tol=-1"):
        model.set_params(bands__tol=-1)
    with pytest.raises(ValueError, match="cv=-1"):
        model.set_params(cv=-1).fit(X, Y)
    assert np.array_equal(model.set_params(cv=5).predict_interval(X_NEW), before)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(X, NAN_Y)
    with pytest.raises(NotFittedError):
        model.predict(X_NEW)


@pytest.mark.parametrize("column", [["x", "y"] * 10, [np.nan, 1.0] * 10, np.array(["2020-01-01"] * 20, dtype="M8[s]")])
def test_columns_that_the_kernel_cannot_compare_name_the_preprocessor(column):
    frame = pd.DataFrame({"a": np.arange(20.0), "b": column})
    with pytest.raises(ValueError, match="pass a `preprocessor`"):
        SoSBandRegressor(preprocessor="standardize").fit(frame, np.arange(20.0))
    model = new().fit(frame.assign(b=np.arange(20.0) ** 2), np.arange(20.0))
    with pytest.raises(ValueError, match="Not finite numbers: 'b', but fit has seen a table of finite numbers only"):
        model.predict(frame)
