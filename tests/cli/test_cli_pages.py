"""`sosbands card`, `explore` and `export`: with and without a table, and what bands must not learn from."""

import hashlib
import re

import numpy as np
import pytest

from cli_runs import FAST, done, fit, mixed_table, noted, number_table, pd, said
from report_payload import data_of
from sosbands import load
from sosbands.serving import load_scorer
from sosbands.tables import TableEncoder


def text_of(page):
    shown = re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8").partition("<body>")[2])
    return re.sub(r"\s+", " ", shown.replace("&nbsp;", " "))


def test_a_card_with_a_table_has_the_coverage_that_evaluate_has(folder, tmp_path):
    page = tmp_path / "card.html"
    mixed_table(90, seed=1).to_csv(tmp_path / "test.csv", index=False)
    words = ("card", folder / "mixed.model", "--data", tmp_path / "test.csv", "--groups", "ward", "-o", page)
    assert done(*words) == f"Card written to {page}\n"
    text = text_of(page)
    found = said("evaluate", folder / "mixed.model", tmp_path / "test.csv")
    assert f"{100 * found['coverage']:.1f} % of 90 rows with a known target are inside" in text
    assert "Prediction intervals for y" in text
    assert "By group: ward" in text
    ward = pd.read_csv(tmp_path / "test.csv").ward
    assert f"east, upper {np.sum(ward == 'east, upper')} " in text
    assert f"(missing) {ward.isna().sum()} " in text
    assert "Along day" in text
    assert re.search(r"2024-\d\d-\d\d to 2024-\d\d-\d\d", text)
    assert hashlib.sha256((folder / "mixed.model").read_bytes()).hexdigest() in text
    assert "model file mixed.model" in text


def test_a_card_of_the_model_alone(folder, tmp_path):
    done("card", folder / "mixed.model", "-o", tmp_path / "card.html")
    text = text_of(tmp_path / "card.html")
    model = load(folder / "mixed.model")
    assert f"Learnt from {len(model.learning_rows_)} rows, calibrated on {model.n_calibration_}" in text
    assert "No rows with a known target were given" in text


def test_groups_and_one_end_are_those_of_the_model(tmp_path):
    mixed_table(200).to_csv(tmp_path / "t.csv", index=False)
    done(*fit(tmp_path / "t.csv", tmp_path / "m", "--groups", "flag", "--side", "upper"))
    done("card", tmp_path / "m", "--data", tmp_path / "t.csv", "-o", tmp_path / "card.html")
    text = text_of(tmp_path / "card.html")
    assert "Each group was calibrated apart." in text
    assert "By group: flag" in text
    assert "Asked for upper ends alone: at most 10 % of new rows lie above theirs." in text
    assert "mean reach" in text


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
    stored = data_of(page.read_text(encoding="utf-8"))
    assert stored["counts"] == [80, 40, 20, 20]
    learning, again = (set(part["row"].astype(int)) for part in seen if len(part) == 40)
    assert learning == again  # for the kernel and for the point model, else folds
    assert not learning & set(stored["test"]["number"])
    assert all(set(part["row"].astype(int)) <= learning for part in seen)


@pytest.mark.parametrize("column", [[np.nan, np.nan, *np.arange(38.0)], ["a", "b"] * 20], ids=["gaps", "texts"])
def test_the_only_column_without_an_axis_leaves_the_prediction(tmp_path, column):
    rng, page = np.random.default_rng(0), tmp_path / "page.html"
    pd.DataFrame({"v": column, "y": rng.normal(size=40)}).to_csv(tmp_path / "t.csv", index=False)
    told = noted("explore", tmp_path / "t.csv", "--target", "y", "-o", page, *FAST)
    assert ("filled with the median of the learning rows: 2 in 'v'" in told) is (column[0] != "a")
    stored = data_of(page.read_text(encoding="utf-8"))
    assert [axis["name"] for axis in stored["axes"]] == ["prediction"]
    assert stored["test"]["x"] == [pytest.approx(stored["test"]["center"], abs=1e-5)]


def test_exported_files_have_the_intervals_of_predict(folder, tmp_path):
    """Of a model that was fitted for upper ends."""
    pytest.importorskip("onnxruntime", reason="ONNX files need onnxruntime: pip install onnxruntime")
    out, rows = tmp_path / "y.npz", number_table(20, seed=1)[["a", "b"]]
    found = said("export", folder / "upper.model", "-o", out, "--levels", "0.8,0.9")
    assert (found["confidence_level"], found["bytes"]) == ([0.8, 0.9], out.stat().st_size)
    model = load(folder / "upper.model").set_params(calibration="asymmetric")
    wanted, scored = model.predict_interval(rows, [0.8, 0.9], lower_share=0.0), load_scorer(out).predict_interval(rows)
    np.testing.assert_allclose(scored[:, 1], wanted[:, 1], rtol=1e-12)
    assert np.isneginf(scored[:, 0]).all()
    printed = done("export", folder / "upper.model", "-o", tmp_path / "y.onnx", "--bands-only")
    assert printed.startswith(f"90 % intervals exported to {tmp_path / 'y.onnx'} (")
