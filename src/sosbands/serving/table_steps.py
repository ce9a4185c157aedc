"""Steps from the columns of a table to numbers, as `TableEncoder` makes them: each column is an input by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sosbands._types import AnyArray, Array
from sosbands.exceptions import ExportError
from sosbands.serving.program import NUMBERS, TEXTS, Program
from sosbands.tables import TableEncoder
from sosbands.tables.columns import table_of
from sosbands.tables.encoder import UNSEEN
from sosbands.tables.kinds import BOOLEAN, CATEGORY, DATE, MISSING, NUMBER

TABLE = ""  # in place of a value: the columns of the table, each an input


def add_table_inputs(program: Program, encoder: TableEncoder) -> None:
    """An input for each column."""
    for name, kind in encoder.kinds_.items():
        program.input(name, _input_kind(kind), 1)


def add_table(program: Program, encoder: TableEncoder) -> tuple[str, str | None]:
    """What the encoder makes of the columns, and zero for rows of finite numbers and gaps, NaN for others."""
    for name, kind in encoder.kinds_.items():
        if name not in program.inputs or program.inputs[name].kind != _input_kind(kind):
            raise ExportError(f"estimator: its encoder sees a column {name!r} of another kind than the bands do")
    parts, checked = [], None
    names = [*encoder._of(NUMBER, DATE), *encoder._of(BOOLEAN)]
    if names:
        numbers = program.joined(names)
        medians = encoder.filler_.transform(np.full((1, len(names)), np.nan))
        filled = program.add("fill", numbers, medians)
        checked = add_check(program, filled)
        parts.append(_scaled(program, encoder, filled, len(names)))
        parts += [program.add("missing", name) for name in encoder.gaps_]
    for name, table in (*_one_hot_tables(encoder), *_target_tables(encoder)):
        keys, rows = _with_missing(encoder.levels_[name], table)
        parts.append(program.add("lookup", name, keys, rows))
    return program.joined(parts), checked


def add_check(program: Program, numbers: str) -> str:
    """Zero for each row, NaN if some entry is missing, infinite or too large to be squared."""
    return program.add("multiply", program.squares(numbers), 0.0)


def table_inputs(encoder: TableEncoder, X: Any) -> dict[str, AnyArray]:
    """The inputs of rows of a table."""
    found: dict[str, AnyArray] = {}
    told = set(encoder.kinds or {})
    for column in encoder._columns(table_of(X)):
        kind = encoder.kinds_[column.name]
        if kind == CATEGORY:
            levels, codes = column.texts()
            found[column.name] = np.array(list(levels), dtype=object)[codes][:, None]
        else:
            found[column.name] = column.numbers(kind, days=column.name in told)[:, None]
    return found


def _input_kind(kind: str) -> str:
    return TEXTS if kind == CATEGORY else NUMBERS


def _scaled(program: Program, encoder: TableEncoder, filled: str, columns: int) -> str:
    quantities = len(encoder._of(NUMBER, DATE))
    if not (encoder.scale and quantities):
        return filled
    center, scale = np.zeros(columns), np.ones(columns)
    center[:quantities], scale[:quantities] = encoder.scaler_.mean_, encoder.scaler_.scale_
    return program.standardised(filled, center, scale)


def _codes(k: int, count: int, columns: int, other: int) -> AnyArray:
    """A row of codes for each text of column k, and last for one that no learning row has."""
    codes = np.full((count + 1, columns), other, dtype=np.intp)
    codes[:, k] = [*range(count), UNSEEN]
    return codes


def _one_hot_tables(encoder: TableEncoder) -> list[tuple[str, Array]]:
    if not encoder.one_hot_:
        return []
    columns = len(encoder.one_hot_)
    raw = encoder.columns_encoder_.get_feature_names_out([f"{k}" for k in range(columns)])
    places = np.array([int(text.partition("_")[0]) for text in raw])
    tables = []
    for k, name in enumerate(encoder.one_hot_):
        codes = _codes(k, len(encoder.levels_[name]), columns, 0)
        tables.append((name, np.asarray(encoder.columns_encoder_.transform(codes))[:, places == k]))
    return tables


def _target_tables(encoder: TableEncoder) -> list[tuple[str, Array]]:
    tables = []
    columns = len(encoder.by_target_)
    for k, name in enumerate(encoder.by_target_):
        codes = _codes(k, len(encoder.levels_[name]), columns, UNSEEN)
        means = encoder._scaled_targets(encoder.targets_.transform(codes))
        tables.append((name, means[:, k : k + 1]))
    return tables


def _with_missing(levels: list[str], table: Array) -> tuple[AnyArray, Array]:
    """Keys in order and their rows, the last one that of other texts; words for a missing cell are as the empty one."""
    rows: Mapping[str, Array] = dict(zip(levels, table, strict=False))
    empty = rows.get("", table[-1])
    known = {**dict.fromkeys(("", *MISSING), empty), **rows}
    keys = sorted(known)
    return np.array(keys), np.vstack([*(known[key] for key in keys), table[-1]])
