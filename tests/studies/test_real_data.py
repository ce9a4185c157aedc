"""The real data sets: sizes and values, sources and their hashes, steps, splits, and what bad input is told."""

import hashlib
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from sklearn.datasets import load_diabetes

from sosbands.exceptions import SosbandsError
from studies.data import DatasetNotFoundError, RealData, Split, load_real, real_names, real_steps
from studies.data.catalogue import PAPER_SETS, OpenMLCopy
from studies.data.table import content_hash

FOLDER = os.environ.get("SOSBANDS_DATA")
needs_data = pytest.mark.skipif(not FOLDER, reason="SOSBANDS_DATA is not set: no folder with the CSV files")
ALL_RAW = {paper.raw.file: paper for paper in PAPER_SETS}
ON_OPENML = [paper.name for paper in PAPER_SETS if isinstance(paper.raw.openml, OpenMLCopy)]

# The paper's table: features used and present, rows, learning, calibration and test rows, outliers in per cent.
TABLE = {
    "Concrete": (8, 8, 1030, 412, 412, 206, 30),
    "Bike": (13, 18, 10886, 1000, 1000, 1000, 20),
    "Diabetes": (10, 10, 442, 101, 170, 171, 0),
    "Housing": (8, 8, 20640, 1000, 1000, 1000, 0),
    "Housing log": (8, 8, 20640, 1000, 1000, 1000, 0),
    "MPG": (7, 7, 398, 100, 146, 146, 0),
    "Boston": (10, 13, 490, 100, 200, 190, 0),
    "Energy": (6, 8, 768, 300, 234, 234, 0),
    "Miami": (7, 16, 13932, 1000, 1000, 1000, 0),
    "Sulfur": (6, 6, 10081, 1000, 1000, 1000, 0),
    "Power": (4, 4, 9568, 1000, 1000, 1000, 30),
    "Yacht": (1, 6, 308, 100, 108, 100, 20),
}
# Rows after preprocessing, where the table counts the rows before it; and means of the raw targets.
ROWS_AFTER = {"Housing": 19648, "Housing log": 19648, "MPG": 392}
ROWS_BEFORE = {"Boston": 506}
MEANS = {
    **{"Concrete": 35.818, "Bike": 191.574, "Diabetes": 152.133, "Housing": 2.06856, "Housing log": 2.06856},
    **{"MPG": 23.5146, "Boston": 22.5328, "Energy": 22.3072, "Miami": 399942.0, "Sulfur": 0.0807076},
    **{"Power": 454.365, "Yacht": 10.4954},
}


