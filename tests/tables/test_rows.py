"""Rows read once: columns, what each way of reading finds and makes of them, blocks, and what belongs to rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sosbands.baselines import GradientBoostingCQR, HomoscedasticGP
from sosbands.tables import TableEncoder
from sosbands.tables.columns import ColumnTable
from sosbands.tables.rows import (
    CATEGORIES,
    COLUMNS,
    DENSE,
    GIVEN,
    NUMBERS,
    TABLE,
    LearningData,
    RowReader,
    Rows,
    learnt_rows,
)

FRAME = pd.DataFrame({"size": [1.0, 2.5, 4.0, 7.0], "open": [True, False, True, True], "ward": list("babc")})
NUMBER_FRAME = FRAME[["size", "open"]]
FLOATS = NUMBER_FRAME.astype(float)
PLAIN = np.array([[1.0, 1.0], [2.5, 0.0], [4.0, 1.0], [7.0, 1.0]])
GAP = np.array([[1.0, 1.0], [np.nan, 0.0], [4.0, 1.0], [7.0, 1.0]])
Y = np.array([0.0, 1.0, 2.0, 3.0])


# ---------------------------------------------------------------- columns


def cells(column):
    return [column.levels[k] for k in column.values] if column.levels else column.values.tolist()


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_some_rows_of_columns_are_columns_of_some_rows(frame):
    table = ColumnTable.of(frame)
    assert (len(table), table.shape, table.named) == (4, (4, 3), True)
    for rows in (np.array([3, 0]), slice(1, 3)):
        some = table.take(rows)
        direct = ColumnTable.of(FRAME.iloc[rows])
        assert (some.shape, some.named) == (direct.shape, True)
        for ours, other in zip(some.columns, direct.columns, strict=True):
            assert (ours.name, ours.kind, cells(ours)) == (other.name, other.kind, cells(other))
            assert sorted(ours.levels) == sorted(other.levels)  # none that no row has
    assert table.columns[0].values.tolist() == [1.0, 2.5, 4.0, 7.0]  # as it was


def test_columns_are_an_array_if_all_are_numbers_without_gaps():
    assert ColumnTable.of(FRAME).numbers() is None
    assert np.array_equal(ColumnTable.of(NUMBER_FRAME).numbers(), PLAIN)
    assert ColumnTable.of(GAP).numbers() is None
    assert not ColumnTable.of(GAP).named


# ---------------------------------------------------------------- reading


class Model(BaseEstimator):
    """Keeps number and names of its features."""


def learnt(X, wanted):
    model = Model()
    return model, *RowReader.learn(model, X, wanted)


@pytest.mark.parametrize("wanted", [TABLE, NUMBERS])
@pytest.mark.parametrize("X", [PLAIN, PLAIN.tolist(), PLAIN.astype(object), NUMBER_FRAME, pl.from_pandas(NUMBER_FRAME)])
def test_numbers(X, wanted):
    model, reader, rows = learnt(X, wanted)
    assert (reader.kind, reader.encodes, model.n_features_in_) == (NUMBERS, wanted == TABLE, 2)
    for each in (rows, reader.read(model, X)):
        assert each.table.dtype == float
        assert np.array_equal(each.table, PLAIN)
        assert each.given is (X if hasattr(X, "columns") else each.table)
    assert list(getattr(model, "feature_names_in_", [])) == (["size", "open"] if hasattr(X, "columns") else [])
    data = LearningData.of(rows, Y, None, None)
    reader, points = reader.learning("auto", data)
    assert type(reader.preprocessor) is StandardScaler
    np.testing.assert_allclose(points, (PLAIN - PLAIN.mean(axis=0)) / PLAIN.std(axis=0))
    np.testing.assert_allclose(reader.mean, 0, atol=1e-15)
    assert reader.points(rows) is points  # made once
    assert reader.sources(model) == (["size", "open"] if hasattr(X, "columns") else ["feature 0", "feature 1"])


@pytest.mark.parametrize("X", [FRAME, pl.from_pandas(FRAME), FRAME.to_numpy(), GAP])
def test_columns(X):
    model, reader, rows = learnt(X, TABLE)
    assert (reader.kind, rows.given is X, rows.table.shape) == (COLUMNS, True, X.shape)
    values = [1.0, np.nan, 4.0, 7.0] if X is GAP else [1.0, 2.5, 4.0, 7.0]
    np.testing.assert_array_equal(rows.table.columns[0].values, values)
    reader, points = reader.as_numbers(LearningData.of(rows, Y, None, None))
    expected = TableEncoder(scale=False).fit(X, Y)
    np.testing.assert_array_equal(points, expected.transform(X))
    np.testing.assert_array_equal(reader.points(reader.read(model, X[:2])), expected.transform(X[:2]))
    assert reader.model_sees_points
    assert reader.for_model(rows) is rows.points


def test_rows_as_they_are_given_for_a_transformer():
    sparse = csr_array(PLAIN)
    model, reader, rows = learnt(sparse, GIVEN)
    assert (reader.kind, rows.given is sparse, len(rows), model.n_features_in_) == (GIVEN, True, 4, 2)
    reader, points = reader.learning(FunctionTransformer(accept_sparse=True), LearningData.of(rows, Y, None, None))
    np.testing.assert_array_equal(points, PLAIN)
    np.testing.assert_array_equal(reader.points(rows.take(np.array([2, 1]))), PLAIN[[2, 1]])


@pytest.mark.parametrize(("X", "wanted"), [(FRAME, DENSE), (GAP, DENSE), (GAP, CATEGORIES), (FLOATS, CATEGORIES)])
def test_tables_for_models_that_take_them(X, wanted):
    """What models see is what was given; points are the numbers, where all are."""
    model, reader, rows = learnt(X, wanted)
    assert (reader.kind, rows.given is X, reader.for_model(rows) is X) == (DENSE, True, True)
    seen, found = reader.as_numbers(LearningData.of(rows, Y, None, None))
    assert (seen, found is X) == (reader, True)
    reader = reader.remembering(LearningData.of(rows, Y, None, None))
    standard = reader.standardised(rows)
    if X is FLOATS:
        np.testing.assert_allclose(standard["X"], (PLAIN - PLAIN.mean(axis=0)) / PLAIN.std(axis=0))
        assert standard["X_learn"].tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    else:
        assert standard == {}
    assert learnt_rows(reader.hashes_of(reader.read(model, X), Y), reader.hashes) == 4
    assert learnt_rows(reader.hashes_of(reader.read(model, X), Y + 1), reader.hashes) == 0


def test_boosting_gets_categories_as_they_are_but_texts_as_numbers():
    assert learnt(FRAME.astype({"ward": "category"}), CATEGORIES)[1].kind == DENSE
    assert learnt(FRAME, CATEGORIES)[1].kind == COLUMNS
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        learnt(csr_array(PLAIN), TABLE)


@pytest.mark.parametrize("method", [HomoscedasticGP, GradientBoostingCQR])
@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_spans_of_time_are_days_in_fit_and_later(method, convert):
    days = np.random.default_rng(0).integers(1, 99, 60)
    X = np.column_stack([np.arange(60.0), days])
    frame = convert(pd.DataFrame({"a": X[:, 0], "b": pd.to_timedelta(days, "D")}))
    y = np.sin(days)
    plain, spans = (method(calibration_size=None, random_state=0).fit(rows, y).predict(rows) for rows in (X, frame))
    np.testing.assert_array_equal(spans, plain)


# ---------------------------------------------------------------- what belongs to rows


def test_blocks_of_rows(monkeypatch):
    monkeypatch.setattr("sosbands.tables.rows.BLOCK_ROWS", 3)
    rows = Rows(FRAME, ColumnTable.of(FRAME), PLAIN)
    blocks = list(rows.blocks())
    assert [len(each) for each in blocks] == [3, 1]
    assert blocks[1].given["ward"].tolist() == ["c"]
    assert blocks[1].points.tolist() == [[7.0, 1.0]]
    assert next(rows.take(slice(0, 2)).blocks()).points.shape == (2, 2)


def test_all_that_belongs_to_rows_is_taken_together():
    data = LearningData.of(Rows(PLAIN, PLAIN), Y, [1, 2, 3, 4], list("abab"))
    some = data.take(np.array([3, 1])).take(np.array([1]))
    assert (some.y.tolist(), some.weights.tolist(), some.groups.tolist()) == ([1.0], [2.0], ["b"])
    assert (some.positions.tolist(), some.rows.table.tolist(), len(some)) == ([1], [[2.5, 0.0]], 1)
    assert LearningData.of(data.rows, Y, np.full(4, 3.0), None).weights is None  # all alike
    learn, held = data.split(1, np.random.RandomState(0), in_order=True)
    assert (learn.positions.tolist(), held.positions.tolist()) == ([0, 1], [2, 3])  # the last one of each group


def test_columns_of_an_array_are_those_learnt_from_by_position():
    frame = pd.DataFrame({"km": [1.0, np.nan, 3.0], "town": ["a", "b", "a"]})
    encoder = TableEncoder().fit(frame)
    read = ColumnTable.of(frame.to_numpy(dtype=object))
    assert [column.name for column in read.columns] == ["x0", "x1"]
    np.testing.assert_array_equal(encoder.transform(read), encoder.transform(frame))
    assert ColumnTable.of(read) is read
