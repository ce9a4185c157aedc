"""The interface that every interval regressor shares: calibrate, predict intervals at any level, evaluate them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Self

import numpy as np

from sosbands._arguments import check, finite_numbers, is_count, read_numbers
from sosbands._types import Array
from sosbands._words import share_of, warn
from sosbands.conformal.asked import (
    Asked,
    Intervals,
    calibration_of,
    is_conditional,
    read_fading,
    read_kind,
    read_level,
    read_probabilities,
    read_target,
    warn_off_data,
)
from sosbands.conformal.band import Told
from sosbands.conformal.calibration import Calibration, Placed
from sosbands.conformal.conditional import ConditionalCalibration
from sosbands.conformal.quantile import points_needed
from sosbands.exceptions import LITTLE_SUPPORT, TooFewCalibrationPointsWarning

ENSEMBLE, BLOCK = 100, 10_000  # values by which `evaluate` tells a distribution, and rows at a time
NUMPY = "default"
OUTPUTS = (NUMPY, "pandas", "polars")


class IntervalMixin:
    """Conformal calibration for a regressor that tells an uncalibrated band.

    A subclass has the constructor parameters `confidence_level` and `calibration` and the method ``told(X)``, which
    checks that the model is fitted and that X is as it should be, and returns what it tells of these rows (`Told`).
    The distribution of each row, by the places of the calibration points in their bands, depends on neither parameter.

    Attributes
    ----------
    calibration_ : Calibration or CrossCalibration
        Scores, groups and weights of the calibration points; set by `conformalize`.
    """

    confidence_level: Any
    calibration: Any
    calibration_: Calibration

    def told(self, X: Any) -> Told:
        """Prediction, uncalibrated ends and their units at the rows of X."""
        raise NotImplementedError(f"{type(self).__name__} must define told(X)")

    def _known_rows(self, told: Told, y: Array, caller: str) -> dict[str, Any]:  # noqa: ARG002
        """What calibration remembers of where rows are from, `n_learnt` and `hashes`, where the model knows them.

        The user of the method `caller` is warned of rows that were learnt from or calibrated on.
        """
        return {}

    @property
    def support_limit(self) -> float:
        """Rows with less support than this count as far from the learning data."""
        return LITTLE_SUPPORT

    @property
    def scores_(self) -> Array:
        """Calibration scores: (m,) for symmetric calibration, (m, 2) with columns lower, upper for asymmetric."""
        return np.asarray(calibration_of(self).scores(read_kind(self.calibration, conditional=True)))

    @property
    def n_calibration_(self) -> int:
        """Number of calibration points."""
        return len(calibration_of(self))

    @property
    def n_learnt_calibration_rows_(self) -> int:
        """Calibration rows that `fit` had learnt from; above 0 the coverage guarantee is void."""
        return int(calibration_of(self).n_learnt)

    def conformalize(self, X: Any, y: Any, *, groups: Any = None, likelihood_ratio: Any = None) -> Self:
        """Calibrate on rows that `fit` has not seen; a second call replaces the first.

        Parameters
        ----------
        X, y : array or data frame of shape (m, n_features), array of shape (m,)
            Calibration points and their observations.
        groups : array of shape (m,), optional
            Labels: each group gets its own quantiles, and so its own coverage guarantee. With
            ``calibration="conditional"`` also a table of True and False, a column for each of k groups, shape (m, k):
            each has its guarantee, and they may overlap.
        likelihood_ratio : array of shape (m,), optional
            Density of the test points over that of the calibration points, up to a constant (covariate shift).
        """
        read_kind(self.calibration, conditional=True)
        self.calibration_ = self._scored("conformalize", X, y, groups, likelihood_ratio)
        return self

    def update(
        self,
        X: Any,
        y: Any,
        *,
        window: int | None = None,
        decay: float | None = None,
        groups: Any = None,
        likelihood_ratio: Any = None,
    ) -> Self:
        """Add calibration rows to those that there are, in the order of time; without any it is `conformalize`.

        Parameters
        ----------
        X, y : array or data frame of shape (m, n_features), array of shape (m,)
            Rows that `fit` has not seen, one or many, later than all so far, and their observations.
        window : int, optional
            Keep the last so many rows, of each group if there are groups; None keeps all.
        decay : float in (0, 1), optional
            The last row but k counts as ``decay^(k + 1)`` of a new row; None counts all rows alike. The shares of all
            rows together tend to `decay`, so that for finite intervals it must exceed the confidence level, with
            asymmetric calibration the level of each end, ``1 - (1 - level)/2``.
        groups, likelihood_ratio : arrays of shape (m,), optional
            Given if and only if the calibration rows so far have them.

        Notes
        -----
        `window` and `decay` are those of this call: the next one without them keeps all rows left, and counts them
        alike. If the rows kept and a new one are exchangeable, coverage is promised as after `conformalize`, whatever
        the window and the decay. Otherwise coverage is at least ``level - sum_i p_i d_TV(S, S^i)``, with p_i the share
        of row i in the weights and S^i the scores with row i and the new one exchanged (Barber, Candes, Ramdas,
        Tibshirani 2023), a bound that nobody can compute: for rows that drift nothing exact is promised.
        """
        if is_conditional(self.calibration):
            raise ValueError("update with calibration='conditional': not offered, call conformalize with all rows")
        read_kind(self.calibration)
        last, fading = read_fading(window, decay, with_ratio=likelihood_ratio is not None)
        new = self._scored("update", X, y, groups, likelihood_ratio)
        if "calibration_" in vars(self):
            self.calibration_ = self.calibration_.extended(new, window=last, decay=fading)
        else:
            self.calibration_ = new.faded(window=last, decay=fading)
        return self

    def _scored(self, caller: str, X: Any, y: Any, groups: Any, likelihood_ratio: Any) -> Calibration:
        """Scores of rows given to the method `caller`."""
        if "calibration_" in vars(self):
            self.calibration_.check_offers(caller)
        told = self.told(X)
        target = read_target(y, len(told))
        known = self._known_rows(told, target, caller)
        return self._calibrated(told, target, groups, likelihood_ratio, **known)

    def _calibrated(
        self, told: Told, y: Array, groups: Any = None, likelihood_ratio: Any = None, **origin: Any
    ) -> Calibration:
        """The calibration on these rows; `origin` is what it remembers of where they are from."""
        if not is_conditional(self.calibration):
            return Calibration.of(told.band, y, groups, likelihood_ratio, **origin)
        if likelihood_ratio is not None:
            raise ValueError("likelihood_ratio with calibration='conditional': not offered, expected None")
        return ConditionalCalibration.of_points(told, y, self._calibration_points(told), groups, **origin)

    def _calibration_points(self, told: Told) -> Array | None:
        """Where rows lie, in units of the learning rows; None if not all of it is numbers, or they are not known."""
        return None if told.rows is None else self._metric_points(told.rows).get("X")

    def coverage_gap(self, X: Any, confidence_level: Any = None) -> Array:
        """By how much coverage near each row of X differs from the level, of ``calibration="conditional"``.

        Rows near it count as the kernel says. It is an estimate from the calibration rows of ``-lam <g_K, k(., x)>``
        over the mean of the kernel (`sosbands.conformal.conditional`), 0 where no kernel is at work; intervals, whose
        weights are at their ends, cover that much or a little more.
        """
        made = calibration_of(self)
        if not isinstance(made, ConditionalCalibration):
            raise ValueError("coverage_gap: expected a model with calibration='conditional'")
        told = self.told(X)
        points = self._calibration_points(told)
        level = read_level(self.confidence_level if confidence_level is None else confidence_level)
        return made.coverage_gap(np.zeros((len(told), 0)) if points is None else points, level)

    def set_output(self, *, intervals: str | None = None) -> Self:
        """Choose what `predict_interval` returns.

        Parameters
        ----------
        intervals : {"default", "pandas", "polars"}, optional
            A NumPy array, or a data frame with the columns "lower" and "upper", of several levels "lower_80",
            "upper_80", "lower_90" and so on; that of pandas has the index of X. None leaves the choice as it is.
        """
        if intervals is not None:
            check("intervals", intervals, intervals in OUTPUTS, f"one of {list(OUTPUTS)}")
            self._sklearn_output_config = {"intervals": intervals}  # which scikit-learn's `clone` copies
        return self

    def intervals(
        self,
        X: Any,
        levels: Any = None,
        *,
        side: str = "both",
        lower_share: Any = 0.5,
        groups: Any = None,
        likelihood_ratio: Any = None,
    ) -> Intervals:
        """Calibrated prediction intervals with all that is known of them: prediction, ends, support, which are empty.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows.
        levels : float or list of k floats, optional
            In (0, 1); by default the `confidence_level` of the constructor. Intervals are nested in the level
            (asymmetric calibration: those that are not empty).
        side : {"both", "lower", "upper"}
            One end alone, whatever the `calibration`, has all of the miscoverage; the other one is infinite.
        lower_share : float
            Part of the miscoverage given to the lower side, for both ends and asymmetric calibration; 0 or 1 leaves one
            end infinite.
        groups, likelihood_ratio : arrays of shape (n,), optional
            Given if and only if `conformalize` got them.

        Returns
        -------
        Intervals
            With ends of shape (n, k), also for one level.

        Warns
        -----
        TooFewCalibrationPointsWarning
            If there are too few calibration points for a level, so that intervals are infinite.
        CrossedIntervalsWarning
            If negative quantiles leave some intervals empty; their midpoint is returned twice.
        OffDataWarning
            If rows are far from the learning data.
        """
        asked = Asked.of(self, levels, side, lower_share, groups, likelihood_ratio)
        found: Intervals = self.calibration_.intervals(self.told(X), asked)
        found.warn(self.support_limit)
        return found

    def predict_interval(
        self,
        X: Any,
        confidence_level: Any = None,
        *,
        side: str = "both",
        lower_share: Any = 0.5,
        groups: Any = None,
        likelihood_ratio: Any = None,
    ) -> Any:
        """Calibrated prediction intervals as an array: the ends that `intervals` gives.

        Parameters
        ----------
        X, side, lower_share, groups, likelihood_ratio
            As in `intervals`, which warns of the same.
        confidence_level : float or list of k floats, optional
            As `levels` of `intervals`.

        Returns
        -------
        intervals : array of shape (n, 2), or (n, 2, k) for a list of levels; or a data frame (see `set_output`)
        """
        asked = {"side": side, "lower_share": lower_share, "groups": groups, "likelihood_ratio": likelihood_ratio}
        found = self.intervals(X, confidence_level, **asked)
        many = np.ndim(self.confidence_level if confidence_level is None else confidence_level) > 0
        values = np.swapaxes(found.ends, 1, 2).reshape(len(found), 2 * len(found.levels))
        frame = self._as_frame(X, values, interval_names(found.levels, many))
        if frame is not None:
            return frame
        return found.ends if many else found.ends[:, :, 0]

    def _as_frame(self, X: Any, values: Array, names: Sequence[str]) -> Any:
        """Columns of shape (n, k) as a data frame, if `set_output` has chosen one."""
        kind = getattr(self, "_sklearn_output_config", {}).get("intervals", NUMPY)
        if kind == NUMPY:
            return None
        columns = dict(zip(names, values.T, strict=True))
        index = {"index": X.index if hasattr(X, "iloc") else None} if kind == "pandas" else {}
        return import_module(kind).DataFrame(columns, **index)

    def quantile(
        self,
        level: Any = None,
        *,
        side: str = "both",
        lower_share: Any = 0.5,
        group: Any = None,
        likelihood_ratio: Any = None,
    ) -> float | tuple[float, float]:
        """The conformal quantile by which calibration moves both ends, or one for each end, in the unit of the ends.

        Where the ends have the unit 1 (the added score), it is the number that is added to the reach of the band,
        negative if it is taken off. Where they lie at the prediction with functions as units (the scaled score), it is
        the factor that these are multiplied by, at least 0: 1 if the band holds just the share asked for.

        Parameters
        ----------
        level : float, optional
            Confidence level in (0, 1); by default that of the constructor.
        side, lower_share
            As in `intervals`.
        group, likelihood_ratio : label and float, optional
            Those of one point; given if and only if `conformalize` got them.

        Returns
        -------
        quantile : float (symmetric calibration, or one side) or pair of floats (asymmetric: lower, upper)
        """
        calibration_of(self).check_offers("quantile")
        value = read_level(self.confidence_level if level is None else level)
        groups, ratio = (None if given is None else [given] for given in (group, likelihood_ratio))
        asked = Asked.of(self, value, side, lower_share, groups, ratio)
        labels, weights = self.calibration_.read_rows(1, groups, ratio)
        q = self.calibration_.quantiles(value, asked.kind, asked.lower_share, groups=labels, weights=weights)
        short = self.calibration_.shortage(q, value, asked.kind, asked.lower_share, labels)
        if short:
            warn(short, TooFewCalibrationPointsWarning)
        q_lo, q_up = (float(each) for each in q[0])
        if side == "both" and asked.kind == "asymmetric":
            return q_lo, q_up
        return q_up if side == "upper" else q_lo

    def evaluate(
        self,
        X: Any,
        y: Any,
        confidence_level: Any = None,
        *,
        side: str = "both",
        lower_share: Any = 0.5,
        groups: Any = None,
        likelihood_ratio: Any = None,
        sample_weight: Any = None,
        by: Any = None,
        places: bool = False,
    ) -> dict[str, Any]:
        """Coverage, width and the other metrics of the intervals at one confidence level, as one row.

        Parameters
        ----------
        X, confidence_level, side, lower_share, groups, likelihood_ratio
            As in `predict_interval`.
        y : array of shape (n,)
            Observations.
        sample_weight : array of shape (n,), optional
            How much each row counts in coverage, mean width, interval score and CRPS.
        by : array of shape (n,), or table of bool columns, optional
            Groups of the rows, whatever the model knows of them; the entry `by` is then a dict with the coverage, its
            range, the width and the score of each (`sosbands.metrics.evaluate_groups`).
        places : bool
            Look for places where coverage departs from the level (`sosbands.metrics.evaluate_places`), 0.3 s for
            1000 rows.

        Returns
        -------
        dict of str to float
            What `sosbands.metrics.evaluate_intervals` gives, and two entries about the whole distribution, whatever the
            level: `crps` of an ensemble of 100 (`sosbands.metrics.crps`) and `pit_distance` of ``predict_cdf(X, y)``;
            models calibrated by copies have neither.
        """
        # here, because calibration itself needs no metric
        from sosbands.metrics import evaluate_intervals
        from sosbands.metrics.distribution import ensemble_crps, pit_distance
        from sosbands.metrics.intervals import mean_over_rows
        from sosbands.metrics.local import evaluate_groups, evaluate_places

        calibration_of(self)
        level = read_level(self.confidence_level if confidence_level is None else confidence_level)
        asked = Asked.of(self, level, side, lower_share, groups, likelihood_ratio)
        told = self.told(X)
        found = self.calibration_.intervals(told, asked)
        found.warn(self.support_limit)
        observed = read_target(y, len(told))
        self._known_rows(told, observed, "evaluate")
        given = (observed, found.lower[:, 0], found.upper[:, 0])
        points = self._metric_points(X if told.rows is None else told.rows)
        row: dict[str, Any] = evaluate_intervals(*given, confidence_level=level, sample_weight=sample_weight, **points)
        if places:
            check("places", places, bool(points), "False, as places are looked for in numbers and X has others")
            row |= evaluate_places(*given, confidence_level=level, **points)
        if by is not None:
            row["by"] = evaluate_groups(*given, by, confidence_level=level, sample_weight=sample_weight)
        if self.calibration_.inner_places is None:  # as copies have scored the rows
            return row
        scores, transforms = np.empty((2, len(told)))
        for part in self.calibration_.distribution(told, asked):
            transforms[part.rows] = part.places.probabilities(part.band, observed[part.rows], part.weights)
            for some in np.array_split(np.arange(len(part.rows)), -(-len(part.rows) // BLOCK)):
                rows = part.rows[some]
                scores[rows] = ensemble_crps(observed[rows], part.places.ensemble(part.band.take(some), ENSEMBLE))
        return row | {"crps": mean_over_rows(scores, sample_weight), "pit_distance": pit_distance(transforms)}

    def _metric_points(self, rows: Any) -> dict[str, Any]:
        """Points in which the metrics look for neighbours, `X` and possibly `X_learn`; none if not all are numbers."""
        points = finite_numbers(rows)
        return {} if points is None else {"X": points}

    def predict_quantile(self, X: Any, q: Any, *, groups: Any = None, likelihood_ratio: Any = None) -> Any:
        """Calibrated quantiles, increasing in q to the last digit.

        Parameters
        ----------
        X, groups, likelihood_ratio
            As in `intervals`.
        q : float or list of k floats
            In (0, 1).

        Returns
        -------
        quantiles : array of shape (n,), or (n, k) for a list; or a data frame (see `set_output`)

        Notes
        -----
        Up to 1/2 at most a share q of new rows lies below its quantile, above 1/2 at least a share q lies at it or
        below it, on average over calibration sets; without ties the shares are within ``1/(m + 1)`` of q, with m
        calibration points that count alike (with those that fade, within the share of a new row in all weights).
        These are the ends of one-sided intervals with all of the miscoverage on their side.

        Warns
        -----
        TooFewCalibrationPointsWarning
            If there are too few calibration points for a q, so that its quantiles are infinite.
        """
        levels, many = read_probabilities(q)
        told, parts = self._distribution("predict_quantile", X, groups, likelihood_ratio)
        found = np.empty((len(told), len(levels)))
        for part in parts:
            for k, level in enumerate(levels):
                found[part.rows, k] = part.places.quantiles(part.band, level, part.weights)
        reasons = [
            f"quantile {level:g} needs at least {points_needed(max(level, 1 - level)):.0f} calibration points, "
            f"{self.calibration_.described()}; {share_of(infinite, len(found), 'quantile')} infinite"
            for level, infinite in zip(levels, np.isinf(found).sum(axis=0).tolist(), strict=True)
            if infinite
        ]
        if reasons:
            warn("; ".join(reasons), TooFewCalibrationPointsWarning)
        warn_off_data(told.band.support, self.support_limit)
        frame = self._as_frame(X, found, quantile_names(levels, many))
        if frame is not None:
            return frame
        return found if many else found[:, 0]

    def predict_cdf(self, X: Any, y: Any, *, groups: Any = None, likelihood_ratio: Any = None) -> Array:
        """Probability of an observation up to y, by the calibrated distribution of each row.

        Parameters
        ----------
        X, groups, likelihood_ratio
            As in `intervals`.
        y : float, or array of shape (n,) or (n, k)
            Thresholds; or the observations themselves, of which these are the probability integral transforms.

        Returns
        -------
        probabilities : array of shape (n,), or (n, k)
            In (0, 1): ``(#{places below y} + (#{places at y} + 1)/2) / (m + 1)`` over the m calibration points.
        """
        told, parts = self._distribution("predict_cdf", X, groups, likelihood_ratio)
        n, values = len(told), read_numbers("y", y)
        if values.ndim == 0:
            values = np.full(n, float(values))
        if values.ndim > 2 or len(values) != n:
            raise ValueError(f"y has shape {values.shape}: expected a number, or ({n},) or ({n}, k)")
        if np.isnan(values).any():
            raise ValueError(f"y has {int(np.isnan(values).sum())} entries that are NaN: expected numbers")
        found = np.empty(values.shape)
        for part in parts:
            for column, thresholds in zip(found.reshape(n, -1).T, values.reshape(n, -1).T, strict=True):
                column[part.rows] = part.places.probabilities(part.band, thresholds[part.rows], part.weights)
        return found

    def predict_ensemble(self, X: Any, size: int = 100, *, groups: Any = None, likelihood_ratio: Any = None) -> Array:
        """Equally likely values for each row, in increasing order: the calibration points, as many as are asked for.

        Parameters
        ----------
        X, groups, likelihood_ratio
            As in `intervals`.
        size : int
            How many; m of them are all that m calibration points say.

        Returns
        -------
        values : array of shape (n, size)
            Finite, unless a calibration point had an infinite score: the share ``1/(m + 1)`` of new rows that may lie
            beyond all calibration points is left out.
        """
        check("size", size, is_count(size) and size >= 1, "an int >= 1")
        told, parts = self._distribution("predict_ensemble", X, groups, likelihood_ratio)
        found = np.empty((len(told), size))
        for part in parts:
            found[part.rows] = part.places.ensemble(part.band, size)
        return found

    def _distribution(self, wanted: str, X: Any, groups: Any, likelihood_ratio: Any) -> tuple[Told, list[Placed]]:
        """What is told of all rows, and the parts of it with their calibration places."""
        calibration_of(self).check_offers(wanted)
        told = self.told(X)
        return told, self.calibration_.distribution(told, Asked(groups=groups, likelihood_ratio=likelihood_ratio))


def interval_names(levels: Sequence[float], many: bool, ends: Sequence[str] = ("lower", "upper")) -> list[str]:
    """Columns of intervals at these levels: "lower" and "upper", of several levels such as "lower_90"."""
    return [f"{end}_{100 * level:.10g}" for level in levels for end in ends] if many else list(ends)


def quantile_names(levels: Sequence[float], many: bool = True) -> list[str]:
    """Columns of quantiles: "quantile_5", "quantile_50"; "quantile" of one level that came alone."""
    return [f"quantile_{100 * level:.10g}" for level in levels] if many else ["quantile"]
