"""Tables in CSV and Parquet files, read and written in pieces, so that their size does not matter."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sosbands._extras import need
from sosbands._files import written
from sosbands._words import listed
from sosbands.tables.columns import number

SUFFIXES = (".csv", ".parquet")
BLOCK_BYTES = 1 << 20  # of a CSV file read at a time (pyarrow reads some twenty ahead); a single row must fit
BATCH_ROWS = 1 << 13  # handed on at a time; a multiple of the rows that models predict at a time, so that bits agree
GROUP_BYTES = 1 << 23  # of a Parquet file written at a time


def check_suffix(path: Path, role: str, suffixes: Sequence[str] = SUFFIXES) -> str:
    """The suffix of a file, or an error that names it."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        ends = (", " if len(suffixes) > 2 else " or ").join(suffixes)
        raise ValueError(f"{role} {path}: expected a name that ends in {ends}")
    return suffix


class TableFile:
    """A table on disk."""

    path: Path
    names: list[str]
    schema: Any  # of pyarrow; every column of a CSV file is text
    n_rows: int | None = None  # None where it is not known before reading (CSV)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Some of the columns as record batches of 8192 rows, the last one excepted, whatever the file looks like."""
        pa = need("pyarrow")
        waiting: list[Any] = []
        for part in self._parts(names):
            waiting.append(part)
            while sum(map(len, waiting)) >= BATCH_ROWS:
                (joined,) = pa.Table.from_batches(waiting).combine_chunks().to_batches()
                yield joined.slice(0, BATCH_ROWS)
                waiting = [joined.slice(BATCH_ROWS)]
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches() if waiting else []

    def _parts(self, names: Sequence[str]) -> Iterator[Any]:
        """The same in pieces of any length, as they are read."""
        raise NotImplementedError

    def read(self, names: Sequence[str]) -> Any:
        """Some of the columns of all rows, as one pyarrow table; an error if there is no row."""
        pa = need("pyarrow")
        schema = pa.schema([self.schema.field(name) for name in names])
        table = pa.Table.from_batches(list(self.batches(names)), schema).combine_chunks()
        if not len(table):
            raise ValueError(f"{self.path} has no rows")
        return table

    def _check_names(self) -> None:
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise ValueError(f"{self.path} has several columns named {listed(repeated)}: expected different names")
        if "" in self.names:
            position = self.names.index("") + 1
            raise ValueError(f"{self.path}: column {position} has no name, expected one for each column")


def open_table(path: Path) -> TableFile:
    """A CSV or Parquet file, by its suffix; the names of the columns are read and checked."""
    suffix = check_suffix(path, "file")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: expected a file")
    if not path.exists():
        raise ValueError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    return CsvFile(path) if suffix == ".csv" else ParquetFile(path)


class CsvFile(TableFile):
    """Comma-separated text in UTF-8 with a line of names; every cell is read as text."""

    def __init__(self, path: Path) -> None:
        pa = need("pyarrow")
        self.path = path
        self._refused = ""  # what is wrong with a row that has too few or too many cells
        with open(path, "rb") as file:
            line = file.readline()
        try:
            text = line.decode("utf-8-sig").strip("\r\n")
            header = next(csv.reader([text], strict=True), [])
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path}: its first line is no row of names in UTF-8 ({error})") from error
        if not header:
            raise ValueError(f"{path}: its first line is empty, expected the names of the columns")
        if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
            raise ValueError(f"{path}: its first line is {header[0]!r}, expected names with commas between them")
        if all(number(name) is not None for name in header):
            raise ValueError(f"{path}: its first line holds numbers only, expected the names of the columns")
        self.names = [name.strip() for name in header]
        self._check_names()
        self.schema = pa.schema([(name, pa.string()) for name in self.names])

    def _parts(self, names: Sequence[str]) -> Iterator[Any]:
        pa, pa_csv = need("pyarrow"), need("pyarrow.csv")
        options = {
            "read_options": pa_csv.ReadOptions(
                column_names=self.names, skip_rows=1, block_size=BLOCK_BYTES, use_threads=False
            ),
            "parse_options": pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=self._refuse),
            "convert_options": pa_csv.ConvertOptions(
                column_types=self.schema, include_columns=list(names), strings_can_be_null=False
            ),
        }
        with open(self.path, "rb") as file:
            file.readline()
            if not any(line.strip() for line in file):  # nothing but blanks, of which pyarrow would complain
                return
        try:
            yield from pa_csv.open_csv(self.path, **options)
        except pa.ArrowInvalid as error:
            reason = self._refused or f"{str(error).splitlines()[0]} (the header is row 1 here)"
            raise ValueError(f"{self.path}: {reason}") from error

    def _refuse(self, row: Any) -> str:
        place = "a row" if row.number is None else f"row {row.number - 1}"
        text = row.text if len(row.text) <= 60 else row.text[:60] + "..."
        cells = f"{row.actual_columns} cells, expected {row.expected_columns}, one per column"
        self._refused = f"{place} after the header has {cells}: {text!r}"
        return "error"


class ParquetFile(TableFile):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        pa, parquet = need("pyarrow"), need("pyarrow.parquet")
        self.path = path
        try:
            self._file = parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
            self.schema = self._file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path} is not a Parquet file, or damaged ({str(error).splitlines()[0]})") from error
        self.names = list(self.schema.names)
        self.n_rows = int(self._file.metadata.num_rows)
        self._check_names()

    def _parts(self, names: Sequence[str]) -> Iterator[Any]:
        pa = need("pyarrow")
        try:
            for batch in self._file.iter_batches(batch_size=BATCH_ROWS, columns=list(names), use_threads=False):
                yield batch.select(list(names))
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.path} is damaged ({str(error).splitlines()[0]})") from error


@contextmanager
def table_writer(path: Path, schema: Any) -> Iterator[Any]:
    """A function that appends record batches of this schema to a new file, which appears when all is written."""
    with written(path) as partial:
        if path.suffix.lower() == ".parquet":
            with need("pyarrow.parquet").ParquetWriter(partial, schema) as file:
                waiting: list[Any] = []  # for a row group of a useful size

                def add(batch: Any) -> None:
                    waiting.append(batch)
                    if sum(each.nbytes for each in waiting) > GROUP_BYTES:
                        flush()

                def flush() -> None:
                    if waiting:
                        file.write_table(need("pyarrow").Table.from_batches(waiting, schema))
                    waiting.clear()

                yield add
                flush()
        else:
            with open(partial, "w", encoding="utf-8", newline="") as text:
                writer = csv.writer(text, lineterminator="\n")
                writer.writerow(schema.names)
                yield lambda batch: writer.writerows(zip(*(column.to_pylist() for column in batch), strict=True))


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """A small table, given as rows."""
    pa = need("pyarrow")
    table = pa.Table.from_pylist(list(rows))
    with table_writer(path, table.schema) as write:
        for batch in table.to_batches():
            write(batch)
