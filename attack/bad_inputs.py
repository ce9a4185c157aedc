"""Hostile arguments everywhere: a right result, or an error that names the argument.

The law of every attempt: what comes back is right, which is recomputed in another way, or the error is a ValueError or
TypeError (all of the package's are one of them) whose message names an argument and no private name. Never a
RuntimeWarning, never another exception.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.utils import _safe_indexing

from attack.odd_files import command_line
from attack.odd_tables import GROUPS, ROWS, SIZES, TARGETS, VALUES, WEIGHTS, numbers
from sosbands import SoSBandRegressor, learn_band_path, learn_bands, metrics, stats
from sosbands.bands import BandSettings
from sosbands.baselines import METHODS, LocallyWeightedCP, SplitCP
from sosbands.comparison import compare
from sosbands.conformal import conformal_rank
from sosbands.exceptions import NotCertifiedWarning
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tuning import Rules

FULL = 800
QUICK = 40

PRIVATE = re.compile(r"(?<![\w./'\"-])_[A-Za-z]\w*|\w\._[A-Za-z]\w*")
# Words by which an error may speak of what is wrong with an argument.
WORDS = {
    "X": r"\bX\b|[Cc]olumn|feature",
    "y": r"\by\b|target",
    "points": r"\bX\b|points",
    "predictions": "estimator",
    "points made": "preprocessor",
    "scales": "scale_estimator",
}
FAST = {
    **PAPER_SETTINGS,
    "lengthscale": "median",
    "symmetry_penalty": 1.0,
    "bands": BandSettings(tol=1e-2),
    "random_state": 0,
}
QUICK_METHODS = ("cqr-boosting", "split", "local", "gp")
SETTLED = {"n_jobs"}  # any number of processes is a right answer, and takes long


class Refused(Exception):  # noqa: N818
    """An error as it should be: its kind."""


@contextlib.contextmanager
def lawful(*blamed: str) -> Iterator[None]:
    """Raise AssertionError for a breach of the law, and Refused for an error that keeps it."""
    quiet = contextlib.ExitStack()
    quiet.enter_context(contextlib.redirect_stderr(io.StringIO()))
    quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
    with warnings.catch_warnings(record=True) as heard, quiet:
        warnings.simplefilter("always")
        try:
            yield
        except (AssertionError, Refused):
            raise
        except (ValueError, TypeError) as error:
            _check_message(error, blamed)
            raise Refused(type(error).__name__) from error
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} instead of a named error: {error}") from error
    wrong = [each for each in heard if issubclass(each.category, RuntimeWarning)]
    assert not wrong, f"{wrong[0].category.__name__}: {wrong[0].message} ({wrong[0].filename}:{wrong[0].lineno})"


def _check_message(error: Exception, blamed: tuple[str, ...]) -> None:
    message = str(error)
    found = PRIVATE.search(message)
    assert not found, f"the message has the private name {found and found[0]!r}: {message}"
    words = "|".join(WORDS.get(name, re.escape(name)) for name in blamed)
    assert re.search(words, message), f"{type(error).__name__} names none of {blamed}: {message}"


def attempt(number: int) -> str:
    """One hostile call of one kind; 'right', or 'refused' with the kind of the error."""
    kind = KINDS[number % len(KINDS)]
    rng = np.random.default_rng([number, 20_240])
    try:
        return f"{kind.__name__}: {kind(rng) or 'right'}"
    except Refused as error:
        return f"{kind.__name__}: refused, {error}"


def pick(rng: Any, options: Any) -> Any:
    """One of the names of some options, mostly the first."""
    names = list(options)
    return names[0] if rng.random() < 0.7 else names[int(rng.integers(len(names)))]


def row_count(X: Any) -> int:
    """How many targets go with the rows."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X) if isinstance(X, list) else 12
    return int(shape[0]) if len(shape) else 12


# ---------------------------------------------------------------- estimators and baselines


def estimators(rng: Any) -> None:
    """Rows, targets, weights and settings of the estimator itself."""
    settings: dict[str, Any] = {"estimator": LinearRegression(), **FAST}
    blamed = ["X", "y", "estimator"]
    if rng.random() < 0.4:
        name = str(rng.choice([n for n in SoSBandRegressor._get_param_names() if n not in SETTLED]))
        settings[name] = VALUES[int(rng.integers(len(VALUES)))]
        blamed += [name, "function"] if name == "estimator" else [name]
    elif rng.random() < 0.1:
        settings = {"random_state": 0, "max_seconds": 0.0}
    _fitted(SoSBandRegressor(), settings, rng, blamed)


