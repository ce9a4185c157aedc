"""`sosbands monitor` and `sosbands recalibrate`: what Python gives, pictures and tables, and what is refused."""

from contextlib import nullcontext

import numpy as np
import pytest

from cli_runs import done, fit, flat, number_table, pd, refused, said
from sosbands import load
from sosbands.exceptions import TooFewCalibrationPointsWarning
from sosbands.online import monitor

pytest.importorskip("matplotlib", reason="monitor draws with matplotlib")
FEATURES = ["a", "b"]


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A model, and rows after it that drift from the 300th on."""
    place = tmp_path_factory.mktemp("streams")
    number_table(200).to_csv(place / "train.csv", index=False)
    table = number_table(500, seed=1)
    table.loc[300:, "y"] += 4.0
    table.to_csv(place / "stream.csv", index=False)
    table[:300].to_csv(place / "calm.csv", index=False)
    done(*fit(place / "train.csv", place / "y.model"))
    return place


def test_monitor_says_when_and_what_to_do(stream, tmp_path):
    picture, rows = tmp_path / "m.png", tmp_path / "rows.csv"
    words = ("monitor", stream / "y.model", stream / "stream.csv", "--target", "y", "-o", picture)
    text = done(*words, "--table", rows)
    table = pd.read_csv(stream / "stream.csv")
    found = monitor(load(stream / "y.model"), table[FEATURES], table.y)
    assert 300 <= found.alarm < 350
    printed = flat(text)
    assert flat(found.words()) in printed
    assert f"-o {stream / 'y-recalibrated.model'} --window {500 - found.began}" in printed
    table.rename(columns={"y": "seen"}).to_csv(tmp_path / "s.csv", index=False)
    other = ("monitor", stream / "y.model", tmp_path / "s.csv", "--target", "seen", "--drop-missing-target")
    told = flat(done(*other, "-o", tmp_path / "o.png"))
    assert f"--window {500 - found.began} --target seen --drop-missing-target" in told
    assert text.rstrip().endswith(f"Picture: {picture}")
    assert [line.split()[0] for line in text.splitlines()[3:13]] == [f"{k}-{k + 49}" for k in range(1, 500, 50)]
    assert [line.endswith("drift") for line in text.splitlines()[3:13]] == [False] * 6 + [True] * 4
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    written = pd.read_csv(rows)
    assert np.array_equal(written.row, np.arange(1, 501))
    assert np.array_equal(written.inside, found.inside)
    np.testing.assert_allclose(written.log10_martingale, found.log10_martingale, rtol=1e-12)


def test_monitor_without_drift_and_as_json(stream, tmp_path):
    words = ("monitor", stream / "y.model", stream / "calm.csv", "-o", tmp_path / "m.svg", "--alarm-level", "0.001")
    found = said(*words, "--span", "60")
    table = pd.read_csv(stream / "calm.csv")
    wanted = monitor(load(stream / "y.model"), table[FEATURES], table.y, level=0.001)
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
def test_recalibrate_is_update(stream, tmp_path, options, window, decay, old):
    made = tmp_path / "new.model"
    words = ("recalibrate", stream / "y.model", stream / "stream.csv", "--target", "y", "-o", made)
    text = done(*words, *options)
    table = pd.read_csv(stream / "stream.csv")
    before, model = load(stream / "y.model"), load(stream / "y.model")
    if not old:
        del model.calibration_
    model.update(table[FEATURES], table.y, window=window, decay=decay)
    again = load(made)
    np.testing.assert_allclose(again.scores_, model.scores_, rtol=1e-9)  # older pandas misses last bits of a CSV file
    assert again.quantile() == pytest.approx(model.quantile(), rel=1e-9)
    assert again.quantile() > before.quantile()
    assert again.calibration_.decay == decay
    assert f"Calibration rows: {before.n_calibration_} before, {again.n_calibration_} now." in text
    assert len(again.split_calibration_) == again.n_calibration_
    ends = before.predict_interval(table[FEATURES])
    inside = np.mean((ends[:, 0] <= table.y) & (table.y <= ends[:, 1]))
    assert f"{100 * inside:.3g} % of the new rows were in their interval before" in flat(text)
    assert said("evaluate", made, stream / "stream.csv")["mean_width"] > 0
    done("predict", made, stream / "stream.csv", "-o", tmp_path / "q.parquet", "--quantiles", "0.1,0.9")
    quantiles = pd.read_parquet(tmp_path / "q.parquet")[["quantile_10", "quantile_90"]]
    np.testing.assert_allclose(quantiles, model.predict_quantile(table[FEATURES], [0.1, 0.9]), rtol=1e-9)


def test_decays_must_exceed_the_level_of_each_end(stream):
    table = pd.read_csv(stream / "stream.csv")
    for kind, least in (("symmetric", 0.9), ("asymmetric", 0.95)):
        for decay in (least - 0.01, least + 0.01):
            model = load(stream / "y.model").set_params(calibration=kind, confidence_level=0.9)
            model.update(table[FEATURES], table.y, decay=decay)
            few = nullcontext() if decay > least else pytest.warns(TooFewCalibrationPointsWarning, match="infinite")
            with few:
                assert np.isfinite(model.quantile()).all() == (decay > least)
    text = flat(done("recalibrate", "--help").replace("│", " "))
    assert "must exceed the confidence level C, with asymmetric calibration (1 + C)/2." in text


def test_recalibrate_by_groups_and_onto_itself(tmp_path):
    table = number_table(200).assign(ward=["east", "west"] * 100)
    table.to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "g.model"
    done(*fit(tmp_path / "t.csv", path, "--groups", "ward"))
    new = number_table(60, seed=3).assign(ward=["east", "west", "west"] * 20)
    new.to_csv(tmp_path / "new.csv", index=False)
    sizes = {label: len(part) for label, part in load(path).calibration_.parts()}
    found = said("recalibrate", path, tmp_path / "new.csv", "-o", path)
    after = {label: len(part) for label, part in load(path).calibration_.parts()}
    assert after == {"east": sizes["east"] + 20, "west": sizes["west"] + 40}
    assert (found["n_calibration_before"], found["n_calibration"]) == (sum(sizes.values()), sum(after.values()))
    message = refused("monitor", path, tmp_path / "new.csv", "-o", tmp_path / "m.png")
    assert "monitor of a model that was calibrated with groups: expected one calibrated without" in message


def test_one_end(stream, tmp_path):
    done(*fit(stream / "train.csv", tmp_path / "upper", "--side", "upper"))
    words = (tmp_path / "upper", stream / "stream.csv", "-o", tmp_path / "n")
    message = refused("monitor", *words[:3], tmp_path / "m.png")
    assert "was made for upper ends alone: expected a model of both ends" in message
    table, ends = pd.read_csv(stream / "stream.csv"), load(tmp_path / "upper")
    ends = ends.predict_interval(table[FEATURES], lower_share=0.0)
    assert said("recalibrate", *words)["coverage_before"] == pytest.approx(np.mean(table.y <= ends[:, 1]))
    printed = flat(done("recalibrate", *words, "--decay", "0.93"))
    assert "Median reach on the new rows" in printed
    assert "at least 90% of new rows lie at or below their upper end" in printed
    assert "infinite" not in printed
