"""About forty small configurations of the package, and what each of them says: the values that a refactoring keeps.

They run against whichever checkout of ``sosbands`` can be imported. `settings_of` spells constructor settings as that
checkout wants them, so that this file serves every revision.
"""

import inspect
import linecache
import re
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import sosbands
from sosbands import GaussianProcess, SmoothingSplineRegressor, SoSBandRegressor, baselines, learn_band_path, tuning
from sosbands.bands import learn_nested_bands
from sosbands.online import AdaptiveIntervals, monitor

HERE, PACKAGE = Path(__file__).resolve(), Path(sosbands.__file__).resolve().parent
LEVELS = [0.8, 0.9, 0.95]
SHOWN = 5  # rows whose intervals are kept; `evaluate` sees them all
NO_TWO_ALIKE = re.compile(r"\b[\d.e+-]+(?= s\b| \(relative\))")  # seconds, and gaps, which are rounding errors
DETAIL = {"detail": True} if "detail" in inspect.signature(SoSBandRegressor.summary).parameters else {}
CONFIGURATIONS = {}


def configuration(function):
    CONFIGURATIONS[function.__name__] = function
    return function


def run(name):
    """What the configuration says, and the warnings on the way, each with the line that it was attributed to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said = CONFIGURATIONS[name]()
    return {**said, "warnings": sorted({_warning(one) for one in caught})}


def _warning(one):
    path = Path(one.filename).resolve()
    if path == HERE:
        line = linecache.getline(str(path), one.lineno).strip()
    else:
        line = path.relative_to(PACKAGE.parent).as_posix() if PACKAGE in path.parents else path.name
    return f"{one.category.__name__}: {one.message} [{line}]"


def settings_of(estimator, settings):
    """The flat settings as the constructor wants them: numerics in ``bands=``, tests in ``rules=`` where these are."""
    known = inspect.signature(estimator).parameters
    rest = {name: value for name, value in settings.items() if name not in known}
    kept = {name: value for name, value in settings.items() if name in known}
    if not rest:
        return kept
    rules = {name: rest.pop(name) for name in ("criterion", "symmetry_test", "test_level") if name in rest}
    if rules:
        names = {field.name for field in fields(tuning.Rules)}
        given = {name if name in names else "level": value for name, value in rules.items()}
        kept["rules"] = tuning.Rules(**given)
    if rest:
        from sosbands.bands import BandSettings

        kept["bands"] = BandSettings(**rest)
    return kept


def bands(estimator=None, **settings):
    settings = {"random_state": 0, "max_seconds": None, **settings}
    return SoSBandRegressor(estimator, **settings_of(SoSBandRegressor, settings))


def rows(n=240, seed=0, d=3):
    """Skewed noise whose size follows the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    noise = (0.1 + np.abs(X[:, 0])) * rng.exponential(size=n)
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + noise


def split(n=240, n_new=60, seed=0, d=3):
    X, y = rows(n + n_new, seed, d)
    return X[:n], y[:n], X[n:], y[n:]