def baselines(rng: Any) -> None:
    """The same of the baselines."""
    name = str(rng.choice([*QUICK_METHODS * 3, *METHODS]))
    settings: dict[str, Any] = {"random_state": 0}
    blamed = ["X", "y", "estimator"]
    known = METHODS[name]._get_param_names()
    settings |= {"estimator": LinearRegression()} if "estimator" in known and rng.random() < 0.7 else {}
    if rng.random() < 0.4:
        odd = str(rng.choice([n for n in known if n not in SETTLED]))
        settings[odd] = VALUES[int(rng.integers(len(VALUES)))]
        blamed += [odd]
    _fitted(METHODS[name](), settings, rng, blamed)


def _fitted(model: Any, settings: dict[str, Any], rng: Any, blamed: list[str]) -> None:
    """Fit a model to odd rows and targets, and check its intervals."""
    rows = pick(rng, ROWS)
    X = ROWS[rows](rng)
    n = row_count(X)
    y = TARGETS[pick(rng, TARGETS)](rng, n)
    arguments: dict[str, Any] = {}
    if rng.random() < 0.2 and "sample_weight" in model.fit.__code__.co_varnames:
        arguments["sample_weight"] = WEIGHTS[pick(rng, WEIGHTS)](rng, n)
    if rng.random() < 0.2:
        arguments["groups"] = GROUPS[pick(rng, GROUPS)](rng, n)
    with lawful(*blamed, *arguments, "calibration_size"):
        model.set_params(**settings).fit(X, y, **arguments)
        _check_intervals(model, X, y, arguments.get("groups"))


def _check_intervals(model: Any, X: Any, y: Any, groups: Any) -> None:
    """Finite or rightly infinite ends in order, which cover as many calibration rows as the quantile says."""
    if "calibration_" not in vars(model):
        return
    labels = None if groups is None else np.asarray(groups)
    if labels is not None:
        known = (
            np.isin(labels, labels[model.calibration_rows_])
            if not model.calibration_.copies
            else np.isin(labels, labels)
        )
        kept = np.flatnonzero(known)
        X, y, labels = _safe_indexing(X, kept), np.asarray(y)[kept], labels[kept]
    ends = np.asarray(model.predict_interval(X, groups=labels))
    target = np.asarray(y, dtype=float).reshape(-1)
    assert ends.shape == (len(target), 2), f"shape {ends.shape} of intervals of {len(target)} rows"
    assert not np.isnan(ends).any(), "NaN in intervals"
    assert (ends[:, 0] <= ends[:, 1]).all(), "lower ends above upper ones"
    assert np.isfinite(model.predict(X)).all(), "predictions that are not finite"
    inside = (ends[:, 0] <= target) & (target <= ends[:, 1])
    if groups is None and not model.calibration_.copies:
        held = model.calibration_rows_
        least = min(conformal_rank(len(held), model.confidence_level), len(held))
        if model.calibration == "symmetric":
            assert inside[held].sum() >= least, f"{inside[held].sum()} of {len(held)} calibration rows, not {least}"
        if conformal_rank(len(held), model.confidence_level) <= len(held):
            assert np.isfinite(ends).all(), "infinite intervals with enough calibration rows"
    row = model.evaluate(X, target, groups=labels)
    assert math.isclose(row["coverage"], inside.mean(), abs_tol=1e-12), f"coverage {row['coverage']} of {inside.mean()}"
    assert not any(math.isnan(value) for value in row.values()), f"NaN in {row}"


