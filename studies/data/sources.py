"""Where a raw table comes from: scikit-learn, a folder of CSV files, or OpenML. Each is checked by a hash."""

from __future__ import annotations

import csv
import hashlib
import os
from pathlib import Path

import numpy as np

from sosbands._types import Array
from sosbands.exceptions import SosbandsError
from studies.data.catalogue import DIABETES, OpenMLCopy, RawData
from studies.data.table import content_hash

FOLDER_VARIABLE = "SOSBANDS_DATA"


class DatasetNotFoundError(SosbandsError, FileNotFoundError):
    """A data set is not where it was looked for; the message says how to get it."""


def read_raw(raw: RawData, source: str | None, folder: str | Path | None) -> tuple[Array, str]:
    """Read a table: its values, target last, and a sentence saying where they came from."""
    if source is None:
        source = "sklearn" if raw is DIABETES and folder is None else "folder"
    if folder is not None and source != "folder":
        raise ValueError(f"folder={str(folder)!r} with source={source!r}: expected source='folder', or none of the two")
    if source == "folder":
        return _read_folder(raw, folder)
    if source == "sklearn":
        return _read_sklearn(raw)
    if source == "openml":
        return _read_openml(raw)
    raise ValueError(f"source={source!r}: expected None, 'sklearn', 'folder' or 'openml'")


def how_to_get(raw: RawData) -> str:
    """Every way to the data, in words."""
    ways = [
        f"put {raw.file} (sha256 {raw.sha256}) into a folder and name the folder by folder=... or by the environment "
        f"variable {FOLDER_VARIABLE}"
    ]
    if raw is DIABETES:
        ways.insert(0, "take it from scikit-learn, which ships it: source='sklearn'")
    if isinstance(raw.openml, OpenMLCopy):
        ways.append(f"fetch data id {raw.openml.data_id} from OpenML: source='openml'")
        return "To get it, " + ", or ".join(ways) + "."
    return "To get it, " + ", or ".join(ways) + f". OpenML is not offered: {raw.openml}."


def _read_sklearn(raw: RawData) -> tuple[Array, str]:
    if raw is not DIABETES:
        raise ValueError(
            f"source='sklearn': scikit-learn ships the data of {DIABETES.file} only, not of {raw.file}. "
            f"{how_to_get(raw)}"
        )
    from sklearn.datasets import load_diabetes

    # scaled=False: the measurements themselves; by default scikit-learn centres and scales them over all rows.
    values = np.column_stack(load_diabetes(return_X_y=True, scaled=False))
    where = "scikit-learn, load_diabetes(scaled=False)"
    _check_values(raw, values, where)
    return values, where


def _read_folder(raw: RawData, folder: str | Path | None) -> tuple[Array, str]:
    named = folder if folder is not None else os.environ.get(FOLDER_VARIABLE) or None
    if named is None:
        raise DatasetNotFoundError(
            f"{raw.file}: no folder was given and {FOLDER_VARIABLE} is not set. {how_to_get(raw)}"
        )
    path = Path(named) / raw.file
    if not path.is_file():
        missing = "that file is not in it" if path.parent.is_dir() else "there is no such folder"
        raise DatasetNotFoundError(f"{raw.file}: folder {str(named)!r}: {missing}. {how_to_get(raw)}")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != raw.sha256:
        raise ValueError(f"{path} is not the expected file: sha256 {found}, expected {raw.sha256}")
    _, *rows = csv.reader(content.decode("ascii").splitlines())
    return np.array([[float(cell) if cell else np.nan for cell in row] for row in rows]), f"file {path}"


def _read_openml(raw: RawData) -> tuple[Array, str]:
    if not isinstance(raw.openml, OpenMLCopy):
        raise ValueError(f"source='openml' is not offered for {raw.file}. {how_to_get(raw)}")
    values = _fetch_columns(raw, raw.openml)
    if raw.openml.build is not None:
        values = raw.openml.build(values)
    where = f"OpenML, data id {raw.openml.data_id}"
    _check_values(raw, values, where)
    return values, where


def _fetch_columns(raw: RawData, copy: OpenMLCopy) -> Array:
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        # Without frames scikit-learn turns categories such as '4' cylinders into codes 0, 1, ...
        raise ImportError("source='openml' needs pandas: pip install \"sosbands[cli]\"") from error
    from sklearn.datasets import fetch_openml

    try:
        frame = fetch_openml(data_id=copy.data_id, as_frame=True, target_column=None).frame
    except OSError as error:
        raise DatasetNotFoundError(
            f"{raw.file}: data id {copy.data_id} could not be fetched from OpenML ({error}). {how_to_get(raw)}"
        ) from error
    named = {" ".join(str(name).split()): frame[name] for name in frame.columns}
    lacking = [name for name in copy.columns if name not in named]
    if lacking:
        raise ValueError(f"OpenML, data id {copy.data_id}: expected columns {lacking}, found {sorted(named)}")
    return np.column_stack([np.asarray(named[name], dtype=np.float64) for name in copy.columns])


def _check_values(raw: RawData, values: Array, where: str) -> None:
    found = content_hash(values)
    if found != raw.values_sha256:
        raise ValueError(
            f"{where}: the values, shape {values.shape}, are not those of {raw.file}: content hash {found}, "
            f"expected {raw.values_sha256}"
        )
