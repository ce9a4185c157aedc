"""The room of experiments: stores that are packed, configurations, verdicts, and the numbers printed in the paper."""

import gzip
import math
from dataclasses import replace

import numpy as np
import pytest

from sosbands.comparison import MeanInterval, StoreError, corrected_interval, read_store
from sosbands.datasets import load_real, real_names
from sosbands.exceptions import DatasetNotFoundError
from sosbands.experiments import ENTRIES, Config, claims, find_entry
from sosbands.experiments import claims_real as real_claims
from sosbands.experiments import claims_synthetic as synthetic_claims
from sosbands.experiments.claims import sdp_is_slower, warm_start_saves
from sosbands.experiments.methods import OURS, PAPER, PAPER_CQR, PER_FEATURE, PER_SIDE, SHOWN, chosen, interval_method
from sosbands.experiments.paper_numbers import printed
from sosbands.experiments.real_runs import inliers, settings_of
from sosbands.experiments.real_tables import N_ROWS, overlap
from sosbands.experiments.synthetic_runs import Draw
from sosbands.experiments.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    OPEN,
    MissingRowsError,
    above,
    all_of,
    below,
    near,
    paired,
    share_difference,
)


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


def test_variants_of_a_method_differ_in_what_they_are_named_for():
    paper, side, feature = (interval_method(name, 0) for name in (PAPER, PER_SIDE, PER_FEATURE))
    assert replace(side._rules(3), mode="common") == paper._rules(3)
    assert (paper._rules(3).mode, side._rules(3).mode) == ("common", "per-side")
    assert (side.residuals, feature.residuals) == ("in-sample", "auto")
    assert replace(feature._rules(3), mode="common") == interval_method(OURS, 0)._rules(3)
    axes = {"dataset": "MPG", "method": PAPER, "width_penalty": 100.0, "repetition": 0}
    assert interval_method(PAPER, 0, **settings_of(axes)).width_penalty == 100


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
    [((-2, -3, -1), CONFIRMED), ((2, 1, 3), NOT_CONFIRMED), ((-1, -3, 1), OPEN)],
)
def test_below_and_above(interval, word):
    assert below(MeanInterval(*interval)) == word
    mean, lower, upper = interval
    assert above(MeanInterval(-mean, -upper, -lower)) == word


def test_an_interval_without_ends_is_no_verdict():
    for check in (below, above, lambda interval: near(interval, 1.0)):
        with pytest.raises(MissingRowsError):
            check(MeanInterval(1.0, math.nan, math.nan))
    with pytest.raises(MissingRowsError):
        all_of()


