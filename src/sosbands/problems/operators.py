"""Primal points: positive semidefinite operators in factor form, with their values at the learning points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sosbands._cached import cached_property
from sosbands._types import Array


@dataclass(frozen=True, eq=False)
class PrimalSide:
    """One side's operator ``A = B B' + ridge I`` and its values ``f_i = (V' A V)_ii``.

    Attributes
    ----------
    B : ndarray of shape (p, rank)
    ridge : float
    f : ndarray of shape (n,)
    """

    B: Array
    ridge: float
    f: Array

    @cached_property
    def trace(self) -> float:
        """Trace of A, which is also its nuclear norm."""
        return float(np.vdot(self.B, self.B) + self.ridge * len(self.B))

    @cached_property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of A."""
        gram = self.B.T @ self.B
        p = len(self.B)
        return float(np.vdot(gram, gram) + 2 * self.ridge * np.trace(gram) + np.square(self.ridge) * p)

    def _with_norms(self, trace: float, squared_norm: float) -> PrimalSide:
        """Itself, with norms that are known from those of another: a certificate compares many candidates."""
        self.__dict__.update(trace=trace, squared_norm=squared_norm)
        return self

    def lifted(self, Q: Array) -> PrimalSide:
        """``Q A Q'`` for orthonormal columns Q: the same values, in the space that Q maps to."""
        B = self.B if self.ridge == 0 else np.column_stack([self.B, np.sqrt(self.ridge) * np.eye(len(self.B))])
        return PrimalSide(Q @ B, 0.0, self.f)

    def scaled(self, t: float) -> PrimalSide:
        """``t A``."""
        scaled = PrimalSide(np.sqrt(t) * self.B, t * self.ridge, t * self.f)
        return scaled._with_norms(t * self.trace, t * t * self.squared_norm)

    def average(self, other: PrimalSide) -> PrimalSide:
        """``(A + A_other) / 2``."""
        B = np.column_stack([self.B, other.B]) / np.sqrt(2.0)
        return PrimalSide(B, 0.5 * (self.ridge + other.ridge), 0.5 * (self.f + other.f))

    def plus_identity(self, s: float, values: Array) -> PrimalSide:
        """``A + s I``, `values` being those of I at the learning points."""
        p = len(self.B)
        shifted = PrimalSide(self.B, self.ridge + s, self.f + s * values)
        return shifted._with_norms(self.trace + s * p, self.squared_norm + 2 * s * self.trace + s * s * p)

    def plus_square(self, s: float, c: Array, values: Array) -> PrimalSide:
        """``A + s cc'``, `values` being those of cc' at the learning points."""
        shifted = PrimalSide(np.column_stack([self.B, np.sqrt(s) * c]), self.ridge, self.f + s * values)
        size, image = float(c @ c), self.B.T @ c
        inner = float(image @ image) + self.ridge * size  # of A and cc'
        return shifted._with_norms(self.trace + s * size, self.squared_norm + 2 * s * inner + s * s * size * size)


def difference_eigenvalues(first: PrimalSide, second: PrimalSide) -> Array:
    """All p eigenvalues of ``A_first - A_second``, from the factors."""
    p, shift = len(first.B), first.ridge - second.ridge
    joined = np.column_stack([first.B, second.B])
    signs = np.repeat([1.0, -1.0], [first.B.shape[1], second.B.shape[1]])
    R: Array = np.linalg.qr(joined, mode="r")  # type: ignore[assignment]  # joined = Q R, so the eigenvalues are those of R diag(signs) R'
    small = np.linalg.eigvalsh((R * signs) @ R.T)
    return np.concatenate([small, np.zeros(p - len(small))]) + shift
