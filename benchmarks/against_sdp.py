"""Sixty random problems of every kind, solved by learn_bands and by CVXPY from the literal statement.

Values agree to 1e-4, functions on a grid to 1e-2 of their largest value, which counts as at least a hundredth of the
largest residual: the optimal function may be zero. Kernels and features of the reference are its
own. Rows are stored as they come, and a second run continues where the first stopped:

    python -m benchmarks.against_sdp
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.limited import append_row, read_rows
from sosbands import BandSolution, learn_bands
from studies.reference import sdp

VALUE_TOL, FUNCTION_TOL = 1e-4, 1e-2
KINDS = ("asymmetric", "training", "training, two lengthscales", "operator", "operator, nuclear", "symmetric")
# What every kind is crossed with, and what is drawn at random; a new option of the library is one more axis here.
AXES: dict[str, tuple] = {"learning_coverage": (1.0, 0.5, 0.8, 0.9, 0.99)}
REPEATS = 2


@dataclass(frozen=True)
class SDPCase:
    """One problem: its kind, its place on the axes and what was drawn."""

    index: int
    kind: str
    options: dict[str, Any]
    largest: int = 40

    @property
    def rng(self) -> np.random.Generator:
        """Randomness of this case, from its start."""
        return np.random.default_rng([13, self.index])

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and skewed, heteroscedastic residuals."""
        rng = self.rng
        n, d = int(rng.integers(min(8, self.largest), self.largest + 1)), int(rng.integers(1, 4))
        X = rng.uniform(-1, 1, (n, d))
        return X, (0.3 + np.abs(X[:, 0])) * (rng.gamma(2.0, size=n) - 2.0)

    @property
    def settings(self) -> dict[str, Any]:
        """Options of learn_bands."""
        rng = np.random.default_rng([17, self.index])
        ell, lam_pen = float(10 ** rng.uniform(-0.5, 0.3)), float(10 ** rng.uniform(-3, 3))
        drawn = {
            "width_penalty": float(10 ** rng.uniform(-1, np.log10(300))),
            "trace_penalty": [0.0, 0.3, 1.0][rng.integers(3)],
            "frobenius_penalty": float(10 ** rng.uniform(-0.5, 0.5)),
            "lengthscale": ell,
        }
        own = {
            "asymmetric": {"symmetry_penalty": 0.0},
            "training": {"symmetry_penalty": lam_pen},
            "training, two lengthscales": {
                "symmetry_penalty": lam_pen,
                "lengthscale": {"lower": ell, "upper": float(ell * 10 ** rng.uniform(-0.3, 0.3))},
            },
            "operator": {"symmetry_penalty": lam_pen, "symmetry_kind": "operator"},
            "operator, nuclear": {
                "symmetry_penalty": (float(10 ** rng.uniform(-2, 1)), lam_pen),
                "symmetry_kind": "operator",
            },
            "symmetric": {"symmetry_penalty": np.inf},
        }[self.kind]
        return {**drawn, **own, **self.options}


def all_cases(largest: int = 40) -> list[SDPCase]:
    """Every kind at every place on the axes, `REPEATS` times."""
    places = [dict(zip(AXES, values, strict=True)) for values in product(*AXES.values())]
    crossed = [(kind, place) for _ in range(REPEATS) for place in places for kind in KINDS]
    return [SDPCase(index, kind, place, largest) for index, (kind, place) in enumerate(crossed)]


# ---------------------------------------------------------------- the reference, with a kernel of its own


def matern52(X: np.ndarray, Y: np.ndarray, ell: float) -> np.ndarray:
    """Matern kernel of smoothness 5/2."""
    s = np.sqrt(5) * cdist(X, Y) / ell
    return (1 + s + s**2 / 3) * np.exp(-s)


