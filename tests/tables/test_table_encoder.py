"""TableEncoder: what each column becomes, by hand; the same from pandas, polars and arrays; no row knows its target."""

import datetime
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from sosbands.exceptions import IdentifierWarning
from sosbands.tables import TableEncoder
from sosbands.tables.columns import kind_of_texts
from sosbands.tables.encoder import SMOOTH, cross_fitted

DAY = datetime.date(1970, 1, 11)
MANY = [f"shop {i}" for i in range(25) for _ in range(4)]


def encoded(column, **options):
    """What becomes of one column, by name, unscaled."""
    made = TableEncoder(scale=False, **options).set_output(transform="pandas")
    return made.fit_transform(pd.DataFrame({"c": column})).to_dict("list")


@parametrize_with_checks([TableEncoder(), TableEncoder(scale=False, mark_gaps=False)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


NUMBERS = {
    "numbers": ([1.0, 2.0, 5.0], [1, 2, 5]),
    "integers": (np.array([7, 8, 8], dtype="int8"), [7, 8, 8]),
    "nullable": (pd.array([1, 2, 3], dtype="Int64"), [1, 2, 3]),
    "objects": (np.array([1, 2.5, np.float32(3)], dtype=object), [1, 2.5, 3]),
    "texts": (["1", " 2e1 ", "-3"], [1, 20, -3]),
    "constant": ([4.0, 4.0, 4.0], [4, 4, 4]),
    "all missing": ([np.nan, np.nan], [0, 0]),
    "booleans": ([True, False, True], [1, 0, 1]),
    "booleans as texts": (["true", "FALSE", "True"], [1, 0, 1]),
    "dates": (pd.to_datetime(["1970-01-02", "1970-01-01 12:00"], format="mixed"), [1, 0.5]),
    "zoned dates": (pd.to_datetime(["1970-01-02"] * 2).tz_localize("Asia/Dhaka"), [0.75, 0.75]),
    "dates as texts": (["1970-01-02", "1970-01-01T18:00Z"], [1, 0.75]),
    "date objects": ([DAY, datetime.date(1969, 12, 31)], [10, -1]),
    "spans of time": (pd.to_timedelta([36, 24], "h"), [1.5, 1]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_columns_of_numbers(name):
    column, expected = NUMBERS[name]
    assert encoded(column) == {"c": expected}


@pytest.mark.parametrize(
    ("column", "filled"),
    [
        ([1.0, np.nan, 2.0, 6.0], [1, 2, 2, 6]),
        (["1", "NA", "2", "6"], [1, 2, 2, 6]),
        (pd.array([1, None, 2, 6], dtype="Int64"), [1, 2, 2, 6]),
        ([True, None, True, False], [1, 1, 1, 0]),
        (pd.to_datetime(["1970-01-02", None, "1970-01-03", "1970-01-07"]), [1, 2, 2, 6]),
    ],
)
def test_gaps_are_filled_with_the_median_and_marked(column, filled):
    assert encoded(column) == {"c": filled, "c_missing": [0, 1, 0, 0]}
    assert encoded(column, mark_gaps=False) == {"c": filled}


def test_few_categories_get_a_column_each_and_rare_ones_one_together():
    column = ["a"] * 5 + ["b"] * 6 + ["c"] * 2 + ["d"] + [None] * 5
    made = TableEncoder().set_output(transform="pandas").fit(pd.DataFrame({"w": column}))
    assert list(made.get_feature_names_out()) == ["w_(missing)", "w_a", "w_b", "w_(rare)"]
    new = made.transform(pd.DataFrame({"w": ["a", "c", "never seen", None, " b "]}))
    assert new.to_numpy().tolist() == [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]]
    assert made.levels_ == {"w": ["", "a", "b", "c", "d"]}
    without_rare = TableEncoder().fit(pd.DataFrame({"w": ["a", "b"] * 5}))
    assert without_rare.transform(pd.DataFrame({"w": ["c"]})).tolist() == [[0, 0]]


def test_categories_of_numbers_are_told_by_dtype_or_by_name():
    codes = [1, 2, 3] * 5
    by_dtype = TableEncoder().fit_transform(pd.DataFrame({"k": pd.Categorical(codes)}))
    by_name = TableEncoder({"k": "category"}).fit_transform(pd.DataFrame({"k": codes}))
    assert by_dtype.tolist() == by_name.tolist() == np.tile(np.eye(3), (5, 1)).tolist()
    assert TableEncoder(scale=False).fit_transform(pd.DataFrame({"k": codes}))[:, 0].tolist() == codes


def test_many_categories_become_smoothed_mean_targets():
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    frame = pd.DataFrame({"shop": MANY})
    made = TableEncoder(scale=False).fit(frame, y)
    new = made.transform(pd.DataFrame({"shop": ["shop 3", "shop 99", None]}))[:, 0]
    np.testing.assert_allclose(new, [(y[12:16].sum() + SMOOTH * y.mean()) / (4 + SMOOTH), y.mean(), y.mean()])
    assert (made.by_target_, made.one_hot_) == (["shop"], [])
    with pytest.raises(ValueError, match="y=None: expected the targets of the rows, as the columns 'shop' have more"):
        TableEncoder().fit(frame)


def test_no_learning_row_knows_its_own_target():
    rng = np.random.default_rng(1)
    y, frame = rng.normal(size=100), pd.DataFrame({"shop": MANY})
    before = TableEncoder(scale=False).fit_transform(frame, y)[:, 0]
    for row in range(0, 100, 9):
        changed = y.copy()
        changed[row] += 100.0
        after = TableEncoder(scale=False).fit_transform(frame, changed)[:, 0]
        assert after[row] == before[row]
        assert (after != before).any()


def test_folds_see_no_target_of_the_rows_that_they_hold_out():
    rng = np.random.default_rng(2)
    y, frame = rng.normal(size=100), pd.DataFrame({"x": rng.normal(size=100), "shop": MANY})
    made = TableEncoder()
    points = made.fit_transform(frame, y)
    rows = rng.permutation(100)
    learn, held = np.sort(rows[:80]), np.sort(rows[80:])
    table = made.fold_points(frame, y, points)(learn, held)
    assert np.array_equal(table[:, 0], points[:, 0])
    codes = np.repeat(np.arange(25), 4)[:, None]
    scaled = cross_fitted(codes[learn], y[learn]) - made.target_scaler_.mean_
    np.testing.assert_allclose(table[learn, 1], scaled[:, 0] / made.target_scaler_.scale_)
    changed = np.where(np.isin(np.arange(100), held), 100.0, y)
    assert np.array_equal(made.fold_points(frame, changed, points)(learn, held), table)
    assert TableEncoder().fit(frame[["x"]]).fold_points(frame[["x"]], y, points) is None


def test_scaling_leaves_zeros_and_ones():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan, 6.0] * 25, "b": [True, False] * 50, "w": ["p", "q"] * 50})
    frame["shop"] = MANY
    points = TableEncoder().fit_transform(frame, rng.normal(size=100))
    assert set(points[:, 1:5].ravel()) == {0.0, 1.0}
    np.testing.assert_allclose(points[:, [0, -1]].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(points[:, [0, -1]].std(axis=0), 1)


def test_identifiers_are_warned_of_once_and_become_constant():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"id": [f"n{i}" for i in range(60)]})
    with pytest.warns(IdentifierWarning, match="column 'id': most learning rows have a text of their own") as seen:
        points = TableEncoder(scale=False).fit(frame, rng.normal(size=60)).transform(frame)
    assert len(seen) == 1
    assert len(set(points[:, 0])) == 1


