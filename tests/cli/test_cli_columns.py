"""What cells mean: kinds of columns and the numbers and texts they become, the same from CSV and Parquet."""

import datetime
import decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sosbands.cli.columns import Columns, cells_of, kind_of, learn_columns
from sosbands.cli.output import Output
from sosbands.cli.table_files import open_table, table_writer, write_rows

FIRST_DAY = datetime.date(1970, 1, 1)
FILE = SimpleNamespace(path=Path("t.csv"))


def kind_of_cells(cells):
    return kind_of(cells_of(pa.table({"c": cells}), "c", FILE))


def read_as(kind, cells, first_row=1):
    """What models get of cells of a kind."""
    return Columns({"c": kind}, "y").frame(pa.table({"c": cells}), FILE, first_row)["c"].to_numpy()


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", " 2.5 ", "-3e2", "+4", "NA", ""], "number"),
        (["0", "1", "1", "0"], "number"),  # not booleans: numbers are what they look like
        (["true", "False", "TRUE", "nan"], "boolean"),
        (["2024-01-31", "2024-02-29", "N/A"], "date"),
        (["2024-01-31 10:30", "2024-01-31T10:30:15.5Z", "2024-01-31T10:30+02:00"], "date"),
        (["a", "b", "1"], "category"),
        (["1", "2", "a", "b"], "category"),  # half of the cells are numbers: not most
        (["31.12.2024", "1.1.2024"], "category"),
        (["yes", "no"], "category"),
        ([1, None, 3], "number"),
        ([1.5, None], "number"),
        ([decimal.Decimal("1.50")], "number"),
        ([True, None], "boolean"),
        ([FIRST_DAY], "date"),
        ([datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)], "date"),
    ],
)
def test_the_kind_of_a_column_is_decided_by_all_of_its_cells(cells, kind):
    assert kind_of_cells(pa.array(cells)) == kind
    assert kind_of_cells(pa.chunked_array([pa.array(cells)])) == kind


def test_dictionaries_are_what_they_hold_and_categories_have_no_limit():
    assert kind_of_cells(pa.array(["a", "b", "a"]).dictionary_encode()) == "category"
    assert kind_of_cells(pa.array(["1", "2"], pa.large_string())) == "number"
    assert read_as("category", pa.array(["a", None, "a"]).dictionary_encode()).tolist() == ["a", "", "a"]
    texts = [f"name {i}" for i in range(5000)]
    assert kind_of_cells(pa.array(texts)) == "category"
    assert read_as("category", pa.array(texts)).tolist() == texts


def test_all_columns_that_cannot_be_read_are_named_at_once(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c,y\n1,2024-01-01,,1\n2,2024-13-01,,2\nx,2024-01-02,,3\n")
    with pytest.raises(ValueError, match=r"t\.csv: 3 columns cannot be read\n") as refused:
        learn_columns(open_table(tmp_path / "t.csv"), "y")
    lines = str(refused.value).splitlines()[1:]
    assert lines[0].startswith("  column 'a', row 3: 'x' is not a number, as 67% of the column; correct it, or use --")
    assert lines[1].startswith("  column 'b', row 2: '2024-13-01' is not an ISO date such as 2024-12-31, as 67%")
    assert lines[2] == "  column 'c': every cell is missing; leave the column out with --drop"
    columns = Columns({"a": "number", "b": "date", "c": "number"}, "y")
    with pytest.raises(ValueError, match=r"2 columns cannot be read\n  column 'a', row 13: .*\n  column 'b', row 12: "):
        columns.frame(open_table(tmp_path / "t.csv").read(["a", "b", "c"]), open_table(tmp_path / "t.csv"), 11)


def test_rows_without_a_target_are_dropped_on_demand(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,1\n2,\n3,NA\n4,8\n")
    file = open_table(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"column 'y', row 2: the target is missing, in 2 of 4 rows in all.*--drop-mi"):
        learn_columns(file, "y")
    told = Output(as_json=True)
    _, frame, y = learn_columns(file, "y", dropping=told)
    assert (frame.a.tolist(), frame.index.tolist(), y.tolist()) == ([1.0, 4.0], [0, 1], [1.0, 8.0])
    assert told.notes == ["2 of 4 rows left out, as their target 'y' is missing"]
    (tmp_path / "none.csv").write_text("a,y\n1,\n2,\n")
    with pytest.raises(ValueError, match="column 'y': the target is missing in every row"):
        learn_columns(open_table(tmp_path / "none.csv"), "y", dropping=told)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", " 2.5", "NA", "1e-3", "+7"], [1, 2.5, np.nan, 0.001, 7]),
        (["-0", "None", "0.1"], [-0.0, np.nan, 0.1]),
        ([2**53 + 1, None], [float(2**53), np.nan]),
        ([decimal.Decimal("0.10"), None], [0.1, np.nan]),
        ([float("nan"), 1.0], [np.nan, 1.0]),
    ],
)
def test_numbers(cells, expected):
    np.testing.assert_array_equal(read_as("number", pa.array(cells)), expected)


