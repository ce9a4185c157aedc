"""`sosbands explore`: what the bands know of rows that they must not learn from, and tables without a single axis."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from cli_runs import FAST, data_of, done, sosbands
from sosbands.tables import TableEncoder


def test_preprocessing_knows_the_learning_rows_only(tmp_path, monkeypatch):
    n = 80
    numbers = np.arange(n)
    names = np.array(["a", "b"])[numbers % 2]
    table = pd.DataFrame({"row": numbers, "v": np.where(numbers % 3, 1.05**numbers, np.nan), "w": names})
    table.assign(y=np.sin(numbers) + numbers / 40).to_csv(tmp_path / "t.csv", index=False)
    seen, real = [], TableEncoder.fit_transform

    def fit_transform(self, X, *given, **named):
        seen.append(X)
        return real(self, X, *given, **named)

    monkeypatch.setattr(TableEncoder, "fit_transform", fit_transform)
    page = tmp_path / "page.html"
    done("explore", tmp_path / "t.csv", "--target", "y", "-o", page, *FAST)
    learning = data_of(page.read_text(encoding="utf-8"))["learning"]["number"]
    assert len(learning) == 30
    assert sum(len(part) == 30 for part in seen) == 2  # for the kernel and for the point model, else folds
    assert all(set(part["row"].astype(int)) <= set(learning) for part in seen)


def test_gaps_are_mentioned(tmp_path):
    table = pd.DataFrame({"v": [np.nan, np.nan, *range(38)], "y": np.arange(40.0)})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = sosbands("explore", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "page.html", *FAST)
    assert result.exit_code == 0
    assert "filled with the median of the learning rows: 2 in 'v'" in result.stderr


@pytest.mark.parametrize("column", [[np.nan, *np.arange(39.0)], ["a", "b"] * 20], ids=["gap", "texts"])
def test_the_only_column_without_an_axis_leaves_the_prediction(tmp_path, column):
    rng = np.random.default_rng(0)
    pd.DataFrame({"v": column, "y": rng.normal(size=40)}).to_csv(tmp_path / "t.csv", index=False)
    done("explore", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "page.html", *FAST)
    stored = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [axis["name"] for axis in stored["axes"]] == ["prediction"]
    assert stored["test"]["x"] == [pytest.approx(stored["test"]["center"], abs=1e-5)]