@pytest.fixture
def offline(monkeypatch):
    """No folder is known and any use of the network is an error."""

    def fetch(**_):
        raise AssertionError("the network was used without being asked for")

    monkeypatch.delenv("SOSBANDS_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)


@needs_data
@pytest.mark.parametrize("name", TABLE)
def test_sizes_and_splits_are_those_of_the_papers_table(name):
    used, present, rows, learning, calibration, test, outliers = TABLE[name]
    data, raw = load_real(name), load_real(name, steps=())
    assert data.name == name
    assert raw.X.shape == (ROWS_BEFORE.get(name, rows), present)
    assert data.X.shape == (ROWS_AFTER.get(name, rows), used)
    assert data.y.shape == data.X.shape[:1]
    assert (data.n_learning, data.n_calibration, data.n_test) == (learning, calibration, test)
    assert data.outlier_fraction == outliers / 100
    assert len(data.feature_names) == len(set(data.feature_names)) == used
    assert raw.y.mean() == pytest.approx(MEANS[name], rel=3e-6, abs=6e-4)
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    kept = [raw.feature_names.index(each) for each in data.feature_names]
    assert {*data.feature_names, *data.dropped_features} == set(raw.feature_names)
    assert not set(data.feature_names) & set(data.dropped_features)
    assert kept == sorted(kept)
    assert all(len(reason) > 10 for reason in data.dropped_features.values())
    check_split(data, data.split(7))


@needs_data
@pytest.mark.parametrize("name", TABLE)
def test_the_raw_data_are_the_file(name, monkeypatch):
    raw = load_real(name, source="folder", steps=())
    path = Path(FOLDER) / f"{name.lower().removesuffix(' log')}.csv"
    expected = pd.read_csv(path, dtype=str)  # older versions read numbers to the last bit but one
    pd.testing.assert_frame_equal(raw.to_frame(), expected.astype(float), check_exact=True)
    assert raw.source == f"file {path}"
    assert (raw.steps, raw.dropped_features) == ({}, {})
    monkeypatch.delenv("SOSBANDS_DATA")
    by_argument = load_real(name, folder=FOLDER, steps=())
    np.testing.assert_array_equal(by_argument.X, raw.X)
    assert by_argument.source == raw.source
    assert content_hash(expected.to_numpy(float)) == ALL_RAW[path.name].raw.values_sha256


@pytest.mark.usefixtures("offline")
def test_names_in_any_spelling():
    assert real_names() == list(TABLE)
    assert load_real("DIABETES").name == load_real(" diabetes ").name == "Diabetes"
    assert real_steps("HOUSING-log") == real_steps("housing_log") == real_steps("Housing log")
    with pytest.raises(ValueError, match=r"name='houses': expected one of \['Concrete', 'Bike', .*'Yacht'\]"):
        load_real("houses")
    with pytest.raises(ValueError, match="name='': expected one of"):
        real_steps("")


# ---------------------------------------------------------------- sources


@pytest.mark.usefixtures("offline")
def test_scikit_learn_ships_diabetes():
    data = load_real("Diabetes")
    assert data.source == load_real("Diabetes", source="sklearn").source == "scikit-learn, load_diabetes(scaled=False)"
    assert data.feature_names == tuple(load_diabetes().feature_names)
    assert (data.X[0, 0], data.X[0, 2], data.y[0]) == (59.0, 32.1, 151.0)
    assert (data.steps, data.dropped_features, data.outlier_fraction) == ({}, {}, 0.0)
    assert data.target_name == "progression"


@needs_data
def test_scikit_learn_and_the_file_agree_on_diabetes():
    shipped, filed = load_real("Diabetes"), load_real("Diabetes", source="folder")
    np.testing.assert_allclose(shipped.X, filed.X, rtol=4e-16)  # older readers of numbers miss the last bit
    np.testing.assert_array_equal(shipped.y, filed.y)
    assert filed.source.endswith("diabetes.csv")
    assert load_real("Diabetes", folder=FOLDER).source == filed.source


def test_other_values_from_scikit_learn_are_refused(monkeypatch):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    monkeypatch.setattr(sklearn.datasets, "load_diabetes", lambda **_: (X, np.where(y == y.max(), y + 1, y)))
    with pytest.raises(
        ValueError, match=r"load_diabetes.*shape \(442, 11\), are not those of diabetes.csv: content hash"
    ):
        load_real("Diabetes")


@pytest.mark.usefixtures("offline")
def test_not_found_says_how_to_get_it(monkeypatch, tmp_path):
    with pytest.raises(DatasetNotFoundError) as caught:
        load_real("Concrete")
    message = str(caught.value)
    for part in ("no folder was given", "SOSBANDS_DATA", "folder=", "concrete.csv", "4353", "source='openml'"):
        assert part in message
    assert "0be478b39df1ab820d96c98919f093d19568b04160912e2ef8bcd77a37738964" in message
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, SosbandsError)
    with pytest.raises(DatasetNotFoundError, match="bike.csv: .* OpenML is not offered: .*17379 rows"):
        load_real("Bike")
    with pytest.raises(DatasetNotFoundError, match="diabetes.csv.*To get it, take it from scikit-learn"):
        load_real("Diabetes", source="folder")
    with pytest.raises(DatasetNotFoundError, match="nowhere': there is no such folder. To get it, put mpg.csv"):
        load_real("MPG", folder=tmp_path / "nowhere")
    with pytest.raises(DatasetNotFoundError, match="that file is not in it. To get it, put mpg.csv"):
        load_real("MPG", folder=tmp_path)
    monkeypatch.setenv("SOSBANDS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetNotFoundError, match="nowhere': there is no such folder"):
        load_real("Power")
    monkeypatch.setenv("SOSBANDS_DATA", "")
    with pytest.raises(DatasetNotFoundError, match="SOSBANDS_DATA is not set"):
        load_real("Power")


@pytest.mark.usefixtures("offline")
def test_a_file_with_another_hash_is_refused(tmp_path):
    (tmp_path / "power.csv").write_bytes(b"AT,V,AP,RH,PE\n1,2,3,4,5\n")
    found = hashlib.sha256(b"AT,V,AP,RH,PE\n1,2,3,4,5\n").hexdigest()
    expected = "51848da3c8b8c29f709f159fad95443eaa8ff2e95c721a00bba582048cd207e4"
    with pytest.raises(ValueError, match=rf"power.csv is not the expected file: sha256 {found}, expected {expected}"):
        load_real("Power", folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Bike", {"source": "web"}, "source='web': expected None, 'sklearn', 'folder' or 'openml'"),
        ("Bike", {"source": "sklearn"}, "ships the data of diabetes.csv only, not of bike.csv. To get it, put bike"),
        ("Bike", {"source": "openml"}, "source='openml' is not offered for bike.csv.*42712.*17379 rows"),
        ("Energy", {"source": "openml"}, "source='openml' is not offered for energy.csv.*rounded"),
        ("Power", {"source": "openml"}, "source='openml' is not offered for power.csv.*confirmed"),
        ("Diabetes", {"source": "openml"}, "source='openml' is not offered for diabetes.csv.*another"),
        ("Bike", {"source": "openml", "folder": "x"}, "folder='x' with source='openml': expected source='folder'"),
        ("Bike", {"steps": "drop"}, r"steps='drop': Bike expected 'paper' or some of \['select-features'\]"),
        ("Bike", {"steps": None}, "steps=None: Bike expected 'paper'"),
        ("Bike", {"steps": ["select-features", "log-target"]}, "'log-target'.: Bike expected 'paper' or some of"),
    ],
)
@pytest.mark.usefixtures("offline")
def test_bad_arguments_are_named(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        load_real(name, **arguments)


# ---------------------------------------------------------------- OpenML, with a fetcher that needs no network


def census_counts(raw):
    """The columns of OpenML's houses, from the averages per household."""
    households = np.rint(raw["Population"] / raw["AveOccup"])
    columns = [raw["MedInc"], raw["HouseAge"], np.rint(raw["AveRooms"] * households)]
    columns += [np.rint(raw["AveBedrms"] * households), raw["Population"], households, raw["Latitude"]]
    return pd.concat([*columns, raw["Longitude"], np.rint(raw["MedHouseVal"] * 100_000)], axis=1)


def openml_frame(name):
    """The data of the CSV file in OpenML's shape: other names and order, categories as text, rows shuffled."""
    paper = next(paper for paper in PAPER_SETS if paper.name == name)
    raw = load_real(name, source="folder", steps=()).to_frame()
    frame = census_counts(raw) if name.startswith("Housing") else raw
    frame.columns = list(paper.raw.openml.columns)
    for column in {"Boston": ["CHAS", "RAD"], "MPG": ["cylinders", "model", "origin"]}.get(name, []):
        frame[column] = frame[column].astype(int).astype(str).astype("category")
    if name == "Concrete":  # some names have two blanks there
        frame.columns = [column.replace("Water (", "Water  (") for column in frame.columns]
    if name == "MPG":
        frame["car"] = "name of a car"
    return frame.sample(frac=1.0, random_state=0)[frame.columns[::-1]].reset_index(drop=True)


@pytest.fixture
def serve(monkeypatch):
    """Let scikit-learn's fetcher answer with a frame; the list holds what it was asked."""

    def answer(frame):
        asked = []
        fetch = lambda **arguments: (asked.append(arguments), sklearn.utils.Bunch(frame=frame))[1]  # noqa: E731
        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
        return asked

    return answer


def test_the_offer():
    assert ON_OPENML == ["Concrete", "Housing", "Housing log", "MPG", "Boston", "Miami", "Sulfur", "Yacht"]


@needs_data
@pytest.mark.parametrize("name", ON_OPENML)
def test_openml_gives_the_same_data(serve, name):
    filed, asked = load_real(name), serve(openml_frame(name))
    fetched = load_real(name, source="openml")
    number = {"Concrete": 4353, "MPG": 196, "Boston": 531, "Miami": 43093, "Sulfur": 23515, "Yacht": 42370}
    assert asked == [{"data_id": number.get(name, 537), "as_frame": True, "target_column": None}]
    assert fetched.source == f"OpenML, data id {number.get(name, 537)}"
    assert (fetched.feature_names, fetched.target_name) == (filed.feature_names, filed.target_name)
    assert content_hash(np.column_stack([fetched.X, fetched.y])) == content_hash(np.column_stack([filed.X, filed.y]))
    for ours, theirs in zip(filed.split(3), fetched.split(3), strict=True):  # though the rows are in another order
        np.testing.assert_array_equal(filed.X[ours], fetched.X[theirs])
        np.testing.assert_array_equal(filed.y[ours], fetched.y[theirs])
    assert not np.array_equal(filed.y, fetched.y)


@needs_data
def test_other_values_from_openml_are_refused(serve):
    frame = openml_frame("Yacht")
    frame.loc[7, "Froude.number"] += 1e-9
    serve(frame)
    with pytest.raises(ValueError, match=r"OpenML, data id 42370: the values, shape \(308, 7\), are not .*yacht.csv"):
        load_real("Yacht", source="openml")
    serve(openml_frame("Yacht").drop(index=5))
    with pytest.raises(ValueError, match=r"shape \(307, 7\), are not .*expected 9eb144aa"):
        load_real("Yacht", source="openml")


@pytest.mark.usefixtures("offline")
def test_wrong_tables_from_openml_are_refused_without_data_too(serve):
    columns = ["a1", "a2", "a3", "a4", "a5", "y1", "y2"]
    serve(pd.DataFrame(np.zeros((10081, 7)), columns=columns))
    with pytest.raises(ValueError, match=r"OpenML, data id 23515.*\(10081, 7\), are not those of sulfur.csv"):
        load_real("Sulfur", source="openml")
    serve(pd.DataFrame(np.zeros((10081, 6)), columns=columns[:-1]))
    with pytest.raises(ValueError, match=r"data id 23515: expected columns \['y2'\], found \['a1', .*'y1'\]"):
        load_real("Sulfur", source="openml")


def test_without_network_openml_says_what_else_to_do(monkeypatch):
    def fetch(**_):
        raise OSError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    with pytest.raises(
        DatasetNotFoundError, match="data id 531 could not be fetched .*no route.*put boston.csv"
    ) as caught:
        load_real("Boston", source="openml")
    assert isinstance(caught.value.__cause__, OSError)


def test_without_pandas(monkeypatch):
    data = load_real("Diabetes")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_frame needs pandas: pip install \"sosbands\[cli\]\""):
        data.to_frame()
    with pytest.raises(ImportError, match=r"source='openml' needs pandas: pip install"):
        load_real("Boston", source="openml")


