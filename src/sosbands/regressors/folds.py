"""Calibration on every row that was learnt from: each is scored by what has not seen its fold.

Called by `SplitRegressor.fit`, and by regressors whose own folds say what is asked here.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from sosbands._arguments import check, is_count, is_splitter
from sosbands._progress import say, speaking
from sosbands._types import AnyArray, Array, IntArray
from sosbands._words import warn
from sosbands.conformal import Calibration, CrossCalibration, Told
from sosbands.exceptions import UnstableModelWarning
from sosbands.point_models.user_model import (
    in_order_of_rows,
    last_step,
    learns_nothing,
    model_name,
    predict_held_out,
    shuffled_folds,
)
from sosbands.regressors.checks import CROSS, OUT_OF_FOLD, is_cross
from sosbands.tables.rows import AUTO, LearningData, Rows

FOLDS = 5  # of models without `cv`
FEATURES = ("n_features_in_", "feature_names_in_")  # that scikit-learn sets where rows are read
LEAST_ROWS = 3  # so that every copy has two rows to learn from
MOST_WORSE = 0.05  # by which errors may grow with the rows
Heard = list[tuple[type[Warning], str]]


def fit_folds(model: Any, data: LearningData, rng: np.random.RandomState) -> None:
    """Fit a copy for each fold and the model of all rows, and score each row by the copy that has not seen it.

    Cross-calibration keeps the copies, whose bands its intervals need; out-of-fold calibration keeps their scores.
    """
    n, size = len(data), model.calibration_size
    if n < LEAST_ROWS:
        raise ValueError(f"calibration_size={size!r} with {n} rows: expected at least {LEAST_ROWS}")
    cv = getattr(model, "cv", FOLDS)
    expected = f"an int beside calibration_size={size!r}, because every row must be held out once, by copies alike"
    check("cv", cv, not is_splitter(cv), expected)
    folds = fold_of_rows(n, int(cv) if is_count(cv) else FOLDS, rng, data.groups)
    held = [np.flatnonzero(folds == k) for k in range(int(folds.max()) + 1)]
    # seeds are drawn before any fit, so that nothing depends on the number of processes
    seeds = rng.randint(2**31 - 1, size=len(held)).tolist()
    whole = model.random_state if is_count(model.random_state) else int(rng.randint(2**31 - 1))
    work = [(np.setdiff1d(np.arange(n), out), out, seed) for out, seed in zip(held, seeds, strict=True)]
    work.append((np.arange(n), np.arange(0), whole))
    # each learns from all rows that it is given, in its share of the time, in one of the processes
    alone: dict[str, Any] = {"calibration_size": None, "verbose": 0}
    if getattr(model, "max_seconds", None) is not None:
        alone["max_seconds"] = model.max_seconds / len(work)
    if getattr(model, "n_jobs", None) is not None:
        alone["n_jobs"] = None
    if isinstance(getattr(model, "target_transform", None), str) and model.target_transform == AUTO:
        alone["target_transform"] = None  # scores and ends of copies are compared, on one scale
    calls = (
        delayed(_fitted)(
            clone(model).set_params(random_state=seed, **alone),
            vars(model),
            replace(data.take(learnt), groups=None, positions=np.arange(len(learnt))),
            data.rows.take(out) if len(out) else None,
        )
        for learnt, out, seed in work
    )
    copies, told = [], []
    heard: Heard = []
    for copy, found, said in Parallel(n_jobs=getattr(model, "n_jobs", None), return_as="generator")(calls):
        copies.append(copy)
        told.append(found)
        heard += [each for each in said if each not in heard]
        say(f"{len(copies)} of {len(work)} fits done")
    given = model.get_params(deep=False)
    for name, value in vars(copies.pop()).items():
        if name not in given:
            setattr(model, name, value)
    model.calibration_rows_ = np.arange(n)
    if is_cross(size):
        bands = [each.band for each in told[:-1]]
        model.calibration_ = CrossCalibration.of_folds(copies, folds, bands, data.y, data.groups)
    else:
        seen = Told.joined(told[:-1]).take(np.argsort(np.concatenate(held)))
        model.calibration_ = Calibration.of(seen.band, data.y, data.groups, out_of_fold=True)
        if seen.prediction is not None:
            warn_if_unstable(model, data, np.arange(n), data.y - seen.prediction)
    for category, message in heard:
        warn(message, category)  # the caller of fit


def fold_of_rows(n: int, n_folds: int, rng: np.random.RandomState, labels: AnyArray | None = None) -> IntArray:
    """The fold of each row, at random: sizes differ by at most one, and so do those of each group in them."""
    order = rng.permutation(n)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]  # groups one after another, shuffled within
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % min(n_folds, n)
    return folds


def _fitted(copy: Any, read: dict[str, Any], data: LearningData, held: Rows | None) -> tuple[Any, Told | None, Heard]:
    """The fitted copy, what it tells of the rows held back from it, and the warnings, which a process would lose.

    It reads rows as the model does whose attributes are `read`, whatever columns its part of them would look like.
    """
    vars(copy).update({name: read[name] for name in ("reader_", *FEATURES) if name in read})
    with warnings.catch_warnings(record=True) as caught, speaking(copy):
        copy._fit_rows(data, check_random_state(copy.random_state))
        told = None if held is None else replace(copy.told(held), rows=None)
    return copy, told, [(each.category, str(each.message)) for each in caught]


def warn_if_unstable(model: Any, data: LearningData, rows: IntArray, residual: Array) -> None:
    """Warn the user where out-of-fold residuals, of models of fewer rows, say little about the model of all of them.

    Such residuals stand for errors of the model of all rows as long as more rows make it no worse. Least squares with
    nearly as many columns as rows are the example: there every further row makes the errors larger, until there are
    more rows than columns. So a model of the user's is fitted to halves of the rows as well, whose errors must not be
    smaller; and one that is linear must not nearly pass through the rows by having a number for every second of them.
    """
    if getattr(model, "estimator", None) is None or learns_nothing(model.estimator_) or len(rows) < LEAST_ROWS:
        return
    X, y = model.reader_.for_model(data.rows), data.y
    halves = shuffled_folds(len(y), 2, 0)
    halved = [predict_held_out(clone(model.estimator), X, y, data.weights, fold, False) for fold in halves]
    before = np.abs(y - in_order_of_rows(halves, halved)[0])[rows]
    worse = np.abs(residual) - before
    found = ""
    if worse.mean() > max(MOST_WORSE * before.mean(), 3 * worse.std() / np.sqrt(len(worse))):
        found = f"its mean error was {before.mean():.3g} when learnt from half of the rows"
        found += f" and {np.abs(residual).mean():.3g} from most of them: more rows make it worse"
    inside = y - np.concatenate([model._center(block) for block in data.rows.blocks()])
    free = int(np.count_nonzero(getattr(last_step(model.estimator_), "coef_", 0.0)))
    if free > len(y) / 2 and np.sqrt(np.mean(inside**2)) < np.sqrt(np.mean(residual**2)) / 2:
        found = f"it has {free} coefficients for {len(y)} rows and nearly passes through them"
    if found:
        warn(
            f"calibration_size={OUT_OF_FOLD!r} with the unstable {model_name(model.estimator_)}: {found}. The coverage "
            f"may be far below the level; take a steadier model, or a calibration_size with a proof: 'auto', {CROSS!r}",
            UnstableModelWarning,
        )
