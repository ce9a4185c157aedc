"""Conditional calibration: a cutoff for each row, right on average over groups that overlap and over neighbourhoods.

Quantile regression of the calibration scores S_i at level q (Gibbs, Cherian, Candes 2023), on finite features phi, of
which one is 1 and the others tell groups, and on a kernel k, with ``C = 1/(lam (n + 1))``:

    (1)  min  sum_i rho_q(S_i - g(x_i)) + ||g_K||^2/(2 C),     g = g_K + phi'b,   rho_q(u) = max(q u, (q - 1) u)

    (2)  g_K = C sum_i eta_i k(., x_i),     sum_i eta_i phi(x_i) = 0,     q - 1 <= eta_i <= q,
         eta_i = q where S_i > g(x_i),      eta_i = q - 1 where S_i < g(x_i).

A further row x is in (2) with a weight t of its own, and ``g_t`` is the solution. Whatever its score s, the row would
have the weight t with ``g_t(x) = s``, or an end of [q - 1, q]. Its score is counted as large (t = q) beyond ``g_q(x)``,
its cutoff; with U uniform on [q - 1, q] the cutoff ``g_U(x)`` makes the promise exact: for f = f_K + phi'a >= 0

    (3)  E f(X) (1{S <= g_U(X)} - q) = -lam E <g_K, f_K>,

which is 0 for groups, and for f = k(., x0) minus ``sum_i eta_i k(x_i, x0)/(n + 1)``. Cutoffs g_q are at least g_U.

As t grows from 0, eta and b follow straight lines between events, as long as the active rows E, whose residuals are 0,
stay the same: `_Path.follow`. The fit to n rows is this routine as well: rows that span the features begin with weights
0 and residuals 0, and each further row is added until its residual is 0 or its weight q or q - 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import qr

from sosbands._threads import cached_property
from sosbands._types import AnyArray, Array, IntArray
from sosbands._words import many
from sosbands.conformal.asked import CONDITIONAL, Asked, Intervals, Kind, read_common_use, read_overlapping
from sosbands.conformal.band import Told, interval, lower_scores, upper_scores
from sosbands.conformal.calibration import Calibration, side_levels
from sosbands.kernels import StationaryKernel, median_lengthscale

JITTER = 1e-10  # of the range of the scores, upwards: no two of them are equal
NUGGET = 1e-6  # of the mean of k(x, x), for each row alone: no two rows are equal
# Relative. With a whole number n q a weight would be at its bound just when a path begins or ends, so that rounding
# alone would say what comes next: the level is a little lower, and paths end a little earlier than that.
BELOW, EARLIER = 1e-11, 1e-7
RANK_LOSS = 1e-9  # a row that is farther than this from all of the leverage is not the last one of its direction
FLAT = 1e-9  # slopes that are rounding
SOLVED = 1e-7  # by which weights and residuals of a fit may be on the wrong side
REFRESHED = 40  # changes of the active rows after which rounding is removed
SPARE = 64  # rows by which the active ones may grow in place

MOST_ROWS = 4000  # of the fit; of more calibration rows a random sample
MEDIANS = 3  # lengthscale of the kernel, in median distances of the calibration rows
FEW, MANY, MANY_ROWS = 0.5, 1.5, 1000  # C in spreads of the scores, and from how many rows on it is the larger one
SPREAD = (0.3, 0.9)  # quantiles of the scores, whose difference is their spread
BLOCK = 1000  # new rows whose kernel values are held at a time
SIDES = ("both", "lower", "upper")


class ConditionalQuantile:
    """The solution of (1) for n scores, and the cutoffs of further rows.

    Coverage by cutoffs at q is at least that of cutoffs at random t, and at most the mean share of the rows that are
    active (without a kernel as many as independent features) higher.

    Parameters
    ----------
    scores : array of shape (n,)
        Infinite ones stand one range beyond the others.
    level : float
        q in (0, 1).
    features : array of shape (n, p)
        phi(x_i). They may depend on each other; their span holds 1, or coverage on average is not promised.
    kernel : array of shape (n, n), optional
        k(x_i, x_j).
    C : float
        In units of the scores; 0 leaves the kernel out.

    Attributes
    ----------
    eta : array of shape (n,)
        The weights of the rows.
    """

    def __init__(self, scores: Array, level: float, features: Array, kernel: Array | None = None, C: float = 0.0):
        n, finite = len(scores), scores[np.isfinite(scores)]
        least, most = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
        self._unit = (most - least) or max(abs(most), 1.0)
        least, most = least - self._unit, most + self._unit
        # cutoffs as far out as the infinite scores stand are infinite
        self._least = least if np.isneginf(scores).any() else -np.inf
        self._most = most if np.isposinf(scores).any() else np.inf
        order = np.random.default_rng(0)
        S = np.clip(scores, least, most) / self._unit + JITTER * order.random(n)
        self._C, self._nugget, CK = 0.0, 0.0, np.broadcast_to(0.0, (n, n))
        if kernel is not None and C:
            self._C, size = C / self._unit, float(np.mean(np.diag(kernel)))
            CK = self._C * kernel
        # Features that span those of the rows, and how the others depend on them.
        _, triangle, columns = qr(features, mode="economic", pivoting=True)
        lengths = np.abs(np.diag(triangle))
        d = int(np.sum(lengths > 1e-10 * lengths[0]))
        self._kept, self._left = columns[:d], columns[d:]
        self._dependence = np.linalg.solve(triangle[:d, :d], triangle[:d, d:])
        F = np.ascontiguousarray(features[:, self._kept])
        # The fit: rows that span the features, then one after another. Where very many rows are equal, rounding may be
        # too much for it, and a larger nugget takes them farther apart.
        q = level * (1 - BELOW)
        first = qr(F.T, mode="r", pivoting=True)[1][:d]
        others = order.permutation(np.setdiff1d(np.arange(n), first))
        for nugget in (NUGGET, 30 * NUGGET, 1000 * NUGGET):
            if self._C:
                CK[np.diag_indices(n)] += self._C * (nugget * size - self._nugget)
                self._nugget = nugget * size
            self._path = _Path(S, q, F, CK, first)
            if self._path.fit(others):
                break
        else:
            raise RuntimeError(f"conditional calibration of {n} rows: rounding is larger than what tells them apart")
        self._scratch = self._path.copy()
        self.eta = self._path.eta

    def cutoffs(
        self, features: Array, kernel: Array | None = None, diagonal: Array | None = None, t: Array | None = None
    ) -> Array:
        """The cutoff of each of m further rows.

        Parameters
        ----------
        features : array of shape (m, p)
        kernel : array of shape (m, n), optional
            k(x, x_i), given if and only if the fit has a kernel.
        diagonal : array of shape (m,), optional
            k(x, x); ones by default.
        t : array of shape (m,), optional
            At which weights the cutoffs are read, in [q - 1, q]; q by default. If they are drawn uniformly from there,
            scores are at most their cutoffs with probability q exactly, where none are equal.

        Returns
        -------
        cutoffs : array of shape (m,)
            Infinite where the rows of the fit say nothing about so high a quantile, or about these features.
        """
        F = features[:, self._kept]
        unknown = (np.abs(features[:, self._left] - F @ self._dependence) > 1e-8).any(axis=1)
        q = self._path.q
        ends = np.full(len(F), q * (1 - EARLIER)) if t is None else np.clip(t, q - 1, q)
        found = np.where(ends < 0, -np.inf, np.inf)
        k, k0 = np.zeros(self._path.n), 0.0
        for row in np.flatnonzero(~unknown):
            if kernel is not None and self._C:
                k = self._C * kernel[row]
                k0 = self._C * ((1.0 if diagonal is None else float(diagonal[row])) + self._nugget)
            self._scratch.start_from(self._path)
            found[row] = self._scratch.follow(F[row], k, k0, float(ends[row]))
        found = self._unit * (found + JITTER)
        nothing = found <= self._least + 4 * JITTER * self._unit
        return np.where(found >= self._most, np.inf, np.where(nothing, -np.inf, found))

    def coverage_gap(self, kernel: Array) -> Array:
        """By how much coverage around points x0 differs from the level, rows counted as k(., x0), shape (m,).

        The right side of (3) over the mean of ``k(X, x0)``, both as the n rows have them. It is that of cutoffs at
        random t, and by no more than the share of the active rows less than that of cutoffs at q. `kernel` is
        k(x0, x_i) >= 0, shape (m, n).
        """
        n = len(self.eta)
        return np.asarray(-(kernel @ self.eta) / kernel.sum(axis=1) * n / (n + 1))


class _Path:
    """Weights, residuals and active rows of n rows with scores S, features F (n, d) and kernel CK = C K (n, n).

    With z = (b, eta_E) the equations of the active rows are M z = ..., M = [0, F_E'; F_E, C K_EE]. Kept are
    ``H = M^-1`` and ``R = [F'; C K_E]``, all values of g per unit of z, in arrays with room for more active rows.
    """

    def __init__(self, S: Array, q: float, F: Array, CK: Array, first: IntArray):
        self.S, self.q, self.F, self.CK = S, q, F, CK
        self.n, self.d = F.shape
        self.eta, self.side = np.zeros(self.n), np.zeros(self.n)  # side: 1 at q, -1 at q - 1, 0 active or not yet added
        self.b, self.r = np.zeros(self.d), S.copy()
        self.E = first.astype(np.intp)
        self.R, self.H = np.empty((0, self.n)), np.empty((0, 0))
        self.changes = 0
        self.refresh()

    def copy(self) -> _Path:
        """Arrays of its own."""
        other = object.__new__(_Path)
        vars(other).update(vars(self), R=self.R.copy(), H=self.H.copy(), eta=self.eta.copy(), side=self.side.copy())
        other.start_from(self)
        return other

    def start_from(self, path: _Path) -> None:
        """The state of another path through the same rows."""
        p = self.d + len(path.E)
        np.copyto(self.eta, path.eta)
        np.copyto(self.side, path.side)
        self.b, self.r, self.E = path.b.copy(), path.r.copy(), path.E.copy()
        np.copyto(self.R[:p], path.R[:p])
        np.copyto(self.H[:p, :p], path.H[:p, :p])
        self.changes = 0

    def fit(self, rows: IntArray) -> bool:
        """Add these rows; whether (2) holds then."""
        try:
            for i in rows:
                self.add(int(i))
            self.refresh()
        except RuntimeError:
            return False
        outside = max(float((self.eta - self.q).max()), float((self.q - 1 - self.eta).max()))
        return max(outside, float((-self.r * self.side).max())) < SOLVED

    def add(self, i: int) -> None:
        """Row i with its score, until it fits or has all of its weight."""
        goal = self.q if self.r[i] > 0 else self.q - 1
        self.follow(self.F[i], self.CK[i], self.CK[i, i], goal, i)
        if self.changes > REFRESHED:
            self.refresh()

    def follow(self, phi: Array, k: Array, k0: float, goal: float, own: int | None = None) -> float:
        """g(x) of a row with features `phi`, C k(x, .) and C k(x, x), as its weight t goes from 0 to `goal`.

        Of one of the n rows, `own`, until its residual is 0: then it is active.
        """
        d, q, sign, t = self.d, self.q, float(np.sign(goal)), 0.0
        g = float(phi @ self.b + k @ self.eta)
        for _ in range(100 * (self.n + d)):
            # 1. Where all goes with t:  M dz = -(phi, C k_E),  dg = R'dz + C k.
            E, p = self.E, d + len(self.E)
            beside = np.concatenate([phi, k[E]])
            dz = -sign * (self.H[:p, :p] @ beside)
            dg = dz @ self.R[:p] + sign * k
            if np.abs(dg[E]).max() > FLAT and self.changes:  # which is 0, but for the rounding of all changes
                self._invert()
                continue
            dg_x = float(beside @ dz + sign * k0)
            # 2. Until t is there, or a weight is at its bound, or a residual is 0.
            room = np.where(dz[d:] > 0, q - self.eta[E], self.eta[E] - (q - 1))
            speed = np.abs(dz[d:])
            until = np.where(speed > FLAT, np.maximum(room, 0.0) / np.maximum(speed, FLAT), np.inf)
            leaving = int(until.argmin())
            entering, hit = self._next(dg, own, sign)
            rest = abs(goal - t)
            step = min(rest, float(until[leaving]), hit)
            t, g = t + sign * step, g + step * dg_x
            self.b += step * dz[:d]
            self.eta[E] += step * dz[d:]
            self.r -= step * dg
            if own is not None:
                self.eta[own] = t
            if step == rest:
                if own is not None:
                    self.eta[own], self.side[own] = goal, sign
                return g
            # 3. A row becomes active; or one is no more, which may leave b without a hold in one direction.
            if step == hit:
                self._enter(entering)
            else:
                j = int(E[leaving])
                self.side[j] = np.sign(dz[d + leaving])
                self.eta[j] = q if self.side[j] > 0 else q - 1
                F_E = self.F[E]
                along = np.linalg.solve(F_E.T @ F_E, self.F[j])
                if along @ self.F[j] < 1 - RANK_LOSS:
                    self._leave(leaving)
                    continue
                # Rank loss: F_E along = e_j. t stands still, and b moves until another residual is 0.
                along = -self.side[j] * along
                dg, dg_x = self.F @ along, float(phi @ along)
                entering, step = self._next(dg, own, sign)
                if entering < 0:
                    return sign * np.inf
                g += step * dg_x
                self.b += step * along
                self.r -= step * dg
                self._exchange(leaving, entering)
            if entering == own:
                return g
        raise RuntimeError(f"conditional calibration of {self.n} rows: the path did not end")

    def _next(self, dg: Array, own: int | None, sign: float) -> tuple[int, float]:
        """The row whose residual is 0 next, and how far that is; -1 if there is none."""
        towards = self.side * dg
        if own is not None:
            towards[own] = sign * dg[own]
        rows = np.flatnonzero(towards > FLAT)
        if not len(rows):
            return -1, np.inf
        steps = np.maximum(self.r[rows] / dg[rows], 0.0)
        at = int(steps.argmin())
        return int(rows[at]), float(steps[at])

    def _enter(self, row: int) -> None:
        """H with one more row and column."""
        p = self.d + len(self.E)
        if p == len(self.H):
            self._grow(p)
        H, m = self.H[:p, :p], self.R[:p, row]
        u = H @ m
        left = max(self.CK[row, row] - m @ u, 0.5 * NUGGET * self.CK[row, row])
        H += np.outer(u, u / left)
        self.H[p, :p] = self.H[:p, p] = -u / left
        self.H[p, p] = 1 / left
        self.R[p] = self.CK[row]
        self.E = np.append(self.E, row)
        self.side[row], self.r[row] = 0.0, 0.0
        self.changes += 1

    def _leave(self, at: int) -> None:
        """H without a row and column, whose place the last one takes."""
        p, place = self.d + len(self.E), self.d + at
        H = self.H[:p, :p]
        h = H[:, place].copy()
        H -= np.outer(h, h / h[place])
        H[place], self.R[place] = H[-1], self.R[p - 1]
        H[:, place] = H[:, -1]
        self.E[at] = self.E[-1]
        self.E = self.E[:-1]
        self.changes += 1

    def _exchange(self, at: int, row: int) -> None:
        """H with another row and column in one place: M + e w' + w e', as without either it has no inverse."""
        p, place, j = self.d + len(self.E), self.d + at, self.E[at]
        H = self.H[:p, :p]
        w = self.R[:p, row] - self.R[:p, j]
        w[place] = (self.CK[row, row] - self.CK[j, j]) / 2
        h, Hw = H[:, place].copy(), H @ w
        small = np.array([[1 + w @ h, w @ Hw], [h[place], 1 + w @ h]])
        H -= np.stack([h, Hw], axis=1) @ np.linalg.solve(small, np.stack([Hw, h]))
        self.R[place] = self.CK[row]
        self.E[at] = row
        self.side[row], self.r[row] = 0.0, 0.0
        self.changes += 1

    def refresh(self) -> None:
        """H, z and the residuals anew, from the active rows and the weights of the others."""
        E, d, p = self.E, self.d, self.d + len(self.E)
        M = self._invert()
        self.eta[E] = 0.0
        right = np.concatenate([-self.F.T @ self.eta, self.S[E] - self.CK[E] @ self.eta])
        z = self.H[:p, :p] @ right
        z += self.H[:p, :p] @ (right - M @ z)
        self.b, self.eta[E] = z[:d], z[d:]
        self.r = self.S - self.F @ self.b - self.CK @ self.eta
        self.r[E] = 0.0

    def _invert(self) -> Array:
        """R and H of the active rows anew; M."""
        E, d, p = self.E, self.d, self.d + len(self.E)
        if p > len(self.H):
            self._grow(p)
        self.R[:d], self.R[d:p] = self.F.T, self.CK[E]
        M = np.zeros((p, p))
        M[d:] = self.R[:p, E].T
        M[:d, d:] = M[d:, :d].T
        self.H[:p, :p] = np.linalg.inv(M)
        self.changes = 0
        return M

    def _grow(self, p: int) -> None:
        """Room for p active rows and features, and some more."""
        R, H = np.empty((p + SPARE, self.n)), np.empty((p + SPARE, p + SPARE))
        R[: len(self.R)], H[: len(self.H), : len(self.H)] = self.R, self.H
        self.R, self.H = R, H


@dataclass(frozen=True, eq=False)
class ConditionalCalibration(Calibration):
    """Scores of the calibration rows and where these lie, from which each new row has quantiles of its own.

    `groups` are labels or a table of True and False of shape (m, k), whose columns may overlap: each group has its own
    promise. The kernel is of Matern type (5/2) over the points, with C a multiple of the spread of the calibration
    scores: a rule that does not look at coverage, and that changes by O(1/m) with one row more.

    Attributes
    ----------
    points : array of shape (m, d) or None
        None where rows are not all numbers: groups alone then, or one quantile for all.
    """

    by_row: ClassVar[bool] = True

    points: Array | None = field(default=None, kw_only=True)

    @classmethod
    def of_points(cls, told: Told, y: Array, points: Array | None, groups: Any = None, **origin: Any) -> Self:
        """Score the observations `y` of rows with these points; `origin` is as in `Calibration.of`."""
        band = told.band
        if not len(band):
            raise ValueError("X has no rows: expected at least one calibration point")
        if band.knots is not None:
            raise ValueError(f"calibration={CONDITIONAL!r} with nested_coverages: not offered, expected None")
        labels = None if groups is None else read_overlapping(groups, len(band))
        return cls(lower_scores(band, y), upper_scores(band, y), labels, points=points, **origin)

    def parts(self) -> Iterator[tuple[Any, Calibration]]:
        """All rows together: groups share what is fitted."""
        yield None, self

    def read_rows(
        self, n_rows: int, groups: Any = None, likelihood_ratio: Any = None
    ) -> tuple[AnyArray | None, Array | None]:
        """Groups of the rows to predict, as those of the calibration rows."""
        if self.groups is None or self.groups.ndim == 1:
            return super().read_rows(n_rows, groups, likelihood_ratio)
        read_common_use("groups", True, groups is not None)
        read_common_use("likelihood_ratio", False, likelihood_ratio is not None)
        table = read_overlapping(groups, n_rows)
        if table.shape[1:] != self.groups.shape[1:]:
            raise ValueError(f"groups has shape {table.shape}: expected ({n_rows}, {self.groups.shape[1]})")
        return table, None

    def quantiles(self, *_: Any, **__: Any) -> Array:
        """Refused: each row has its own."""
        self.check_offers("quantile")
        raise NotImplementedError

    def check_offers(self, wanted: str) -> None:
        """Raise the error that names what is not offered; the intervals of other rows are."""
        if wanted != "conformalize":
            raise ValueError(
                f"{wanted} with calibration={CONDITIONAL!r}: not offered, because each row and level has a quantile of "
                "its own; use calibration='symmetric' or 'asymmetric'"
            )

    def distribution(self, told: Told, asked: Asked) -> Any:  # noqa: ARG002
        """Refused as well."""
        self.check_offers("distribution")

    def intervals(self, told: Told, asked: Asked) -> Intervals:
        """The intervals asked for, of rows that a model has told of; nested in the level."""
        groups, _ = self.read_rows(len(told), asked.groups, asked.likelihood_ratio)
        points = None if self.points is None or asked.points_of is None else asked.points_of(told)
        if self.points is not None and (points is None or points.shape[1] != self.points.shape[1]):
            raise ValueError(
                f"calibration={CONDITIONAL!r}: expected rows of {self.points.shape[1]} numbers, as calibrated"
            )
        q = np.empty((len(asked.levels), len(told), 2))
        for place, level in enumerate(asked.levels):
            levels = side_levels(level, asked.kind, asked.lower_share)
            if asked.kind == "symmetric":
                q[place] = self._cutoffs("both", level, points, groups, len(told))[:, None]
            else:
                for side in (0, 1):
                    q[place, :, side] = self._cutoffs(SIDES[1 + side], levels[side], points, groups, len(told))
        order = np.argsort(asked.levels)
        q[order] = np.sort(q, axis=0)  # levels are fitted apart
        q = np.maximum(q, told.band.least_score)
        made = []
        for level, each in zip(asked.levels, q, strict=True):
            short = self.shortage(each, level, asked.kind, asked.lower_share, None)
            made.append((*interval(told.band, *each.T), short))
        return Intervals.of(told, asked, made)

    def shortage(self, q: Array, level: float, kind: Kind, lower_share: float, groups: AnyArray | None) -> str | None:  # noqa: ARG002
        """How many intervals are infinite, unless their side was given a zero share."""
        infinite = np.isposinf(q[:, np.array(side_levels(level, kind, lower_share)) < 1]).any(axis=1).sum()
        if not infinite:
            return None
        return (
            f"confidence level {level:g} needs more calibration rows in the groups of some rows, {self.described()}; "
            f"{infinite} of {len(q)} intervals infinite"
        )

    def described(self, labels: Collection[Any] | None = None) -> str:  # noqa: ARG002
        """How many rows there are, and in how many groups."""
        lost = np.isposinf(self.scores("symmetric")).sum()
        words = f"given: {many(len(self), 'row')}" + (f" ({lost} with an infinite score: zero scale)" if lost else "")
        if self.groups is None:
            return words
        sizes = self._features(self.groups)[:, 1:].sum(axis=0)
        return f"{words} in {many(len(sizes), 'group')}, the smallest of {sizes.min():.0f}"

    def coverage_gap(self, points: Array, level: float) -> Array:
        """`ConditionalQuantile.coverage_gap` around points, of both ends together; 0 without a kernel."""
        kernel = self._kernel
        if kernel is None or self.points is None:
            return np.zeros(len(points))
        return self._fit("both", level).coverage_gap(kernel(points, self.points[self._rows]))

    def _cutoffs(self, side: str, level: float, points: Array | None, groups: AnyArray | None, n: int) -> Array:
        """Quantiles of n rows."""
        if level == 1:
            return np.full(n, np.inf)
        fit, found = self._fit(side, level), np.empty(n)
        for begin in range(0, n, BLOCK):
            rows = slice(begin, min(begin + BLOCK, n))
            kernel = None
            if self._kernel is not None and points is not None and self.points is not None:
                kernel = self._kernel(points[rows], self.points[self._rows])
            features = np.ones((rows.stop - begin, 1)) if groups is None else self._features(groups[rows])
            found[rows] = fit.cutoffs(features, kernel)
        return found

    def _fit(self, side: str, level: float) -> ConditionalQuantile:
        """The fit of one level, kept."""
        if (side, level) not in self._fits:
            rows, scores = self._rows, self._scores(side)
            features = np.ones((len(rows), 1)) if self.groups is None else self._features(self.groups[rows])
            kernel, C = None, 0.0
            if self._kernel is not None and self.points is not None:
                kernel = self._kernel(self.points[rows], self.points[rows])
                finite = scores[np.isfinite(scores)]
                spread = float(np.subtract(*np.quantile(finite, SPREAD[::-1]))) if len(finite) else 0.0
                C = (MANY if len(rows) >= MANY_ROWS else FEW) * spread
            self._fits[side, level] = ConditionalQuantile(scores[rows], level, features, kernel, C)
        return self._fits[side, level]

    def _scores(self, side: str) -> Array:
        return {"lower": self.lower_scores, "upper": self.upper_scores}.get(side, self.scores("symmetric"))

    def _features(self, groups: AnyArray) -> Array:
        """1 and a column for each group."""
        labels = self.groups if self.groups is not None and self.groups.ndim == 1 else None
        table = groups if labels is None else groups[:, None] == np.unique(labels)
        return np.column_stack([np.ones(len(table)), table]).astype(float)

    @cached_property
    def _fits(self) -> dict[tuple[str, float], ConditionalQuantile]:
        return {}

    @cached_property
    def _rows(self) -> IntArray:
        """Those of the fit."""
        if len(self) <= MOST_ROWS:
            return np.arange(len(self))
        return np.sort(np.random.default_rng(0).choice(len(self), MOST_ROWS, replace=False))

    @cached_property
    def _kernel(self) -> StationaryKernel | None:
        """Over points in units of their scatter; None if they are all the same."""
        if self.points is None or not self.points.std(axis=0).any():
            return None
        scale = self.points.std(axis=0)
        lengths = np.where(scale > 0, scale, np.inf)
        median = median_lengthscale(self.points[self._rows] / lengths)
        return StationaryKernel("matern52", tuple((MEDIANS * median * lengths).tolist()))