def mixed(n=60):
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "k": rng.integers(0, 4, n),
            "flag": rng.random(n) < 0.5,
            "ward": rng.choice(["n", "s", None], n),
            "shop": rng.choice([f"s{i}" for i in range(30)], n),
            "cat": pd.Categorical(rng.choice(["u", "v"], n)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9999, n), "h"),
        }
    )


MIXED, TARGETS = mixed(), np.random.default_rng(6).normal(size=60)


@pytest.fixture(scope="module")
def made():
    return TableEncoder().fit(MIXED, TARGETS)


def test_polars_and_arrays_give_what_pandas_gives():
    polars = pytest.importorskip("polars")
    from_polars, expected = polars.from_pandas(MIXED), TableEncoder().fit_transform(MIXED, TARGETS)
    encoder = TableEncoder()
    assert np.array_equal(encoder.fit_transform(from_polars, TARGETS), expected)
    assert np.array_equal(encoder.transform(from_polars[:7]), TableEncoder().fit(MIXED, TARGETS).transform(MIXED[:7]))
    assert encoder.kinds_["day"] == "date"
    assert np.array_equal(TableEncoder().fit_transform(MIXED.to_numpy(dtype=object), TARGETS), expected)


def test_columns_are_found_by_name_and_survive_pickling(made):
    expected = made.transform(MIXED)
    again = pickle.loads(pickle.dumps(made))
    assert again.levels_ == made.levels_
    assert np.array_equal(again.transform(MIXED[MIXED.columns[::-1]].assign(more=1)), expected)
    with config_context(transform_output="pandas"):
        assert np.array_equal(made.transform(MIXED).to_numpy(), expected)