@pytest.mark.parametrize(
    ("interval", "word"),
    [
        ((0.01, -0.02, 0.04), CONFIRMED),
        ((0.2, 0.1, 0.3), NOT_CONFIRMED),
        ((0.0, -0.2, 0.2), OPEN),
        ((0.03, 0.01, 0.06), OPEN),
    ],
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


def synthetic(values, name="acg_combined", case=3, **further):
    return [
        {"case": case, "method": method, "repetition": k, name: value, "error_type": None, **further}
        for method, each in values.items()
        for k, value in enumerate(each)
    ]


def real(method, dataset="Concrete", n=10, **values):
    steps = 0.0001 * np.arange(n)
    return [
        {"dataset": dataset, "method": method, "repetition": k, "error_type": None}
        | {name: value + step if isinstance(value, float) else value for name, value in values.items()}
        for k, step in enumerate(steps)
    ]


def ends(distance):
    return {"worst_set_coverage_lower": 0.95 - distance, "worst_set_coverage_upper": 0.95 - distance}


def choices(n, share_of_zero, of=100, model="gp", case=2):
    return [
        {"case": case, "n": n, "point_model": model, "method": PAPER, "error_type": None, "repetition": k}
        | {"symmetry_penalty": 0.0 if k < share_of_zero else math.inf}
        for k in range(of)
    ]


def paths(saved, solver="recipe", n=5):
    cold = {"cold_iterations": [100, 100], "cold_decompositions": [100, 100]}
    return [
        {"solver": solver, "error_type": None, **cold}
        | {"warm_iterations": [100, 100 * (1 - 2 * s)], "warm_decompositions": [100, 100 * (1 - 2 * s)]}
        for s in saved + 0.002 * np.arange(n)
    ]


def times(**seconds):
    return [
        {"solver": solver, "n": 200, "repetition": k, "solve_seconds": value * (1 + 0.01 * k), "error_type": None}
        for solver, value in seconds.items()
        for k in range(3)
    ]


def maps(*factors):
    return [
        {"draw": draw, "width_penalty": b, "factors": [1.0, 2.0], "penalties": [0.0], "error_type": None}
        | {"hsic": [[1.0], [2.0]] if best == 2 else [[2.0], [1.0]]}
        for draw, each in enumerate(factors)
        for b, best in zip((1.0, 10.0, 100.0, 1000.0), each, strict=True)
    ]


def kinds(change):
    return [
        {**row, "kind": kind}
        for kind, factor in (("training", 1.0), ("operator", 1.0 + change))
        for row in (
            *synthetic({PAPER: [factor, 1.01 * factor, 1.02 * factor]}, "mean_width", 1, acg_combined=factor),
            *real(PAPER, "Diabetes", mean_width=factor, **ends(0.02)),
        )
    ]


A = np.array([0.02, 0.04, 0.06])
WIDER = {"mean_width": 1.0}
# check, then rows that confirm it, refute it, and leave it open
CHECKS = {
    "lower": (
        lambda rows: synthetic_claims.lower(rows, 3, "acg_combined", ("gp",)),
        synthetic({PAPER: A, "gp": A + [0.01, 0.011, 0.012]}),
        synthetic({PAPER: A, "gp": A - [0.01, 0.011, 0.012]}),
        synthetic({PAPER: A, "gp": A + [0.01, -0.01, 0.01]}),
    ),
    "equal": (
        lambda rows: synthetic_claims.equal(rows, 3, "acg_combined", "gp"),
        synthetic({PAPER: A, "gp": A + [0.0001, 0.0002, 0.0001]}),
        synthetic({PAPER: A, "gp": A + [0.01, 0.011, 0.012]}),
        synthetic({PAPER: A, "gp": A + [0.01, -0.01, 0.01]}),
    ),
    "constant width": (
        lambda rows: synthetic_claims.constant_width_is_found(rows, 6),
        synthetic({PAPER: [True] * 20}, "constant_width", 6),
        synthetic({PAPER: [False] * 20}, "constant_width", 6),
        synthetic({PAPER: [True, False] * 10}, "constant_width", 6),
    ),
    "fewer asymmetric, independent draws": (
        lambda rows: synthetic_claims.fewer_asymmetric(rows, (2, 100, "gp"), (2, 200, "gp")),
        choices(100, 60) + choices(200, 30),
        choices(100, 30) + choices(200, 60),
        choices(100, 31) + choices(200, 30),
    ),
    "fewer asymmetric, the same draws": (
        lambda rows: synthetic_claims.fewer_asymmetric(rows, (2, 100, "gp"), (2, 100, "oracle")),
        choices(100, 40) + choices(100, 30, model="oracle"),  # a difference that independent draws would not show
        choices(100, 30) + choices(100, 40, model="oracle"),
        choices(100, 31) + choices(100, 30, model="oracle"),
    ),
    "longer": (
        synthetic_claims.longer_with_width_penalty,
        maps((1, 1, 2, 2), (1, 2, 2, 2)),
        maps((2, 2, 1, 1)),
        maps((1, 1, 2, 2), (2, 1, 2, 1)),
    ),
    "operators": (
        synthetic_claims.no_gain_from_operators,
        kinds(0.01),
        kinds(-0.2),
        [{**row, "mean_width": row["mean_width"] * (1 - 0.1 * (row["repetition"] % 2) * (row["kind"] == "operator"))}
         for row in kinds(0.0)],
    ),
    "warm start": (
        warm_start_saves,
        paths(0.7) + paths(0.7, "sosbands"),
        paths(0.4) + paths(0.7, "sosbands"),
        paths(0.648) + paths(0.7, "sosbands"),
    ),
    "SDP": (
        lambda rows: sdp_is_slower(rows, 200, 10),
        times(sdp=80.0, recipe=0.3, sosbands=0.3),
        times(sdp=1.0, recipe=0.3, sosbands=0.3),
        [{**row, "solve_seconds": row["solve_seconds"] * (1 + row["repetition"] * (row["solver"] == "sdp"))}
         for row in times(sdp=2.0, recipe=0.3, sosbands=0.3)],
    ),
    "covers": (
        real_claims.covers,
        [row for k in range(4) for row in real(PAPER, f"set {k}", coverage=0.9 + 0.001 * k)],
        [row for k in range(4) for row in real(PAPER, f"set {k}", coverage=0.85 + 0.001 * k)],
        [row for k in range(4) for row in real(PAPER, f"set {k}", coverage=0.87 + 0.03 * (k % 2))],
    ),
    "closest": (
        lambda rows: real_claims.closest_worst_set(rows, "Concrete", ("gp",)),
        real(PAPER, **ends(0.01)) + real("gp", **ends(0.03)),
        real(PAPER, **ends(0.03)) + real("gp", **ends(0.01)),
        real(PAPER, **ends(0.01)) + [{**row, "worst_set_coverage_lower": 0.94 + 0.02 * (k % 3) * (-1) ** k}
                                     for k, row in enumerate(real("gp", **ends(0.01)))],
    ),
    "nearer on most sets": (
        lambda rows: real_claims.nearer_on_most_sets(rows, PAPER, "gp"),
        [row for k in range(12) for row in real(PAPER, f"{k}", **ends(0.01)) + real("gp", f"{k}", **ends(0.03))],
        [row for k in range(12) for row in real(PAPER, f"{k}", **ends(0.03)) + real("gp", f"{k}", **ends(0.01))],
        [row for k in range(12)
         for row in real(PAPER, f"{k}", **ends(0.02)) + real("gp", f"{k}", **ends(0.01 + 0.02 * (k % 2)))],
    ),
    "narrower": (
        lambda rows: real_claims.narrower(rows, "Concrete", ("gp",)),
        real(PAPER, mean_width=1.0) + [{**row, "mean_width": 1.2 + 0.001 * k}
                                       for k, row in enumerate(real("gp", mean_width=1.0))],
        real(PAPER, mean_width=1.0) + [{**row, "mean_width": 0.8 + 0.001 * k}
                                       for k, row in enumerate(real("gp", mean_width=1.0))],
        real(PAPER, mean_width=1.0) + [{**row, "mean_width": 1.0 + 0.1 * (-1) ** k}
                                       for k, row in enumerate(real("gp", mean_width=1.0))],
    ),
    "much wider": (
        lambda rows: real_claims.much_wider(rows, "gp"),
        [row for k in range(12) for row in real(PAPER, f"{k}", **WIDER) + real("gp", f"{k}", mean_width=1.2)],
        [row for k in range(12) for row in real(PAPER, f"{k}", **WIDER) + real("gp", f"{k}", mean_width=1.05)],
        [row for k in range(12)
         for row in real(PAPER, f"{k}", **WIDER) + real("gp", f"{k}", mean_width=1.0 + 0.2 * (k % 2))],
    ),
    "asymmetric calibration": (
        real_claims.asymmetric_is_wider,
        real(PAPER, n=100, mean_width=1.0, asymmetric_mean_width=1.1),
        real(PAPER, n=100, mean_width=1.0, asymmetric_mean_width=0.9),
        real(PAPER, n=50, mean_width=1.0, asymmetric_mean_width=1.1)
        + real(PAPER, "Yacht", n=50, mean_width=1.0, asymmetric_mean_width=0.9),
    ),
    "selected": (
        lambda rows: real_claims.selected(rows, "Bike", 0.0, 0.0, 0.0),
        real(PAPER, "Bike", symmetry_penalty=math.inf),
        real(PAPER, "Bike", symmetry_penalty=0),
        real(PAPER, "Bike", n=3, symmetry_penalty=math.inf),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Precision loss occurred")
@pytest.mark.parametrize("name", CHECKS)
def test_each_check_can_confirm_refute_and_leave_open(name):
    check, *cases = CHECKS[name]
    found = [check(rows) for rows in cases]
    assert [verdict.word for verdict in found] == [CONFIRMED, NOT_CONFIRMED, OPEN], found


@pytest.mark.parametrize("name", CHECKS)
def test_no_check_confirms_without_rows(name):
    check, *cases = CHECKS[name]
    failed = [{**row, "error_type": "ValueError"} for row in cases[0]]
    for rows in ([], failed):
        with pytest.raises(MissingRowsError, match="missing"):
            check(rows)


def test_hides_in_the_middle():
    def rows(**het):
        base = {"mean_width": 1.0, "acg": 0.05, "acg_lower": 0.04, "acg_upper": 0.04}
        return [
            {"case": 5, "method": method, "repetition": k, "error_type": None}
            | {name: value + 0.0001 * k for name, value in values.items()}
            for method, values in ((PAPER, base), ("het-gp", base | het))
            for k in range(5)
        ]

    check = synthetic_claims.hides_in_the_middle
    assert check(rows(mean_width=0.9, acg_lower=0.06, acg_upper=0.07), 5).word == CONFIRMED
    assert check(rows(mean_width=1.2, acg_lower=0.06, acg_upper=0.07), 5).word == NOT_CONFIRMED
    assert check(rows(mean_width=0.9, acg_lower=0.03, acg_upper=0.07), 5).word == NOT_CONFIRMED


def test_first_or_second_needs_both_ranks():
    def rows(widths, distances):
        methods = (PAPER, PAPER_CQR, "gp", "het-gp")
        return [
            row
            for method, width, distance in zip(methods, widths, distances, strict=True)
            for row in real(method, mean_width=width, **ends(distance))
        ]

    check = real_claims.first_or_second
    assert check(rows((1.0, 2.0, 0.9, 3.0), (0.02, 0.03, 0.01, 0.04))).word == CONFIRMED
    found = check(rows((1.0, 0.8, 0.9, 3.0), (0.01, 0.03, 0.02, 0.04)))
    assert found.word == NOT_CONFIRMED
    assert "Concrete (1, 3)" in found.figure
    with pytest.raises(MissingRowsError, match="data sets with all methods"):
        check(real(PAPER, mean_width=1.0, **ends(0.01)))


def test_a_rival_without_splits_leaves_a_claim_open_unless_another_refutes_it():
    rows = real(PAPER, mean_width=1.0) + [
        {**row, "mean_width": 1.2 + 0.001 * k} for k, row in enumerate(real("gp", mean_width=1.0))
    ]
    found = real_claims.narrower(rows, "Concrete", ("gp", "het-gp"))
    assert found.word == OPEN
    assert "too few splits of het. GP" in found.figure
    wider = [{**row, "mean_width": row["mean_width"] - 0.4 * (row["method"] == "gp")} for row in rows]
    assert real_claims.narrower(wider, "Concrete", ("gp", "het-gp")).word == NOT_CONFIRMED


def test_no_better_locally_has_a_margin():
    def rows(gain):
        asymmetric = {f"asymmetric_{name}": value for name, value in ends(0.03 - gain).items()}
        return real(PAPER, **ends(0.03), **asymmetric)

    assert real_claims.no_better_locally(rows(0.0)).word == CONFIRMED
    assert real_claims.no_better_locally(rows(0.02)).word == NOT_CONFIRMED


def test_paired_leaves_out_draws_that_one_method_lacks():
    rows = synthetic({PAPER: [1.0, 2.0, 3.0], "gp": [0.5, 0.5]})
    assert paired(rows, "acg_combined", PAPER, "gp").tolist() == [0.5, 1.5]


def test_claims_of_an_empty_folder_are_no_rows(tmp_path):
    assert claims.compute(Config(tmp_path, "quick")) == []


def test_claims_read_stored_rows(tmp_path):
    config = Config(tmp_path, "quick")
    config.run(
        "warm-start",
        fake_path,
        [{"solver": s, "n": 100, "repetition": k} for s in ("recipe", "sosbands") for k in range(2)],
        seed_axes=["n", "repetition"],
    )
    found = {row["claim"]: row for row in claims.compute(config)}
    assert found["Warm start is 65 % cheaper than cold start"]["verdict"] == CONFIRMED
    assert {row["verdict"] for row in found.values()} == {CONFIRMED, "no rows"}
    assert "no rows" in repr(claims.draw(list(found.values())))


def fake_path(axes, seed):  # noqa: ARG001
    warm = 20 + seed % 3
    return {
        f"{start}_{what}": [warm if start == "warm" else 100]
        for start in ("cold", "warm")
        for what in ("iterations", "decompositions")
    }


def test_the_numbers_of_rows_are_those_of_the_data():
    for name in real_names():
        try:
            data = load_real(name)
        except DatasetNotFoundError:
            continue  # without the folder only Diabetes is there
        assert N_ROWS[name] == len(data.y)
    assert overlap("Diabetes") == pytest.approx(171 / 271)


def test_the_interval_of_independent_draws_is_students():
    d = np.array([1.0, 2.0, 4.0])
    half = 4.302653 * d.std(ddof=1) / np.sqrt(3)
    found = corrected_interval(d, 0.0)
    assert (found.lower, found.upper) == pytest.approx((d.mean() - half, d.mean() + half))
