"""The room of experiments: stores that are packed, configurations, verdicts, and the numbers printed in the paper."""

import gzip
import math

import numpy as np
import pytest

from sosbands.comparison import MeanInterval, StoreError, corrected_interval, read_store
from sosbands.experiments import ENTRIES, Config, find_entry
from sosbands.experiments.claims_real import asymmetric_is_wider, closest_worst_set, covers
from sosbands.experiments.claims_synthetic import fewer_asymmetric, lowest
from sosbands.experiments.methods import OURS, PAPER, PAPER_CQR, SHOWN, chosen, interval_method
from sosbands.experiments.paper_numbers import printed
from sosbands.experiments.real_runs import inliers
from sosbands.experiments.synthetic_runs import Draw
from sosbands.experiments.verdicts import CONFIRMED, NOT_CONFIRMED, OPEN, all_of, below, near, paired, share_difference


def double(axes, seed):
    if axes["k"] == 3:
        raise ValueError("three is not doubled")
    return {"twice": 2 * axes["k"], "drawn": seed}


def test_a_run_is_packed_and_continued(tmp_path):
    config = Config(tmp_path, "quick")
    first = config.run("numbers", double, [{"k": 1}, {"k": 3}])
    assert [row.get("twice") for row in first] == [2, None]
    assert first[1]["error"] == "three is not doubled"
    packed = tmp_path / "quick" / "numbers.jsonl.gz"
    assert [path.name for path in packed.parent.iterdir()] == [packed.name]
    before = packed.read_bytes()
    again = config.run("numbers", double, [{"k": 1}, {"k": 2}, {"k": 3}])
    assert again[0] == first[0]  # seconds too: it was not run again
    assert again[1]["twice"] == 4
    assert len(read_store(packed).records) == 3
    assert packed.read_bytes() != before
    packed_again = packed.read_bytes()
    config.run("numbers", double, [{"k": 2}])
    assert packed.read_bytes() == packed_again  # nothing new, the same bytes


def test_an_interrupted_run_leaves_its_rows_and_the_next_takes_them(tmp_path):
    config = Config(tmp_path, "quick")

    class Interrupted:
        __qualname__ = "double"

        def __call__(self, axes, seed):
            if axes["k"] == 2:
                raise KeyboardInterrupt
            return double(axes, seed)

    with pytest.raises(KeyboardInterrupt):
        config.run("numbers", Interrupted(), [{"k": 1}, {"k": 2}])
    plain = tmp_path / "quick" / "numbers.jsonl"
    assert plain.exists()
    stored = Config(tmp_path, "quick", compute_missing=False).run("numbers", double, [{"k": 1}, {"k": 2}])
    assert [row["twice"] for row in stored] == [2]
    rows = config.run("numbers", double, [{"k": 1}, {"k": 2}])
    assert [row["twice"] for row in rows] == [2, 4]
    assert not plain.exists()


def test_stored_rows_only(tmp_path):
    config = Config(tmp_path, "quick", compute_missing=False)
    assert config.run("numbers", double, [{"k": 1}]) == []
    assert not (tmp_path / "quick").exists()


def test_a_damaged_packed_store_is_an_error_with_a_name(tmp_path):
    path = tmp_path / "numbers.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}")[:-6])
    with pytest.raises(StoreError, match="damaged gzip"):
        read_store(path)


def test_presets():
    with pytest.raises(ValueError, match=r"preset='slow': expected one of \['quick', 'paper'\]"):
        Config("x", "slow")
    assert Config("x", "paper").pick(quick=1, paper=2) == 2
    assert Config("x").pick(quick=1, paper=2) == 1


def test_every_entry_is_a_file_with_compute_and_draw():
    from importlib import import_module

    for entry in ENTRIES:
        module = import_module(f"sosbands.experiments.{entry.name.replace('-', '_')}")
        assert callable(module.compute), entry.name
        assert callable(module.draw), entry.name
    with pytest.raises(ValueError, match=r"name='figure-7': expected one of \['claims'"):
        find_entry("figure-7")