def test_the_content_hash_by_hand():
    values = np.array([[np.nan, 0.1 + 0.2], [1.0, -0.0], [622280070620.0, 1e-9]])
    expected = hashlib.sha256(b"1,0\n622280070620,1e-09\nnan,0.3").hexdigest()
    assert content_hash(values) == content_hash(values[[2, 0, 1]]) == expected
    assert content_hash(values[:, ::-1]) != expected
    assert content_hash(values[:2]) != expected
    values[1, 0] = 1.0 + 1e-14
    assert content_hash(values) != expected


# ---------------------------------------------------------------- steps


def test_the_steps_by_name():
    steps = {name: list(real_steps(name)) for name in real_names() if real_steps(name)}
    assert steps == {
        "Bike": ["select-features"],
        "Housing": ["drop-capped-target"],
        "Housing log": ["drop-capped-target", "log-target"],
        "MPG": ["drop-incomplete-rows"],
        "Boston": ["drop-capped-target", "select-features"],
        "Energy": ["select-features"],
        "Miami": ["select-features"],
        "Yacht": ["select-features", "log-target"],
    }
    assert "6 rows lack horsepower" in real_steps("MPG")["drop-incomplete-rows"]


@needs_data
def test_housing_drops_the_cap_and_takes_the_logarithm():
    raw, housing, logs = load_real("Housing", steps=()), load_real("Housing"), load_real("Housing log")
    below = raw.y < 5
    assert np.sum(~below) == 992
    np.testing.assert_array_equal(housing.y, raw.y[below])
    np.testing.assert_array_equal(housing.X, raw.X[below])
    np.testing.assert_array_equal(logs.X, housing.X)
    np.testing.assert_array_equal(logs.y, np.log(housing.y))
    assert (housing.target_name, logs.target_name) == ("MedHouseVal", "log(MedHouseVal)")
    assert list(logs.steps.items()) == list(real_steps("Housing log").items())
    only_log = load_real("Housing log", steps=["log-target"])
    np.testing.assert_array_equal(only_log.y, np.log(raw.y))
    assert list(only_log.steps) == ["log-target"]
    only_cap = load_real("Housing log", steps="drop-capped-target")
    np.testing.assert_array_equal(only_cap.y, housing.y)
    assert only_cap.target_name == "MedHouseVal"
    both = load_real("Housing log", steps=iter(["log-target", "drop-capped-target"]))  # any order gives the paper's
    np.testing.assert_array_equal(both.y, logs.y)
    assert list(both.steps) == ["drop-capped-target", "log-target"]


