"""Steps of kernels against landmarks, triangular solves and kernel sums of squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.bands.functions import SoSFunction
from sosbands.exceptions import ExportError
from sosbands.kernels.features import FAR, KernelFeatures, LandmarkKernel
from sosbands.kernels.kernels import FARTHEST, StationaryKernel
from sosbands.serving.program import Program

BLOCK = 64  # columns that a triangular solve does at a time, by the inverse of their block
LARGE = 1e300  # of points in lengthscales, as in the kernel itself
SQRT5 = float(np.sqrt(5.0))


def add_kernel(program: Program, points: str, kernel: StationaryKernel, landmarks: Array) -> str:
    """Kernel values (n, p) from differences of coordinates, as the kernel itself computes them."""
    ell = np.broadcast_to(np.asarray(kernel.lengthscale, dtype=float), landmarks.shape[1:])
    with np.errstate(over="ignore"):
        fixed = np.clip(landmarks / ell, -LARGE, LARGE)
    scaled = program.add("maximum", program.add("minimum", program.add("divide", points, ell), LARGE), -LARGE)
    s = program.add("minimum", program.add("sqrt", program.add("distances", scaled, fixed)), FARTHEST)
    return _profile(program, kernel.name, program.add("multiply", s, SQRT5) if kernel.name == "matern52" else s)


def add_landmark_kernel(program: Program, points: str, kernel: StationaryKernel, landmarks: Array) -> str:
    """Kernel values (n, p) as `LandmarkKernel` computes them: by one product where it may."""
    k = LandmarkKernel(kernel, landmarks)
    if k._columns is None:
        return add_kernel(program, points, kernel, landmarks)
    moved = program.standardised(points, k._center, k._scale)
    u = program.add("maximum", program.add("minimum", moved, FAR), -FAR)
    terms = program.add("product", program.joined([u, program.squares(u)]), k._columns[:-1])
    squared = program.add("maximum", program.add("add", terms, k._columns[-1]), 0.0)
    s = program.add("sqrt", squared)
    return _profile(program, kernel.name, s if kernel.name == "matern52" else program.add("minimum", s, FARTHEST))


def _profile(program: Program, name: str, s: str) -> str:
    """The profile at distances; for Matern 5/2 these are multiplied by the root of 5 already."""
    if name == "gaussian":
        return program.add("exp", program.add("multiply", program.add("multiply", s, s), -0.5))
    t = program.add("multiply", s, float(np.sqrt(3.0))) if name == "matern32" else s
    decay = program.add("exp", program.add("multiply", t, -1.0))
    if name == "matern12":
        return decay
    factor = t
    if name == "matern52":
        factor = program.add("multiply", t, program.add("add", program.add("multiply", t, 1 / 3), 1.0))
    return program.add("multiply", program.add("add", factor, 1.0), decay)


def add_solve(program: Program, values: str, L: Array) -> str:
    """``L^-1 k`` of each row k, (n, p), block by block: only the blocks on the diagonal are inverted."""
    done: list[str] = []
    for start in range(0, len(L), BLOCK):
        end = min(start + BLOCK, len(L))
        left = program.part(values, start, end)
        if done:
            before = program.add("product", done[-1], L[start:end, :start].T)
            left = program.add("subtract", left, before)
        found = program.add("product", left, np.linalg.inv(L[start:end, start:end]).T)
        done.append(program.joined([done[-1], found]) if done else found)
    return done[-1]


def add_bands(program: Program, points: str, lower: SoSFunction, upper: SoSFunction) -> tuple[str, str, str]:
    """Both functions and the support, each (n, 1), as `evaluate_pair` computes them."""
    kernels = {type(each.features.kernel).__name__: each.features.kernel for each in (lower, upper)}
    odd = [name for name, kernel in kernels.items() if not isinstance(kernel, StationaryKernel)]
    if odd:
        raise ExportError(f"kernel: bands of a {odd[0]} cannot be exported; expected one of the named kernels")
    same = lower.features is upper.features
    if same and lower._weights is not None and upper._weights is not None:
        below, above, kept = _by_products(program, points, lower, upper)
    else:
        below, kept = _by_features(program, points, lower)
        above = below
        if not (same and _equal(lower, upper)):
            above, other = _by_features(program, points, upper)
            kept = kept if same else program.add("minimum", kept, other)
    support = program.add("minimum", kept, 1.0)
    left = program.add("subtract", np.ones((1, 1)), support)
    ends = [
        program.add("add", values, program.add("multiply", left, f.beyond)) if f.beyond else values
        for values, f in ((below, lower), (above, upper))
    ]
    return ends[0], ends[1], support


def _equal(one: SoSFunction, other: SoSFunction) -> bool:
    return np.array_equal(one.B, other.B) and one.ridge == other.ridge


def _by_products(program: Program, points: str, lower: SoSFunction, upper: SoSFunction) -> tuple[str, str, str]:
    features: Any = lower.features
    K = add_landmark_kernel(program, points, features.kernel, features.landmarks)
    below, above = (_sum_of_squares(program, K, f._weights, f) for f in (lower, upper))
    q = features.support_rank
    Phi = add_solve(program, program.part(K, 0, q), features.L[:q, :q])
    return below, above, program.add("divide", program.squares(Phi), features.support_level)


def _by_features(program: Program, points: str, f: SoSFunction) -> tuple[str, str]:
    """A function without what is added off the data, and what its features keep of the kernel."""
    features: KernelFeatures = f.features
    kernel: Any = features.kernel
    Phi = add_solve(program, add_kernel(program, points, kernel, features.landmarks), features.L)
    kept = program.squares(Phi)
    values = _sum_of_squares(program, Phi, f.B[1:] if features.constant else f.B, f)
    if f.ridge:
        all_squares = program.add("add", kept, features.constant**2)
        values = program.add("add", values, program.add("multiply", all_squares, f.ridge))
    return values, kept


def _sum_of_squares(program: Program, parts: str, weights: Array | None, f: SoSFunction) -> str:
    """``sum_k (w_k' parts + constant B_0k)^2``."""
    W = np.zeros((f.features.rank - bool(f.features.constant), 1)) if not f.rank or weights is None else weights
    made = program.add("product", parts, W)
    if f.features.constant and f.rank:
        made = program.add("add", made, f.features.constant * f.B[0])
    return program.squares(made)
