"""Coverage in the long run, tested against exact laws under noise that is hostile: one law of noise per attempt.

Each attempt calibrates some hundred times on 10 to 30 rows and counts covered new rows. Without ties their number has
an exact law, with ties it is not smaller; groups have it one by one, each end of an asymmetric interval has it at its
own level. Under covariate shift and for cross-calibration a mean is promised. A whole run raises a false alarm with
a chance of at most 1e-3.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from attack.coverage_models import WHOLE, FixedFunctions, learnt_bands, learnt_baseline
from attack.exact_law import assert_exact, assert_mean_at_least, rank_promised
from attack.noise_laws import NoiseLaw
from sosbands.conformal import Calibration, lower_scores, upper_scores
from sosbands.conformal.cross import cross_intervals
from sosbands.exceptions import SosbandsWarning

FULL = 450
QUICK = 9
ALARM = 1e-3 / FULL  # of one attempt
NEW = 20  # rows to predict for each calibration
Counts = tuple[int, int, int, int]  # rows inside, not below, not above, and empty intervals
KINDS = ("symmetric", "asymmetric")
SCORES = ("added", "scaled")


def attempt(number: int) -> str:
    """A law of noise, a model and a promise."""
    rng = np.random.default_rng([53, number])
    scenario = SCENARIOS[number % len(SCENARIOS)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SosbandsWarning)  # too few rows, empty intervals, rows off the data
        return scenario(rng)


# ---------------------------------------------------------------- promises


def check_calibrations(rng: np.random.Generator, model: Any, law: NoiseLaw, repetitions: int, **weights: Any) -> None:
    """The laws of one model whose band is fixed: new calibration and new rows in every repetition."""
    m, level, share = draw_level(rng)
    options = {"lower_share": share} if model.calibration == "asymmetric" else {}
    covered = []
    for _ in range(repetitions):
        X, y = law.draw(rng, m)
        model.conformalize(X, y, **_filled(weights, m))
        X, y = law.draw(rng, NEW)
        covered.append(_covered(y, model.predict_interval(X, level, **options, **_filled(weights, NEW))))
    label = f"{described(model)}, {law}, level {level:.6g}"
    assert_sides(np.array(covered), m, level, model, share, f"{label}, {weights or 'no weights'}", ALARM, law.ties)


def assert_sides(
    covered: np.ndarray, m: int, level: float, model: Any, share: float, label: str, alarm: float, ties: bool
) -> None:
    """Exact laws of counts (repetitions, 4): inside, not below, not above, empty intervals."""
    if model.calibration == "symmetric":
        assert_exact(covered[:, 0], NEW, m, rank_promised(m, level), alarm, label, ties=ties)
        return
    # Scaled scores of one side stop at 0; an interval whose ends cross becomes its midpoint, beyond both of them.
    ties = ties or getattr(model, "conformal_score", "added") == "scaled" or bool(covered[:, 3].any())
    for column, part in ((1, share), (2, 1 - share)):
        side = 1 - (1 - level) * part
        k = rank_promised(m, side) if side < 1 else m + 1
        assert_exact(covered[:, column], NEW, m, k, alarm / 2, f"{label}, side {column}", ties=ties)


def draw_level(rng: np.random.Generator) -> tuple[int, float, float]:
    """Number of calibration rows, level, share of the lower side; some levels lie at the edge of a rank."""
    m = int(rng.integers(10, 31))
    level = float(rng.choice([0.5, 0.8, 0.9, 0.95, rng.uniform(0.05, 0.99)]))
    if rng.random() < 0.3:
        edge = rng.integers(m // 2, m + 1) / (m + 1)
        level = float(rng.choice([edge, np.nextafter(edge, 1), np.nextafter(edge, 0)]))
    return m, level, float(rng.choice([0.0, 0.1, 0.5, 0.8, 1.0], p=[0.1, 0.2, 0.4, 0.2, 0.1]))


def described(model: Any) -> str:
    words = [type(model).__name__, model.calibration, getattr(model, "conformal_score", "")]
    return " ".join(word for word in words if word)


def _filled(weights: dict[str, float], n: int) -> dict[str, np.ndarray]:
    return {name: np.full(n, value) for name, value in weights.items()}


def _covered(y: np.ndarray, ends: np.ndarray) -> Counts:
    above, below, empty = y >= ends[:, 0], y <= ends[:, 1], ends[:, 0] >= ends[:, 1]
    return int(np.sum(above & below)), int(np.sum(above)), int(np.sum(below)), int(np.sum(empty))


# ---------------------------------------------------------------- scenarios


def fixed_functions(rng: np.random.Generator) -> str:
    model = FixedFunctions(rng.choice(KINDS), rng.choice(SCORES), skew=rng.uniform(-3, 3))
    check_calibrations(rng, model, NoiseLaw.continuous(rng), 500)
    return "exact"


def tied_scores(rng: np.random.Generator) -> str:
    model = FixedFunctions(rng.choice(KINDS), rng.choice(SCORES), skew=rng.uniform(-3, 3))
    check_calibrations(rng, model, NoiseLaw.tied(rng), 500)
    return "with ties"


def equal_weights(rng: np.random.Generator) -> str:
    model = FixedFunctions(rng.choice(KINDS), rng.choice(SCORES), skew=rng.uniform(-3, 3))
    law = NoiseLaw.continuous(rng)
    check_calibrations(rng, model, law, 400, likelihood_ratio=float(10 ** rng.uniform(-100, 100)))
    return "equal weights, exact"


def groups(rng: np.random.Generator) -> str:
    """A law and a number of rows for each group; the laws of all hold."""
    model = FixedFunctions(rng.choice(KINDS), rng.choice(SCORES), skew=rng.uniform(-3, 3))
    _, level, share = draw_level(rng)
    options = {"lower_share": share} if model.calibration == "asymmetric" else {}
    n_groups = int(rng.integers(2, 5))
    laws = [NoiseLaw.continuous(rng) if rng.random() < 0.7 else NoiseLaw.tied(rng) for _ in range(n_groups)]
    sizes = rng.integers(10, 31, n_groups)
    covered = np.empty((300, n_groups, 4), dtype=int)
    for repetition in covered:
        X, y, labels = _mixed(rng, laws, sizes)
        model.conformalize(X, y, groups=labels)
        X, y, labels = _mixed(rng, laws, np.full(n_groups, NEW))
        ends = model.predict_interval(X, level, groups=labels, **options)
        repetition[:] = [_covered(y[labels == g], ends[labels == g]) for g in range(n_groups)]
    for g, (law, m) in enumerate(zip(laws, sizes.tolist(), strict=True)):
        label = f"{described(model)}, group {g}, {law}, level {level:.6g}"
        assert_sides(covered[:, g], m, level, model, share, label, ALARM / n_groups, law.ties)
    return "groups"


def _mixed(
    rng: np.random.Generator, laws: list[NoiseLaw], sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = [law.draw(rng, int(size)) for law, size in zip(laws, sizes, strict=True)]
    order = rng.permutation(int(sizes.sum()))
    X, y = (np.concatenate(columns)[order] for columns in zip(*parts, strict=True))
    return X, y, np.repeat(np.arange(len(laws)), sizes)[order]


def covariate_shift(rng: np.random.Generator) -> str:
    """New rows tilted by exp(a x), known up to a constant."""
    model = FixedFunctions(rng.choice(KINDS), rng.choice(SCORES), skew=rng.uniform(-3, 3))
    law = NoiseLaw.continuous(rng) if rng.random() < 0.5 else NoiseLaw.tied(rng)
    m, level, _ = draw_level(rng)
    tilt, constant, shares = rng.uniform(-3, 3), 10 ** rng.uniform(-30, 30), []
    for _ in range(1000):
        X, y = law.draw(rng, m)
        model.conformalize(X, y, likelihood_ratio=constant * np.exp(tilt * X[:, 0]))
        X = _tilted(rng, law, tilt)
        ends = model.predict_interval(X, level, likelihood_ratio=constant * np.exp(tilt * X[:, 0]))
        shares.append(_covered(law.observe(rng, X), ends)[0] / NEW)
    assert_mean_at_least(np.array(shares), level, ALARM, f"{described(model)}, {law} tilted by {tilt:.2g}, m={m}")
    return "shifted"


def _tilted(rng: np.random.Generator, law: NoiseLaw, tilt: float) -> np.ndarray:
    """Points of the law, each kept with a chance in proportion to exp(tilt x)."""
    X, _ = law.draw(rng, 50 * NEW)
    kept = X[rng.random(len(X)) < np.exp(tilt * X[:, 0] - abs(tilt))]
    assert len(kept) >= NEW, "too few points were drawn"
    return kept[:NEW]


def bands(rng: np.random.Generator) -> str:
    law = NoiseLaw.continuous(rng) if rng.random() < 0.6 else NoiseLaw.tied(rng)
    check_calibrations(rng, learnt_bands(rng, law, rng.choice(KINDS), rng.choice(SCORES)), law, 150)
    return "learnt bands"


def baselines(rng: np.random.Generator) -> str:
    law = NoiseLaw.continuous(rng) if rng.random() < 0.6 else NoiseLaw.tied(rng)
    check_calibrations(rng, learnt_baseline(rng, law, rng.choice(KINDS)), law, 150)
    return "baselines"


def fits(rng: np.random.Generator) -> str:
    """Fits of all rows, weighed or not, which hold rows back by themselves."""
    law, name = NoiseLaw.continuous(rng), str(rng.choice(list(WHOLE)))
    m, level, _ = draw_level(rng)
    n, weighed = 2 * m + int(rng.integers(0, 6)), bool(rng.random() < 0.5)
    covered = []
    for seed in range(30 if name == "bands" else 100):
        model = WHOLE[name](calibration_size=m, random_state=seed)
        model.fit(*law.draw(rng, n), **({"sample_weight": rng.exponential(size=n)} if weighed else {}))
        X, y = law.draw(rng, NEW)
        covered.append(_covered(y, model.predict_interval(X, level)))
    label = f"whole fits of {described(model)}, {law}, n={n}, level {level:.6g}, weighed: {weighed}"
    assert_sides(np.array(covered), m, level, model, 0.5, label, ALARM, law.ties)
    return "whole fits"


def crossed(rng: np.random.Generator) -> str:
    """Cross-calibration of copies that are as unstable as can be: each predicts one of the rows that it knows."""
    law = NoiseLaw.continuous(rng) if rng.random() < 0.5 else NoiseLaw.tied(rng)
    kind, n_folds = str(rng.choice(KINDS)), int(rng.integers(2, 9))
    _, level, _ = draw_level(rng)
    n, level = int(rng.integers(20, 61)), max(level, 0.6)
    folds = np.arange(n) % n_folds
    covered = np.array([_crossed_once(rng, law, folds, level, kind) for _ in range(1000)]) / NEW
    label = f"cross-calibrated, {kind}, {law}, n={n}, {n_folds} folds, level {level:.6g}"
    lost = 2 * (n_folds - 1) / (n + n_folds)
    if kind == "symmetric":
        assert_mean_at_least(covered[:, 0], max(0.0, 2 * level - 1 - lost), ALARM, label)
        return "crossed"
    for column in (1, 2):
        assert_mean_at_least(covered[:, column], max(0.0, level - lost), ALARM / 2, f"{label}, side {column}")
    return "crossed"


def _crossed_once(rng: np.random.Generator, law: NoiseLaw, folds: np.ndarray, level: float, kind: str) -> Counts:
    X, y = law.draw(rng, len(folds))
    X_new, y_new = law.draw(rng, NEW)
    copies = [FixedFunctions(kind, "added", shift=rng.choice(y[folds != k])) for k in range(folds.max() + 1)]
    own = [copy.band_at(X[folds == k]) for k, copy in enumerate(copies)]
    scores = np.empty((2, len(y)))
    for k, band in enumerate(own):
        scores[:, folds == k] = lower_scores(band, y[folds == k]), upper_scores(band, y[folds == k])
    bands_new = [copy.band_at(X_new) for copy in copies]
    return _covered(y_new, cross_intervals(bands_new, Calibration(*scores), folds, level, kind))


SCENARIOS: tuple[Callable[[np.random.Generator], str], ...] = (
    fixed_functions,
    tied_scores,
    groups,
    covariate_shift,
    equal_weights,
    bands,
    baselines,
    fits,
    crossed,
)
