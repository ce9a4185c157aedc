"""Tables on the command line: any number of categories, rows without a target, models of data frames from Python."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import sosbands as library
from cli_runs import FAST, done, mixed_table, sosbands
from sosbands import SoSBandRegressor
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tables import TableEncoder

FIXED = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 10.0, "random_state": 0}


def with_shops(n=120, seed=0):
    """Two learning rows or so for each of the shops."""
    shops = np.random.default_rng(seed + 10).integers(0, 30, n)
    return mixed_table(n, seed).assign(shop=[f"shop {k}" for k in shops])


def test_many_categories_are_learnt_from_and_described(tmp_path):
    table = with_shops()
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.model")
    done(*words, *FAST)
    model = library.load(tmp_path / "m.model")  # nothing to trust
    made = model.reader_.preprocessor
    assert made.by_target_ == ["shop"]
    assert f"the mean target of each text of 'shop' ({len(made.levels_['shop'])} texts)" in model.summary(detail=True)
    learning = table.iloc[model.learning_rows_]
    shop = made.levels_["shop"][0]
    here = learning.y[learning.shop == shop]
    means = made.targets_.transform([[0]])[0, 0]
    assert means == pytest.approx((here.sum() + 2 * learning.y.mean()) / (len(here) + 2))
    new = with_shops(40, seed=1).assign(shop="another")
    new.to_csv(tmp_path / "new.csv", index=False)
    result = sosbands("predict", tmp_path / "m.model", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "texts in 'shop' that no learning row has count as rare or unknown: 'another', in 40 rows" in result.stderr
    found = pd.read_csv(tmp_path / "out.csv")
    assert (found.lower < found.upper).all()


def test_identifiers_are_noted_and_not_reported_as_unknown(tmp_path):
    table = mixed_table().assign(name=[f"n{i}" for i in range(120)])
    table.to_csv(tmp_path / "t.csv", index=False)
    result = sosbands("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.model", *FAST)
    assert result.stderr.count("column 'name': most learning rows have a text of their own there") == 1
    assert "texts in 'name'" not in result.stderr


def test_rows_without_a_target_are_left_out_everywhere(tmp_path):
    table = mixed_table()
    table.to_csv(tmp_path / "whole.csv", index=False)
    gaps = pd.concat([table, table[:7].assign(y=np.nan)])
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    told = "7 of 127 rows left out, as their target 'y' is missing"
    fit = ("--target", "y", "-o", tmp_path / "m.model", "--json", *FAST)
    refused = sosbands("fit", tmp_path / "gaps.csv", *fit)
    assert refused.exit_code == 1
    assert "row 121: the target is missing, in 7 of 127 rows in all" in refused.stderr
    assert "--drop-missing-target" in refused.stderr
    dropped = json.loads(done("fit", tmp_path / "gaps.csv", "--drop-missing-target", *fit))
    assert told in dropped["notes"]
    whole = json.loads(done("fit", tmp_path / "whole.csv", *fit))
    assert dropped["quantile"] == whole["quantile"]
    evaluate = ("evaluate", tmp_path / "m.model", "--json")
    measured = json.loads(done(*evaluate, tmp_path / "gaps.csv", "--drop-missing-target"))
    expected = json.loads(done(*evaluate, tmp_path / "whole.csv"))
    assert told in measured["notes"]
    assert (measured["n"], measured["coverage"]) == (120, expected["coverage"])
    compare = ("--target", "y", "--methods", "split", "--repetitions", "1", "--model", "linear", "--json")
    compared = json.loads(done("compare", tmp_path / "gaps.csv", "--drop-missing-target", *compare))
    assert told in compared["notes"]
    assert compared["n_learning"] + compared["n_calibration"] + compared["n_test"] == 120


def test_a_model_of_a_data_frame_from_python_predicts_files(tmp_path):
    table, new = with_shops(), with_shops(50, seed=1)
    model = SoSBandRegressor(**FIXED).fit(table.drop(columns="y"), table.y)
    assert isinstance(model.reader_.preprocessor, TableEncoder)
    model.save(tmp_path / "m.model")
    for suffix, write in ((".csv", new.to_csv), (".parquet", new.to_parquet)):
        write(tmp_path / f"new{suffix}", index=False)
        done("predict", tmp_path / "m.model", tmp_path / f"new{suffix}", "-o", tmp_path / "out.parquet")
        found = pd.read_parquet(tmp_path / "out.parquet")[["lower", "upper"]]
        np.testing.assert_allclose(found, model.predict_interval(new.drop(columns="y")), rtol=1e-9)
    new.assign(day=2024.5).to_parquet(tmp_path / "bad.parquet")
    refused = sosbands("predict", tmp_path / "m.model", tmp_path / "bad.parquet", "-o", tmp_path / "none.csv")
    assert "column 'day': holds double, expected dates" in refused.stderr
