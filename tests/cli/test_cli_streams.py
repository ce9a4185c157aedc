"""`sosbands monitor` and `sosbands recalibrate`: what Python gives, pictures and tables, and what is refused."""

import json
from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib", reason="monitor draws with matplotlib")

import pandas as pd

from cli_runs import FAST, done, number_table, sosbands
from sosbands import load
from sosbands.exceptions import TooFewCalibrationPointsWarning
from sosbands.online import monitor

FEATURES = ["a", "b"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("streams")
    number_table(200).to_csv(place / "train.csv", index=False)
    stream = number_table(500, seed=1)
    stream.loc[300:, "y"] += 4.0
    stream.to_csv(place / "stream.csv", index=False)
    stream[:300].to_csv(place / "calm.csv", index=False)
    done("fit", place / "train.csv", "--target", "y", "-o", place / "y.model", *FAST)
    return place


def test_monitor_says_when_and_what_to_do(folder, tmp_path):
    picture, rows = tmp_path / "m.png", tmp_path / "rows.csv"
    words = ("monitor", folder / "y.model", folder / "stream.csv", "--target", "y", "-o", picture)
    text = done(*words, "--table", rows)
    table = pd.read_csv(folder / "stream.csv")
    found = monitor(load(folder / "y.model"), table[FEATURES], table.y)
    assert 300 <= found.alarm < 350
    flat = " ".join(text.split())
    assert " ".join(found.words().split()) in flat
    assert f"-o {folder / 'y-recalibrated.model'} --window {500 - found.began}" in flat
    pd.read_csv(folder / "stream.csv").rename(columns={"y": "seen"}).to_csv(tmp_path / "s.csv", index=False)
    other = ("monitor", folder / "y.model", tmp_path / "s.csv", "--target", "seen", "--drop-missing-target")
    told = " ".join(done(*other, "-o", tmp_path / "o.png").split())
    assert f"--window {500 - found.began} --target seen --drop-missing-target" in told
    assert text.rstrip().endswith(f"Picture: {picture}")
    assert [line.split()[0] for line in text.splitlines()[3:13]] == [f"{k}-{k + 49}" for k in range(1, 500, 50)]
    assert [line.endswith("drift") for line in text.splitlines()[3:13]] == [False] * 6 + [True] * 4
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    written = pd.read_csv(rows)
    assert np.array_equal(written.row, np.arange(1, 501))
    assert np.array_equal(written.inside, found.inside)
    np.testing.assert_allclose(written.log10_martingale, found.log10_martingale, rtol=1e-12)


def test_monitor_without_drift_and_as_json(folder, tmp_path):
    words = ("monitor", folder / "y.model", folder / "calm.csv", "-o", tmp_path / "m.svg", "--alarm-level", "0.001")
    found = json.loads(done(*words, "--span", "60", "--json"))
    table = pd.read_csv(folder / "calm.csv")
    wanted = monitor(load(folder / "y.model"), table[FEATURES], table.y, level=0.001)
    assert (found["alarm_row"], found["began_row"], found["coverage_since"]) == (None, None, None)
    assert found["coverage"] == wanted.inside.mean()
    assert found["largest_log10_martingale"] == pytest.approx(wanted.log10_martingale.max())
    assert (found["span"], found["rows"], len(found["blocks"])) == (60, 300, 10)
    assert "the alarm is at 1000" in found["words"]


@pytest.mark.parametrize(
    ("options", "window", "decay", "old"),
    [
        ((), None, None, True),
        (("--window", "150"), 150, None, True),
        (("--replace", "--decay", "0.99"), None, 0.99, False),
    ],
)
def test_recalibrate_is_update(folder, tmp_path, options, window, decay, old):
    made = tmp_path / "new.model"
    words = ("recalibrate", folder / "y.model", folder / "stream.csv", "--target", "y", "-o", made)
    text = done(*words, *options)
    table = pd.read_csv(folder / "stream.csv")
    before, model = load(folder / "y.model"), load(folder / "y.model")
    if not old:
        del model.calibration_
    model.update(table[FEATURES], table.y, window=window, decay=decay)
    again = load(made)
    np.testing.assert_allclose(again.scores_, model.scores_, rtol=1e-9)  # older pandas misses last bits of a CSV file
    assert again.quantile() == pytest.approx(model.quantile(), rel=1e-9)
    assert again.quantile() > before.quantile()
    assert again.calibration_.decay == decay
    assert f"Calibration rows: 100 before, {again.n_calibration_} now." in text
    assert len(again.split_calibration_) == again.n_calibration_
    ends = before.predict_interval(table[FEATURES])
    inside = np.mean((ends[:, 0] <= table.y) & (table.y <= ends[:, 1]))
    assert f"{100 * inside:.3g} % of the new rows were in their interval before" in " ".join(text.split())
    found = json.loads(done("evaluate", made, folder / "stream.csv", "--json"))
    assert found["mean_width"] > 0
    done("predict", made, folder / "stream.csv", "-o", tmp_path / "q.parquet", "--quantiles", "0.1,0.9")
    quantiles = pd.read_parquet(tmp_path / "q.parquet")[["quantile_10", "quantile_90"]]
    np.testing.assert_allclose(quantiles, model.predict_quantile(table[FEATURES], [0.1, 0.9]), rtol=1e-9)


def test_decays_must_exceed_the_level_of_each_end(folder):
    table = pd.read_csv(folder / "stream.csv")
    for kind, least in (("symmetric", 0.9), ("asymmetric", 0.95)):
        for decay in (least - 0.01, least + 0.01):
            model = load(folder / "y.model").set_params(calibration=kind, confidence_level=0.9)
            model.update(table[FEATURES], table.y, decay=decay)
            few = nullcontext() if decay > least else pytest.warns(TooFewCalibrationPointsWarning, match="infinite")
            with few:
                assert np.isfinite(model.quantile()).all() == (decay > least)
    text = " ".join(done("recalibrate", "--help").replace("│", " ").split())
    assert "must exceed the confidence level C, with asymmetric calibration (1 + C)/2." in text


def test_recalibrate_by_groups_and_onto_itself(tmp_path):
    table = number_table(200).assign(ward=["east", "west"] * 100)
    table.to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "g.model"
    done("fit", tmp_path / "t.csv", "--target", "y", "--groups", "ward", "-o", path, *FAST)
    new = number_table(60, seed=3).assign(ward=["east", "west", "west"] * 20)
    new.to_csv(tmp_path / "new.csv", index=False)
    sizes = {label: len(part) for label, part in load(path).calibration_.parts()}
    found = json.loads(done("recalibrate", path, tmp_path / "new.csv", "-o", path, "--json"))
    after = {label: len(part) for label, part in load(path).calibration_.parts()}
    assert after == {"east": sizes["east"] + 20, "west": sizes["west"] + 40}
    assert (found["n_calibration_before"], found["n_calibration"]) == (sum(sizes.values()), sum(after.values()))
    result = sosbands("monitor", path, tmp_path / "new.csv", "-o", tmp_path / "m.png")
    assert result.exit_code == 1
    assert "monitor of a model that was calibrated with groups: expected one calibrated without" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("monitor", "y.model", "stream.csv", "-o", "m.txt"), "expected a name that ends in .png, .pdf, .svg"),
        (("monitor", "y.model", "stream.csv", "-o", "m.png", "--table", "t.xls"), "expected a name that ends in .csv"),
        (("recalibrate", "y.model", "stream.csv", "-o", "stream.csv"), "stream.csv"),
        (("recalibrate", "y.model", "stream.csv", "-o", "n.model", "--target", "price"), "price"),
    ],
)
def test_what_is_refused_is_named_and_writes_nothing(folder, words, message, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    result = sosbands(*words)
    assert result.exit_code == 1
    assert message in result.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("option", "value"), [("--window", "0"), ("--decay", "1"), ("--decay", "often"), ("--alarm-level", "2")]
)
def test_bad_options_are_usage_errors(folder, tmp_path, option, value):
    command = "monitor" if option == "--alarm-level" else "recalibrate"
    result = sosbands(command, folder / "y.model", folder / "stream.csv", "-o", tmp_path / "o.png", option, value)
    assert result.exit_code == 2
    assert value in result.stderr


def test_one_end(folder, tmp_path):
    done("fit", folder / "train.csv", "--target", "y", "-o", tmp_path / "upper", "--side", "upper", *FAST)
    result = sosbands("monitor", tmp_path / "upper", folder / "stream.csv", "-o", tmp_path / "m.png")
    assert "was made for upper ends alone: expected a model of both ends" in result.stderr
    found = json.loads(done("recalibrate", tmp_path / "upper", folder / "stream.csv", "-o", tmp_path / "n", "--json"))
    table = pd.read_csv(folder / "stream.csv")
    ends = load(tmp_path / "upper").predict_interval(table[FEATURES], lower_share=0.0)
    assert found["coverage_before"] == pytest.approx(np.mean(table.y <= ends[:, 1]))
    words = done("recalibrate", tmp_path / "upper", folder / "stream.csv", "-o", tmp_path / "n", "--decay", "0.93")
    words = " ".join(words.split())
    assert "Median reach on the new rows" in words
    assert "at least 90% of new rows lie at or below their upper end" in words
    assert "infinite" not in words
