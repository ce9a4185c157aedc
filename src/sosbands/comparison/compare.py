"""Comparing interval regressors on repeated splits of one data set."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from sosbands._arguments import check, is_count, naming, read_level
from sosbands._types import Array, BoolArray
from sosbands.comparison.describe import Axis, data_hash, environment, table_columns
from sosbands.comparison.result import PART, ComparisonResult, SplitSizes, with_level
from sosbands.comparison.runner import run_tasks
from sosbands.comparison.store import read_store
from sosbands.conformal.asked import read_target
from sosbands.metrics import evaluate_groups, evaluate_intervals, evaluate_places
from sosbands.metrics.local import read_by

Metric = Callable[[Array, Array, Array], float]
NEEDED = ("fit", "conformalize", "predict_interval", "get_params")


def compare(
    methods: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    n_repetitions: int = 10,
    confidence_level: float = 0.9,
    test_size: float | int = 0.2,
    calibration_size: float | int = 0.4,
    metrics: Mapping[str, Metric] | None = None,
    by: Any = None,
    places: bool = False,
    n_jobs: int | None = None,
    random_state: int = 0,
    store: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    other_code: str = "refuse",
    verbose: int = 0,
) -> ComparisonResult:
    """Compare interval regressors on the same repeated splits.

    In each repetition the rows are divided once, for all methods: each is cloned, fitted to the learning rows,
    conformalized on the calibration rows and evaluated on the test rows.

    Parameters
    ----------
    methods : mapping of str to interval regressor
        Estimators with ``fit(X, y)``, ``conformalize(X, y)`` and ``predict_interval(X, confidence_level)``. Of each
        clone the parameter ``calibration_size`` is set to None, ``confidence_level`` to that of the comparison, and
        every ``random_state`` that is None, nested ones included, to the seed of the repetition.
    X : array or data frame of shape (n, n_features)
        Rows; methods get them as they are given.
    y : array of shape (n,)
        Targets.
    n_repetitions : int
        Number of splits. With a store it may be raised later.
    confidence_level : float
        Of the intervals, in (0, 1).
    test_size, calibration_size : float or int
        Fractions of all rows, or numbers of rows; the others are learnt from.
    metrics : mapping of str to callable, optional
        Further metrics, ``metric(y, lower, upper)``, by name.
    by : array of shape (n,), or table of bool columns, optional
        Groups of the rows, of which methods are not told: see `ComparisonResult.by_group`.
    places : bool
        Look for places where coverage departs from the level (`sosbands.metrics.evaluate_places`), among the same
        columns as for the worst set; 0.3 s for 1000 test rows.
    n_jobs : int, optional
        Processes, as in joblib; each uses one BLAS thread.
    random_state : int
        All seeds are derived from it and the repetition (`seed_of`).
    store : path, optional
        File that keeps every finished run; the same call continues an interrupted comparison. Methods and
        repetitions may be added; other settings or data are refused.
    retry_failed : bool
        Run again what failed before.
    other_code : {"refuse", "again", "keep"}
        What becomes of stored runs that other code made, of this package or of your own methods and metrics: an
        error, running them again, or taking them as they are.
    verbose : int
        0: silent; 1: a bar on a terminal, otherwise up to 20 lines, on stderr; 2: a line per run. Without a bar also a
        line for every 20 s in which no run was finished.

    Returns
    -------
    ComparisonResult

    Raises
    ------
    StoreMismatchError
        If the store holds results of other settings, data or parameters of a method, or of other code.

    Notes
    -----
    Exceptions and warnings of a method do not end the comparison; they are counted in its rows. The sets of the
    worst-set coverage are those of the columns of X that hold finite numbers, standardised by the learning rows, and
    the same for all methods; without such columns there is none. Seconds are wall-clock: runs in parallel
    slow each other.
    """
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError(f"methods={methods!r}: expected a non-empty mapping of names to interval regressors")
    for name, method in methods.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"methods has the name {name!r}: expected a non-empty string")
        lacking = [attribute for attribute in NEEDED if not hasattr(method, attribute)]
        problem = "is a class" if isinstance(method, type) else f"has no {lacking[0]}" if lacking else None
        if problem:
            raise ValueError(f"methods[{name!r}] {problem}: expected an interval regressor such as SoSBandRegressor()")
    check("n_repetitions", n_repetitions, is_count(n_repetitions) and n_repetitions >= 1, "an integer >= 1")
    fine = metrics is None or (isinstance(metrics, Mapping) and all(callable(each) for each in metrics.values()))
    check("metrics", metrics, fine, "None or a mapping of names to functions of y, lower and upper")
    level, further = read_level(confidence_level), dict(metrics or {})
    with naming("X"):
        n_rows = _num_samples(X)
    target = read_target(y, n_rows)
    sizes = SplitSizes.of(n_rows, calibration_size, test_size)
    points, groups = _numeric_columns(X), None if by is None else read_by(by, n_rows)
    check("places", places, points is not None or not places, "False, as X has no columns of finite numbers")
    asked: dict[str, Any] = {} if groups is None else {"by": {str(label): rows for label, rows in groups.items()}}
    asked |= {"places": True} if places else {}
    data = {"X": data_hash(X), "y": data_hash(target)}
    rows = run_tasks(
        IntervalTask(dict(methods), X, target, points, sizes, level, further, groups, places),
        [{"method": name, "repetition": i} for i in range(n_repetitions) for name in methods],
        seed_axes=["repetition"],
        random_state=random_state,
        store=store,
        settings={"confidence_level": level, "sizes": asdict(sizes), "data": data, "metrics": further, **asked},
        parts={PART + name: method for name, method in methods.items()},
        n_jobs=n_jobs,
        retry_failed=retry_failed,
        other_code=other_code,
        verbose=verbose,
        label="compare",
    )
    environments = [environment()] if store is None else read_store(store).environments
    return ComparisonResult(with_level(rows, level), tuple(methods), level, sizes, environments)


@dataclass(frozen=True)
class IntervalTask:
    """One method on one split: the function that `compare` runs."""

    methods: dict[str, Any]
    X: Any
    y: Array
    points: Array | None  # columns of X in which neighbours are looked for
    sizes: SplitSizes
    confidence_level: float
    metrics: dict[str, Metric]
    by: dict[Any, BoolArray] | None = None  # rows of each group
    places: bool = False

    def __call__(self, axes: Mapping[str, Axis], seed: int) -> dict[str, Any]:
        """Metrics and seconds."""
        learn, calibration, test = self.sizes.split(seed)
        model = prepared(self.methods[str(axes["method"])], self.confidence_level, seed)
        clock = [time.perf_counter()]
        model.fit(_safe_indexing(self.X, learn), self.y[learn])
        clock.append(time.perf_counter())
        model.conformalize(_safe_indexing(self.X, calibration), self.y[calibration])
        clock.append(time.perf_counter())
        ends = np.asarray(model.predict_interval(_safe_indexing(self.X, test), self.confidence_level))
        clock.append(time.perf_counter())
        if ends.shape != (len(test), 2):
            raise ValueError(f"predict_interval gave shape {ends.shape}: expected ({len(test)}, 2)")
        y, lower, upper = self.y[test], *ends.T
        where: Any = {} if self.points is None else {"X": self.points[test], "X_learn": self.points[learn]}
        level: Any = {"confidence_level": self.confidence_level}
        row: dict[str, Any] = evaluate_intervals(y, lower, upper, random_state=seed, **level, **where)
        if self.places:
            row |= evaluate_places(y, lower, upper, random_state=seed, **level, **where)
        if self.by is not None:
            groups = evaluate_groups(y, lower, upper, {name: rows[test] for name, rows in self.by.items()}, **level)
            row["by"] = [{"group": name, **numbers} for name, numbers in groups.items()]
        further = {name: float(metric(y, lower, upper)) for name, metric in self.metrics.items()}
        seconds = dict(zip(("fit_seconds", "calibrate_seconds", "predict_seconds"), np.diff(clock), strict=True))
        return {"n_learn": len(learn), "n_calibration": len(calibration), **row, **further, **seconds}


def prepared(method: Any, confidence_level: float, seed: int) -> Any:
    """Unfitted copy of a method that leaves calibration to us and whose randomness is that of the repetition."""
    model = clone(method)
    parameters = model.get_params(deep=True)
    unset = [name for name in parameters if name.split("__")[-1] == "random_state" and parameters[name] is None]
    changes: dict[str, Any] = dict.fromkeys(unset, seed)
    wanted = {"calibration_size": None, "confidence_level": confidence_level}
    changes |= {name: value for name, value in wanted.items() if name in parameters}
    return model.set_params(**changes)


def _numeric_columns(X: Any) -> Array | None:
    """The columns that hold finite numbers, if there are any."""
    if hasattr(X, "columns"):
        columns = [np.asarray(column) for column in table_columns(X)]
    else:
        values = np.asarray(X)
        columns = list(values.T) if values.ndim == 2 else []  # a sparse matrix has no dimensions here
    usable = [column for column in columns if column.dtype.kind in "biuf" and np.isfinite(column).all()]
    return np.column_stack(usable).astype(float) if usable else None
