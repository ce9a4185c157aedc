"""Conditional calibration: its cutoffs against solvers of the problem itself, its coverage by place, its time.

    python -m benchmarks.conditional --study finite --jobs 2
    python -m benchmarks.conditional --study kernels --jobs 2
    python -m benchmarks.conditional --study coverage --jobs 2
    python -m benchmarks.conditional --study time

"finite" are 500 problems with overlapping groups against HiGHS, "kernels" 200 with kernels as well against Clarabel,
"coverage" five overlapping groups and four neighbourhoods over 2000 calibrations. Rows are stored as they finish, and a
second run continues where the first stopped.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections import defaultdict
from time import process_time

import numpy as np
from scipy.optimize import linprog

from benchmarks.evidence import main
from sosbands.conformal import conformal_quantile
from sosbands.conformal.conditional import NUGGET, ConditionalQuantile
from sosbands.kernels import StationaryKernel, median_lengthscale

LEVEL, NEW = 0.9, 5
STEP = 1e-6  # to both sides of a cutoff
NEAR = ("kernel", "local", "both")  # methods with a kernel, one of them of half a median instead of three
PLACES = np.array([[0.5, 0.5], [-0.5, 0.5], [0.9, -0.9], [0.0, 0.0]])  # of which neighbourhoods are looked at


# ---------------------------------------------------------------- the problem itself


def draw_problem(rng, *, with_kernel: bool) -> dict:
    """Scores, features of overlapping groups, kernel and level; the last `NEW` rows have no score. A third has ties."""
    n, n_groups, d = int(rng.integers(20, 150)), int(rng.integers(0, 6)), int(rng.integers(1, 4))
    X = rng.standard_normal((n + NEW, d))
    if rng.random() < 0.25:
        X = np.round(X)  # rows that are equal
    inside = rng.random((n + NEW, n_groups)) < rng.uniform(0.05, 0.6, n_groups)
    S = rng.standard_normal(n) * np.exp(X[:n, 0] / 2)
    if rng.random() < 1 / 3:
        S = np.round(2 * S) / 2
    problem = {"S": S, "F": np.column_stack([np.ones(n + NEW), inside]), "K": None, "C": 0.0}
    problem["q"] = float(
        rng.uniform(0.5, 0.97) if with_kernel else rng.choice([0.8, 0.9, 0.95, rng.uniform(0.5, 0.97)])
    )
    if with_kernel:
        kernel = StationaryKernel("matern52", (float(rng.uniform(0.3, 3)) * median_lengthscale(X),))
        problem |= {"K": kernel(X, X), "C": float(rng.uniform(0.1, 2)) * float(np.std(S))}
    return problem


def cutoffs_of(problem: dict, t=None):
    """Our cutoffs of the rows without scores."""
    S, F, K = (problem[name] for name in "SFK")
    n = len(S)
    own, new = (None, None) if K is None else (K[:n, :n], K[n:, :n])
    return ConditionalQuantile(S, problem["q"], F[:n], own, problem["C"]).cutoffs(F[n:], new, t=t)


def highs_solution(S, F, q, x, *, t=None, score=None):
    """The dual linear programme with a row x more, of a given weight or a given score: multipliers, its weight."""
    free = score is not None
    A = np.vstack([F, x]).T if free else F.T
    right = np.zeros(F.shape[1]) if free else -t * x
    options = {"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10}
    objective = -np.append(S, score) if free else -S
    found = linprog(objective, A_eq=A, b_eq=right, bounds=(q - 1, q), method="highs", options=options)
    if found.status == 2:
        return None, None
    if found.status != 0:
        raise RuntimeError(found.message)
    return -found.eqlin.marginals, (float(found.x[-1]) if free else t)


def finite_row(_: dict, seed: int) -> dict:
    """Largest difference from HiGHS at some weight, and how often scores beside a cutoff are on the wrong side."""
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, with_kernel=False)
    S, F, q = problem["S"], problem["F"], problem["q"]
    n, worst, wrong, infinite = len(S), 0.0, 0, 0
    t = rng.uniform(q - 1, q, NEW)
    for x, cutoff, at, on_the_way in zip(F[n:], cutoffs_of(problem), t, cutoffs_of(problem, t), strict=True):
        b, _ = highs_solution(S, F[:n], q, x, t=at)
        if b is None or np.isinf(on_the_way):
            wrong += not (b is None and on_the_way == np.sign(at) * np.inf)
        else:
            worst = max(worst, abs(float(b @ x) - on_the_way))
        if np.isinf(cutoff):
            infinite += 1
            wrong += highs_solution(S, F[:n], q, x, t=q * (1 - 1e-6))[0] is not None
            continue
        # the definition: a score below the cutoff has less than the whole weight, one above it has it all
        weights = [highs_solution(S, F[:n], q, x, score=cutoff + step)[1] for step in (-STEP, STEP)]
        wrong += not (weights[0] < q - 1e-6 and weights[1] > q - 1e-8)
    return {"difference": worst, "wrong": wrong, "infinite": infinite, "n": n}


def clarabel_cutoff(S, F, K, C, q, x, k, t):
    """``g_t`` at a new row, from the dual quadratic programme; None where it has no solution."""
    import cvxpy as cp

    n = len(S)
    whole = np.block([[K, k[:, None]], [k[None], np.ones((1, 1))]]) + NUGGET * np.eye(n + 1)
    eta = cp.Variable(n)
    balance = F.T @ eta + t * x == 0
    size = cp.sum_squares(np.linalg.cholesky(whole).T @ cp.hstack([eta, t]))
    programme = cp.Problem(cp.Maximize(S @ eta - C / 2 * size), [balance, eta <= q, eta >= q - 1])
    programme.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    if programme.status.startswith("infeasible"):
        return None
    return float(C * (k @ eta.value + t * (1 + NUGGET)) + balance.dual_value @ x)


def kernel_row(_: dict, seed: int) -> dict:
    """Difference from Clarabel at the first new row, at the end of the path and at a weight on the way."""
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, with_kernel=True)
    S, F, K, C, q = (problem[name] for name in ("S", "F", "K", "C", "q"))
    n, worst, infinite = len(S), 0.0, 0
    for t in (q, float(rng.uniform(q - 1, q))):
        cutoff = cutoffs_of(problem, np.full(NEW, t))[0]
        exact = clarabel_cutoff(S, F[:n], K[:n, :n], C, q, F[n], K[n, :n], t)
        if exact is None or np.isinf(cutoff):
            infinite += 1
            worst = worst if exact is None and np.isinf(cutoff) else np.inf
            continue
        worst = max(worst, abs(cutoff - exact))
    return {"difference": worst, "infinite": infinite, "n": n}


# ---------------------------------------------------------------- coverage


def inside_groups(X):
    """Five groups that overlap, of 9 to 50 % of the rows."""
    a, b = X.T
    return np.column_stack([a > 0, b > 0, a + b > 0.5, np.abs(a) < 0.3, (a > 0.4) & (b < -0.4)])


def draw_scores(rng, n: int):
    """Points in a square, and scores that are larger on one side and near an edge."""
    X = rng.uniform(-1, 1, (n, 2))
    size = 0.5 + 1.5 * (X[:, 0] > 0) + np.square(X[:, 1])
    return X, size * np.abs(rng.standard_normal(n))


def spread(S) -> float:
    """The unit of C: between the 30 and the 90 % quantile."""
    return float(np.subtract(*np.quantile(S, [0.9, 0.3])))


def coverage_row(axes: dict, seed: int) -> dict:
    """Means over some calibrations of what `calibration_draw` gives."""
    rng = np.random.default_rng(seed)
    draws = [calibration_draw(rng, axes["n"], axes["method"]) for _ in range(axes["calibrations"])]
    return {name: float(np.mean([draw[name] for draw in draws])) for name in draws[0]}


def calibration_draw(rng, n: int, method: str) -> dict:
    """Of one calibration: what each group and each neighbourhood has beyond the level, as expectations over new rows.

    Groups: mean of ``1(x in G) (covered - q)`` by cutoffs at q, and the share of the rows in each. Neighbourhoods: mean
    of ``k(x, x0) (covered - q)`` by cutoffs at random t, and what (3) says of it.
    """
    X, S = draw_scores(rng, n)
    new, scores = draw_scores(rng, 100)
    F, F_new = (np.column_stack([np.ones(len(each)), inside_groups(each)]).astype(float) for each in (X, new))
    C = 0.0 if method == "groups" else (1.5 if n >= 1000 else 0.5) * spread(S)
    kernel = StationaryKernel("matern52", ((0.5 if method == "local" else 3) * median_lengthscale(X),))
    if method in ("one quantile", "kernel", "local"):
        F, F_new = F[:, :1], F_new[:, :1]
    t = rng.uniform(LEVEL - 1, LEVEL, len(new))
    K = kernel(new, X)
    if method == "one quantile":
        cutoffs = randomized = np.full(len(new), conformal_quantile(S, LEVEL))
        active = 1
    else:
        fit = ConditionalQuantile(S, LEVEL, F, kernel(X, X), C)
        cutoffs, randomized = fit.cutoffs(F_new, K), fit.cutoffs(F_new, K, t=t)
        active = int(np.sum((fit.eta > LEVEL - 1 + 1e-6) & (fit.eta < LEVEL - 1e-6)))
    over = (scores <= cutoffs) - LEVEL
    row = {"active": active, "coverage": float(np.mean(over) + LEVEL), "infinite": float(np.isinf(cutoffs).mean())}
    inside = inside_groups(new)
    for g in range(inside.shape[1]):
        row |= {f"over_{g}": float(np.mean(over * inside[:, g])), f"share_{g}": float(inside[:, g].mean())}
    row["exact"] = float(np.mean(scores <= randomized))
    # (3) holds for the space of the kernel itself, of calibration rows with one new row
    if method in NEAR:
        near, both = kernel(new, PLACES), np.append(S, scores[0])
        X_all, F_all = np.vstack([X, new[:1]]), np.vstack([F, F_new[:1]])
        fit_all = ConditionalQuantile(both, LEVEL, F_all, kernel(X_all, X_all), C)
        promised = -(kernel(PLACES, X_all) @ fit_all.eta) / (n + 1)
        gaps = fit.coverage_gap(kernel(PLACES, X))
        for p in range(len(PLACES)):
            seen = float(np.mean(near[:, p] * ((scores <= randomized) - LEVEL)))
            row |= {f"near_{p}": seen, f"promised_{p}": float(promised[p]), f"gap_{p}": float(gaps[p])}
            row |= {f"near_over_{p}": float(np.mean(near[:, p] * over)), f"weight_{p}": float(near[:, p].mean())}
    return row


def time_row(axes: dict, seed: int) -> dict:
    """Seconds of the fit, milliseconds of a cutoff."""
    rng, n, m = np.random.default_rng(seed), axes["n"], 200
    X = rng.standard_normal((n + m, 5))
    S = np.abs(rng.standard_normal(n)) * np.exp(X[:n, 0] / 2)
    F = np.ones((n + m, 1))
    if axes["groups"]:
        F = np.column_stack([F, X > 0.5]).astype(float)
    K = StationaryKernel("matern52", (3 * median_lengthscale(X),))(X, X[:n])
    C = (1.5 if n >= 1000 else 0.5) * spread(S) if axes["kernel"] else 0.0
    begin = process_time()
    fit = ConditionalQuantile(S, LEVEL, F[:n], K[:n], C)
    fitted = process_time()
    fit.cutoffs(F[n:], K[n:])
    return {"fit_seconds": fitted - begin, "ms_per_row": 1000 * (process_time() - fitted) / m}


# ---------------------------------------------------------------- tasks and reports


def tasks_of(study: str, draws: int | None = None) -> tuple:
    """Function, tasks, and the axes that seeds depend on."""
    if study == "finite":
        return finite_row, [{"problem": k} for k in range(draws or 500)], ["problem"]
    if study == "kernels":
        return kernel_row, [{"problem": k} for k in range(draws or 200)], ["problem"]
    if study == "time":
        pairs = ((True, False), (False, True), (True, True))
        axes = [{"n": n, "groups": int(g), "kernel": int(k)} for n in (300, 1000, 4000) for g, k in pairs]
        return time_row, axes, ["n"]
    axes = [
        {"method": method, "n": n, "calibrations": 50, "draw": k}
        for k in range((draws or 2000) // 50)
        for n in (100, 300)
        for method in ("one quantile", "groups", *NEAR)
    ]
    return coverage_row, axes, ["n", "draw"]


def report_problems(rows: list[dict]) -> list[str]:
    differences = np.sort([row["difference"] for row in rows])
    return [
        f"{len(rows)} problems: largest differences {differences[-3:]}, median {np.median(differences):.1e}, "
        f"{sum(row['infinite'] for row in rows)} infinite cutoffs, {sum(row.get('wrong', 0) for row in rows)} wrong"
    ]


def report_time(rows: list[dict]) -> list[str]:
    lines = ["| rows | groups | kernel | fit, s | ms per row |", "|--:|---|---|--:|--:|"]
    for row in rows:
        marks = ["yes" if row[name] else "" for name in ("groups", "kernel")]
        lines.append(f"| {row['n']} | {marks[0]} | {marks[1]} | {row['fit_seconds']:.2f} | {row['ms_per_row']:.2f} |")
    return lines


def mean_error(values) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def report_coverage(rows: list[dict]) -> list[str]:
    """Coverage of each group; and of neighbourhoods, beside what is stated of them."""
    grouped = defaultdict(list)
    for row in rows:
        grouped[row["n"], row["method"]].append(row)
    lines = ["| rows | method | all | groups | + d/(n + 1), each | infinite |", "|--:|---|--:|---|---|--:|"]
    near = ["", "| rows | method | neighbourhood | coverage at random t | stated | gap of the fit | coverage |"]
    near.append("|--:|---|--:|--:|--:|--:|--:|")
    for (n, method), some in sorted(grouped.items()):
        shares = [np.mean([row[f"share_{g}"] for row in some]) for g in range(5)]
        overs = [mean_error([row[f"over_{g}"] for row in some]) for g in range(5)]
        words = [f"{LEVEL + m / s:.3f} ± {e / s:.3f}" for (m, e), s in zip(overs, shares, strict=True)]
        active = np.mean([row["active"] for row in some])
        most = [f"{LEVEL + active / (n + 1) / share:.3f}" for share in shares]
        total, error = mean_error([row["coverage"] for row in some])
        infinite = np.mean([row["infinite"] for row in some])
        lines.append(
            f"| {n} | {method} | {total:.4f} ± {error:.4f} | {', '.join(words)} | {', '.join(most)} | {infinite:.4f} |"
        )
        for p in range(len(PLACES) if method in NEAR else 0):
            w = np.mean([row[f"weight_{p}"] for row in some])
            seen, e = mean_error([row[f"near_{p}"] for row in some])
            promised, stated = (np.mean([row[f"{name}_{p}"] for row in some]) for name in ("promised", "gap"))
            whole = np.mean([row[f"near_over_{p}"] for row in some])
            near.append(
                f"| {n} | {method} | {p} | {LEVEL + seen / w:.4f} ± {e / w:.4f} | {LEVEL + promised / w:.4f} "
                f"| {LEVEL + stated:.4f} | {LEVEL + whole / w:.4f} |"
            )
    return lines + near


REPORTS = {"finite": report_problems, "kernels": report_problems, "coverage": report_coverage, "time": report_time}

if __name__ == "__main__":
    main(REPORTS, tasks_of, "conditional-", __doc__)