@needs_data
def test_the_other_steps_keep_the_rows_and_features_that_they_say():
    raw, data = load_real("MPG", steps=()), load_real("MPG")
    incomplete = np.isnan(raw.X)
    assert incomplete.sum() == incomplete[:, raw.feature_names.index("horsepower")].sum() == 6
    np.testing.assert_array_equal(data.X, raw.X[~incomplete.any(axis=1)])
    np.testing.assert_array_equal(data.y, raw.y[~incomplete.any(axis=1)])
    raw, data = load_real("Boston", steps=()), load_real("Boston")
    assert np.sum(raw.y == 50) == np.sum(raw.y >= 50) == 16
    assert data.feature_names == ("CRIM", "INDUS", "NOX", "RM", "AGE", "DIS", "TAX", "PTRATIO", "B", "LSTAT")
    features_only, rows_only = (load_real("Boston", steps=[step]) for step in ("select-features", "drop-capped-target"))
    assert features_only.X.shape == (506, 10)
    assert rows_only.X.shape == (490, 13)
    assert list(features_only.dropped_features) == list(data.dropped_features) == ["ZN", "CHAS", "RAD"]
    assert rows_only.dropped_features == {}
    kept = [raw.feature_names.index(name) for name in data.feature_names]
    np.testing.assert_array_equal(data.X, raw.X[raw.y < 50][:, kept])
    raw, data = load_real("Yacht", steps=()), load_real("Yacht")
    assert data.feature_names == ("froude_number",)
    assert data.target_name == "log(residuary_resistance)"
    np.testing.assert_array_equal(data.X[:, 0], raw.X[:, -1])
    np.testing.assert_array_equal(data.y, np.log(raw.y))
    assert len(np.unique(data.X)) == 14
    assert data.y.min() == pytest.approx(np.log(0.01))
    for part, same in zip(data.split(5), raw.split(5), strict=True):  # switching steps off keeps the rows of a split
        np.testing.assert_array_equal(part, same)


