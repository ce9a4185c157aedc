"""The record of a solve: every certified point, the best of them, and the result that it makes."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.solvers.protocol import CertificateLike, DualProblem, HistoryRow, SolverResult, Status

PATIENCE, PROGRESS = 100, 0.8  # points after which the best gap must have fallen to this part of what it was


class Monitor:
    """Certifies every accepted iterate and remembers the best."""

    def __init__(self, problem: DualProblem, tol: float, also: Any = None) -> None:
        self.problem, self.tol = problem, tol
        self.known = {} if also is None else {"also": also}  # a primal point known from elsewhere
        self.clock, self.decompositions = perf_counter(), problem.decompositions
        self.history: list[HistoryRow] = []
        self.best: CertificateLike | None = None
        self.best_z = np.zeros(0)

    def __call__(self, z: Array) -> bool:
        """Certify and record z; True if the tolerance is reached."""
        return self.record(self.problem.certificate(z, **self.known), z)

    def record(self, certificate: CertificateLike, z: Array) -> bool:
        """Record the certificate of z; True if the tolerance is reached."""
        if self.best is None or certificate.gap < self.best.gap:
            self.best, self.best_z = certificate, self.problem.bounds.clip(z)
        made, seconds = self.problem.decompositions - self.decompositions, perf_counter() - self.clock
        self.history.append(
            HistoryRow(
                len(self.history),
                certificate.dual_value,
                certificate.primal_value,
                certificate.gap,
                made,
                seconds,
            )
        )
        return certificate.gap <= self.tol

    @property
    def has_stalled(self) -> bool:
        """Whether the best gap has hardly fallen for a long time."""
        if len(self.history) < PATIENCE:
            return False
        gaps = [row.gap for row in self.history]
        return not min(gaps) < PROGRESS * min(gaps[:-PATIENCE], default=np.inf)

    @property
    def iterations(self) -> int:
        """Points certified after the start."""
        return len(self.history) - 1

    def result(self, status: Status) -> SolverResult:
        """Everything recorded so far."""
        assert self.best is not None
        last = self.history[-1]
        return SolverResult(
            self.best_z,
            self.best,
            status,
            last.iteration,
            self.problem.decompositions - self.decompositions,
            perf_counter() - self.clock,
            tuple(self.history),
        )
