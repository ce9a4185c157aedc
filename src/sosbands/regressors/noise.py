"""The noise of a SoSBandRegressor: what its rows are known by, what the data choose, and the bands that are learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.preprocessing import StandardScaler

from sosbands._arguments import check
from sosbands._progress import say
from sosbands._types import AnyArray, Array, IntArray
from sosbands.bands import (
    BandSettings,
    BandSolution,
    NestedBands,
    NestedFunctions,
    PenaltyScale,
    SoSFunction,
    learn_band_sequence,
    learn_nested_bands,
    penalty_scale,
)
from sosbands.bands.functions import deployed_pair, evaluate_pair
from sosbands.bands.settings import AUTO, is_auto
from sosbands.bands.views import (
    BOTH,
    FOREST,
    INPUTS,
    LENGTHSCALES,
    MODEL,
    NO_SCALE,
    PREDICTION,
    SCALE,
    NoiseView,
    RowFacts,
    needed_scales,
    read_noise_features,
)
from sosbands.conformal import SCORES, Band, NestedScore, Score, TargetScale, Told
from sosbands.conformal.band import in_units
from sosbands.conformal.scores import ALL_SCORES
from sosbands.explanation import TypicalRows
from sosbands.kernels import StationaryKernel
from sosbands.point_models import GaussianProcess, ModelBlend
from sosbands.point_models.user_model import LARGEST_SINGLE, predict_rows
from sosbands.tables.rows import sampled
from sosbands.tuning import Automatic, Rules, TuningReport, choose, tune

# What "auto" stands for beside the paper's rules, and all that makes the estimator the paper's.
PAPER_SETTINGS: dict[str, Any] = {
    "base_scale": NO_SCALE,
    "noise_features": INPUTS,
    "width_penalty": 10.0,
    "learning_coverage": 1.0,
    "conformal_score": "added",
}
FIXED = ("kernel", "symmetry_kind", "trace_penalty", "frobenius_penalty", "constant")  # that nothing chooses
FEW_ROWS = 200  # up to which fewer candidates are told apart
MANY_ROWS, RANK_OF_MANY = 2500, (500, 1e-6)  # features of bands that were chosen with far fewer

TREES, LEAF, SMALL_LEAF, SMALL_ROWS = 100, 10, 5, 200  # of the forest of residual sizes
TREE_ROWS = 2000  # each tree sees at most so many: more rows make the forest slow, not better

LARGEST_SHARE = 0.98  # quantile at which sizes are cut: single ones say little about a scale


# What is asked


class NoiseSettings(NamedTuple):
    """Everything that makes one problem of the noise; "auto" where it is left to the data."""

    base_scale: str
    noise_features: str
    conformal_score: str
    bands: BandSettings

    @classmethod
    def of(cls, model: Any) -> NoiseSettings:
        """As a `SoSBandRegressor` was told; beside the paper's rules "auto" is the paper's setting of all but two."""
        names = ("lengthscale", "width_penalty", "learning_coverage", "symmetry_penalty")
        bands = (model.bands or BandSettings()).replace(**{name: getattr(model, name) for name in names})
        features = model.noise_features
        features = features if is_auto(features) else read_noise_features(features)
        given = cls(model.base_scale, features, model.conformal_score, bands)
        if not has_paper_rules(model):
            return given
        told = {name: given.value(name) for name in PAPER_SETTINGS}
        return given.changed(**{name: PAPER_SETTINGS[name] for name, value in told.items() if is_auto(value)})

    def value(self, name: str) -> Any:
        """A setting by name."""
        return getattr(self if name in self._fields else self.bands, name)

    def changed(self, **changes: Any) -> NoiseSettings:
        """The same with other values of some settings."""
        own = {name: value for name, value in changes.items() if name in self._fields}
        rest = {name: value for name, value in changes.items() if name not in own}
        return self._replace(**own, bands=self.bands.replace(**rest) if rest else self.bands)

    @property
    def is_open(self) -> bool:
        """Whether something is left to the data."""
        return AUTO in self[:3] or bool(self.bands.open_names)

    @property
    def keeps_paper(self) -> bool:
        """Whether all is given but lengthscale and symmetry penalty, in the paper's unit."""
        return self.base_scale == NO_SCALE and not any(is_auto(self.value(name)) for name in PAPER_SETTINGS)

    @property
    def scales(self) -> set[str]:
        """Names of the base scales that may come to be looked at."""
        if AUTO in (self.base_scale, self.noise_features):
            return {MODEL, FOREST}
        return needed_scales(self.base_scale, self.noise_features)

    def settled(self, report: TuningReport | None) -> NoiseSettings:
        """The same with what was chosen in place of "auto"."""
        found = {} if report is None else {name: getattr(report, name) for name in (*PAPER_SETTINGS, *OPEN_LAST)}
        chosen = self.changed(**{name: value for name, value in found.items() if value is not None})
        ell = chosen.bands.lengthscale
        return chosen.changed(lengthscale="median") if is_auto(ell) else chosen  # of kernels that have their own


