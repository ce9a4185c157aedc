"""The room of experiments: stores that are packed, configurations, verdicts, and the numbers printed in the paper."""

import gzip
import os
from importlib import import_module

import numpy as np
import pytest

from sosbands.comparison import StoreError, corrected_interval, read_store
from sosbands.tuning import Rules
from studies import ENTRIES, Config, find_entry
from studies.data import load_real, real_names
from studies.drawing.real_tables import N_ROWS, overlap
from studies.runs.methods import HARD, OURS, PAPER, PAPER_CQR, PER_FEATURE, PER_SIDE, SHOWN, chosen, interval_method
from studies.runs.paper_numbers import printed
from studies.runs.real_runs import inliers, settings_of
from studies.runs.synthetic_runs import Draw


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
    stored = Config(tmp_path, "quick", compute_missing=False).run("numbers", double, [{"k": 1}, {"k": 2}])
    assert [row["twice"] for row in stored] == [2]
    rows = config.run("numbers", double, [{"k": 1}, {"k": 2}])
    assert [row["twice"] for row in rows] == [2, 4]
    assert rows[0] == stored[0]
    assert [path.name for path in (tmp_path / "quick").iterdir()] == ["numbers.jsonl.gz"]


def test_stores_that_are_not_there_or_damaged(tmp_path):
    config = Config(tmp_path, "quick", compute_missing=False)
    assert config.run("numbers", double, [{"k": 1}]) == []
    assert not (tmp_path / "quick").exists()
    path = tmp_path / "numbers.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}")[:-6])
    with pytest.raises(StoreError, match="damaged gzip"):
        read_store(path)


def test_presets_and_entries():
    with pytest.raises(ValueError, match=r"preset='slow': expected one of \['quick', 'paper'\]"):
        Config("x", "slow")
    assert Config("x", "paper").pick(quick=1, paper=2) == 2
    assert Config("x").pick(quick=1, paper=2) == 1
    for entry in ENTRIES:
        module = import_module(f"studies.entries.{entry.name.replace('-', '_')}")
        assert callable(module.compute), entry.name
        assert callable(module.draw), entry.name
    with pytest.raises(ValueError, match=r"name='figure-7': expected one of \['penalty-bands'"):
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
    rules = model.rules
    assert (rules.criterion, rules.symmetry_test, rules.independence) == ("hsic", "kruskal-wallis", "naive")
    found = chosen(model)
    assert found["symmetry_penalty"] == model.noise_.settings.symmetry_penalty
    assert found["p_independence"] == model.tuning_.independence.p_value
    judged = draw.judge(model)
    assert judged["coverage"] == pytest.approx(0.9, abs=0.04)
    assert judged["acg_combined"] == pytest.approx((judged["acg_lower"] + judged["acg_upper"]) / 2)
    assert chosen(interval_method("split", 0)) == {}
    symmetric, _ = draw.fit("squared-sos", lengthscale=0.5)
    assert chosen(symmetric) == {"constant_width": False}
    assert set(SHOWN) >= {OURS, PAPER, PAPER_CQR, "gp", "het-gp", "squared-sos"}


def test_variants_of_a_method_differ_in_what_they_are_named_for():
    paper, side, feature = (interval_method(name, 0) for name in (PAPER, PER_SIDE, PER_FEATURE))
    assert {name: getattr(side.rules, name) for name in vars(paper.rules)} == vars(paper.rules)
    assert (side.rules.mode, feature.rules.mode) == ("per-side", "per-side-and-feature")
    assert (side.residuals, feature.residuals) == ("in-sample", "auto")
    hard = vars(interval_method(HARD, 0).rules or Rules())
    assert {name: getattr(feature.rules, name) for name in hard} == hard
    axes = {"dataset": "MPG", "method": PAPER, "width_penalty": 100.0, "repetition": 0}
    assert interval_method(PAPER, 0, **settings_of(axes)).width_penalty == 100
    fixed = interval_method(PAPER, 0, **settings_of({**axes, "fixed_penalty": 50.0, "norm_penalties": 0.1}))
    assert (fixed.lengthscale, fixed.symmetry_penalty) == ("median", 50)
    assert (fixed.bands.trace_penalty, fixed.bands.frobenius_penalty) == (0.1, 0.1)
    assert interval_method(PAPER_CQR, 0, **settings_of({**axes, "quantile_tail": 0.2})).quantiles == (0.2, 0.8)
    assert interval_method(OURS, 0, **settings_of({**axes, "symmetry_test": "none"})).rules.symmetry_test is None


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


def test_the_numbers_of_rows_are_those_of_the_data():
    assert overlap("Diabetes") == pytest.approx(171 / 271)  # of test rows with the others
    assert set(N_ROWS) == set(real_names())
    assert N_ROWS["Diabetes"] == len(load_real("Diabetes").y)  # which scikit-learn ships
    if not os.environ.get("SOSBANDS_DATA"):
        pytest.skip("SOSBANDS_DATA is not set: no folder with the CSV files")
    assert {name: len(load_real(name).y) for name in N_ROWS} == N_ROWS


def test_the_interval_of_independent_draws_is_students():
    d = np.array([1.0, 2.0, 4.0])
    half = 4.302653 * d.std(ddof=1) / np.sqrt(3)
    found = corrected_interval(d, 0.0)
    assert (found.lower, found.upper) == pytest.approx((d.mean() - half, d.mean() + half))