class OddModel(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are of some odd kind, of learning rows or of all."""

    def __init__(self, kind: str = "plain", from_call: int = 0) -> None:
        self.kind = kind
        self.from_call = from_call

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OddModel:  # noqa: ARG002
        """Learn the mean."""
        self.mean_, self.calls_ = float(np.mean(y)), 0
        return self

    def predict(self, X: Any) -> Any:
        """What `kind` says, from some call on."""
        self.calls_ += 1
        plain = np.full(len(X), self.mean_)
        return plain if self.calls_ <= self.from_call else OUTPUTS[self.kind](plain)


class OddTransformer(TransformerMixin, BaseEstimator):
    """A transformer of that sort."""

    def __init__(self, kind: str = "plain", from_call: int = 0) -> None:
        self.kind = kind
        self.from_call = from_call

    def fit(self, X: Any, y: Any = None) -> OddTransformer:  # noqa: ARG002
        """Learn nothing."""
        self.calls_ = 0
        return self

    def transform(self, X: Any) -> Any:
        """What `kind` says, from some call on."""
        self.calls_ += 1
        plain = np.asarray(X, dtype=float)
        return plain if self.calls_ <= self.from_call else OUTPUTS[self.kind](plain)


OUTPUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda p: p,
    "fewer rows": lambda p: p[:-1],
    "more rows": lambda p: np.concatenate([p, p]),
    "no rows": lambda p: p[:0],
    "another dimension": lambda p: np.stack([p, p], axis=-1),
    "complex": lambda p: p + 1j,
    "NaN": lambda p: p * np.nan,
    "infinite": lambda p: p + np.inf,
    "huge": lambda p: p + 1e308,
    "texts": lambda p: p.astype(str),
    "texts in objects": lambda p: p.astype(str).astype(object),
    "dates": lambda p: p.astype("M8[s]"),
    "None": lambda _: None,
    "a number": lambda _: 1.0,
    "a dict": lambda _: {},
    "masked": lambda p: np.ma.MaskedArray(p, np.arange(p.size).reshape(p.shape) % 2 == 0),
}


def odd_outputs(rng: Any) -> None:
    """Point models and preprocessors that give what they should not."""
    kind, late = str(rng.choice(list(OUTPUTS))), int(rng.integers(0, 4))
    X, y = numbers(rng, 30), rng.standard_normal(30)
    model = OddModel(kind, late)
    given: Any = [model, FrozenEstimator(OddModel(kind, late).fit(X, y)), OddModel(kind, late).fit(X, y).predict]
    place = int(rng.integers(5))
    with lawful(*({3: ("points made",), 4: ("scales",)}.get(place, ("predictions",)))):
        made: Any
        if place < 3:
            cls: Any = [SoSBandRegressor, SplitCP, LocallyWeightedCP][int(rng.integers(3))]
            made = cls(given[place], **(FAST if cls is SoSBandRegressor else {"random_state": 0}))
        elif place == 3:
            made = SoSBandRegressor(LinearRegression(), **{**FAST, "preprocessor": OddTransformer(kind, late)})
        else:
            made = LocallyWeightedCP(LinearRegression(), OddModel(kind, late), random_state=0)
        _check_intervals(made.fit(X, y), X, y, None)


# ---------------------------------------------------------------- bands, calibration, metrics, tests


def bands(rng: Any) -> None:
    """learn_bands and its path: every residual is covered, and the gap is what was asked for, or a warning."""
    X = ROWS[pick(rng, ROWS)](rng)
    n = row_count(X)
    r = TARGETS[pick(rng, TARGETS)](rng, n)
    settings: dict[str, Any] = {}
    if rng.random() < 0.5:
        names = ["kernel", "lengthscale", "width_penalty", "trace_penalty", "frobenius_penalty", "learning_coverage"]
        names += [
            "symmetry_penalty",
            "symmetry_kind",
            "rank",
            "constant",
            "solver",
            "tol",
            "normalize",
            "sample_weight",
        ]
        name = str(rng.choice(names))
        settings[name] = VALUES[int(rng.integers(len(VALUES)))]
    elif rng.random() < 0.3:
        settings["sample_weight"] = WEIGHTS[pick(rng, WEIGHTS)](rng, n)
    path = rng.random() < 0.3 and not set(settings) & {"symmetry_penalty", "symmetry_kind"}
    blamed = ("points", "residuals", "penalties", "feature", *settings)
    with lawful(*blamed), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        along = learn_band_path(X, r, [0.0, 1.0, np.inf], **settings) if path else None
        found = [learn_bands(X, r, **settings)] if along is None else list(along)
        told = [each for each in heard if issubclass(each.category, NotCertifiedWarning)]
        wrong = [each for each in heard if issubclass(each.category, RuntimeWarning)]
        assert not wrong, f"{wrong[0].message} ({wrong[0].filename}:{wrong[0].lineno})"
        for solution in found:
            _check_bands(solution, np.asarray(r, dtype=float), settings, bool(told))


def _check_bands(solution: Any, r: Any, settings: dict[str, Any], told: bool) -> None:
    below, above = solution.values_lower, solution.values_upper
    assert np.isfinite(below).all(), "bands that are not finite"
    assert np.isfinite(above).all(), "bands that are not finite"
    unit = np.abs(r).max(initial=0.0)
    assert told or solution.gap <= settings.get("tol", 1e-4), f"a gap of {solution.gap} without a word"
    if float(settings.get("learning_coverage", 1.0)) == 1.0 and "sample_weight" not in settings:
        assert (above - r >= -1e-6 * unit).all(), "residuals above the upper band"
        assert (below + r >= -1e-6 * unit).all(), "residuals below the lower band"


def calibration(rng: Any) -> None:
    """Calibration and predict_interval with odd groups, likelihood ratios, levels and shares."""
    X, y = numbers(rng, 40), rng.standard_normal(40)
    kind = str(rng.choice(["symmetric", "asymmetric"]))
    model = SplitCP(LinearRegression(), calibration=kind, calibration_size=None).fit(X[:20], y[:20])
    arguments: dict[str, Any] = {}
    if rng.random() < 0.5:
        arguments["groups"] = GROUPS[pick(rng, GROUPS)](rng, 20)
    if rng.random() < 0.5:
        arguments["likelihood_ratio"] = WEIGHTS[pick(rng, WEIGHTS)](rng, 20)
    level = VALUES[int(rng.integers(len(VALUES)))] if rng.random() < 0.3 else rng.choice([0.1, 0.5, 0.9, 1 - 1e-12])
    share = VALUES[int(rng.integers(len(VALUES)))] if rng.random() < 0.3 else 0.5
    with lawful("confidence_level", "lower_share", *arguments):
        model.conformalize(X[20:], y[20:], **arguments)
        ends = np.asarray(model.predict_interval(X[20:], level, lower_share=share, **arguments))
        assert not np.isnan(ends).any(), "NaN in intervals"
        assert (ends[..., 0] <= ends[..., 1]).all(), "lower ends above upper ones"
        if not arguments and isinstance(level, float) and isinstance(share, float) and share == 0.5:
            k = conformal_rank(20, float(level)) if kind == "symmetric" else conformal_rank(20, (1 + float(level)) / 2)
            inside = (ends[:, 0] <= y[20:]) & (y[20:] <= ends[:, 1])
            least = min(k, 20) if kind == "symmetric" else 20 - 2 * max(0, 20 - k)
            assert inside.sum() >= least, f"{inside.sum()} of 20 calibration rows, not {least}"


def measures(rng: Any) -> None:
    """The metrics, against exact arithmetic."""
    n = int(rng.choice([1, 2, 9]))
    scale = rng.choice(SIZES) if rng.random() < 0.4 else 1.0
    ends = np.sort(rng.standard_normal((n, 2)) * scale, axis=1)
    ends[rng.random((n, 2)) < 0.05] *= np.inf if rng.random() < 0.3 else 1.0
    ends = np.sort(np.nan_to_num(ends, nan=0.0, posinf=np.inf, neginf=-np.inf), axis=1)
    y = TARGETS[pick(rng, TARGETS)](rng, n)
    odd = str(rng.choice(["y", "lower", "upper", "none"]))
    given = {"y": y if odd == "y" else rng.standard_normal(n) * scale, "lower": ends[:, 0], "upper": ends[:, 1]}
    if odd in ("lower", "upper"):
        given[odd] = TARGETS[pick(rng, TARGETS)](rng, n)
    weight = WEIGHTS[pick(rng, WEIGHTS)](rng, n) if rng.random() < 0.3 else None
    level = VALUES[int(rng.integers(len(VALUES)))] if rng.random() < 0.1 else 0.9
    X = ROWS[pick(rng, ROWS)](rng) if rng.random() < 0.3 else None
    blamed = ("y", "lower", "upper", "sample_weight", "confidence_level", "X")
    with lawful(*blamed):
        row = metrics.evaluate_intervals(**given, confidence_level=level, sample_weight=weight, X=X)
        target, lower, upper = (np.asarray(given[name], dtype=float) for name in ("y", "lower", "upper"))
        w = [Fraction(1)] * n if weight is None else [Fraction(float(v)) for v in np.broadcast_to(weight, n)]
        hits = sum(v for v, a, t, b in zip(w, lower, target, upper, strict=True) if a <= t <= b)
        assert math.isclose(row["coverage"], hits / sum(w), abs_tol=1e-12), f"coverage {row['coverage']}"
        assert not any(math.isnan(value) for value in row.values()), f"NaN in {row}"
        if np.isfinite([*lower, *upper]).all():
            width = sum(v * (Fraction(b) - Fraction(a)) for v, a, b in zip(w, lower, upper, strict=True)) / sum(w)
            assert math.isclose(row["mean_width"], float(width), rel_tol=1e-9, abs_tol=1e-320), f"{row} of {width}"
            rate = 2 / (1 - Fraction(float(level)))
            fines = [
                rate * max(0, Fraction(a) - Fraction(t), Fraction(t) - Fraction(b))
                for a, t, b in zip(lower, target, upper, strict=True)
            ]
            score = width + sum(v * fine for v, fine in zip(w, fines, strict=True)) / sum(w)
            assert math.isclose(row["interval_score"], float(score), rel_tol=1e-9, abs_tol=1e-320), f"{row} of {score}"


def tests(rng: Any) -> None:
    """Dependence and tests, against sums over all pairs and the values that p can take."""
    n = int(rng.choice([1, 2, 12]))
    x, y = (TARGETS[pick(rng, TARGETS)](rng, n) for _ in range(2))
    count = VALUES[int(rng.integers(len(VALUES)))] if rng.random() < 0.2 else 19
    seed = VALUES[int(rng.integers(len(VALUES)))] if rng.random() < 0.2 else 0
    count = 19 if isinstance(count, int) and count > 1e6 else count
    options = {"random_state": seed}
    which = int(rng.integers(5))
    X = ROWS[pick(rng, ROWS)](rng)
    blamed = (
        "x",
        "y",
        "points",
        "residuals",
        "widths",
        "groups",
        "lengthscale",
        "random_state",
        "n_flips",
        "n_permutations",
    )
    with lawful(*blamed, "level"):
        if which == 0:
            found = stats.hsic(x, y)
            a, b = (np.abs(np.subtract.outer(v, v)) for v in (_unit(x), _unit(y)))
            exact = (a * b).mean() + a.mean() * b.mean() - 2 * (a.mean(axis=0) * b.mean(axis=0)).mean()
            size = np.abs(np.asarray(x, float)).max() * np.abs(np.asarray(y, float)).max()
            assert math.isclose(found, max(0, exact) * size, rel_tol=1e-6, abs_tol=1e-9 * size), (
                f"{found} of {exact * size}"
            )
            return
        if which == 1:
            result = stats.independence_test([x], [y], n_permutations=count, **options)
        elif which == 2:
            result = stats.sign_flip_test(X, y, rng.choice([1e-300, 1.0, np.inf, 0.0]), n_flips=count, **options)
        elif which == 3:
            result = stats.kruskal_wallis_test([x, y], n_permutations=count, **options)
        else:
            Rules(level=VALUES[int(rng.integers(len(VALUES)))], n_permutations=count)
            return
        assert math.isfinite(result.statistic), f"a statistic of {result.statistic}"
        steps = result.p_value * (count + 1)
        assert 1 <= round(steps) <= count + 1, f"p = {result.p_value} of {count} permutations"
        assert math.isclose(steps, round(steps), rel_tol=1e-9), f"p = {result.p_value} of {count} permutations"


def _unit(values: Any) -> Any:
    v = np.asarray(values, dtype=float)
    unit = v / (np.abs(v).max() or 1.0)
    return np.zeros(len(v)) if np.ptp(unit) < 1e-6 * np.abs(unit).mean() else unit


def comparisons(rng: Any) -> None:
    """Two methods on two splits."""
    X = ROWS[pick(rng, ROWS)](rng)
    n = row_count(X)
    y = TARGETS[pick(rng, TARGETS)](rng, n)
    settings: dict[str, Any] = {"n_repetitions": 2}
    if rng.random() < 0.4:
        names = ["n_repetitions", "confidence_level", "test_size", "calibration_size", "metrics", "random_state"]
        name = str(rng.choice([*names, "methods"]))
        value = VALUES[int(rng.integers(len(VALUES)))]
        settings[name] = 2 if name == "n_repetitions" and isinstance(value, int) and value > 100 else value
    methods = settings.pop("methods", {"a": SplitCP(LinearRegression()), "b": METHODS["cqr-boosting"](max_iter=5)})
    with lawful("X", "y", "methods", "metric", "calibration_size", *settings):
        result = compare(methods, X, y, **settings)
        for row in result.rows:
            if row.get("error") is None:
                assert 0 <= row["coverage"] <= 1, f"coverage {row['coverage']}"
                assert not np.isnan([v for v in row.values() if isinstance(v, float)]).any(), f"NaN in {row}"
            else:
                assert "RuntimeWarning" not in row["error"], row["error"]


def cli(rng: Any) -> str:
    """The command line on odd files."""
    with lawful("--"):
        return command_line(rng, PRIVATE)


KINDS = (estimators, baselines, odd_outputs, bands, calibration, measures, tests, cli, estimators, comparisons)