@dataclass(frozen=True)
class Reference:
    """Solution of the conic solver with what it takes to evaluate its functions anywhere."""

    X: np.ndarray
    lengthscales: tuple[float, float]
    solution: sdp.SDPSolution

    def functions(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``f_lo`` and ``f_up`` at `points`."""
        both = zip((self.solution.lower, self.solution.upper), self.lengthscales, strict=True)
        return tuple(self._values(A, ell, points) for A, ell in both)

    def _values(self, A: np.ndarray, ell: float, points: np.ndarray) -> np.ndarray:
        w, Q = square_root_parts(matern52(self.X, self.X, ell))
        Phi = (Q / np.sqrt(w)).T @ matern52(self.X, points, ell)
        return np.einsum("ki,kl,li->i", Phi, A, Phi)


def square_root_parts(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of K above rounding: features ``V = diag(sqrt w) Q'`` have ``V'V = K``."""
    w, Q = np.linalg.eigh(K)
    keep = w > 1e-12 * w[-1]
    return w[keep], Q[:, keep]


def solve_reference(case: SDPCase) -> Reference:
    """The problem as CVXPY sees it."""
    (X, r), s = case.data, case.settings
    ell = s["lengthscale"]
    ells = (ell["lower"], ell["upper"]) if isinstance(ell, dict) else (ell, ell)
    V_lo, V_up = ((np.sqrt(w) * Q).T for w, Q in (square_root_parts(matern52(X, X, e)) for e in ells))
    cost = {"b": s["width_penalty"], "lam1": s["trace_penalty"], "lam2": s["frobenius_penalty"]}
    cost["tau"] = (1 - s["learning_coverage"]) / 2
    pen = s["symmetry_penalty"]
    if case.kind == "asymmetric":
        found = sdp.asymmetric_sdp(V_lo, V_up, r, **cost)
    elif case.kind == "symmetric":
        found = sdp.symmetric_sdp(V_lo, r, **cost)
    elif case.kind.startswith("training"):
        found = sdp.training_penalty_sdp(V_lo, V_up, r, **cost, lam_pen=pen)
    else:
        pen1, pen2 = pen if isinstance(pen, tuple) else (0.0, pen)
        found = sdp.operator_penalty_sdp(V_lo, r, **cost, lam_pen1=pen1, lam_pen2=pen2)
    return Reference(X, ells, found)


def solve_ours(case: SDPCase, tol: float = 1e-6) -> BandSolution:
    """The same by the library."""
    X, r = case.data
    return learn_bands(X, r, kernel="matern52", rank="exact", tol=tol, **case.settings)


def compared(case: SDPCase) -> dict[str, Any]:
    """One row: distances of the certified values to the optimum, and of the functions on a grid."""
    clock = perf_counter()
    ours = solve_ours(case)
    seconds = perf_counter() - clock
    reference = solve_reference(case)
    optimum = reference.solution.value
    grid = np.random.default_rng(0).uniform(-1.2, 1.2, (500, case.data[0].shape[1]))
    theirs = np.concatenate(reference.functions(grid))
    off = np.abs(np.concatenate([ours.lower(grid), ours.upper(grid)]) - theirs).max()
    return {
        **asdict(case),
        "n": len(case.data[0]),
        "settings": str(case.settings),
        "value": optimum,
        "primal_off": (ours.primal_value - optimum) / optimum,
        "dual_off": (ours.dual_value - optimum) / optimum,
        "function_off": float(off / max(theirs.max(), 1e-2 * np.abs(case.data[1]).max())),
        "gap": ours.gap,
        "status": ours.status.value,
        "sdp_status": reference.solution.status,
        "seconds": seconds,
        "sdp_seconds": perf_counter() - clock - seconds,
    }


def disagrees(row: dict[str, Any]) -> bool:
    """Whether a row is outside the tolerances."""
    values = max(abs(row["primal_off"]), abs(row["dual_off"]))
    return not (values <= VALUE_TOL and row["function_off"] <= FUNCTION_TOL and row["status"] == "converged")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/output/against_sdp.jsonl"))
    args = parser.parse_args()
    rows = {row["index"]: row for row in read_rows(args.output)}
    for case in all_cases():
        if case.index not in rows:
            rows[case.index] = compared(case)
            append_row(args.output, rows[case.index])
            row = rows[case.index]
            print(f"{case.index} {case.kind} c={case.options} n={row['n']} {row['seconds']:.2g} s", flush=True)
    for name in ("primal_off", "dual_off", "function_off"):
        print(f"{name}: worst {max(abs(row[name]) for row in rows.values()):.2g}")
    failed = [row for row in rows.values() if disagrees(row)]
    print(f"{len(rows)} problems, {len(failed)} outside the tolerances")
    for row in failed:
        print("FAILED: ", row)


if __name__ == "__main__":
    main()
