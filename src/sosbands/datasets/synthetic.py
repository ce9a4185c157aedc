"""Six synthetic regression problems whose conditional quantiles are known exactly.

Every case draws the coordinates of X independently, and then Y = m(X) + noise(X, ε) with ε independent of X.
Three small pieces make a case: the law of a coordinate, the location m, and the noise.

====  ==========  ============================  =================================================
case  X           m(x)                          noise
====  ==========  ============================  =================================================
1     U[-1, 1]    Gramacy-Lee curve             sqrt(0.1 + 2x²) N(0, 1)
2     N(0, I_d)   Σ_j x_j / 2                   Σ_j abs(sin x_j) N(0, 1)
3     U[-1, 1]    sin 5x                        x LogNormal(0, 1)
4     U[0, 4π]    sin x                         N(0, 1), times 0.2 below 0, 0.4(sin x + 1) + 0.1 above
5     U[-1, 1]    sin 2x                        (0.5 + 2x) Exp(1)
6     U[0, 1]^d   2 sin(π β'x) + π β'x          sqrt(1 + (β'x)²) N(0, 1)
====  ==========  ============================  =================================================
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from sosbands._arguments import check, is_count

FloatArray = NDArray[np.float64]
RandomState = int | np.random.Generator | np.random.RandomState | None
_Function = Callable[[FloatArray], FloatArray]  # (n, d) -> (n,)


@dataclass(frozen=True)
class ScaledNoise:
    """Noise s(x) ε; a negative scale s(x) mirrors the law of ε, so that its tail points downwards."""

    law: Any
    scale: _Function

    def evaluate(self, X: FloatArray, eps: FloatArray) -> FloatArray:
        """Return s(x_i) ε_ij, shape (n, k)."""
        return self.scale(X)[:, None] * eps

    def quantile(self, X: FloatArray, levels: FloatArray) -> FloatArray:
        """Return s(x) Q(level), or s(x) Q(1 - level) where s(x) < 0, shape (n, k)."""
        s = self.scale(X)[:, None]
        # The survival inverse is Q(1 - level) without the rounding of 1 - level.
        Q: FloatArray = np.where(s < 0, self.law.isf(levels), self.law.ppf(levels))
        return s * Q


@dataclass(frozen=True)
class TwoSidedNoise:
    """Noise s_lo(x) ε for ε < 0 and s_up(x) ε otherwise, with both scales positive.

    Each side keeps the mass that ε gives it: one half for a normal ε. The classical split normal, which
    rescales the two halves of the density to meet at the mode, is another law.
    """

    law: Any
    scale_below: _Function
    scale_above: _Function

    def evaluate(self, X: FloatArray, eps: FloatArray) -> FloatArray:
        """Return the scaled ε_ij, shape (n, k)."""
        return np.where(eps < 0, self.scale_below(X)[:, None], self.scale_above(X)[:, None]) * eps

    def quantile(self, X: FloatArray, levels: FloatArray) -> FloatArray:
        """Return the image of Q(level), shape (n, k): the map is increasing, so quantiles go through it."""
        return self.evaluate(X, np.asarray(self.law.ppf(levels))[None, :])


@dataclass(frozen=True)
class SyntheticCase:
    """A regression problem with known conditional law; build one with `synthetic_case`.

    Attributes
    ----------
    number, name, n_features : int, str, int
        Which case this is, and the dimension d of X.
    n_learning, width_penalty : int, float
        Size of the learning sample and penalty b on the mean width in the comparison figures.
    point_model : {"gp", "spline"}
        Homoscedastic Gaussian process, or cubic smoothing spline.
    """

    number: int
    name: str
    n_learning: int
    width_penalty: float
    point_model: Literal["gp", "spline"]
    feature_law: Any = field(repr=False)
    location_function: _Function = field(repr=False)
    noise: ScaledNoise | TwoSidedNoise = field(repr=False)
    n_features: int = 1

    def sample(self, n: int, random_state: RandomState = None) -> tuple[FloatArray, FloatArray]:
        """Draw n independent pairs: X of shape (n, d) and y of shape (n,)."""
        shape = (_check_integer("n", n, minimum=0), self.n_features)
        rng = _random_source(random_state)
        X = np.asarray(self.feature_law.rvs(size=shape, random_state=rng))
        return X, self.sample_conditional(X, 1, rng)[:, 0]

    def sample_conditional(self, X: ArrayLike, n_samples: int, random_state: RandomState = None) -> FloatArray:
        """Draw n_samples independent values of Y given each row of X, shape (n, n_samples)."""
        X = self._check_features(X)
        shape = (len(X), _check_integer("n_samples", n_samples, minimum=0))
        eps = np.asarray(self.noise.law.rvs(size=shape, random_state=_random_source(random_state)))
        return self.location_function(X)[:, None] + self.noise.evaluate(X, eps)

    def location(self, X: ArrayLike) -> FloatArray:
        """Return m(x), shape (n,): the value at ε = 0, which is neither mean nor median in cases 3 and 5."""
        return self.location_function(self._check_features(X))

    def quantile(self, X: ArrayLike, level: ArrayLike) -> FloatArray:
        """Return the conditional quantiles of Y: (n,) for one level, (n, k) for a sequence of k levels."""
        X, levels = self._check_features(X), _check_levels("level", level, max_ndim=1)
        Q = self.location_function(X)[:, None] + self.noise.quantile(X, np.atleast_1d(levels))
        return Q if levels.ndim else Q[:, 0]

    def oracle_interval(self, X: ArrayLike, confidence_level: float = 0.9) -> FloatArray:
        """Return the quantiles at α/2 and 1 - α/2 with 1 - α the confidence level, shape (n, 2)."""
        half = (1.0 - float(_check_levels("confidence_level", confidence_level, max_ndim=0))) / 2
        return self.quantile(X, [half, 1.0 - half])

    def _check_features(self, X: ArrayLike) -> FloatArray:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X has shape {X.shape}: case {self.number} expected (n, {self.n_features})")
        if not np.isfinite(X).all():
            raise ValueError(f"X holds {np.sum(~np.isfinite(X))} values that are NaN or infinite: expected none")
        return X


def _check_integer(argument: str, value: Any, *, minimum: int) -> int:
    check(argument, value, is_count(value) and value >= minimum, f"an integer >= {minimum}")
    return int(value)


def _check_levels(argument: str, value: ArrayLike, *, max_ndim: int) -> FloatArray:
    levels = np.asarray(value, dtype=np.float64)
    # Written so that NaN, for which every comparison is false, is refused too.
    if levels.ndim > max_ndim or not np.all((levels > 0) & (levels < 1)):
        expected = "a number in (0, 1)" + " or a flat sequence of them" * max_ndim
        raise ValueError(f"{argument}={value!r}: expected {expected}")
    return levels


def _random_source(random_state: RandomState) -> np.random.Generator | np.random.RandomState:
    # scikit-learn's helper refuses a Generator, NumPy's refuses a RandomState before 2.2: hence our own.
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    seed = None if random_state is None else _check_integer("random_state", random_state, minimum=0)
    return np.random.default_rng(seed)


# Functions of the module and partial, no closures, so that a case can be pickled.
def _location(number: int, X: FloatArray, shift: float = 1.0) -> FloatArray:
    """m(x) of a case."""
    if number == 1:
        u = 10 * X[:, 0] + shift
        return np.where(u <= 9.6, np.sin(np.pi * u / 5) + 0.2 * np.cos(4 * np.pi * u / 5), u / 10 - 1)
    if number == 2:
        return np.asarray(0.5 * X.sum(axis=1))
    if number == 6:
        t = np.pi * _projection(X)
        return 2 * np.sin(t) + t
    return np.asarray(np.sin({3: 5.0, 4: 1.0, 5: 2.0}[number] * X[:, 0]))


def _scale(number: int, X: FloatArray) -> FloatArray:
    """Scale of the noise of a case; of case 4 that above 0."""
    if number == 1:
        return np.sqrt(0.1 + 2 * X[:, 0] ** 2)
    if number == 2:
        return np.asarray(np.abs(np.sin(X)).sum(axis=1))
    if number == 4:
        return 0.4 * (np.sin(X[:, 0]) + 1) + 0.1
    if number == 6:
        return np.hypot(1.0, _projection(X))
    return {3: 0.0, 5: 0.5}[number] + {3: 1.0, 5: 2.0}[number] * X[:, 0]


def _scale_4_below(X: FloatArray) -> FloatArray:
    return np.full(len(X), 0.2)


def _projection(X: FloatArray) -> FloatArray:
    return np.asarray(X.sum(axis=1) / np.sqrt(X.shape[1]))  # β'x with β = (1, ..., 1)/√d


# SciPy describes a uniform law by its left end and its length.
_NORMAL, _CENTRED, _UNIT, _TURNS = stats.norm(), stats.uniform(-1, 2), stats.uniform(0, 1), stats.uniform(0, 4 * np.pi)
_LAWS = {1: _NORMAL, 2: _NORMAL, 3: stats.lognorm(s=1.0), 5: stats.expon(), 6: _NORMAL}
_M = {number: partial(_location, number) for number in range(1, 7)}
_NOISE = {number: ScaledNoise(law, partial(_scale, number)) for number, law in _LAWS.items()}
_CASES = {
    1: SyntheticCase(1, "gramacy_lee", 100, 10.0, "gp", _CENTRED, _M[1], _NOISE[1]),
    2: SyntheticCase(2, "sine_scale", 100, 100.0, "gp", _NORMAL, _M[2], _NOISE[2]),
    3: SyntheticCase(3, "lognormal", 100, 10.0, "spline", _CENTRED, _M[3], _NOISE[3]),
    4: SyntheticCase(
        4, "two_sided", 500, 10.0, "spline", _TURNS, _M[4], TwoSidedNoise(_NORMAL, _scale_4_below, partial(_scale, 4))
    ),
    5: SyntheticCase(5, "exponential", 100, 10.0, "spline", _CENTRED, _M[5], _NOISE[5]),
    6: SyntheticCase(6, "mild_scale", 100, 0.0, "gp", _UNIT, _M[6], _NOISE[6]),
}
_ANY_DIMENSION = (2, 6)
CASE_NUMBERS: tuple[int, ...] = tuple(_CASES)


def synthetic_case(
    number: int, n_features: int = 1, *, form: Literal["appendix", "classical"] = "appendix"
) -> SyntheticCase:
    """Return one of the six cases.

    Parameters
    ----------
    number : int
        One of `CASE_NUMBERS`.
    n_features : int, default=1
        Dimension d of X; more than 1 in cases 2 and 6 only. In case 6 we take β = (1, ..., 1)/√d, the
        vector of norm 1 with equal entries, which is the paper's β = 1 for d = 1.
    form : {"appendix", "classical"}, default="appendix"
        Location of case 1. Both read the curve sin(πu/5) + 0.2 cos(4πu/5) for u <= 9.6, u/10 - 1 beyond,
        at u = 10x + 1 (appendix: it breaks at x = 0.86) or u = 10(1 + x) (classical: at x = -0.04).
    """
    if _check_integer("number", number, minimum=1) not in _CASES:
        raise ValueError(f"number={number!r}: expected one of {CASE_NUMBERS}")
    if _check_integer("n_features", n_features, minimum=1) > 1 and number not in _ANY_DIMENSION:
        raise ValueError(f"n_features={n_features!r}: case {number} expected 1")
    forms = ("appendix", "classical") if number == 1 else ("appendix",)
    if form not in forms:
        raise ValueError(f"form={form!r}: case {number} expected one of {forms}")
    case = replace(_CASES[int(number)], n_features=int(n_features))
    if form == "classical":
        return replace(case, name="gramacy_lee_classical", location_function=partial(_location, 1, shift=10.0))
    return case
