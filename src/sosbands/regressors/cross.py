"""Cross-calibration of an interval regressor: a copy for each fold, that has not seen it, and a model of all rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from sosbands._arguments import check, is_count, is_splitter
from sosbands._types import AnyArray, Array, BoolArray, IntArray
from sosbands.conformal import Band, Calibration, lower_scores, upper_scores
from sosbands.conformal.arguments import read_kind, read_share
from sosbands.conformal.cross import cross_intervals, without_crossing
from sosbands.regressors.rows import Rows

CROSS = "cross"  # the word in place of a calibration size
FOLDS = 5  # of models without `cv`
LEAST_ROWS = 3  # so that every copy has two rows to learn from

Heard = list[tuple[type[Warning], str]]


def is_cross(calibration_size: Any) -> bool:
    """Whether every row is to be learnt from and calibrated on."""
    return isinstance(calibration_size, str) and calibration_size == CROSS


def fold_of_rows(n: int, n_folds: int, rng: np.random.RandomState, labels: AnyArray | None = None) -> IntArray:
    """The fold of each row, at random: sizes differ by at most one, and so do those of each group in them."""
    order = rng.permutation(n)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]  # groups one after another, shuffled within
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % min(n_folds, n)
    return folds


def fit_cross(
    model: Any,
    rows: Rows,
    y: Array,
    labels: AnyArray | None,
    rng: np.random.RandomState,
    weights: Array | None = None,
) -> None:
    """Fit the copies and the model of all rows, and score each row by the copy of its fold.

    Sets what a fit to all rows sets, and `copies_`, `folds_` and `calibration_`. Seeds are drawn before any fit, so
    that nothing depends on the number of processes.
    """
    n = len(rows)
    if n < LEAST_ROWS:
        raise ValueError(f"calibration_size={CROSS!r} with {n} rows: expected at least {LEAST_ROWS}")
    cv = getattr(model, "cv", FOLDS)
    expected = f"an int beside calibration_size={CROSS!r}, because every row must be held out once, by copies alike"
    check("cv", cv, not is_splitter(cv), expected)
    folds = fold_of_rows(n, int(cv) if is_count(cv) else FOLDS, rng, labels)
    held = [np.flatnonzero(folds == k) for k in range(folds.max() + 1)]
    seeds = rng.randint(2**31 - 1, size=len(held)).tolist()
    whole = model.random_state if is_count(model.random_state) else int(rng.randint(2**31 - 1))
    work = [(np.setdiff1d(np.arange(n), out), out, seed) for out, seed in zip(held, seeds, strict=True)]
    work.append((np.arange(n), np.arange(0), whole))
    calls = (
        delayed(_fitted)(
            _unfitted_copy(model, seed, len(work)),
            rows.take(learnt).for_model,
            y[learnt],
            rows.take(out).for_model if len(out) else None,
            {} if weights is None else {"sample_weight": weights[learnt]},
        )
        for learnt, out, seed in work
    )
    copies, bands = [], []
    heard: Heard = []
    for copy, band, said in Parallel(n_jobs=getattr(model, "n_jobs", None), return_as="generator")(calls):
        copies.append(copy)
        bands.append(band)
        heard += [each for each in said if each not in heard]
        model._say(f"{len(copies)} of {len(work)} fits done")
    given = model.get_params(deep=False)
    for name, value in vars(copies.pop()).items():
        if name not in given:
            setattr(model, name, value)
    model.copies_, model.folds_ = copies, folds
    model.calibration_rows_ = np.arange(n)
    model.calibration_ = _scored(bands, held, y, labels)
    model.n_learnt_calibration_rows_ = 0
    for category, message in heard:
        warnings.warn(message, category, stacklevel=4)  # the caller of fit


def _unfitted_copy(model: Any, seed: int, n_fits: int) -> Any:
    """A copy that learns from all rows that it is given, alone and in its share of the time."""
    copy = clone(model).set_params(calibration_size=None, random_state=seed, verbose=0)
    if getattr(model, "max_seconds", None) is not None:
        copy.set_params(max_seconds=model.max_seconds / n_fits)
    if getattr(model, "n_jobs", None) is not None:
        copy.set_params(n_jobs=None)  # as the fits themselves are spread over the processes
    return copy


def _fitted(copy: Any, X: Any, y: Array, X_held: Any, weights: dict[str, Array]) -> tuple[Any, Band | None, Heard]:
    """The fitted copy, its band at the rows held back from it, and the warnings, which another process would lose."""
    with warnings.catch_warnings(record=True) as caught:
        copy.fit(X, y, **weights)
        band = None if X_held is None else copy._band(X_held)
    return copy, band, [(each.category, str(each.message)) for each in caught]


def _scored(bands: list[Band | None], held: list[IntArray], y: Array, labels: AnyArray | None) -> Calibration:
    scores = np.empty((2, len(y)))
    for band, out in zip(bands, held, strict=False):  # the last fit holds nothing back
        if band is not None:
            scores[:, out] = lower_scores(band, y[out]), upper_scores(band, y[out])
    return Calibration(scores[0], scores[1], labels)


def predict_cross(
    model: Any, X: Any, band: Band, levels: list[float], lower_share: Any, groups: Any, likelihood_ratio: Any
) -> tuple[list[tuple[Array, BoolArray]], list[str | None]]:
    """For each level the intervals and which of them are empty, and why some are infinite.

    `band` is that of the model of all rows, whose middle stands in where no other is finite.
    """
    refuse("likelihood_ratio", likelihood_ratio is not None, "the rows of a fold weigh alike")
    kind = read_kind(model.calibration)
    share = read_share(lower_share, kind)
    labels, _ = model.calibration_.read_rows(len(band), groups)
    bands = [copy._band(X) for copy in model.copies_]
    made, reasons = [], []
    for level in levels:
        ends = cross_intervals(bands, model.calibration_, model.folds_, level, kind, share, labels)
        reasons.append(model.calibration_.shortage(ends * (-1.0, 1.0), level, kind, share, labels))
        made.append(without_crossing(ends, band))
    return made, reasons


def refuse(name: str, given: bool, why: str) -> None:
    """The error for what cross-calibration cannot do."""
    if given:
        raise ValueError(
            f"{name} of a model fitted with calibration_size={CROSS!r}: not offered, because {why}; fit with another "
            "calibration_size"
        )
