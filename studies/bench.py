"""``python -m studies bench``: our solver and the paper's recipe side by side, in one process on one BLAS thread."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from threadpoolctl import threadpool_limits

from sosbands import BandSolution, learn_bands
from sosbands._types import Array
from sosbands.cli import options
from sosbands.cli.output import Output, stages
from sosbands.comparison.text_table import TextTable
from sosbands.datasets import synthetic_case
from sosbands.kernels import learn_features, resolve_kernel
from sosbands.problems import AsymmetricProblem, SideTerm, TrainingPenaltyProblem
from studies.reference.recipe import paper_recipe

TOL = 1e-4  # relative gap between the certified bounds at which both methods stop
PENALTIES = (0.0, 1.0, 100.0)
LENGTHSCALE = 0.3
EVERY = 4  # iterations of the recipe between two certificates, which cost about as much as an iteration
MOST_ROWS = 1000  # the recipe takes minutes there


def bench(
    rows: Annotated[
        int,
        typer.Option(
            "--rows", metavar="N", parser=options.whole_number(20, MOST_ROWS), help="Rows of the synthetic problem."
        ),
    ] = 200,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats", metavar="N", parser=options.whole_number(1), help="Runs of our solver; the median counts."
        ),
    ] = 3,
    seed: int = options.SEED,
    json: bool = options.JSON,
) -> None:
    """Measure the solver against the paper's recipe (L-BFGS with full decompositions) on a synthetic problem.

    Both stop when the distance of their certified bounds is 1e-4 of the optimum; the time for the recipe's certificates
    is not counted. Seconds and their ratio are those of this machine and this run.

    \b
    Example:
      python -m studies bench --rows 200
    """  # noqa: D301
    says = Output(json)
    case = synthetic_case(1)
    X, y = case.sample(rows, random_state=seed)
    r = np.asarray(y - case.location(X))
    found = []
    with says.listening(), threadpool_limits(1), stages("measuring", shown=not json):
        for penalty in PENALTIES:
            found.append(_measured(X, r, penalty, repeats))
    shown = [{name: _cell(value) for name, value in row.items()} for row in found]
    text = f"{rows} rows, one feature, relative gap {TOL:g}, one thread\n\n{TextTable(found, shown)!r}"
    says.result(f"{text}\n\nratio: seconds of the recipe over ours", {"rows": rows, "tolerance": TOL, "results": found})


def _measured(X: Array, r: Array, penalty: float, repeats: int) -> dict[str, Any]:
    """One penalty: the median of our runs, and one run of the recipe."""
    runs = sorted((_ours(X, r, penalty) for _ in range(repeats)), key=lambda run: run[0])
    seconds, bands = runs[(repeats - 1) // 2]
    theirs, gap = _recipe(X, r, penalty)
    return {
        "symmetry penalty": penalty,
        "seconds": seconds,
        "gap": bands.gap,
        "recipe seconds": theirs,
        "recipe gap": gap,
        "ratio": theirs / seconds,
    }


def _ours(X: Array, r: Array, penalty: float) -> tuple[float, BandSolution]:
    clock = perf_counter()
    bands = learn_bands(X, r, lengthscale=LENGTHSCALE, symmetry_penalty=penalty, tol=TOL)
    return perf_counter() - clock, bands


def _recipe(X: Array, r: Array, penalty: float) -> tuple[float, float]:
    """Seconds of the recipe until its certified gap is small enough, and that gap."""
    kernel = resolve_kernel("matern52", LENGTHSCALE, X)
    term = SideTerm.of(learn_features(X, kernel, "exact").V, b=10.0, lam1=1.0, lam2=1.0)
    problem: Any = AsymmetricProblem(term, term, r) if penalty == 0 else TrainingPenaltyProblem(term, term, r, penalty)
    calls, gap = 0, np.inf

    def certified(gamma_lo: Array, gamma_up: Array, alpha_0: Array | None, _: float) -> bool:
        nonlocal calls, gap
        calls += 1
        if calls % EVERY:
            return False
        z = np.concatenate([gamma_lo, gamma_up] + ([] if alpha_0 is None else [alpha_0 / problem.scale]))
        gap = problem.certificate(z).gap
        return bool(gap <= TOL)

    K = kernel(X, X)
    found = paper_recipe(K, K, r, b=10.0, lam1=1.0, lam2=1.0, lam_pen=penalty, tol=0.0, callback=certified)
    return found.seconds, float(gap)


def _cell(value: float) -> str:
    return f"{value:.3g}"
