"""SoSBandRegressor: calibrated, adaptive, possibly asymmetric intervals around any regressor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sosbands._arguments import check_choice
from sosbands._types import Array, IntArray
from sosbands._words import share_of
from sosbands.bands import NestedFunctions, learn_band_sequence
from sosbands.bands.sos import SoSFunction, deployed_pair, evaluate_pair
from sosbands.conformal import SCORES, Band, NestedScore, Score
from sosbands.exceptions import LITTLE_SUPPORT, NO_SUPPORT, OffDataWarning
from sosbands.explanation import Explanation, TypicalRows
from sosbands.point_models import LearntResiduals
from sosbands.point_models.outputs import predict_rows
from sosbands.point_models.spread import predict_with_spread
from sosbands.regressors.band_problem import BandProblem, NoiseData, band_problem, tune_bands, widened_off_data
from sosbands.regressors.base import LEARNT, SplitRegressor, TakesWeights
from sosbands.regressors.base_scales import fit_size_forest, forest_sizes, model_lengthscales
from sosbands.regressors.explained import explain
from sosbands.regressors.nested import learn_nested, solver_options
from sosbands.regressors.parameters import (
    check_band_kernel,
    check_parameters,
    is_paper,
    is_word,
    lengthscale_in_use,
    scales_wanted,
)
from sosbands.regressors.rows import Rows, dense_points, learn_preprocessor, sampled, without_outliers
from sosbands.regressors.summary import LOWER_SHARE, describe
from sosbands.tables import TableEncoder
from sosbands.tuning import Rules, TuningReport
from sosbands.tuning.views import FOREST, MODEL, NoiseView, RowFacts

LEARNING_ROWS, CALIBRATION_ROWS = 500_000, 200_000  # at most: more take time and memory, and change next to nothing
NOISE_ROWS = 20_000  # whose residuals are enough to learn the noise from
BAND_ROWS = 10_000  # of these, for the bands: features of all of them are in memory at once


class SoSBandRegressor(TakesWeights, SplitRegressor):
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
        what the `preprocessor` makes.
    confidence_level : float
        Default level of `predict_interval`, which takes any other.
    calibration : {"symmetric", "asymmetric"}
        One quantile that moves both ends, or one for each end.
    conformal_score : {"auto", "added", "scaled"}
        What calibration does to the bands: it adds one number to them everywhere (the paper's score), or it multiplies
        them by one number everywhere. The first is right for bands that are wrong by the same amount everywhere, the
        second for noise that is a scale, which the bands follow, times one law. Scaled intervals hold the prediction
        and are never empty. Taken when `fit` is called, because tuning depends on it.
    calibration_size : float, int, "cross" or None
        Part or number of the rows given to `fit` that are held back for calibration; None keeps all for learning, and
        `conformalize` must be called with other rows. "cross" learns from all rows and calibrates on all of them
        (CV+): each of `cv` folds is scored by a copy that has learnt from the others. That takes ``cv + 1`` fits, and
        the proven coverage is about ``1 - 2 alpha`` instead of ``1 - alpha``, which is still what is seen.
    base_scale : {"auto", "none", "model", "forest", "both"}
        The unit s(x) in which bands are learnt and told, as intervals are ``m -+ s f``: 1 everywhere; the standard
        deviation that the point model itself gives (processes and other models whose `predict` takes `return_std`,
        forests by the spread of their trees, the default); the size of residuals that a forest predicts; or the
        geometric mean of the last two.
    noise_features : "auto" or str
        What the kernel sees, joined by "+": "inputs" (what the preprocessor gives), or in place of them "lengthscales"
        (inputs over those of the Gaussian process), "prediction" (of the point model), "scale" (logarithms of the base
        scales).
    symmetry_penalty : "auto", float or pair
        0 gives independent bands, inf a symmetric one; a pair (nuclear, squared Frobenius) for the operator kind.
        "auto" lets the data choose (`tuning_`).
    symmetry_kind : {"training", "operator"}
        Where the difference of the bands is penalised: at the learning points, or as operators.
    lengthscale : "auto", "median", float, array or dict
        Of the kernel, in units of what it sees, or one for each of these features; {"lower": ..., "upper": ...} gives
        each side its own. "auto" lets the data choose, also bands of constant width (inf); "median" is the median
        distance.
    kernel : str or kernel object
        "matern52", "matern32", "matern12", "gaussian", or a scikit-learn kernel, which carries its own lengthscale.
        Functions ``k(X, Y)`` are taken too, but such a model cannot be saved.
    preprocessor : "auto", "standardize", None or transformer
        Makes what the kernel sees. "auto" standardises a table of finite numbers; other tables become numbers by what
        their columns hold (`sosbands.tables.TableEncoder`), or, if `estimator` is a pipeline whose transformers give
        numbers, by copies of these, standardised. "standardize" takes numbers only. A transformer of your own may take
        anything.
    width_penalty : "auto" or float
        Cost of the mean width, and of rows outside: the larger, the closer bands follow the residuals.
    trace_penalty, frobenius_penalty : float
        Cost of the trace and of the squared norm of the operators.
    rank : "auto", "exact", int or float in (0, 1)
        Number of kernel features, or the relative trace of the kernel matrix that they may leave out.
    residuals : {"auto", "in-sample", "leave-one-out", "out-of-fold"}
        Which residuals the bands are learnt from. "auto" takes leave-one-out ones for `GaussianProcess`, in-sample
        ones for the smoothing spline, frozen models and callables, and out-of-fold ones for everything else, because
        models that interpolate have in-sample residuals near zero. Leave-one-out residuals are for
        `GaussianProcess` only, alone or as the last step of a pipeline, and need no further fit: hyperparameters, and
        the other steps, are those of all learning rows.
    normalize : bool
        Take the residuals relative to their mean size and the penalties as they are; with ``learning_coverage=1`` and
        without an automatic choice, as in the paper, the residuals relative to their root mean square and the penalties
        to an initial model.
    learning_coverage : "auto" or float in (0, 1]
        Share of the learning rows that the bands should cover before calibration. 1 covers every row, as in the paper;
        below 1 rows may lie outside at a price, and the bands follow a quantile of the residuals, not the largest.
    nested_coverages : sequence of float, optional
        Learn a band for each of these coverages, in (0, 1) and increasing, each the last one plus a sum of squares
        (:func:`sosbands.bands.learn_nested_bands`), with all other settings as chosen for one band. For those who ask
        one fit for several levels: intervals and quantiles lie at or between bands that were learnt for levels like
        theirs, where otherwise one band is moved. One calibration serves all levels, and intervals are nested in the
        level; `conformal_score` is not used.
    constant : bool
        Let the constant function be among the squares: off the data the bands tend to a constant, with a
        `learning_coverage` below 1 at least to that of bands of constant width. Without it, as in the paper, they tend
        to 0.
    outlier_fraction : float in [0, 1)
        Part of the learning rows, those with the largest residuals, that are left out of the bands altogether: they
        are no data of the band problem, which neither covers them nor counts them in its mean width. The point model
        and calibration leave no row out.
    criterion : {"interval-score", "hsic", "dcor"}
        What tuning maximises over held-out rows; "hsic" is the paper's.
    symmetry_test : {"auto", "sign-flip", "kruskal-wallis", "bootstrap", None}
        When asymmetric bands are an option at all; "kruskal-wallis" is the paper's, None always takes the best.
    test_level : float
        Of that test, and by the paper's rules of the one that chooses between constant and varying width; at least
        0.0001, which at most 9999 permutations can resolve.
    rules : Rules, optional
        Everything by which tuning decides (`sosbands.tuning.Rules`), in place of the three above, which must then keep
        their defaults. Its seed is not used, because `random_state` is that of the whole fit. The paper's rules are
        ``Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive")``. With rules, another criterion
        than the interval score or a symmetry test that compares candidates, "auto" stands for the paper's setting of
        everything but lengthscale and symmetry penalty (`sosbands.regressors.PAPER_SETTINGS`).
    max_seconds : float or None
        How long the choice may take, from when the point model is there: the best found by then is taken, and
        `summary` says so. The last solve is not cut. With ``calibration_size="cross"`` each of the ``cv + 1`` fits has
        its equal share.
    cv : int or splitter
        Folds of the tuning, of the out-of-fold residuals and of ``calibration_size="cross"``; the default blend always
        has 5. Or a splitter of scikit-learn whose folds share no row, for the out-of-fold residuals, also those of the
        default blend: rows in none of its folds have no residual, and no part in bands and tuning, but are learnt from
        by the point model. With `TimeSeriesSplit` rows are taken to be in the order of time, and the last ones are held
        back for calibration.
    solver : {"auto", "newton", "subspace", "lbfgs"}
    tol : float
        Relative duality gap at which the bands count as solved.
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
    preprocessor_ : transformer or None
    lower_, upper_ : SoSFunction
        Band functions of the noise features, in units of the base scale.
    nested_ : NestedFunctions or None
        Nested bands, with `nested_coverages`; `lower_` and `upper_` are then those of the one band, which `summary`
        describes and intervals do not use.
    nested_steps_ : ndarray of shape (2, k) or None
        Mean step from band to band over the rows that they were learnt from, below and above.
    nested_certificates_ : list of dict or None
        As `certificate_`, of each step.
    view_ : NoiseView
        Base scale and noise features in use.
    size_forest_ : RandomForestRegressor or None
        The forest of residual sizes, where the view looks at it.
    conformal_score_, width_penalty_, learning_coverage_, symmetry_penalty_
        In use.
    lengthscale_ : float, array, dict of them, or None
        In use; a dict if it differs below and above, None for a kernel object, which has its own.
    tuning_ : TuningReport or None
        Every candidate, the tests and the decision in words; None if nothing was left to choose.
    residual_rule_ : {"in-sample", "leave-one-out", "out-of-fold"}
        The residuals that the bands were learnt from; in-sample if there is but one learning row.
    certificate_ : dict
        dual_value, primal_value, gap, violation, status, iterations, decompositions, seconds, n_features,
        trace_left_out.
    residual_rms_, mean_lower_, mean_upper_ : float
        Root mean square of the residuals of all learning rows, and mean of each band before calibration over those that
        it was learnt from (without outliers). The scaled score takes no band for less than 5 % of its mean.
    reads_numbers_ : bool
        Whether X must be a table of finite numbers: no transformer makes one of it, or `fit` saw one.
    learning_mean_, learning_scale_ : ndarray
        Mean and standard deviation of what the kernel sees of the learning rows.
    model_sees_points_ : bool
        Whether the point model was fitted to what the preprocessor gives instead of X.
    active_lower_, active_upper_ : ndarray of int
        Rows given to `fit` that shape each band.
    learning_rows_, calibration_rows_ : ndarray of int
        Rows given to `fit` that were learnt from and held back; each has all rows with ``calibration_size="cross"``.
    n_noise_rows_, n_band_rows_ : int
        Learning rows whose residuals were used to learn the noise, and of these the bands: all of them up to some
        20 000 and 10 000, and with ``learning_coverage=1``.
    n_unused_rows_ : int
        Rows given to `fit` that were neither learnt from nor held back, as at most 500 000 and 200 000 are.
    copies_, folds_ : list of SoSBandRegressor, ndarray of int
        With ``calibration_size="cross"`` only: the copies, and for each row given to `fit` that which has not seen it.
        Everything else that is learnt is of all rows.
    n_learnt_calibration_rows_ : int
        Calibration rows that `fit` had learnt from; above 0 the coverage guarantee is void.
    scores_ : ndarray
        Calibration scores.
    typical_ : TypicalRows
        What `explain` compares rows with; lacking in models that earlier versions saved.
    """

    _set_by_some_fits = ("typical_", "nested_coverages", "nested_", "nested_steps_", "nested_certificates_")
    _most_rows = (LEARNING_ROWS, CALIBRATION_ROWS)

    nested_coverages: Any = None  # in models that earlier versions saved
    nested_: NestedFunctions | None = None
    nested_steps_: Array | None = None
    nested_certificates_: list[dict[str, Any]] | None = None
    estimator_: Any
    preprocessor_: Any
    size_forest_: Any
    model_sees_points_: bool
    residual_rule_: str
    residual_rms_: float
    learning_mean_: Array
    learning_scale_: Array
    tuning_: TuningReport | None
    view_: NoiseView
    n_noise_rows_: int
    n_band_rows_: int
    conformal_score_: str
    symmetry_penalty_: Any
    width_penalty_: float
    learning_coverage_: float
    lengthscale_: Any
    lower_: SoSFunction
    upper_: SoSFunction
    active_lower_: IntArray
    active_upper_: IntArray
    mean_lower_: float
    mean_upper_: float
    certificate_: dict[str, Any]
    typical_: TypicalRows

    def __init__(
        self,
        estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        conformal_score: str = "auto",
        calibration_size: float | int | str | None = 0.5,
        base_scale: str = "auto",
        noise_features: str = "auto",
        symmetry_penalty: Any = "auto",
        symmetry_kind: str = "training",
        lengthscale: Any = "auto",
        kernel: Any = "matern52",
        preprocessor: Any = "auto",
        width_penalty: str | float = "auto",
        trace_penalty: float = 1.0,
        frobenius_penalty: float = 1.0,
        rank: Any = "auto",
        residuals: str = "auto",
        normalize: bool = True,
        learning_coverage: str | float = "auto",
        nested_coverages: Any = None,
        constant: bool = True,
        outlier_fraction: float = 0.0,
        criterion: str = "interval-score",
        symmetry_test: str | None = "auto",
        test_level: float = 0.05,
        rules: Rules | None = None,
        max_seconds: float | None = 60.0,
        cv: Any = 5,
        solver: str = "auto",
        tol: float = 1e-4,
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
        self.symmetry_kind = symmetry_kind
        self.lengthscale = lengthscale
        self.kernel = kernel
        self.preprocessor = preprocessor
        self.width_penalty = width_penalty
        self.trace_penalty = trace_penalty
        self.frobenius_penalty = frobenius_penalty
        self.rank = rank
        self.residuals = residuals
        self.normalize = normalize
        self.learning_coverage = learning_coverage
        self.nested_coverages = nested_coverages
        self.constant = constant
        self.outlier_fraction = outlier_fraction
        self.criterion = criterion
        self.symmetry_test = symmetry_test
        self.test_level = test_level
        self.rules = rules
        self.max_seconds = max_seconds
        self.cv = cv
        self.solver = solver
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _wants_numbers(self) -> bool:
        """A transformer of the user's sees what was given."""
        return self.preprocessor is None or isinstance(self.preprocessor, str)

    def _encodes_tables(self) -> bool:
        return is_word(self.preprocessor, "auto")

    def __sklearn_tags__(self) -> Any:
        """Gaps are filled; a model of the user's sees them."""
        tags = super().__sklearn_tags__()
        own = hasattr(self.estimator, "fit")
        allowed = get_tags(self.estimator).input_tags.allow_nan if own else self.estimator is None
        tags.input_tags.allow_nan = self._encodes_tables() and allowed
        return tags

    def _numbers(self, rows: Rows) -> Array:
        return dense_points(self.preprocessor_, rows.for_kernel, len(self.learning_mean_))

    def _learn(self, rows: Rows, y: Array, rng: np.random.RandomState, weight: Array | None = None) -> None:
        """Preprocessor, point model, residuals and bands of the learning rows."""
        self.preprocessor_, points = learn_preprocessor(
            self.preprocessor, rows.for_kernel, y, numbers=self.reads_numbers_, estimator=self.estimator
        )
        self.model_sees_points_ = self.estimator is None and not self.reads_numbers_
        check_band_kernel(self, points.shape[1])
        encodes = self.model_sees_points_ and isinstance(self.preprocessor_, TableEncoder)
        all_rows = is_paper(self) or self.learning_coverage == 1  # bands that cover every row must see every row
        noise_rows, band_rows = (len(y), len(y)) if all_rows else (NOISE_ROWS, BAND_ROWS)
        learnt = self._fit_point_model(
            points if self.model_sees_points_ else rows.for_model,
            y,
            rng,
            with_std=MODEL in scales_wanted(self),
            weight=weight,
            fold_points=self.preprocessor_.fold_points(rows.for_kernel, y, points) if encodes else None,
            enough_rows=noise_rows,
        )
        self.residual_rms_ = float(np.sqrt(np.mean(np.square(learnt.residual))))
        seen = points if self.reads_numbers_ else dense_points(self.preprocessor_, rows.for_kernel, points.shape[1])
        self.learning_mean_, self.learning_scale_ = seen.mean(axis=0), seen.std(axis=0)
        learnt, noisy = learnt.sample(noise_rows, rng)
        weight = None if weight is None else weight[noisy]
        facts = self._learning_facts(points[noisy], learnt, rng, weight)
        kept = without_outliers(learnt.residual, self.outlier_fraction)
        keep = np.flatnonzero(kept if weight is None else kept & (weight > 0))
        data = NoiseData(
            facts.take(keep),
            learnt.residual[keep],
            self.learning_rows_[noisy][keep],
            None if weight is None else weight[keep],
        )
        self.tuning_ = tune_bands(self, data, rng)
        bands = data.take(sampled(np.arange(len(keep)), band_rows, rng))
        self.n_noise_rows_, self.n_band_rows_ = len(data.r), len(bands.r)
        self._learn_bands(band_problem(self, bands))

    def _learning_facts(
        self, points: Array, learnt: LearntResiduals, rng: np.random.RandomState, weight: Array | None
    ) -> RowFacts:
        """What is known of the learning rows, as far as something may look at it."""
        wanted, scales = scales_wanted(self), {}
        self.size_forest_ = None
        if MODEL in wanted and learnt.std is not None:
            scales[MODEL] = learnt.std
        if FOREST in wanted and learnt.residual.any():
            seed = int(rng.randint(2**31))
            known = (points, learnt.prediction, learnt.residual)
            self.size_forest_, scales[FOREST] = fit_size_forest(*known, seed, weight)
        usable = {name: scale for name, scale in scales.items() if np.isfinite(scale).all() and scale.mean() > 0}
        ells = model_lengthscales(self.estimator_, self.preprocessor_, sees_points=self.model_sees_points_)
        return RowFacts(points, learnt.prediction, usable, ells)

    def _learn_bands(self, problem: BandProblem) -> None:
        """Bands of the residuals, and what is worth knowing of them."""
        self.view_ = problem.view
        if FOREST not in problem.view.scales:
            self.size_forest_ = None
        self.conformal_score_, self.symmetry_penalty_ = problem.conformal_score, problem.wanted["symmetry_penalty"]
        self.width_penalty_ = problem.wanted["width_penalty"]
        self.learning_coverage_ = problem.wanted["learning_coverage"]
        (bands,) = learn_band_sequence(problem.points, problem.z, [problem.wanted], **solver_options(self, problem))
        self.lower_, self.upper_ = deployed_pair(*widened_off_data(bands, problem))
        self.lengthscale_ = lengthscale_in_use(self.lower_.features.kernel, self.upper_.features.kernel)
        self.active_lower_, self.active_upper_ = problem.rows[bands.active_lower], problem.rows[bands.active_upper]
        self.mean_lower_, self.mean_upper_ = float(bands.values_lower.mean()), float(bands.values_upper.mean())
        self.certificate_ = bands.certificate
        values, functions = (bands.values_lower, bands.values_upper), (self.lower_, self.upper_)
        self.typical_ = TypicalRows.of(problem.points, problem.unit, values, problem.rows, functions)
        self.nested_, self.nested_steps_, self.nested_certificates_ = learn_nested(self, problem)
        self._say(f"bands {bands.status.value} with a relative gap of {bands.gap:.1e} in {bands.seconds:.2g} s")

    def support(self, X: Any) -> Array:
        """How much the learning rows say about the noise at each row, in [0, 1], 1 at the learning rows.

        ``||Phi(x)||^2 / k(x, x)`` of the noise features.
        """
        check_is_fitted(self, LEARNT)
        blocks = (self._facts(block) for block in self._read(X, reset=False).blocks())
        return np.concatenate([evaluate_pair(self.lower_, self.upper_, self.view_.points(b))[2] for b in blocks])

    def explain(
        self, X: Any, confidence_level: Any = None, *, groups: Any = None, likelihood_ratio: Any = None
    ) -> Explanation:
        """Why intervals are as wide as they are: each against the typical one, in parts that sum exactly.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows.
        confidence_level : float, optional
            In (0, 1); by default that of the constructor.
        groups, likelihood_ratio : arrays of shape (n,), optional
            Given if and only if `conformalize` got them.

        Returns
        -------
        Explanation
            With ``table()``, and ``words(i)`` for one row; it holds a number for each row and landmark.
        """
        return explain(self, X, confidence_level, groups, likelihood_ratio)

    def summary(self, side: str = "both") -> str:
        """What was learnt, in words.

        Parameters
        ----------
        side : {"both", "lower", "upper"}
            The ends that intervals have; one alone takes all of the miscoverage, as with ``lower_share`` 1 or 0.
        """
        check_is_fitted(self, LEARNT)
        check_choice("side", side, tuple(LOWER_SHARE))
        return describe(self, side)

    def _center_and_band(self, rows: Rows) -> tuple[Array, Band]:
        facts = self._facts(rows)
        points = self.view_.points(facts)
        if self.nested_ is not None:
            below, above, support = self.nested_.evaluate(points)
        else:
            below, above, support = evaluate_pair(self.lower_, self.upper_, points)
        unit = self.view_.unit(facts)
        return facts.prediction, self._score.band(facts.prediction, below, above, support, unit)

    def _facts(self, rows: Rows) -> RowFacts:
        """What the bands look at, at new rows; only what they do look at is computed."""
        points = self._numbers(rows)
        X = points if self.model_sees_points_ else rows.for_model
        scales: dict[str, Array] = {}
        if MODEL in self.view_.scales:
            prediction, scales[MODEL] = predict_with_spread(self.estimator_, X)
        else:
            prediction = predict_rows(self.estimator_, X)
        if FOREST in self.view_.scales:
            scales[FOREST] = forest_sizes(self.size_forest_, points, prediction)
        return RowFacts(points, prediction, scales)

    @property
    def _score(self) -> Score:
        """What calibration makes of prediction and bands; its units are those of the learning rows."""
        if self.nested_ is not None and self.nested_steps_ is not None:
            return NestedScore.of_steps(self.nested_.coverages, self.nested_steps_)
        return SCORES[self.conformal_score_].fitted(self.mean_lower_, self.mean_upper_)

    def _center(self, rows: Rows) -> Array:
        """Prediction of the point model, which sees the rows as given or what the preprocessor makes of them."""
        X = self._numbers(rows) if self.model_sees_points_ else rows.for_model
        return predict_rows(self.estimator_, X)

    @property
    def support_limit(self) -> float:
        """Rows with less support count as far from the learning data.

        0.5; with `constant` 0.1, because only there nothing is left of the bands but the constant.
        """
        check_is_fitted(self, LEARNT)
        return NO_SUPPORT if self.lower_.features.constant else LITTLE_SUPPORT

    def _check_band(self, band: Band) -> None:
        """Warn of rows on which the learning data say nothing."""
        limit = self.support_limit
        far = 0 if band.support is None else int(np.count_nonzero(band.support < limit))
        if far:
            warnings.warn(
                f"{share_of(far, len(band), 'row')} far from the learning data (support below {limit:g}): the data say "
                "nothing about the noise there",
                OffDataWarning,
                stacklevel=4,  # the caller of predict_interval, predict_quantile or evaluate
            )

    def _metric_points(self, X: Any) -> dict[str, Array]:
        """What the kernel sees, in units of the learning set."""
        points = self._numbers(self._read(X, reset=False))
        points = (points - self.learning_mean_) / np.where(self.learning_scale_ > 0, self.learning_scale_, 1.0)
        unit = np.ones((1, points.shape[1]))
        return {"X": points, "X_learn": np.vstack([-unit, unit])}  # mean 0, standard deviation 1