def test_what_becomes_what(made):
    assert made.describe() == (
        "Columns: 2 numbers; 1 date as days since 1970; 1 boolean as 0 and 1; gaps in 'x' filled with the median and "
        "marked; a column for each text of 'ward', 'cat' (those of fewer than 5 rows share one); the mean target of "
        f"each text of 'shop' ({len(made.levels_['shop'])} texts), learning rows by those of other folds."
    )
    names = ["x", "k", "day", "flag", "x_missing", "ward_(missing)", "ward_n", "ward_s", "cat_u", "cat_v", "shop"]
    assert list(made.get_feature_names_out()) == names
    assert made.sources() == ["x", "k", "day", "flag", "x", "ward", "ward", "ward", "cat", "cat", "shop"]
    assert made.transform(MIXED).shape == (60, len(names))


BAD = {
    "lacking": (lambda t: t.drop(columns=["x", "day"]), r"X lacks the columns 'x', 'day' that were learnt from"),
    "texts for numbers": (
        lambda t: t.assign(x="oops"),
        r"column 'x', row 0 \(the first is 0\): 'oops' is not a number",
    ),
    "dates for numbers": (lambda t: t.assign(x=t.day), "column 'x': holds dates, expected numbers as in the learning"),
    "numbers for dates": (lambda t: t.assign(day=1.5), "column 'day': holds numbers, expected dates"),
    "texts for dates": (lambda t: t.assign(day="soon"), "column 'day', row 0 .*: 'soon' is not an ISO date"),
    "numbers for booleans": (lambda t: t.assign(flag=2.0), "column 'flag': holds numbers, expected booleans"),
    "dates for categories": (lambda t: t.assign(ward=t.day), "column 'ward': holds dates, expected categories"),
    "infinity": (lambda t: t.assign(k=[1.0, np.inf] * 30), r"column 'k', row 1 .*: inf is not a finite number"),
    "too few columns": (
        lambda t: t.to_numpy(dtype=object)[:, :2],
        "X has 2 features, but TableEncoder is expecting 7 features as input: 'x'",
    ),
    "one dimension": (lambda t: t.k.to_numpy(), r"X has shape \(60,\): expected two dimensions"),
}


@pytest.mark.parametrize("name", BAD)
def test_new_rows_of_another_kind_are_refused_by_name(name, made):
    change, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        made.transform(change(MIXED))


def test_gaps_make_no_other_kind():
    made = TableEncoder(scale=False).fit(MIXED, TARGETS)
    gaps = MIXED.assign(x=None, day=pd.NaT, flag=[1.0, np.nan] * 30)[:2]
    found = dict(zip(made.get_feature_names_out(), made.transform(gaps).T, strict=True))
    assert found["x"].tolist() == [MIXED.x.median()] * 2
    assert found["x_missing"].tolist() == [1, 1]
    assert found["flag"][0] == 1


BAD_LEARNING = [
    ({"c": ["1", "2", "x"]}, None, r"column 'c', row 2 .*: 'x' is not a number, as 67% of the column; correct it"),
    ({"c": [{}, {}]}, None, "column 'c' holds cells of type dict"),
    ({"c": MANY}, np.zeros(3), r"y has shape \(3,\): expected \(100,\)"),
]


def test_bad_learning_rows_are_refused():
    for columns, y, message in BAD_LEARNING:
        with pytest.raises((ValueError, TypeError), match=message):
            TableEncoder().fit(pd.DataFrame(columns), y)
    with pytest.raises(ValueError, match="several columns named"):
        TableEncoder().fit(pd.DataFrame(np.ones((3, 2)), columns=["c", "c"]))
    kinds = r"kinds=\{'c': 'word'\}: expected columns of X \('c'\) with a kind among number"
    with pytest.raises(ValueError, match=kinds):
        TableEncoder({"c": "word"}).fit(pd.DataFrame({"c": [1, 2]}))
    with pytest.raises(NotFittedError):
        TableEncoder().transform(pd.DataFrame({"c": [1, 2]}))


def test_kinds_of_texts():
    assert kind_of_texts({"1": 2, "2.5": 1}).kind == "number"
    assert kind_of_texts({"1": 2, "x": 2}).kind == "category"  # half is not most
    mostly = kind_of_texts({"1": 3, "x": 1})
    assert (mostly.kind, mostly.wrong, mostly.share) == ("number", frozenset({"x"}), 0.75)
    assert kind_of_texts({"inf": 1, "nan": 1}).kind == "number"
    assert kind_of_texts({}).kind == "category"
