"""Every wrong argument is named in an error that says what was expected."""

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.exceptions import (
    MultiOutputError,
    NotCalibratedError,
    NotFittedError,
    SymmetricLimitError,
)
from sosbands.regressors import PAPER_SETTINGS
from spelled import NUMERICS, TESTS, spelled

RNG = np.random.default_rng(0)
N = 30
X = RNG.uniform(-1, 1, (N, 2))
Y = X[:, 0] + RNG.standard_normal(N)
X_NEW = RNG.uniform(-1, 1, (9, 2))
Y_NEW = RNG.standard_normal(9)
MANY = np.stack([Y, Y], axis=1)
NAN_X = np.where(np.arange(2 * N).reshape(N, 2) == 7, np.nan, X)
NAN_Y = np.where(np.arange(N) == 3, np.nan, Y)

FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "tol": 1e-2, "random_state": 0}


# ---------------------------------------------------------------- the constructor, complained about in fit

PARAMETERS = [
    ("estimator", "ridge", "None, a regressor with fit and predict, or a function of X"),
    ("estimator", LinearRegression, "None, a regressor with fit and predict"),
    ("estimator", 3, "None, a regressor with fit and predict"),
    ("estimator", OneHotEncoder(), "None, a regressor with fit and predict"),
    ("confidence_level", 0.0, r"a number in \(0, 1\)"),
    ("confidence_level", 1, r"a number in \(0, 1\)"),
    ("confidence_level", 90, r"a number in \(0, 1\)"),
    ("confidence_level", "0.9", r"a number in \(0, 1\)"),
    ("confidence_level", np.nan, r"a number in \(0, 1\)"),
    ("confidence_level", [0.8, 0.9], r"a number in \(0, 1\)"),
    ("confidence_level", None, r"a number in \(0, 1\)"),
    ("calibration", "plain", "'symmetric' or 'asymmetric'"),
    ("calibration", None, "'symmetric' or 'asymmetric'"),
    ("calibration", ["symmetric"], "'symmetric' or 'asymmetric'"),
    ("conformal_score", "times", r"one of \['auto', 'added', 'scaled'\]"),
    ("conformal_score", None, r"one of \['auto', 'added', 'scaled'\]"),
    ("calibration_size", 0, "a fraction in .*number of rows >= 1, 'cross', or None"),
    ("calibration_size", -3, "a fraction in .*number of rows >= 1, 'cross', or None"),
    ("calibration_size", 1.0, "a fraction in .*number of rows >= 1, 'cross', or None"),
    ("calibration_size", 0.0, "a fraction in .*number of rows >= 1, 'cross', or None"),
    ("calibration_size", True, "a fraction in .*number of rows >= 1, 'cross', or None"),
    ("calibration_size", "half", "a fraction in .*number of rows >= 1, 'cross', or None"),
    ("calibration_size", 30, "leaves none of the n_samples = 30 rows.*expected fewer than 30 held back"),
    ("calibration_size", 0.99, "leaves none of the n_samples = 30 rows.*expected fewer than 30 held back"),
    ("symmetry_penalty", -1.0, "a number >= 0 or inf"),
    ("symmetry_penalty", np.nan, "a number >= 0 or inf"),
    ("symmetry_penalty", "tuned", "'auto', a number >= 0, inf, or for bands.symmetry_kind='operator' a pair"),
    ("symmetry_penalty", None, "a number >= 0 or inf"),
    ("symmetry_penalty", (1.0, 1.0), "a pair|for symmetry_kind='operator' a pair"),
    ("symmetry_kind", "both", "one of.*training.*operator"),
    ("lengthscale", "mean", "'auto', 'median', a number > 0, one per feature, or a dict"),
    ("lengthscale", -1.0, "numbers > 0"),
    ("lengthscale", 0.0, "numbers > 0"),
    ("lengthscale", np.nan, "numbers > 0"),
    ("lengthscale", [1.0, 2.0, 3.0], r"expected one number or 2 \(one per feature\)"),
    ("lengthscale", [[1.0, 2.0]], "'auto', 'median', a number > 0, one per feature, or a dict"),
    ("lengthscale", None, "numbers > 0|'median', a number > 0"),
    ("lengthscale", {"lower": 1.0}, "the keys 'lower' and 'upper'"),
    ("lengthscale", {"lower": 1.0, "upper": 2.0, "middle": 1.0}, "the keys 'lower' and 'upper'"),
    ("lengthscale", {"lower": 1.0, "upper": -2.0}, "numbers > 0"),
    ("lengthscale", {"lower": "auto", "upper": 2.0}, "'median', a number > 0"),
    ("kernel", "matern", "one of.*matern52"),
    ("kernel", "precomputed", "the name of a kernel of rows"),
    ("kernel", 5, "a name, a scikit-learn kernel, a callable"),
    ("kernel", RBF() + WhiteKernel(), "a noise term such as WhiteKernel.*remove it"),
    ("preprocessor", "scale", "'standardize', None or a transformer"),
    ("preprocessor", LinearRegression(), "'standardize', None or a transformer"),
    ("preprocessor", FunctionTransformer, "'standardize', None or a transformer"),
    ("preprocessor", FunctionTransformer(lambda X: X[:, 0]), r"must be a table of finite numbers.*got shape \(15,\)"),
    ("preprocessor", FunctionTransformer(lambda X: X * np.nan), "must be a table of finite numbers"),
    ("preprocessor", FunctionTransformer(lambda X: np.full(X.shape, "a")), "must be a table of finite numbers"),
    ("preprocessor", FunctionTransformer(lambda X: X[:, :0]), r"must be a table of finite numbers.*\(15, 0\)"),
    ("width_penalty", -1.0, "a number >= 0"),
    ("width_penalty", np.inf, "a number >= 0"),
    ("width_penalty", "10", "a number >= 0"),
    ("base_scale", "std", "one of.*none.*model.*forest.*both"),
    ("base_scale", None, "one of.*none.*model.*forest.*both"),
    ("noise_features", "x", "'auto', or some of 'inputs'"),
    ("noise_features", "inputs+lengthscales", "'auto', or some of 'inputs'"),
    ("noise_features", "scale+scale", "'auto', or some of 'inputs'"),
    ("noise_features", None, "'auto', or some of 'inputs'"),
    ("max_seconds", -1, "None or a number >= 0"),
    ("max_seconds", "long", "None or a number >= 0"),
    ("trace_penalty", -1e-9, "a number >= 0"),
    ("frobenius_penalty", 0, "a number > 0"),
    ("frobenius_penalty", True, "a number >= 0"),
    ("rank", 0, "'auto', 'exact', an int >= 1 or a float in"),
    ("rank", 1.5, "'auto', 'exact', an int >= 1 or a float in"),
    ("rank", "full", "'auto', 'exact', an int >= 1 or a float in"),
    ("rank", None, "'auto', 'exact', an int >= 1 or a float in"),
    ("residuals", "cv", "one of.*in-sample.*leave-one-out.*out-of-fold"),
    ("residuals", "leave-one-out", "expected a GaussianProcess"),
    ("normalize", "yes", "True, False, 'residuals' or a PenaltyScale"),
    ("normalize", 1, "True, False, 'residuals' or a PenaltyScale"),
    ("normalize", "residuals", "True or False"),
    ("learning_coverage", 0.0, r"a number in \(0, 1\]"),
    ("learning_coverage", 1.5, r"a number in \(0, 1\]"),
    ("learning_coverage", "all", r"a number in \(0, 1\]"),
    ("constant", 1, "True or False"),
    ("constant", "yes", "True or False"),
    ("nested_coverages", 0.9, r"None or increasing numbers in \(0, 1\)"),
    ("nested_coverages", (0.9, 0.5), r"increasing numbers in \(0, 1\]"),
    ("nested_coverages", np.array([0.5, 1.0]), r"None or increasing numbers in \(0, 1\)"),
    ("outlier_fraction", 1.0, r"a number in \[0, 1\)"),
    ("outlier_fraction", -0.1, r"a number in \[0, 1\)"),
    ("outlier_fraction", False, r"a number in \[0, 1\)"),
    ("outlier_fraction", np.zeros(2), r"a number in \[0, 1\)"),
    ("criterion", "aic", "one of.*hsic.*dcor"),
    ("symmetry_test", "t-test", "one of.*kruskal-wallis"),
    ("test_level", 5, r"a number in \(0, 1\)"),
    ("bands", {"rank": 5}, r"None or a sosbands\.bands\.BandSettings"),
    ("bands", BandSettings, r"None or a sosbands\.bands\.BandSettings"),
    ("rules", "hsic", "None or a sosbands.tuning.Rules"),
    ("rules", {"criterion": "hsic"}, "None or a sosbands.tuning.Rules"),
    ("cv", 1, "an int >= 2"),
    ("cv", 5.0, "an int >= 2"),
    ("cv", None, "an int >= 2"),
    ("solver", "scs", "one of.*newton"),
    ("solver", None, "one of.*newton"),
    ("max_iterations", 0, "an int >= 1"),
    ("coupled_rows", 0.5, "None or an int >= 1"),
    ("tol", 0, r"a number in \(0, 1\)"),
    ("tol", 2.0, r"a number in \(0, 1\)"),
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

    slow = [name for name, value, _ in PARAMETERS if name not in ("estimator", "calibration_size")]
    late = {"kernel": "matern", "lengthscale": [1.0, 2.0, 3.0], "rank": 0, "width_penalty": -1.0, "tol": 2.0}
    assert set(late) <= set(slow)
    for name, value in late.items():
        with pytest.raises(ValueError, match=name):
            SoSBandRegressor(never, **spelled(**{name: value})).fit(X, Y)


def test_every_parameter_is_in_the_table():
    assert {*SoSBandRegressor().get_params(deep=False), *NUMERICS, *TESTS} == {name for name, _, _ in PARAMETERS}


# ---------------------------------------------------------------- the calls


@cache
def fitted(calibration="symmetric", **options):
    return new(calibration=calibration, **options).fit(X, Y)


def new(**options):
    return SoSBandRegressor(**spelled(**{"estimator": LinearRegression(), **FAST, **options}))


def learnt():
    return new(calibration_size=None).fit(X, Y)


def grouped():
    return learnt().conformalize(X_NEW, Y_NEW, groups=["a", "b", "c"] * 3)


def weighted():
    return learnt().conformalize(X_NEW, Y_NEW, likelihood_ratio=np.ones(9))


CALLS = {
    # fit
    "X 1-D": (lambda: new().fit(X[:, 0], Y), ValueError, "Expected 2D array, got 1D"),
    "X 3-D": (lambda: new().fit(X[None], Y), ValueError, "expected.*2|dim 3"),
    "X empty": (lambda: new().fit(X[:0], Y[:0]), ValueError, r"0 sample\(s\).*minimum of 2"),
    "X one row": (lambda: new().fit(X[:1], Y[:1]), ValueError, r"1 sample\(s\).*minimum of 2"),
    "X no column": (lambda: new().fit(X[:, :0], Y), ValueError, r"0 feature\(s\).*minimum of 1"),
    "X NaN": (lambda: new().fit(NAN_X, Y), ValueError, "X contains NaN"),
    "X inf": (lambda: new().fit(np.where(np.isnan(NAN_X), np.inf, X), Y), ValueError, "X contains infinity"),
    "X words": (
        lambda: new(preprocessor="standardize").fit(np.full((N, 2), "a"), Y),
        ValueError,
        "could not convert string to float",
    ),
    "X complex": (lambda: new().fit(X + 1j, Y), ValueError, "Complex data not supported"),
    "X None": (lambda: new().fit(None, Y), ValueError, "Expected 2D array, got scalar"),
    "X 1-D, transformer": (
        lambda: new(preprocessor=FunctionTransformer()).fit(X[:, 0], Y),
        ValueError,
        r"X has shape \(30,\): expected two dimensions",
    ),
    "X one row, transformer": (
        lambda: new(preprocessor=FunctionTransformer()).fit(X[:1], Y[:1]),
        ValueError,
        "X has n_samples = 1 rows: expected at least 2",
    ),
    "y None": (lambda: new().fit(X, None), ValueError, "y is None: expected one per row"),
    "y short": (
        lambda: new().fit(X, Y[:-1]),
        ValueError,
        r"y has shape \(29,\): expected one .* row of X, shape \(30,\)",
    ),
    "y NaN": (lambda: new().fit(X, NAN_Y), ValueError, "y contains NaN"),
    "y inf": (lambda: new().fit(X, np.full(N, np.inf)), ValueError, "y contains infinity"),
    "y words": (lambda: new().fit(X, ["low"] * N), ValueError, "y has dtype .*: expected real numbers"),
    "y complex": (
        lambda: new().fit(X, Y + 1j),
        ValueError,
        r"complex128: .*\(Complex data not supported\)",
    ),
    "y two columns": (lambda: new().fit(X, MANY), MultiOutputError, r"y has shape \(30, 2\): expected one target"),
    "y 3-D": (
        lambda: new().fit(X, MANY[None]),
        ValueError,
        r"y has shape \(1, 30, 2\): expected one .* row of X, shape \(30,\)",
    ),
    "y scalar": (
        lambda: new().fit(X, 3.0),
        ValueError,
        r"y has shape \(\): expected one .* row of X, shape \(30,\)",
    ),
    "y huge": (lambda: new().fit(X, Y * 1e300), ValueError, "y has entries as large as .*: expected at most 1e.150"),
    "groups short": (lambda: new().fit(X, Y, groups=[1, 2]), ValueError, r"groups has shape \(2,\).*\(30,\)"),
    "groups 2-D": (lambda: new().fit(X, Y, groups=MANY), ValueError, r"groups has shape \(30, 2\).*\(30,\)"),
    "groups NaN": (lambda: new().fit(X, Y, groups=NAN_Y), ValueError, "groups has labels that are NaN"),
    "groups mixed": (
        lambda: new().fit(X, Y, groups=["a"] * 29 + [1]),
        ValueError,
        "groups has labels of type int, str: expected all strings or all numbers",
    ),
    "groups without calibration": (
        lambda: new(calibration_size=None).fit(X, Y, groups=np.ones(N)),
        ValueError,
        "groups was given: expected None with calibration_size=None",
    ),
    "lengthscale of a kernel object": (
        lambda: new(kernel=RBF(), lengthscale=1.0).fit(X, Y),
        ValueError,
        "lengthscale=1.0 has no effect on kernel=RBF.*leave it out",
    ),
    "two lengthscales and inf": (
        lambda: new(lengthscale={"lower": 1.0, "upper": 2.0}, symmetry_penalty=np.inf).fit(X, Y),
        SymmetricLimitError,
        "lengthscale differs below and above: expected the same.*symmetry_penalty=inf",
    ),
    "two lengthscales and operators": (
        lambda: new(lengthscale={"lower": 1.0, "upper": 2.0}, symmetry_kind="operator").fit(X, Y),
        SymmetricLimitError,
        "lengthscale differs below and above: expected the same.*symmetry_kind='operator'",
    ),
    "nuclear penalty alone": (
        lambda: new(symmetry_kind="operator", symmetry_penalty=(1.0, 0.0)).fit(X, Y),
        ValueError,
        "symmetry_penalty=.*needs a squared Frobenius penalty",
    ),
    "function of another shape": (
        lambda: new().set_params(estimator=lambda X: X).fit(X, Y),
        ValueError,
        r"^estimator: output of the function .* has shape \(15, 2\): expected \(15,\)",
    ),
    "function of NaN": (
        lambda: new().set_params(estimator=lambda X: X[:, 0] * np.nan).fit(X, Y),
        ValueError,
        "^estimator: output of the function .* has 15 of 15 entries that are NaN or infinite",
    ),
    # before fit, before calibration
    "predict before fit": (lambda: new().predict(X), NotFittedError, "not fitted yet"),
    "intervals before fit": (lambda: new().predict_interval(X), NotFittedError, "not fitted yet"),
    "conformalize before fit": (lambda: new().conformalize(X, Y), NotFittedError, "not fitted yet"),
    "support before fit": (lambda: new().support(X), NotFittedError, "not fitted yet"),
    "summary before fit": (lambda: new().summary(), NotFittedError, "not fitted yet"),
    "quantile before fit": (lambda: new().quantile(0.9), NotFittedError, "not fitted yet"),
    "evaluate before fit": (lambda: new().evaluate(X, Y), NotFittedError, "not fitted yet"),
    "intervals before calibration": (
        lambda: learnt().predict_interval(X_NEW),
        NotCalibratedError,
        r"this SoSBandRegressor needs a calibration: call conformalize\(X, y\) first",
    ),
    "quantile before calibration": (lambda: learnt().quantile(), NotCalibratedError, "call conformalize"),
    "scores before calibration": (lambda: learnt().scores_, NotCalibratedError, "call conformalize"),
    "evaluate before calibration": (lambda: learnt().evaluate(X, Y), NotCalibratedError, "call conformalize"),
    # conformalize
    "conformalize columns": (
        lambda: learnt().conformalize(X[:, :1], Y),
        ValueError,
        "X has 1 features, but SoSBandRegressor is expecting 2 features",
    ),
    "conformalize y short": (
        lambda: learnt().conformalize(X_NEW, Y_NEW[:3]),
        ValueError,
        r"y has shape \(3,\): expected one entry per row of X, shape \(9,\)",
    ),
    "conformalize y two columns": (lambda: learnt().conformalize(X, MANY), MultiOutputError, "y has shape"),
    "conformalize y NaN": (lambda: learnt().conformalize(X, NAN_Y), ValueError, "y contains NaN"),
    "conformalize empty": (lambda: learnt().conformalize(X[:0], Y[:0]), ValueError, "minimum of 1 is required"),
    "conformalize groups": (
        lambda: learnt().conformalize(X_NEW, Y_NEW, groups=[1]),
        ValueError,
        r"groups has shape \(1,\).*\(9,\)",
    ),
    "ratio short": (
        lambda: learnt().conformalize(X_NEW, Y_NEW, likelihood_ratio=[1.0]),
        ValueError,
        r"likelihood_ratio has shape \(1,\).*\(9,\)",
    ),
    "ratio negative": (
        lambda: learnt().conformalize(X_NEW, Y_NEW, likelihood_ratio=-np.ones(9)),
        ValueError,
        "likelihood_ratio has the entry -1.0: expected numbers >= 0",
    ),
    "ratio zero": (
        lambda: learnt().conformalize(X_NEW, Y_NEW, likelihood_ratio=np.zeros(9)),
        ValueError,
        "likelihood_ratio is zero in every row: expected a positive entry",
    ),
    "ratio NaN": (
        lambda: learnt().conformalize(X_NEW, Y_NEW, likelihood_ratio=np.full(9, np.nan)),
        ValueError,
        "likelihood_ratio has 9 entries that are NaN",
    ),
    "ratio words": (
        lambda: learnt().conformalize(X_NEW, Y_NEW, likelihood_ratio=["1"] * 9),
        ValueError,
        "likelihood_ratio has dtype.*expected real numbers",
    ),
    # prediction
    "predict columns": (lambda: fitted().predict(X[:, :1]), ValueError, "X has 1 features.*expecting 2 features"),
    "predict NaN": (lambda: fitted().predict(NAN_X), ValueError, "X contains NaN"),
    "predict empty": (lambda: fitted().predict(X[:0]), ValueError, "minimum of 1 is required"),
    "intervals columns": (
        lambda: fitted().predict_interval(np.ones((3, 5))),
        ValueError,
        "X has 5 features.*expecting 2 features",
    ),
    "support columns": (lambda: fitted().support(X[:, :1]), ValueError, "X has 1 features.*expecting 2"),
    "level 0": (lambda: fitted().predict_interval(X, 0), ValueError, r"confidence_level=0: expected.*\(0, 1\)"),
    "level 1": (lambda: fitted().predict_interval(X, 1.0), ValueError, r"confidence_level=1.0: expected.*\(0, 1\)"),
    "level 95": (lambda: fitted().predict_interval(X, 95), ValueError, r"confidence_level=95: expected.*\(0, 1\)"),
    "level word": (lambda: fitted().predict_interval(X, "0.9"), ValueError, "confidence_level='0.9': expected"),
    "level NaN": (lambda: fitted().predict_interval(X, np.nan), ValueError, "confidence_level=nan: expected"),
    "levels empty": (
        lambda: fitted().predict_interval(X, []),
        ValueError,
        r"confidence_level=\[\]: expected.*non-empty",
    ),
    "levels mixed": (lambda: fitted().predict_interval(X, [0.9, 2]), ValueError, "confidence_level=2: expected"),
    "levels 2-D": (
        lambda: fitted().predict_interval(X, [[0.9]]),
        ValueError,
        r"confidence_level=\[\[0.9\]\]: expected",
    ),
    "quantile level": (lambda: fitted().quantile(1.5), ValueError, "=1.5: expected a number in"),
    "share": (
        lambda: fitted("asymmetric").predict_interval(X, lower_share=1.5),
        ValueError,
        "lower_share=1.5: expected",
    ),
    "share word": (
        lambda: fitted("asymmetric").predict_interval(X, lower_share="low"),
        ValueError,
        "lower_share='low': expected",
    ),
    "share, symmetric": (
        lambda: fitted().predict_interval(X, lower_share=0.2),
        ValueError,
        "lower_share=0.2 with calibration='symmetric': expected 0.5",
    ),
    "groups missing": (
        lambda: grouped().predict_interval(X_NEW),
        ValueError,
        "groups=None: expected one value per row",
    ),
    "groups unseen": (
        lambda: grouped().predict_interval(X_NEW[:2], groups=["a", "z"]),
        ValueError,
        "groups has labels that conformalize has not seen, 'z': expected 'a', 'b', 'c'",
    ),
    "groups not asked for": (
        lambda: fitted().predict_interval(X, groups=np.ones(N)),
        ValueError,
        "groups was given: expected None",
    ),
    "ratio missing": (
        lambda: weighted().predict_interval(X_NEW),
        ValueError,
        "likelihood_ratio=None: expected one value per row",
    ),
    "ratio not asked for": (
        lambda: fitted().predict_interval(X, likelihood_ratio=np.ones(N)),
        ValueError,
        "likelihood_ratio was given: expected None",
    ),
    "ratio short at prediction": (
        lambda: weighted().predict_interval(X_NEW, likelihood_ratio=np.ones(2)),
        ValueError,
        r"likelihood_ratio has shape \(2,\).*\(9,\)",
    ),
    "evaluate y short": (lambda: fitted().evaluate(X, Y[:3]), ValueError, r"y has shape \(3,\).*\(30,\)"),
    "evaluate y two columns": (lambda: fitted().evaluate(X, MANY), MultiOutputError, "y has shape"),
    "evaluate levels": (
        lambda: fitted().evaluate(X, Y, [0.8, 0.9]),
        ValueError,
        "confidence_level=.*expected a number",
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::sosbands.exceptions.SosbandsWarning")
def test_wrong_calls_are_explained(name):
    call, error, message = CALLS[name]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        call()
    assert error is ValueError or type(caught.value) is error


def test_the_table_is_long_enough_and_rejects_a_silent_call():
    assert len(PARAMETERS) + len(CALLS) >= 60
    assert len({re.sub(r"\W", "", name) for name in CALLS}) == len(CALLS)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"), pytest.raises(ValueError, match="anything"):
        new().fit(X, Y)


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