def table(n=200, seed=0):
    """Texts, gaps and dates."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Ghent", "Lyon", "Oslo", "Turin"], n)
    size = rng.gamma(2.0, 2.0, n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    y = size + 2.0 * (city == "Oslo") + 0.3 * size * rng.exponential(size=n)
    X = pd.DataFrame({"city": city, "size": np.where(rng.uniform(size=n) < 0.1, np.nan, size), "day": day})
    X.loc[rng.uniform(size=n) < 0.05, "city"] = None
    return X, y


def told(model, X, y, *, levels=LEVELS, share=0.5, **given):
    """Everything that a fitted model says about new rows and about itself."""
    n, some = min(SHOWN, len(y)), {name: value[:SHOWN] for name, value in given.items()}
    said = {
        "predict": model.predict(X[:n]),
        "intervals": model.predict_interval(X[:n], levels, lower_share=share, **some),
        "evaluate": model.evaluate(X, y, lower_share=share, **given),
        "scores": np.sort(model.scores_, axis=0)[:: max(1, len(model.scores_) // 5)],
    }
    if hasattr(model, "summary"):
        said["summary"] = NO_TWO_ALIKE.sub("...", model.summary(**DETAIL)).split("\n")
        said["support"] = model.support(X[:n])
        said["tuning"] = _tuning(model.tuning_)
    return said


def _tuning(report):
    if report is None:
        return None
    names = ("lengthscale", "symmetry_penalty", "base_scale", "noise_features", "width_penalty", "learning_coverage")
    return {
        **{name: str(getattr(report, name)) for name in (*names, "conformal_score", "criterion", "homoscedastic")},
        "sentence": report.sentence,
        "reasons": list(report.reasons),
        "p": [None if test is None else test.p_value for test in (report.independence, report.symmetry)],
        "rows": int(np.sum(report.rows)),
        "criteria": [row["criterion"] for row in report.evaluations],
        "last": {
            name: str(value) for row in report.evaluations[-1:] for name, value in row.items() if name != "criterion"
        },
    }


def plain(value):
    """The same as lists, texts and numbers."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return value.item() if isinstance(value, np.generic) else value


# --- SoSBandRegressor: what the data choose


@configuration
def default():
    X, y, X_new, y_new = split(300)
    return told(bands().fit(X, y), X_new, y_new)


@configuration
def default_few_rows():
    X, y, X_new, y_new = split(40)
    return told(bands(LinearRegression()).fit(X, y), X_new, y_new)


@configuration
def default_one_column():
    X, y, X_new, y_new = split(200, d=1 + 1)
    return told(bands().fit(X[:, :1], y), X_new[:, :1], y_new)


@configuration
def score_added():
    X, y, X_new, y_new = split()
    return told(bands(LinearRegression(), conformal_score="added").fit(X, y), X_new, y_new)


@configuration
def score_scaled():
    X, y, X_new, y_new = split()
    return told(bands(LinearRegression(), conformal_score="scaled").fit(X, y), X_new, y_new)


@configuration
def asymmetric():
    X, y, X_new, y_new = split()
    model = bands(LinearRegression(), calibration="asymmetric").fit(X, y)
    return told(model, X_new, y_new) | {"quantile": model.quantile(0.8, lower_share=0.3)}


@configuration
def asymmetric_share():
    X, y, X_new, y_new = split()
    model = bands(LinearRegression(), calibration="asymmetric", conformal_score="added").fit(X, y)
    return told(model, X_new, y_new, share=0.2)


@configuration
def one_side():
    X, y, X_new, y_new = split()
    model = bands(LinearRegression(), calibration="asymmetric").fit(X, y)
    ends = model.predict_interval(X_new[:SHOWN], 0.9, lower_share=0)
    return {"upper": ends[:, 1], "summary": NO_TWO_ALIKE.sub("...", model.summary("upper", **DETAIL)).split("\n")}


@configuration
def cross():
    X, y, X_new, y_new = split(150)
    return told(bands(LinearRegression(), calibration_size="cross", cv=3).fit(X, y), X_new, y_new)


@configuration
def cross_asymmetric():
    X, y, X_new, y_new = split(150)
    model = bands(LinearRegression(), calibration_size="cross", cv=3, calibration="asymmetric").fit(X, y)
    return told(model, X_new, y_new)


@configuration
def cross_groups():
    X, y, X_new, y_new = split(150)
    groups, new = np.where(X[:, 1] > 0, "a", "b"), np.where(X_new[:, 1] > 0, "a", "b")
    model = bands(LinearRegression(), calibration_size="cross", cv=3).fit(X, y, groups=groups)
    return told(model, X_new, y_new, groups=new)


