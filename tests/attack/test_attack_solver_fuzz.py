"""The hostile problems of the attack are of every kind, and a planted defect of a certificate is caught."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from attack import hostile, recheck, solver_fuzz
from sosbands import learn_bands
from sosbands.solvers import Status


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


def test_most_of_them_are_solved():
    """Refusing everything would breach no law."""
    found = [solver_fuzz.attempt(number) for number in range(40)]
    assert sum("converged" in outcome for outcome in found) >= 24


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
    ("penalty", "kind"), [(0.0, "training"), (2.0, "training"), (np.inf, "training"), ((0.3, 2.0), "operator")]
)
def test_a_certificate_is_recomputed_and_a_wrong_one_is_noticed(penalty, kind, coverage):
    rng = np.random.default_rng(1)
    X, r = rng.standard_normal((15, 2)), rng.standard_normal(15)
    options = {"learning_coverage": coverage, "symmetry_penalty": penalty, "symmetry_kind": kind}
    bands = learn_bands(X, r, **options)
    right = recheck.recheck(bands, r, recheck.costs_of(options))
    assert all(right[name] <= 1e-12 for name in ("primal_off", "dual_off", "short", "outside_box", "crossed"))
    other = recheck.recheck(bands, 1.1 * r, recheck.costs_of(options))
    assert other["dual_off"] > 0.01
    assert other["short"] > 0.01 or coverage < 1


def test_errors_are_told_apart():
    assert solver_fuzz.is_refusal(ValueError("width_penalty=-1: expected a number >= 0"))
    assert not solver_fuzz.is_refusal(ValueError("array must not contain infs or NaNs"))
    assert not solver_fuzz.is_refusal(OverflowError("Numerical result out of range"))


# ---------------------------------------------------------------- planted defects

CONVERGES = 21  # 51 points, penalties as they are


def another_penalty(X, r, **options):
    return learn_bands(X, r, **{**options, "trace_penalty": 1.01 * options["trace_penalty"]})


def a_foreign_warning(X, r, **options):
    warnings.warn("overflow", RuntimeWarning, stacklevel=2)
    return learn_bands(X, r, **options)


def a_missed_tolerance_without_a_word(X, r, **options):
    return replace(learn_bands(X, r, **options), status=Status.STALLED)


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (lambda X, r, **options: learn_bands(X, 1.001 * r, **options), "wrong certificate"),
        (another_penalty, "wrong certificate"),
        (lambda *_, **__: [][0], "crashed: IndexError"),
        (a_foreign_warning, "warning of another package"),
        (a_missed_tolerance_without_a_word, "status stalled without a warning"),
    ],
)
def test_a_planted_defect_is_caught(monkeypatch, planted, words):
    assert solver_fuzz.attempt(CONVERGES) == "converged"
    monkeypatch.setattr(solver_fuzz, "learn_bands", planted)
    with pytest.raises(AssertionError, match=words):
        solver_fuzz.attempt(CONVERGES)
