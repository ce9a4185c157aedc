"""`export_onnx` and `export_numpy`: files that score rows, checked against the model before they are written."""

from __future__ import annotations

import io
import json
import os
from typing import Any

import numpy as np

from sosbands._arguments import check
from sosbands._files import check_place, written
from sosbands._types import AnyArray
from sosbands.conformal.arguments import read_kind, read_levels, read_share
from sosbands.exceptions import ExportError
from sosbands.point_models.outputs import model_name
from sosbands.serving.agreement import check_agreement, disagreement, inputs_of
from sosbands.serving.build import X, check_model, program_of
from sosbands.serving.onnx_graph import need, onnx_bytes
from sosbands.serving.program import Program
from sosbands.serving.sample import sample_rows
from sosbands.serving.scorer import FORMAT, PROGRAM, load_scorer

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
