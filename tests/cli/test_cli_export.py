"""`sosbands export`: the files of a model, by the suffix, and what is refused."""

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
pytest.importorskip("onnxruntime", reason="ONNX files need onnxruntime: pip install onnxruntime")

from cli_runs import FAST, done, number_table, sosbands
from sosbands import load
from sosbands.serving import load_scorer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("export")
    number_table().to_csv(place / "train.csv", index=False)
    done("fit", place / "train.csv", "--target", "y", "-o", place / "y.model", "--side", "upper", *FAST)
    return place


def test_the_file_has_the_intervals_of_predict(folder, tmp_path):
    """Of a model that was fitted for upper ends."""
    out = tmp_path / "y.npz"
    found = json.loads(done("export", folder / "y.model", "-o", out, "--levels", "0.8,0.9", "--json"))
    assert (found["confidence_level"], found["bytes"]) == ([0.8, 0.9], out.stat().st_size)
    rows = number_table(20, seed=1)[["a", "b"]]
    model = load(folder / "y.model").set_params(calibration="asymmetric")
    wanted = model.predict_interval(rows, [0.8, 0.9], lower_share=0.0)
    scored = load_scorer(out).predict_interval(rows)
    np.testing.assert_allclose(scored[:, 1], wanted[:, 1], rtol=1e-12)
    assert np.isneginf(scored[:, 0]).all()


def test_onnx_is_written_by_its_suffix(folder, tmp_path):
    printed = done("export", folder / "y.model", "-o", tmp_path / "y.onnx", "--bands-only")
    assert printed.startswith(f"90 % intervals exported to {tmp_path / 'y.onnx'} (")


def test_other_suffixes_and_names_are_refused(folder, tmp_path):
    refused = sosbands("export", folder / "y.model", "-o", tmp_path / "y.pkl")
    assert (refused.exit_code, refused.stderr) == (
        1,
        f"error: output {tmp_path / 'y.pkl'}: expected a name that ends in .onnx or .npz\n",
    )
    wrong = sosbands("export", folder / "y.model", "-o", tmp_path / "y.npz", "--levels", "90")
    assert wrong.exit_code == 2
    assert "between 0 and 1" in wrong.stderr