@configuration
def groups():
    X, y, X_new, y_new = split()
    groups, new = np.where(X[:, 1] > 0, "a", "b"), np.where(X_new[:, 1] > 0, "a", "b")
    groups[:3] = list("cde")
    model = bands(LinearRegression()).fit(X, y, groups=groups)
    explained = model.explain(X_new[:SHOWN], groups=new[:SHOWN])
    return told(model, X_new, y_new, groups=new) | {"calibration": explained.calibration}


@configuration
def weights():
    X, y, X_new, y_new = split()
    model = bands().fit(X, y, sample_weight=np.where(X[:, 0] > 0, 2.0, 0.5))
    return told(model, X_new, y_new)


@configuration
def time_series():
    X, y, X_new, y_new = split(200)
    return told(bands(Ridge(), cv=TimeSeriesSplit(4)).fit(X, y), X_new, y_new)


@configuration
def data_frame():
    X, y = table(260)
    return told(bands().fit(X[:200], y[:200]), X[200:], y[200:])


@configuration
def data_frame_cross():
    X, y = table(180)
    model = bands(calibration_size="cross", cv=2).fit(X[:120], y[:120])
    return told(model, X[120:], y[120:])


@configuration
def data_frame_pipeline():
    X, y = table(200)
    X = X[["city", "size"]].fillna({"city": "none", "size": 3.0})
    columns = make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["size"]))
    model = bands(make_pipeline(columns, Ridge())).fit(X[:150], y[:150]).set_output(intervals="pandas")
    said = told(model, X[150:], y[150:])
    return said | {"intervals": said["intervals"].to_numpy(), "columns": list(said["intervals"].columns)}


@configuration
def nested():
    X, y, X_new, y_new = split(160)
    model = bands(LinearRegression(), nested_coverages=(0.5, 0.8, 0.9)).fit(X, y)
    return told(model, X_new, y_new) | {"steps": 20 * np.array(model.noise_.score.floors)}


@configuration
def frozen():
    X, y, X_new, y_new = split()
    own = FrozenEstimator(ExtraTreesRegressor(20, random_state=0).fit(*rows(100, seed=7)))
    return told(bands(own).fit(X, y), X_new, y_new)


@configuration
def function():
    X, y, X_new, y_new = split(160)
    return told(bands(lambda X: np.sin(3 * X[:, 0]) + X[:, 1]).fit(X, y), X_new, y_new)


@configuration
def refitted():
    X, y, X_new, y_new = split(160)
    model = bands(LinearRegression().fit(X, y), base_scale="forest", noise_features="scale").fit(X, y)
    said = told(model, X_new, y_new)
    return said | {"learnt": model.evaluate(X, y)["coverage"], "far": model.predict_interval(X_new[:2] + 50)}


@configuration
def leave_one_out():
    X, y, X_new, y_new = split(160)
    model = bands(GaussianProcess(), residuals="leave-one-out", base_scale="both").fit(X, y)
    return told(model, X_new, y_new)


@configuration
def spline():
    X, y = rows(200)
    model = bands(SmoothingSplineRegressor()).fit(X[:150, :1], y[:150])
    return told(model, X[150:, :1], y[150:])


@configuration
def constant_targets():
    X, _, X_new, _ = split(60)
    return told(bands(LinearRegression()).fit(X, np.zeros(60)), X_new, np.zeros(60))


# --- SoSBandRegressor: the paper, and what users set


@configuration
def paper():
    X, y, X_new, y_new = split(120)
    rules = tuning.Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive")
    return told(bands(GaussianProcess(), rules=rules, cv=3).fit(X, y), X_new, y_new)


@configuration
def paper_hsic_and_kruskal_wallis():
    X, y, X_new, y_new = split(120)
    model = bands(LinearRegression(), criterion="hsic", symmetry_test="kruskal-wallis", cv=3).fit(X, y)
    return told(model, X_new, y_new)


@configuration
def paper_with_lengthscale():
    X, y, X_new, y_new = split(120)
    model = bands(LinearRegression(), criterion="dcor", symmetry_test=None, lengthscale=1.0, cv=3).fit(X, y)
    return told(model, X_new, y_new)


