"""One side of the bands: the space of its operators, what they cost, the box of its multipliers, and its conjugate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from sosbands._threads import cached_property
from sosbands._types import Array, BoolArray, IntArray
from sosbands.kernels.features import greedy_pivoted_cholesky
from sosbands.problems.certificate import PrimalSide

MANY_AT_CEILING = 64  # columns from which their sum is worth remembering
ROUNDING = 1e-12  # of the norm of a matrix: more than rounding moves its eigenvalues
PAIR_VALUES = 100_000  # products of eigenvectors held at a time
MOST_SQUARES, SQUARES_LEFT = 150, 1e-3  # features of the squared kernel, and the trace that fewer may leave out
TINY = 1e-300
MOST_UPDATES = 100  # of a sum before it is made anew, so that rounding does not add up


class Box(NamedTuple):
    """``lower <= z <= upper``, entry by entry; entries may be infinite."""

    lower: Array
    upper: Array

    @classmethod
    def joined(cls, *boxes: Box, unbounded: int = 0) -> Box:
        """The box of the variables one after another, and of so many unbounded ones behind them."""
        free = np.full(unbounded, np.inf)
        return cls(
            np.concatenate([*(box.lower for box in boxes), -free]),
            np.concatenate([*(box.upper for box in boxes), free]),
        )

    def clip(self, z: Array) -> Array:
        """The nearest point inside, as a new array."""
        return np.asarray(np.clip(z, self.lower, self.upper))


@dataclass(frozen=True, eq=False)
class PositivePart:
    """Eigenpairs of ``M - lam1 I`` in descending order; the first `rank` eigenvalues are positive."""

    w: Array
    U: Array
    rank: int
    lam2: float

    @property
    def value(self) -> float:
        """``Omega*(M) = ||[M - lam1 I]_+||_F^2 / (4 lam2)``."""
        return float(np.square(self.w[: self.rank]).sum() / (4 * self.lam2))

    @property
    def factor(self) -> Array:
        """B with ``B B' = [M - lam1 I]_+ / (2 lam2)``, the gradient of Omega*."""
        return self.U[:, : self.rank] * np.sqrt(self.w[: self.rank] / (2 * self.lam2))

    @property
    def curvature(self) -> Array:
        """Eigenvalues of the second derivative, (p, p) in the basis of products of eigenvectors."""
        w, r = self.w, self.rank
        weights = np.zeros((len(w), len(w)))
        weights[:r, :r] = 1.0
        weights[r:, :r] = w[:r] / (w[:r] - w[r:, None])
        weights[:r, r:] = weights[r:, :r].T
        return weights / (2 * self.lam2)

    @property
    def n_pairs(self) -> int:
        """Pairs of eigenvectors, one of them positive: as many squares make the second derivative."""
        return self.rank * len(self.w) - self.rank * (self.rank - 1) // 2

    @property
    def pair_weights(self) -> Array:
        """Weights (rank, p), each pair once, of ``(u_k'D u_l)^2``, whose sum is the second derivative along D."""
        w, r = self.w, self.rank
        weights = np.full((r, len(w)), 2.0)
        weights[:, r:] *= w[:r, None] / (w[:r, None] - w[r:])
        weights[:, :r] = np.triu(weights[:, :r], 1) + np.eye(r)
        return weights / (2 * self.lam2)

    def derivative_factor(self, T: Array) -> Array:
        """C with ``C U_+' + U_+ C'`` the derivative of the gradient along D, from ``T = D U_+``."""
        r = self.rank
        # divided differences of max(w, 0): 1 inside the positive part, w_k / (w_k - w_l) across
        weights = np.full((len(self.w), r), 0.5)
        weights[r:] = self.w[:r] / (self.w[:r] - self.w[r:, None])
        return self.U @ (weights * (self.U.T @ T)) / (2 * self.lam2)


@dataclass(frozen=True)
class TraceFrobenius:
    """``Omega(A) = lam1 tr A + lam2 ||A||_F^2`` on positive semidefinite A, +inf elsewhere."""

    lam1: float
    lam2: float

    def decompose(self, M: Array) -> PositivePart:
        """All eigenpairs of ``M - lam1 I``: a missed positive one would make the dual value too large."""
        w, U = np.linalg.eigh(M)
        w = w[::-1] - self.lam1
        return PositivePart(w, U[:, ::-1], int(np.count_nonzero(w > 0)), self.lam2)

    def conjugate(self, M: Array) -> tuple[float, Array]:
        """``Omega*(M)`` and its gradient ``[M - lam1 I]_+ / (2 lam2)``."""
        part = self.decompose(M)
        return part.value, part.factor @ part.factor.T


