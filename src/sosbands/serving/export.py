"""`export_onnx` and `export_numpy`: files that score rows, checked against the model before they are written."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sosbands._arguments import check
from sosbands._extras import need
from sosbands._files import check_place, written
from sosbands._types import AnyArray, Array
from sosbands.bands.views import PREDICTION
from sosbands.conformal.asked import read_kind, read_levels, read_share
from sosbands.exceptions import ExportError, SosbandsWarning
from sosbands.point_models.user_model import model_name, predict_with_spread
from sosbands.regressors import SoSBandRegressor
from sosbands.serving.build import GROUPS, STD, X, check_model, program_of
from sosbands.serving.models import table_inputs
from sosbands.serving.onnx_graph import onnx_bytes
from sosbands.serving.program import Program
from sosbands.serving.scorer import FORMAT, MICROSECONDS, PROGRAM, load_scorer
from sosbands.tables import TableEncoder
from sosbands.tables.columns import BOOLEAN, CATEGORY, DATE, NUMBER

ROWS = 64
FAR = 4.0  # standard deviations that some of the rows lie from the mean
GAPS = 0.1  # share of the cells that are missing, where columns have gaps
NEW_TEXT = "a text that no learning row has"


def sample_rows(model: SoSBandRegressor) -> Any:
    """Random rows of the size and spread of the learning rows, some of them far away; always the same.

    Raises
    ------
    ExportError
        If the preprocessor is one that nothing is known of: such rows must be given.
    """
    rng = np.random.default_rng(0)
    fitted = model.reader_.preprocessor
    if isinstance(fitted, TableEncoder):
        return _framed(_table(fitted, rng), list(fitted.kinds_), named=fitted.has_names_)
    spread = np.where(np.arange(ROWS) % 8 == 0, FAR, 1.0)[:, None]
    points = model.reader_.mean + spread * model.reader_.scale * rng.standard_normal((ROWS, len(model.reader_.mean)))
    try:
        numbers = points if fitted is None else np.asarray(fitted.inverse_transform(points), dtype=float)
    except (AttributeError, TypeError, ValueError) as error:
        raise ExportError(
            f"rows=None: what a {type(fitted).__name__} makes of rows cannot be turned back, so that there are no rows "
            "to check the file with; expected some rows"
        ) from error
    names = getattr(model, "feature_names_in_", None)
    columns = {f"{j}" if names is None else names[j]: numbers[:, j] for j in range(numbers.shape[1])}
    return numbers if names is None else _framed(columns, list(columns), named=True)


def _table(encoder: TableEncoder, rng: np.random.Generator) -> dict[str, AnyArray]:
    ordered = encoder._of(NUMBER, DATE)
    scale = dict(zip(ordered, encoder.scaler_.scale_, strict=True)) if encoder.scale and ordered else {}
    center = dict(zip(ordered, encoder.scaler_.mean_, strict=True)) if encoder.scale and ordered else {}
    found: dict[str, AnyArray] = {}
    for name, kind in encoder.kinds_.items():
        if kind == CATEGORY:
            found[name] = rng.choice(np.array([*encoder.levels_[name], NEW_TEXT], dtype=object), ROWS)
        else:
            drawn = center.get(name, 0.0) + scale.get(name, 1.0) * rng.standard_normal(ROWS)
            values = drawn if kind != BOOLEAN else rng.integers(0, 2, ROWS).astype(float)
            values = np.where(rng.random(ROWS) < GAPS, np.nan, values) if name in encoder.gaps_ else values
            moments = kind == DATE  # so that the column is read as one of dates again
            days = (values * MICROSECONDS).astype("timedelta64[us]") + np.datetime64(0, "us") if moments else values
            found[name] = days
    return found


def _framed(columns: dict[str, AnyArray], names: list[str], *, named: bool) -> Any:
    """A data frame, or an array if there are no names; without pandas rows must be given."""
    if not named:
        table = np.empty((ROWS, len(names)), dtype=object)
        for j, name in enumerate(names):
            table[:, j] = columns[name]
        return table
    try:
        import pandas as pd
    except ImportError as error:
        raise ExportError(
            "rows=None: rows of a table to check the file with need pandas; expected some rows"
        ) from error
    return pd.DataFrame(columns)


def inputs_of(program: Program, model: SoSBandRegressor, rows: Any) -> dict[str, AnyArray]:
    """The inputs of a program for rows as the model takes them; these are repeated until each group has one."""
    with quietly():
        read = model.reader_.read(model, rows)
        found: dict[str, AnyArray] = {}
        if isinstance(model.reader_.preprocessor, TableEncoder):
            found |= table_inputs(model.reader_.preprocessor, read.table)
        else:
            found[X] = np.ascontiguousarray(read.table, dtype=np.float64)
        if PREDICTION in program.inputs:
            mean, spread = predict_with_spread(model.estimator_, model.reader_.for_model(read))
            found[PREDICTION] = mean[:, None]
            found |= {STD: spread[:, None]} if STD in program.inputs else {}
    if GROUPS in program.inputs:
        labels = np.unique(np.asarray(model.calibration_.groups))
        rounds = -(-len(labels) // len(read))
        found = {name: np.tile(values, (rounds, 1)) for name, values in found.items()}
        given = labels[np.arange(rounds * len(read)) % len(labels)][:, None]
        found[GROUPS] = given.astype(object) if labels.dtype.kind in "UO" else given.astype(np.int64)
    return found


def expected(
    program: Program, model: SoSBandRegressor, rows: Any, given: Mapping[str, AnyArray], lower_share: float
) -> tuple[Array, Array]:
    """Predictions (n,) and intervals (n, 2, k) of the model itself, for the rows as often as `given` has them."""
    levels = program.facts["confidence_level"]
    with quietly():
        if GROUPS not in given:
            rounds: list[AnyArray | None] = [None]
        else:
            n = len(model.reader_.read(model, rows))
            rounds = list(given[GROUPS].reshape(-1, n))
        found = [model.intervals(rows, levels, lower_share=lower_share, groups=groups) for groups in rounds]
    return np.concatenate([each.prediction for each in found]), np.concatenate([each.ends for each in found])


def disagreement(
    program: Program, model: SoSBandRegressor, rows: Any, scored: Mapping[str, Array], lower_share: float = 0.5
) -> float:
    """The largest difference of a prediction or of an end, in parts of the width of its interval.

    Infinite where one end is infinite and the other is not, or where something is no number. In place of a width that
    is zero or infinite stands the root mean square of the residuals.
    """
    mean, ends = expected(program, model, rows, inputs_of(program, model, rows), lower_share)
    given = np.stack([scored["lower"], scored["upper"]], axis=1)
    width = ends[:, 1:] - ends[:, :1]
    unit = np.where(np.isfinite(width) & (width > 0), width, model.residual_rms_ or 1.0)
    off = [_apart(given, ends) / unit]
    if PREDICTION in scored:
        off.append(_apart(scored[PREDICTION], mean[:, None]) / unit.min(axis=2))
    return float(max(each.max(initial=0.0) for each in off))


def check_agreement(found: float, tolerance: float, name: str) -> None:
    """Refuse a file that gives other intervals."""
    if not found <= tolerance:
        raise ExportError(
            f"{name}: its intervals differ from those of predict_interval by {found:.1e} of their width on rows that "
            f"it was checked with; expected at most {tolerance:.0e}. Nothing was written"
        )


def _apart(given: Array, wanted: Array) -> Array:
    with np.errstate(invalid="ignore"):
        found = np.where(given == wanted, 0.0, np.abs(given - wanted))
    return np.where(np.isnan(found), np.inf, found)


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of a prediction, which concern rows that are made up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SosbandsWarning)
        warnings.filterwarnings("ignore", message="X (does not have|has) .*feature names")
        yield


ONNX_TOLERANCE, NUMPY_TOLERANCE = 1e-6, 1e-8  # of the width of intervals
AnyPath = str | os.PathLike[str]


def export_onnx(
    model: Any,
    path: AnyPath,
    confidence_level: Any = None,
    *,
    lower_share: float = 0.5,
    bands_only: bool = False,
    rows: Any = None,
) -> None:
    """Write a model as an ONNX graph from raw features to prediction, intervals and support.

    The graph is run by onnxruntime on sample rows first: one that differs from `predict_interval` by more than 1e-6
    of the width of an interval is not written.

    Parameters
    ----------
    model : SoSBandRegressor
        Fitted and calibrated.
    path : path
        File to write.
    confidence_level : float or list of k floats, optional
        In (0, 1); by default that of the constructor.
    lower_share : float
        As in `predict_interval`.
    bands_only : bool
        Leave the point model out: its prediction, and its standard deviation if the bands look at it, are the inputs
        "prediction" and "std", and the prediction is no output.
    rows : array or data frame of shape (n, n_features), optional
        Rows to check the file with, such as the learning rows; by default random ones of their size and spread.

    Raises
    ------
    ExportError
        If a part of the model has no graph, or the graph gives other intervals.

    Notes
    -----
    Inputs are "X" of shape (n, n_features) in double precision, or for a model of a table one input (n, 1) for each
    column, by its name: texts for categories, double precision for others. A model that was calibrated by groups has
    the input "groups", (n, 1). Outputs are "prediction" (n, 1), "lower" and "upper" (n, k), and "support" (n, 1).
    """
    ready = _Export(model, path, confidence_level, lower_share, bands_only, rows)
    content = onnx_bytes(ready.program)
    try:
        session = onnx_session(content)
        scored = dict(zip(ready.program.outputs, session.run(list(ready.program.outputs), ready.given), strict=True))
    except Exception as error:  # onnxruntime has its own types for each of its reasons
        raise ExportError(
            f"{path}: onnxruntime does not run the graph ({str(error)[:300]}). Nothing was written"
        ) from error
    check_agreement(ready.disagreement(scored), ONNX_TOLERANCE, os.fspath(path))
    ready.write(content)


def export_numpy(
    model: Any,
    path: AnyPath,
    confidence_level: Any = None,
    *,
    lower_share: float = 0.5,
    bands_only: bool = False,
    rows: Any = None,
) -> None:
    """Write a model as arrays and steps that `load_scorer` reads, which needs NumPy alone.

    A file that differs from `predict_interval` by more than 1e-8 of the width of an interval is not written.

    Parameters
    ----------
    model, path, confidence_level, lower_share, bands_only, rows
        As in `export_onnx`.

    Raises
    ------
    ExportError
        If NumPy alone cannot compute a part of the model, or the file gives other intervals.
    """
    ready = _Export(model, path, confidence_level, lower_share, bands_only, rows)
    if ready.program.foreign:
        fitted, _ = next(iter(ready.program.foreign.values()))
        raise ExportError(
            f"a {model_name(fitted)} cannot be written for NumPy alone; if it is the point model, bands_only=True "
            "makes its prediction an input"
        )
    content = numpy_bytes(ready.program, many=ready.many)
    check_agreement(ready.disagreement(_scored(content, ready.given)), NUMPY_TOLERANCE, os.fspath(path))
    ready.write(content)


class _Export:
    """What both kinds of file begin and end with: arguments, program, rows to check with, and the place."""

    def __init__(
        self, model: Any, path: AnyPath, confidence_level: Any, lower_share: Any, bands_only: bool, rows: Any
    ) -> None:
        check("bands_only", bands_only, isinstance(bands_only, bool), "True or False")
        check_place(path)
        check_model(model)
        self.path, self.model = path, model
        levels, self.many = read_levels(model.confidence_level if confidence_level is None else confidence_level)
        self.share = read_share(lower_share, read_kind(model.calibration))
        self.program = program_of(model, levels, lower_share=self.share, bands_only=bands_only)
        self.rows = sample_rows(model) if rows is None else rows
        self.given = inputs_of(self.program, model, self.rows)

    def disagreement(self, scored: dict[str, AnyArray]) -> float:
        """With the model, on the rows to check with."""
        return disagreement(self.program, self.model, self.rows, scored, self.share)

    def write(self, content: bytes) -> None:
        """The file, whole or not at all."""
        with written(self.path) as partial:
            partial.write_bytes(content)


def numpy_bytes(program: Program, *, many: bool) -> bytes:
    """The file that `load_scorer` reads: steps as JSON beside the constants, an archive of NumPy without pickle."""
    plain = {
        "format": FORMAT,
        "inputs": [vars(each) for each in program.inputs.values()],
        "steps": [[step.operation, step.output, step.arguments, step.options] for step in program.steps],
        "outputs": program.outputs,
        "facts": {**program.facts, "levels_are_a_list": many},
    }
    text = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    content = io.BytesIO()
    arrays = {name.removeprefix("/"): value for name, value in program.constants.items()}
    np.savez_compressed(content, **{PROGRAM: text}, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def _scored(content: bytes, given: dict[str, AnyArray]) -> dict[str, AnyArray]:
    scorer = load_scorer(io.BytesIO(content))
    if X not in given:
        return scorer(given)
    return scorer(given[X], **{name: values for name, values in given.items() if name != X})


def onnx_session(content: bytes) -> Any:
    """The graph in onnxruntime, on one thread."""
    runtime = need("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
