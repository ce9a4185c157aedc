"""The interface that every interval regressor shares: calibrate, predict intervals at any level, evaluate them."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np

from sosbands._arguments import check
from sosbands._types import Array, BoolArray
from sosbands._words import share_of
from sosbands.conformal.arguments import read_fading, read_kind, read_level, read_levels, read_share, read_target
from sosbands.conformal.band import Band, interval
from sosbands.conformal.calibration import Calibration
from sosbands.conformal.frames import NUMPY, OUTPUTS, as_frame
from sosbands.conformal.predictive import DistributionMixin, placed
from sosbands.exceptions import CrossedIntervalsWarning, NotCalibratedError, TooFewCalibrationPointsWarning

ENSEMBLE, BLOCK = 100, 10_000  # values by which `evaluate` tells a distribution, and rows at a time


class IntervalMixin(DistributionMixin):
    """Conformal calibration for a regressor that offers an uncalibrated band.

    A subclass has the constructor parameters `confidence_level` and `calibration` and the method ``_band(X)``, which
    checks that the model is fitted and that X is as it should be, and returns a `Band`.

    Attributes
    ----------
    calibration_ : Calibration
        Scores, groups and weights of the calibration points; set by `conformalize`.
    """

    _set_by_some_fits: ClassVar[tuple[str, ...]] = ("calibration_",)
    confidence_level: Any
    calibration: Any
    calibration_: Calibration

    def _band(self, X: Any) -> Band:
        """Uncalibrated ends and their units at the rows of X."""
        raise NotImplementedError(f"{type(self).__name__} must define _band(X)")

    @property
    def scores_(self) -> Array:
        """Calibration scores: (m,) for symmetric calibration, (m, 2) with columns lower, upper for asymmetric."""
        return self._calibrated("scores_").scores(read_kind(self.calibration))

    @property
    def n_calibration_(self) -> int:
        """Number of calibration points."""
        return len(self._calibrated("n_calibration_"))

    def conformalize(self, X: Any, y: Any, *, groups: Any = None, likelihood_ratio: Any = None) -> Self:
        """Calibrate on rows that `fit` has not seen; a second call replaces the first.

        Parameters
        ----------
        X : array or data frame of shape (m, n_features)
            Calibration points.
        y : array of shape (m,)
            Their observations.
        groups : array of shape (m,), optional
            Labels: each group gets its own quantiles, and so its own coverage guarantee.
        likelihood_ratio : array of shape (m,), optional
            Density of the test points over that of the calibration points, up to a constant (covariate shift).

        Returns
        -------
        self
        """
        read_kind(self.calibration)
        self._calibrate(*self._scored("conformalize", X, y, groups, likelihood_ratio), kept=0)
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
        X : array or data frame of shape (m, n_features)
            Rows that `fit` has not seen, one or many, later than all so far.
        y : array of shape (m,)
            Their observations.
        window : int, optional
            Keep the last so many rows, of each group if there are groups; None keeps all.
        decay : float in (0, 1), optional
            The last row but k counts as ``decay^(k + 1)`` of a new row; None counts all rows alike. The shares of all
            rows together tend to `decay`, so that for finite intervals it must exceed the confidence level, with
            asymmetric calibration the level of each end, ``1 - (1 - level)/2``.
        groups, likelihood_ratio : arrays of shape (m,), optional
            Given if and only if the calibration rows so far have them.

        Returns
        -------
        self

        Notes
        -----
        `window` and `decay` are those of this call: the next one without them keeps all rows left, and counts them
        alike. If the rows kept and a new one are exchangeable, coverage is promised as after `conformalize`, whatever
        the window and the decay. Otherwise coverage is at least ``level - sum_i p_i d_TV(S, S^i)``, with p_i the share
        of row i in the weights and S^i the scores with row i and the new one exchanged (Barber, Candes, Ramdas,
        Tibshirani 2023), a bound that nobody can compute: for rows that drift nothing exact is promised.
        """
        read_kind(self.calibration)
        last, fading = read_fading(window, decay, with_ratio=likelihood_ratio is not None)
        new, n_learnt = self._scored("update", X, y, groups, likelihood_ratio)
        if "calibration_" in vars(self):
            joined = self.calibration_.extended(new, window=last, decay=fading)
        else:
            joined = new.faded(window=last, decay=fading)
        kept = len(joined) if last is None or groups is not None else max(0, last - len(new))
        self._calibrate(joined, n_learnt, kept=kept)
        return self

    def _scored(self, caller: str, X: Any, y: Any, groups: Any, likelihood_ratio: Any) -> tuple[Calibration, int]:  # noqa: ARG002
        """Scores of rows given to the method `caller`, and how many of them were learnt from, where that is known."""
        band = self._band(X)
        return Calibration.of(band, read_target(y, len(band)), groups, likelihood_ratio), 0

    def _calibrate(self, calibration: Calibration, n_learnt: int, *, kept: int) -> None:  # noqa: ARG002
        """Take this calibration, which holds at most `kept` rows of the one before."""
        self.calibration_ = calibration

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

    def predict_interval(
        self,
        X: Any,
        confidence_level: Any = None,
        *,
        lower_share: Any = 0.5,
        groups: Any = None,
        likelihood_ratio: Any = None,
    ) -> Any:
        """Calibrated prediction intervals.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Points.
        confidence_level : float or list of k floats, optional
            In (0, 1); by default that of the constructor. Intervals are nested in the level (asymmetric calibration:
            those that are not empty).
        lower_share : float
            Part of the miscoverage given to the lower side, for asymmetric calibration; 0 or 1 leaves one end infinite.
        groups, likelihood_ratio : arrays of shape (n,), optional
            Given if and only if `conformalize` got them.

        Returns
        -------
        intervals : array of shape (n, 2), or (n, 2, k) for a list of levels; or a data frame (see `set_output`)

        Warns
        -----
        TooFewCalibrationPointsWarning
            If there are too few calibration points for the level, so that intervals are infinite.
        CrossedIntervalsWarning
            If negative quantiles leave some intervals empty; their midpoint is returned twice.
        """
        self._calibrated("predict_interval")
        levels, many = read_levels(self.confidence_level if confidence_level is None else confidence_level)
        read_share(lower_share, read_kind(self.calibration))
        _, each = self._band_and_ends(X, levels, lower_share, groups, likelihood_ratio)
        ends = np.stack(each, axis=2) if many else each[0]
        kind = getattr(self, "_sklearn_output_config", {}).get("intervals", NUMPY)
        return ends if kind == NUMPY else as_frame(ends, levels, kind, getattr(X, "index", None))

    def _band_and_ends(
        self, X: Any, levels: list[float], lower_share: Any, groups: Any, likelihood_ratio: Any
    ) -> tuple[Band, list[Array]]:
        """The band, and the intervals at each level, with all warnings of them."""
        _, band, made = self._intervals(X, levels, lower_share, groups, likelihood_ratio)
        crossed = sum(int(np.sum(rows)) for _, rows in made)
        if crossed:
            warnings.warn(
                f"{share_of(crossed, len(band) * len(levels), 'interval')} empty, because calibration narrows the band "
                "by more than its width there; their midpoint is given twice",
                CrossedIntervalsWarning,
                stacklevel=3,
            )
        self._check_band(band)
        return band, [ends for ends, _ in made]

    def _intervals(
        self, X: Any, levels: list[float], lower_share: Any = 0.5, groups: Any = None, likelihood_ratio: Any = None
    ) -> tuple[Array | None, Band, list[tuple[Array, BoolArray]]]:
        """Predictions, if the model has some; band; for each level the intervals and which of them are empty."""
        band = self._band(X)
        q = self._conformal_quantiles(len(band), levels, lower_share, groups, likelihood_ratio, 5)
        return None, band, [interval(band, *ends_of_level.T) for ends_of_level in q]

    def _check_band(self, band: Band) -> None:
        """Warn of rows for which a subclass knows its band to be doubtful; none by default."""

    def quantile(
        self, level: Any = None, *, lower_share: Any = 0.5, group: Any = None, likelihood_ratio: Any = None
    ) -> float | tuple[float, float]:
        """The conformal quantile by which calibration moves both ends, or one for each end, in the unit of the ends.

        Where the ends have the unit 1 (the added score), it is the number that is added to the reach of the band,
        negative if it is taken off. Where they lie at the prediction with functions as units (the scaled score), it is
        the factor that these are multiplied by, at least 0: 1 if the band holds just the share asked for.

        Parameters
        ----------
        level : float, optional
            Confidence level in (0, 1); by default that of the constructor.
        lower_share : float
            As in `predict_interval`.
        group, likelihood_ratio : label and float, optional
            Those of one point; given if and only if `conformalize` got them.

        Returns
        -------
        quantile : float (symmetric calibration) or pair of floats (asymmetric: lower, upper)
        """
        self._calibrated("quantile")
        value = read_level(self.confidence_level if level is None else level)
        groups, ratio = (None if given is None else [given] for given in (group, likelihood_ratio))
        q_lo, q_up = self._conformal_quantiles(1, [value], lower_share, groups, ratio)[0][0].tolist()
        return q_lo if read_kind(self.calibration) == "symmetric" else (q_lo, q_up)

    def evaluate(
        self,
        X: Any,
        y: Any,
        confidence_level: Any = None,
        *,
        lower_share: Any = 0.5,
        groups: Any = None,
        likelihood_ratio: Any = None,
        sample_weight: Any = None,
    ) -> dict[str, float]:
        """Coverage, width and the other metrics of the intervals at one confidence level, as one row.

        Parameters are those of `predict_interval`, with the observations `y` of shape (n,), and `sample_weight`, by
        which rows count in coverage, mean width, interval score and CRPS. The last two entries are about the whole
        distribution, whatever the level: `crps` of an ensemble of 100 (`sosbands.metrics.crps`) and `pit_distance` of
        ``predict_cdf(X, y)``; models calibrated by copies have neither.
        """
        from sosbands.metrics import evaluate_intervals  # here, because calibration itself needs no metric

        self._calibrated("evaluate")
        level = read_level(self.confidence_level if confidence_level is None else confidence_level)
        read_share(lower_share, read_kind(self.calibration))
        band, (ends,) = self._band_and_ends(X, [level], lower_share, groups, likelihood_ratio)
        observed = read_target(y, len(ends))
        self._look_at_evaluated(X, observed)
        points = self._metric_points(X)
        row = evaluate_intervals(
            observed, ends[:, 0], ends[:, 1], confidence_level=level, sample_weight=sample_weight, **points
        )
        return row | self._distribution_scores(band, observed, groups, likelihood_ratio, sample_weight)

    def _look_at_evaluated(self, X: Any, target: Array) -> None:
        """Warn of rows that say little about new ones, where that is known."""

    def _distribution_scores(
        self, band: Band, y: Array, groups: Any, likelihood_ratio: Any, sample_weight: Any
    ) -> dict[str, float]:
        """Metrics of the whole distribution, of blocks of rows at a time; none if calibration keeps no places."""
        from sosbands.metrics.checks import mean_over_rows
        from sosbands.metrics.distribution import ensemble_crps, pit_distance

        if self.calibration_.inner_places is None:
            return {}
        parts = placed(self.calibration_, band, groups, likelihood_ratio)
        scores, transforms = np.empty((2, len(y)))
        for part in parts:
            transforms[part.rows] = part.places.probabilities(part.band, y[part.rows], part.weights)
            for some in np.array_split(np.arange(len(part.rows)), -(-len(part.rows) // BLOCK)):
                rows = part.rows[some]
                scores[rows] = ensemble_crps(y[rows], part.places.ensemble(part.band.take(some), ENSEMBLE))
        return {"crps": mean_over_rows(scores, sample_weight), "pit_distance": pit_distance(transforms)}

    def _metric_points(self, X: Any) -> dict[str, Any]:
        """Points in which the metrics look for neighbours, `X` and possibly `X_learn`; none if not all are numbers."""
        values = np.asarray(X)
        usable = values.ndim == 2 and values.dtype.kind in "biuf" and np.isfinite(values).all()
        return {"X": values.astype(np.float64)} if usable else {}

    def _conformal_quantiles(
        self,
        n_rows: int,
        levels: list[float],
        lower_share: Any,
        groups: Any,
        likelihood_ratio: Any,
        stacklevel: int = 3,
    ) -> list[Array]:
        """For each level the lower and upper quantile of each row, (n, 2) or (1, 2), with one warning if infinite."""
        kind = read_kind(self.calibration)
        share = read_share(lower_share, kind)
        labels, weights = self.calibration_.read_rows(n_rows, groups, likelihood_ratio)
        q = [self.calibration_.quantiles(level, kind, share, groups=labels, weights=weights) for level in levels]
        reasons = [
            self.calibration_.shortage(at_level, level, kind, share, labels)
            for at_level, level in zip(q, levels, strict=True)
        ]
        warn_of_infinite(reasons, stacklevel + 1)
        return q

    def _calibrated(self, wanted: str) -> Calibration:
        if "calibration_" not in vars(self):
            raise NotCalibratedError(
                f"{wanted} of this {type(self).__name__} needs a calibration: call conformalize(X, y) first, with rows "
                "that fit has not seen"
            )
        return self.calibration_


def warn_of_infinite(reasons: list[str | None], stacklevel: int) -> None:
    """One warning with the reasons, one for each level that has some."""
    if any(reasons):
        message = "; ".join(reason for reason in reasons if reason)
        warnings.warn(message, TooFewCalibrationPointsWarning, stacklevel=stacklevel)