# ---------------------------------------------------------------- splits


def check_split(data, split):
    """Three disjoint parts of the paper's sizes, of rows that exist."""
    assert isinstance(split, Split)
    assert [len(part) for part in split] == [data.n_learning, data.n_calibration, data.n_test]
    rows = np.concatenate(split)
    assert len(np.unique(rows)) == len(rows)
    assert rows.min() >= 0
    assert rows.max() < len(data.y)


def test_splits_of_shipped_data():
    data = load_real("Diabetes")
    split = data.split(0)
    check_split(data, split)
    np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(442))  # 101 + 170 + 171 is all
    again, other = data.split(random_state=0), data.split(1)
    assert all(np.array_equal(a, b) for a, b in zip(split, again, strict=True))
    assert not np.array_equal(split.learning, other.learning)
    by_generator = data.split(np.random.default_rng(0))
    np.testing.assert_array_equal(by_generator.test, split.test)
    check_split(data, data.split())
    check_split(data, data.split(np.random.RandomState(3)))
    with pytest.raises(ValueError, match="random_state=-1: expected an integer >= 0"):
        data.split(-1)
    learning, calibration, test = split  # the check rejects broken ones
    for broken in (
        Split(learning, calibration, np.append(test[1:], learning[0])),
        Split(learning, calibration, test[1:]),
        Split(np.append(learning[1:], 442), calibration, test),
    ):
        with pytest.raises(AssertionError):
            check_split(data, broken)


def test_every_row_is_equally_likely_to_be_learnt_from():
    data = load_real("Diabetes")
    counts = np.bincount(np.concatenate([data.split(seed).learning for seed in range(500)]), minlength=442)
    expected = 500 * 101 / 442
    # Counts are binomial: their variance over their mean is 1 - 101/442, up to sampling noise of about 7 %.
    assert counts.var() / expected == pytest.approx(1 - 101 / 442, rel=0.25)


@needs_data
def test_frames_and_pickles():
    data = load_real("Energy")
    frame = data.to_frame()
    assert list(frame.columns) == [*data.feature_names, "heating_load"]
    np.testing.assert_array_equal(frame.to_numpy(), np.column_stack([data.X, data.y]))
    copy = pickle.loads(pickle.dumps(data))
    assert isinstance(copy, RealData)
    np.testing.assert_array_equal(copy.X, data.X)
    np.testing.assert_array_equal(copy.split(2).test, data.split(2).test)
    assert "name='Energy'" in repr(data)
    with pytest.raises(AttributeError):
        data.name = "other"
