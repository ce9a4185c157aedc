"""Conformalized quantile regression (Romano, Patterson, Candes 2019) with forests and with gradient boosting."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import HistGradientBoostingRegressor

from sosbands._arguments import check, is_number
from sosbands._types import Array
from sosbands.baselines.base import Baseline, import_extra
from sosbands.conformal import Band
from sosbands.regressors.base import TakesWeights
from sosbands.regressors.rows import Rows
from sosbands.tables.columns import column_names, is_frame, read_column
from sosbands.tables.kinds import BOOLEAN, CATEGORY, NUMBER

MOST = 255  # categories and the missing one that boosting can tell apart


class _QuantileBand(Baseline):
    """A band between two learnt quantiles, with the median as point prediction.

    A subclass learns the levels ``self.levels_`` and gives ``_quantiles_at(rows)``, shape (n, 3): lower, median, upper.
    """

    quantiles: Any
    levels_: Array

    def _check_parameters(self) -> None:
        super()._check_parameters()
        pair = self.quantiles
        fine = pair is None or (
            isinstance(pair, (tuple, list, np.ndarray))
            and len(pair) == 2
            and all(is_number(level) for level in pair)
            and 0 < pair[0] < pair[1] < 1
        )
        check("quantiles", pair, fine, "None or two increasing levels in (0, 1)")

    def _set_levels(self) -> None:
        """The levels to learn: lower, median, upper."""
        tail = (1 - self.confidence_level) / 2
        lower, upper = (tail, 1 - tail) if self.quantiles is None else self.quantiles
        self.levels_ = np.array([lower, 0.5, upper], dtype=float)

    def _quantiles_at(self, rows: Rows) -> Array:
        raise NotImplementedError

    def _center_and_band(self, rows: Rows) -> tuple[Array, Band]:
        lower, center, upper = self._quantiles_at(rows).T
        return np.ascontiguousarray(center), Band(lower, upper)


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

    forest_: Any
    _saved_as = {"forest_parts_": list[Any]}

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        min_samples_leaf: int = 5,
        max_features: Any = 1.0,
        quantiles: Any = None,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = 0.5,
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

    def _learn_model(self, rows: Rows, y: Array, rng: np.random.RandomState) -> None:
        self._set_levels()
        package = import_extra("quantile_forest", "quantile-forest")
        self.forest_ = package.RandomForestQuantileRegressor(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_samples_leaf=None,  # every row of a leaf counts, as in the method; the default keeps one at random
            max_features=self.max_features,
            n_jobs=self.n_jobs,
            random_state=int(rng.randint(2**31 - 1)),
        )
        self.forest_.fit(rows.for_kernel, y)
        self._say(f"{self.n_estimators} trees grown on {len(y)} rows")

    def __getstate__(self) -> dict[str, Any]:
        """For pickling and saving: the compiled part of the forest as plain arrays.

        quantile-forest cannot read its own part back from memory-mapped files, nor skops write it.
        """
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
            compiled = import_extra("quantile_forest._quantile_forest_fast", "quantile-forest")
            writable = [np.array(part) if isinstance(part, np.ndarray) else part for part in parts]
            self.forest_.forest_ = compiled.QuantileForest(*writable)

    def _quantiles_at(self, rows: Rows) -> Array:
        found: Array = np.asarray(self.forest_.predict(rows.for_kernel, quantiles=self.levels_.tolist()), dtype=float)
        return found.reshape(len(rows), 3)


class GradientBoostingCQR(TakesWeights, _QuantileBand):
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

    models_: list[Any]
    n_iter_: int

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
        calibration_size: float | int | str | None = 0.5,
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

    def __sklearn_tags__(self) -> Any:
        """Boosting has a way of its own with missing values."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _wants_numbers(self) -> bool:
        return False

    def _must_encode(self, X: Any) -> bool:
        """Texts, dates and many categories."""
        table = X if is_frame(X) or issparse(X) else np.asarray(X)
        if issparse(table) or len(table.shape) != 2 or (not is_frame(table) and table.dtype.kind == "c"):
            return False
        columns = (read_column(table, k, name) for k, name in enumerate(column_names(table)))
        plain = all(c.kind in (NUMBER, BOOLEAN) or (c.kind == CATEGORY and len(c.levels) < MOST) for c in columns)
        return not plain

    def _learn_model(self, rows: Rows, y: Array, rng: np.random.RandomState, weight: Array | None = None) -> None:
        self._set_levels()
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
            ).fit(rows.for_model, y, sample_weight=weight)
            for level in self.levels_
        ]
        self.n_iter_ = max(model.n_iter_ for model in self.models_)
        self._say(f"three models boosted on {len(y)} rows")

    def _quantiles_at(self, rows: Rows) -> Array:
        return np.sort([model.predict(rows.for_model) for model in self.models_], axis=0).T
