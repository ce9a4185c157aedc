"""SoSBandRegressor: calibrated, adaptive, possibly asymmetric intervals around any regressor."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import skew
from sklearn.utils.validation import check_is_fitted

from sosbands._arguments import check, check_choice, is_splitter
from sosbands._progress import say
from sosbands._threads import few_threads
from sosbands._types import Array, IntArray
from sosbands._words import many
from sosbands.bands import BandSettings
from sosbands.bands.functions import evaluate_pair
from sosbands.bands.settings import is_auto
from sosbands.bands.views import FOREST, MODEL, RowFacts
from sosbands.conformal import Calibration, TargetScale, Told
from sosbands.conformal.asked import SIDES, Asked, calibration_of, read_kind, read_level
from sosbands.conformal.target import LOG, SQRT
from sosbands.exceptions import LITTLE_SUPPORT, NO_SUPPORT
from sosbands.explanation import Explanation
from sosbands.explanation.explain import Bands, explain_width, reach_of
from sosbands.point_models import LearntResiduals, learn_residuals
from sosbands.point_models.blend import model_words, point_model
from sosbands.point_models.user_model import learns_nothing, predict_rows, predict_with_spread
from sosbands.regressors.checks import OUT_OF_FOLD, check_band_kernel, is_out_of_fold
from sosbands.regressors.folds import warn_if_unstable
from sosbands.regressors.noise import (
    BandProblem,
    NoiseData,
    NoiseModel,
    NoiseSettings,
    choose_noise,
    fit_size_forest,
    forest_sizes,
    has_paper_rules,
    model_lengthscales,
    told_by_folds,
    without_outliers,
)
from sosbands.regressors.split import SplitRegressor
from sosbands.regressors.summary import describe
from sosbands.tables import TableEncoder
from sosbands.tables.rows import GIVEN, NUMBERS, TABLE, LearningData, Rows, sampled
from sosbands.tuning import Rules, TuningReport
from sosbands.tuning.report import TOO_LITTLE
from sosbands.tuning.search import held_out_folds

LEARNING_ROWS, CALIBRATION_ROWS = 500_000, 200_000  # at most: more take time and memory, and change next to nothing
ENOUGH_ROWS = 4_000  # of learning rows, above which not every fold has to be predicted for the noise to be learnt,
NOISE_ROWS = 20_000  # and residuals of which no more are looked at
COMPARED_ROWS = 1000  # on which scales of the target are compared
FEW_SKEWED, LEAST_SKEW = 40, 1.0  # fewer rows, and less skew of the targets, give no reason to try another scale,
TRANSFORM_BONUS = 0.01  # which must be better by so much, in logarithms of the score


class Known(NamedTuple):
    """Everything about learning rows before bands, with the target on one scale."""

    target: TargetScale | None
    learnt: LearntResiduals
    rms: float  # root mean square of the residuals
    noise: NoiseData
    keep: IntArray  # rows of it that the bands are learnt from
    forest: Any
    tuning: TuningReport | None


BAND_ROWS = 10_000  # of these, for the bands: features of all of them are in memory at once


class SoSBandRegressor(SplitRegressor):
    """Prediction intervals from kernel sum-of-squares bands, with split-conformal calibration.

    Two non-negative functions are learnt around a point model, one below and one above, by a convex problem whose
    solution is certified; a penalty pulls them towards each other, and calibration on held-back rows makes the
    coverage of the intervals hold for any distribution.

    Parameters
    ----------
    estimator : regressor, pipeline, FrozenEstimator or callable, optional
        The point model; it is cloned and fitted on the learning rows, which it gets as they were given (a data frame
        stays one). None is a blend of a Gaussian process (of 1000 rows above 2000), extra trees, gradient boosting
        and ridge regression, weighed by their out-of-fold errors; of a table that is not one of finite numbers it sees
        what the `preprocessor` makes. What predicts quantiles, or a pair or triple of models that do, is taken as
        `sosbands.point_models.QuantileModel` says.
    confidence_level : float
        Default level of `predict_interval`, which takes any other.
    calibration : {"symmetric", "asymmetric", "conditional"}
        One quantile that moves both ends, one for each end, or one for each row (of both ends), which is right on
        average over neighbourhoods and over groups that may overlap. Not with "cross" and "out-of-fold".
    conformal_score : {"auto", "added", "scaled", "shifted"}
        What calibration does to the bands: it adds one number to them everywhere (the paper's score), or it multiplies
        them by one number everywhere. The first is right for bands that are wrong by the same amount everywhere, the
        second for noise that is a scale, which the bands follow, times one law. Scaled intervals hold the prediction
        and are never empty. "shifted" adds a number in units of the target whatever the base scale, and is tried for
        quantile models. Taken when `fit` is called, because tuning depends on it.
    calibration_size : "auto", float, int, "cross", "out-of-fold" or None
        Part or number of the rows given to `fit` that are held back for calibration; None keeps all for learning, and
        `conformalize` is called with other rows. "auto" is a quarter, at most 5000 rows, and more of few: five times
        what a finite interval takes up to a third of the rows, what it takes up to half (see
        :doc:`/guide/calibration`). With "cross" every row is learnt from and calibrated on: `cv` copies each leave out
        one fold, and a row is scored by the copy that has not seen it (CV+). It takes ``cv + 1`` times as long to
        learn. The coverage is about the level as a rule and proven to be at least nearly ``1 - 2 alpha``. With
        "out-of-fold" every row is used twice, in one fit where residuals are out-of-fold ones anyway: the residuals and
        bands that folds have held out are what the model of all rows is calibrated by. The coverage is about the level
        as well, and not proven; a warning names point models of which it is not to be expected.
    base_scale : {"auto", "none", "model", "forest", "both"}
        The unit s(x) in which bands are learnt and told, as intervals are ``m -+ s f``: 1 everywhere; the standard
        deviation that the point model itself gives (processes and other models whose `predict` takes `return_std`,
        forests by the spread of their trees, the default), or how far its quantiles reach on each side; the size of
        residuals that a forest predicts; or the geometric mean of the last two.
    noise_features : "auto" or str
        What the kernel sees, joined by "+": "inputs" (what the preprocessor gives), or in place of them "lengthscales"
        (inputs over those of the Gaussian process), "prediction" (of the point model), "scale" (logarithms of the base
        scales).
    symmetry_penalty : "auto", float or pair
        0 gives independent bands, inf a symmetric one; a pair (nuclear, squared Frobenius) for the operator kind.
        "auto" lets the data choose (`tuning_`).
    lengthscale : "auto", "median", float, array or dict
        Of the kernel, in units of what it sees, or one for each of these features; {"lower": ..., "upper": ...} gives
        each side its own. "auto" lets the data choose, also bands of constant width (inf); "median" is the median
        distance.
    preprocessor : "auto", "standardize", None or transformer
        Makes what the kernel sees. "auto" standardises a table of finite numbers; other tables become numbers by what
        their columns hold (`sosbands.tables.TableEncoder`), or, if `estimator` is a pipeline whose transformers give
        numbers, by copies of these, standardised. "standardize" takes numbers only. A transformer of your own may take
        anything.
    width_penalty : "auto" or float
        Cost of the mean width, and of rows outside: the larger, the closer bands follow the residuals.
    residuals : {"auto", "in-sample", "leave-one-out", "out-of-fold"}
        Which residuals the bands are learnt from. "auto" takes leave-one-out ones for `GaussianProcess`, in-sample
        ones for the smoothing spline, frozen models and callables, and out-of-fold ones for everything else, because
        models that interpolate have in-sample residuals near zero. Leave-one-out residuals are for
        `GaussianProcess` only, alone or as the last step of a pipeline, and need no further fit: hyperparameters, and
        the other steps, are those of all learning rows.
    learning_coverage : "auto" or float in (0, 1]
        Share of the learning rows that the bands should cover before calibration. 1 covers every row, as in the paper;
        below 1 rows may lie outside at a price, and the bands follow a quantile of the residuals, not the largest.
    nested_coverages : sequence of float, optional
        Learn a band for each of these coverages, in (0, 1) and increasing, each the last one plus a sum of squares
        (:func:`sosbands.bands.learn_nested_bands`), with all other settings as chosen for one band. For those who ask
        one fit for several levels: intervals and quantiles lie at or between bands that were learnt for levels like
        theirs, where otherwise one band is moved. One calibration serves all levels, and intervals are nested in the
        level; `conformal_score` is not used.
    target_range : pair, "auto" or None
        Least and largest value that a target can have, such as ``(0, None)`` for counts and prices: ends and
        predictions beyond are cut off, which loses no coverage. "auto" cuts nothing, and `summary` says where it would
        be of use.
    target_transform : {"auto", None, "log", "sqrt"} or transformer
        The scale on which model and bands are learnt; predictions and intervals are carried back, and hold the same
        observations. Any increasing transformer of scikit-learn's kind will do. "auto" tries the logarithm, or the root
        of targets with zeros, if they are at least 0 and clearly skewed, and takes it if intervals in units of the
        target are better on held-out rows; copies of cross-calibration, which must share a scale, take none. Where a
        transform is used `predict` gives medians rather than means.
    rules : Rules, optional
        By which criterion and tests tuning decides (`sosbands.tuning.Rules`); its seed is not used, because
        `random_state` is that of the whole fit. The level of the symmetry test, and whether there is one, are those of
        the automatic choice too. With another criterion than the interval score, or tests that compare candidates, only
        lengthscale and symmetry penalty are chosen, and "auto" stands for the paper's setting of everything else
        (`sosbands.regressors.PAPER_SETTINGS`). The paper's rules are
        ``Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive")``.
    bands : BandSettings, optional
        Numerics of the band problem (`sosbands.bands.BandSettings`): kernel, kind of the symmetry penalty, penalties
        of the operators, rank, units, the constant function, solver and tolerance, outliers left out. What the data may
        choose has the parameters above.
    max_seconds : float or None
        How long the automatic choice may take (the paper's rules end by themselves), from when the point model is
        there: the best found by then is taken, and `summary` says so. The last solve is not cut. With
        ``calibration_size="cross"`` each of the ``cv + 1`` fits has its equal share.
    cv : int or splitter
        Folds of the tuning, of the out-of-fold residuals and of ``calibration_size="cross"``; the default blend always
        has 5. Or a splitter of scikit-learn whose folds share no row, for the out-of-fold residuals, also those of the
        default blend: rows in none of its folds have no residual, and no part in bands and tuning, but are learnt from
        by the point model. With `TimeSeriesSplit` rows are taken to be in the order of time, and the last ones are held
        back for calibration.
    n_jobs : int, optional
        Processes for tuning and for the out-of-fold residuals, or for the fits of ``calibration_size="cross"``.
    random_state : int, RandomState or None
        Of the split and of the folds.
    verbose : int
        Above 0: a line for each stage of `fit` and of the tuning.

    Attributes
    ----------
    estimator_ : regressor
        The fitted point model.
    noise_ : NoiseModel
        What was learnt of the noise: both band functions, base scale and noise features, the settings and the score in
        use, the certificate, and which rows shape the bands.
    tuning_ : TuningReport or None
        Every candidate, the tests and the decision in words; None if nothing was left to choose.
    residual_rule_, residual_rms_ : str, float
        The residuals that the bands were learnt from, in-sample if there is but one learning row; root of the mean
        square of those of all learning rows.
    n_noise_rows_ : int
        Learning rows whose residuals were used to learn the noise; of these at most 10 000 for the bands
        (``noise_.n_rows``): all of them below 5000 and with ``learning_coverage=1``, otherwise those of as many folds
        as hold 4000, and at most 20 000.
    reader_ : RowReader
        How X is read, with the fitted preprocessor.
    learning_rows_, calibration_rows_ : ndarray of int
        Rows given to `fit` that were learnt from and held back; each has all rows with ``calibration_size="cross"``.
    n_unused_rows_ : int
        Rows given to `fit` that were neither learnt from nor held back, as at most 500 000 and 200 000 are.
    calibration_ : Calibration or CrossCalibration
        Scores of the calibration rows; with ``calibration_size="cross"`` also `copies` and `folds`: the copies, and for
        each row given to `fit` that which has not seen it. Everything else that is learnt is of all rows.
    n_learnt_calibration_rows_, scores_ : int, ndarray
        Calibration rows that `fit` had learnt from, above 0 of which the coverage guarantee is void; their scores.
    """

    _most_rows = (LEARNING_ROWS, CALIBRATION_ROWS)
    _calibrates_by_folds = True

    estimator_: Any
    residual_rule_: str
    residual_rms_: float
    n_noise_rows_: int
    tuning_: TuningReport | None
    noise_: NoiseModel

    def __init__(
        self,
        estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        conformal_score: str = "auto",
        calibration_size: float | int | str | None = "auto",
        base_scale: str = "auto",
        noise_features: str = "auto",
        symmetry_penalty: Any = "auto",
        lengthscale: Any = "auto",
        preprocessor: Any = "auto",
        width_penalty: str | float = "auto",
        residuals: str = "auto",
        learning_coverage: str | float = "auto",
        nested_coverages: Any = None,
        target_range: Any = "auto",
        target_transform: Any = "auto",
        rules: Rules | None = None,
        bands: BandSettings | None = None,
        max_seconds: float | None = 60.0,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.conformal_score = conformal_score
        self.calibration_size = calibration_size
        self.base_scale = base_scale
        self.noise_features = noise_features
        self.symmetry_penalty = symmetry_penalty
        self.lengthscale = lengthscale
        self.preprocessor = preprocessor
        self.width_penalty = width_penalty
        self.residuals = residuals
        self.learning_coverage = learning_coverage
        self.nested_coverages = nested_coverages
        self.target_range = target_range
        self.target_transform = target_transform
        self.rules = rules
        self.bands = bands
        self.max_seconds = max_seconds
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name, fields of `bands` by names such as ``bands__rank``, also where it is None."""
        given = {name.removeprefix("bands__"): params.pop(name) for name in list(params) if name.startswith("bands__")}
        super().set_params(**params)
        if given:
            bands = self.bands or BandSettings()
            unknown = sorted(given.keys() - bands.get_params())
            if unknown:
                raise ValueError(f"bands has no field {unknown[0]!r}: expected one of {list(bands.get_params())}")
            self.bands = bands.replace(**given)  # another one, as several models may have been given the same
        return self

    def _wanted_rows(self) -> str:
        if self.preprocessor is not None and not isinstance(self.preprocessor, str):
            return GIVEN  # a transformer of the user's sees what was given
        return TABLE if self.preprocessor == "auto" else NUMBERS

    def _fit_rows(self, data: LearningData, rng: np.random.RandomState) -> None:
        if not is_auto(self.target_range):
            TargetScale.learn(None, self.target_range, data.y)  # also for the rows that are held back
        super()._fit_rows(data, rng)

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:
        asked = NoiseSettings.of(self)
        # 1. What the kernel sees, and the scale of the target.
        self.reader_, points = self.reader_.learning(self.preprocessor, data, self.estimator)
        check_band_kernel(asked.bands.kernel, asked.bands.lengthscale, asked.noise_features, points.shape[1])
        target, other = self._target_scales(asked, data)
        if other is None:
            found = self._known(asked, data, points, target, rng)
        else:  # both alone, on as many rows as tell them apart; the draws of the one taken are as if it had been given
            rngs, whole = [deepcopy(rng), deepcopy(rng)], len(data) <= COMPARED_ROWS or is_splitter(self.cv)
            some = np.arange(len(data)) if whole else sampled(np.arange(len(data)), COMPARED_ROWS, deepcopy(rng))
            part, share = data if whole else data.take(some), 0.5 if whole else 1 / 3
            tried = [
                self._known(asked, part, points[some], scale, own, share)
                for scale, own in zip((target, other), rngs, strict=True)
            ]
            plain, changed = (float("nan") if each.tuning is None else each.tuning.best_value for each in tried)
            k = int(changed > plain + TRANSFORM_BONUS)
            if whole:
                found, rng = tried[k], rngs[k]
            else:
                found = self._known(asked, data, points, (target, other)[k], rng, share)
            names, loss = ("none", other.words), 100 * np.expm1(abs(changed - plain))
            words = f"target transform {names[k]}: with {names[1 - k]}, {loss:.1f} % "
            words += f"better, {TOO_LITTLE}" if changed > plain and not k else "worse"
            if found.tuning is not None:
                found = found._replace(tuning=replace(found.tuning, reasons=(*found.tuning.reasons, words)))
        self._settle(asked, data, found, rng)

    def _target_scales(self, asked: NoiseSettings, data: LearningData) -> tuple[TargetScale | None, TargetScale | None]:
        """The scale of the target, and with "auto" another one that seems worth trying: of skewed targets above 0."""
        y, transform = data.y, self.target_transform
        limits = None if is_auto(self.target_range) else self.target_range
        frozen = self.estimator is not None and learns_nothing(point_model(self.estimator, len(y), 0))
        if not is_auto(transform):
            expected = "None for a point model that is used as it is, whose predictions are in units of the target"
            check("target_transform", transform, transform is None or not frozen, expected)
            return TargetScale.learn(transform, limits, y), None
        plain = TargetScale.learn(None, limits, y)
        chosen_here = asked.is_open and not (has_paper_rules(self) or asked.keeps_paper)
        if frozen or not chosen_here or len(y) < FEW_SKEWED or y.min() < 0 or np.ptp(y) <= 1e-6 * y.max():
            return plain, None
        if skew(y / y.max()) < LEAST_SKEW:
            return plain, None
        other = TargetScale.learn(LOG if y.min() > 0 else SQRT, limits, y)
        return plain, other if other is not None and abs(skew(other.forward(y))) < skew(y / y.max()) / 2 else None

    def _residual_rule(self) -> str:
        """Calibration by folds takes residuals of rows that the model has not seen, of every model that learns."""
        if not is_out_of_fold(self.calibration_size) or learns_nothing(point_model(self.estimator, 1, 0)):
            return self.residuals
        fine = self.residuals in ("auto", OUT_OF_FOLD)
        check("residuals", self.residuals, fine, "'auto' or 'out-of-fold' beside calibration_size='out-of-fold'")
        return OUT_OF_FOLD

    def _known(
        self,
        asked: NoiseSettings,
        data: LearningData,
        points: Array,
        target: TargetScale | None,
        rng: np.random.RandomState,
        share: float = 1.0,
    ) -> Known:
        """The point model of these rows, what it leaves of them, and what the data choose in this share of the time."""
        y = data.y if target is None else target.forward(data.y)
        sees_points, encoder = self.reader_.model_sees_points, self.reader_.preprocessor
        # 2. The point model and its residuals; bands that cover every row must see every row.
        all_rows = has_paper_rules(self) or self.learning_coverage == 1
        enough, noise_rows = (len(y),) * 2 if all_rows else (ENOUGH_ROWS, NOISE_ROWS)
        fold_points = None
        if sees_points and isinstance(encoder, TableEncoder):
            fold_points = encoder.fold_points(data.rows.table, y, points)
        learnt = learn_residuals(
            point_model(self.estimator, len(y), self.random_state, self.n_jobs, self.confidence_level),
            points if sees_points else data.rows.given,
            y,
            residuals=self._residual_rule(),
            cv=self.cv,
            random_state=rng,
            n_jobs=self.n_jobs,
            with_std=MODEL in asked.scales,
            sample_weight=data.weights,
            fold_points=fold_points,
            enough_rows=enough,
        )
        rms = float(np.sqrt(np.mean(np.square(learnt.residual))))
        seen = "used as it is for" if learns_nothing(learnt.model) else "fitted to"
        say(f"point model {model_words(learnt.model)} {seen} {many(len(y), 'row')}")
        # 3. What else is known of the rows, as far as something may look at it.
        learnt = learnt.sample(noise_rows, rng)
        noisy = learnt.rows
        weights, forest = None if data.weights is None else data.weights[noisy], None
        scales = {} if learnt.std is None else {MODEL: learnt.std}
        if FOREST in asked.scales and learnt.residual.any():
            seed = int(rng.randint(2**31))
            forest, scales[FOREST] = fit_size_forest(points[noisy], learnt.prediction, learnt.residual, seed, weights)
        usable = {name: scale for name, scale in scales.items() if np.isfinite(scale).all() and scale.mean() > 0}
        ells = model_lengthscales(learnt.model, encoder, sees_points=sees_points)
        facts = RowFacts(points[noisy], learnt.prediction, usable, ells)
        kept = without_outliers(learnt.residual, asked.bands.outlier_fraction)
        keep = np.flatnonzero(kept if weights is None else kept & (weights > 0))
        noise = NoiseData(facts, learnt.residual, data.positions[noisy], weights)
        # 4. What the data choose.
        tuning = choose_noise(self, asked, noise.take(keep), rng, target, share)
        return Known(target, learnt, rms, noise, keep, forest, tuning)

    def _settle(self, asked: NoiseSettings, data: LearningData, known: Known, rng: np.random.RandomState) -> None:
        """Learn the bands that were chosen, and calibrate on all rows if that is wanted."""
        target, learnt, self.residual_rms_, noise, keep, forest, self.tuning_ = known
        self.estimator_, self.residual_rule_, self.n_noise_rows_ = learnt.model, learnt.rule, len(keep)
        all_rows = has_paper_rules(self) or self.learning_coverage == 1
        most = len(data) if all_rows else BAND_ROWS
        # 5. The bands.
        automatic = self.tuning_ is not None and self.tuning_.base_scale is not None
        some = noise.take(keep[sampled(np.arange(len(keep)), most, rng)])
        chosen = asked.settled(self.tuning_)
        problem = BandProblem.of(chosen, some, in_residuals=automatic)
        self._keep(problem)
        self.noise_ = NoiseModel.learn(problem, forest, self.nested_coverages, target)
        # 6. All rows are calibrated on too, if that is wanted.
        if is_out_of_fold(self.calibration_size):
            folds = held_out_folds(len(noise.r), self.cv, rng)
            given = {"in_residuals": automatic, "nested_coverages": self.nested_coverages, "target": target}
            told, rows = told_by_folds(chosen, noise, keep, folds, most, rng, **given), learnt.rows
            groups = None if data.groups is None else data.groups[rows]
            self.calibration_ = Calibration.of(told.band, data.y[rows], groups, out_of_fold=True)
            self.calibration_rows_ = data.positions[rows]
            warn_if_unstable(self, data, rows, data.y[rows] - np.asarray(told.prediction))
            say(f"calibrated on {many(len(rows), 'row')} by what their folds have not seen")

    def _keep(self, problem: BandProblem) -> None:
        """What a page about the fit may remember; a model carries no learning rows along."""

    def _facts(self, rows: Rows) -> RowFacts:
        """What the bands look at, at new rows; only what they do look at is computed."""
        points, X = self.reader_.points(rows), self.reader_.for_model(rows)
        scales: dict[str, Array] = {}
        if MODEL in self.noise_.view.scales:
            prediction, scales[MODEL] = predict_with_spread(self.estimator_, X)
        else:
            prediction = predict_rows(self.estimator_, X)
        if FOREST in self.noise_.view.scales:
            scales[FOREST] = forest_sizes(self.noise_.size_forest, points, prediction)
        return RowFacts(points, prediction, scales)

    def facts(self, X: Any) -> RowFacts:
        """What the bands look at, at the rows of X: points, prediction and base scales."""
        check_is_fitted(self)
        rows = self.reader_.read(self, X)
        with few_threads(blas=self._has_own_model()):
            return self._facts(rows)

    def _tell_block(self, rows: Rows) -> Told:
        return self.noise_.told(self._facts(rows))

    def _center(self, rows: Rows) -> Array:
        prediction = predict_rows(self.estimator_, self.reader_.for_model(rows))
        return prediction if self.noise_.target is None else self.noise_.target.backward(prediction)

    @property
    def support_limit(self) -> float:
        """Rows with less support count as far from the learning data.

        0.5; with the constant among the squares 0.1, because only there nothing is left of the bands but the constant.
        """
        check_is_fitted(self)
        return NO_SUPPORT if self.noise_.lower.features.constant else LITTLE_SUPPORT

    def support(self, X: Any) -> Array:
        """How much the learning rows say about the noise at each row, in [0, 1], 1 at the learning rows.

        ``||Phi(x)||^2 / k(x, x)`` of the noise features.
        """
        check_is_fitted(self)
        blocks = (self._facts(block) for block in self.reader_.read(self, X).blocks())
        noise = self.noise_
        return np.concatenate(
            [evaluate_pair(noise.lower, noise.upper, noise.view.points(facts))[2] for facts in blocks]
        )

    def explain(
        self, X: Any, confidence_level: Any = None, *, groups: Any = None, likelihood_ratio: Any = None
    ) -> Explanation:
        """Why intervals are as wide as they are: each against the typical one, in parts that sum exactly.

        Parameters
        ----------
        X, groups, likelihood_ratio
            As in `intervals`.
        confidence_level : float, optional
            In (0, 1); by default that of the constructor.

        Returns
        -------
        Explanation
            With ``table()``, and ``words(i)`` for one row; it holds a number for each row and landmark.
        """
        calibration, noise = calibration_of(self), self.noise_
        if noise.nested is not None:
            raise ValueError(
                "explain of a model with nested_coverages: not offered, because its widths are no product of one band "
                "and one number; fit with nested_coverages=None"
            )
        if calibration.by_row:
            calibration.check_offers("explain")
        level = read_level(self.confidence_level if confidence_level is None else confidence_level)
        asked = Asked.of(self, level, groups=groups, likelihood_ratio=likelihood_ratio)
        rows = self.reader_.read(self, X)
        with few_threads(blas=self._has_own_model()):
            facts = [self._facts(block) for block in rows.blocks()]
            told = Told.joined([noise.told(each) for each in facts], rows)
        found = calibration.intervals(told, asked)
        found.warn(None)  # an explanation tells of the others itself
        decay = calibration.decay if calibration.groups is None else None  # ages are counted within groups
        together = Calibration(calibration.lower_scores, calibration.upper_scores, decay=decay)
        below, above = together.quantiles(level, read_kind(self.calibration))[0].tolist()
        bands = Bands(noise.lower, noise.upper, noise.score, (below, above))
        unit, typical = np.concatenate([noise.view.unit(each) for each in facts]), noise.typical
        if noise.target is not None:  # how far a step on its scale reaches at a row belongs to the base scale
            own = calibration.intervals(Told(replace(told.band, target=None), told.prediction, rows), asked).width[:, 0]
            unit = (unit.T * reach_of(own, found.width[:, 0])).T
            typical = bands.carried(typical, noise.target)
        by = "groups" if calibration.groups is not None else "all" if calibration.weights is None else "weights"
        return explain_width(
            found.width[:, 0],
            np.vstack([noise.view.points(each) for each in facts]),
            unit,
            bands,
            typical,
            noise.columns(self.reader_.sources(self)),
            confidence_level=level,
            support_limit=self.support_limit,
            scale_name="target" if noise.target is not None and not noise.view.scales else noise.view.base_scale,
            calibrated_by="copies" if calibration.copies else by,
        )

    def summary(self, side: str = "both", *, detail: bool = False) -> str:
        """In a paragraph: what is promised, how wide intervals are, what shapes them, what to watch.

        Parameters
        ----------
        side : {"both", "lower", "upper"}
            The ends that intervals have; one alone takes all of the miscoverage, as with ``lower_share`` 1 or 0.
        detail : bool
            Add a line for each of: what was learnt and chosen, how columns became numbers, why each setting, how far
            the bands reach before calibration, which rows shape them, their certificate, what calibration did.
        """
        check_is_fitted(self)
        check_choice("side", side, tuple(SIDES))
        return describe(self, side, detail=detail)
