"""The solvers of sosbands against the paper's recipe, in one process on one BLAS thread.

    python -m benchmarks.bench [--quick] [--only NAME ...] [--output FILE]

Both methods stop at the same certified relative gap (1e-4). With a coverage below 1 points may lie outside at a price,
and the recipe has the box of the multipliers. Outside the clock every solution is certified once more in the exact
problem: the dual value of its multipliers and the primal value of its deployed operators with the full kernel matrix. A
row counts only if these two are within 1e-4 of one another (1e-3 for d = 8).
"""

from __future__ import annotations

import argparse
import csv
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from sosbands import BandSolution, learn_bands
from sosbands.bands import BandSettings
from sosbands.bands.prepare import BandData
from sosbands.datasets import synthetic_case
from sosbands.kernels import learn_features, median_lengthscale, resolve_kernel
from sosbands.problems import (
    AsymmetricProblem,
    OperatorPenaltyProblem,
    PrimalSide,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.solvers import solve, solve_path
from studies.reference.recipe import paper_recipe

TOL = 1e-4
EVERY = 4  # iterations of the recipe between certificates, which cost as much as an iteration
FIELDS = [
    "problem",
    "n",
    "d",
    "penalty",
    "coverage",
    "method",
    "seconds",
    "decompositions",
    "gap",
    "exact_gap",
    "seconds_to_dual",
    "ratio",
    "features",
    "trace_left_out",
    "peak_mb",
    "counts",
]


@dataclass(frozen=True)
class Data:
    """Points and residuals with the lengthscale and the gap in the exact problem that a row needs to count."""

    name: str
    X: np.ndarray
    r: np.ndarray
    lengthscale: float
    exact_tol: float = TOL

    @property
    def labels(self) -> dict:
        """Columns that name the data."""
        return {"problem": self.name, "n": len(self.X), "d": self.X.shape[1]}


def case_1(n: int) -> Data:
    """Case 1 of the paper around its true location, lengthscale 0.3."""
    case = synthetic_case(1)
    X, y = case.sample(n, random_state=0)
    return Data("case 1", X, y - case.location(X), 0.3)


def skewed(n: int, d: int = 8) -> Data:
    """Standard normal features, median lengthscale, heteroscedastic skewed residuals."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    r = (0.5 + np.abs(X[:, 0])) * (rng.gamma(1.5, size=n) - 1.5)
    return Data("skewed", X, r, median_lengthscale(X), 1e-3)


def cube(n: int, d: int) -> Data:
    """Uniform features on the cube with the noise of case 1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return Data("cube", X, np.sqrt(0.1 + 2 * X[:, 0] ** 2) * rng.standard_normal(n), 0.3)


def exact_problem(V: np.ndarray, r: np.ndarray, penalty: float, kind: str = "training", tau: float = 0.0):
    """The two-sided problem with b = 10, lam1 = lam2 = 1 in the units of the residuals."""
    term = SideTerm.of(V, b=10.0, lam1=1.0, lam2=1.0, tau=2 * tau if np.isinf(penalty) else tau)
    if penalty == 0:
        return AsymmetricProblem(term, term, r)
    if np.isinf(penalty):
        return SymmetricProblem(term, r)
    if kind == "operator":
        return OperatorPenaltyProblem(term, r, 0.0, penalty)
    return TrainingPenaltyProblem(term, term, r, penalty)


def exact_gap(data: Data, bands: BandSolution, penalty: float, kind: str, tau: float = 0.0) -> float:
    """Gap in the exact problem of the multipliers and the deployed operators of a solution."""
    exact = learn_features(data.X, bands.lower.features.kernel, "exact")
    problem = exact_problem(exact.V, data.r, penalty, kind, tau)
    # the deployed f is B'L^-1 k_P(x): its operator in the exact features is built from those of the pivots
    Phi = exact.transform(bands.lower.features.landmarks)
    lift = np.linalg.solve(bands.lower.features.L, Phi.T).T
    sides = [PrimalSide(lift @ f.B, 0.0, f(data.X)) for f in (bands.lower, bands.upper)]
    assert bands.lower.ridge == bands.upper.ridge == 0
    primal = problem.objective(tuple(sides))
    if kind == "operator" and 0 < penalty < np.inf:
        small = bands.dual
        point = type(small)(small.gamma_lo, small.gamma_up, W=lift @ small.W @ lift.T)
    else:
        point = bands.dual
    dual = problem.value_and_grad(problem.start_from(point))[0]
    return (primal - dual) / primal


def ours(
    data: Data, penalty: float, kind: str = "training", rank: object = "auto", coverage: float = 1.0
) -> tuple[dict, BandSolution]:
    """One solve from the points to the functions: kernel factorisation, problem and solver."""
    clock = perf_counter()
    bands = learn_bands(
        data.X,
        data.r,
        lengthscale=data.lengthscale,
        learning_coverage=coverage,
        symmetry_penalty=penalty,
        symmetry_kind=kind,
        rank=rank,
        tol=TOL,
    )
    seconds = perf_counter() - clock
    row = {
        **data.labels,
        "penalty": penalty,
        "coverage": coverage,
        "method": f"sosbands{'' if kind == 'training' else ' operator'}",
        "seconds": seconds,
        "decompositions": bands.decompositions,
        "gap": bands.gap,
        "features": bands.lower.features.rank,
        "trace_left_out": bands.lower.features.trace_left_out,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    return row, bands


def recipe(data: Data, penalty: float, optimum: float, coverage: float = 1.0) -> dict:
    """The paper's recipe until its certified gap is 1e-4; the certificate is computed outside its clock."""
    tau = (1 - coverage) / 2
    K = resolve_kernel("matern52", data.lengthscale, data.X)(data.X, data.X)
    problem = None
    state = {"gap": np.inf, "seconds_to_dual": np.nan, "calls": 0}

    def certified(gamma_lo, gamma_up, alpha_0, seconds) -> bool:
        nonlocal problem
        state["calls"] += 1
        if state["calls"] % EVERY:
            return False
        if problem is None:
            features = learn_features(data.X, resolve_kernel("matern52", data.lengthscale, data.X), "exact")
            problem = exact_problem(features.V, data.r, penalty, tau=tau)
        z = np.concatenate([gamma_lo, gamma_up] + ([] if alpha_0 is None else [alpha_0 / problem.scale]))
        certificate = problem.certificate(z)
        state["gap"] = certificate.gap
        if np.isnan(state["seconds_to_dual"]) and certificate.dual_value >= (1 - 1e-4) * optimum:
            state["seconds_to_dual"] = seconds
        return certificate.gap <= TOL

    numbers = {"b": 10.0, "lam1": 1.0, "lam2": 1.0, "lam_pen": penalty, "tau": tau}
    found = paper_recipe(K, K, data.r, **numbers, tol=0.0, callback=certified)
    return {
        **data.labels,
        "penalty": penalty,
        "coverage": coverage,
        "method": "paper's recipe",
        "seconds": found.seconds,
        "decompositions": found.decompositions,
        "features": len(K),
        "trace_left_out": 0.0,
        "exact_gap": state["gap"],
        "counts": state["gap"] <= TOL,
        "gap": state["gap"],
        "seconds_to_dual": state["seconds_to_dual"],
    }


def against_recipe(data: Data, penalties: list[float], coverage: float = 1.0) -> Iterator[dict]:
    for penalty in penalties:
        rows = [ours(data, penalty, coverage=coverage) for _ in range(3)]
        row, bands = sorted(rows, key=lambda pair: pair[0]["seconds"])[1]  # the median of three
        row["seconds_to_dual"] = row["seconds"]
        row["exact_gap"] = exact_gap(data, bands, penalty, "training", (1 - coverage) / 2)
        row["counts"] = row["exact_gap"] <= data.exact_tol and row["gap"] <= TOL
        theirs = recipe(data, penalty, bands.dual_value, coverage)
        yield {**row, "ratio": 1.0}
        yield {**theirs, "ratio": theirs["seconds"] / row["seconds"]}


def small(sizes: list[int]) -> Iterator[dict]:
    """The noise of case 1 on few points in one and in eight dimensions, with and without points outside."""
    for n in sizes:
        for data in (case_1(n), replace(cube(n, 8), lengthscale=median_lengthscale(cube(n, 8).X), exact_tol=1e-3)):
            for coverage in (1.0, 0.9):
                yield from against_recipe(data, [0.0, 1.0], coverage)


def operator(data: Data) -> Iterator[dict]:
    row, bands = ours(data, 1.0, "operator")
    row["exact_gap"] = exact_gap(data, bands, 1.0, "operator")
    yield {**row, "counts": row["exact_gap"] <= data.exact_tol and row["gap"] <= TOL}


def path(data: Data, coverage: float = 1.0) -> Iterator[dict]:
    """Ten penalties warm-started against ten cold solves with the same solver and the same factorised kernel."""
    settings = BandSettings(data.lengthscale, 10.0, coverage, 1.0, constant=False)
    setup = BandData.read(data.X, data.r, "matern52").prepare(settings)
    setups = [setup.with_settings(settings.replace(symmetry_penalty=each)) for each in np.geomspace(1e-4, 1e2, 10)]
    solve(setups[0].problem(), tol=TOL)  # what is computed once per kernel is not part of the comparison
    cold = [solve(each.problem(), tol=TOL) for each in setups]
    clock = perf_counter()
    warm = list(solve_path([each.problem() for each in setups], tol=TOL))
    seconds = perf_counter() - clock
    mean = float(np.mean([result.seconds for result in cold]))
    for method, time, results in (("ten cold solves", 10 * mean, cold), ("path", seconds, warm)):
        worst = max(result.certificate.gap for result in results)
        yield {
            **data.labels,
            "penalty": "1e-4..1e2",
            "coverage": coverage,
            "method": method,
            "seconds": time,
            "decompositions": sum(result.decompositions for result in results),
            "gap": worst,
            "ratio": time / mean,
            "features": setup.lower.rank,
            "counts": worst <= TOL,
        }


def large(sizes: list[int], d: int, coverage: float = 1.0) -> Iterator[dict]:
    for n, penalty in product(sizes, (0.0, 1.0)):
        row, _ = ours(cube(n, d), penalty, rank=1e-6 if d == 1 else 1e-4, coverage=coverage)
        yield {**row, "counts": row["gap"] <= TOL}


SUITE: dict[str, Callable[[bool], Iterator[dict]]] = {
    "case1": lambda quick: against_recipe(case_1(200 if quick else 1000), [0.0, 0.01, 1.0, 100.0]),
    "skewed8": lambda quick: against_recipe(skewed(200 if quick else 1000), [0.0, 1.0]),
    "case1outside": lambda quick: against_recipe(case_1(200 if quick else 1000), [0.0, 1.0], 0.9),
    "skewed8outside": lambda quick: against_recipe(skewed(200 if quick else 1000), [0.0, 1.0], 0.9),
    "small": lambda quick: small([100] if quick else [100, 200, 400]),
    "operator1": lambda quick: operator(case_1(200 if quick else 1000)),
    "operator8": lambda quick: operator(skewed(200 if quick else 1000)),
    "path1": lambda quick: path(case_1(200 if quick else 1000)),
    "path8": lambda quick: path(skewed(200 if quick else 1000)),
    "path1outside": lambda quick: path(case_1(200 if quick else 1000), 0.9),
    "path8outside": lambda quick: path(skewed(200 if quick else 1000), 0.9),
    "large1": lambda quick: large([1000] if quick else [1000, 10_000, 100_000], 1),
    "large2": lambda quick: large([1000] if quick else [1000, 10_000, 100_000], 2),
    "large2outside": lambda quick: large([1000] if quick else [1000, 10_000, 100_000], 2, 0.9),
}


def show(row: dict) -> None:
    cells = {k: f"{row[k]:.3g}" if isinstance(row.get(k), float) else str(row.get(k, "")) for k in FIELDS}
    widths = {"problem": 8, "n": 6, "d": 1, "penalty": 9, "method": 17, "decompositions": 5, "counts": 6}
    print("  ".join(f"{cells[k]:>{widths.get(k, 8)}}" for k in FIELDS), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute")
    parser.add_argument("--only", nargs="+", choices=list(SUITE), default=list(SUITE))
    parser.add_argument("--output", type=Path, default=Path("benchmarks/output/bench.csv"))
    args = parser.parse_args()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1), args.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        show({field: field[:8] for field in FIELDS})
        for name in args.only:
            for row in SUITE[name](args.quick):
                writer.writerow(row)
                file.flush()
                show(row)


if __name__ == "__main__":
    main()
