"""Cross-calibration on the command line: fit, predict and evaluate say what the library says."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
import sosbands as library
from cli_runs import FAST, done, mixed_table, sosbands

pytestmark = pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cross")
    mixed_table().to_csv(path / "rows.csv", index=False)
    mixed_table(50, seed=1).to_csv(path / "new.csv", index=False)
    words = ("--calibration-size", "cross", *FAST)
    said = done("fit", path / "rows.csv", "--target", "y", "-o", path / "model", "--json", *words)
    (path / "fit.json").write_text(said)
    return path


def test_fit_says_what_is_proven(folder):
    said = json.loads((folder / "fit.json").read_text())
    n = len(mixed_table())
    assert said["n_learning"] == said["n_calibration"] == n
    assert said["quantile"] is None
    assert said["trust"] == []
    assert f"Cross-calibrated on all {n} rows: about 90% of new rows" in said["summary"]


def test_predict_and_evaluate_are_those_of_the_library(folder, tmp_path):
    model = library.load(folder / "model")
    done("predict", folder / "model", folder / "new.csv", "-o", tmp_path / "out.parquet", "--confidence-level", "0.8")
    written = pd.read_parquet(tmp_path / "out.parquet")
    new = mixed_table(50, seed=1)
    frame = new.assign(
        ward=new.ward.fillna("").astype(object),
        flag=new.flag.map({True: "true", False: "false"}).astype(object),
        day=(new.day - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
    )[["x", "z", "ward", "flag", "day"]]
    np.testing.assert_allclose(written[["lower", "upper"]], model.predict_interval(frame, 0.8), rtol=1e-12)
    np.testing.assert_allclose(written["prediction"], model.predict(frame), rtol=1e-12)
    np.testing.assert_allclose(written["support"], model.support(frame), rtol=1e-9)
    words = ("evaluate", folder / "model", folder / "new.csv", "--confidence-level", "0.8", "--json")
    found = json.loads(done(*words))
    assert found["mean_width"] == pytest.approx((written["upper"] - written["lower"]).mean())
    words = done("evaluate", folder / "model", folder / "new.csv")
    assert "90 % is aimed at on average" in words
    assert "promised" not in words


def test_another_word_is_refused(folder, tmp_path):
    result = sosbands(
        "fit", folder / "rows.csv", "--target", "y", "-o", tmp_path / "m", "--calibration-size", "crossed"
    )
    assert result.exit_code == 2
    assert "'crossed' is neither a fraction between 0 and 1" in " ".join(result.stderr.split())
