"""A folder of Parquet files, predicted file by file on a cluster: the numbers, rows and index of one process."""

import os

import numpy as np
import pandas as pd
import pytest
from two_workers import SETTINGS, files, one_by_one, table

from sosbands import SoSBandRegressor
from sosbands.cluster import interval_frame, predict_parquet
from sosbands.exceptions import CrossedIntervalsWarning, OffDataWarning, TooFewCalibrationPointsWarning

pytest.importorskip("pyarrow", reason="the extra sosbands[distributed] is not installed")

WRITTEN = ["prediction", "lower", "upper", "support"]


def test_the_frame_of_intervals(model):
    frame = table(20, 7).set_index("id")
    found = interval_frame(frame, model, 0.8, keep_columns=["extra"])
    assert list(found.columns) == ["extra", *WRITTEN]
    X = frame[["a", "b"]]
    np.testing.assert_array_equal(found[["lower", "upper"]], model.predict_interval(X, 0.8))
    np.testing.assert_array_equal(found["prediction"], model.predict(X))
    np.testing.assert_array_equal(found["support"], model.support(X))
    assert found.index.equals(frame.index)
    assert found["extra"].equals(frame["extra"])
    nothing = interval_frame(frame[:0], model, 0.8, keep_columns=["extra"])
    assert len(nothing) == 0
    assert nothing.dtypes.equals(found.dtypes)
    assert nothing.index.dtype == found.index.dtype


def test_a_model_of_an_array_takes_the_columns_in_their_order():
    frame = table(80, 0)[["a", "b"]]
    y = frame["a"].to_numpy()
    model = SoSBandRegressor(lambda X: 0 * X[:, 0], preprocessor=None, **SETTINGS).fit(frame.to_numpy(), y)
    found = interval_frame(frame[:5], model)
    np.testing.assert_array_equal(found[["lower", "upper"]], model.predict_interval(frame[:5].to_numpy()))


def test_warnings_are_those_of_the_model(model):
    far = table(4, 3).assign(a=50.0)
    with pytest.warns(OffDataWarning, match="4 of 4 rows"):
        interval_frame(far, model)
    with pytest.warns(TooFewCalibrationPointsWarning):
        assert np.isinf(interval_frame(table(4, 3), model, 0.9999)["upper"]).all()
    with pytest.warns(CrossedIntervalsWarning) as expected:
        model.predict_interval(table(40, 3)[["a", "b"]], 0.01)
    with pytest.warns(CrossedIntervalsWarning) as found:
        interval_frame(table(40, 3), model, 0.01)
    assert str(found[0].message).split(" intervals")[0] == str(expected[0].message).split(" intervals")[0]


def test_files_are_predicted_by_both_workers(model, client, source, tmp_path):
    from distributed import get_task_stream

    target = tmp_path / "intervals"
    with get_task_stream(client) as stream:
        assert predict_parquet(model, source, target, confidence_level=0.8, keep_columns=["id", "year"]) == 78
    ran = {each["worker"] for each in stream.data if each["key"].startswith("_predict_file")}
    assert ran == set(client.run(os.getpid))
    assert files(target) == files(source)
    name = files(source)[0]
    assert predict_parquet(model, source / name, tmp_path / "one") == len(pd.read_parquet(source / name))
    assert files(tmp_path / "one") == [os.path.basename(name)]
    assert sorted(os.listdir(tmp_path)) == ["intervals", "one", "rows"]
    for given, found in one_by_one(source, target):
        here = interval_frame(given, model, 0.8, keep_columns=["id"])
        pd.testing.assert_frame_equal(found, here, rtol=1e-12, atol=1e-12)
        assert isinstance(found.index, pd.RangeIndex)


