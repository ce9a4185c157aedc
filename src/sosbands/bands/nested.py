"""Bands at several coverages, each inside the next by construction: the wider is the narrower plus a sum of squares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._arguments import check, is_number
from sosbands._threads import ONE_THREAD
from sosbands._types import Array
from sosbands.bands.functions import SoSFunction, deployed_pair, evaluate_pair
from sosbands.bands.learn import certified, common_scale, literal
from sosbands.bands.prepare import BandData
from sosbands.bands.solution import BandSolution
from sosbands.solvers import solve


@dataclass(frozen=True, eq=False)
class NestedFunctions:
    """Non-negative functions on each side, each at least the last one, told by their steps ``g_j = f_j - f_(j-1)``.

    Attributes
    ----------
    coverages : tuple of k floats
        Increasing.
    lower_steps, upper_steps : tuples of k SoSFunction
        ``g_1 = f_1`` first.
    """

    coverages: tuple[float, ...]
    lower_steps: tuple[SoSFunction, ...]
    upper_steps: tuple[SoSFunction, ...]

    def __post_init__(self) -> None:
        read_coverages("coverages", self.coverages)
        if not len(self.coverages) == len(self.lower_steps) == len(self.upper_steps):
            raise ValueError(
                f"{len(self.lower_steps)} lower and {len(self.upper_steps)} upper steps: expected {len(self.coverages)}"
                ", one for each coverage"
            )

    def lower(self, X: Any) -> Array:
        """The functions below at the rows of `X`, of shape (n, k); they increase along each row to the last digit."""
        return self.evaluate(X)[0]

    def upper(self, X: Any) -> Array:
        """The functions above, as `lower`."""
        return self.evaluate(X)[1]

    def evaluate(self, X: Any) -> tuple[Array, Array, Array]:
        """Functions below and above, each (n, k), and the support of X (n,); see `evaluate_pair`."""
        found = [evaluate_pair(*pair, X) for pair in zip(self.lower_steps, self.upper_steps, strict=True)]
        below, above, support = zip(*found, strict=True)
        return np.cumsum(np.stack(below, axis=1), axis=1), np.cumsum(np.stack(above, axis=1), axis=1), support[0]

    def deployed(self) -> NestedFunctions:
        """The same functions without the features of the learning points; features that are shared stay shared."""
        lower, upper = deployed_pair(self.lower_steps[0], self.upper_steps[0])
        return NestedFunctions(
            self.coverages,
            tuple(replace(step, features=lower.features) for step in self.lower_steps),
            tuple(replace(step, features=upper.features) for step in self.upper_steps),
        )


@dataclass(frozen=True, eq=False)
class NestedBands:
    """What `learn_nested_bands` returns: the steps with their certificates, and the functions that they add up to.

    Attributes
    ----------
    learning_coverages : tuple of k floats
    steps : tuple of k BandSolution
        Each solves the problem of what the bands before it leave outside, and is certified for that problem. `lower`
        and `upper` of a step are what it adds, except for the first, which is the narrowest band itself.
    values_lower, values_upper : ndarrays of shape (n, k)
        Band functions at the learning points.
    """

    learning_coverages: tuple[float, ...]
    steps: tuple[BandSolution, ...]

    def __repr__(self) -> str:
        """One band per line."""
        lines = [f"NestedBands({len(self.steps)} coverages)"]
        for k, (c, step) in enumerate(zip(self.learning_coverages, self.steps, strict=True)):
            below, above = self.values_lower[:, k].mean(), self.values_upper[:, k].mean()
            how = f"{step.status.value}, gap {step.gap:.2g}"
            lines.append(f"  {c:<8g} mean width lower {below:.4g}, upper {above:.4g}; {how}")
        return "\n".join(lines)

    @property
    def functions(self) -> NestedFunctions:
        """The functions alone."""
        lower, upper = (tuple(getattr(step, side) for step in self.steps) for side in ("lower", "upper"))
        return NestedFunctions(self.learning_coverages, lower, upper)

    @property
    def certificates(self) -> list[dict[str, float | int | str]]:
        """The certificate of each step."""
        return [step.certificate for step in self.steps]

    @property
    def values_lower(self) -> Array:
        """Functions below at the learning points."""
        return np.cumsum(np.stack([step.values_lower for step in self.steps], axis=1), axis=1)

    @property
    def values_upper(self) -> Array:
        """Functions above at the learning points."""
        return np.cumsum(np.stack([step.values_upper for step in self.steps], axis=1), axis=1)

    def lower(self, X: Any) -> Array:
        """Band functions below at the rows of `X`, of shape (n, k), increasing along each row."""
        return self.functions.lower(X)

    def upper(self, X: Any) -> Array:
        """Band functions above, as `lower`."""
        return self.functions.upper(X)


def learn_nested_bands(
    X: Any, residuals: Any, learning_coverages: Iterable[float], *, sample_weight: Any = None, **settings: Any
) -> NestedBands:
    """Learn bands at several coverages that never cross: each is the last one plus a sum of squares.

    With ``f_0 = 0`` step j learns ``g_j`` from what ``f_(j-1)`` leaves outside, and ``f_j = f_(j-1) + g_j``. Its
    problem is that of :func:`learn_bands` at coverage ``c_j``, with ``f_(j-1) + g`` in place of f in the width and in
    the price of rows outside, and the penalties of trace, norm and symmetry on the step g alone. As ``g >= 0``,
    ``(r - f_(j-1) - g)_+ = ((r - f_(j-1))_+ - g)_+``: rows that are inside already have the residual 0, without any
    change of the problem. A row is outside on one side at most, so that one vector of residuals tells both.

    Parameters
    ----------
    X, residuals, sample_weight, **settings
        As in :func:`learn_band_path`, but `learning_coverage`. The units of ``normalize`` are those of the residuals
        given.
    learning_coverages : iterable of k floats
        Increasing, in (0, 1]. Below 1 rows may lie outside, as with `learning_coverage` of :func:`learn_bands`.
    """
    if "learning_coverage" in settings:
        raise TypeError("learn_nested_bands() takes learning_coverages: expected no learning_coverage beside them")
    read = literal("learn_nested_bands", settings)
    coverages = read_coverages("learning_coverages", learning_coverages)
    each = [read.replace(learning_coverage=c) for c in coverages]
    each[0].check_closed()
    data = BandData.read(X, residuals, read.kernel, sample_weight)
    steps: list[BandSolution] = []
    below, above, point = np.zeros(len(data.r)), np.zeros(len(data.r)), None
    with ONE_THREAD:
        setup = data.prepare(each[0], common_scale(data, read))
        for wanted in each:
            setup = setup.with_settings(wanted, outside(data.r, below, above))
            if not setup.r.any():
                steps.append(setup.zero_solution())
                continue
            problem = setup.problem()
            start = None if point is None else problem.start_from(point)
            result = solve(problem, start, tol=read.tol, solver=read.solver, max_iterations=read.max_iterations)
            point = problem.dual_point(result.variables)
            steps.append(certified(setup.solution(point, result), read.tol))
            below, above = below + steps[-1].values_lower, above + steps[-1].values_upper
    return NestedBands(coverages, tuple(steps))


def outside(r: Array, below: Array, above: Array) -> Array:
    """How far each residual lies outside ``[-below, above]``, negative below it and 0 inside."""
    return np.maximum(r - above, 0.0) - np.maximum(-r - below, 0.0)


def read_coverages(name: str, given: Any) -> tuple[float, ...]:
    """Increasing numbers in (0, 1], at least one."""
    expected = "increasing numbers in (0, 1]"
    check(name, given, isinstance(given, Iterable) and not isinstance(given, (str, bytes, dict)), expected)
    values = list(given)
    fine = bool(values) and all(is_number(value) and 0 < value <= 1 for value in values)
    check(name, given if isinstance(given, (list, tuple)) else values, fine, expected)
    check(name, given, all(np.diff(np.asarray(values, dtype=float)) > 0), expected)
    return tuple(float(value) for value in values)
