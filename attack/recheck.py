"""Certificates recomputed from their definition, in extended precision and without the library's problems.

Everything is in the user's units: operators and multipliers are read from a `BandSolution`, the primal value is that of
its operators, the dual value that of its multipliers. NumPy's long double has no eigenvalues, so those of double
precision are the start of Jacobi rotations in long double.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Long = np.longdouble
SWEEPS = 6


def long_eigenvalues(M: np.ndarray) -> np.ndarray:
    """Eigenvalues of a symmetric matrix to long double precision, ascending."""
    M = np.asarray(M, dtype=Long)
    size = np.abs(M).max(initial=Long(0))
    if len(M) == 0 or size == 0:
        return np.zeros(len(M), dtype=Long)
    M = (M + M.T) / (2 * size)
    U = np.linalg.eigh(M.astype(float))[1].astype(Long)
    for _ in range(2):  # orthonormal to long double precision
        U = U @ (3 * np.eye(len(M), dtype=Long) - U.T @ U) / 2
    D = U.T @ M @ U
    for _ in range(SWEEPS):
        if not _rotate_all(D):
            break
    return size * np.sort(np.diag(D))


def _rotate_all(D: np.ndarray) -> int:
    """One cyclic Jacobi sweep in place over the entries that matter; their number."""
    rotated, negligible = 0, 4 * np.finfo(Long).eps * np.abs(D).max()
    for i, j in zip(*np.nonzero(np.triu(np.abs(D) > negligible, 1)), strict=True):
        if abs(D[i, j]) <= negligible:
            continue
        theta = (D[j, j] - D[i, i]) / (2 * D[i, j])
        t = (1 if theta >= 0 else -1) / (abs(theta) + np.sqrt(theta * theta + 1))
        c = 1 / np.sqrt(t * t + 1)
        G = np.array([[c, t * c], [-t * c, c]], dtype=Long)
        D[:, [i, j]] = D[:, [i, j]] @ G
        D[[i, j], :] = G.T @ D[[i, j], :]
        rotated += 1
    return rotated


@dataclass(frozen=True)
class Costs:
    """The numbers of the objective in the user's units: both sides, and what couples them."""

    b: float
    lam1: float
    lam2: float
    tau: float
    kind: str
    lam_pen1: float
    lam_pen2: float

    @property
    def shared(self) -> bool:
        """One function for both sides."""
        return bool(np.isinf([self.lam_pen1, self.lam_pen2]).any())


def costs_of(options: dict[str, Any], scale: Any = None) -> Costs:
    """From the options of learn_bands, and the scale of normalised penalties."""
    pen = options.get("symmetry_penalty", 1.0)
    lam_pen1, lam_pen2 = pen if isinstance(pen, (tuple, list)) else (0.0, pen)
    kind = options.get("symmetry_kind", "training")
    b, lam1 = Long(options.get("width_penalty", 10.0)), Long(options.get("trace_penalty", 1.0))
    lam2 = Long(options.get("frobenius_penalty", 1.0))
    lam_pen1, lam_pen2 = Long(lam_pen1), Long(lam_pen2)
    if scale is not None:
        width, trace, norm, rms = (Long(v) for v in (scale.width, scale.trace, scale.squared_norm, scale.rms))
        b, lam1, lam2 = b / width, lam1 / trace, lam2 / norm / rms
        lam_pen1 = lam_pen1 / trace
        lam_pen2 = lam_pen2 / (norm if kind == "operator" else scale.n * width**2) / rms
    tau = (1 - Long(options.get("learning_coverage", 1.0))) / 2
    tau = tau if tau >= 1e-9 else Long(0)  # so close to 1 the coverage counts as 1
    return Costs(b, lam1, lam2, tau, kind, lam_pen1, lam_pen2)


