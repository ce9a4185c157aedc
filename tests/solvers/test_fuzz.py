"""A few of the hostile problems of benchmarks/fuzz.py: an answer or a named refusal, and no wrong certificate."""

import numpy as np
import pytest

from benchmarks import fuzz, hostile, limited, recheck
from sosbands import learn_bands

SEEDS = range(40)
LIMIT = 40.0


@pytest.fixture(scope="module")
def rows():
    return [fuzz.attempt_limited(seed, LIMIT) for seed in SEEDS]


def test_every_hostile_problem_ends_in_an_answer_or_a_named_refusal(rows):
    bad = {row["seed"]: row for row in rows if row["outcome"] not in ("converged", "warned", "refused")}
    assert not bad, f"seeds {sorted(bad)}: {list(bad.values())}"
    outcomes = [row["outcome"] for row in rows]
    assert outcomes.count("converged") >= 0.6 * len(rows)


def test_no_certificate_is_wrong(rows):
    wrong = {row["seed"]: row for row in rows if row.get("wrong")}
    assert not wrong, f"seeds {sorted(wrong)}: {list(wrong.values())}"
    assert sum("dual_off" in row for row in rows) >= 0.6 * len(rows)


def test_no_warning_of_another_package_escapes(rows):
    assert [row["seed"] for row in rows if row.get("raw_warnings")] == []


def test_the_problems_are_of_every_kind():
    drawn = [hostile.hostile_problem(seed) for seed in range(200)]
    options = [chosen for _, _, chosen in drawn]
    assert {len(X) for X, _, _ in drawn} >= set(range(1, 61, 10))
    assert {str(o["rank"]) for o in options} == {str(rank) for rank in hostile.RANKS}
    assert {o["solver"] for o in options} == set(hostile.SOLVERS)
    assert {o["kernel"] for o in options if isinstance(o["kernel"], str)} == {*hostile.NAMED, "precomputed"}
    assert any(not isinstance(o["kernel"], str) for o in options)
    assert any(isinstance(o["symmetry_penalty"], tuple) for o in options)
    assert sum(o["learning_coverage"] < 1 for o in options) > 60
    sizes = [np.abs(r).max() for _, r, _ in drawn]
    assert min(sizes) == 0
    assert any(0 < size < 1e-300 for size in sizes)
    assert any(r.dtype.kind == "i" for _, r, _ in drawn)


# ---------------------------------------------------------------- the tools themselves


def test_eigenvalues_in_long_double():
    """A Hilbert matrix has eigenvalues far below the rounding of double precision; their product is known."""
    n = 10
    H = 1 / (np.arange(n)[:, None] + np.arange(n)[None, :] + np.longdouble(1))
    w = recheck.long_eigenvalues(H)
    np.testing.assert_allclose(np.sum(w), np.trace(H), rtol=1e-18)
    np.testing.assert_allclose(np.sum(w**2), np.sum(H**2), rtol=1e-17)
    rotated = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0].astype(np.longdouble)
    Q = rotated @ (3 * np.eye(n) - rotated.T @ rotated) / 2
    known = np.array([2.0**k for k in range(-n // 2, n // 2)], dtype=np.longdouble)
    np.testing.assert_allclose(recheck.long_eigenvalues((Q * known) @ Q.T), known, rtol=1e-16)


@pytest.mark.parametrize("coverage", [0.8, 1.0])
@pytest.mark.parametrize(
    "symmetry",
    [
        {"symmetry_penalty": 0.0},
        {"symmetry_penalty": 2.0},
        {"symmetry_penalty": np.inf},
        {"symmetry_penalty": (0.3, 2.0), "symmetry_kind": "operator"},
    ],
)
def test_a_certificate_is_recomputed_and_a_wrong_one_is_noticed(symmetry, coverage):
    rng = np.random.default_rng(1)
    X, r = rng.standard_normal((15, 2)), rng.standard_normal(15)
    options = {"learning_coverage": coverage, **symmetry}
    bands = learn_bands(X, r, **options)
    right = recheck.recheck(bands, r, recheck.costs_of(options))
    assert all(right[name] <= 1e-12 for name in ("primal_off", "dual_off", "short", "outside_box", "crossed"))
    other = recheck.recheck(bands, 1.1 * r, recheck.costs_of(options))
    assert other["dual_off"] > 0.01
    assert other["short"] > 0.01 or coverage < 1


@pytest.mark.parametrize(("seconds", "expected"), [(0.2, limited.OVER_TIME), (20.0, "returned")])
def test_a_call_is_held_to_its_limit(seconds, expected):
    outcome, result = limited.call_limited(busy, (1.0,), seconds)
    assert outcome == expected
    assert result == (1.0 if expected == "returned" else None)


def busy(seconds):
    """A loop that no exception ends."""
    from time import perf_counter

    end = perf_counter() + seconds
    while perf_counter() < end:
        pass
    return seconds


def test_errors_are_told_apart():
    assert fuzz._of_error(ValueError("width_penalty=-1: expected a number >= 0"))["outcome"] == "refused"
    assert fuzz._of_error(ValueError("array must not contain infs or NaNs"))["outcome"] == "crashed"
    assert fuzz._of_error(OverflowError("Numerical result out of range"))["outcome"] == "crashed"
