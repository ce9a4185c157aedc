"""Intervals for partitioned data: folders of Parquet files on a Dask cluster, and what each partition goes through."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sosbands._arguments import read_level
from sosbands._extras import need
from sosbands._files import check_place, remove_leftovers, sync_folder, temporary_name, written
from sosbands._threads import run_on_cluster
from sosbands._words import warn

__all__ = ["interval_frame", "predict_parquet"]

WRITTEN = ("prediction", "lower", "upper", "support")  # as `sosbands predict` writes them


def interval_frame(
    frame: Any, model: Any, confidence_level: float | None = None, *, keep_columns: Sequence[str] = ()
) -> Any:
    """Prediction, interval and support of the rows of a data frame, as a data frame with the same index.

    Made for ``map_partitions``: no rows give an empty frame of the same columns and types, columns are found by their
    names, in whatever order they come, and everything about a row is computed once.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows, with the columns that the model was fitted to, and any others. A model that was fitted to an array takes
        all columns in their order.
    model : SoSBandRegressor or another interval regressor of this package
        Fitted and calibrated, without groups and weights.
    confidence_level : float, optional
        In (0, 1); by default that of the model.
    keep_columns : sequence of str
        Columns of the frame that stay, before the new ones.

    Returns
    -------
    pandas.DataFrame
        ``prediction``, ``lower``, ``upper`` and ``support`` (NaN for models that know none), all float64.
    """
    level, kept, names = _asked(model, confidence_level, keep_columns)
    _check_columns([*kept, *(names or ())], frame.columns, "frame")
    made = dict.fromkeys(WRITTEN, np.zeros(0))
    if len(frame):
        found = model.intervals(frame.to_numpy() if names is None else frame[names], level)
        support = np.full(len(frame), np.nan) if found.support is None else found.support
        made = dict(zip(WRITTEN, (found.prediction, found.lower[:, 0], found.upper[:, 0], support), strict=True))
    return frame[kept].assign(**made)


def predict_parquet(
    model: Any,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    confidence_level: float | None = None,
    keep_columns: Sequence[str] = (),
    client: Any = None,
) -> int:
    """Predict a folder of Parquet files on a Dask cluster, file by file.

    The new folder has the same files, with the same rows in the same order and the same index, and what
    `interval_frame` gives for them. It appears when all files are written, or not at all.

    Parameters
    ----------
    model : SoSBandRegressor or another interval regressor of this package
        As in `interval_frame`. It is sent to each worker once.
    source : path
        Folder of Parquet files, possibly in folders ``name=value`` (hive partitions, whose names are columns, too), or
        one file. All workers must see it, and the place of `target`, under this path. A file is read at once, its
        other columns excepted.
    target : path
        Folder to write, which does not exist yet.
    confidence_level, keep_columns
        As in `interval_frame`. Index and hive partitions are kept without being named.
    client : distributed.Client, optional
        By default the current one.

    Returns
    -------
    n_rows : int

    Warns
    -----
    OffDataWarning, CrossedIntervalsWarning, ...
        What the workers warned of: once a category, with the number of files and the words for the first of them.
    """
    place = Path(source).resolve()
    dataset = need("pyarrow.dataset").dataset(place, format="parquet", partitioning="hive")
    base = place if place.is_dir() else place.parent
    fragments = {str(Path(each.path).relative_to(base)): each for each in dataset.get_fragments()}
    if not fragments:
        raise ValueError(f"source={str(place)!r}: expected Parquet files, found none")
    level, kept, features = _asked(model, confidence_level, keep_columns)
    there = dataset.schema.names
    wanted = [*kept, *(features or [name for name in there if name not in _index(dataset.schema)])]
    columns = list(dict.fromkeys(wanted))
    _check_columns(columns, there, f"source={str(place)!r}")
    parted = set(there) - set(next(iter(fragments.values())).physical_schema.names)
    keep = [name for name in kept if name not in parted]  # the names of the folders hold the others
    work = _Work(model, level, keep, columns, dataset.schema)
    distributed = need("distributed")
    try:
        client = distributed.get_client() if client is None else client
    except ValueError:
        advice = "expected a Dask client, for instance dask.distributed.Client(address)"
        raise ValueError(f"client=None: {advice}") from None
    folder = _new_folder(Path(target), Path(source))
    remove_leftovers(folder.parent)
    partial = temporary_name(folder)
    files = {name: partial / name for name in fragments}
    done: dict[str, tuple[int, dict[type[Warning], str]]] = {}
    try:
        for file in files.values():
            file.parent.mkdir(parents=True, exist_ok=True)
        calls = {name: (fragment, str(files[name])) for name, fragment in fragments.items()}
        with closing(run_on_cluster(client, _predict_file, work, calls)) as finished:
            for name, result, error in finished:
                if error is not None:
                    raise error
                done[name] = result
        lost = [file for file in files.values() if not file.is_file()]
        if lost:
            raise FileNotFoundError(
                f"{len(lost)} of {len(files)} files that workers wrote cannot be seen here: expected `target` in a "
                "folder that this process and all workers share"
            )
        for file in {each for each in partial.rglob("*") if each.is_file()} - set(files.values()):
            file.unlink()  # a part of a file, left by a worker that died
        os.rename(partial, folder)
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    warned: dict[type[Warning], list[str]] = {}
    for name in files:
        for category, message in done[name][1].items():
            warned.setdefault(category, []).append(f"{name}: {message}")
    for category, messages in warned.items():
        warn(f"in {len(messages)} of {len(files)} files, first {messages[0]}", category)
    return sum(rows for rows, _ in done.values())


class _Work(NamedTuple):
    """What every worker needs."""

    model: Any
    level: float
    keep: list[str]
    columns: list[str]
    schema: Any


def _predict_file(work: _Work, fragment: Any, path: str) -> tuple[int, dict[type[Warning], str]]:
    """What a worker does with one file: its rows, and what was warned of, in the last words for each category."""
    parquet, pa = need("pyarrow.parquet"), need("pyarrow")
    try:
        physical = fragment.physical_schema
        parts = import_module("pyarrow.dataset").get_partition_keys(fragment.partition_expression)
        _check_columns(work.columns, [*physical.names, *parts], "the file")
        table = fragment.to_table(schema=work.schema, columns=list(dict.fromkeys([*work.columns, *_index(physical)])))
        frame = table.replace_schema_metadata(physical.metadata).to_pandas()  # its own index, not that of the first
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = interval_frame(frame, work.model, work.level, keep_columns=work.keep)
        with written(path, tidy=False) as partial:
            parquet.write_table(pa.Table.from_pandas(made), partial)
    except Exception as error:
        error.add_note(f"in the file {fragment.path}")
        raise
    return len(frame), {each.category: str(each.message) for each in caught}


def _index(schema: Any) -> list[str]:
    """Columns that hold the index of the data frame that was written."""
    columns = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in columns if isinstance(name, str)]


def _new_folder(target: Path, source: Path) -> Path:
    folder = target.resolve()
    if os.path.lexists(folder):  # False, too, for a name that is too long
        raise FileExistsError(f"target={str(target)!r} exists: expected the name of a folder that does not")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"target={str(target)!r}: expected a name in a folder that exists")
    check_place(folder, "target")
    if folder.is_relative_to(source.resolve()):
        raise ValueError(f"target={str(target)!r} lies in the source: expected a place outside of {str(source)!r}")
    return folder


def _asked(
    model: Any, confidence_level: float | None, keep_columns: Sequence[str]
) -> tuple[float, list[str], list[str] | None]:
    """Level, columns to keep, and those that the model needs, None if it was fitted to an array."""
    level = read_level(model.confidence_level if confidence_level is None else confidence_level)
    model.quantile(level)  # a model that cannot give this level says so before anything is written
    kept = [keep_columns] if isinstance(keep_columns, str) else list(keep_columns)
    clash = [name for name in kept if name in WRITTEN]
    if clash:
        raise ValueError(f"keep_columns has {clash[0]!r}: expected other names than those written, {list(WRITTEN)}")
    names = getattr(model, "feature_names_in_", None)
    return level, kept, None if names is None else list(names)


def _check_columns(wanted: Sequence[str], names: Any, where: str) -> None:
    lacking = [name for name in wanted if name not in list(names)]
    if lacking:
        raise ValueError(f"{where} has no column {lacking[0]!r}: expected {list(wanted)}, found {list(names)}")
