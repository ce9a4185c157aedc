"""Wall-clock time of the paper's dual recipe and of `learn_bands`, side by side in one process.

Synthetic case 1, residuals around the true location, Matern 5/2 kernel with lengthscale 0.3, b = 10, training-set
penalty 1, lam1 = lam2 = 1, seed 0, nothing normalised: both sides get the same literal problem. Three rows per size:

recipe, tol=1e-2
    The paper's stopping rule, handed to SciPy as it is.
recipe, gap<=1e-4
    The same iterations, stopped as soon as their certified gap is 1e-4. The certificate is computed in the callback,
    whose time is not counted.
lbfgs, rank=1e-6
    ``learn_bands(..., solver="lbfgs", rank=1e-6, tol=1e-4)``; its certificates are inside its clock.

The clock starts at the points and the residuals and stops at the operators. Values and `gap_full_kernel` of every row
are those of the problem with the *full* kernel matrix: low-rank bands are feasible there, so their value is an upper
bound of its optimum, and its dual at their multipliers is a lower bound. `gap` is what the solver itself stopped on;
it differs from `gap_full_kernel` for the low-rank row only.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from sosbands import learn_bands
from sosbands.datasets import synthetic_case
from sosbands.kernels import StationaryKernel
from sosbands.problems import Certificate, DualPoint, SideTerm, TrainingPenaltyProblem
from studies.reference.recipe import RecipeResult, paper_recipe

CASE, SEED, LENGTHSCALE = 1, 0, 0.3
B, LAM1, LAM2, LAM_PEN = 10.0, 1.0, 1.0, 1.0
TOL, RANK = 1e-4, 1e-6
DEFAULT_SIZES = (100, 200, 400, 1000)
DEFAULT_OUTPUT = Path(__file__).parent / "output" / "recipe_vs_lbfgs.csv"


@dataclass(frozen=True)
class Row:
    """One measured solve; `ratio` is its time over that of L-BFGS on low-rank features at the same size."""

    n: int
    method: str
    features: int
    seconds: float
    iterations: int
    decompositions: int
    dual_value: float
    primal_value: float
    gap: float
    gap_full_kernel: float
    ratio: float


def residuals(n: int) -> tuple[np.ndarray, np.ndarray]:
    case = synthetic_case(CASE)
    X, y = case.sample(n, random_state=SEED)
    return X, y - case.location(X)


def run_recipe(
    X: np.ndarray, r: np.ndarray, tol: float, callback: Callable | None = None
) -> tuple[RecipeResult, float]:
    began = perf_counter()
    K = StationaryKernel("matern52", (LENGTHSCALE,))(X, X)
    kernel_seconds = perf_counter() - began
    result = paper_recipe(K, K, r, b=B, lam1=LAM1, lam2=LAM2, lam_pen=LAM_PEN, tol=tol, callback=callback)
    return result, kernel_seconds + result.seconds


def certify(
    problem: TrainingPenaltyProblem, gamma_lo: np.ndarray, gamma_up: np.ndarray, alpha_0: np.ndarray
) -> Certificate:
    return problem.certificate(problem.start_from(DualPoint(gamma_lo, gamma_up, alpha_0)))


def recipe_row(n: int, method: str, problem: TrainingPenaltyProblem, result: RecipeResult, seconds: float) -> Row:
    proof = certify(problem, result.gamma_lower, result.gamma_upper, result.alpha_0)
    work = (seconds, result.iterations, result.decompositions)
    values = (proof.dual_value, proof.primal_value, proof.gap, proof.gap)
    return Row(n, method, len(result.V_lo), *work, *values, ratio=float("nan"))


def lbfgs_row(X: np.ndarray, r: np.ndarray, problem: TrainingPenaltyProblem) -> Row:
    penalties = {"width_penalty": B, "trace_penalty": LAM1, "frobenius_penalty": LAM2, "symmetry_penalty": LAM_PEN}
    began = perf_counter()
    bands = learn_bands(X, r, lengthscale=LENGTHSCALE, **penalties, rank=RANK, solver="lbfgs", tol=TOL)
    seconds = perf_counter() - began
    full = certify(problem, bands.dual.gamma_lo, bands.dual.gamma_up, bands.dual.alpha_0)
    work = (seconds, bands.iterations, bands.decompositions)
    gap_full_kernel = (bands.primal_value - full.dual_value) / bands.primal_value
    values = (full.dual_value, bands.primal_value, bands.gap, gap_full_kernel)
    return Row(len(r), f"lbfgs, rank={RANK:.0e}", bands.lower.features.rank, *work, *values, ratio=1.0)


def measure(n: int) -> Iterator[Row]:
    """The three rows of one size, the quick one first: the others are measured against it."""
    X, r = residuals(n)
    literal, literal_seconds = run_recipe(X, r, tol=1e-2)
    term = SideTerm.of(literal.V_lo, b=B, lam1=LAM1, lam2=LAM2)
    problem = TrainingPenaltyProblem(term, term, r, LAM_PEN)
    ours = lbfgs_row(X, r, problem)
    yield ours
    yield with_ratio(recipe_row(n, "recipe, tol=1e-2", problem, literal, literal_seconds), ours)

    def certified(gamma_lo: np.ndarray, gamma_up: np.ndarray, alpha_0: np.ndarray, _: float) -> bool:
        return certify(problem, gamma_lo, gamma_up, alpha_0).gap <= TOL

    solved, seconds = run_recipe(X, r, tol=0.0, callback=certified)
    yield with_ratio(recipe_row(n, "recipe, gap<=1e-4", problem, solved, seconds), ours)


def with_ratio(row: Row, ours: Row) -> Row:
    return Row(**{**asdict(row), "ratio": row.seconds / ours.seconds})


def table_line(row: Row) -> str:
    return (
        f"| {row.n} | {row.method} | {row.features} | {row.seconds:.3g} | {row.decompositions} | {row.dual_value:.4f} "
        f"| {row.gap:.1e} | {row.gap_full_kernel:.1e} | {row.ratio:.3g} |"
    )


def main(sizes: Sequence[int] = DEFAULT_SIZES, output: Path = DEFAULT_OUTPUT) -> list[Row]:
    """Measure every size, print a Markdown table and write each row to `output` as it finishes."""
    output.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with threadpool_limits(limits=1), output.open("w", newline="") as file:
        list(measure(20))  # loads everything that is loaded on first use
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        print("| n | method | features | seconds | decompositions | dual value | gap | gap, full kernel | time ratio |")
        print("|--:|---|--:|--:|--:|--:|--:|--:|--:|")
        for n in sizes:
            for row in measure(n):
                rows.append(row)
                print(table_line(row), flush=True)
                writer.writerow(asdict(row))
                file.flush()
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=DEFAULT_SIZES, help="numbers of learning points")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="CSV file")
    main(**vars(parser.parse_args()))
