"""learn_bands against the same problems written out as semidefinite programs and solved by CVXPY."""

import importlib.util

import pytest

from benchmarks import against_sdp

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cvxpy") is None, reason="CVXPY is not installed (extra 'sdp')"
)
CASES = against_sdp.all_cases(largest=14)[:30]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.index}-{case.kind}-{case.options}")
def test_values_and_functions_equal_those_of_the_sdp(case):
    row = against_sdp.compared(case)
    assert row["status"] == "converged"
    assert row["gap"] <= 1e-6
    assert max(abs(row["primal_off"]), abs(row["dual_off"])) <= 1e-5
    assert row["function_off"] <= 1e-2


def test_every_kind_meets_every_coverage():
    met = {(case.kind, case.options["learning_coverage"]) for case in CASES}
    assert met == {(kind, c) for kind in against_sdp.KINDS for c in (0.5, 0.8, 0.9, 0.99, 1.0)}
    widths = [case.settings["width_penalty"] for case in CASES]
    assert min(widths) < 0.3
    assert max(widths) > 100


def test_another_problem_is_noticed():
    """The comparison can fail: half of the share outside, or a trace penalty one percent off, is another problem."""
    case = against_sdp.SDPCase(13, "training", {"learning_coverage": 0.8, "trace_penalty": 1.0}, largest=14)
    value = against_sdp.solve_ours(case).primal_value
    for change in ({"learning_coverage": 0.9}, {"trace_penalty": 1.01}):
        other = against_sdp.SDPCase(13, "training", case.options | change, largest=14)
        assert abs(against_sdp.solve_reference(other).solution.value - value) > 1e-4 * value