def test_printed_numbers():
    assert printed("mean_width", "Bike", PAPER) == (162.66, 5.86)
    assert printed("marginal_coverage", "Yacht", PAPER_CQR) == (0.895, 0.055)
    assert printed("asym_wider_percent", "All datasets") == (69.17, None)
    assert printed("mean_width", "Bike", OURS) is None


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
def test_methods_learn_from_all_rows_and_say_what_they_chose():
    draw = Draw.of(5, 40, seed=3)
    model, _ = draw.fit(PAPER)
    assert len(model.learning_rows_) == 40
    assert model.residual_rule_ == "in-sample"
    rules = model._rules(0)
    assert (rules.criterion, rules.symmetry_test, rules.independence) == ("hsic", "kruskal-wallis", "naive")
    found = chosen(model)
    assert found["symmetry_penalty"] == model.symmetry_penalty_
    assert found["p_independence"] == model.tuning_.independence.p_value
    judged = draw.judge(model)
    assert judged["coverage"] == pytest.approx(0.9, abs=0.04)
    assert judged["acg_combined"] == pytest.approx((judged["acg_lower"] + judged["acg_upper"]) / 2)
    assert chosen(interval_method("split", 0)) == {}
    assert set(SHOWN) >= {OURS, PAPER, PAPER_CQR, "gp", "het-gp", "squared-sos"}


def test_draws_are_paired_and_their_parts_independent():
    a, b = Draw.of(1, 30, seed=1), Draw.of(1, 60, seed=1)
    assert np.array_equal(a.X_test, b.X_test)
    assert not np.array_equal(a.X[:20], a.X_calibration[:20])


def test_inliers_leave_out_the_worst_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    y[[5, 17, 40]] += np.array([3.0, -3.0, 3.0])
    assert set(range(60)) - set(inliers(X, y, 0.05)) == {5, 17, 40}
    assert np.array_equal(inliers(X, y, 0.0), np.arange(60))


# Verdicts


@pytest.mark.parametrize(
    ("interval", "word"),
    [((-2, -3, -1), CONFIRMED), ((2, 1, 3), NOT_CONFIRMED), ((-1, -3, 1), OPEN), ((1, math.nan, math.nan), OPEN)],
)
def test_below(interval, word):
    assert below(MeanInterval(*interval)) == word


@pytest.mark.parametrize(
    ("interval", "word"),
    [((0.01, -0.02, 0.04), CONFIRMED), ((0.2, 0.1, 0.3), NOT_CONFIRMED), ((0.0, -0.2, 0.2), OPEN)],
)
def test_near(interval, word):
    assert near(MeanInterval(*interval), 0.05) == word


def test_all_of():
    assert all_of(CONFIRMED, CONFIRMED) == CONFIRMED
    assert all_of(CONFIRMED, OPEN) == OPEN
    assert all_of(OPEN, NOT_CONFIRMED) == NOT_CONFIRMED


def test_share_difference_against_published_intervals():
    # Newcombe (1998), Statistics in Medicine 17, method 10, example (a): 56/70 - 48/80
    first, second = np.arange(70) < 56, np.arange(80) < 48
    found = share_difference(first, second)
    assert found.mean == pytest.approx(0.2)
    assert found.lower == pytest.approx(0.0524, abs=5e-5)
    assert found.upper == pytest.approx(0.3339, abs=5e-5)


def synthetic_rows(gaps):
    return [
        {"case": 3, "method": method, "repetition": k, "acg_combined": value, "error_type": None}
        for method, values in gaps.items()
        for k, value in enumerate(values)
    ]


