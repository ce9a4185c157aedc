"""choose: the automatic choice of all that shapes the bands, and its reasons in words."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from sosbands._progress import say
from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray
from sosbands.tuning.automatic import AutomaticSearch
from sosbands.tuning.candidates import is_symmetric
from sosbands.tuning.report import TuningReport
from sosbands.tuning.settings import Candidate, Choice, Choices, is_constant
from sosbands.tuning.split import held_out_folds
from sosbands.tuning.views import INPUTS, NO_SCALE, RowFacts

SEARCH_ROWS = 600  # of more rows a random sample is searched on
FEW_ROWS = 20  # of fewer nothing can be told
SETTINGS = (*Candidate._fields, "conformal_score")
IDLE = ("noise_features", "width_penalty", "learning_coverage")  # that say nothing of bands of constant width


@ONE_THREAD
def choose(
    facts: RowFacts,
    r: Array,
    choices: Choices,
    *,
    options: dict[str, Any],
    level: float,
    cv: int,
    deadline: float,
    random_state: np.random.RandomState,
    seed: int,
    n_jobs: int | None = None,
    verbose: int = 0,
    weights: Array | None = None,
) -> TuningReport:
    """Choose base scale, noise features, lengthscale, penalties, learning coverage and score by cross-validation.

    Parameters
    ----------
    facts, r
        What is known of the learning rows, and their residuals.
    choices : Choices
        What is open.
    options : dict
        Arguments of `learn_bands` that are not chosen.
    level : float
        Of the intervals: they are scored at it, with a miss rate twice as large, and half as large.
    cv : int
        Folds.
    deadline : float
        Of the clock `perf_counter`: after it the best found so far is taken.
    random_state : RandomState
        Of the sample and of the folds.
    seed : int
        Of the symmetry test.
    n_jobs, verbose
        Processes over folds; whether to print a line per stage.
    weights : ndarray of shape (n,), optional
        How much each row counts for the bands and for their score.
    """
    clock = perf_counter()
    rows = _sample(len(r), random_state)
    folds = held_out_folds(len(rows), cv, random_state)
    some, values = (facts, r) if len(rows) == len(r) else (facts.take(rows), r[rows])
    levels = score_levels(level)
    counts = None if weights is None else weights[rows]
    search = AutomaticSearch(some, values, folds, options, choices, levels, deadline, n_jobs, seed, counts)
    say("tuning", f"automatic choice on {len(folds)} folds of {len(rows)} rows", verbose)
    interrupted = False
    if len(rows) < FEW_ROWS or not values.any():
        best, sentence = _nothing_to_tell(search), _few_words(r)
    else:
        try:
            best = search.run()
        except KeyboardInterrupt:
            if not search.found():
                raise
            print("tuning interrupted: going on with the best found so far", file=sys.stderr, flush=True)
            best, interrupted = search.best(), True
        sentence = _sentence(best, search, interrupted)
    found = search.found()
    say("tuning", sentence, verbose)
    c = best.candidate
    return TuningReport(
        evaluations=tuple(each.row() for each in found),
        criterion="interval-score",
        independence=None,
        symmetry=search.symmetry,
        replicates=None,
        lengthscale=c.settings()["lengthscale"],
        symmetry_penalty=c.symmetry_penalty,
        homoscedastic=is_constant(c) and c.base_scale == NO_SCALE,
        sentence=sentence,
        interrupted=interrupted,
        rows=rows,
        folds=folds,
        seconds=perf_counter() - clock,
        base_scale=c.base_scale,
        noise_features=c.noise_features,
        width_penalty=c.width_penalty,
        learning_coverage=c.learning_coverage,
        conformal_score=best.conformal_score,
        reasons=_reasons(best, found, search),
        timed_out=search.timed_out,
    )


def _sample(n: int, rng: np.random.RandomState) -> IntArray:
    return np.arange(n) if n <= SEARCH_ROWS else np.sort(rng.choice(n, SEARCH_ROWS, replace=False))


def score_levels(level: float) -> tuple[float, ...]:
    """At which intervals are scored: the level, one with twice its misses and one with half of them."""
    miss = 1 - level
    return tuple(sorted({max(level - miss, level / 2), level, 1 - miss / 2}))


def _nothing_to_tell(search: AutomaticSearch) -> Choice:
    """Bands of constant width in the plainest unit that is allowed."""
    choices = search.choices
    base = NO_SCALE if NO_SCALE in choices.base_scales else choices.base_scales[0]
    features = INPUTS if INPUTS in choices.noise_features else choices.noise_features[0]
    lengthscale = np.inf if choices.lengthscales is None else search.given[0]
    return Choice(search.start(base, features, lengthscale), choices.conformal_scores[0], np.nan, 0)


def _few_words(r: Array) -> str:
    if not r.any():
        return "All residuals are zero: bands of no width."
    return f"Nothing can be told from {len(r)} residuals: the simplest bands."


def _sentence(best: Choice, search: AutomaticSearch, interrupted: bool) -> str:
    c = best.candidate
    width = "a multiple of the base scale" if is_constant(c) and c.base_scale != NO_SCALE else "constant width"
    kind = f"bands of {width}" if is_constant(c) else f"bands that vary with {c.noise_features.replace('+', ' and ')}"
    sides = "Symmetric " if is_symmetric(c.symmetry_penalty) else "Asymmetric "
    test = search.symmetry
    skew = ""
    if test is not None:
        finding = "skew" if test.p_value <= search.choices.test_level else "no skew found"
        skew = f" ({finding} in {len(search.r)} residuals, p = {test.p_value:.2g})"
    ended = " Interrupted: the best found so far." if interrupted else ""
    ended += " Out of time (max_seconds): the best found so far." if search.timed_out else ""
    return f"{sides}{kind}{skew}.{ended}"


def _reasons(best: Choice, found: Sequence[Choice], search: AutomaticSearch) -> tuple[str, ...]:
    """For each setting its value, and by how much the best candidate with another one is worse.

    A value beyond the grid that the search began with is called so.
    """
    chosen, rows = best.row(), [each.row() for each in found]
    lines = []
    for name in SETTINGS:
        if is_constant(best.candidate) and name in IDLE:
            continue
        others = [row for row in rows if not _same(row[name], chosen[name]) and np.isfinite(row["criterion"])]
        if not others:
            continue
        second = max(others, key=lambda row: row["criterion"])
        loss = np.expm1(chosen["criterion"] - second["criterion"])
        beyond = " (beyond the first grid)" if search.is_extended(best.candidate, name) else ""
        lines.append(
            f"{name.replace('_', ' ')} {_word(chosen[name])}{beyond}: with {_word(second[name])}, {_percent(loss)}"
        )
    return tuple(lines)


def _same(one: Any, other: Any) -> bool:
    return one is other or (np.ndim(one) == np.ndim(other) == 0 and not isinstance(one, dict) and bool(one == other))


def _word(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value)


def _percent(loss: float) -> str:
    return "the same" if abs(loss) < 5e-4 else f"{abs(100 * loss):.1f} % {'worse' if loss > 0 else 'better'}"