OPEN_LAST = ("lengthscale", "symmetry_penalty")


def has_paper_rules(model: Any) -> bool:
    """Whether rules for lengthscale and symmetry penalty decide, which know of one setting of all else."""
    return model.rules is not None and model.rules.needs_grid


# What is learnt from


@dataclass(frozen=True, eq=False)
class NoiseData:
    """What bands are learnt from, before anything is chosen: learning rows without outliers."""

    facts: RowFacts
    r: Array  # residuals
    rows: IntArray  # positions in what was given to `fit`
    weights: Array | None = None  # how much each row counts, above 0

    def take(self, rows: IntArray) -> NoiseData:
        """Some of them."""
        if len(rows) == len(self.r):
            return self
        weights = None if self.weights is None else self.weights[rows]
        return NoiseData(self.facts.take(rows), self.r[rows], self.rows[rows], weights)


def without_outliers(r: Array, fraction: float) -> AnyArray:
    """Mask of the rows kept when the `fraction` with the largest residuals is left out."""
    keep = np.ones(len(r), dtype=bool)
    keep[np.argsort(-np.abs(r), kind="stable")[: int(np.floor(fraction * len(r)))]] = False
    return keep


def fit_size_forest(
    points: Array, prediction: Array, r: Array, seed: int, sample_weight: Array | None = None
) -> tuple[RandomForestRegressor, Array]:
    """A forest of the sizes of residuals, given inputs and prediction, and its out-of-bag sizes at these rows."""
    sizes = np.abs(r)
    forest = RandomForestRegressor(
        TREES,
        min_samples_leaf=LEAF if len(r) > SMALL_ROWS else SMALL_LEAF,
        max_features=0.5,
        max_samples=TREE_ROWS if len(r) > TREE_ROWS else None,
        oob_score=True,
        random_state=seed,
    )
    cut = np.minimum(sizes, np.quantile(sizes, LARGEST_SHARE))
    with np.errstate(invalid="ignore"):  # scikit-learn looks whether the sizes are integers of 64 bits
        forest.fit(_seen_by_forest(points, prediction), cut, sample_weight)
    return forest, np.asarray(forest.oob_prediction_, dtype=float)


def forest_sizes(forest: RandomForestRegressor, points: Array, prediction: Array) -> Array:
    """Sizes of residuals at new rows."""
    return predict_rows(forest, _seen_by_forest(points, prediction))


def _seen_by_forest(points: Array, prediction: Array) -> Array:
    """What the forest sees, within the range of the single precision in which trees compare."""
    table: Array = np.column_stack([points, prediction])
    return table.clip(-LARGEST_SINGLE, LARGEST_SINGLE)


def model_lengthscales(estimator: Any, preprocessor: Any, *, sees_points: bool) -> Array | None:
    """Lengthscales of the Gaussian process in a point model, in units of what the preprocessor gives.

    None without a process, or if it sees other columns than the kernel of the bands.
    """
    members = estimator.members_ if isinstance(estimator, ModelBlend) else [estimator]
    process = next((each for each in members if isinstance(each, GaussianProcess)), None)
    if process is None:
        return None
    if sees_points or preprocessor is None:
        return np.asarray(process.lengthscale_)
    scales = isinstance(preprocessor, StandardScaler) and preprocessor.scale_ is not None
    return np.asarray(process.lengthscale_ / preprocessor.scale_) if scales else None


