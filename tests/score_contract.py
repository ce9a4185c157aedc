"""What every conformal score must keep, whatever it is: each check raises AssertionError, also on broken scores.

A score enters as in `SCORES`, not yet fitted; the functions that it is fitted to are those of `functions`.
"""

import numpy as np

from sosbands.conformal import Calibration, interval

KINDS = ("symmetric", "asymmetric")
LEVELS = (0.2, 0.5, 0.8, 0.9, 0.95)


def functions(rng, n):
    """Prediction and two functions over three orders of magnitude; one in ten is zero, or as good as."""
    m = 10 * rng.standard_normal(n)
    below, above = 10.0 ** rng.uniform(-2, 1, (2, n)) * (rng.uniform(size=(2, n)) > 0.05)
    below, above = np.where(rng.uniform(size=(2, n)) < 0.05, 1e-9, [below, above])
    return m, below, above


def calibrated_ends(score, noise, *, kind, levels=LEVELS, n=1000, n_calibration=60, seed=0, c=1.0, d=0.0):
    """Prediction and intervals at new rows for each level, (L, n, 2), after ``y -> c y + d`` everywhere."""
    rng = np.random.default_rng(seed)
    learning, calibration, new = (functions(rng, size) for size in (200, n_calibration, n))
    y = calibration[0] + noise(rng, n_calibration) * (0.1 + calibration[1] + calibration[2])
    fitted = score.fitted(*(f.mean() for f in _moved(learning, c, d)[1:]))
    scores = Calibration.of(fitted.band(*_moved(calibration, c, d)), c * y + d)
    rows = _moved(new, c, d)
    made = [interval(fitted.band(*rows), *scores.quantiles(level, kind)[0]) for level in levels]
    return rows[0], np.array([ends for ends, _ in made]), np.array([crossed for _, crossed in made])


def _moved(rows, c, d):
    m, below, above = rows
    below, above = (above, below) if c < 0 else (below, above)
    return c * m + d, abs(c) * below, abs(c) * above


# skewed either way, and so far to one side of the prediction that one-sided quantiles of signed scores are negative
NOISES = {
    "skewed": lambda rng, n: rng.exponential(size=n) - 0.7,
    "skewed down": lambda rng, n: 0.7 - rng.exponential(size=n),
    "all above": lambda rng, n: 1 + rng.exponential(size=n),
    "all below": lambda rng, n: -1 - rng.exponential(size=n),
    "none": lambda rng, n: np.zeros(n),  # noqa: ARG005
    "ties": lambda rng, n: rng.integers(-1, 2, n).astype(float),
}


def check_never_crossed(score, n=100_000):
    """No interval of 10^5 rows is empty, and each holds the prediction."""
    for kind in KINDS:
        for name, noise in NOISES.items():
            m, ends, crossed = calibrated_ends(score, noise, kind=kind, n=n)
            assert not crossed.any(), f"{kind}, {name}: {crossed.sum()} crossed"
            assert (ends[:, :, 0] <= m).all(), f"{kind}, {name}"
            assert (ends[:, :, 1] >= m).all(), f"{kind}, {name}"


def check_nested(score):
    """An interval of a higher level holds that of a lower one, to the last digit."""
    for kind in KINDS:
        for name, noise in NOISES.items():
            _, ends, _ = calibrated_ends(score, noise, kind=kind)
            for inner, outer in zip(ends[:-1], ends[1:], strict=True):
                held = (outer[:, 0] <= inner[:, 0]) & (inner[:, 1] <= outer[:, 1])
                assert held.all(), f"{kind}, {name}: {np.sum(~held)} not nested"


def check_equivariant(score):
    """``y -> c y + d`` moves the intervals with it; a negative c turns below into above."""
    for kind in KINDS:
        for name, noise in NOISES.items():
            _, ends, _ = calibrated_ends(score, noise, kind=kind)
            for c, d in ((3.0, -40.0), (-3.0, 7.0), (-0.01, 0.0)):
                _, found, _ = calibrated_ends(score, noise, kind=kind, c=c, d=d)
                expected = np.sort(c * ends + d, axis=2)
                scale = np.abs(expected[np.isfinite(expected)]).max()
                np.testing.assert_allclose(found, expected, atol=1e-11 * scale, err_msg=f"{kind}, {name}, {c}")


def check_rows_alone(score):
    """The band of a row does not depend on the rows that it comes with."""
    m, below, above = functions(np.random.default_rng(0), 500)
    fitted = score.fitted(0.7, 1.1)
    together = fitted.band(m, below, above)
    for rows in (slice(0, 1), slice(7, 30)):
        alone = fitted.band(m[rows], below[rows], above[rows])
        np.testing.assert_array_equal(alone.lower, together.lower[rows])
        np.testing.assert_array_equal(alone.upper, together.upper[rows])
        for unit, of_all in zip(alone.units, together.units, strict=True):
            np.testing.assert_array_equal(unit, np.broadcast_to(of_all, 500)[rows] if unit.ndim else of_all)