def test_other_ways_to_write_numbers_are_refused_with_their_row():
    for text in ("1_000", "0x10", "1,5", "1 000", "one", "--1"):
        with pytest.raises(ValueError, match=r"t.csv: column 'c', row 12: .* is not a number"):
            read_as("number", pa.array(["1", text]), first_row=11)


@given(st.floats(-1e150, 1e150))
def test_numbers_in_text_are_read_exactly(value):
    assert read_as("number", pa.array([repr(value)]))[0] == value
    assert read_as("number", pa.array([f" {value!r}"]))[0] == value


@given(st.datetimes(min_value=datetime.datetime(1900, 1, 1), max_value=datetime.datetime(2100, 1, 1)))
def test_dates_are_days_since_1970_in_text_and_as_timestamps(moment):
    expected = (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    assert read_as("date", pa.array([moment.isoformat()]))[0] == pytest.approx(expected, abs=1e-9)
    assert read_as("date", pa.array([moment], pa.timestamp("us")))[0] == pytest.approx(expected, abs=1e-9)


def test_time_zones_count():
    texts = pa.array(["1970-01-02T00:00+06:00", "1970-01-02", "1970-01-01T18:00Z", None])
    np.testing.assert_array_equal(read_as("date", texts), [0.75, 1.0, 0.75, np.nan])
    zoned = pa.array([datetime.datetime(1970, 1, 1, 18, tzinfo=datetime.UTC)], pa.timestamp("ns", "Asia/Dhaka"))
    assert read_as("date", zoned).tolist() == [0.75]
    assert read_as("date", pa.array([datetime.date(1970, 1, 3)])).tolist() == [2.0]


def test_categories_and_booleans_are_the_same_texts_from_values_and_from_text():
    assert read_as("category", pa.array([" a ", "NA", None, "b c"])).tolist() == ["a", "", "", "b c"]
    for cells in ([3, None], ["3", ""]):
        assert read_as("category", pa.array(cells)).tolist() == ["3", ""]
    assert read_as("category", pa.array([3.0, 2.5, float("nan")])).tolist() == ["3", "2.5", ""]
    for cells in ([True, False, None], ["TRUE", "false", ""]):
        assert read_as("boolean", pa.array(cells)).tolist() == ["true", "false", ""]


def test_names_are_trimmed_a_byte_order_mark_is_no_name_and_cells_may_hold_line_ends(tmp_path):
    (tmp_path / "t.csv").write_bytes('\ufeffa, b c ,"y"\r\n1,2,3\r\n\r\n4,5,6\r\n'.encode())
    file = open_table(tmp_path / "t.csv")
    assert file.names == ["a", "b c", "y"]
    assert file.read(["y", "a"]).to_pydict() == {"y": ["3", "6"], "a": ["1", "4"]}
    (tmp_path / "t.csv").write_text('a,y\n"one,\ntwo",1\n"""quoted""",2\n')
    assert open_table(tmp_path / "t.csv").read(["a"])["a"].to_pylist() == ["one,\ntwo", '"quoted"']


def fail_after_a_batch(path):
    schema = pa.schema([("a", pa.float64())])
    with table_writer(path, schema) as write:
        write(pa.record_batch([pa.array([1.0])], schema=schema))
        raise RuntimeError


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_survive_writing_and_reading_and_interrupted_tables_are_removed(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    with pytest.raises(RuntimeError):
        fail_after_a_batch(path)
    assert list(tmp_path.iterdir()) == []
    rows = [{"name": 'a, "b"', "x": 0.1}, {"name": "", "x": float("inf")}, {"name": "é", "x": -1e-300}]
    write_rows(path, rows)
    table = open_table(path).read(["name", "x"])
    assert table["name"].to_pylist() == [row["name"] for row in rows]
    assert [float(x) for x in table["x"].to_pylist()] == [row["x"] for row in rows]