# What the data choose


def choose_noise(
    model: Any,
    asked: NoiseSettings,
    data: NoiseData,
    rng: np.random.RandomState,
    target: TargetScale | None = None,
    share: float = 1.0,
) -> TuningReport | None:
    """What to take for whatever is "auto"; None if nothing is."""
    if data.r.any():  # there is no scale of nothing
        fine = MODEL in data.facts.scales or asked.base_scale not in (MODEL, BOTH)
        expected = "'auto', 'none' or 'forest', as the point model gives no standard deviation (return_std) of its own"
        check("base_scale", asked.base_scale, fine, expected)
        fine = FOREST in data.facts.scales or asked.base_scale not in (FOREST, BOTH)
        expected = "'auto', 'none' or 'model', as nearly all residuals are zero, whose sizes a forest cannot tell"
        check("base_scale", asked.base_scale, fine, expected)
        fine = LENGTHSCALES not in asked.noise_features.split("+") or data.facts.lengthscales is not None
        expected = (
            "'inputs' instead of 'lengthscales', as the point model is no GaussianProcess of what the kernel sees"
        )
        check("noise_features", asked.noise_features, fine, expected)
    if not asked.is_open:
        return None
    seed, rules = int(rng.randint(2**31)), model.rules or Rules()
    running = {"cv": model.cv, "n_jobs": model.n_jobs, "random_state": rng}
    fixed = {name: asked.value(name) for name in FIXED}
    if has_paper_rules(model) or asked.keeps_paper:
        if data.weights is not None:
            raise ValueError(
                "sample_weight was given: expected None where the paper's rules choose, which know of no weights; "
                "give the lengthscale and the symmetry penalty"
            )
        view = _view(asked, data)
        points, z = view.points(data.facts), in_units(data.r, view.unit(data.facts))
        names = (*OPEN_LAST, "width_penalty", "learning_coverage", "conformal_score")
        given = {name: asked.value(name) for name in names}
        units = _units(asked.bands, points, z, asked.bands.learning_coverage)
        return tune(points, z, normalize=units, rules=replace(rules, seed=seed), **given, **running, **fixed)
    options = fixed | {"solver": asked.bands.solver} | ({} if asked.bands.normalize else {"normalize": False})
    end = np.inf if model.max_seconds is None else perf_counter() + share * model.max_seconds
    policy = _automatic(model.confidence_level, rules, asked, data, seed)
    given = {"options": options, "deadline": end, "weights": data.weights, "target": target}
    return choose(data.facts, data.r, policy, **given, **running)


def _view(asked: NoiseSettings, data: NoiseData) -> NoiseView:
    """What is looked at; of residuals that are all zero, which have no scale, the inputs."""
    names = (asked.base_scale, asked.noise_features) if data.r.any() else (NO_SCALE, INPUTS)
    return NoiseView.of(*names, data.facts)