class FeatureSpace:
    """Features ``V`` (p, n) of the learning points; sums and factors of them are shared by all problems of a path."""

    def __init__(self, V: Array) -> None:
        self.V = V
        self.p, self.n = V.shape
        self._projected: tuple[Array, FeatureSpace] | None = None
        self._summed: tuple[IntArray, Array, int] = (np.zeros(0, dtype=np.intp), np.zeros((self.p, self.p)), 0)

    @cached_property
    def gram(self) -> Array:
        """``V V'``."""
        return np.asarray(self.V @ self.V.T, dtype=float)

    @cached_property
    def identity_values(self) -> Array:
        """Values of the operator I at the learning points, ``||Phi(X_i)||^2``."""
        return np.asarray(np.einsum("ij,ij->j", self.V, self.V), dtype=float)

    @cached_property
    def constant(self) -> tuple[Array, Array] | None:
        """``(c, values of cc')`` with ``V'c`` close to 1, or None if some value is zero."""
        # the tiny ridge only makes the normal equations solvable; any c is a valid direction
        ridge = 1e-10 * np.trace(self.gram) / max(self.p, 1) * np.eye(self.p)
        c = cho_solve(cho_factor(self.gram + ridge, lower=True), self.V.sum(axis=1))
        values = np.square(c @ self.V)
        return (c, values) if values.min() > 1e-3 else None

    @cached_property
    def squares(self) -> tuple[Array, IntArray, Array]:
        """Functions ``T = R_P^-1 R`` that tell a form in ``Phi Phi'`` from its values at pivots P, these, what is left.

        Such forms live in the feature space of ``k(x, y)^2`` with features R; of its diagonal a relative part is left.
        """
        V, diag = self.V, np.square(self.identity_values)
        R, pivots = greedy_pivoted_cholesky(
            lambda rows, columns: np.square(V[:, rows].T @ (V if columns is None else V[:, columns])),
            diag,
            floor=len(diag) * float(np.finfo(float).eps * diag.max()),
            trace_left=SQUARES_LEFT * float(diag.sum()),
            max_rank=MOST_SQUARES,
            block=32,
        )
        missing = np.clip(1.0 - np.einsum("ij,ij->j", R, R) / np.maximum(diag, TINY), 0.0, 1.0)
        return solve_triangular(R[:, pivots], R), pivots, missing

    def leading(self, count: int) -> Array:
        """About the leading `count` eigenvectors of ``V V'``, orthonormal: two steps from the first features."""
        start = np.linalg.qr(self.V @ self.V[:count].T)[0]
        return np.asarray(np.linalg.qr(self.V @ (self.V.T @ start))[0])

    def weighted_gram(self, c: Array, ceiling: float = np.inf) -> Array:
        """``V Diag(c) V'``, touching only the columns with a non-zero weight."""
        at = np.flatnonzero(c == ceiling)
        if len(at) > MANY_AT_CEILING:  # they change rarely: only changes are added to the sum of the last call
            before, total, updates = self._summed
            joined, left = np.setdiff1d(at, before, True), np.setdiff1d(before, at, True)
            if 2 * (len(joined) + len(left)) > len(at) or updates >= MOST_UPDATES:
                total, updates = self.V[:, at] @ self.V[:, at].T, 0
            elif len(joined) or len(left):
                total = total + self.V[:, joined] @ self.V[:, joined].T - self.V[:, left] @ self.V[:, left].T
                updates += 1
            self._summed = (at, total, updates)
            rest = c.copy()
            rest[at] = 0.0
            return ceiling * total + self.weighted_gram(rest)
        (support,) = np.nonzero(c)
        if 2 * len(support) > self.n:
            return np.asarray((self.V * c) @ self.V.T)
        Vs = self.V[:, support]
        return np.asarray((Vs * c[support]) @ Vs.T)

    def projected(self, Q: Array) -> FeatureSpace:
        """The subspace spanned by the orthonormal columns of Q; the last one is remembered."""
        if self._projected is None:
            self._projected = (Q[:, :0], FeatureSpace(np.zeros((0, self.n))))
        before, space = self._projected
        if before is not Q:
            # subspaces grow by columns, and a path starts with those of the neighbour: products with these are known
            k = min(before.shape[1], Q.shape[1])
            same = np.logical_and.accumulate((before[:, :k] == Q[:, :k]).all(axis=0))
            k = int(np.count_nonzero(same))
            self._projected = (Q, FeatureSpace(np.vstack([space.V[:k], Q[:, k:].T @ self.V])))
        return self._projected[1]


