"""Conformalized quantile regression (Romano, Patterson, Candes 2019) with forests and with gradient boosting."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from sosbands._arguments import is_number
from sosbands._extras import need
from sosbands._progress import say
from sosbands._types import Array
from sosbands.conformal import Band, Told
from sosbands.regressors.checks import rule
from sosbands.regressors.split import SplitRegressor, fit_alike
from sosbands.tables.rows import CATEGORIES, LearningData, Rows


def _is_pair_of_levels(pair: Any) -> bool:
    known = isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2 and all(map(is_number, pair))
    return pair is None or (known and 0 < pair[0] < pair[1] < 1)


class _QuantileBand(SplitRegressor):
    """A band between two learnt quantiles, with the median as point prediction.

    A subclass learns the levels ``self.levels_`` and gives ``_quantiles_at(rows)``, shape (n, 3): lower, median, upper.
    """

    _checks = {"quantiles": rule("quantiles", _is_pair_of_levels, "None or two increasing levels in (0, 1)")}
    quantiles: Any

    def _set_levels(self) -> None:
        """The levels to learn: lower, median, upper."""
        tail = (1 - self.confidence_level) / 2
        lower, upper = (tail, 1 - tail) if self.quantiles is None else self.quantiles
        self.levels_ = np.array([lower, 0.5, upper], dtype=float)

    def _quantiles_at(self, rows: Rows) -> Array:
        raise NotImplementedError

    def _tell_block(self, rows: Rows) -> Told:
        lower, center, upper = self._quantiles_at(rows).T
        return Told(Band(lower, upper), np.ascontiguousarray(center))


class QuantileForestCQR(_QuantileBand):
    """Conformalized quantile regression with a quantile regression forest.

    The forest of quantile-forest learns the whole conditional distribution; two of its quantiles are the band, to which
    calibration adds a constant. The quantiles of one distribution cannot cross. Needs ``sosbands[baselines]``.

    Parameters
    ----------
    n_estimators, min_samples_leaf : int
        Trees, and rows in each leaf.
    max_features : float, int, str or None
        Features that a split chooses from, as in scikit-learn's forests.
    quantiles : pair of float, optional
        Levels of the lower and of the upper end before calibration; by default ``alpha/2`` and ``1 - alpha/2`` with
        ``alpha = 1 - confidence_level``. They do not change with the level asked of `predict_interval`.
    confidence_level, calibration, calibration_size, random_state, verbose
        As in `SplitCP`; the forest has `random_state` too.
    n_jobs : int, optional
        Threads of the forest.

    Attributes
    ----------
    forest_ : RandomForestQuantileRegressor
    levels_ : ndarray of shape (3,)
        Levels of the lower end, of the point prediction (the median), and of the upper end.
    """

    fit: Any = fit_alike  # what is learnt knows no weights, as scikit-learn reads from the signature

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        min_samples_leaf: int = 5,
        max_features: Any = 1.0,
        quantiles: Any = None,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.quantiles = quantiles
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:
        self._set_levels()
        self.reader_, _ = self.reader_.as_numbers(data)
        package = need("quantile_forest")
        self.forest_ = package.RandomForestQuantileRegressor(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_samples_leaf=None,  # every row of a leaf counts, as in the method; the default keeps one at random
            max_features=self.max_features,
            n_jobs=self.n_jobs,
            random_state=int(rng.randint(2**31 - 1)),
        )
        self.forest_.fit(self.reader_.points(data.rows), data.y)
        say(f"{self.n_estimators} trees grown on {len(data)} rows")

    def __getstate__(self) -> dict[str, Any]:
        """The compiled part of the forest as plain arrays, which memory-mapped files and skops can hold."""
        state = dict(super().__getstate__())
        if "forest_" in state:
            bare = copy(state["forest_"])
            state["forest_parts_"] = list(bare.forest_.__reduce__()[1])
            del bare.forest_
            state["forest_"] = bare
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = state.pop("forest_parts_", None)
        super().__setstate__(state)
        if parts is not None:
            compiled = need("quantile_forest._quantile_forest_fast")
            writable = [np.array(part) if isinstance(part, np.ndarray) else part for part in parts]
            self.forest_.forest_ = compiled.QuantileForest(*writable)

    def _quantiles_at(self, rows: Rows) -> Array:
        found = self.forest_.predict(self.reader_.points(rows), quantiles=self.levels_.tolist())
        return np.asarray(found, dtype=float).reshape(len(rows), 3)


class GradientBoostingCQR(_QuantileBand):
    """Conformalized quantile regression with scikit-learn's histogram gradient boosting.

    Three models learn the lower quantile, the median and the upper quantile by the pinball loss. They are independent
    of one another, so their predictions may cross: the three are sorted at every row, which brings quantile estimates
    nearer to the true ones wherever they cross (rearrangement). Missing values and data frames with columns of a
    category type are taken as they are; tables with texts, dates or more than 254 categories are encoded.

    Parameters
    ----------
    max_iter, min_samples_leaf : int
        Trees of each model, and rows in each leaf.
    learning_rate : float
        Shrinkage of the trees.
    max_leaf_nodes : int or None
        Leaves of each tree.
    quantiles : pair of float, optional
        As in `QuantileForestCQR`.
    confidence_level, calibration, calibration_size, random_state, verbose
        As in `SplitCP`.

    Attributes
    ----------
    models_ : list of HistGradientBoostingRegressor
        One for each of `levels_`.
    n_iter_ : int
        Trees of the largest of them.
    levels_ : ndarray of shape (3,)
        Levels of the lower end, of the point prediction (the median), and of the upper end.
    """

    def __init__(
        self,
        *,
        max_iter: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int | None = 31,
        min_samples_leaf: int = 20,
        quantiles: Any = None,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.quantiles = quantiles
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.verbose = verbose

    def _wanted_rows(self) -> str:
        return CATEGORIES

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:
        self._set_levels()
        self.reader_, X = self.reader_.as_numbers(data)
        seed = int(rng.randint(2**31 - 1))
        self.models_ = [
            HistGradientBoostingRegressor(
                loss="quantile",
                quantile=level,
                max_iter=self.max_iter,
                learning_rate=self.learning_rate,
                max_leaf_nodes=self.max_leaf_nodes,
                min_samples_leaf=self.min_samples_leaf,
                random_state=seed,
            ).fit(X, data.y, sample_weight=data.weights)
            for level in self.levels_
        ]
        self.n_iter_ = max(model.n_iter_ for model in self.models_)
        say(f"three models boosted on {len(data)} rows")

    def _quantiles_at(self, rows: Rows) -> Array:
        X = self.reader_.for_model(rows)
        return np.sort([model.predict(X) for model in self.models_], axis=0).T