def test_lowest_is_paired_against_the_best_rival():
    gaps = {PAPER: [0.02, 0.04, 0.06], "gp": [0.03, 0.05, 0.071], PAPER_CQR: [0.1, 0.1, 0.1]}
    verdict = lowest(synthetic_rows(gaps), 3, "acg_combined", "ACG")
    assert verdict.word == CONFIRMED  # all differences near -0.01 though the values vary
    assert "next hom. GP 0.0503" in verdict.figure
    assert lowest(synthetic_rows({**gaps, "gp": [0.01, 0.03, 0.049]}), 3, "acg_combined", "ACG").word == NOT_CONFIRMED
    assert lowest(synthetic_rows({**gaps, "gp": [0.03, 0.03, 0.07]}), 3, "acg_combined", "ACG").word == OPEN


def test_paired_leaves_out_draws_that_one_method_lacks():
    rows = synthetic_rows({PAPER: [1.0, 2.0, 3.0], "gp": [0.5, 0.5]})
    assert paired(rows, "acg_combined", PAPER, "gp").tolist() == [0.5, 1.5]


def test_fewer_asymmetric():
    def rows(n, asymmetric, of):
        return [
            {"case": 2, "n": n, "point_model": "gp", "method": PAPER, "error_type": None}
            | {"symmetry_penalty": 0.0 if k < asymmetric else math.inf}
            for k in range(of)
        ]

    settings = ((2, 100, "gp"), (2, 200, "gp"))
    assert fewer_asymmetric(rows(100, 60, 100) + rows(200, 30, 100), *settings).word == CONFIRMED
    assert fewer_asymmetric(rows(100, 30, 100) + rows(200, 60, 100), *settings).word == NOT_CONFIRMED
    assert fewer_asymmetric(rows(100, 31, 100) + rows(200, 30, 100), *settings).word == OPEN


def real_rows(method, coverage, worst, n=10, dataset="Concrete"):
    ends = {"worst_set_coverage_lower": worst, "worst_set_coverage_upper": worst}
    return [
        {"dataset": dataset, "method": method, "repetition": k, "coverage": coverage + 0.001 * (k % 2), **ends}
        | {"error_type": None}
        for k in range(n)
    ]


def test_closest_worst_set():
    near_rows = real_rows(PAPER, 0.9, 0.94)
    assert closest_worst_set(near_rows + real_rows("gp", 0.9, 0.9), "Concrete").word == CONFIRMED
    assert closest_worst_set(near_rows + real_rows("gp", 0.9, 0.951), "Concrete").word == NOT_CONFIRMED


def test_covers():
    sets = [row for k in range(4) for row in real_rows(PAPER, 0.9 + 0.001 * k, 0.9, dataset=f"set {k}")]
    assert covers(sets).word == CONFIRMED
    sets = [row for k in range(4) for row in real_rows(PAPER, 0.85 + 0.001 * k, 0.9, dataset=f"set {k}")]
    assert covers(sets).word == NOT_CONFIRMED


def test_asymmetric_is_wider():
    def rows(wider, of):
        return [
            {"mean_width": 1.0, "asymmetric_mean_width": 1.1 if k < wider else 0.9, "error_type": None}
            for k in range(of)
        ]

    assert asymmetric_is_wider(rows(70, 100)).word == CONFIRMED
    assert asymmetric_is_wider(rows(30, 100)).word == NOT_CONFIRMED
    assert "70.0% [60.4%, 78.1%]" in asymmetric_is_wider(rows(70, 100)).figure


def test_a_failed_row_counts_nowhere():
    rows = synthetic_rows({PAPER: [0.02, 0.04], "gp": [0.03, 0.05]})
    rows.append({"case": 3, "method": "gp", "repetition": 2, "error_type": "ValueError"})
    assert "next hom. GP 0.04" in lowest(rows, 3, "acg_combined", "ACG").figure


def test_the_interval_of_independent_draws_is_students():
    d = np.array([1.0, 2.0, 4.0])
    half = 4.302653 * d.std(ddof=1) / np.sqrt(3)
    found = corrected_interval(d, 0.0)
    assert (found.lower, found.upper) == pytest.approx((d.mean() - half, d.mean() + half))