def primal_value(bands: Any, r: np.ndarray, costs: Costs) -> tuple[Long, Long]:
    """Cost of the operators, and the largest shortfall ``target - f`` at the learning points, at least 0."""
    r = np.asarray(r, dtype=Long)
    sides = [(bands.lower, np.abs(r))] if costs.shared else [(bands.lower, -r), (bands.upper, r)]
    tau = 2 * costs.tau if costs.shared else costs.tau
    total, short, operators, values = Long(0), Long(0), [], []
    for function, target in sides:
        V, B = function.features.V.astype(Long), function.B.astype(Long)
        A = B @ B.T + Long(function.ridge) * np.eye(len(B), dtype=Long)
        f = np.einsum("ki,ki->i", V, A @ V)
        missing = np.maximum(target - f, 0)
        total += costs.b * f.mean() + costs.lam1 * np.trace(A) + costs.lam2 * np.square(A).sum()
        total += costs.b / (len(r) * tau) * missing.sum() if tau > 0 else 0
        short = max(short, missing.max())
        operators.append(A)
        values.append(f)
    if costs.shared:
        return 2 * total, short
    if costs.kind == "training":
        return total + costs.lam_pen2 * np.square(values[0] - values[1]).sum(), short
    D = operators[0] - operators[1] if costs.lam_pen1 or costs.lam_pen2 else np.zeros((0, 0), dtype=Long)
    nuclear = np.abs(long_eigenvalues(D)).sum() if costs.lam_pen1 else Long(0)
    return total + costs.lam_pen1 * nuclear + costs.lam_pen2 * np.square(D).sum(), short


def dual_value(bands: Any, r: np.ndarray, costs: Costs) -> tuple[Long, Long]:
    """Dual value of the multipliers, and how far they leave their box relative to their size."""
    r, dual = np.asarray(r, dtype=Long), bands.dual
    g_lo, g_up = dual.gamma_lo.astype(Long), dual.gamma_up.astype(Long)
    if costs.shared:
        g_lo = g_up = (g_lo + g_up) / 2
        gains, shifts = g_lo @ np.abs(r) * 2, (Long(0), Long(0))
        coupling = Long(0)
    else:
        gains = (g_up - g_lo) @ r
        shifts, coupling = _coupling(dual, costs)
    outside = _outside(np.concatenate([g_lo, g_up]), costs, len(r))
    for function, gamma, shift in ((bands.lower, g_lo, shifts[0]), (bands.upper, g_up, shifts[1])):
        V = function.features.V.astype(Long)
        vector, matrix = (shift, Long(0)) if np.ndim(shift) < 2 else (Long(0), shift)
        M = (V * (gamma + vector - costs.b / len(r))) @ V.T + matrix
        w = np.maximum(long_eigenvalues(M) - costs.lam1, 0)
        gains -= np.square(w).sum() / (4 * costs.lam2)
    return gains - coupling, outside


def _coupling(dual: Any, costs: Costs) -> tuple[tuple, Long]:
    """What is added below and above, and the conjugate of the penalty."""
    if dual.alpha_0 is not None:
        alpha_0 = dual.alpha_0.astype(Long)
        return (alpha_0, -alpha_0), alpha_0 @ alpha_0 / (4 * costs.lam_pen2)
    if dual.W is not None:
        W = dual.W.astype(Long)
        excess = np.maximum(np.abs(long_eigenvalues(W)) - costs.lam_pen1, 0)
        return (-W, W), np.square(excess).sum() / (4 * costs.lam_pen2)
    return (Long(0), Long(0)), Long(0)


def _outside(gamma: np.ndarray, costs: Costs, n: int) -> Long:
    """Largest distance to the box, relative to the largest multiplier."""
    tau = 2 * costs.tau if costs.shared else costs.tau
    ceiling = costs.b / (n * tau) if tau > 0 else Long(np.inf)
    away = np.maximum(np.maximum(-gamma, gamma - ceiling), 0).max()
    return away / gamma.max() if gamma.max() > 0 else away


def recheck(bands: Any, r: np.ndarray, costs: Costs) -> dict[str, float]:
    """Discrepancies of a certificate, all relative and at least 0: what is reported against what is recomputed."""
    primal, short = primal_value(bands, r, costs)
    dual, outside = dual_value(bands, r, costs)
    unit = max(abs(Long(bands.primal_value)), np.finfo(Long).tiny)
    found = {"short": Long(0), "outside_box": outside}
    if costs.tau == 0 and np.any(r):
        found["short"] = short / np.abs(r).max()
    if not np.isfinite(bands.primal_value):  # nothing but the dual value is claimed
        found["short"] = Long(0)
        return {name: float(value) for name, value in {**found, "primal_off": 0, "dual_off": 0, "crossed": 0}.items()}
    found["primal_off"] = abs(primal - Long(bands.primal_value)) / unit
    found["dual_off"] = abs(dual - Long(bands.dual_value)) / unit
    found["crossed"] = max(dual - primal, Long(bands.dual_value) - Long(bands.primal_value), Long(0)) / unit
    return {name: float(value) for name, value in found.items()}