@dataclass(frozen=True, eq=False)
class SideState:
    """``Omega*(V Diag(c - b/n) V' + W)`` at one point: eigenpairs, values of f, and derivatives."""

    V: Array
    part: PositivePart

    @cached_property
    def B(self) -> Array:
        """Factor of the operator that this point recovers."""
        return self.part.factor

    @cached_property
    def f(self) -> Array:
        """Its values at the learning points."""
        return np.asarray(np.square(self.B.T @ self.V).sum(axis=0))

    @property
    def primal(self) -> PrimalSide:
        """The operator with its values."""
        return PrimalSide(self.B, 0.0, self.f)

    @property
    def positive_vectors(self) -> Array:
        """Eigenvectors of the positive part, shape (p, rank)."""
        return self.part.U[:, : self.part.rank]

    @cached_property
    def Zp(self) -> Array:
        """The positive eigenvectors at the learning points, shape (rank, n)."""
        return self.positive_vectors.T @ self.V

    def derivative(self, dc: Array, dW: Array | None = None) -> tuple[Array, Array]:
        """Derivative of f along ``(dc, dW)``, and that of the operator as C with ``E = C U_+' + U_+ C'``."""
        T = self.V @ (dc[:, None] * self.Zp.T)
        if dW is not None:
            T = T + dW @ self.positive_vectors
        C = self.part.derivative_factor(T)
        return 2 * np.einsum("ij,ij->j", C.T @ self.V, self.Zp), C

    def hessian_block(self, rows: IntArray) -> Array:
        """Derivatives of f at `rows` with respect to their weights, a (len(rows), len(rows)) matrix."""
        Z = self.part.U.T @ self.V[:, rows]
        r, w = self.part.rank, self.part.w
        Zp, Zm = Z[:r], Z[r:]
        H = np.square(Zp.T @ Zp)
        across = np.sqrt(2 * w[:r, None] / (w[:r, None] - w[r:]))
        # pairs of a positive and another eigenvector in one product, as many at a time as stay in the cache
        step = max(1, PAIR_VALUES // max(1, Zm.size))
        for k in range(0, r, step):
            pairs = np.concatenate(across[k : k + step, :, None] * Zp[k : k + step, None] * Zm)
            H += pairs.T @ pairs
        return np.asarray(H / (2 * self.part.lam2))

    def hessian_diagonal(self, rows: BoolArray) -> Array:
        """Diagonal of :meth:`hessian_block`."""
        squares = np.square(self.part.U.T @ self.V[:, rows])
        return np.asarray(np.einsum("ij,ij->j", squares, self.part.curvature @ squares))

    def matrix_derivative(self, dc: Array, dW: Array) -> tuple[Array, Array]:
        """Derivatives of f and of the operator, the second as a (p, p) matrix."""
        df, C = self.derivative(dc, dW)
        half = C @ self.positive_vectors.T
        return df, half + half.T


@dataclass(frozen=True)
class SideCost:
    """What one side pays: ``(b/n) sum_i [f(X_i) + (target_i - f(X_i))_+ / tau] + lam1 tr A + lam2 ||A||_F^2``.

    `tau` in [0, 1) is about the share of rows that may lie outside, at a price; 0 allows none, whatever the price.
    """

    b: float
    lam1: float
    lam2: float
    tau: float = 0.0

    @property
    def is_hard(self) -> bool:
        """Every row has to be covered."""
        return self.tau == 0

    def ceiling(self, n: int) -> float:
        """Price of each unit that one of n rows lies outside, which bounds its multiplier."""
        return np.inf if self.is_hard else self.b / (n * self.tau)

    @property
    def shared(self) -> SideCost:
        """Cost of the one function of the symmetric limit, half of that of two sides: ``tau`` counts for both."""
        return replace(self, tau=2 * self.tau)

    @property
    def stiffness(self) -> float:
        """How much the linear penalties outweigh lam2 for residuals of size one: large is close to a linear program."""
        return max(self.b, self.lam1) / (2 * self.lam2)


class SideTerm:
    """One side of the bands: a `FeatureSpace` and the `SideCost` of its operators; shared by all problems of a path."""

    def __init__(self, space: FeatureSpace, cost: SideCost) -> None:
        self.space, self.cost = space, cost
        self.regulariser = TraceFrobenius(cost.lam1, cost.lam2)
        self.ceiling = cost.ceiling(space.n)
        self.bounds = Box(np.zeros(space.n), np.full(space.n, self.ceiling))  # of the multipliers

    @classmethod
    def of(cls, V: Array, **cost: float) -> SideTerm:
        """From features (p, n) and the numbers of a `SideCost`."""
        return cls(FeatureSpace(V), SideCost(**cost))

    def matrix(self, c: Array, W: Array | None = None) -> Array:
        """``M = V Diag(c - b/n) V' + W``, the argument of the conjugate."""
        M = self.space.weighted_gram(c, self.ceiling)
        if self.cost.b:
            M -= (self.cost.b / self.space.n) * self.space.gram
        if W is not None:
            M += W
        return M

    def upper_bound(self, c: Array, W: Array | None, Q: Array, room: float = 0.0) -> float:
        """Upper bound of ``Omega*`` at ``(c, W)`` from a subspace Q; inf if none can be shown."""
        # With P the projection on what is orthogonal to Q, T = Q'MQ, R = PMQ and a number e that PMP does not exceed, M
        # is at most T + R'R/t on Q and e + t beside it, for any t > 0, and Omega* does not decrease in M. So nothing is
        # lost beside Q if e + t = lam1; where e is too large for that, it may exceed lam1 by what costs half of `room`.
        lam1, lam2, k = self.cost.lam1, self.cost.lam2, Q.shape[1]
        F, weights = self.space.projected(Q).V, c - self.cost.b / self.space.n
        T, MQ = (F * weights) @ F.T, self.space.V @ (weights[:, None] * F.T)
        beside = self._largest_beside(weights, Q, lam1 / 2)
        if W is not None:
            WQ = W @ Q
            T, MQ = T + Q.T @ WQ, MQ + WQ
            beside += float(np.linalg.norm(W - Q @ WQ.T - (WQ - Q @ (Q.T @ WQ)) @ Q.T))
        R = MQ - Q @ T
        extra = 0.0 if beside <= lam1 / 2 else float(np.sqrt(2 * lam2 * room / self.space.p))
        t = lam1 + extra - beside
        if t <= 0:
            return np.inf
        top = np.linalg.eigvalsh(T + (R.T @ R) / t) + ROUNDING * np.linalg.norm(T)
        return float((np.square(np.maximum(top - lam1, 0.0)).sum() + (self.space.p - k) * extra**2) / (4 * lam2))

    def _largest_beside(self, weights: Array, Q: Array, enough: float) -> float:
        """Bound of the eigenvalues of ``V Diag(weights) V'`` on what is orthogonal to Q; negative weights lower them.

        The smallest count by their trace, up to half of `enough`, the others by the norm of their Gram matrix, or of
        its square if that is not enough.
        """
        space, F = self.space, self.space.projected(Q).V
        (rows,) = np.nonzero(weights > 0)
        traces = weights[rows] * np.maximum(space.identity_values - np.einsum("ij,ij->j", F, F), 0.0)[rows]
        order = np.argsort(traces)
        small = np.cumsum(traces[order])
        count = int(np.searchsorted(small, enough / 2, side="right"))
        by_trace = float(small[count - 1]) if count else 0.0
        rows = rows[order[count:]]
        if not len(rows):
            return by_trace
        X = (space.V[:, rows] - Q @ F[:, rows]) * np.sqrt(weights[rows])
        G = X.T @ X if len(rows) <= space.p else X @ X.T
        norm = float(np.linalg.norm(G))
        return by_trace + (norm if by_trace + norm <= enough else float(np.sqrt(np.linalg.norm(G @ G))))

    def objective(self, side: PrimalSide, target: Array) -> float:
        """What the side pays for an operator; for a hard cost one that covers every row."""
        cost = self.cost
        covered = cost.b / len(side.f) * float(side.f.sum()) + cost.lam1 * side.trace + cost.lam2 * side.squared_norm
        if cost.is_hard:
            return covered
        return covered + self.ceiling * float(np.maximum(target - side.f, 0.0).sum())

    def projected(self, Q: Array) -> SideTerm:
        """The same side with operators restricted to ``Q A Q'``, Q with orthonormal columns."""
        return SideTerm(self.space.projected(Q), self.cost)
