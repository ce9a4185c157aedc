"""Fitted models as files that score rows without this library's dependencies: ONNX graphs, and NumPy alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sosbands.serving.export import export_numpy, export_onnx
    from sosbands.serving.scorer import Scorer, load_scorer

__all__ = ["Scorer", "export_numpy", "export_onnx", "load_scorer"]

_HOMES = {"Scorer": "scorer", "export_numpy": "export", "export_onnx": "export", "load_scorer": "scorer"}


def __getattr__(name: str) -> Any:
    """Import names when they are first asked for: `load_scorer` needs neither SciPy nor scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sosbands.serving' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"sosbands.serving.{_HOMES[name]}"), name)
    return value