def _automatic(level: float, rules: Rules, asked: NoiseSettings, data: NoiseData, seed: int) -> Automatic:
    """What the settings leave open, in the order in which candidates of equal value are preferred."""
    bands = asked.bands
    ell, penalty, is_named = bands.lengthscale, bands.symmetry_penalty, isinstance(bands.kernel, str)
    searched = is_named and is_auto(ell)
    sided = isinstance(ell, dict) and not np.array_equal(np.asarray(ell["lower"]), np.asarray(ell["upper"]))
    penalties = None if is_auto(penalty) else (penalty,)
    known, few = set(data.facts.scales), len(data.r) <= FEW_ROWS
    has_ends = MODEL in known and data.facts.scales[MODEL].ndim == 2
    scores = tuple(ALL_SCORES if has_ends else SCORES)
    scales: tuple[str, ...] = (asked.base_scale,)
    if is_auto(asked.base_scale):
        scales = tuple(name for name in (BOTH, MODEL, FOREST, NO_SCALE) if needed_scales(name, INPUTS) <= known)
        scales = scales[:2] if few and BOTH in scales else scales
    features: tuple[str, ...] = (asked.noise_features,)
    if is_auto(asked.noise_features):
        inputs = LENGTHSCALES if data.facts.lengthscales is not None else INPUTS
        features = (inputs, PREDICTION) if few or not known else (inputs, PREDICTION, SCALE)
        features = features if is_named and isinstance(ell, str) else (INPUTS,)
    return Automatic(
        base_scales=scales,
        noise_features=features,
        conformal_scores=scores if is_auto(asked.conformal_score) else (asked.conformal_score,),
        lengthscales=None if searched else (ell if is_named else "median",),
        width_penalties=None if is_auto(bands.width_penalty) else (bands.width_penalty,),
        learning_coverages=None if is_auto(bands.learning_coverage) else (bands.learning_coverage,),
        symmetry_penalties=(0.0,) if sided and penalties is None else penalties,
        symmetry_test=rules.symmetry_test is not None,
        test_level=rules.level,
        level=level,
        seed=seed,
    )


def _units(
    settings: BandSettings, points: Array, z: Array, coverage: float, weights: Array | None = None
) -> bool | PenaltyScale:
    """Units of the penalties: of the residuals; those of the paper's initial model if its problem was asked for."""
    if not settings.normalize or not z.any():
        return False
    if coverage < 1:
        return PenaltyScale.of_residuals(z, weights)
    return penalty_scale(points, z, settings.kernel, settings.rank, settings.tol, settings.solver, weights)


# What is learnt


