"""What is installed: the version, which the build reads here too, and libraries that only parts of the package need."""

from importlib import import_module
from typing import Any

__version__ = "0.2.0.dev0"
# what brings a library, and those that are needed beside it, where that is not just its name
BROUGHT_BY = dict.fromkeys(("pandas", "pyarrow"), "pandas pyarrow")
BROUGHT_BY |= dict.fromkeys(("onnx", "onnxruntime", "skl2onnx"), "onnx skl2onnx onnxruntime")
BROUGHT_BY |= {"distributed": "'dask[dataframe,distributed]'", "quantile_forest": "quantile-forest"}


def need(module: str) -> Any:
    """A module of an optional library, or an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        install = f"pip install {BROUGHT_BY.get(library, library)}"
        raise ImportError(f"this needs {library}, which cannot be imported ({error}): {install}") from error
