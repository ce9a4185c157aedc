"""Random problems of every kind, far apart in size, scale and penalties: each must end certified."""

import numpy as np
import pytest

from benchmarks import random_problems

SEEDS, LARGEST, TOL = range(40), 60, 1e-4


def covers(row):
    """Every point is covered, unless some may lie outside."""
    return row["violation"] >= 0 and (row["violation"] <= 1e-9 or "'learning_coverage': 1.0" not in row["options"])


def check_rows(rows):
    failed = {row["seed"]: row for row in rows if not (covers(row) and -1e-12 <= row["gap"] <= TOL)}
    assert not failed, f"not certified: seeds {sorted(failed)}: {list(failed.values())}"
    assert {row["status"] for row in rows} == {"converged"}


def solved(seed, largest=LARGEST):
    return random_problems.solve_one(seed, largest, tol=TOL)


def test_every_random_problem_is_certified():
    check_rows([solved(seed) for seed in SEEDS])


def test_what_once_failed():
    """Directions that are nothing but rounding, of which LAPACK found no singular values; a dense solve from whose end
    no step led on, though through easier problems the same is solved in a third of a second."""
    check_rows([solved(seed, 300) for seed in (1874, 1252)])


def test_all_kinds_are_among_them():
    kinds, penalties, coverages = set(), set(), []
    for seed in SEEDS:
        X, r, options = random_problems.random_problem(seed, LARGEST)
        assert 5 <= len(X) == len(r) <= LARGEST
        assert 1 <= X.shape[1] <= 10
        kinds.add(options["symmetry_kind"])
        coverages.append(options["learning_coverage"])
        penalty = options["symmetry_penalty"]
        penalties.add(penalty if penalty in (0.0, float("inf")) else type(penalty))
    assert kinds == {"training", "operator"}
    assert 0.3 < np.mean(np.array(coverages) < 1) < 0.7
    assert {0.0, float("inf"), float, tuple} <= penalties


def test_a_failed_solve_is_reported_with_its_seed():
    row = {**random_problems.solve_one(0, LARGEST, tol=0.5), "options": "{'learning_coverage': 1.0}"}
    with pytest.raises(AssertionError, match=r"not certified: seeds \[0\]"):
        check_rows([{**row, "gap": max(row["gap"], 2e-4)}])
    with pytest.raises(AssertionError, match=r"not certified: seeds \[0\]"):
        check_rows([{**row, "gap": 0.0, "violation": 1e-6}])