FIXED = {
    "lengthscale": 1.0,
    "symmetry_penalty": 1.0,
    "width_penalty": 10.0,
    "learning_coverage": 1.0,
    "base_scale": "none",
    "noise_features": "inputs",
    "conformal_score": "added",
}


@configuration
def nothing_open():
    X, y, X_new, y_new = split()
    return told(bands(LinearRegression(), **FIXED).fit(X, y), X_new, y_new)


@configuration
def operator_penalty():
    X, y, X_new, y_new = split(120)
    given = FIXED | {"symmetry_kind": "operator", "symmetry_penalty": (0.5, 1.0), "rank": 20}
    return told(bands(LinearRegression(), **given).fit(X, y), X_new, y_new)


@configuration
def lengthscales_of_sides():
    X, y, X_new, y_new = split(160)
    ells = {"lower": 0.5, "upper": [1.0, 2.0, 3.0]}
    given = FIXED | {"lengthscale": ells, "kernel": "gaussian", "learning_coverage": 0.9, "trace_penalty": 0.5}
    return told(bands(LinearRegression(), **given).fit(X, y), X_new, y_new)


@configuration
def numerics():
    X, y, X_new, y_new = split(160)
    given = {"outlier_fraction": 0.05, "constant": False, "normalize": False, "tol": 1e-6, "rank": 0.001}
    given |= {"solver": "newton", "frobenius_penalty": 2.0, "kernel": "matern32"}
    return told(bands(LinearRegression(), **(FIXED | given)).fit(X, y), X_new, y_new)


@configuration
def kernel_object():
    X, y, X_new, y_new = split(160)
    given = {"kernel": RBF(0.7), "lengthscale": "auto", "noise_features": "inputs", "preprocessor": None}
    return told(bands(LinearRegression(), **given).fit(X, y), X_new, y_new)


@configuration
def noise_features():
    X, y, X_new, y_new = split(160)
    model = bands(base_scale="both", noise_features="lengthscales+prediction", preprocessor="standardize")
    return told(model.fit(X, y), X_new, y_new)


# --- calibration, distribution, explanation


@configuration
def likelihood_ratio():
    X, y, X_new, y_new = split()
    model = bands(LinearRegression(), calibration_size=None).fit(X[:120], y[:120])
    model.conformalize(X[100:], y[100:], likelihood_ratio=np.exp(X[100:, 0]))
    return told(model, X_new, y_new, likelihood_ratio=np.exp(X_new[:, 0]))


@configuration
def few_calibration_rows():
    X, y, X_new, y_new = split(100)
    return told(bands(LinearRegression(), calibration_size=12).fit(X, y), X_new, y_new)


@configuration
def updated():
    X, y, X_new, y_new = split()
    model = bands(LinearRegression(), conformal_score="added").fit(X[:160], y[:160])
    window = model.update(X[160:200], y[160:200], window=60).predict_interval(X_new[:SHOWN])
    decayed = model.update(X[200:], y[200:], decay=0.99)
    return told(decayed, X_new, y_new, levels=[0.7, 0.8]) | {"window": window}


@configuration
def distribution():
    X, y, X_new, y_new = split()
    model = bands(LinearRegression()).fit(X, y)
    return {
        "quantiles": model.predict_quantile(X_new[:SHOWN], [0.05, 0.5, 0.9, 0.999]),
        "cdf": model.predict_cdf(X_new[:SHOWN], y_new[:SHOWN]),
    }


@configuration
def explained():
    X, y, X_new, _ = split(160)
    model = bands(noise_features="lengthscales", lengthscale=2.0).fit(X, y)
    found = model.explain(X_new[:SHOWN], 0.8)
    names = ("width", "typical_width", "base_scale", "band", "calibration", "features", "constant", "off_data", "added")
    said = {name: getattr(found, name) for name in names}
    return said | {"landmarks": np.sort(found.landmarks, axis=1)[:, -3:], "words": found.words(0)}