@pytest.mark.usefixtures("client")
def test_dask_reads_what_was_written_and_maps_the_same_function(model, source, tmp_path):
    import dask.dataframe as dd

    predict_parquet(model, source, tmp_path / "intervals", keep_columns=["id"])
    read = dd.read_parquet(tmp_path / "intervals").compute().sort_values("id")
    rows = dd.read_parquet(source)
    meta = interval_frame(rows._meta, model, keep_columns=["id"])
    mapped = rows.map_partitions(interval_frame, model, keep_columns=["id"], meta=meta)
    mapped = mapped.compute().sort_values("id")
    assert len(read) == 78
    for name in WRITTEN:
        np.testing.assert_allclose(read[name], mapped[name], rtol=1e-12, atol=1e-12)
    assert list(read["id"]) == list(mapped["id"])
    assert list(read.index) == list(mapped.index)


@pytest.mark.usefixtures("client")
def test_partitions_may_be_features_and_an_index_may_have_a_name(source, tmp_path):
    X = table(60, 0).assign(year=np.repeat([2020, 2021], 30))[["year", "a"]]
    shifted = SoSBandRegressor(lambda X: 10.0 * (X["year"] - 2020), **SETTINGS).fit(
        X, 10.0 * (X["year"] - 2020) + X["a"]
    )
    for name in files(source):
        pd.read_parquet(source / name, partitioning=None).set_index("id").to_parquet(source / name)
    predict_parquet(shifted, source, tmp_path / "intervals")
    for name in files(source):
        found = pd.read_parquet(tmp_path / "intervals" / name, partitioning=None)
        assert (found["prediction"] == (10.0 if "2021" in name else 0.0)).all()
        assert found.index.equals(pd.read_parquet(source / name, partitioning=None).index)


@pytest.mark.usefixtures("client")
def test_warnings_of_workers_come_once(model, source, tmp_path):
    name = files(source)[1]
    frame = pd.read_parquet(source / name, partitioning=None)
    frame.assign(a=50.0).to_parquet(source / name)
    with pytest.warns(OffDataWarning) as caught:
        predict_parquet(model, source, tmp_path / "intervals")
    assert [str(each.message).split(" rows")[0] for each in caught] == [
        f"in 1 of 5 files, first {name}: {len(frame)} of {len(frame)}"
    ]


# ---------------------------------------------------------------- bad input


@pytest.mark.usefixtures("client")
def test_a_file_that_fails_leaves_nothing_behind(model, source, tmp_path):
    name = files(source)[-1]
    frame = pd.read_parquet(source / name, partitioning=None)
    frame.drop(columns="b").to_parquet(source / name)
    with pytest.raises(ValueError, match="the file has no column 'b'") as raised:
        predict_parquet(model, source, tmp_path / "intervals")
    assert name in raised.value.__notes__[0]
    assert os.listdir(tmp_path) == ["rows"]


@pytest.mark.usefixtures("client")
def test_bad_arguments_are_named(model, source, tmp_path):
    target = tmp_path / "intervals"
    (tmp_path / "empty").mkdir()
    for given, kind, message in [
        ({"keep_columns": ["c"]}, ValueError, r"source=.* has no column 'c'"),
        ({"keep_columns": ["lower"]}, ValueError, "keep_columns has 'lower'"),
        ({"confidence_level": 90}, ValueError, "confidence_level=90"),
        ({"target": source}, FileExistsError, "exists"),
        ({"target": tmp_path / "no" / "intervals"}, FileNotFoundError, "expected a name in a folder that exists"),
        ({"target": source / "intervals"}, ValueError, "lies in the source"),
        ({"source": tmp_path / "nothing"}, FileNotFoundError, "nothing"),
        ({"source": tmp_path / "empty"}, ValueError, "expected Parquet files, found none"),
    ]:
        with pytest.raises(kind, match=message):
            predict_parquet(model, **{"source": source, "target": target, **given})
    with pytest.raises(ValueError, match="frame has no column 'a'"):
        interval_frame(table(3, 0)[["b"]], model)
    assert sorted(os.listdir(tmp_path)) == ["empty", "rows"]
    assert not (source / "intervals").exists()


def test_without_a_client_it_says_so(model, source, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra sosbands[distributed] is not installed")

    def none():
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match="client=None: expected a Dask client"):
        predict_parquet(model, source, tmp_path / "intervals")