@dataclass(frozen=True, eq=False)
class BandProblem:
    """One problem, in the view that was chosen."""

    view: NoiseView
    points: Array  # what the kernel sees
    z: Array  # residuals in units of the base scale
    unit: Array  # the base scale
    rows: IntArray  # positions in what was given to `fit`
    settings: BandSettings  # nothing is left open
    conformal_score: str
    prediction: Array
    least: float  # of the targets
    weights: Array | None = None

    @classmethod
    def of(cls, chosen: NoiseSettings, data: NoiseData, *, in_residuals: bool) -> BandProblem:
        """The problem of these rows; `in_residuals` takes penalties in units of residuals whatever the coverage."""
        view = _view(chosen, data)
        points, unit = view.points(data.facts), view.unit(data.facts)
        z, settings = in_units(data.r, unit), chosen.bands
        units = _units(settings, points, z, 0.0 if in_residuals else settings.learning_coverage, data.weights)
        settings = settings.replace(normalize=units)
        score, prediction = chosen.conformal_score, data.facts.prediction
        least = float(np.min(prediction + data.r))
        return cls(view, points, z, unit, data.rows, settings, score, prediction, least, data.weights)

    def with_rank(self, most: float) -> BandProblem:
        """The problem with as many features as its rows take, of bands that cover at most this share of them."""
        if len(self.z) <= MANY_ROWS or most == 1 or not is_auto(self.settings.rank):
            return self  # bands that cover every row need features that reach it
        return replace(self, settings=self.settings.replace(rank=RANK_OF_MANY))

    def widened(self, bands: BandSolution) -> tuple[SoSFunction, SoSFunction]:
        """The band functions, off the data at least as large as bands of constant width.

        What the features of the learning points leave of ``k(x, x)`` says how little these know of x. A multiple of it
        is the sum of squares of all functions that vanish at the learning points, so that the bands stay sums of
        squares, and stay what they are where there are data.
        """
        c = self.settings.learning_coverage
        if not self.settings.constant or c == 1 or not self.z.any():
            return bands.lower, bands.upper  # the paper's
        if bands.lower is bands.upper or np.array_equal(bands.lower.B, bands.upper.B):
            levels = [_share_quantile(np.abs(self.z), c, self.weights)] * 2
        else:
            levels = [_share_quantile(side, (1 + c) / 2, self.weights) for side in (-self.z, self.z)]
        lower, upper = (
            replace(function, beyond=max(0.0, level - function.off_data))
            for function, level in zip((bands.lower, bands.upper), levels, strict=True)
        )
        return lower, upper

    def widened_steps(self, bands: NestedBands) -> NestedFunctions:
        """The same for nested bands; what a step lacks is added to it, and counts for those after it."""
        functions = bands.functions
        if not self.settings.constant or not self.z.any():
            return functions
        symmetric = np.isinf(np.asarray(self.settings.symmetry_penalty, dtype=float)).any()
        sides = []
        for steps, values in ((functions.lower_steps, -self.z), (functions.upper_steps, self.z)):
            reached, made = 0.0, []
            for coverage, step in zip(functions.coverages, steps, strict=True):
                share = coverage if symmetric else (1 + coverage) / 2
                level = _share_quantile(np.abs(self.z) if symmetric else values, share, self.weights)
                made.append(replace(step, beyond=max(0.0, level - reached - step.off_data)))
                reached += made[-1].off_data
            sides.append(tuple(made))
        return NestedFunctions(functions.coverages, *sides)


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """What `fit` has learnt of the noise: from what is known of rows to bands around their prediction.

    Attributes
    ----------
    view : NoiseView
        Base scale and noise features in use.
    lower, upper : SoSFunction
        Band functions of the noise features, in units of the base scale.
    score : Score
        What calibration makes of prediction and bands; its units are those of the learning rows.
    settings : BandSettings
        Of the problem that was solved; penalties and residuals in the units of its `normalize`.
    mean_lower, mean_upper : float
        Mean of each band before calibration over the rows that it was learnt from, without outliers.
    active_lower, active_upper : ndarray of int
        Rows given to `fit` that shape each band.
    certificate : dict
        dual_value, primal_value, gap, violation, status, iterations, decompositions, seconds, n_features,
        trace_left_out.
    typical : TypicalRows
        What `explain` compares rows with.
    n_rows : int
        Learning rows that the bands were learnt from.
    size_forest : RandomForestRegressor or None
        The forest of residual sizes, where the view looks at it.
    nested : NestedFunctions or None
        Nested bands, with `nested_coverages`; `lower` and `upper` are then those of the one band, which `summary`
        describes and intervals do not use.
    nested_certificates : list of dict
        As `certificate`, of each step.
    target : TargetScale or None
        On whose scale prediction and bands are, where that is not the target's own, and its range.
    """

    view: NoiseView
    lower: SoSFunction
    upper: SoSFunction
    score: Score
    settings: BandSettings
    mean_lower: float
    mean_upper: float
    active_lower: IntArray
    active_upper: IntArray
    certificate: dict[str, Any]
    typical: TypicalRows
    n_rows: int
    size_forest: Any = None
    nested: NestedFunctions | None = None
    nested_certificates: tuple[dict[str, Any], ...] = ()
    target: TargetScale | None = None

    @classmethod
    def learn(
        cls,
        problem: BandProblem,
        size_forest: Any = None,
        nested_coverages: Any = None,
        target: TargetScale | None = None,
    ) -> NoiseModel:
        """Solve the problem, and each step of nested bands."""
        coverages = () if nested_coverages is None else tuple(nested_coverages)
        problem = problem.with_rank(max(problem.settings.learning_coverage, *coverages, 0.0))
        settings, weights = problem.settings, problem.weights
        (bands,) = learn_band_sequence(problem.points, problem.z, [settings], sample_weight=weights)
        lower, upper = deployed_pair(*problem.widened(bands))
        values = bands.values_lower, bands.values_upper
        means = float(values[0].mean()), float(values[1].mean())
        score, functions = ALL_SCORES[problem.conformal_score].fitted(*means), None
        certificates: tuple[dict[str, Any], ...] = ()
        if coverages:
            given = {name: value for name, value in settings.get_params().items() if name != "learning_coverage"}
            nested = learn_nested_bands(problem.points, problem.z, coverages, sample_weight=weights, **given)
            steps = [[getattr(step, side).mean() for step in nested.steps] for side in ("values_lower", "values_upper")]
            functions, certificates = problem.widened_steps(nested).deployed(), tuple(nested.certificates)
            score = NestedScore.of_steps(functions.coverages, np.array(steps))
        say(f"bands {bands.status.value} with a relative gap of {bands.gap:.1e} in {bands.seconds:.2g} s")
        return cls(
            problem.view,
            lower,
            upper,
            score,
            settings,
            *means,
            problem.rows[bands.active_lower],
            problem.rows[bands.active_upper],
            bands.certificate,
            TypicalRows.of(
                problem.points, problem.unit, values, problem.prediction, problem.rows, (lower, upper), problem.least
            ),
            len(problem.z),
            size_forest if FOREST in problem.view.scales else None,
            functions,
            certificates,
            target,
        )

    @property
    def lengthscale(self) -> Any:
        """Of the kernels of both sides, or a dict where they differ; None for kernels that are not ours."""
        lower, upper = self.lower.features.kernel, self.upper.features.kernel
        if not isinstance(lower, StationaryKernel) or not isinstance(upper, StationaryKernel):
            return None
        below, above = (ell[0] if len(ell) == 1 else np.array(ell) for ell in (lower.lengthscale, upper.lengthscale))
        return below if lower == upper else {"lower": below, "upper": above}

    def told(self, facts: RowFacts) -> Told:
        """Prediction and uncalibrated band of rows of which this is known."""
        points, unit = self.view.points(facts), self.view.unit(facts)
        if self.nested is not None:
            below, above, support = self.nested.evaluate(points)
        else:
            below, above, support = evaluate_pair(self.lower, self.upper, points)
        band: Band = self.score.band(facts.prediction, below, above, support, unit)
        if self.target is None:
            return Told(band, facts.prediction)
        return Told(replace(band, target=self.target), self.target.backward(facts.prediction))

    def reach(self, facts: RowFacts) -> tuple[Array, Array]:
        """How far the bands reach below and above the prediction before calibration, in units of the target."""
        points, center = self.view.points(facts), facts.prediction
        plain = SCORES["added"].band(center, self.lower(points), self.upper(points), unit=self.view.unit(facts))
        lower, middle, upper = (replace(plain, target=self.target).given(z) for z in (plain.lower, center, plain.upper))
        return middle - lower, upper - middle

    def columns(self, inputs: list[str]) -> dict[str, IntArray]:
        """Columns of the noise features, by the column of the table (`inputs`), or by what else they are made of."""
        names = list(inputs) if INPUTS in self.view.parts or self.view.lengthscales is not None else []
        names += ["(prediction)"] if PREDICTION in self.view.parts else []
        names += ["(scale)"] * (len(self.view.center) - (PREDICTION in self.view.parts)) if self.view.logged else []
        return {name: np.flatnonzero([each == name for each in names]) for name in dict.fromkeys(names)}


def told_by_folds(
    chosen: NoiseSettings,
    data: NoiseData,
    kept: IntArray,
    folds: Sequence[IntArray],
    most: int,
    rng: np.random.RandomState,
    *,
    in_residuals: bool,
    nested_coverages: Any = None,
    target: TargetScale | None = None,
) -> Told:
    """What bands say of the rows of each fold that were learnt, with the same settings, from the others.

    They are learnt from the rows `kept`, without outliers, and of these from at most so many; all rows are told of.
    """
    parts = []
    for held in folds:
        some = data.take(sampled(np.setdiff1d(kept, held), most, rng))
        problem = BandProblem.of(chosen, some, in_residuals=in_residuals)
        parts.append(NoiseModel.learn(problem, None, nested_coverages, target).told(data.facts.take(held)))
    return Told.joined(parts).take(np.argsort(np.concatenate(folds)))


def _share_quantile(values: Array, share: float, weights: Array | None) -> float:
    """The usual quantile; of weighted rows the least value that rows of this share of the weight do not pass."""
    if weights is None:
        return float(np.quantile(values, share))
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1]).clip(max=len(values) - 1)])