@configuration
def adaptive():
    X, y, X_new, y_new = split(200, 100)
    model = bands(LinearRegression(), calibration="asymmetric").fit(X, y)
    following = AdaptiveIntervals(model, 0.8, rate=0.02, window=80)
    found = following.follow(X_new, y_new * 2)
    return {"ends": found.ends[-SHOWN:], "miscoverage": found.miscoverage[-1], "next": following.miscoverage_}


@configuration
def monitored():
    X, y, X_new, y_new = split(200, 100)
    model = bands(LinearRegression()).fit(X, y)
    found = monitor(model, X_new, y_new * 1.5)
    last = {name: getattr(found, name)[-SHOWN:] for name in ("width", "adaptive_width", "log10_martingale")}
    return last | {"words": found.words(), "inside": int(found.inside.sum())}


# --- baselines


@configuration
def split_cp():
    X, y, X_new, y_new = split()
    return told(baselines.SplitCP(random_state=0).fit(X, y), X_new, y_new)


@configuration
def split_cp_asymmetric_groups():
    X, y, X_new, y_new = split()
    groups, new = X[:, 1] > 0, X_new[:, 1] > 0
    model = baselines.SplitCP(Ridge(), calibration="asymmetric", random_state=0).fit(X, y, groups=groups)
    return told(model, X_new, y_new, groups=new)


@configuration
def split_cp_cross():
    X, y, X_new, y_new = split()
    model = baselines.SplitCP(Ridge(), calibration_size="cross", random_state=0).fit(X, y)
    return told(model, X_new, y_new)


@configuration
def locally_weighted():
    X, y, X_new, y_new = split()
    return told(baselines.LocallyWeightedCP(Ridge(), random_state=0).fit(X, y), X_new, y_new)


@configuration
def cqr_forest():
    X, y, X_new, y_new = split()
    return told(baselines.QuantileForestCQR(n_estimators=30, random_state=0).fit(X, y), X_new, y_new)


@configuration
def cqr_boosting():
    X, y = table(200)
    model = baselines.GradientBoostingCQR(max_iter=30, random_state=0).fit(X[["city", "size"]][:150], y[:150])
    return told(model, X[["city", "size"]][150:], y[150:])


@configuration
def homoscedastic():
    X, y, X_new, y_new = split(160)
    return told(baselines.HomoscedasticGP(random_state=0).fit(X, y), X_new, y_new)


# --- bands alone


def _path(X, residuals, **settings):
    solutions = list(learn_band_path(X, residuals, [0.0, 0.1, 10.0, float("inf")], lengthscale=0.7, **settings))
    return {
        "lower": [each.lower(X[:SHOWN]) for each in solutions],
        "upper": [each.upper(X[:SHOWN]) for each in solutions],
        "gaps": [max(each.gap, 1e-12) < 1e-4 for each in solutions],
        "dual": [each.certificate["dual_value"] for each in solutions],
        "primal": [each.certificate["primal_value"] for each in solutions],
        "active": [[each.active_lower, each.active_upper] for each in solutions],
    }


def _residuals(n):
    X, y = rows(n, d=2)
    return X, y - np.sin(3 * X[:, 0]) - X[:, 1]


@configuration
def path_training():
    return _path(*_residuals(80))


@configuration
def path_training_low_rank():
    return _path(*_residuals(300), rank=60, solver="subspace", learning_coverage=0.9, constant=True)


@configuration
def path_operator():
    return _path(*_residuals(60), symmetry_kind="operator", rank=15)


@configuration
def nested_bands():
    X, residuals = _residuals(100)
    found = learn_nested_bands(X, residuals, [0.5, 0.8], lengthscale=0.7)
    return {"evaluate": (getattr(found, "functions", None) or found).evaluate(X[:SHOWN])}
