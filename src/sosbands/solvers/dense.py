"""Newton's method in small dense matrices: few features, rows that may lie outside, few rows that couple the sides.

Every operator is feasible where rows may lie outside, so that the gap at each point costs nothing beside its
eigenpairs, and no candidate has to be repaired. What is looked for are the multipliers of single rows, of which most
are at a bound: the quadratic model of those that move is solved in its box by Cholesky factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from sosbands._types import Array, IntArray
from sosbands.problems.dual import BandDual
from sosbands.problems.side import SideState
from sosbands.problems.training_penalty import TrainingPenaltyProblem
from sosbands.solvers.newton import CORRECTIONS, DAMPING, Monitor, damping_after, search_along
from sosbands.solvers.result import SolverResult, Status

MOST_FEATURES, MOST_ROWS = 80, 5000  # above, subspaces and samples of the rows are cheaper
MOST_COUPLED = 150  # rows at which a penalty pulls the sides together
STEPS = 60  # that a solve may take here
MOST_DAMPING = 1e3
ENTERING = 200  # rows of a side that may leave a bound in one step, those with the largest slope
NEAR = 0.5  # gap of a start from which another is not looked for
SHRINK, TRIES = 0.3, 8  # of a start that is too large
ROUNDING = 1e-14


class Point(NamedTuple):
    """Variables with the dual value, the primal value of the operators recovered there, and the slope of the dual."""

    z: Array
    value: float
    primal: float
    slope: Array
    sides: tuple[SideState, ...]

    @property
    def gap(self) -> float:
        """Relative to the primal value."""
        if self.primal == self.value:
            return 0.0
        return (self.primal - self.value) / self.primal if self.primal > 0 else np.inf


class Model(NamedTuple):
    """The quadratic model ``slope'd - d'Hd/2`` of the variables that move, in their box."""

    some: IntArray
    H: Array
    slope: Array
    low: Array
    high: Array


def solve_dense(part: BandDual, start: Array, tol: float, max_iterations: int) -> SolverResult:
    """Damped Newton steps on the variables that move, until the gap is at most `tol`; the last point is certified."""
    monitor = Monitor(part, tol)
    # 1. At the start unless it is far off, then or from zero at the rows with the largest targets.
    z = part.bounds.clip(start)
    known = _shrunk(part, z) if z.any() else None
    if known is not None and known.gap < NEAR:
        here = best = known
    else:
        cold = np.zeros_like(z)
        for k, (term, target) in enumerate(zip(part.sides, part.targets, strict=True)):
            most = float(np.quantile(target, 1 - term.cost.tau))
            cold[k * part.n : (k + 1) * part.n] = np.where(target > max(most, 0.0), term.ceiling, 0.0)
        plain = _shrunk(part, cold)
        here = best = plain if known is None or plain.value > known.value else known
    # 2. Steps in small dense matrices.
    damping, model = DAMPING, None
    while best.gap > tol and len(monitor.history) < min(STEPS, max_iterations) and damping <= MOST_DAMPING:
        model = model or _model(part, here)
        found = _step(part, here, model, damping)
        if found is None:
            damping *= 10
            continue
        monitor.note(here.value, here.primal, here.gap)
        (here, t), model = found, None
        damping = damping_after(damping, t)
        best = here if here.gap < best.gap else best
    if monitor.record(part.certificate(best.z), best.z):
        return monitor.result(Status.CONVERGED)
    return monitor.result(Status.STALLED if damping > MOST_DAMPING else Status.ITERATION_LIMIT)


def _point(part: BandDual, z: Array, value: float, slope: Array) -> Point:
    sides = part.state(z).sides
    return Point(z, value, part.objective(tuple(side.primal for side in sides)), slope, sides)


def _shrunk(part: BandDual, z: Array) -> Point:
    """A start, or if it asks for too much the best of ever smaller ones."""
    here = best = _point(part, z, *part.value_and_grad(z))
    for _ in range(TRIES):
        if float(here.slope @ here.z) >= 0:
            break
        here = _point(part, SHRINK * here.z, *part.value_and_grad(SHRINK * here.z))
        best = here if here.value > best.value else best
    return best


def _model(part: BandDual, here: Point) -> Model:
    """Rows inside their box, and of those at a bound that want to leave it the ones that want it most, move."""
    z, slope, box = here.z, here.slope, part.bounds
    leaving = ((z <= box.lower) & (slope > 0)) | ((z >= box.upper) & (slope < 0))
    moving = leaving | ((z > box.lower) & (z < box.upper))
    for k in range(len(here.sides)):
        new = k * part.n + np.flatnonzero(leaving[k * part.n : (k + 1) * part.n])
        if len(new) > ENTERING:
            moving[new[np.argpartition(np.abs(slope[new]), -ENTERING)[:-ENTERING]]] = False
    (some,) = np.nonzero(moving)
    return Model(some, hessian(part, here, some), slope[some], box.lower[some] - z[some], box.upper[some] - z[some])


def hessian(part: BandDual, here: Point, some: IntArray) -> Array:
    """Minus the second derivatives in some variables, among them all that couple the sides."""
    rows = [some[(some >= k * part.n) & (some < (k + 1) * part.n)] - k * part.n for k in range(len(here.sides))]
    if len(here.sides) == 1:
        return np.asarray(part.weight * here.sides[0].hessian_block(rows[0]))
    assert isinstance(part, TrainingPenaltyProblem)
    # lower weights are ``g + scale a``, upper ones ``g - scale a``
    coupled, m = part.coupled, len(part.coupled)
    H, start = np.zeros((len(some), len(some))), 0
    for side, own, sign in zip(here.sides, rows, (part.scale, -part.scale), strict=True):
        block, k = side.hessian_block(np.concatenate([own, coupled])), len(own)
        H[start : start + k, start : start + k] = block[:k, :k]
        H[start : start + k, -m:] = sign * block[:k, k:]
        H[-m:, start : start + k] = sign * block[k:, :k]
        H[-m:, -m:] += sign**2 * block[k:, k:]
        start += k
    H.flat[start * (len(H) + 1) :: len(H) + 1] += part.scale**2 / (2 * part.pens[coupled])
    return H


def _step(part: BandDual, here: Point, model: Model, damping: float) -> tuple[Point, float] | None:
    """The next point and the length of its step; None if none of this damping raises the dual."""
    d = _in_box(model, part.curvature, damping)
    if not np.isfinite(d).all() or not d.any():
        return None
    step = np.zeros_like(here.z)
    step[model.some] = d
    found = search_along(part, here.z, here.value, here.slope, step)
    if found is None:
        return None
    z, t, value, slope = found
    return _point(part, z, value, slope), t


def _in_box(model: Model, curvature: float, damping: float) -> Array:
    """Maximise ``slope'd - d'(H + shift)d/2`` in the box: guess what ends at a bound, solve for the rest, correct."""
    _, H, slope, low, high = model
    aim = np.minimum(1 / curvature, high - low) * slope
    at_low, at_high = aim <= low, aim >= high
    d, shift = np.zeros_like(slope), 0.0
    for _ in range(CORRECTIONS):
        fixed = at_low | at_high
        d[at_low], d[at_high] = low[at_low], high[at_high]
        (free,) = np.nonzero(~fixed)
        (stuck,) = np.nonzero(fixed & (d != 0))
        rhs = slope[free] - H[np.ix_(free, stuck)] @ d[stuck]
        shift = shift or damping * curvature * min(1.0, float(np.linalg.norm(rhs)))
        A = H[np.ix_(free, free)]
        A.flat[:: len(free) + 1] += shift + ROUNDING * float(A.diagonal().max(initial=0.0))
        factor, failed = dpotrf(A, lower=1, overwrite_a=1)
        if failed:
            break
        if len(free):
            d[free] = dpotrs(factor, rhs, lower=1)[0]
        left = slope - H @ d
        too_low, too_high = d < low, d > high
        inside = (at_low & (left > 0)) | (at_high & (left < 0))
        if not (too_low.any() or too_high.any() or inside.any()):
            break
        at_low, at_high = (at_low | too_low) & ~inside, (at_high | too_high) & ~inside
    return d
